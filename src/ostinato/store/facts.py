"""Gathering what explains a task, on one snapshot and at a bounded cost however large the job and the queue are."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.core import absent, codec, rows, states, why
from ostinato.core import budgets as core_budgets
from ostinato.store import approvals, budgets, database
from ostinato.store.database import fetch

LISTED = 20
"""Dependencies that are named."""
EXAMINED = 10_000
"""Dependencies that are looked at to find them."""
COUNTED = 1_000
"""Ready tasks, and claimed ones of a worker, that are counted."""
CONSULTED = 50
"""Workers whose claims are looked at, and functions of theirs whose queue is."""


class FactFinding:
    db: database.Database

    async def facts(self, tenant: str, job_id: str, task_id: str) -> why.Facts:
        """What `why.explain` needs to know about a task."""
        return await self.db.read(lambda: self._facts(tenant, job_id, task_id))

    def _facts(self, tenant: str, job_id: str, task_id: str) -> database.Script[why.Facts]:
        now = self.db.now()
        job_state = yield from _job_state(tenant, job_id)
        found = yield fetch("read_task", tenant=tenant, job_id=job_id, task_id=task_id)
        if not found:
            raise absent.task(job_id, task_id)
        task = rows.Task(*found[0])
        if task.state == states.BLOCKED:
            return why.Facts(now, job_state, task, dependencies=(yield from _dependencies(tenant, task)))
        if task.state == states.WAITING:
            timer = yield fetch("read_timer", tenant=tenant, job_id=job_id, task_id=task_id)
            waits_for = rows.Timer(*timer[0]) if timer else None
            asked = used_up = None
            if waits_for is not None and waits_for.kind == "approval":
                asked = yield from approvals.waiting(tenant, job_id, task_id)
            elif waits_for is not None and waits_for.kind == "budget":
                used_up = yield from _used_up(tenant, job_id, now)
            return why.Facts(now, job_state, task, timer=waits_for, approval=asked, used_up=used_up)
        if task.state == states.PROCESSING:
            workers = yield from workers_of(tenant, now)
            holder = [worker for worker in workers if worker.worker_id == task.worker]
            return why.Facts(now, job_state, task, workers=holder)
        if task.state == states.PENDING:
            workers = yield from workers_of(tenant, now)
            workers = yield from _with_claims(tenant, task, workers)
            ahead = yield from _ahead(tenant, task, workers)
            return why.Facts(
                now, job_state, task, workers=workers, ahead=min(ahead, COUNTED), more_ahead=ahead > COUNTED
            )
        return why.Facts(now, job_state, task)


def _job_state(tenant: str, job_id: str) -> database.Script[str]:
    found = yield fetch("read_job_state", tenant=tenant, job_id=job_id)
    if not found:
        raise absent.job(job_id)
    return found[0][0]


def _used_up(tenant: str, job_id: str, now: int) -> database.Script[core_budgets.Exhausted | None]:
    job = rows.Job(*(yield fetch("read_job", tenant=tenant, job_id=job_id))[0])
    return core_budgets.budget_exhausted(job, (yield from budgets.read(tenant, now)), now)


def _dependencies(tenant: str, task: rows.Task) -> database.Script[list[why.Dependency]]:
    found = yield fetch(
        "read_open_dependencies",
        tenant=tenant,
        job_id=task.job_id,
        task_id=task.task_id,
        policy=task.policy,
        examined=EXAMINED,
        most=LISTED,
    )
    return [why.Dependency(row[0], row[1]) for row in found]


def workers_of(tenant: str, now: int) -> database.Script[list[why.Worker]]:
    """What is known of every worker, dead or alive."""
    workers: list[why.Worker] = []
    for worker_id, _, expires_at, about in (yield fetch("list_workers", tenant=tenant)):
        says: dict[str, Any] = codec.decode(about)
        queues = says.get("queues", ())
        awaited = {(job_id, task_id): job for job_id, task_id, job in says.get("awaitingJobs", ())}
        workers.append(
            why.Worker(
                worker_id,
                expires_at > now,
                queues,
                says.get("functions"),
                says.get("slots"),
                awaiting=says.get("awaiting", 0),
                awaiting_jobs=awaited,
            )
        )
    return workers


def _with_claims(tenant: str, task: rows.Task, workers: list[why.Worker]) -> database.Script[list[why.Worker]]:
    """The workers, and of those that serve the task how many tasks they have claimed."""
    seen: list[why.Worker] = []
    consulted = 0
    for worker in workers:
        if consulted < CONSULTED and worker.serves(task.name, task.queue):
            consulted += 1
            held = yield from _held(tenant, worker.worker_id)
            worker = msgspec.structs.replace(worker, alive=True, held=held)
        seen.append(worker)
    return seen


def _held(tenant: str, worker_id: str) -> database.Script[int]:
    """A claim is kept until its last task is reported, so each of its tasks must be looked at."""
    tokens: dict[rows.TaskKey, str] = {}
    for token, tasks in (yield fetch("leases_of_worker", tenant=tenant, worker_id=worker_id)):
        for job_id, task_id in codec.decode(tasks):
            if len(tokens) < COUNTED:
                tokens[(job_id, task_id)] = token
    if not tokens:
        return 0
    found = yield fetch("read_leased", tenant=tenant, keys=list(tokens))
    return sum(1 for job_id, task_id, token, _ in found if tokens[(job_id, task_id)] == token)


def _ahead(tenant: str, task: rows.Task, workers: list[why.Worker]) -> database.Script[int]:
    """How many ready tasks the same workers claim first; counting stops soon after `COUNTED`."""
    serving = [worker for worker in workers if worker.serves(task.name, task.queue)]
    others = {name for worker in serving for name in worker.functions or ()} - {task.name}
    ahead = 0
    for name in [task.name, *sorted(others)[:CONSULTED]]:
        found = yield fetch(
            "count_ahead",
            tenant=tenant,
            queue=task.queue,
            name=name,
            rank=-task.priority,
            ready_at=task.ready_at,
            job_id=task.job_id,
            task_id=task.task_id,
            most=COUNTED + 1 - ahead,
        )
        ahead += int(found[0][0])
        if ahead > COUNTED:
            break
    return ahead
