"""The rows that a transaction reads and writes. Field order is column order: the store writes them with `astuple`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

TaskKey = tuple[str, str]
"""(job_id, task_id)"""


class Job(msgspec.Struct, gc=False):
    """One run of a graph, with a counter for each way its tasks can stand."""

    job_id: str
    name: str
    state: str
    priority: int
    request_id: str | None
    correlation_id: str
    idempotency_key: str | None
    request_hash: bytes | None
    tags: bytes
    cascades: bool
    """Some task skips or runs when a dependency fails, so a failure may move tasks far down the graph."""
    deadline_at: int | None
    created_at: int
    finished_at: int | None = None
    failure_detected_at: int | None = None
    last_seq: int = 0
    total: int = 0
    blocked: int = 0
    active: int = 0
    completed: int = 0
    failed: int = 0
    tolerated: int = 0
    """Failed tasks that were optional."""
    skipped: int = 0
    cancelled: int = 0
    trace_parent: str | None = None
    """The trace that it belongs to, as a W3C `traceparent`."""
    max_parallel: int | None = None
    """How many of its tasks may be pending or processing at the same time; the others wait for their turn."""
    turns: int = 0
    """How many are, if there is such a limit."""
    budget: int | None = None
    """What it may cost, in millionths; when that is spent, nothing more of it begins."""
    spent: int = 0
    submitted_by: str | None = None
    """Who entered it, if somebody said so."""
    was_seq: int = 0
    """`last_seq` as it was loaded: the version of the job that a transaction has seen. Not a column."""
    was_plain: tuple[object, ...] = ()
    """How the fields stood that seldom change. Not a column either."""

    def note(self) -> None:
        """Remember how the job stands now, in the database and here."""
        self.was_seq = self.last_seq
        self.was_plain = self.plain()

    def plain(self) -> tuple[object, ...]:
        return (
            self.state, self.cascades, self.deadline_at, self.finished_at, self.failure_detected_at, self.total,
            self.failed, self.tolerated, self.skipped, self.cancelled, self.turns, self.budget, self.spent,
        )  # fmt: skip


class Task(msgspec.Struct, gc=False):
    """One node of a job. The last three fields are not columns; `was` is how it stood when it was loaded."""

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
    input: bytes
    state: str
    attempt: int = 0
    attempt_base: int = 0
    """Attempts used up before the last manual retry: the policy counts from here."""
    crashes: int = 0
    open_dependencies: int = 0
    resuming: bool = False
    """It was waiting inside its function: the next claim goes on with the same attempt."""
    skipped_by_dependency: bool = False
    output: bytes | None = None
    error: bytes | None = None
    started_at: int | None = None
    finished_at: int | None = None
    ready_at: int | None = None
    """Since when it is pending; part of its key in the queue."""
    worker: str | None = None
    token: str | None = None
    max_attempts: int = 1
    timeout_at: int | None = None
    was: str = ""
    was_ready_at: int | None = None
    dependants: Sequence[str] | None = None
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
    document: bytes
    """What is asked, and the decisions so far."""
    payload: bytes | None
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
    given: bytes | None = None
    """The payload itself, where it is known. Not a column."""

    @property
    def place(self) -> tuple[str, str, str]:
        return (self.job_id, self.task_id, self.key)


class Signal(msgspec.Struct, gc=False):
    """A signal that was sent to a job, and whether a task has got it."""

    job_id: str
    name: str
    signal_id: str
    payload: bytes
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
    output: bytes
    recorded_at: int
