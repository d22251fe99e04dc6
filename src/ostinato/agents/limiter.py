"""One line of waiting calls for each key of an endpoint: a refusal for too many calls slows all who use the key.

A limiter belongs to one event loop. Servers beside it learn of the limit by their own refusals.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import hashlib
import time
import weakref
from collections.abc import AsyncGenerator, Callable

from ostinato import errors
from ostinato.agents import throttle

MOST_LINES = 1024
MOST_WAITING = 10_000
"""In one line."""
SHORTEST_WAIT = 1.0
"""Seconds after which to come again when there was no turn in time."""


class Limiter:
    """Hands out turns, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._lines: collections.OrderedDict[tuple[str, str], _Line] = collections.OrderedDict()

    def __len__(self) -> int:
        return len(self._lines)

    @contextlib.asynccontextmanager
    async def turn(self, base_url: str, key: str, *, within: float) -> AsyncGenerator[Turn]:
        """Wait for a turn, at most `within` seconds; RetryAfter if there is none, at once if that is known before."""
        line = self._line(base_url, key)
        await line.wait(within)
        turn = Turn(line.throttle, line.clock)
        try:
            yield turn
        finally:
            line.throttle.end()
            line.go_on()

    def _line(self, base_url: str, key: str) -> _Line:
        # The key itself is not kept. Its hash cannot be turned back: keys are long and random.
        name = (base_url, hashlib.sha256(key.encode()).hexdigest())
        line = self._lines.get(name)
        if line is None:
            self._forget_some()
            line = self._lines[name] = _Line(time.monotonic)
        self._lines.move_to_end(name)
        return line

    def _forget_some(self) -> None:
        """Of the lines that nobody stands in, those that were not used for the longest time."""
        if len(self._lines) < MOST_LINES:
            return
        idle = [name for name, line in self._lines.items() if line.is_idle()]
        for name in idle[: max(MOST_LINES // 8, len(self._lines) - MOST_LINES + 1)]:
            del self._lines[name]


# Nothing in a limiter may hold on to its loop, or neither would ever go.
_limiters: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Limiter] = weakref.WeakKeyDictionary()


def shared() -> Limiter:
    """The one of this process, whoever calls: a key that several tenants or workers use is one key to its endpoint."""
    return _limiters.setdefault(asyncio.get_running_loop(), Limiter())


class Turn:
    """One call that may be made. It is told how the call went."""

    def __init__(self, throttle_: throttle.Throttle, clock: Callable[[], float]) -> None:
        self._throttle = throttle_
        self._clock = clock
        self._started = clock()

    def answered(self, left: int | None = None, renewed_in: float | None = None) -> None:
        self._throttle.answered(self._clock(), left, renewed_in)

    def refused(self, wait: float | None) -> float:
        """Too many calls. How many seconds to wait; `wait` is what the endpoint said, if it did."""
        return self._throttle.refused(self._clock(), self._started, wait)


class _Line:
    def __init__(self, clock: Callable[[], float]) -> None:
        self.throttle = throttle.Throttle()
        self.clock = clock
        self._waiting: collections.deque[asyncio.Future[None]] = collections.deque()
        self._alarm: asyncio.TimerHandle | None = None

    def is_idle(self) -> bool:
        return not self._waiting and self.throttle.is_idle(self.clock())

    async def wait(self, within: float) -> None:
        """Until it is one's turn, which has then started."""
        now = self.clock()
        paused = self.throttle.opens_at(now) - now
        if paused > within:
            raise errors.RetryAfter(paused, f"the endpoint takes no calls with this key for another {paused:.1f} s")
        if len(self._waiting) >= MOST_WAITING:
            raise errors.RetryAfter(SHORTEST_WAIT, f"{MOST_WAITING:,} calls are waiting for this key already")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self.go_on()
        try:
            async with asyncio.timeout(within):
                await turn
        except BaseException as error:
            self._leave(turn)
            if not isinstance(error, TimeoutError):
                raise
            now = self.clock()
            wait = max(self.throttle.opens_at(now) - now, SHORTEST_WAIT)
            raise errors.RetryAfter(wait, f"too many calls with this key: it had no turn within {within:g} s") from None

    def go_on(self) -> None:
        """Let those go whose turn it is."""
        while self._waiting:
            now = self.clock()
            at = self.throttle.may_start_at(now)
            if at is None:
                return  # the end of a call goes on
            if at > now:
                self._wake_in(at - now)
                return
            turn = self._waiting.popleft()
            if not turn.done():
                self.throttle.start(now)
                turn.set_result(None)

    def _leave(self, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            self.throttle.end()  # it was given a turn in the very moment in which it gave up
            self.go_on()
            return
        turn.cancel()
        with contextlib.suppress(ValueError):
            self._waiting.remove(turn)

    def _wake_in(self, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        self.go_on()
