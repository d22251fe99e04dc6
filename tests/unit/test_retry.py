"""Retry arithmetic."""

import math
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import Retry, errors
from ostinato.core import retry

_finite = {"allow_nan": False, "allow_infinity": False}
_policies = st.builds(
    Retry,
    max_attempts=st.integers(1, 10**6),
    base_delay=st.floats(0, 1e9, **_finite),
    multiplier=st.floats(1, 1e300, **_finite),
    max_delay=st.floats(0, 1e9, **_finite),
    jitter=st.floats(0, 1, **_finite),
)


def test_b15_the_delays_of_the_seed() -> None:
    policy = Retry(max_attempts=4, base_delay=60, multiplier=2)
    assert [policy.delay(n) for n in (1, 2, 3)] == [60, 120, 240]


def test_the_cap_holds() -> None:
    assert Retry(base_delay=10, multiplier=10, max_delay=50).delay(5) == 50


def test_jitter_takes_away_a_drawn_share() -> None:
    policy = Retry(base_delay=10, multiplier=1, jitter=0.5)
    assert policy.delay(1, 0.0) == 10
    assert policy.delay(1, 1.0) == 5


@given(_policies, st.integers(1, 10**9), st.floats(0, 1))
def test_a_delay_is_never_negative_nor_above_the_cap(policy: Retry, attempt: int, draw: float) -> None:
    assert 0 <= policy.delay(attempt, draw) <= policy.max_delay


@given(_policies, st.integers(1, 10**6))
def test_delays_never_shrink(policy: Retry, attempt: int) -> None:
    assert policy.delay(attempt) <= policy.delay(attempt + 1)


@pytest.mark.parametrize("attempt", [1, 400, 10**6, 10**18])
def test_no_base_delay_never_waits(attempt: int) -> None:
    assert Retry(base_delay=0, multiplier=10.0).delay(attempt) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"max_attempts": 1.5},
        {"max_attempts": "3"},
        {"max_attempts": True},
        {"base_delay": "1"},
        {"multiplier": None},
        {"max_delay": 10**400},
        {"max_attempts": 10**5000},
        {"jitter": 10**5000},
        {"base_delay": -0.1},
        {"base_delay": math.nan},
        {"base_delay": math.inf},
        {"multiplier": 0.5},
        {"multiplier": math.nan},
        {"max_delay": -1},
        {"max_delay": math.nan},
        {"max_delay": math.inf},
        {"max_delay": 1e300},
        {"jitter": 1.1},
        {"jitter": -0.1},
        {"jitter": math.nan},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput, match="retry"):
        Retry(**fields)


def test_a_delay_of_more_than_an_hour_is_kept() -> None:
    """B23: `maxDelay` is an hour or `baseDelay`, whichever is longer; said explicitly, it holds."""
    assert Retry().max_delay == 3600
    assert Retry(base_delay=172_800).delay(1) == Retry(base_delay=172_800).delay(3) == 172_800
    assert retry.read({"baseDelay": 172_800, "multiplier": 1}).max_delay == 172_800
    assert retry.read({"baseDelay": 172_800, "maxDelay": 3600}).delay(1) == 3600
    assert retry.read(msgspec.to_builtins(Retry(base_delay=7200))) == Retry(base_delay=7200)
    with pytest.raises(errors.InvalidInput, match="maxDelay"):
        Retry(max_delay=cast("float", "1"))
