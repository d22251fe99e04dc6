"""`ostinato jobs`: submit them, look at them, stop them and take them up again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.parameters import Group
from ostinato.cli.settings import OF_APPLICATION_IF_ANY, Settings, command

if TYPE_CHECKING:
    import datetime

    from ostinato import views
    from ostinato.core import commands

group = typer.Typer(cls=Group, help="Submit, find, watch, cancel and resume jobs.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The id of the job.", show_default=False)]
Cursor = Annotated[str | None, typer.Option("--cursor", help="Go on where the page before ended.", metavar="CURSOR")]
Reason = Annotated[str | None, typer.Option("--reason", help="For the history.", metavar="TEXT")]


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="jobs")


@command(group, "submit", url=OF_APPLICATION_IF_ANY)
async def submit(
    settings: Settings,
    source: Annotated[str, typer.Argument(metavar="FILE", help="A job document, or a list of them; - is stdin.")],
    application: Annotated[
        str | None,
        typer.Option("--app", help="Where the functions are, if no worker knows them yet.", metavar="MODULE:APP"),
    ] = None,
) -> None:
    """Submit a job, or a list of jobs."""
    from ostinato.cli import loading, session

    found = loading.documents(source)
    given = None if application is None else loading.application(application)
    async with session.opened(settings, given) as app:
        submitted = await app.submit_many(found, actor=session.actor())
    if settings.json:
        answer: Any = [{"jobId": job.job_id, "created": job.created} for job in submitted]
        output.document({"jobs": answer})
    for job in submitted if not settings.json else ():
        output.say(job.job_id if job.created else f"{job.job_id} (was there before, by its idempotency key)")


@command(group, "ls")
async def ls(
    settings: Settings,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="Only jobs in this state, or these.", metavar="STATE")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Only jobs of this name.", metavar="NAME")] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only jobs with this tag.", metavar="KEY[=VALUE]")] = None,
    correlation_id: Annotated[
        str | None, typer.Option("--correlation-id", help="Only jobs with this correlation id.", metavar="ID")
    ] = None,
    request_id: Annotated[
        str | None, typer.Option("--request-id", help="Only jobs of this request.", metavar="ID")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only jobs created then or later.", metavar="TIME")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Only jobs created before.", metavar="TIME")] = None,
    engine: Annotated[
        bool, typer.Option("--with-engine/--without-engine", help="Also the engine's own: of rules and gates.")
    ] = True,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=500)] = 50,
    cursor: Cursor = None,
) -> None:
    """List jobs, newest first."""
    from ostinato.cli import session, times

    async with session.opened(settings) as app:
        found = await app.jobs(
            state=state,
            name=name,
            tag=tag,
            correlation_id=correlation_id,
            request_id=request_id,
            created_from=times.read(since, "--since"),
            created_until=times.read(until, "--until"),
            include_engine=engine,
            most=limit,
            cursor=cursor,
        )
        now = session.now(app)
    if settings.json:
        output.document({"jobs": found, "cursor": found.cursor})
        return
    lines = [_line(job, now) for job in found]
    output.table(["job id", "name", "state", "tasks", "created", "took"], lines, none="no jobs")
    if found.cursor is not None:
        output.note(f"more: --cursor {found.cursor}")


def _line(job: views.JobView, now: datetime.datetime) -> list[Any]:
    tasks = f"{job.task_statuses.get('completed', 0):,}/{job.total_tasks:,}"
    if failed := job.task_statuses.get("failed", 0):
        tasks += f", {failed:,} failed"
    took = output.took(job.created_at, job.finished_at, now)
    return [job.job_id, job.name, output.state(job.state), tasks, output.ago(job.created_at, now), took]


@command(group, "show")
async def show(
    settings: Settings,
    job_id: JobId,
    state: Annotated[str | None, typer.Option("--state", help="Only tasks in this state.", metavar="STATE")] = None,
    after: Annotated[int, typer.Option("--after", help="Only tasks after this position.", metavar="N")] = -1,
    limit: Annotated[int, typer.Option("--limit", help="At most this many tasks.", min=1, max=100_000)] = 100,
) -> None:
    """Show one job and its tasks."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        job = await app.job(job_id)
        info = await job.info()
        found = await job.tasks(state=state, after=after, most=limit)
        now = session.now(app)
    if settings.json:
        output.document({"job": info, "tasks": found})
        return
    _show_job(info, now)
    output.say("")
    lines = [
        [t.task_id, t.name, output.state(t.state), _attempt(t), _took(t, now), output.reason(t.error)] for t in found
    ]
    output.table(["task id", "function", "state", "attempt", "took", "error"], lines, none="no tasks")
    if len(found) == limit and found[-1].position + 1 < info.total_tasks:
        output.note(f"more: --after {found[-1].position}")


