"""Functions that wait for the end of another job hold no slot meanwhile: that job may need it."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import Any

import msgspec

from ostinato import errors, logs
from ostinato.core import rows

Place = tuple[str, str, str]
"""Token, job and task: one may be claimed again here while the function of an earlier lease is still being stopped."""
LISTED = 100
"""So many of them a worker tells of by name."""

log = logging.getLogger("ostinato")


class Slots:
    """Who has given back a slot of a worker, and who wants one again. All of it happens in the worker's event loop."""

    def __init__(self, slots: int, most: int, running: Mapping[Place, object], freed: Callable[[], None]) -> None:
        self._slots = slots
        self._most = most
        self._running = running
        self._freed = freed
        """Told when a slot has become free."""
        self._jobs: dict[Place, list[str]] = {}
        """By function that has given its slot back, the jobs that it waits for."""
        self.returning: collections.OrderedDict[Place, asyncio.Future[None]] = collections.OrderedDict()
        """Functions whose job has ended, and that go on as soon as there is a slot."""
        self._warned = False
        self.without = 0
        """Functions that run without a slot: they wait for a job, or for a slot after that."""

    @property
    def taken(self) -> int:
        return len(self._running) - self.without

    def told(self) -> dict[str, object]:
        """What a worker says of it: how many, and of some of them which job they wait for."""
        if not self._jobs:
            return {}
        listed = list(self._jobs.items())[:LISTED]
        return {
            "awaiting": len(self._jobs),
            "awaitingJobs": [[job_id, task_id, jobs[0]] for (_, job_id, task_id), jobs in listed],
        }

    def give(self, place: Place, job_id: str) -> None:
        """A function begins to wait for a job. It has no slot as long as it waits for any."""
        jobs = self._jobs.get(place)
        if jobs is None:
            if place not in self._running:
                return  # it has left a task behind
            if len(self._jobs) >= self._most:
                raise errors.NotPossible(
                    f"{self._most:,} functions of this worker wait for the results of other jobs, and no more may: "
                    "raise EngineOptions(max_awaiting=…), start more workers, or let tasks depend on each other "
                    "(ctx.add_tasks) instead of waiting for a result"
                )
            jobs = self._jobs[place] = []
            if self.returning.pop(place, None) is None:
                self.without += 1
            self._freed()
        jobs.append(job_id)
        self._warn()

    async def take(self, place: Place, job_id: str, *, patient: bool) -> None:
        """It goes on, once there is a slot; at once if it is not patient."""
        jobs = self._jobs.get(place)
        if jobs is None:
            return  # it ended meanwhile
        jobs.remove(job_id)
        if jobs:
            return
        del self._jobs[place]
        if patient and self.taken >= self._slots:
            turn = self.returning[place] = asyncio.get_running_loop().create_future()
            try:
                await turn
            except asyncio.CancelledError:
                if self.returning.pop(place, None) is not None:
                    self.without -= 1
                raise
        else:
            self.without -= 1

    def forget(self, place: Place) -> None:
        """The function has ended."""
        if self._jobs.pop(place, None) is not None or self.returning.pop(place, None) is not None:
            self.without -= 1

    def serve(self) -> None:
        """Slots are free: those that want theirs back come before what is new."""
        while self.returning and self.taken < self._slots:
            _, turn = self.returning.popitem(last=False)
            self.without -= 1
            if not turn.done():
                turn.set_result(None)

    def _warn(self) -> None:
        if len(self._jobs) < self._slots:
            self._warned = False
        elif not self._warned:
            self._warned = True
            log.warning(
                "%d functions of this worker wait for the results of other jobs, as many as it has slots: they have "
                "given their slots back, and keep their memory; up to %d may wait so (max_awaiting)",
                len(self._jobs),
                self._most,
            )


class Running(msgspec.Struct):
    """A running function."""

    lease: rows.Lease
    task: asyncio.Task[None]
    slots: Slots


def here() -> Running | None:
    """The running function that the code belongs to which asks."""
    about = logs.bound()
    return about if isinstance(about, Running) else None


@contextlib.asynccontextmanager
async def without_slot(running: Running, job_id: str) -> AsyncGenerator[None]:
    """A function waits for a job inside. Its slot is given back, and taken again afterwards."""
    lease, slots = running.lease, running.slots
    if job_id == lease.job_id:
        raise errors.TerminalError(
            "a function cannot wait for the end of its own job, which does not end before it: let a task depend on it"
        )
    place = (lease.token, *lease.key)
    home = running.task.get_loop()

    async def give() -> None:
        slots.give(place, job_id)

    await _in_loop(home, give())
    patient = True
    try:
        yield
    except (errors.ResultTimeout, asyncio.CancelledError):
        patient = False  # its time is up
        raise
    finally:
        await _in_loop(home, slots.take(place, job_id, patient=patient))


async def _in_loop(home: asyncio.AbstractEventLoop, call: Coroutine[Any, Any, None]) -> None:
    """A plain function may wait in a loop of its own."""
    if asyncio.get_running_loop() is home:
        await call
    else:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, home))
