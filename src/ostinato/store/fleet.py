"""Workers, functions, due timers, the leases of the dead, and retention."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ostinato.core import codec, rows, states
from ostinato.core import tallies as core_tallies
from ostinato.store import database, executions, tallies
from ostinato.store.database import fetch

PRUNE_TABLES = (
    "blob", "signal", "step", "timer", "dead_letter", "edge", "event_page", "job_tag", "gate_key",
    "approval", "usage", "task", "job",
)  # fmt: skip
PRUNE_TASKS = 50_000
"""Tasks that go in one transaction, but for a larger job alone: nobody else writes to an SQLite file meanwhile."""


class LostLease(NamedTuple):
    """A lease whose worker is gone, or (`timed_out`) whose attempt ran too long without anybody noticing."""

    tenant: str
    job_id: str
    task_id: str
    token: str
    worker: str
    timed_out: bool


class DueTimer(NamedTuple):
    tenant: str
    timer: rows.Timer


class Fleet:
    db: database.Database

    async def register_worker(
        self, tenant: str, worker_id: str, lease_seconds: float, about: Mapping[str, Any], known: Mapping[str, Any]
    ) -> None:
        """A worker starts, and says which functions it `known`s."""

        def script() -> database.Script[None]:
            now = self.db.now()
            yield fetch(
                "register_worker",
                tenant=tenant,
                worker_id=worker_id,
                now=now,
                expires_at=now + int(lease_seconds * 1e6),
                about=codec.encode(about),
            )
            for name, details in sorted(known.items()):
                yield fetch("register_function", tenant=tenant, name=name, now=now, about=codec.encode(details))

        await self.db.write(script)

    async def beat(self, tenant: str, worker_id: str, lease_seconds: float) -> bool:
        """False if the worker was declared dead: then nothing that it runs is its own any more."""

        def script() -> database.Script[bool]:
            expires_at = self.db.now() + int(lease_seconds * 1e6)
            found = yield fetch("beat", tenant=tenant, worker_id=worker_id, expires_at=expires_at)
            return bool(found)

        return await self.db.write(script)

    async def forget_worker(self, tenant: str, worker_id: str) -> bool:
        def script() -> database.Script[bool]:
            return bool((yield fetch("forget_worker", tenant=tenant, worker_id=worker_id)))

        return await self.db.write(script)

    async def forget_dead_worker(self, tenant: str, worker_id: str) -> bool:
        """The same, if it is still dead: it may have started anew since it was found."""

        def script() -> database.Script[bool]:
            return bool((yield fetch("forget_dead_worker", tenant=tenant, worker_id=worker_id, now=self.db.now())))

        return await self.db.write(script)

    async def worker(self, tenant: str, worker_id: str) -> dict[str, Any] | None:
        """What a worker has said of itself; None if nobody knows it, or it was declared dead."""

        def script() -> database.Script[dict[str, Any] | None]:
            found = yield fetch("read_worker", tenant=tenant, worker_id=worker_id)
            return codec.decode(found[0][0]) if found else None

        return await self.db.read(script, snapshot=False)

    async def workers(self, tenant: str) -> list[dict[str, Any]]:
        def script() -> database.Script[list[dict[str, Any]]]:
            found = yield fetch("list_workers", tenant=tenant)
            now = self.db.now()
            return [
                {"workerId": w, "startedAt": s, "expiresAt": e, "alive": e > now} | codec.decode(about)
                for w, s, e, about in found
            ]

        return await self.db.read(script, snapshot=False)

    async def has_other_workers(self, tenant: str, own: Collection[str]) -> bool:
        """Whether anybody else is there to take a task."""

        def script() -> database.Script[bool]:
            found = yield fetch("live_workers", tenant=tenant, now=self.db.now(), most=len(own) + 1)
            return any(worker_id not in own for (worker_id,) in found)

        return await self.db.read(script, snapshot=False)

    async def functions(self, tenant: str) -> dict[str, dict[str, Any]]:
        def script() -> database.Script[dict[str, dict[str, Any]]]:
            found = yield fetch("list_functions", tenant=tenant)
            return {name: {"registeredAt": at} | codec.decode(about) for name, at, about in found}

        return await self.db.read(script, snapshot=False)

    async def due_timers(self, most: int = 500) -> tuple[list[DueTimer], int | None]:
        """Timers to be fired now, of all tenants, and when the next one is due."""

        def script() -> database.Script[tuple[list[DueTimer], int | None]]:
            found = yield fetch("due_timers", now=self.db.now(), most=most)
            following = yield fetch("next_due")
            return [DueTimer(row[0], rows.Timer(*row[1:])) for row in found], following[0][0]

        return await self.db.read(script)

    async def dead_workers(self, most: int = 100) -> list[tuple[str, str]]:
        def script() -> database.Script[list[tuple[str, str]]]:
            found = yield fetch("dead_workers", now=self.db.now(), most=most)
            return [(row[0], row[1]) for row in found]

        return await self.db.read(script, snapshot=False)

    async def leases_of_worker(self, tenant: str, worker_id: str) -> list[LostLease]:
        """Everything that a worker holds."""

        def script() -> database.Script[list[LostLease]]:
            return _held(tenant, worker_id, (yield fetch("leases_of_worker", tenant=tenant, worker_id=worker_id)))

        return await self.db.read(script, snapshot=False)

    async def leases_of_dead_worker(self, tenant: str, worker_id: str) -> list[LostLease]:
        """The same, if it is still dead: what it claims after it has started anew is its own."""

        def script() -> database.Script[list[LostLease]]:
            wanted = {"tenant": tenant, "worker_id": worker_id, "now": self.db.now()}
            return _held(tenant, worker_id, (yield fetch("leases_of_dead_worker", **wanted)))

        return await self.db.read(script, snapshot=False)

    async def orphaned_leases(self, grace_seconds: float) -> list[LostLease]:
        """What is held by workers that nobody knows, and attempts that ran past their timeout without being stopped."""

        def script() -> database.Script[list[LostLease]]:
            late = self.db.now() - int(grace_seconds * 1e6)
            orphans: list[LostLease] = []
            for tenant, worker, token, tasks, known in (yield fetch("all_leases")):
                keys = [(job_id, task_id) for job_id, task_id in codec.decode(tasks)]
                for job_id, task_id, holder, timeout_at in (yield fetch("read_leased", tenant=tenant, keys=keys)):
                    overdue = timeout_at is not None and timeout_at < late
                    if holder == token and (overdue or not known):
                        orphans.append(LostLease(tenant, job_id, task_id, token, worker, overdue))
            return orphans

        return await self.db.read(script)

    async def live_leases(self, tenant: str, keys: list[rows.TaskKey]) -> set[tuple[str, str, str]]:
        """(job, task, token) for those of the given tasks that somebody is running."""

        def script() -> database.Script[set[tuple[str, str, str]]]:
            found = yield fetch("read_leased", tenant=tenant, keys=keys)
            return {(row[0], row[1], row[2]) for row in found}

        return await self.db.read(script, snapshot=False)

    async def set_retention(self, tenant: str, seconds: float | None) -> None:
        def script() -> database.Script[None]:
            yield fetch("set_retention", tenant=tenant, seconds=None if seconds is None else int(seconds))

        await self.db.write(script)

    async def tenants(self) -> list[str]:
        def script() -> database.Script[list[str]]:
            return [row[0] for row in (yield fetch("list_tenants"))]

        return await self.db.read(script, snapshot=False)

    async def tenants_with_system_work(self) -> list[str]:
        """Those that have something ready for the engine's own functions."""

        def script() -> database.Script[list[str]]:
            return [row[0] for row in (yield fetch("tenants_with_system_work"))]

        return await self.db.read(script, snapshot=False)

    async def job_ids(self, tenant: str, after: str = "", most: int = 1000) -> list[str]:
        """The ids of a tenant's jobs in order, after one."""

        def script() -> database.Script[list[str]]:
            return [row[0] for row in (yield fetch("list_job_ids", tenant=tenant, after=after, most=most))]

        return await self.db.read(script, snapshot=False)

    async def prune(self, tenant: str, default_seconds: float, older_than: float | None = None, most: int = 200) -> int:
        """Remove what ended longer ago than the tenant's retention, or than `older_than` seconds.

        Up to `most` jobs, fewer if they are large, as many executions elsewhere, and as many items that were never run.
        What others have told is kept as long.
        """

        def script() -> database.Script[int]:
            seconds = older_than
            if seconds is None:
                own = yield fetch("read_retention", tenant=tenant)
                seconds = own[0][0] if own and own[0][0] is not None else default_seconds
            before = self.db.now() - int(seconds * 1e6)
            yield fetch("prune_outside_event", tenant=tenant, before=before)
            outside = yield from executions.prune(tenant, before, most)
            old: list[database.Row] = []
            for state in sorted(states.JOB_ENDED):
                if left := most - len(old):
                    old += yield fetch("finished_jobs", tenant=tenant, state=state, before=before, most=left)
            items = yield fetch("prune_unrun_item", tenant=tenant, before=before, most=most)
            yield from _count_items_off(tenant, items)
            return outside + len(items) + (yield from _remove(tenant, before, old))

        return await self.db.write(script)

    async def prune_name(self, tenant: str, name: str, older_than: float, most: int = 200) -> int:
        """Remove up to `most` jobs of one name that ended so many seconds ago."""

        def script() -> database.Script[int]:
            before = self.db.now() - int(older_than * 1e6)
            found = yield fetch("finished_jobs_of_name", tenant=tenant, name=name, before=before, most=most)
            return (yield from _remove(tenant, before, found))

        return await self.db.write(script)


