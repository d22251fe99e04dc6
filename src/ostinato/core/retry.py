"""Retry arithmetic. Randomness comes in as an argument, so that the delay can be stored and replayed."""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec

from ostinato import errors
from ostinato.core import documents

LONGEST = 1e10
"""Seconds; some 300 years."""
MOST_ATTEMPTS = 1_000_000


def said(**facts: Any) -> msgspec.Meta:
    """A bound as OpenAPI tells it. It is not checked while reading: our own checks say better what is wrong."""
    return msgspec.Meta(extra_json_schema=facts)


LONGEST_DELAY = 3600.0
"""Seconds that a retry waits at most, unless the policy says otherwise or begins with more."""


def _unsaid() -> Any:
    return None


class Retry(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How often and how soon a task is tried again. `max_attempts` counts all attempts, the first one included.

    The n-th retry waits `base_delay * multiplier ** (n - 1)` seconds, at most `max_delay`: if that is not said, 3600
    or `base_delay`, whichever is longer. `jitter` is the share of the
    delay that is drawn at random: 0 waits exactly that long, 1 anything from nothing to that long.
    """

    max_attempts: Annotated[int, said(minimum=1, maximum=MOST_ATTEMPTS)] = 3
    base_delay: Annotated[float, said(minimum=0, exclusiveMaximum=LONGEST)] = 1.0
    multiplier: Annotated[float, said(minimum=1)] = 2.0
    max_delay: Annotated[float, said(minimum=0, exclusiveMaximum=LONGEST)] = msgspec.field(default_factory=_unsaid)
    jitter: Annotated[float, said(minimum=0, maximum=1)] = 0.0

    def __post_init__(self) -> None:
        _require(type(self.max_attempts) is int, "maxAttempts", "a whole number", self.max_attempts)
        for field, value in (
            ("baseDelay", self.base_delay),
            ("multiplier", self.multiplier),
            ("jitter", self.jitter),
        ):
            _require(type(value) in (int, float), field, "a number", value)
        if self.max_delay is None:  # pyright: ignore[reportUnnecessaryComparison] - it was not said
            msgspec.structs.force_setattr(self, "max_delay", max(LONGEST_DELAY, self.base_delay))
        _require(type(self.max_delay) in (int, float), "maxDelay", "a number", self.max_delay)
        _require(1 <= self.max_attempts <= MOST_ATTEMPTS, "maxAttempts", f"1 to {MOST_ATTEMPTS:,}", self.max_attempts)
        _require(0 <= self.base_delay < LONGEST, "baseDelay", "0 or more seconds", self.base_delay)
        _require(1 <= self.multiplier < math.inf, "multiplier", "at least 1", self.multiplier)
        _require(0 <= self.max_delay < LONGEST, "maxDelay", "0 or more seconds", self.max_delay)
        _require(0 <= self.jitter <= 1, "jitter", "between 0 and 1", self.jitter)

    def delay(self, attempt: int, draw: float = 0.0) -> float:
        """Seconds to wait after the failed `attempt` (1, 2, …); `draw` is a random number from 0 to 1."""
        exponent = min(attempt - 1, 1024)
        try:
            full = min(self.base_delay * self.multiplier**exponent, self.max_delay)
        except OverflowError:
            full = self.max_delay if self.base_delay else 0.0
        return full * (1 - self.jitter * draw)


def _require(holds: bool, field: str, wanted: str, got: object) -> None:
    if not holds:
        raise errors.InvalidInput(f"retry.{field} must be {wanted}, not {documents.short(got)}", field=field)


NO_RETRY = Retry(max_attempts=1)


def read(document: dict[str, object]) -> Retry:
    """A policy as stored with a task."""
    return msgspec.convert(document, Retry)
