"""`ostinato dead-letters`: what failed for good, and running it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ostinato.cli import output
from ostinato.cli.asking import Yes
from ostinato.cli.jobs import Cursor, JobId
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command
from ostinato.cli.tasks import TaskId, show_detail

if TYPE_CHECKING:
    from ostinato import views
    from ostinato.core import filters
    from ostinato.store import lists

group = typer.Typer(cls=Group, help="See what failed for good, and run it again.", no_args_is_help=True)

PREVIEWED = 20
FunctionName = Annotated[
    str | None, typer.Option("--function", "--name", help="Only of this function.", metavar="FUNCTION")
]
OfJob = Annotated[str | None, typer.Option("--job", help="Only of this job.", metavar="JOB")]
ErrorType = Annotated[str | None, typer.Option("--error", help="Only with this type of error.", metavar="TYPE")]
Since = Annotated[str | None, typer.Option("--since", help="Only what failed then or later.", metavar="TIME")]
Until = Annotated[str | None, typer.Option("--until", help="Only what failed before.", metavar="TIME")]


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="dead-letters")


@command(group, "ls")
async def ls(
    settings: Settings,
    name: FunctionName = None,
    job_id: OfJob = None,
    error_type: ErrorType = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=500)] = 50,
    cursor: Cursor = None,
) -> None:
    """List dead letters, newest first."""
    from ostinato.cli import session

    wanted = _wanted(name, job_id, error_type, since, until)
    async with session.opened(settings) as app:
        found = await app.dead_letters(**wanted, most=limit, cursor=cursor)
        depth = await app.dead_letter_depth()
        now = session.now(app)
    if settings.json:
        letters = [_document(letter) for letter in found]
        output.document({"deadLetters": letters, "cursor": found.cursor, "depth": depth})
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
    if found.cursor is not None:
        output.note(f"more: --cursor {found.cursor}")
    if depth.alarm:
        output.note(f"there are {depth.depth:,} dead letters, more than {depth.threshold:,}")


def _wanted(
    name: str | None, job_id: str | None, error_type: str | None, since: str | None, until: str | None
) -> filters.DeadLettersWanted:
    from ostinato.cli import times

    return {
        "name": name,
        "job_id": job_id,
        "error_type": error_type,
        "failed_from": times.read(since, "--since"),
        "failed_until": times.read(until, "--until"),
    }


@command(group, "show")
async def show(settings: Settings, job_id: JobId, task_id: TaskId) -> None:
    """Show one dead letter: its input, its error and every attempt."""
    from ostinato import errors
    from ostinato.cli import session

    async with session.opened(settings) as app:
        detail = await (await app.job(job_id)).task(task_id)
        letter = await app.dead_letter(job_id, task_id)
        if letter is None:
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
    error_type: ErrorType = None,
    since: Since = None,
    until: Until = None,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run again.")] = False,
) -> int:
    """Run dead letters again.

    One, those that match, or all; with their policy, their history and all their attempts."""
    from ostinato.cli import failures, session

    wanted = _wanted(name, of_job, error_type, since, until)
    _check_choice((job_id, task_id), many=everything or any(value is not None for value in wanted.values()))
    async with session.opened(settings) as app:
        if job_id is not None and task_id is not None:
            done = await app.redrive([(job_id, task_id)], dry_run=dry_run, actor=session.actor())
        else:
            done = await app.redrive_matching(**wanted, dry_run=True)
            if not dry_run:
                if done.count and not yes and not _confirmed(done, settings):
                    return failures.FAILED
                done = await app.redrive_matching(**wanted, actor=session.actor())
    _answer(settings, done)
    return failures.OK


def _check_choice(one: tuple[str | None, str | None], *, many: bool) -> None:
    from ostinato import errors

    job_id, task_id = one
    if (job_id is None) != (task_id is None):
        raise errors.InvalidInput("one dead letter is named by its job and its task: redrive JOB TASK")
    if (job_id is not None) == many:
        raise errors.InvalidInput("say which: either JOB TASK, or --all or some filters, like --function and --job")


def _confirmed(foreseen: views.Redriven, settings: Settings) -> bool:
    from ostinato.cli import asking

    asking.check_can_ask(settings, f"{foreseen.count:,} dead letters match: confirm with --yes, or look with --dry-run")
    _preview(foreseen)
    return typer.confirm(f"run {foreseen.count:,} dead letters again?")


def _preview(foreseen: views.Redriven) -> None:
    lines = [[letter.job_id, letter.task_id] for letter in foreseen.letters[:PREVIEWED]]
    output.table(["job id", "task id"], lines, none="no dead letters match")
    if foreseen.count > PREVIEWED:
        output.say(f"… and {foreseen.count - PREVIEWED:,} more")


def _answer(settings: Settings, done: views.Redriven) -> None:
    if settings.json:
        output.document(done)
    elif done.dry_run:
        _preview(done)
    else:
        output.say(f"running again: {done.count:,} task{'' if done.count == 1 else 's'}")


def _document(letter: lists.DeadLetter) -> dict[str, Any]:
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
