"""When to come again, in the words of many providers."""

import datetime
import email.utils
import time

import pytest

from ostinato.agents import resets


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("120ms", 0.12),
        ("1m30.5s", 90.5),
        ("1h2m", 3600),  # at most an hour
        ("20m", 1200),
        ("7.66", 7.66),
        ("0", 0.05),
        ("0s", 0.05),
        ("99999", 3600),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1e9", None),
        ("NaN", None),
        ("9" * 400, None),
        ("2026-11-16T12:00:00", None),  # whose noon?
    ],
)
def test_waits(text: str, seconds: float | None) -> None:
    assert resets.read(text) == seconds


def test_times_are_waits_too() -> None:
    soon = time.time() + 30
    assert resets.read(f"{soon:.0f}") == pytest.approx(30, abs=3)
    moment = datetime.datetime.fromtimestamp(soon, datetime.UTC).isoformat()
    assert resets.read(moment) == pytest.approx(30, abs=3)
    assert resets.wait_of({"retry-after": email.utils.formatdate(soon, usegmt=True)}) == pytest.approx(30, abs=3)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "20"}, 0.25),
        ({"retry-after": "soon", "x-ratelimit-reset-requests": "4s"}, 4),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "149984",
            },
            1,
        ),
        ({"x-ratelimit-reset": "12"}, 12),
    ],
)
def test_the_header_that_counts(headers: dict[str, str], seconds: float | None) -> None:
    assert resets.wait_of(headers) == seconds


def test_calls_left() -> None:
    headers = {"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1s"}
    assert resets.calls_left(headers) == (59, 1)
    assert resets.calls_left({"x-ratelimit-remaining-requests": "many"}) == (None, None)
