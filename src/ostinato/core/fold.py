"""What a stream of events says: the state of a job and of its tasks, rebuilt from nothing else.

The audit compares it with the rows. It shares no code with the ledger, which wrote them.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from ostinato.core import codec, events, graph, states, usage

UNKNOWN: Final = -1
"""A moment that the events do not tell: those of earlier versions say less."""


class Awaits(msgspec.Struct, frozen=True):
    """The timer of a waiting task, as its event describes it."""

    kind: str
    name: str
    key: str
    due_at: int | None


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
    awaits: Awaits | None = None
    """What it waits for, while it is waiting; None if the event does not say."""
    ended_at: int | None = None
    """When it ended, while it has."""
    asked: dict[str, Any] = msgspec.field(default_factory=lambda: dict[str, Any]())
    """What the columns of its row say that nothing changes."""
    input: dict[str, Any] | None = None
    """None if the events do not say it, or no longer: it may be replaced when a task is run again."""
    error: Any = None
    """Of its last failure for good."""
    steps: set[str] = msgspec.field(default_factory=lambda: set[str]())
    usage: dict[int, usage.Usage] = msgspec.field(default_factory=lambda: dict[int, usage.Usage]())
    """By attempt."""
    asks: FoldedApproval | None = None
    """What it waits for people to decide."""


class FoldedApproval(msgspec.Struct):
    key: str
    quorum: int
    requested_at: int
    submitted_by: str | None
    due_at: int | None
    approval: dict[str, Any]
    """How people are asked, and who may decide, as the event tells it."""
    state: str = "waiting"
    escalated: bool = False
    made: list[tuple[str, str]] = msgspec.field(default_factory=lambda: list[tuple[str, str]]())
    """(who, what) of all decisions, and in `counted` of those since what is asked was last edited."""
    counted: list[tuple[str, str]] = msgspec.field(default_factory=lambda: list[tuple[str, str]]())


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
    spent: int = 0
    budget: int | None = None
    asked: dict[str, Any] = msgspec.field(default_factory=lambda: dict[str, Any]())
    """What the columns of its row say that nothing changes; without those that the events do not mention."""
    deadline_at: int | None = UNKNOWN
    signals: dict[tuple[str, str], bool] = msgspec.field(default_factory=lambda: dict[tuple[str, str], bool]())
    """By name and id, in the order of their arrival: whether a task has taken it."""
    untaken: dict[str, collections.deque[str]] = msgspec.field(
        default_factory=lambda: dict[str, collections.deque[str]]()
    )
    """By name, the ids of the signals that no task has taken yet, oldest first."""
    decided: list[tuple[int, str]] = msgspec.field(default_factory=lambda: list[tuple[int, str]]())
    """When people decided, and who."""
    gate_reset: bool = False
    tasks: dict[str, FoldedTask] = msgspec.field(default_factory=lambda: dict[str, FoldedTask]())
    approvals: dict[tuple[str, str], FoldedApproval] = msgspec.field(
        default_factory=lambda: dict[tuple[str, str], FoldedApproval]()
    )
    """By task and key, as they were asked last."""
    broken: list[Broken] = msgspec.field(default_factory=lambda: list[Broken]())


def fold(stream: Iterable[events.Event]) -> FoldedJob:
    job = FoldedJob()
    for event in stream:
        job.broken.extend(_sequence(job, event))
        if event.type in _JOB_EVENTS:
            job.broken.extend(_job_event(job, event))
        elif event.type == events.STEP_COMPLETED:
            job.broken.extend(_step(job, event))
        elif event.type == events.SIGNAL_RECEIVED:
            data = codec.decode(event.data)
            job.signals[(data["name"], data["signalId"])] = False
            job.untaken.setdefault(data["name"], collections.deque()).append(data["signalId"])
        elif event.type == events.GATE_RESET:
            job.gate_reset = True
        elif event.type in _APPROVAL_EVENTS:
            job.broken.extend(_approval_event(job, event))
        elif event.type == events.GATE_OPENED:
            if job.gate_opened:
                job.broken.append(Broken("I3", None, f"the gate opens a second time, in event {event.seq}"))
            job.gate_opened = True
        elif event.type == events.BUDGET_CHANGED:
            job.budget = _micros(codec.decode(event.data)["budget"])
        elif event.type == events.USAGE_RECORDED:
            job.broken.extend(_usage(job, event))
        elif event.type in events.TASK_STATE_AFTER:
            job.broken.extend(_task_event(job, event))
    return job


_APPROVAL_EVENTS = {
    events.APPROVAL_REQUESTED,
    events.APPROVAL_DECIDED,
    events.APPROVAL_ESCALATED,
    events.APPROVAL_EXPIRED,
}
_JOB_EVENTS = {*events.JOB_STATE_AFTER, events.JOB_TASKS_ADDED, events.JOB_FAILURE_DETECTED}
_ASKED = {
    "name": "name",
    "priority": "priority",
    "requestId": "request_id",
    "correlationId": "correlation_id",
    "maxConcurrency": "max_parallel",
    "idempotencyKey": "idempotency_key",
}
"""The columns of a job by what its first event calls them."""


def _sequence(job: FoldedJob, event: events.Event) -> Iterator[Broken]:
    if event.seq != job.last_seq + 1:
        yield Broken("I7", event.task_id, f"event {event.seq} follows event {job.last_seq}")
    if (event.type == events.JOB_CREATED) != (job.last_seq == 0):
        yield Broken("I1", event.task_id, f"{event.type} is event {event.seq}")
    job.last_seq = event.seq


def _job_event(job: FoldedJob, event: events.Event) -> Iterator[Broken]:
    data = codec.decode(event.data)
    if event.type == events.JOB_CREATED:
        job.name, job.correlation_id, job.tags = data["name"], data["correlationId"], data["tags"]
        job.created_at = event.at
        job.budget = _micros(data.get("budget"))
        job.asked = {column: data[field] for field, column in _ASKED.items() if field in data}
        job.asked |= {"created_at": event.at, "submitted_by": data.get("actor")}
        job.deadline_at = data.get("deadlineAt")
    if event.type in (events.JOB_CREATED, events.JOB_TASKS_ADDED):
        for spec in data.get("tasks" if event.type == events.JOB_CREATED else "newTasks", ()):
            job.tasks[spec["taskId"]] = _added(job, spec)
    if event.type == events.JOB_FAILURE_DETECTED:
        if job.failure_detected:
            yield Broken("I3", None, f"Job Failure Detected a second time, in event {event.seq}")
        job.failure_detected = True
    if event.type == events.JOB_RESUMED:
        job.failure_detected = False
        job.deadline_at = data.get("deadlineAt", UNKNOWN)
    new = events.JOB_STATE_AFTER.get(event.type)
    if new is None:
        return
    if job.state and job.state != new and new not in states.JOB_MOVES[job.state]:
        yield Broken("I10", None, f"event {event.seq} moves the job from {job.state} to {new}")
    if job.state == new and new in states.JOB_ENDED:
        yield Broken("I10", None, f"the job ends a second time, in event {event.seq}")
    job.state = new
    job.finished_at = event.at if new in states.JOB_ENDED else None


def _added(job: FoldedJob, spec: dict[str, Any]) -> FoldedTask:
    """Events have always recorded all of a task but what is as it is by default. Only to what is the engine's own is
    more given than they say."""
    task = FoldedTask(spec["taskId"], spec["name"], spec.get("dependsOn", []))
    task.asked = {
        "name": spec["name"],
        "queue": spec.get("queue") or "default",
        "policy": spec.get("onDependencyFailure", "block"),
        "optional": spec.get("optional", False),
    }
    if "priority" in spec or "priority" in job.asked:
        task.asked["priority"] = spec.get("priority", job.asked.get("priority"))
    if not job.name.startswith(graph.RESERVED_JOBS) and not task.name.startswith(graph.RESERVED):
        task.input = spec.get("input")
    return task


def _step(job: FoldedJob, event: events.Event) -> Iterator[Broken]:
    task = job.tasks.get(event.task_id or "")
    key = codec.decode(event.data)["key"]
    if task is None:
        yield Broken("I8", event.task_id, f"event {event.seq} is about a task that nobody added")
        return
    if key in task.steps:
        yield Broken("I5", task.task_id, f"step {key!r} was recorded a second time, in event {event.seq}")
    task.steps.add(key)
    if task.awaits is not None and (task.awaits.kind, task.awaits.key) == ("wait", key):
        _take_signal(job, task.awaits.name)


def _take_signal(job: FoldedJob, name: str) -> None:
    """A task gets the oldest signal of the name that it waits for."""
    if job.untaken.get(name):
        job.signals[(name, job.untaken[name].popleft())] = True


def _micros(amount: float | None) -> int | None:
    return None if amount is None else round(amount * usage.MICROS)


def _usage(job: FoldedJob, event: events.Event) -> Iterator[Broken]:
    task = job.tasks.get(event.task_id or "")
    data = codec.decode(event.data)
    used = usage.Usage(data["calls"], data["inputTokens"], data["outputTokens"], round(data["cost"] * usage.MICROS))
    job.spent += used.cost
    if task is None or event.attempt is None:
        yield Broken("I8", event.task_id, f"event {event.seq} is about a task that nobody added")
        return
    task.usage[event.attempt] = task.usage.get(event.attempt, usage.Usage()) + used


def _approval_event(job: FoldedJob, event: events.Event) -> Iterator[Broken]:
    task = job.tasks.get(event.task_id or "")
    if task is None:
        yield Broken("I8", event.task_id, f"event {event.seq} is about a task that nobody added")
        return
    data = codec.decode(event.data)
    if event.type == events.APPROVAL_REQUESTED:
        if task.asks is not None or task.state != states.WAITING:
            yield Broken("I3", task.task_id, f"event {event.seq} asks people while the task is {task.state}")
        quorum = data["approval"].get("quorum", 1)
        asks = FoldedApproval(data["key"], quorum, event.at, data["submittedBy"], data["dueAt"], data["approval"])
        task.asks = job.approvals[(task.task_id, asks.key)] = asks
        return
    asks = task.asks
    if asks is None or asks.key != data["key"]:
        yield Broken("I3", task.task_id, f"event {event.seq} ({event.type}) comes when nobody is asked")
        return
    if event.type == events.APPROVAL_DECIDED:
        yield from _decision(job, task, asks, event, data)
    elif asks.due_at is None or event.at < asks.due_at:
        yield Broken("I11", task.task_id, f"event {event.seq} ({event.type}) comes before it was due")
    elif event.type == events.APPROVAL_ESCALATED:
        asks.escalated, asks.due_at = True, data["dueAt"]
    else:
        asks.state = "expired" if data["onDeadline"] == "fail" else data["onDeadline"]
    if asks.state != "waiting":
        task.asks = None


def _decision(
    job: FoldedJob, task: FoldedTask, asks: FoldedApproval, event: events.Event, data: Any
) -> Iterator[Broken]:
    made = (data["by"], data["decision"])
    job.decided.append((event.at, data["by"]))
    if data.get("edited"):
        asks.counted = []
    if any(by == made[0] for by, _ in asks.counted):
        yield Broken("I3", task.task_id, f"{made[0]} decides a second time, in event {event.seq}")
    asks.made.append(made)
    asks.counted.append(made)
    if made[1] != "approve":
        asks.state = made[1]
    elif len({by for by, _ in asks.counted}) >= asks.quorum:
        asks.state = "approve"


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
    if task.asks is not None and new != states.WAITING:
        task.asks.state = "withdrawn"
        task.asks = None
    if _may_run_again(task.state, new, data):
        task.input = None
    task.ended = task.ended or new in states.TASK_ENDED
    waits = new == states.WAITING and data.get("kind") != "budget"  # which may be raised before there is a new one
    task.due_at = data.get("dueAt") if waits else None
    task.awaits = _awaited(event, data) if new == states.WAITING else None
    task.ended_at = event.at if new in states.TASK_ENDED else None
    if event.type == events.TASK_COMPLETED:
        if task.completed:
            yield Broken("I4", task.task_id, f"the task completes a second time, in event {event.seq}")
        task.completed = True
        task.output = data["output"]
    if event.type == events.TASK_FAILED:
        task.error = data.get("error")
    task.state = new
    task.attempt = event.attempt or 0


def _awaited(event: events.Event, data: dict[str, Any]) -> Awaits | None:
    kind = "retry" if event.type == events.TASK_RETRY_SCHEDULED else data.get("kind")
    if kind is None:
        return None
    name = data.get("scope" if kind == "budget" else "name")
    # (A task that waits for its turn may be told what it has waited for before.)
    own = kind != "turn"
    return Awaits(kind, (name or "") if own else "", data.get("key", "") if own else "", data.get("dueAt"))


def _may_run_again(old: str, new: str, data: dict[str, Any]) -> bool:
    """Whether somebody may have had a task run again, with another input that no event tells: it had ended, or was to
    be tried later. What is only due goes straight to the queue, and nobody is named."""
    waited = old == states.WAITING and (new in (states.WAITING, states.BLOCKED) or "by" in data)
    return waited or (old in states.TASK_ENDED and new not in states.TASK_ENDED)
