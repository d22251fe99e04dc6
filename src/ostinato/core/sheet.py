"""The sheet that a transaction works on: the rows that it has loaded, how to find them, and what is to be written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ostinato import errors
from ostinato.core import absent, budgets, courses, items, pages, retry, rows, states, tallies, usage


def digest(data: bytes) -> bytes:
    """Where a large payload is kept: by its content, so that a job keeps the same one once."""
    return hashlib.sha256(data).digest()


class Origin(NamedTuple):
    """What a job that follows from something belongs to."""

    trace_parent: str | None = None
    correlation_id: str | None = None


class Heard(NamedTuple):
    """An event that some rule may be about."""

    job_id: str
    seq: int
    kind: str
    task_id: str | None
    name: str | None
    attempt: int | None
    data: bytes


class Sheet(msgspec.Struct):
    tenant: str
    now: int
    spill_bytes: int = 32 * 1024
    address: Callable[[bytes], bytes] = digest
    """Where a large payload goes to, by its content."""
    watched: frozenset[str] | None = frozenset()
    """Types of events that somebody wants to hear of; None stands for all."""
    discreet: bool = False
    """What people say is encrypted: it is not repeated where it would not be."""
    # what was loaded
    jobs: dict[str, rows.Job] = {}
    tasks: dict[rows.TaskKey, rows.Task] = {}
    dependants: dict[rows.TaskKey, list[str]] = {}
    dependencies: dict[rows.TaskKey, list[str]] = {}
    jobs_by_idempotency_key: dict[str, rows.Job | rows.RemovedJob] = {}
    signals: dict[tuple[str, str], list[rows.Signal]] = {}
    """By job and name, if a task may take one: those that nobody has taken yet."""
    sent_signals: set[tuple[str, str, str]] = set()
    """By job and name, of those that are being sent: those that were sent before."""
    waiters: dict[rows.TaskKey, list[rows.Timer]] = {}
    timers: dict[rows.TaskKey, rows.Timer] = {}
    awaiting_turn: dict[str, dict[str, rows.Task]] = {}
    """By job: the first few of its tasks that wait for their turn."""
    awaiting_budget: dict[str, list[rows.Task]] = {}
    """By job, if its budget may be raised: its tasks that wait for one."""
    tenant_budget: budgets.TenantBudget | None = None
    gate_jobs: dict[tuple[str, str], str] = {}
    """By gate and key."""
    outside_events: set[tuple[str, str]] = set()
    last_usages: dict[tuple[str, str, int], str | None] = {}
    """By attempt: the id of what was told last of its usage."""
    items: dict[str, items.Item] = {}
    """Items of pipelines, by the job of their run."""
    items_by_id: dict[str, items.Item] = {}
    courses: dict[tuple[str, int], courses.Course] = {}
    """Pipelines by name and version."""
    retries: dict[str, retry.Retry] = {}
    """Policies that were changed since their pipeline was saved, by `pipeline/step`."""
    approvals: dict[rows.TaskKey, dict[str, rows.Approval]] = {}
    """By task, and by the step that asks."""
    adders: dict[rows.TaskKey, set[str]] = {}
    """Who has added tasks that these guard, as far as approvals ask for somebody else."""
    guarded: dict[rows.TaskKey, set[str]] = {}
    """By tasks about which several people are asked: the tasks after them, where a job grows."""
    inputs: dict[rows.TaskKey, bytes] = {}
    """Inputs in full, of tasks whose approvals are loaded."""
    # what is to be written
    new_jobs: list[rows.Job] = []
    new_tasks: list[rows.Task] = []
    new_edges: list[tuple[str, str, str, str]] = []
    changed_tasks: dict[rows.TaskKey, rows.Task] = {}
    new_inputs: set[rows.TaskKey] = set()
    run_again: set[rows.TaskKey] = set()
    """Tasks that start anew: more about them has changed than their state."""
    events: dict[str, list[pages.Entry]] = {}
    """What is to be told, by job, as entries of a page. Every change of a job tells something."""
    told: int = 0
    new_timers: dict[rows.TaskKey, rows.Timer] = {}
    dropped_timers: set[rows.TaskKey] = set()
    new_leases: list[tuple[str, str, bytes]] = []
    dropped_leases: list[tuple[str, str]] = []
    new_steps: list[rows.Step] = []
    new_signals: list[rows.Signal] = []
    taken_signals: list[rows.Signal] = []
    gates_before: dict[tuple[str, str], str | None] = {}
    """The jobs of gates and keys that have another now, or none."""
    changed_approvals: dict[tuple[str, str, str], rows.Approval] = {}
    withdrawn: set[rows.TaskKey] = set()
    """Tasks that ended while they may have been waiting for people."""
    new_outside_events: list[tuple[str, str, int, bytes]] = []
    origins: dict[tuple[str, str], Origin] = {}
    """Of these events, by source and id, what those belong to who told them."""
    new_items: dict[str, bytes] = {}
    """What was given for them, by item."""
    changed_items: dict[str, items.Item] = {}
    new_payloads: dict[str, bytes] = {}
    """What is to be done with items that were there before, by item."""
    blobs: dict[tuple[str, bytes], bytes] = {}
    heard: list[Heard] = []
    usages: dict[tuple[str, str, int], usage.Usage] = {}
    """What attempts have used up in this transaction."""
    waits_for_tenant: bool = False
    """A task waits, because the tenant's budget is used up."""
    tallies: dict[tallies.TallyKey, list[int]] = {}
    """By how much what is counted has grown: (count, amount) by topic, key and bucket."""
    # what the caller wants to know after the commit
    ended_jobs: list[rows.Job] = []
    revoked: list[tuple[rows.TaskKey, str]] = []
    became_pending: list[rows.Task] = []
    pending_data: dict[str, bytes] = {}

    def job(self, job_id: str) -> rows.Job:
        job = self.jobs.get(job_id)
        if job is None:
            raise absent.job(job_id)
        return job

    def running_job(self, job_id: str) -> rows.Job:
        job = self.job(job_id)
        if job.state != states.RUNNING:
            raise errors.JobEnded(f"job {job_id!r} is {job.state}", jobId=job_id, state=job.state)
        return job

    def task(self, key: rows.TaskKey) -> rows.Task:
        self.job(key[0])
        task = self.tasks.get(key)
        if task is None:
            raise absent.task(*key)
        return task

    def leased_task(self, key: rows.TaskKey, attempt: int, token: str) -> rows.Task:
        """The task, if this attempt and token still own it. The fence that every worker write goes through."""
        task = self.tasks.get(key)
        if task is None or task.state != states.PROCESSING or task.token != token or task.attempt != attempt:
            state = "gone" if task is None else task.state
            raise errors.LeaseLost(
                f"attempt {attempt} no longer owns task {key[1]!r} of job {key[0]!r} (now {state}): "
                "its result is not recorded",
                jobId=key[0],
                taskId=key[1],
                state=state,
            )
        return task

    def reported_task(self, lease: rows.Lease) -> rows.Task:
        """The task of a lease that its worker now gives up by reporting on it: nobody needs to be told to stop."""
        task = self.leased_task((lease.job_id, lease.task_id), lease.attempt, lease.token)
        task.token = None
        if not lease.name:  # reported from elsewhere, with no more than it takes to prove the right to
            lease.name, lease.ready_at, lease.started_at = task.name, task.ready_at, task.started_at
        return task

    def tasks_of(self, job_id: str) -> list[rows.Task]:
        """All tasks of a job that was loaded whole, in the producer's order."""
        return sorted((t for t in self.tasks.values() if t.job_id == job_id), key=lambda t: t.position)

    def item(self, item_id: str) -> items.Item:
        item = self.items_by_id.get(item_id)
        if item is None:
            raise errors.ItemNotFound(f"there is no item {item_id!r}", itemId=item_id)
        return item

    def attribute(self, item: items.Item, actor: str | None, why: str | None, how: str | None = None) -> None:
        """Who moves an item in this transaction, and why, for its history."""
        item.by, item.told, item.how, item.failed_step = actor, why, how, None
        item.why = None if self.discreet else why

    def retry_of(self, task: rows.Task) -> retry.Retry | None:
        """The policy of a step of a pipeline, if it was changed since its item began. One that allows fewer attempts
        than were made already makes this one the last."""
        item = self.items.get(task.job_id) if self.retries else None
        changed = None if item is None else self.retries.get(f"{item.pipeline}/{task.task_id}")
        used = task.attempt - task.attempt_base
        if changed is not None and changed.max_attempts < used:
            return msgspec.structs.replace(changed, max_attempts=used)
        return changed

    def course_of(self, item: items.Item) -> courses.Course:
        return self.courses[(item.pipeline, item.version)]
