"""The rows that a transaction reads and writes. A field is a column, and field order is column order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from ostinato.core import columns
from ostinato.core.columns import Advances, Changes, Claims, Completes, NotStored, Payload

TaskKey = tuple[str, str]
"""(job_id, task_id)"""


class Job(msgspec.Struct, gc=False):
    """One run of a graph, with a counter for each way its tasks can stand."""

    job_id: str
    name: str
    state: Changes[str]
    priority: int
    request_id: str | None
    correlation_id: str
    idempotency_key: str | None
    request_hash: bytes | None
    tags: bytes
    cascades: Changes[bool]
    """Some task skips or runs when a dependency fails, so a failure may move tasks far down the graph."""
    deadline_at: Changes[int | None]
    created_at: int
    finished_at: Changes[int | None] = None
    failure_detected_at: Changes[int | None] = None
    last_seq: Advances[int] = 0
    total: Changes[int] = 0
    blocked: Advances[int] = 0
    active: Advances[int] = 0
    completed: Advances[int] = 0
    failed: Changes[int] = 0
    tolerated: Changes[int] = 0
    """Failed tasks that were optional."""
    skipped: Changes[int] = 0
    cancelled: Changes[int] = 0
    trace_parent: str | None = None
    """The trace that it belongs to, as a W3C `traceparent`."""
    max_parallel: int | None = None
    """How many of its tasks may be pending or processing at the same time; the others wait for their turn."""
    turns: Changes[int] = 0
    """How many are, if there is such a limit."""
    budget: Changes[int | None] = None
    """What it may cost, in millionths; when that is spent, nothing more of it begins."""
    spent: Changes[int] = 0
    submitted_by: str | None = None
    """Who entered it, if somebody said so."""
    keep_seconds: int | None = None
    """How long it is kept after its end, if that is not what its tenant says."""
    processing: Advances[int] = 0
    waiting: Advances[int] = 0
    """Of the active ones; the others are pending."""
    was_seq: NotStored[int] = 0
    """`last_seq` as it was loaded: the version of the job that a transaction has seen."""
    was_plain: NotStored[tuple[object, ...]] = ()
    """How the fields stood that seldom change."""

    def note(self) -> None:
        """Remember how the job stands now, in the database and here."""
        self.was_seq = self.last_seq
        self.was_plain = self.plain()

    def plain(self) -> tuple[object, ...]:
        return _plain("", self)


_plain = columns.row_of([column.name for column in columns.of(Job) if column.sets == frozenset({columns.CHANGE.name})])


class RemovedJob(msgspec.Struct, frozen=True, gc=False):
    """What is left of a job that had an idempotency key, after its time: enough to know a repetition of its request."""

    job_id: str
    request_hash: bytes | None


class Task(msgspec.Struct, gc=False):
    """One node of a job. `was` is how it stood when it was loaded."""

    job_id: str
    task_id: str
    position: int
    name: str
    queue: str
    priority: int
    policy: str
    optional: bool
    dependencies: int
    options: bytes | None
    input: Annotated[bytes, Payload("input")]
    state: Changes[str]
    attempt: Claims[int] = 0
    attempt_base: Changes[int] = 0
    """Attempts used up before the last manual retry: the policy counts from here."""
    crashes: Changes[int] = 0
    open_dependencies: Changes[int] = 0
    resuming: Changes[bool] = False
    """It was waiting inside its function: the next claim goes on with the same attempt."""
    skipped_by_dependency: Changes[bool] = False
    output: Completes[Annotated[bytes | None, Payload("output")]] = None
    error: Changes[Annotated[bytes | None, Payload("error")]] = None
    started_at: Claims[int | None] = None
    finished_at: Completes[int | None] = None
    ready_at: Claims[int | None] = None
    """Since when it is pending; part of its key in the queue."""
    worker: Claims[str | None] = None
    token: Claims[str | None] = None
    max_attempts: Claims[int] = 1
    timeout_at: Claims[int | None] = None
    was: NotStored[str] = ""
    was_ready_at: NotStored[int | None] = None
    dependants: NotStored[Sequence[str] | None] = None
    """Who waits for it, if that is known."""

    @property
    def key(self) -> TaskKey:
        return (self.job_id, self.task_id)


class Timer(msgspec.Struct, gc=False):
    """A durable due time, or a wait for a signal. `task_id` is empty for a job's deadline; without `due_at`, no end."""

    job_id: str
    task_id: str
    kind: str
    name: str
    key: str
    due_at: int | None


class Approval(msgspec.Struct, gc=False):
    """What people are, or were, asked. `key` is the step of a function that asks; a task of its own has none."""

    job_id: str
    task_id: str
    key: str
    state: str
    """`waiting`, `withdrawn`, `expired`, or what was decided."""
    document: Annotated[bytes, Payload("approval")]
    """What is asked, and the decisions so far."""
    payload: Annotated[bytes | None, Payload("approval_payload")]
    """What it is about, if that is not the input of its task."""
    asked: str | None
    not_submitter: bool
    submitted_by: str | None
    version: int
    """The event that last changed what is asked: a decision that names another one is about something else."""
    requested_at: int
    due_at: int | None
    escalated_at: int | None
    decided_at: int | None
    given: NotStored[bytes | None] = None
    """The payload itself, where it is known."""

    @property
    def place(self) -> tuple[str, str, str]:
        return (self.job_id, self.task_id, self.key)


class Signal(msgspec.Struct, gc=False):
    """A signal that was sent to a job, and whether a task has got it."""

    job_id: str
    name: str
    signal_id: str
    payload: Annotated[bytes, Payload("signal")]
    taken: bool = False
    seq: int = 0
    """The number of the event that tells of it: signals are taken in this order, whatever their ids."""


class Lease(msgspec.Struct, gc=False):
    """The right to one attempt: what a worker needs to run it and to prove that it may report on it."""

    job_id: str
    task_id: str
    attempt: int
    token: str
    name: str
    input: bytes
    options: bytes | None
    dependencies: int
    fresh: bool
    """First entry of the first attempt: no step can have been recorded yet."""
    reentered: bool
    """It goes on with the attempt that was waiting, so handing it back leaves the attempt as it is."""
    max_attempts: int
    attempt_base: int
    timeout: float | None
    job_name: str
    request_id: str | None
    correlation_id: str
    ready_at: int | None = None
    started_at: int | None = None
    """When it could have started, and when it was claimed."""
    trace_parent: str | None = None
    """The trace that the job belongs to, as a W3C `traceparent`."""

    @property
    def key(self) -> TaskKey:
        return (self.job_id, self.task_id)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt, and no other task's: ids may have colons, of which the first one divides."""
        return f"{self.job_id.replace(':', '%3A')}:{self.task_id}"


class FunctionPolicy(msgspec.Struct, frozen=True, gc=False):
    """What a worker says of a function when it claims: the defaults for tasks that do not say themselves."""

    max_attempts: int
    timeout: float | None


class Failure(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why an attempt did not succeed."""

    type: str
    message: str
    traceback: str | None = None


class Step(msgspec.Struct, frozen=True, gc=False):
    """A checkpoint inside a task's code."""

    job_id: str
    task_id: str
    key: str
    output: Annotated[bytes, Payload("step")]
    recorded_at: int
