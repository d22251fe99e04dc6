"""`ostinato events post`: tell of what happened elsewhere."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ostinato.cli import output
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import app as app_
    from ostinato.reactions import events as events_


def register(group: typer.Typer) -> None:
    command(group, "post")(post)


async def post(
    settings: Settings,
    source: Annotated[
        str, typer.Argument(metavar="FILE|-", help="An event, a list, or one to a line.", show_default=False)
    ],
) -> int:
    """Record events of others, each once, and let the rules act on them.

    They look like those of EventBridge or like CloudEvents. One that is wrong is refused, and the others are taken;
    the exit code is then 1, and 2 if all are wrong."""
    from ostinato.cli import failures, session
    from ostinato.reactions import events

    found = documents(source)
    received: list[events.Received] = []
    wrong: list[Exception] = []
    async with session.opened(settings) as app:
        for start in range(0, len(found), events.MOST_EVENTS):
            part = found[start : start + events.MOST_EVENTS]
            answers, refused = await events.take(app, app.index, part, first=start)
            received += answers
            wrong += refused
            if len(found) > events.MOST_EVENTS:
                output.note(f"{len(received):,} of {len(found):,}")
    if len(wrong) == len(received):
        raise wrong[0]
    if settings.json:
        output.document({"events": received})
    else:
        _tell(received)
    return failures.FAILED if wrong else failures.OK


def _tell(received: list[events_.Received]) -> None:
    counts = collections.Counter(one.outcome for one in received)
    recorded, again, refused = counts["recorded"], counts["duplicate"], counts["refused"]
    said = f"recorded: {recorded:,} event{'' if recorded == 1 else 's'}"
    output.say(said + (f"; {again:,} known" if again else "") + (f"; {refused:,} refused" if refused else ""))
    for one in received:
        if one.detail is not None:
            output.note(one.detail)


def read(app: app_.Ostinato, item: Any, index: int) -> dict[str, Any]:
    """An event in the shape that patterns see, whatever shape it came in."""
    from ostinato.core import moments
    from ostinato.reactions import events

    return events.read(item, app.tenant, moments.text(app.engine.db.now()), f"events[{index}]")


def documents(source: str) -> list[Any]:
    """The events in a file, or on stdin: one, a list of them, or one to a line."""
    from ostinato import errors
    from ostinato.cli import loading
    from ostinato.core import codec

    what = "stdin" if source == "-" else f"the file {source!r}"
    text = loading.content(source)
    try:
        found: Any = codec.parse(text, what)
    except errors.InvalidInput:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) < 2 or not lines[0][1].rstrip().endswith(b"}"):  # one document that is wrong, not many
            raise
        found = [codec.parse(line, f"line {number} of {what}") for number, line in lines]
    events = cast("list[Any]", found) if isinstance(found, list) else [found]
    if not events:
        raise errors.InvalidInput(f"{what} has no events: give one, a list, or one to a line")
    return events
