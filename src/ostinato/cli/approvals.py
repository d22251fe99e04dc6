"""`ostinato approvals`: what waits for people, and deciding on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ostinato.cli import output
from ostinato.cli.jobs import Cursor, JobId
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command
from ostinato.cli.tasks import TaskId

if TYPE_CHECKING:
    import datetime

    from ostinato import approving

group = typer.Typer(cls=Group, help="See what waits for people, and decide on it.", no_args_is_help=True)

ANY = "any"
Notes = Annotated[str | None, typer.Option("--notes", help="Why, for the history.", metavar="TEXT")]
Payload = Annotated[
    str | None, typer.Option("--payload", help="What it is to be about instead, where that is allowed.", metavar="JSON")
]
Key = Annotated[str | None, typer.Option("--key", help="Which of several approvals of a function.", metavar="KEY")]
Version = Annotated[
    int | None, typer.Option("--at-version", help="Only if this is what is asked, as `show` says.", metavar="N")
]


def _shown(state: str) -> str:
    from ostinato.core import approvals

    return approvals.shown(state)


@command(group, "ls")
async def ls(
    settings: Settings,
    state: Annotated[
        str, typer.Option("--state", help="waiting, withdrawn, expired, what was decided, or any.", metavar="STATE")
    ] = "waiting",
    job_id: Annotated[str | None, typer.Option("--job", help="Only of this job.", metavar="JOB")] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only what you may decide.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=500)] = 50,
    cursor: Cursor = None,
) -> None:
    """List what waits for people, oldest first."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        found = await app.approvals.list(
            state=None if state == ANY else state,
            job_id=job_id,
            approver=session.actor() if mine else None,
            called=session.user() if mine else None,
            most=limit,
            cursor=cursor,
        )
        now = session.now(app)
    if settings.json:
        output.document({"approvals": list(found), "cursor": found.cursor})
        return
    lines = [
        [
            x.job_id,
            x.task_id,
            output.state(_shown(x.state)),
            output.short(x.title),
            f"{x.approvals} of {x.quorum}",
            "anybody" if x.asked is None else output.short(", ".join(x.asked), 40),
            output.ago(x.requested_at, now),
        ]
        for x in found
    ]
    headings = ["job id", "task id", "state", "title", "approved", "asked", "since"]
    output.table(headings, lines, none="nothing waits for people" if state == "waiting" else "no approvals")
    if found.cursor is not None:
        output.note(f"more: --cursor {found.cursor}")


@command(group, "show")
async def show(settings: Settings, job_id: JobId, task_id: TaskId, key: Key = None) -> None:
    """Show what a task asks, what it is about, and who has decided what."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        detail = await app.approvals.get(job_id, task_id, key=key)
        now = session.now(app)
    if settings.json:
        output.document(detail)
        return
    _show(detail.approval, now)
    for name, value in detail.outputs.items():
        output.fields([(f"output of {name}", output.pretty(value))])


def _show(asked: approving.ApprovalView, now: datetime.datetime) -> None:
    output.fields(
        [
            ("approval", asked.title),
            ("state", output.state(_shown(asked.state))),
            ("version", str(asked.version)),
            ("key", asked.key),
            ("decisions", ", ".join(asked.decisions)),
            ("approved", f"{asked.approvals} of {asked.quorum}"),
            ("asked", "anybody" if asked.asked is None else ", ".join(asked.asked)),
            ("submitted by", f"{asked.submitted_by or 'nobody known'}{', who may not decide' * asked.not_submitter}"),
            ("since", output.ago(asked.requested_at, now)),
            ("due", output.ago(asked.due_at, now)),
            ("payload", output.pretty(asked.payload) + (" (may be edited)" if asked.allow_edit else "")),
        ]
    )
    if asked.made:
        output.say("")
        lines = [
            [
                x.by,
                output.state(x.decision),
                output.ago(x.at, now),
                "edited" if x.edited else "",
                x.notes or "",
            ]
            for x in asked.made
        ]
        output.table(["by", "decision", "at", "", "notes"], lines, none="")


@command(group, "approve")
async def approve(
    settings: Settings,
    job_id: JobId,
    task_id: TaskId,
    notes: Notes = None,
    payload: Payload = None,
    key: Key = None,
    version: Version = None,
) -> None:
    """Approve what a task asks."""
    await _decide(settings, (job_id, task_id, key), "approve", notes, payload, version)


@command(group, "reject")
async def reject(
    settings: Settings, job_id: JobId, task_id: TaskId, notes: Notes = None, key: Key = None, version: Version = None
) -> None:
    """Reject what a task asks. The task fails."""
    await _decide(settings, (job_id, task_id, key), "reject", notes, None, version)


@command(group, "decide")
async def decide(
    settings: Settings,
    job_id: JobId,
    task_id: TaskId,
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="One of those that `show` names.")],
    notes: Notes = None,
    payload: Payload = None,
    key: Key = None,
    version: Version = None,
) -> None:
    """Decide what a task asks, in any way that it knows."""
    await _decide(settings, (job_id, task_id, key), decision, notes, payload, version)


async def _decide(
    settings: Settings,
    which: tuple[str, str, str | None],
    decision: str,
    notes: str | None,
    payload: str | None,
    version: int | None,
) -> None:
    from ostinato.cli import loading, session

    job_id, task_id, key = which
    edited = ... if payload is None else loading.value(payload, "the payload")
    async with session.opened(settings) as app:
        done = await app.approvals.decide(
            job_id,
            task_id,
            decision,
            actor=session.actor(),
            called=session.user(),
            notes=notes,
            payload=edited,
            key=key,
            version=version,
        )
    if settings.json:
        output.document(done)
        return
    output.say(f"the approval is {_shown(done.state)}, task {task_id} is {done.task_state}")
    if done.again:
        output.note("you had decided so before: nothing has changed")
    elif done.state == "waiting":
        output.note(f"{done.approvals} of {done.quorum} have approved")


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="approvals")
