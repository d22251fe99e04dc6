"""`ostinato audit`: proof that the rows are what the events say, and that the audit log is as it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import views
    from ostinato.core import audit_chain


def register(root: typer.Typer) -> None:
    command(root, "audit")(audit)


async def audit(
    settings: Settings,
    log: Annotated[
        bool, typer.Option("--log", help="Show the log of who did what, and prove that it is whole.")
    ] = False,
    actor: Annotated[str | None, typer.Option("--actor", help="With --log: only by this one.", metavar="WHO")] = None,
    action: Annotated[
        str | None, typer.Option("--action", help="With --log: only this, such as jobs.cancel.", metavar="WHAT")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="With --log: show at most this many.", min=0, max=10_000)] = 50,
    head: Annotated[
        str | None,
        typer.Option("--head", help="With --log: an end of the log that was noted before.", metavar="SEQ:HASH"),
    ] = None,
) -> int:
    """Prove that rows and events agree, or with --log that nobody has changed the log.

    Checks every job of all tenants (or of --tenant) on the live database. The exit code is 1 if there are problems."""
    if log:
        return await _log(settings, head, {"actor": actor, "action": action, "most": limit})
    from ostinato import audit as auditing
    from ostinato.cli import failures, session

    async with session.opened(settings) as app:
        report = await auditing.audit(app.engine.store, tenant=settings.tenant)
    if settings.json:
        output.document({"jobs": report.jobs, "events": report.events, "problems": report.problems})
    else:
        lines = [[p.invariant, p.job_id or "", p.task_id or "", p.message] for p in report.problems]
        if lines:
            output.table(["invariant", "job id", "task id", "problem"], lines, none="")
        found = f"{len(lines):,} problem{'' if len(lines) == 1 else 's'}"
        output.say(f"{report.jobs:,} jobs and {report.events:,} events checked: {found}")
    return failures.FAILED if report.problems else failures.OK


async def _log(settings: Settings, head: str | None, filters: dict[str, Any]) -> int:
    from ostinato.cli import failures, session

    async with session.opened(settings) as app:
        entries = await app.audit_log(**filters)
        verdict = await app.verify_audit_log(head=head)
    if settings.json:
        output.document({"tenant": app.tenant, "entries": entries, "verdict": verdict})
    else:
        _show(entries, verdict)
    return failures.OK if verdict.problem is None else failures.FAILED


def _show(entries: list[views.AuditEntryView], verdict: audit_chain.Verdict) -> None:
    lines = [
        [
            str(e.seq),
            e.at.isoformat(timespec="seconds"),
            e.actor,
            e.action,
            e.target,
            e.outcome,
            output.short(e.details),
        ]
        for e in entries
    ]
    output.table(["entry", "at", "actor", "action", "target", "outcome", "details"], lines, none="no entries")
    if verdict.problem is not None:
        output.say(f"the log is broken: {verdict.problem}")
    else:
        output.say(f"{verdict.entries:,} entries checked: the log is whole, up to {verdict.seq}:{verdict.hash}")
