"""How a function is left while it waits durably, however it is written.

The function is left by an exception that passes through its code, so code that swallows exceptions could go on as if
the wait were over. It cannot get anything recorded then: from the moment at which it was decided that the function is
left, nothing more begins in it, and the worker reports the wait, whatever the function returns or raises.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any, NoReturn

import msgspec

from ostinato import errors, races
from ostinato.core import commands

TURNS = 10
"""How often the event loop goes round before a function is left in which another task waits: others of its tasks may
come to something that they can go on with."""
UNDER_WAY_SECONDS = 0.005
"""How often to look whether the steps under way have ended."""
MOST_REFUSALS = 10
"""How often a function may swallow that it is left before it gets no further answer."""

LEFT_OPEN = (
    "the function returned while a task that it had started was still in ctx.sleep, ctx.wait_for or ctx.approve: "
    "await that task, or cancel it, before returning"
)

Command = commands.Suspend | commands.FinishItem
log = logging.getLogger("ostinato")
enclosing: contextvars.ContextVar[tuple[object, ...]] = contextvars.ContextVar("ostinato_enclosing", default=())
"""What is under way around the code that runs: the steps that it is part of."""


class UnderWay:
    """Something is under way inside that is waited for before the function is left."""

    __slots__ = ("_all", "_before")

    def __init__(self, everything: set[object]) -> None:
        self._all = everything

    def __enter__(self) -> None:
        self._all.add(self)
        self._before = enclosing.set((*enclosing.get(), self))

    def __exit__(self, *_: object) -> None:
        self._all.discard(self)
        enclosing.reset(self._before)


class Suspended(BaseException):
    """The function is to be left now and entered again later. Let it pass: do not catch BaseException in a function."""

    def __init__(self, command: Command) -> None:
        super().__init__("the engine has taken over from here; let this exception pass through your code")
        self.command = command


class _Wait(msgspec.Struct, eq=False):
    command: Command
    task: asyncio.Task[Any] | None
    """The task of the function that waits, if it is not the one in which the function itself runs."""
    due_known: bool
    inside: tuple[object, ...]
    """The steps that the wait is part of."""


class Suspension:
    """What an attempt waits for, and whether it was decided that it is left for that."""

    def __init__(
        self,
        home: asyncio.Task[Any] | None,
        coroutine: Any,
        under_way: Collection[object],
        keep_due: Callable[[commands.Suspend], Awaitable[None]],
    ) -> None:
        self._home = home
        """The task in which the function runs; None if it runs in a thread."""
        self._coroutine = coroutine
        self._under_way = under_way
        self._keep_due = keep_due
        self._waits: list[_Wait] = []
        self._parked: set[asyncio.Task[Any]] = set()
        self._leaving: asyncio.Task[None] | None = None
        self._deciding = asyncio.Lock()
        self._limit: str | None = None
        self._refusals = 0
        self.command: Command | None = None
        """With what the function is left, once that is decided."""
        self.refusal: errors.TerminalError | None = None
        """Why it fails instead."""
        self.abandoned = False
        """It does not let itself be left, and is not to be waited for."""

    @property
    def decided(self) -> bool:
        return self.command is not None or self.refusal is not None

    @property
    def left_open(self) -> bool:
        """A task of the function waits, and nothing was decided about that."""
        return any(wait.task is not None and not wait.task.cancelling() for wait in self._waits)

    async def wait(self, command: Command, *, due_known: bool = False) -> NoReturn:
        """Have the function left for this."""
        if self.decided:
            await self.refuse()
        task = self._inner_task()
        wait = _Wait(command, task, due_known, enclosing.get())
        self._waits.append(wait)
        if task is None:
            await self._settle()
            await self.decide()
            raise self._exception()
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._leave(), name="ostinato-leave")
        try:
            await self._park(task)
        finally:  # whoever raced it with something else does not wait for it any more
            if not self.decided:
                self._waits.remove(wait)
        raise AssertionError  # nothing ends the wait but a cancellation

    async def refuse(self) -> NoReturn:
        """The function was left, and yet goes on: nothing more is done for it."""
        task = self._inner_task()
        if task is None:
            self._refusals += 1
            if self._refusals < MOST_REFUSALS:
                await asyncio.sleep(0)
                raise self._exception()
            self.abandoned = True
        await self._park(task)
        raise AssertionError

    async def decide(self) -> None:
        """Leave the function for what comes first: its end, what others have to do, or the shortest sleep. When a
        sleep or a timeout that began at the same time is over is kept."""
        async with self._deciding:
            if not self.decided and self._waits:
                await self._decide()

    async def _decide(self) -> None:
        if self._limit is not None:
            self.refusal = errors.TerminalError(
                f"{self._limit} cannot limit a durable wait, for it is forgotten while the function waits: write "
                "`ctx.wait_for(name, timeout=seconds)` or `ctx.approve(title, deadline=seconds)`; to wait for several "
                "things at once use asyncio.gather or a TaskGroup"
            )
            return
        chosen = min(self._waits, key=_order)
        self.command = chosen.command
        for wait in self._waits:
            command = wait.command
            if wait is not chosen and not wait.due_known and isinstance(command, commands.Suspend):
                await self._keep_due(command)

    def close(self) -> None:
        """The function has ended. What it leaves behind ends too."""
        if self._leaving is not None:
            self._leaving.cancel()
        for task in self._parked:
            task.cancel()

    # --- how a function is left --------------------------------------------------------------------------------

    def _inner_task(self) -> asyncio.Task[Any] | None:
        """The task that runs now, if it is one of the function's own making."""
        if self._home is None:
            return None
        task = asyncio.current_task()
        return None if task is self._home else task

    def _exception(self) -> BaseException:
        if self.refusal is not None:
            return self.refusal
        if self.command is None:
            raise AssertionError("nothing was decided")
        return Suspended(self.command)

    async def _park(self, task: asyncio.Task[Any] | None) -> None:
        if task is not None:
            self._parked.add(task)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            if task is not None:
                self._parked.discard(task)

    async def _settle(self) -> None:
        """Let what is under way be recorded, rather than have it done twice."""
        asyncio.get_running_loop().call_soon(self._look)
        await asyncio.sleep(0)
        while self._limit is None and self._is_busy():
            await asyncio.sleep(UNDER_WAY_SECONDS)

    def _is_busy(self) -> bool:
        """Whether something is under way that does not wait itself."""
        waiting = {step for wait in self._waits for step in wait.inside}
        return any(step not in waiting for step in self._under_way)

    async def _leave(self) -> None:
        """Leave the function once nothing goes on in it but waits of its tasks."""
        turns = 0
        await asyncio.sleep(0)
        self._look()
        while turns < TURNS and self._limit is None:
            turns += 1
            if self._is_busy():
                await asyncio.sleep(UNDER_WAY_SECONDS)
                turns = 0
            await asyncio.sleep(0)
        if not self._waits:  # they were given up
            self._leaving = None
            return
        self._look()
        with contextlib.suppress(errors.OstinatoError):  # what could not be kept only takes longer
            await self.decide()
        if self._home is not None:
            self._home.cancel()

    def _look(self) -> None:
        """Find out what limits the waits, which only shows while the function itself does not run."""
        if self._home is None:
            return
        self._limit = races.limit_of(self._coroutine)
        for wait in self._waits:
            if self._limit is None and wait.task is not None:
                self._limit = races.limit_of(wait.task.get_coro(), wait.task)


def _order(wait: _Wait) -> tuple[int, float]:
    command = wait.command
    if not isinstance(command, commands.Suspend):
        return 0, 0.0
    if command.kind != "sleep":
        return 1, 0.0
    return 2, command.seconds or 0.0
