"""How many calls may be under way with one key of an endpoint, and from when on. Arithmetic: the time is given.

It works as TCP does. The window of calls grows by one with every answer, so it doubles in the time of a call; a refusal
for too many calls lets nothing start until the endpoint said it may, then begins with one call again, and from half of
the window that was too large it grows more slowly. Where the endpoint tells how many calls are left, no more are made.
"""

from __future__ import annotations

FIRST_WINDOW = 4.0
LARGEST_WINDOW = 256.0
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""In seconds, when the endpoint does not say how long to wait, or only when all of its limit is renewed."""


class Throttle:
    def __init__(self) -> None:
        self.window = FIRST_WINDOW
        self.under_way = 0
        self.paused_until = 0.0
        self._threshold = LARGEST_WINDOW
        self._slowed_at = float("-inf")
        self._refusals = 0
        self._left: int | None = None
        self._left_until = 0.0

    def may_start_at(self, now: float) -> float | None:
        """When the next call may start: now, later, or None for when one of those under way has ended."""
        opens = self.opens_at(now)
        if opens > now:
            return opens
        return now if self.under_way < int(self.window) else None

    def opens_at(self, now: float) -> float:
        """From when on calls are let through at all."""
        return max(now, self.paused_until, self._left_until if self._left == 0 else now)

    def start(self, now: float) -> None:
        self.under_way += 1
        if self._left is not None:
            if now >= self._left_until:
                self._renew()
            else:
                self._left -= 1

    def end(self) -> None:
        """A call has ended, in whatever way."""
        self.under_way -= 1

    def answered(self, now: float, left: int | None = None, renewed_in: float | None = None) -> None:
        """A call had an answer. The endpoint may have said how many calls it takes until its limit is renewed."""
        self._refusals = 0
        if now >= self.paused_until:
            step = 1.0 if self.window < self._threshold else 1.0 / self.window
            self.window = min(self.window + step, LARGEST_WINDOW)
        if left is None or renewed_in is None:
            return
        # Those under way may not have been counted yet. Nobody is kept waiting if there is none to tell more.
        self._left = max(left - (self.under_way - 1), 0)
        self._left_until = now + min(renewed_in, LONGEST_PAUSE)

    def refused(self, now: float, started: float, wait: float | None = None) -> float:
        """A call was one too many. How long nothing starts from now on, in seconds."""
        if started >= self._slowed_at:
            # Those that started before the last refusal belong to the same burst, which is punished once.
            self._threshold = max(self.window / 2, 1.0)
            self._slowed_at = now
            self._refusals += 1
        self.window = 1.0
        if wait is None:
            wait = min(FIRST_PAUSE * 2.0 ** min(max(self._refusals - 1, 0), 10), LONGEST_PAUSE)
        self.paused_until = max(self.paused_until, now + wait)
        return self.paused_until - now

    def _renew(self) -> None:
        """The limit is a new one. If the old one was used up, the first call tells how many may follow it."""
        if self._left == 0:
            self._threshold, self.window = self.window, 1.0
        self._left = None

    def is_idle(self, now: float) -> bool:
        """Whether forgetting it loses little: what it learned is soon learned again."""
        return self.under_way == 0 and self.opens_at(now) <= now
