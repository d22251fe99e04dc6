"""Workers, functions, due timers, and the leases of the dead."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ostinato.core import codec, rows
from ostinato.store import database
from ostinato.store.database import fetch


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


class HeardOf(NamedTuple):
    """A worker, and what it says of itself."""

    tenant: str
    worker_id: str
    expires_at: int
    about: dict[str, Any]


class Fleet:
    db: database.Database

    async def register_worker(
        self,
        tenant: str,
        worker_id: str,
        lease_seconds: float,
        about: Mapping[str, Any],
        known: Mapping[str, Any],
        machine: str | None = None,
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
                machine=machine,
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

    async def workers_of_machine(self, machine: str, most: int = 1000) -> list[HeardOf]:
        """Those that have been heard of lately."""

        def script() -> database.Script[list[HeardOf]]:
            found = yield fetch("workers_of_machine", machine=machine, now=self.db.now(), most=most)
            return [HeardOf(row[0], row[1], row[2], codec.decode(row[3])) for row in found]

        return await self.db.read(script, snapshot=False)

    async def silent_workers(self, seconds: float, most: int = 100) -> list[HeardOf]:
        """Those that count as dead so soon, unless they are heard of."""

        def script() -> database.Script[list[HeardOf]]:
            now = self.db.now()
            found = yield fetch("silent_workers", now=now, until=now + int(seconds * 1e6), most=most)
            return [HeardOf(row[0], row[1], row[2], codec.decode(row[3])) for row in found]

        return await self.db.read(script, snapshot=False)

    async def declare_dead(self, worker: HeardOf) -> bool:
        """It has ended; False if it was heard of since."""

        def script() -> database.Script[bool]:
            args = {"tenant": worker.tenant, "worker_id": worker.worker_id, "seen": worker.expires_at}
            return bool((yield fetch("declare_dead", ended=self.db.now() - 1, **args)))

        return await self.db.write(script)

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


def _held(tenant: str, worker_id: str, claims: list[database.Row]) -> list[LostLease]:
    return [
        LostLease(tenant, job_id, task_id, token, worker_id, False)
        for token, tasks in claims
        for job_id, task_id in codec.decode(tasks)
    ]
