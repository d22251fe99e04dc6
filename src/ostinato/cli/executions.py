"""`ostinato executions`: the index of executions, wherever they ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.jobs import Cursor
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    import datetime

    from ostinato import views
    from ostinato.core import filters

group = typer.Typer(
    cls=Group, help="Find and count executions: jobs, and what was reported from outside.", no_args_is_help=True
)

Agent = Annotated[str | None, typer.Option("--agent", help="Only those of this agent.", metavar="NAME")]
Status = Annotated[
    list[str] | None, typer.Option("--status", help="Only those with this status, or these.", metavar="STATUS")
]
Tag = Annotated[str | None, typer.Option("--tag", help="Only those with this tag.", metavar="KEY[=VALUE]")]
Correlation = Annotated[
    str | None, typer.Option("--correlation-id", help="Only those with this correlation id.", metavar="ID")
]
Engine = Annotated[
    bool, typer.Option("--with-engine", help="Also the engine's own: of rules and gates, about budgets.")
]
Since = Annotated[str | None, typer.Option("--since", help="Only those started then or later.", metavar="TIME")]
Until = Annotated[str | None, typer.Option("--until", help="Only those started before.", metavar="TIME")]


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="executions")


def _wanted(
    agent: str | None,
    status: list[str] | None,
    tag: str | None,
    correlation_id: str | None,
    since: str | None,
    until: str | None,
    engine: bool,
) -> filters.ExecutionsWanted:
    from ostinato.cli import times

    return {
        "agent_name": agent,
        "status": status,
        "tag": tag,
        "correlation_id": correlation_id,
        "started_from": times.read(since, "--since"),
        "started_until": times.read(until, "--until"),
        "include_engine": engine,
    }


@command(group, "ls")
async def ls(
    settings: Settings,
    agent: Agent = None,
    status: Status = None,
    tag: Tag = None,
    correlation_id: Correlation = None,
    since: Since = None,
    until: Until = None,
    engine: Engine = False,
    oldest: Annotated[bool, typer.Option("--oldest", help="Oldest first.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=500)] = 50,
    cursor: Cursor = None,
) -> None:
    """List executions, newest first."""
    from ostinato.cli import session

    wanted = _wanted(agent, status, tag, correlation_id, since, until, engine)
    async with session.opened(settings) as app:
        order = "oldest" if oldest else "newest"
        found: list[views.ExecutionView] = []
        while True:  # where filters seldom meet, a page may be short although the list goes on
            page = await app.executions(order=order, most=limit - len(found), cursor=cursor, **wanted)
            found += page
            cursor = page.cursor
            if cursor is None or len(found) == limit:
                break
        now = session.now(app)
    if settings.json:
        output.document({"executions": found, "cursor": cursor})
        return
    columns = ["agent", "execution", "status", "started", "took", "arn"]
    output.table(columns, [_line(one, now) for one in found], none="no executions")
    if cursor is not None:
        output.note(f"more: --cursor {cursor}")


def _line(one: views.ExecutionView, now: datetime.datetime) -> list[Any]:
    took = output.took(one.start_date, one.stop_date, now)
    started = output.ago(one.start_date, now)
    return [one.agent_name, one.execution_name, output.state(one.status), started, took, one.execution_arn]


@command(group, "show")
async def show(
    settings: Settings,
    execution_arn: Annotated[str, typer.Argument(metavar="ARN", help="Its ARN.", show_default=False)],
) -> None:
    """Show one execution."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        one = await app.execution(execution_arn)
        now = session.now(app)
    if settings.json:
        output.document({"execution": one})
        return
    output.fields(
        [
            ("arn", one.execution_arn),
            ("agent", one.agent_name),
            ("execution", one.execution_name),
            ("definition", one.state_machine_arn),
            ("status", output.state(one.status)),
            ("started", one.start_date.isoformat()),
            ("stopped", None if one.stop_date is None else one.stop_date.isoformat()),
            ("took", output.took(one.start_date, one.stop_date, now)),
            ("correlation", one.correlation_id),
            ("tags", ", ".join(f"{key}={value}" for key, value in one.tags.items())),
            ("indexed", output.ago(one.indexed_at, now)),
        ]
    )


@command(group, "counts")
async def counts(
    settings: Settings,
    by: Annotated[str, typer.Option("--by", help="What to count by: status, day or hour.", metavar="WHAT")] = "status",
    agent: Agent = None,
    status: Status = None,
    tag: Tag = None,
    correlation_id: Correlation = None,
    since: Since = None,
    until: Until = None,
    engine: Engine = False,
) -> None:
    """Count executions by status, day or hour (of UTC)."""
    from ostinato.cli import session

    wanted = _wanted(agent, status, tag, correlation_id, since, until, engine)
    async with session.opened(settings) as app:
        found = await app.execution_counts(by, **wanted)
    if settings.json:
        output.document({"by": by, "counts": found})
        return
    output.table([by, "executions"], [[one.key, f"{one.count:,}"] for one in found], none="no executions")