def _held(tenant: str, worker_id: str, claims: list[database.Row]) -> list[LostLease]:
    return [
        LostLease(tenant, job_id, task_id, token, worker_id, False)
        for token, tasks in claims
        for job_id, task_id in codec.decode(tasks)
    ]


def _remove(tenant: str, before: int, old: list[database.Row]) -> database.Script[int]:
    if not old:
        return 0
    # A job that was resumed since then is not finished any more.
    locked = yield fetch("lock_finished", tenant=tenant, before=before, job_ids=_few_tasks(old))
    job_ids = [row[0] for row in locked]
    for table in PRUNE_TABLES:
        yield fetch(f"prune_{table}", tenant=tenant, job_ids=job_ids)
    yield from _count_items_off(tenant, (yield fetch("prune_item", tenant=tenant, job_ids=job_ids)))
    return len(job_ids)


def _few_tasks(old: list[database.Row]) -> list[str]:
    """The first of the jobs, with no more tasks together than go in one transaction."""
    chosen: list[str] = []
    tasks = 0
    for job_id, total in old:
        tasks += total
        if chosen and tasks > PRUNE_TASKS:
            break
        chosen.append(job_id)
    return chosen


def _count_items_off(tenant: str, items: list[database.Row]) -> database.Script[None]:
    gone = collections.Counter(f"{pipeline}/{status}" for pipeline, status in items)
    fewer = {(core_tallies.ITEMS.name, key, 0): (-count, 0) for key, count in gone.items()}
    yield database.Run([("add_tally", tallies.rows_of(tenant, fewer, ""))])
