"""What callers see of jobs, tasks and events: plain values with the wire names of the JSON API."""

from __future__ import annotations

import datetime
import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostinato import errors
from ostinato.core import audit_chain, codec, events, executions, ledger, moments, rows, states, usage
from ostinato.store import store as store_


class UsageView(msgspec.Struct, frozen=True, rename="camel"):
    """What was used up; `cost` is in whatever currency prices are in."""

    cost: float
    calls: int
    input_tokens: int
    output_tokens: int


class UsageRow(UsageView, frozen=True, rename="camel"):
    """What was used up on one day, under one name, or by one function."""

    key: str


class BudgetView(msgspec.Struct, frozen=True, rename="camel"):
    """What a tenant may spend in a day and in a month of UTC (null is as much as it likes), and what it has spent."""

    day: float | None
    month: float | None
    spent_today: float
    spent_this_month: float


class RetentionView(msgspec.Struct, frozen=True, rename="camel"):
    """For how many seconds a tenant keeps finished jobs, and after that their idempotency keys; null is for ever."""

    jobs: int | None
    keys: int | None


class UsageReport(msgspec.Struct, frozen=True, rename="camel"):
    """What was used up from one day of UTC to another, both included; by name and function, the dearest first."""

    by: str
    from_: datetime.date = msgspec.field(name="from")
    to: datetime.date
    rows: list[UsageRow]
    total: UsageView


class JobView(msgspec.Struct, frozen=True, rename="camel"):
    job_id: str
    name: str
    state: str
    priority: int
    request_id: str | None
    correlation_id: str
    tags: dict[str, str]
    created_at: datetime.datetime
    finished_at: datetime.datetime | None
    failure_detected_at: datetime.datetime | None
    deadline_at: datetime.datetime | None
    total_tasks: int
    task_statuses: dict[str, int]
    spent: float
    """What its attempts have cost so far."""
    budget: float | None
    """What it may cost; when that is spent, nothing more of it begins."""


class TaskView(msgspec.Struct, frozen=True, rename="camel"):
    task_id: str
    name: str
    state: str
    attempt: int
    position: int
    queue: str
    priority: int
    optional: bool
    on_dependency_failure: str
    open_dependencies: int
    error: Any
    started_at: datetime.datetime | None
    finished_at: datetime.datetime | None


class AttemptView(msgspec.Struct, frozen=True, rename="camel"):
    """One try; `key` is how history names it, `{job}:{task}:{attempt}`. `worker` is the last one that had it."""

    key: str
    attempt: int
    outcome: str
    started_at: datetime.datetime
    ended_at: datetime.datetime | None
    error: Any
    worker: str | None
    usage: UsageView | None = None
    """None if it has not said that it used anything up."""


class StepView(msgspec.Struct, frozen=True, rename="camel"):
    """A finished step. Large outputs are not shown; `size` is in bytes."""

    key: str
    output: Any
    recorded_at: datetime.datetime
    size: int


class TaskDetail(msgspec.Struct, frozen=True, rename="camel"):
    task: TaskView
    depends_on: list[str]
    input: Any
    output: Any
    attempts: list[AttemptView]
    steps: list[StepView]
    more_steps: bool
    """There are more steps than are listed."""
    waits_for: dict[str, Any] | None
    usage: UsageView
    """Of all attempts."""


class DeadLetterDepth(msgspec.Struct, frozen=True, rename="camel"):
    """How many tasks have failed for good, and whether these are more than the threshold."""

    depth: int
    threshold: int
    alarm: bool


class LetterKey(msgspec.Struct, frozen=True, rename="camel"):
    job_id: str
    task_id: str


class Redriven(msgspec.Struct, frozen=True, rename="camel"):
    """What runs again (with `dry_run`: would): how many, and the first of them."""

    dry_run: bool
    count: int
    letters: list[LetterKey]


class EventView(msgspec.Struct, frozen=True, rename="camel"):
    job_id: str
    seq: int
    type: str
    at: datetime.datetime
    task_id: str | None
    attempt: int | None
    correlation_id: str
    properties: dict[str, Any]


