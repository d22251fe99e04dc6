"""`ostinato tasks`: look at one task of a job, ask why it is not running, and retry, skip or cancel it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.jobs import JobId, Reason
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    import datetime

    from ostinato import views

group = typer.Typer(cls=Group, help="Show, explain, retry, skip and cancel single tasks.", no_args_is_help=True)

TaskId = Annotated[str, typer.Argument(metavar="TASK", help="The id of the task.", show_default=False)]


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="tasks")


@command(group, "show")
async def show(settings: Settings, job_id: JobId, task_id: TaskId) -> None:
    """Show one task with its input, output, attempts and steps."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        detail = await (await app.job(job_id)).task(task_id)
        now = session.now(app)
    if settings.json:
        output.document(detail)
    else:
        show_detail(detail, now)


@command(group, "why")
async def why(settings: Settings, job_id: JobId, task_id: TaskId) -> None:
    """Say why a task is not running: what it waits for, or how it ended."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        answer = await (await app.job(job_id)).why(task_id)
    if settings.json:
        output.document(answer)
    else:
        output.say(f"{answer.code}: {answer.sentence}")


def show_detail(detail: views.TaskDetail, now: datetime.datetime) -> None:
    task = detail.task
    output.fields(
        [
            ("task", task.task_id),
            ("function", task.name),
            ("state", output.state(task.state)),
            ("waits for", _waits_for(detail.waits_for, now)),
            ("depends on", ", ".join(detail.depends_on)),
            ("queue", task.queue),
            ("started", output.ago(task.started_at, now)),
            ("took", output.took(task.started_at, task.finished_at, now)),
            ("error", output.reason(task.error, 1000)),
            ("input", output.pretty(detail.input)),
            ("output", None if task.state != "completed" else output.pretty(detail.output)),
        ]
    )
    if detail.attempts:
        output.say("")
        _show_attempts(detail, now)
    if detail.steps:
        output.say("")
        steps = [[step.key, _output(step), output.ago(step.recorded_at, now)] for step in detail.steps]
        output.table(["step", "output", "recorded"], steps, none="")
        if detail.more_steps:
            output.note(f"only the first {len(detail.steps):,} steps are shown")


def _output(step: views.StepView) -> str:
    if step.output is None and step.size > len("null"):
        return f"{step.size:,} bytes"
    return output.short(step.output)


def _show_attempts(detail: views.TaskDetail, now: datetime.datetime) -> None:
    lines: list[list[Any]] = [
        [
            str(a.attempt),
            output.state(a.outcome),
            output.ago(a.started_at, now),
            output.took(a.started_at, a.ended_at, now),
            a.worker or "",
            output.reason(a.error),
        ]
        for a in detail.attempts
    ]
    output.table(["attempt", "outcome", "started", "took", "worker", "error"], lines, none="")


def _waits_for(waiting: dict[str, Any] | None, now: datetime.datetime) -> str:
    import datetime as clock

    from ostinato.cli import watching

    if waiting is None:
        return ""
    due = None if waiting["dueAt"] is None else clock.datetime.fromisoformat(waiting["dueAt"])
    return watching.waits_for(waiting["kind"], waiting["name"] or "", due, now)


@command(group, "retry")
async def retry(
    settings: Settings,
    job_id: JobId,
    task_id: TaskId,
    new_input: Annotated[str | None, typer.Option("--input", help="Another input.", metavar="JSON")] = None,
) -> None:
    """Run a task again, with all its attempts."""
    from ostinato.cli import loading, session

    given = None if new_input is None else loading.value(new_input, f"the input of task {task_id!r}")
    async with session.opened(settings) as app:
        job = await app.job(job_id)
        await job.retry_task(task_id, input=given, actor=session.actor())
        task = await job.task(task_id)
    _answer(settings, job_id, task_id, task.task.state)


@command(group, "skip")
async def skip(settings: Settings, job_id: JobId, task_id: TaskId, reason: Reason = None) -> None:
    """Go on without a task."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        job = await app.job(job_id)
        state = await job.skip_task(task_id, reason, actor=session.actor(), called=session.user())
    _answer(settings, job_id, task_id, state)


@command(group, "cancel")
async def cancel(settings: Settings, job_id: JobId, task_id: TaskId, reason: Reason = None) -> None:
    """Stop a task. To those that depend on it, it has failed."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        job = await app.job(job_id)
        state = await job.cancel_task(task_id, reason, actor=session.actor(), called=session.user())
    _answer(settings, job_id, task_id, state)


def _answer(settings: Settings, job_id: str, task_id: str, state: str) -> None:
    if settings.json:
        output.document({"jobId": job_id, "taskId": task_id, "state": state})
    else:
        output.say(f"task {task_id} of job {job_id} is {state}")
