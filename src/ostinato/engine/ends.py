"""Who waits for the ends of jobs, and how they hear of them: from this process at once, from others when it looks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostinato import errors, views
from ostinato.core import codec, documents, retry, states
from ostinato.engine import awaiting
from ostinato.store import store

LOOK_SECONDS = 1.0
"""How long it may take to ask the database whether a job has ended, also if there is less time to wait for that: by so
much may a wait be longer than it should."""
LATELY = 10_000
"""How many ends are remembered."""
FEW = 20
"""The outputs of a job with no more tasks than this are read on the spot."""


class _Ended(msgspec.Struct):
    """How a job ended that was heard of lately; the number tells two ends of one job apart."""

    number: int
    state: str
    tasks: int | None
    outputs: Mapping[str, bytes] | None


class Ends:
    """The ends of the jobs of one tenant."""

    def __init__(self, target: store.Store, tenant: str) -> None:
        self._store = target
        self._tenant = tenant
        self._waiters: dict[str, list[asyncio.Future[None]]] = {}
        self._lately: dict[str, _Ended] = {}
        self._heard = 0
        self.looks = 0
        """How often it was looked what other processes did: who waits since before the last look has missed nothing."""
        self._unsure: set[str] = set()
        """Jobs that somebody has begun to wait for, and that may have ended elsewhere before."""
        self._asking: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Nobody will hear of anything any more."""
        for waiting in self._waiters.values():
            for future in waiting:
                if not future.done():
                    future.set_exception(errors.NotRunning())

    async def look(self) -> None:
        """Find out which jobs that somebody waits for have ended elsewhere."""
        self.looks += 1
        if self._waiters:
            await self._find_out(list(self._waiters))

    def tell(
        self, job_id: str, state: str, tasks: int | None = None, outputs: Mapping[str, bytes] | None = None
    ) -> None:
        self._heard += 1
        if job_id not in self._waiters:
            outputs = None  # nobody asks for them now, and they would only take up room
        self._lately[job_id] = _Ended(self._heard, state, tasks, outputs)
        if len(self._lately) > LATELY:
            del self._lately[next(iter(self._lately))]
        for future in self._waiters.pop(job_id, ()):
            if not future.done():
                future.set_result(None)

    async def outputs(
        self, job_id: str, timeout: float | None, *, submitted_at_look: int | None = None
    ) -> dict[str, Any]:
        """The outputs of a job once it has completed, here or anywhere; JobFailed if it ended otherwise.

        For a job that was just submitted here it is enough to hear what ends here: the watcher looks after the rest.
        A function that waits here gives its slot back until then.
        """
        function = awaiting.here()
        if function is None:
            return await self._outputs(job_id, timeout, submitted_at_look)
        async with awaiting.without_slot(function, job_id):
            return await self._outputs(job_id, timeout, submitted_at_look)

    async def _outputs(self, job_id: str, timeout: float | None, submitted_at_look: int | None) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + _check_timeout(timeout)
        look: asyncio.Timeout | None = None
        try:
            state = None
            if submitted_at_look is not None:
                if submitted_at_look != self.looks:
                    self._ask_soon(job_id)
                with contextlib.suppress(TimeoutError):  # the database has the last word
                    state = await self._hear(job_id, until)
                if state == states.COMPLETED and (outputs := self._heard_outputs(job_id)) is not None:
                    return outputs
            last = None if until is None else max(until, loop.time()) + LOOK_SECONDS
            async with asyncio.timeout_at(last) as look:
                return await self._read_outputs(job_id, state, until)
        except TimeoutError:
            said = f"job {job_id!r} did not end within {timeout:g} s; it goes on running"
            if look is not None and look.expired():
                said = f"the database did not say within {timeout:g} s whether job {job_id!r} has ended; ask again"
            raise errors.ResultTimeout(said, jobId=job_id) from None

    async def _read_outputs(self, job_id: str, state: str | None, until: float | None) -> dict[str, Any]:
        """The outputs of a job whose end was heard of, or is still to come: TimeoutError if it does not until then."""
        while state != states.COMPLETED:
            heard = self._lately.get(job_id)
            job = await self._store.job(self._tenant, job_id)
            if job.state == states.COMPLETED:
                break
            if job.state in states.JOB_ENDED:
                raise views.job_error(job, await self._store.failures(self._tenant, job_id))
            if self._lately.get(job_id) == heard:
                self._lately.pop(job_id, None)  # it was resumed since then
            state = await self._hear(job_id, until)
        if (outputs := self._heard_outputs(job_id)) is not None:
            return outputs
        ended = self._lately.get(job_id)
        few = ended is not None and ended.tasks is not None and ended.tasks <= FEW
        return await self._store.outputs(self._tenant, job_id, few=few)

    def _heard_outputs(self, job_id: str) -> dict[str, Any] | None:
        ended = self._lately.get(job_id)
        if ended is None or ended.outputs is None:
            return None
        outputs, ended.outputs = ended.outputs, None  # whoever else asks for them reads them
        return {task_id: codec.decode(output) for task_id, output in outputs.items()}

    async def _hear(self, job_id: str, until: float | None) -> str:
        """How the job ended, once somebody says that it has. TimeoutError if nobody does until then."""
        if job_id not in self._lately:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            self._waiters.setdefault(job_id, []).append(future)
            limit = None if until is None else loop.call_at(until, _give_up, future)
            try:
                await future
            finally:
                if limit is not None:
                    limit.cancel()
                waiting = self._waiters.get(job_id)
                if waiting is not None and future in waiting:
                    waiting.remove(future)
                    if not waiting:
                        del self._waiters[job_id]
        return self._lately[job_id].state if job_id in self._lately else ""

    def forget(self, job_id: str) -> None:
        """A job with this id is about to be submitted. If there was one before, its end is not that of this one."""
        self._lately.pop(job_id, None)

    def _ask_soon(self, job_id: str) -> None:
        """Find out whether a job has ended already: in one question for all that are asked about meanwhile."""
        if job_id not in self._lately:
            self._unsure.add(job_id)
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._ask(), name="ostinato-ask")

    async def _ask(self) -> None:
        while self._unsure:
            asked = list(self._unsure)
            self._unsure.clear()
            with contextlib.suppress(errors.OstinatoError):  # the watcher asks again
                await self._find_out(asked)

    def ask_no_more(self) -> None:
        if self._asking is not None:
            self._asking.cancel()

    async def _find_out(self, job_ids: Sequence[str]) -> None:
        for job_id, state in (await self._store.states(self._tenant, job_ids)).items():
            if state in states.JOB_ENDED:
                self.tell(job_id, state)


def _check_timeout(timeout: object) -> float:
    """Seconds to wait. NaN comes neither before nor after other times: it would bring the timers of the event loop out
    of their order, and some of them would never fire."""
    if not isinstance(timeout, (int, float)) or timeout != timeout:
        raise errors.InvalidInput(
            f"timeout must be a number of seconds or None, not {documents.short(timeout)}", field="timeout"
        )
    return min(timeout, retry.LONGEST)


def _give_up(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())
