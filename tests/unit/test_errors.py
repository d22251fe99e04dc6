"""Errors that are made of more than a sentence."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest

from ostinato import errors

NO_TIMES = [-1e300, math.nan, math.inf, 1e300, 10**5000, "x", None, True, False]


@pytest.mark.parametrize("wrong", NO_TIMES, ids=[str(n) for n in range(len(NO_TIMES))])
def test_a_retry_after_that_is_no_time_is_refused_where_it_is_made(wrong: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="seconds of RetryAfter must be a number up to") as caught:
        errors.RetryAfter(wrong, "too many calls")
    assert caught.value.details["field"] == "seconds"
    assert len(str(caught.value)) < 300


def test_a_moment_that_has_passed_is_now() -> None:
    assert errors.RetryAfter(-0.3).seconds == 0
    assert str(errors.RetryAfter(-0.3)) == "retry after 0 s"


@pytest.mark.parametrize("seconds", [0, 0.5, 30, 1e9])
def test_a_retry_after_keeps_its_seconds_however_it_is_copied(seconds: float) -> None:
    made = errors.RetryAfter(seconds, "too many calls")
    made.add_note("on a Monday")
    copies = [copy.copy(made), copy.deepcopy(made)]
    copies += [pickle.loads(pickle.dumps(made, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for copied in copies:
        assert type(copied) is errors.RetryAfter
        assert (copied.seconds, copied.message, copied.details) == (seconds, "too many calls", {"seconds": seconds})
        assert copied.__notes__ == ["on a Monday"]