def _show_job(info: views.JobView, now: datetime.datetime) -> None:
    output.fields(
        [
            ("job", info.job_id),
            ("name", info.name),
            ("state", output.state(info.state)),
            ("tasks", f"{info.total_tasks:,}: {output.counts(info.task_statuses)}"),
            ("created", output.ago(info.created_at, now)),
            ("finished", output.ago(info.finished_at, now)),
            ("took", output.took(info.created_at, info.finished_at, now)),
            ("failure detected", output.ago(info.failure_detected_at, now)),
            ("deadline", output.ago(info.deadline_at, now)),
            ("request", info.request_id),
            ("correlation", info.correlation_id),
            ("priority", str(info.priority) if info.priority else ""),
            ("spent", output.spent(info.spent, info.budget)),
            ("tags", ", ".join(f"{key}={value}" for key, value in info.tags.items())),
        ]
    )


def _attempt(task: views.TaskView) -> str:
    return str(task.attempt) if task.attempt else ""


def _took(task: views.TaskView, now: datetime.datetime) -> str:
    return output.took(task.started_at, task.finished_at, now)


@command(group, "watch")
async def watch(settings: Settings, job_id: JobId) -> int:
    """Watch a job until it ends. The exit code is 0 if it completed."""
    from ostinato.cli import failures, session, watching

    async with session.opened(settings) as app:
        job = await app.job(job_id)
        end = await watching.watch(app, job, as_json=settings.json)
    return failures.OK if end.state == "completed" else failures.FAILED


@command(group, "cancel")
async def cancel(settings: Settings, job_id: JobId, reason: Reason = None) -> None:
    """Stop a job. The answer says who won: the cancel, or the end of the job."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        job = await app.job(job_id)
        state = await job.cancel(reason, actor=session.actor())
    if settings.json:
        output.document({"jobId": job_id, "state": state})
    else:
        output.say(f"job {job_id} is cancelled" if state == "cancelled" else f"job {job_id} had already ended: {state}")


@command(group, "resume")
async def resume(
    settings: Settings,
    job_id: JobId,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run again.")] = False,
    new_input: Annotated[
        list[str] | None, typer.Option("--input", help="Another input for a task.", metavar="TASK=JSON")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option("--deadline", help="A new deadline, in seconds from now.", metavar="SECONDS")
    ] = None,
) -> None:
    """Run again what failed or was cancelled.

    Nothing that completed runs again."""
    from ostinato.cli import session

    inputs = _read_inputs(new_input or [])
    async with session.opened(settings) as app:
        job = await app.job(job_id)
        plan = await job.resume(inputs=inputs, deadline=deadline, dry_run=dry_run, actor=session.actor())
    if settings.json:
        output.document({"jobId": job_id, "dryRun": dry_run, "plan": plan})
    else:
        _show_plan(plan, dry_run)


def _read_inputs(texts: list[str]) -> dict[str, Any]:
    from ostinato import errors

    inputs: dict[str, Any] = {}
    for task_id, value in map(_read_input, texts):
        if task_id in inputs:
            raise errors.InvalidInput(f"--input gives two inputs for task {task_id!r}: give one")
        inputs[task_id] = value
    return inputs


def _read_input(text: str) -> tuple[str, Any]:
    from ostinato import errors
    from ostinato.cli import loading

    task_id, separator, value = text.partition("=")
    if not separator:
        raise errors.InvalidInput(f"--input {text!r} must be of the form TASK=JSON")
    return task_id, loading.value(value, f"the input of task {task_id!r}")


def _show_plan(plan: commands.ResumePlan, dry_run: bool) -> None:
    output.fields(
        [
            ("would run again" if dry_run else "running again", _some(plan.rerun)),
            ("reused", _some(plan.reused)),
            ("waiting", _some(plan.waiting)),
        ]
    )
    if plan.undone:
        output.note(f"not run again: {_some(plan.undone)}, which {_some(plan.undone_by)} has begun to compensate")


def _some(ids: list[str], most: int = 10) -> str:
    more = f" and {len(ids) - most:,} more" if len(ids) > most else ""
    return (", ".join(ids[:most]) + more) or "nothing"