class ExecutionView(msgspec.Struct, frozen=True, rename="camel"):
    """An execution in the index: a job, or one that was reported from outside."""

    execution_arn: str
    agent_name: str
    state_machine_arn: str
    execution_name: str
    status: str
    start_date: datetime.datetime
    stop_date: datetime.datetime | None
    duration_seconds: float | None
    correlation_id: str | None
    tags: dict[str, str]
    indexed_at: datetime.datetime
    """When it last changed here."""


class CountView(msgspec.Struct, frozen=True, rename="camel"):
    """How many there are of one status, or of one day."""

    key: str
    count: int


class AuditEntryView(msgspec.Struct, frozen=True, rename="camel"):
    """Who did what; `hash` chains it to the entry before."""

    seq: int
    at: datetime.datetime
    actor: str
    action: str
    target: str
    request_id: str | None
    details: Any
    hash: str
    outcome: str
    """`refused`, or `accepted` if nothing refused it."""
    refuses: int | None
    """The entry that this one says was refused."""


def moment(micros: int | None) -> datetime.datetime | None:
    return None if micros is None else moments.moment(micros)


def usage_view(used: usage.Usage) -> UsageView:
    return UsageView(usage.money(used.cost), used.calls, used.input_tokens, used.output_tokens)


def usage_row(key: str, used: usage.Usage) -> UsageRow:
    return UsageRow(usage.money(used.cost), used.calls, used.input_tokens, used.output_tokens, key)


def job_view(row: rows.Job) -> JobView:
    return JobView(
        job_id=row.job_id,
        name=row.name,
        state=row.state,
        priority=row.priority,
        request_id=row.request_id,
        correlation_id=row.correlation_id,
        tags=codec.decode(row.tags),
        created_at=moments.moment(row.created_at),
        finished_at=moment(row.finished_at),
        failure_detected_at=moment(row.failure_detected_at),
        deadline_at=moment(row.deadline_at),
        total_tasks=row.total,
        task_statuses=ledger.Ledger.statuses(row),
        spent=usage.money(row.spent),
        budget=None if row.budget is None else usage.money(row.budget),
    )


def task_view(row: rows.Task) -> TaskView:
    return TaskView(
        task_id=row.task_id,
        name=row.name,
        state=row.state,
        attempt=row.attempt,
        position=row.position,
        queue=row.queue,
        priority=row.priority,
        optional=bool(row.optional),
        on_dependency_failure=row.policy,
        open_dependencies=row.open_dependencies,
        error=None if row.error is None else codec.decode(row.error),
        started_at=moment(row.started_at),
        finished_at=moment(row.finished_at),
    )


def event_view(event: events.Event, correlation_id: str) -> EventView:
    return EventView(
        job_id=event.job_id,
        seq=event.seq,
        type=event.type,
        at=moments.moment(event.at),
        task_id=event.task_id,
        attempt=event.attempt,
        correlation_id=correlation_id,
        properties=codec.decode(event.data),
    )


def execution_view(one: executions.Execution) -> ExecutionView:
    return ExecutionView(
        execution_arn=one.execution_arn,
        agent_name=one.agent_name,
        state_machine_arn=one.state_machine_arn,
        execution_name=one.execution_name,
        status=one.status,
        start_date=moments.moment(one.start_at),
        stop_date=moment(one.stop_at),
        duration_seconds=one.duration_seconds,
        correlation_id=one.correlation_id,
        tags=one.tags,
        indexed_at=moments.moment(one.indexed_at),
    )


def audit_entry_view(entry: audit_chain.Entry, *, refused: bool = False) -> AuditEntryView:
    return AuditEntryView(
        seq=entry.seq,
        at=moments.moment(entry.at),
        actor=entry.actor,
        action=entry.action,
        target=entry.target,
        request_id=entry.request_id,
        details=codec.decode(entry.details),
        hash=entry.hash.hex(),
        outcome="refused" if refused else "accepted",
        refuses=entry.refuses,
    )


