"""What a stream of events says: the state of a job and of its tasks, rebuilt from nothing else.

The audit compares it with the rows. It shares no code with the ledger, which wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ostinato.core import codec, events, states


class FoldedTask(msgspec.Struct):
    task_id: str
    name: str
    depends_on: list[str]
    state: str = states.BLOCKED
    attempt: int = 0
    output: Any = None
    completed: bool = False
    ended: bool = False
    """It has ended at least once."""
    due_at: int | None = None
    steps: set[str] = msgspec.field(default_factory=lambda: set[str]())


class Broken(msgspec.Struct, frozen=True):
    """Something in a stream that must never be there."""

    invariant: str
    task_id: str | None
    message: str


class FoldedJob(msgspec.Struct):
    name: str = ""
    state: str = ""
    correlation_id: str = ""
    tags: dict[str, str] = msgspec.field(default_factory=lambda: dict[str, str]())
    created_at: int = 0
    finished_at: int | None = None
    last_seq: int = 0
    failure_detected: bool = False
    gate_opened: bool = False
    tasks: dict[str, FoldedTask] = msgspec.field(default_factory=lambda: dict[str, FoldedTask]())
    broken: list[Broken] = msgspec.field(default_factory=lambda: list[Broken]())


def fold(stream: Iterable[events.Event]) -> FoldedJob:
    job = FoldedJob()
    for event in stream:
        job.broken.extend(_sequence(job, event))
        if event.type in _JOB_EVENTS:
            job.broken.extend(_job_event(job, event))
        elif event.type == events.STEP_COMPLETED:
            job.broken.extend(_step(job, event))
        elif event.type == events.GATE_OPENED:
            if job.gate_opened:
                job.broken.append(Broken("I3", None, f"the gate opens a second time, in event {event.seq}"))
            job.gate_opened = True
        elif event.type in events.TASK_STATE_AFTER:
            job.broken.extend(_task_event(job, event))
    return job


_JOB_EVENTS = {*events.JOB_STATE_AFTER, events.JOB_TASKS_ADDED, events.JOB_FAILURE_DETECTED}


def _sequence(job: FoldedJob, event: events.Event) -> Iterator[Broken]:
    if event.seq != job.last_seq + 1:
        yield Broken("I7", event.task_id, f"event {event.seq} follows event {job.last_seq}")
    if (event.type == events.JOB_CREATED) != (job.last_seq == 0):
        yield Broken("I1", event.task_id, f"{event.type} is event {event.seq}")
    job.last_seq = event.seq


def _job_event(job: FoldedJob, event: events.Event) -> Iterator[Broken]:
    data = codec.decode(event.data)
    for spec in data.get("newTasks" if event.type == events.JOB_TASKS_ADDED else "tasks", ()):
        if isinstance(spec, dict) and event.type in (events.JOB_CREATED, events.JOB_TASKS_ADDED):
            known: dict[str, Any] = dict(spec)  # pyright: ignore[reportUnknownArgumentType]
            task = FoldedTask(known["taskId"], known["name"], known.get("dependsOn", []))
            job.tasks[task.task_id] = task
    if event.type == events.JOB_CREATED:
        job.name, job.correlation_id, job.tags = data["name"], data["correlationId"], data["tags"]
        job.created_at = event.at
    if event.type == events.JOB_FAILURE_DETECTED:
        if job.failure_detected:
            yield Broken("I3", None, f"Job Failure Detected a second time, in event {event.seq}")
        job.failure_detected = True
    if event.type == events.JOB_RESUMED:
        job.failure_detected = False
    new = events.JOB_STATE_AFTER.get(event.type)
    if new is None:
        return
    if job.state and job.state != new and new not in states.JOB_MOVES[job.state]:
        yield Broken("I10", None, f"event {event.seq} moves the job from {job.state} to {new}")
    if job.state == new and new in states.JOB_ENDED:
        yield Broken("I10", None, f"the job ends a second time, in event {event.seq}")
    job.state = new
    job.finished_at = event.at if new in states.JOB_ENDED else None


def _step(job: FoldedJob, event: events.Event) -> Iterator[Broken]:
    task = job.tasks.get(event.task_id or "")
    key = codec.decode(event.data)["key"]
    if task is None:
        yield Broken("I8", event.task_id, f"event {event.seq} is about a task that nobody added")
        return
    if key in task.steps:
        yield Broken("I5", task.task_id, f"step {key!r} was recorded a second time, in event {event.seq}")
    task.steps.add(key)


def _task_event(job: FoldedJob, event: events.Event) -> Iterator[Broken]:
    task = job.tasks.get(event.task_id or "")
    new = events.TASK_STATE_AFTER[event.type]
    if task is None:
        yield Broken("I8", event.task_id, f"event {event.seq} is about a task that nobody added")
        return
    if job.state != states.RUNNING:
        yield Broken("I10", task.task_id, f"event {event.seq} ({event.type}) comes while the job is {job.state}")
    if task.completed and new != states.COMPLETED:
        yield Broken("I5", task.task_id, f"event {event.seq} ({event.type}) comes after the task completed")
    if new != task.state and new not in states.TASK_MOVES[task.state]:
        yield Broken("I10", task.task_id, f"event {event.seq} moves the task from {task.state} to {new}")
    data = codec.decode(event.data)
    early = task.due_at is not None and event.at < task.due_at and not {"by", "signal"} & data.keys()
    if new == states.PENDING and early:
        yield Broken("I11", task.task_id, f"event {event.seq} comes before it was due")
    if new == states.PENDING and task.state == states.BLOCKED:
        for up in task.depends_on:
            if up in job.tasks and not job.tasks[up].ended:
                yield Broken("I8", task.task_id, f"event {event.seq} comes before {up!r} has ended")
    task.ended = task.ended or new in states.TASK_ENDED
    task.due_at = data.get("dueAt") if new == states.WAITING else None
    if event.type == events.TASK_COMPLETED:
        if task.completed:
            yield Broken("I4", task.task_id, f"the task completes a second time, in event {event.seq}")
        task.completed = True
        task.output = data["output"]
    task.state = new
    task.attempt = event.attempt or 0
