"""`ostinato results`: what jobs have saved, listed, shown and searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.parameters import Group
from ostinato.cli.settings import OF_APPLICATION_IF_ANY, Settings, command

if TYPE_CHECKING:
    from ostinato.core import result_filters

group = typer.Typer(cls=Group, help="List, show and search what jobs have saved.", no_args_is_help=True)

Domain = Annotated[str | None, typer.Option("--domain", help="Only results of this domain.", metavar="NAME")]
Fields = Annotated[
    list[str] | None, typer.Option("--field", help="Only results with this field, or these.", metavar="KEY=VALUE")
]
Since = Annotated[str | None, typer.Option("--since", help="Only results saved then or later.", metavar="TIME")]
Until = Annotated[str | None, typer.Option("--until", help="Only results saved before.", metavar="TIME")]
Application = Annotated[
    str | None,
    typer.Option("--app", help="Where the embedder is, if it is not the built-in one.", metavar="MODULE:APP"),
]
LONGEST_LINE = 80


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="results")


@command(group, "ls")
async def ls(
    settings: Settings,
    domain: Domain = None,
    field: Fields = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=500)] = 50,
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="Go on where the page before ended.", metavar="CURSOR")
    ] = None,
) -> None:
    """List saved results, newest first."""
    from ostinato.cli import session

    wanted = _wanted(domain, field, since, until)
    async with session.opened(settings) as app:
        found = await app.results.list(cursor=cursor, most=limit, **wanted)
        now = session.now(app)
    if settings.json:
        output.document({"results": found, "cursor": found.cursor})
        return
    lines = [
        [view.result_id, view.domain, view.job_id, output.ago(view.created_at, now), _line(view.text)] for view in found
    ]
    output.table(["result id", "domain", "job id", "saved", "text"], lines, none="no results")
    if found.cursor is not None:
        output.note(f"more: --cursor {found.cursor}")


@command(group, "show")
async def show(
    settings: Settings,
    result_id: Annotated[str, typer.Argument(metavar="RESULT", help="The id of the result.", show_default=False)],
) -> None:
    """Show a saved result with its document."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        view = await app.results.get(result_id)
        now = session.now(app)
    if settings.json:
        output.document(view)
        return
    output.say(f"{view.result_id}  {view.domain}  of job {view.job_id}, saved {output.ago(view.created_at, now)}")
    output.document(view.document)


@command(group, "search", url=OF_APPLICATION_IF_ANY)
async def search(
    settings: Settings,
    q: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for, in any words.", show_default=False)],
    domain: Domain = None,
    field: Fields = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=500)] = 10,
    application: Application = None,
) -> None:
    """Search saved results by word and by likeness, best first."""
    from ostinato.cli import loading, session

    wanted = _wanted(domain, field, since, until)
    given = None if application is None else loading.application(application)
    async with session.opened(settings, given) as app:
        hits = await app.results.search(q, most=limit, **wanted)
        now = session.now(app)
    if settings.json:
        output.document({"hits": hits})
        return
    lines: list[list[Any]] = [
        [hit.result_id, hit.domain, ", ".join(hit.ranks), output.ago(hit.created_at, now), _line(hit.snippet)]
        for hit in hits
    ]
    output.table(["result id", "domain", "found by", "saved", "text"], lines, none="nothing found")


def _wanted(
    domain: str | None, field: list[str] | None, since: str | None, until: str | None
) -> result_filters.ResultsWanted:
    from ostinato.cli import times
    from ostinato.core import result_filters

    return {
        "domain": domain,
        "fields": result_filters.read_fields(field or ()),
        "since": times.read(since, "--since"),
        "until": times.read(until, "--until"),
    }


def _line(text: str) -> str:
    short = " ".join(text.split())
    return short if len(short) <= LONGEST_LINE else short[: LONGEST_LINE - 1] + "…"
