"""The floor: the least a Python engine must do to run jobs of tasks durably, with group commit.

One process, one event loop, one writer. Each task has a row (inserted, claimed, completed) and three event rows of
about 300 bytes. A task starts only after its claim is committed; a dependant becomes ready only in the transaction that
records its last dependency as done; a submit returns only after its commit. Everything that arrives while one
transaction is being written goes into the next. Left out: leases, retries, timers, priorities, policies, checks, API.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from bench.shapes import Shape

CLAIM = 1000
PADDING = "x" * 200


def event(kind: str, **attributes: Any) -> str:
    """The body of an event row."""
    return json.dumps({"type": kind, "at": time.time(), "attributes": attributes, "padding": PADDING})


async def noop(task: int) -> dict[str, int]:
    """What every task does."""
    return {"i": task}


@dataclass
class Batch:
    """The rows of one transaction, by column."""

    jobs: list[int] = field(default_factory=list)
    job_tasks: list[int] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)
    task_jobs: list[int] = field(default_factory=list)
    task_waits: list[int] = field(default_factory=list)
    task_events: list[str] = field(default_factory=list)
    ups: list[int] = field(default_factory=list)
    downs: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    done_jobs: list[int] = field(default_factory=list)
    done_results: list[str] = field(default_factory=list)
    done_events: list[str] = field(default_factory=list)

    def add_job(self, job: int, first_task: int, shape: Shape) -> None:
        waits = Counter(down for _, down in shape.edges)
        self.jobs.append(job)
        self.job_tasks.append(shape.tasks)
        self.tasks += range(first_task, first_task + shape.tasks)
        self.task_jobs += [job] * shape.tasks
        self.task_waits += [waits.get(index, 0) for index in range(shape.tasks)]
        self.task_events += [event("task.scheduled", name="noop") for _ in range(shape.tasks)]
        self.ups += [first_task + up for up, _ in shape.edges]
        self.downs += [first_task + down for _, down in shape.edges]

    def add_done(self, task: int, job: int, result: dict[str, int]) -> None:
        self.done.append(task)
        self.done_jobs.append(job)
        self.done_results.append(json.dumps(result))
        self.done_events.append(event("task.completed", result=result))


@dataclass
class Written:
    """What a committed transaction brought: jobs that ended, and (task, job) pairs claimed to be run now."""

    ended: list[int]
    claimed: list[tuple[int, int]]


class Floor(ABC):
    """The loop common to both databases; `write` is one transaction."""

    def __init__(self) -> None:
        self._next_job = self._next_task = 1
        self._batch = Batch()
        self._stored: list[asyncio.Future[None]] = []
        self._ended: dict[int, asyncio.Future[None]] = {}
        self._wake = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def write(self, batch: Batch) -> Written: ...

    @abstractmethod
    async def close(self) -> None: ...

    async def __aenter__(self) -> Floor:
        await self.open()
        self._loop = asyncio.create_task(self._write_batches())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._loop.cancel()
        await asyncio.gather(self._loop, return_exceptions=True)
        await self.close()

    def prepare(self, shape: Shape) -> Shape:
        return shape

    async def run(self, job: Shape) -> None:
        """Submit a job, and wait for its end."""
        await (await self._submit(job))

    async def _submit(self, shape: Shape) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        stored, ended = loop.create_future(), loop.create_future()
        self._batch.add_job(self._next_job, self._next_task, shape)
        self._stored.append(stored)
        self._ended[self._next_job] = ended
        self._next_job += 1
        self._next_task += shape.tasks
        self._wake.set()
        await stored
        return ended

    async def _run_task(self, task: int, job: int) -> None:
        self._batch.add_done(task, job, await noop(task))
        self._wake.set()

    async def _write_batches(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(0)  # let what is about to finish join this batch
            self._wake.clear()
            batch, self._batch = self._batch, Batch()
            stored, self._stored = self._stored, []
            try:
                written = await self.write(batch)
            except Exception as error:
                for future in (*stored, *self._ended.values()):
                    future.set_exception(error)
                raise
            for future in stored:
                future.set_result(None)
            for job in written.ended:
                self._ended.pop(job).set_result(None)
            for task, job in written.claimed:
                running = asyncio.create_task(self._run_task(task, job))
                self._running.add(running)
                running.add_done_callback(self._running.discard)
            if len(written.claimed) == CLAIM:
                self._wake.set()
