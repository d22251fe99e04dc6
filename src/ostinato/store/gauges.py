"""How much waits: cheap enough to be asked every few seconds, however many jobs have ended."""

from __future__ import annotations

from typing import NamedTuple

from ostinato.core import graph
from ostinato.store import database, facts
from ostinato.store.database import fetch

SAMPLED_JOBS = 500
SAMPLED_TASKS = 20_000
"""Numbers about functions are of the newest jobs, and of no more tasks than this, however many there are."""


class QueueDepth(NamedTuple):
    queue: str
    name: str
    ready: int
    oldest_ready_at: int
    served: bool
    """Whether a live worker has the function and serves the queue. The engine itself serves its own queue."""


class Depth(NamedTuple):
    queues: list[QueueDepth]
    dead_letters: int
    approvals: int
    oldest_approval_at: int | None
    awaiting: int
    """Functions that wait for the results of other jobs."""


class Waiting(NamedTuple):
    """Tasks that wait for the same kind of thing, such as `retry`; `next_due_at` is null if only others can end it."""

    kind: str
    tasks: int
    next_due_at: int | None


class FunctionNumbers(NamedTuple):
    """How the tasks of a function went. Seconds are those of the last attempt, from claim to end, on average."""

    name: str
    completed: int
    failed: int
    retried: int
    seconds: float


class Gauges:
    db: database.Database

    async def waiting(self, tenant: str) -> Depth:
        """What is ready and not yet claimed, by queue and function, and how many dead letters and approvals."""

        def script() -> database.Script[Depth]:
            queues = yield from depths(tenant, self.db.now())
            letters = yield fetch("count_dead_letters", tenant=tenant)
            asked, since = (yield fetch("count_waiting_approvals", tenant=tenant))[0]
            workers = yield from facts.workers_of(tenant, self.db.now())
            awaiting = sum(worker.awaiting for worker in workers if worker.alive)
            return Depth(queues, int(letters[0][0]), int(asked), since, awaiting)

        return await self.db.read(script, long=True)

    async def timers(self, tenant: str) -> list[Waiting]:
        """What tasks wait for, by kind."""

        def script() -> database.Script[list[Waiting]]:
            found = yield fetch("count_timers", tenant=tenant)
            return [Waiting(kind, int(count), due_at) for kind, count, due_at in found]

        return await self.db.read(script, snapshot=False, long=True)

    async def function_numbers(self, tenant: str, since: int) -> list[FunctionNumbers]:
        """How the newest jobs since then went, by function: a sample of bounded size."""

        def script() -> database.Script[list[FunctionNumbers]]:
            jobs = yield fetch("list_newest_jobs", tenant=tenant, since=since, most=SAMPLED_JOBS)
            sample: list[str] = []
            tasks = 0
            for job_id, total in jobs:
                tasks += total
                if sample and tasks > SAMPLED_TASKS:
                    break
                sample.append(job_id)
            found = yield fetch("count_outcomes", tenant=tenant, job_ids=sample)
            return [FunctionNumbers(n, int(c), int(f), int(r), float(us or 0) / 1e6) for n, c, f, r, us in found]

        return await self.db.read(script, long=True)


def depths(tenant: str, now: int) -> database.Script[list[QueueDepth]]:
    """What is ready and not yet claimed, by queue and function, and whether a worker is there to take it."""
    work = yield fetch("count_ready", tenant=tenant)
    workers = (yield from facts.workers_of(tenant, now)) if work else []
    return [
        QueueDepth(q, n, int(count), oldest, q == graph.SYSTEM_QUEUE or any(w.serves(n, q) for w in workers))
        for q, n, count, oldest in work
    ]
