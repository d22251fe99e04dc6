"""`ostinato rules`: define them, and try out which of them an event would concern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import definitions, output
from ostinato.cli.definitions import Name
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import app as app_
    from ostinato.cli import applying

group = typer.Typer(
    cls=Group, help="Define what is to happen about which events, and try it out.", no_args_is_help=True
)

SHOWN_JOBS = 10


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="rules")


def _cells(rule: dict[str, Any]) -> list[str]:
    targets = ", ".join(kind for target in rule["targets"] for kind in target)
    return [output.short(rule["pattern"]), targets, "yes" if rule.get("enabled", True) else "no"]


def _shelf(app: app_.Ostinato) -> applying.AnyShelf:
    return app.rules.shelf


KIND = definitions.Kind("rule", _shelf, ["pattern", "targets", "enabled"], _cells)
definitions.register(group, KIND)


@command(group, "show")
async def show(settings: Settings, name: Name) -> None:
    """Show a rule, and when it acted last."""
    from ostinato.cli import session

    async with session.opened(settings) as app, definitions.suggesting(KIND, app):
        stored = await app.rules.shelf.stored(name)
        jobs = await app.jobs(name=f"rule:{name}", most=SHOWN_JOBS)
        now = session.now(app)
    if settings.json:
        output.document(definitions.document(stored) | {"jobs": jobs})
        return
    output.say(output.pretty(definitions.content(stored)))
    output.say("")
    lines = [[job.job_id, output.state(job.state), output.ago(job.created_at, now)] for job in jobs]
    output.table(["job id", "state", "acted"], lines, none="it has not acted lately")


@command(group, "match")
async def match(
    settings: Settings,
    source: Annotated[
        str, typer.Argument(metavar="FILE|-", help="An event, a list, or one to a line.", show_default=False)
    ],
) -> int:
    """Say which rules events would concern. Nothing happens.

    The exit code is 0 if each of the events concerns a rule, and 1 otherwise."""
    from ostinato.cli import failures, posting, session

    found = posting.documents(source)
    async with session.opened(settings) as app:
        matched = [(event, await app.rules.matching(event)) for event in _as_seen(app, found)]
    if settings.json:
        answers = [{"id": event.get("id"), "source": event.get("source"), "rules": names} for event, names in matched]
        output.document({"events": answers})
    for event, names in matched if not settings.json else ():
        output.say(f"{event.get('source')}, {event.get('detail-type')}: {', '.join(names) or 'no rule'}")
    return failures.OK if all(names for _, names in matched) else failures.FAILED


def _as_seen(app: app_.Ostinato, found: list[Any]) -> list[dict[str, Any]]:
    """Events in the shape that patterns see. Those of the engine itself cannot be posted, but they can be tried out."""
    from ostinato.cli import posting
    from ostinato.core import documents, rulebook

    events: list[dict[str, Any]] = []
    for index, item in enumerate(found):
        given = documents.as_object(item, f"events[{index}]")
        own = given.get("source") == rulebook.SOURCE
        events.append(given if own else posting.read(app, given, index))
    return events
