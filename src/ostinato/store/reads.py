"""Looking at jobs: views for people and programs, each on one consistent snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato import errors
from ostinato.core import absent, codec, ledger, rows, states
from ostinato.store import database, gauges
from ostinato.store.database import fetch

PAGE = 1_000


class Reads:
    db: database.Database

    async def job(self, tenant: str, job_id: str) -> rows.Job:
        def script() -> database.Script[rows.Job]:
            found = yield fetch("read_job", tenant=tenant, job_id=job_id)
            if not found:
                raise absent.job(job_id)
            return rows.Job(*found[0])

        return await self.db.read(script, snapshot=False)

    async def states(self, tenant: str, job_ids: Sequence[str]) -> dict[str, str]:
        def script() -> database.Script[dict[str, str]]:
            found = yield fetch("read_states", tenant=tenant, job_ids=list(job_ids))
            return {row[0]: row[1] for row in found}

        return await self.db.read(script, snapshot=False)

    async def tasks(
        self, tenant: str, job_id: str, *, state: str | None = None, after: int = -1, most: int = PAGE
    ) -> list[rows.Task]:
        def script() -> database.Script[list[rows.Task]]:
            found = yield fetch("list_tasks", tenant=tenant, job_id=job_id, state=state, after=after, most=most)
            return [rows.Task(*row) for row in found]

        return await self.db.read(script, snapshot=False)

    async def dependencies(self, tenant: str, job_id: str, task_ids: Sequence[str]) -> dict[str, list[str]]:
        """What each of these tasks depends on. Those that depend on nothing are left out."""

        def script() -> database.Script[dict[str, list[str]]]:
            found = yield fetch("read_dependencies_of", tenant=tenant, job_id=job_id, task_ids=list(task_ids))
            ups: dict[str, list[str]] = {}
            for down, up in found:
                ups.setdefault(down, []).append(up)
            return ups

        return await self.db.read(script, snapshot=False)

    async def all_tasks(self, tenant: str, job_id: str) -> list[rows.Task]:
        """Every task of a job, in the producer's order, page by page."""
        found: list[rows.Task] = []
        while page := await self.tasks(tenant, job_id, after=found[-1].position if found else -1):
            found += page
        return found

    async def task(self, tenant: str, job_id: str, task_id: str) -> rows.Task:
        def script() -> database.Script[rows.Task]:
            found = yield fetch("read_task", tenant=tenant, job_id=job_id, task_id=task_id)
            if not found:
                raise absent.task(job_id, task_id)
            return rows.Task(*found[0])

        return await self.db.read(script, snapshot=False)

    async def edges(self, tenant: str, job_id: str) -> list[tuple[str, str]]:
        def script() -> database.Script[list[tuple[str, str]]]:
            found = yield fetch("read_edges", tenant=tenant, job_id=job_id)
            return [(row[0], row[1]) for row in found]

        return await self.db.read(script, snapshot=False)

    async def dependency_outputs(self, tenant: str, key: rows.TaskKey, wanted: Sequence[str] | None) -> dict[str, Any]:
        """Outcomes by task id: the output, None for a skipped task, `{"error": …}` for one that failed."""
        job_id, task_id = key

        def script() -> database.Script[dict[str, Any]]:
            if wanted is None:
                found = yield fetch("read_all_dependency_outputs", tenant=tenant, job_id=job_id, task_id=task_id)
            else:
                found = yield fetch(
                    "read_dependency_outputs", tenant=tenant, job_id=job_id, task_id=task_id, wanted=list(wanted)
                )
            result: dict[str, Any] = {}
            for up, state, output, error in found:
                if state == states.COMPLETED:
                    result[up] = codec.decode((yield from resolve(tenant, job_id, output)))
                elif error is not None:
                    result[up] = {"error": codec.decode(error)}
                else:
                    result[up] = None
            return result

        return await self.db.read(script, snapshot=False)

    async def outputs(self, tenant: str, job_id: str, *, few: bool = False) -> dict[str, Any]:
        """The outputs of all completed tasks. They never change, so that no snapshot is needed to read them."""
        return await self.db.read(lambda: _outputs(tenant, job_id), snapshot=False, brief=few)

    async def failures(self, tenant: str, job_id: str, most: int = PAGE) -> list[tuple[str, str, Any]]:
        """(task id, state, error) of what failed, was cancelled or stays blocked."""

        def script() -> database.Script[list[tuple[str, str, Any]]]:
            found = yield fetch("read_job_failures", tenant=tenant, job_id=job_id, most=most)
            return [(row[0], row[1], None if row[2] is None else codec.decode(row[2])) for row in found]

        return await self.db.read(script, snapshot=False)

    async def steps(self, tenant: str, job_id: str, task_id: str) -> list[tuple[str, bytes, int]]:
        """(key, result, recorded_at) of the finished steps of a task."""

        def script() -> database.Script[list[tuple[str, bytes, int]]]:
            found = yield fetch("read_steps", tenant=tenant, job_id=job_id, task_id=task_id)
            result: list[tuple[str, bytes, int]] = []
            for key, output, at in found:
                result.append((key, (yield from resolve(tenant, job_id, output)), at))
            return result

        return await self.db.read(script)

    async def payload(self, tenant: str, job_id: str, stored: bytes) -> bytes:
        return await self.db.read(lambda: resolve(tenant, job_id, stored))

    async def timer(self, tenant: str, job_id: str, task_id: str) -> rows.Timer | None:
        def script() -> database.Script[rows.Timer | None]:
            found = yield fetch("read_timer", tenant=tenant, job_id=job_id, task_id=task_id)
            return rows.Timer(*found[0]) if found else None

        return await self.db.read(script, snapshot=False)

    async def depth(self, tenant: str) -> dict[str, Any]:
        """How much of what there is: jobs by state, queues, dead letters."""

        def script() -> database.Script[dict[str, Any]]:
            work = yield from gauges.depths(tenant, self.db.now())
            letters = yield fetch("count_dead_letters", tenant=tenant)
            jobs = yield fetch("count_jobs", tenant=tenant)
            return {
                "jobs": {row[0]: int(row[1]) for row in jobs},
                "queues": [
                    {"queue": q, "name": n, "ready": ready, "oldestReadyAt": oldest, "served": served}
                    for q, n, ready, oldest, served in work
                ],
                "deadLetters": int(letters[0][0]),
            }

        return await self.db.read(script, long=True)


def _outputs(tenant: str, job_id: str) -> database.Script[dict[str, Any]]:
    found = yield fetch("read_job_outputs", tenant=tenant, job_id=job_id)
    decode = codec.decode
    result: dict[str, Any] = {}
    for task_id, output in found:
        if output[:1] == ledger.BLOB_MARK:
            output = yield from resolve(tenant, job_id, output)
        result[task_id] = decode(output)
    return result


def resolve(tenant: str, job_id: str, stored: bytes) -> database.Script[bytes]:
    """The payload itself, whether it is stored in place or as a blob."""
    if stored[:1] != ledger.BLOB_MARK:
        return stored
    found = yield fetch("read_blob", tenant=tenant, job_id=job_id, digest=stored[1:])
    if not found:
        raise errors.NotFound("a large payload of this job is missing from the blob table: run `ostinato audit`")
    return found[0][0]
