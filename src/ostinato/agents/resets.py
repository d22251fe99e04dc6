"""When an endpoint takes calls again, as its headers say it. There are as many ways to say it as providers."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Mapping

from ostinato import outgoing

SHORTEST = 0.05
LONGEST = 3600.0
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_DURATION = re.compile(
    r"(?:(?P<d>[0-9]{1,9})d)?(?:(?P<h>[0-9]{1,9})h)?(?:(?P<m>[0-9]{1,9})m(?!s))?(?:(?P<s>[0-9]{1,9}(?:\.[0-9]{1,9})?)s)?(?:(?P<ms>[0-9]{1,9}(?:\.[0-9]{1,9})?)ms)?"
)
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_WHAT = ("requests", "tokens")
_SINCE_1970 = 1_000_000_000.0
"""Larger numbers are a time, not a wait."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asks to wait, whatever for."""
    if _NUMBER.fullmatch(value := headers.get("retry-after-ms", "").strip()):
        return _bounded(float(value) / 1000)
    value = headers.get("retry-after", "").strip()
    seconds = float(value) if _NUMBER.fullmatch(value) else outgoing.retry_after(value)
    return None if seconds is None else _bounded(seconds)


def wait_of(headers: Mapping[str, str]) -> float | None:
    """Seconds until a call that was one too many may succeed, or None if the headers do not say so."""
    asked = retry_after(headers)
    if asked is not None:
        return asked
    resets = {what: read(headers.get(f"x-ratelimit-reset-{what}", "")) for what in _WHAT}
    known = {what: seconds for what, seconds in resets.items() if seconds is not None}
    used_up = [seconds for what, seconds in known.items() if _left(headers, what) == 0]
    return max(used_up or known.values(), default=None) or read(headers.get("x-ratelimit-reset", ""))


def calls_left(headers: Mapping[str, str]) -> tuple[int | None, float | None]:
    """How many more calls the endpoint takes, and in how many seconds it takes all of them again."""
    return _left(headers, "requests"), read(headers.get("x-ratelimit-reset-requests", ""))


def read(value: str) -> float | None:
    """Seconds from `6m0s`, `120ms`, `1.5`, a time in seconds since 1970 or in ISO 8601; None if it is none of these."""
    value = value.strip()
    if not value:
        return None
    if _NUMBER.fullmatch(value):
        number = float(value)
        return _bounded(number - time.time() if number >= _SINCE_1970 else number)
    if found := _DURATION.fullmatch(value):
        return _bounded(sum(float(part) * _UNITS[unit] for unit, part in found.groupdict().items() if part))
    try:
        moment = datetime.datetime.fromisoformat(value)
        return _bounded(moment.timestamp() - time.time()) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _left(headers: Mapping[str, str], what: str) -> int | None:
    value = headers.get(f"x-ratelimit-remaining-{what}", "").strip()
    return int(value) if re.fullmatch(r"[0-9]{1,12}", value) else None


def _bounded(seconds: float) -> float:
    return min(max(seconds, SHORTEST), LONGEST)
