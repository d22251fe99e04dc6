"""`ostinato audit`: proof that the rows are what the events say."""

from __future__ import annotations

import typer

from ostinato.cli import output
from ostinato.cli.settings import Settings, command


def register(root: typer.Typer) -> None:
    command(root, "audit")(audit)


async def audit(settings: Settings) -> int:
    """Prove that rows and events agree.

    Checks every job of all tenants (or of --tenant) on the live database. The exit code is 1 if there are problems."""
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