async def task_detail(target: store_.Store, tenant: str, job_id: str, task_id: str) -> TaskDetail:
    story = await target.story(tenant, job_id, task_id)
    return TaskDetail(
        task=task_view(story.task),
        depends_on=story.dependencies,
        input=codec.decode(story.input),
        output=None if story.output is None else codec.decode(story.output),
        attempts=[_with_usage(attempt, story.usage) for attempt in attempts(story.events)],
        steps=[
            StepView(
                step.key,
                None if step.output is None else codec.decode(step.output),
                moments.moment(step.recorded_at),
                step.size,
            )
            for step in story.steps
        ],
        more_steps=story.more_steps,
        waits_for=None if story.timer is None else _waits_for(story.timer),
        usage=usage_view(functools.reduce(operator.add, story.usage.values(), usage.Usage())),
    )


def _with_usage(attempt: AttemptView, used: Mapping[int, usage.Usage]) -> AttemptView:
    if attempt.attempt not in used:
        return attempt
    return msgspec.structs.replace(attempt, usage=usage_view(used[attempt.attempt]))


def _waits_for(timer: rows.Timer) -> dict[str, Any]:
    due = moment(timer.due_at)
    return {"kind": timer.kind, "name": timer.name or None, "dueAt": None if due is None else due.isoformat()}


def attempts(stream: Sequence[events.Event]) -> list[AttemptView]:
    """The tries of one task, from its events. Waiting inside the function does not end a try."""
    found: dict[int, AttemptView] = {}
    for event in stream:
        attempt = event.attempt
        if attempt is None:
            continue
        if event.type == events.TASK_PROCESSING:
            found[attempt] = _started(event, attempt, found.get(attempt))
        elif event.type == events.TASK_RELEASED:
            found.pop(attempt + 1, None)
        elif attempt in found and event.type in events.ATTEMPT_ENDS:
            if found[attempt].ended_at is not None and event.type in (events.TASK_CANCELLED, events.TASK_SKIPPED):
                continue  # it had failed: what was given up is the wait for the next one
            found[attempt] = msgspec.structs.replace(
                found[attempt],
                outcome=events.ATTEMPT_ENDS[event.type],
                ended_at=moments.moment(event.at),
                error=codec.decode(event.data).get("error"),
            )
    return list(found.values())


def _started(event: events.Event, attempt: int, before: AttemptView | None) -> AttemptView:
    worker = codec.decode(event.data).get("worker")
    if before is not None:
        return msgspec.structs.replace(before, worker=worker)
    key = f"{event.job_id}:{event.task_id}:{attempt}"
    return AttemptView(key, attempt, "processing", moments.moment(event.at), None, None, worker)


def job_error(row: rows.Job, failures: Sequence[tuple[str, str, Any]]) -> errors.JobFailed:
    """The exception for a job that did not complete: what failed and why, and what stays blocked."""
    failed = {task_id: error or {"type": state} for task_id, state, error in failures if state != states.BLOCKED}
    blocked = [task_id for task_id, state, _ in failures if state == states.BLOCKED]
    kind = _ERRORS.get(row.state, errors.JobFailed)
    parts = [f"{task_id}: {e.get('type')}: {e.get('message', '')}".rstrip(": ") for task_id, e in failed.items()]
    message = f"job {row.job_id!r} ({row.name}) is {row.state}"
    if row.state == states.FAILED and parts:
        more = f" and {len(parts) - 3} more" if len(parts) > 3 else ""
        message += "; failed: " + "; ".join(parts[:3]) + more
    if blocked:
        message += f"; blocked: {', '.join(blocked[:5])}" + (" …" if len(blocked) > 5 else "")
    return kind(message, job_id=row.job_id, state=row.state, failed=failed, blocked=blocked)


_ERRORS = {states.CANCELLED: errors.JobCancelled, states.TIMED_OUT: errors.JobTimedOut}
