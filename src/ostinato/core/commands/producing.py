"""Entering jobs, and letting them grow."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from ostinato import errors
from ostinato.core import absent, codec, events, graph, ledger, needs, rows, states, usage
from ostinato.core.commands import consequences, passing


class Submitted(msgspec.Struct, frozen=True):
    """The answer to a submission; `created` is False when the idempotency key found the job of before."""

    job_id: str
    created: bool


class Submit(msgspec.Struct, gc=False):
    """Enter a job. `inputs` are the encoded inputs of its tasks, in order."""

    job_id: str
    spec: graph.JobSpec
    inputs: list[bytes]
    actor: str | None = None
    trace_parent: str | None = None
    """No part of what is hashed: the same request of another trace is the same request."""
    correlation_id: str | None = None
    """That of the attempt that submits it, for a job that does not say its own."""
    keep: float | None = None
    """For how many seconds it is kept after its end; None is what the tenant says."""

    def needs(self, wanted: needs.Needs) -> None:
        wanted.new_tasks += len(self.spec.tasks)
        if self.spec.job_id is not None:  # otherwise the id was made for this very job, and nobody else has it
            wanted.job(self.job_id)
        if self.spec.idempotency_key is not None:
            wanted.idempotency_keys.add(self.spec.idempotency_key)

    def apply(self, book: ledger.Ledger) -> Submitted:
        spec = self.spec
        request_hash = self._hash()
        earlier = self.earlier(book)
        if earlier is not None:
            return self._answer_again(earlier, request_hash)
        job = self._job(book, request_hash)
        created = self._created_data(job)
        book.jobs[job.job_id] = job
        book.new_jobs.append(job)
        if job.idempotency_key is not None:
            book.jobs_by_idempotency_key[job.idempotency_key] = job
        book.emit(job, events.JOB_CREATED, data=created)
        consequences.enter_tasks(book, job, spec.tasks, self.inputs)
        if job.deadline_at is not None:
            book.set_timer(rows.Timer(job.job_id, "", "deadline", "", "", job.deadline_at))
        return Submitted(job.job_id, True)

    def earlier(self, book: ledger.Ledger) -> rows.Job | rows.RemovedJob | None:
        """The job that has this key or id already, or had this key until it was removed."""
        job = book.jobs.get(self.job_id)
        if self.spec.idempotency_key is not None:
            job = book.jobs_by_idempotency_key.get(self.spec.idempotency_key) or job
        return job

    def refuse_conflict(self, book: ledger.Ledger) -> None:
        job = self.earlier(book)
        if job is not None:
            self._answer_again(job, self._hash())

    def _hash(self) -> bytes | None:
        if self.spec.idempotency_key is None and self.spec.job_id is None:
            return None
        return hashlib.sha256(graph.request_hash_source(self.spec)).digest()

    def _answer_again(self, earlier: rows.Job | rows.RemovedJob, request_hash: bytes | None) -> Submitted:
        if earlier.request_hash == request_hash:
            return Submitted(earlier.job_id, False)
        if self.spec.idempotency_key is not None:
            raise errors.IdempotencyConflict(
                f"idempotencyKey {self.spec.idempotency_key!r} belongs to job {earlier.job_id!r}, "
                "which was submitted with another body: use a new key for a new request",
                jobId=earlier.job_id,
            )
        raise errors.IdempotencyConflict(
            f"there is already a job {earlier.job_id!r}: use another jobId", jobId=earlier.job_id
        )

    def _job(self, book: ledger.Ledger, request_hash: bytes | None) -> rows.Job:
        spec = self.spec
        return rows.Job(
            self.job_id,
            spec.name,
            states.RUNNING,
            spec.priority,
            spec.request_id,
            spec.correlation_id or self.correlation_id or self.job_id,
            spec.idempotency_key,
            request_hash,
            codec.encode_own(spec.tags) if spec.tags else codec.EMPTY_OBJECT,
            cascades=False,
            deadline_at=None if spec.deadline is None else book.now + int(spec.deadline * 1e6),
            created_at=book.now,
            trace_parent=self.trace_parent,
            max_parallel=spec.max_concurrency,
            budget=None if spec.budget is None else usage.micros(spec.budget, "budget"),
            submitted_by=self.actor,
            keep_seconds=None if self.keep is None else math.ceil(self.keep),
        )

    def _created_data(self, job: rows.Job) -> bytes:
        data: dict[str, Any] = {
            "jobId": job.job_id,
            "name": job.name,
            "requestId": job.request_id,
            "correlationId": job.correlation_id,
            "tasks": self.spec.tasks,
            "totalTasks": len(self.spec.tasks),
            "priority": job.priority,
            "tags": self.spec.tags,
        }
        if job.idempotency_key is not None:
            data["idempotencyKey"] = job.idempotency_key
        if job.max_parallel is not None:
            data["maxConcurrency"] = job.max_parallel
        if job.budget is not None:
            data["budget"] = usage.money(job.budget)
        if job.deadline_at is not None:
            data["deadlineAt"] = job.deadline_at
        if self.actor is not None:
            data["actor"] = self.actor
        return codec.encode_own(data)


class SubmitMany(msgspec.Struct, gc=False):
    """Enter many jobs, or none of them."""

    submissions: list[Submit]

    def needs(self, wanted: needs.Needs) -> None:
        for submission in self.submissions:
            submission.needs(wanted)

    def apply(self, book: ledger.Ledger) -> list[Submitted]:
        for submission in self.submissions:  # while nothing has been told: a refusal then costs nobody else anything
            submission.refuse_conflict(book)
        return [submission.apply(book) for submission in self.submissions]


class AddTasks(msgspec.Struct, gc=False):
    """Let a running job grow. From inside a function it is also a step, so a repeated attempt adds nothing twice."""

    job_id: str
    tasks: Sequence[graph.TaskSpec]
    inputs: list[bytes]
    lease: rows.Lease | None = None
    step_key: str = ""
    actor: str | None = None
    most: int | None = None
    """How many tasks a job may have."""

    def needs(self, wanted: needs.Needs) -> None:
        wanted.job(self.job_id)
        for task in self.tasks:
            wanted.task((self.job_id, task.task_id))
            for dependency in task.depends_on:
                wanted.task((self.job_id, dependency))
        if self._after():
            wanted.guarded.add(self.job_id)
        if self.lease is not None:
            wanted.task(self.lease.key)

    def apply(self, book: ledger.Ledger) -> list[str]:
        job = book.running_job(self.job_id)
        if job.name.startswith(graph.OWN_JOBS):
            raise errors.NotPossible(
                f"job {job.job_id!r} is the engine's own: nothing is added to it", jobId=job.job_id
            )
        caller = None
        if self.lease is not None:
            caller = book.leased_task(self.lease.key, self.lease.attempt, self.lease.token)
        ids = {task.task_id for task in self.tasks}
        for task in self.tasks:
            if (self.job_id, task.task_id) in book.tasks:
                raise errors.DuplicateTask(
                    f"job {self.job_id!r} already has a task {task.task_id!r}: give the new one another taskId",
                    taskId=task.task_id,
                )
            for dependency in task.depends_on:
                if dependency not in ids and (self.job_id, dependency) not in book.tasks:
                    raise errors.UnknownDependency(
                        f"task {task.task_id!r} depends on {absent.named(dependency)}, "
                        f"which is not a task of job {self.job_id!r}",
                        taskId=task.task_id,
                        dependency=absent.cut(dependency),
                    )
        if self.most is not None and job.total + len(self.tasks) > self.most:
            raise errors.InvalidGraph(f"job {self.job_id!r} would have more than {self.most:,} tasks", field="tasks")
        passing.grow(book, self.job_id, self._after(), ids)
        data = consequences.event_data(newTasks=self.tasks, actor=self.actor)
        book.emit(job, events.JOB_TASKS_ADDED, data=data)
        consequences.enter_tasks(book, job, self.tasks, self.inputs, self.actor)
        added = [task.task_id for task in self.tasks]
        if caller is not None:
            book.record_step(caller, self.step_key, codec.encode_own(added))
        book.settle(job)
        return added

    def _after(self) -> set[str]:
        """The tasks of before that the new ones depend on."""
        return {up for task in self.tasks for up in task.depends_on} - {task.task_id for task in self.tasks}
