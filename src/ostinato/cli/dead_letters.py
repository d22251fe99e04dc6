"""`ostinato dead-letters`: what failed for good, and running it again."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ostinato.cli import output
from ostinato.cli.jobs import JobId
from ostinato.cli.settings import Settings, command
from ostinato.cli.tasks import TaskId, show_detail

if TYPE_CHECKING:
    from ostinato import app as app_
    from ostinato.store import reads

group = typer.Typer(help="See what failed for good, and run it again.", no_args_is_help=True)

PAGE = 1000
PREVIEWED = 20
FunctionName = Annotated[str | None, typer.Option("--name", help="Only of this function.", metavar="FUNCTION")]
OfJob = Annotated[str | None, typer.Option("--job", help="Only of this job.", metavar="JOB")]


@command(group, "ls")
async def ls(
    settings: Settings,
    name: FunctionName = None,
    job_id: OfJob = None,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=10_000)] = 50,
) -> None:
    """List dead letters, newest first."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        found = await app.dead_letters(name=name, job_id=job_id, most=limit)
        now = session.now(app)
    if settings.json:
        output.document({"deadLetters": [_document(letter) for letter in found]})
        return
    from ostinato import views

    lines = [
        [
            x.job_id,
            x.task_id,
            x.name,
            str(x.attempts),
            output.ago(views.moment(x.failed_at), now),
            output.reason(x.error),
        ]
        for x in found
    ]
    output.table(["job id", "task id", "function", "attempts", "failed", "error"], lines, none="no dead letters")


@command(group, "show")
async def show(settings: Settings, job_id: JobId, task_id: TaskId) -> None:
    """Show one dead letter: its input, its error and every attempt."""
    from ostinato import errors
    from ostinato.cli import session

    async with session.opened(settings) as app:
        detail = await (await app.job(job_id)).task(task_id)
        async for letter in _matching(app, None, job_id):
            if letter.task_id == task_id:
                break
        else:
            raise errors.NotFound(f"task {task_id!r} of job {job_id!r} is {detail.task.state}, not a dead letter")
        now = session.now(app)
    if settings.json:
        output.document(_document(letter) | {"detail": detail})
        return
    show_detail(detail, now)
    if trace := cast("dict[str, str]", letter.error or {}).get("traceback"):
        output.say("\n" + trace.rstrip())


@command(group, "redrive")
async def redrive(
    settings: Settings,
    job_id: Annotated[
        str | None, typer.Argument(metavar="[JOB TASK]", help="One dead letter.", show_default=False)
    ] = None,
    task_id: Annotated[str | None, typer.Argument(hidden=True)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    name: FunctionName = None,
    of_job: OfJob = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run again.")] = False,
) -> int:
    """Run dead letters again.

    One, those that match, or all; with their policy, their history and all their attempts."""
    from ostinato.cli import failures, session

    _check_choice((job_id, task_id), many=everything or name is not None or of_job is not None)
    async with session.opened(settings) as app:
        if job_id is not None and task_id is not None:
            chosen = [(job_id, task_id)]
        else:
            chosen = [(x.job_id, x.task_id) async for x in _matching(app, name, of_job)]
            if chosen and not (dry_run or yes) and not _confirmed(chosen, settings):
                return failures.FAILED
        count = 0 if dry_run else await _redrive(app, chosen)
    _answer(settings, chosen, count, dry_run)
    return failures.OK


async def _redrive(app: app_.Ostinato, chosen: list[tuple[str, str]]) -> int:
    from ostinato.cli import session

    target = "/".join(chosen[0]) if len(chosen) == 1 else ""
    await session.record(app, "deadLetters.redrive", target, letters=len(chosen))
    return await app.redrive(chosen, actor=session.actor())


def _check_choice(one: tuple[str | None, str | None], *, many: bool) -> None:
    from ostinato import errors

    job_id, task_id = one
    if (job_id is None) != (task_id is None):
        raise errors.InvalidInput("one dead letter is named by its job and its task: redrive JOB TASK")
    if (job_id is not None) == many:
        raise errors.InvalidInput("say which: either JOB TASK, or some of --all, --name and --job")


async def _matching(app: app_.Ostinato, name: str | None, job_id: str | None) -> AsyncIterator[reads.DeadLetter]:
    before: tuple[int, str, str] | None = None
    while True:
        found = await app.dead_letters(name=name, job_id=job_id, before=before, most=PAGE)
        for letter in found:
            yield letter
        if len(found) < PAGE:
            return
        before = (found[-1].failed_at, found[-1].job_id, found[-1].task_id)


def _confirmed(chosen: list[tuple[str, str]], settings: Settings) -> bool:
    from ostinato import errors

    if settings.json or not sys.stdin.isatty():
        raise errors.InvalidInput(f"{len(chosen):,} dead letters match: confirm with --yes, or look with --dry-run")
    _preview(chosen)
    return typer.confirm(f"run {len(chosen):,} dead letters again?")


def _preview(chosen: list[tuple[str, str]]) -> None:
    output.table(["job id", "task id"], chosen[:PREVIEWED], none="no dead letters match")
    if len(chosen) > PREVIEWED:
        output.say(f"… and {len(chosen) - PREVIEWED:,} more")


def _answer(settings: Settings, chosen: list[tuple[str, str]], count: int, dry_run: bool) -> None:
    if settings.json:
        letters = [{"jobId": job_id, "taskId": task_id} for job_id, task_id in chosen]
        output.document({"dryRun": dry_run, "matched": letters, "redriven": count})
    elif dry_run:
        _preview(chosen)
    else:
        output.say(f"running again: {count:,} task{'' if count == 1 else 's'}")


def _document(letter: reads.DeadLetter) -> dict[str, Any]:
    from ostinato import views

    return {
        "jobId": letter.job_id,
        "taskId": letter.task_id,
        "name": letter.name,
        "failedAt": views.moment(letter.failed_at),
        "attempts": letter.attempts,
        "error": letter.error,
        "input": letter.input,
    }
