"""`ostinato index`: what gets into the index of executions, and building it anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ostinato.cli import output
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import reindexing

group = typer.Typer(
    cls=Group, help="Tag definitions elsewhere, and rebuild the index of executions.", no_args_is_help=True
)


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="index")


@command(group, "tag")
async def tag(
    settings: Settings,
    arn: Annotated[str, typer.Argument(metavar="ARN", help="Of the definition (state machine).", show_default=False)],
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="Its tags, all of them.", show_default=False)
    ] = None,
) -> None:
    """Say what the tags of a definition elsewhere are.

    They decide whether its executions are indexed. Those reported before are taken in by a rebuild."""
    from ostinato.cli import session

    given = dict(_read_tag(text) for text in tags or [])
    async with session.opened(settings) as app:
        await session.record(app, "index.tag", arn, tags=given)
        await app.index.tag(arn, given)
    if settings.json:
        output.document({"stateMachineArn": arn, "tags": given})
    else:
        output.say(f"{arn}: {', '.join(f'{key}={value}' for key, value in given.items()) or 'no tags'}")


def _read_tag(text: str) -> tuple[str, str]:
    from ostinato import errors

    key, separator, value = text.partition("=")
    if not separator or not key:
        raise errors.InvalidInput(f"the tag {text!r} must be of the form KEY=VALUE", field="tags")
    return key, value


@command(group, "rebuild")
async def rebuild(settings: Settings) -> int:
    """Rebuild the index from events, while everything goes on.

    The exit code is 1 if something could not be mended."""
    from ostinato.cli import failures, session

    async with session.opened(settings) as app:
        await session.record(app, "index.rebuild")
        done = await app.rebuild_index(None if settings.json else _tell)
    if settings.json:
        output.document(done)
    else:
        for problem in done.problems:
            output.say(problem)
        output.say(f"{_far(done)} looked at: {done.mended:,} mended, {done.skipped:,} events not indexed")
    return failures.FAILED if done.problems else failures.OK


def _tell(done: reindexing.Rebuilt) -> None:
    output.note(f"{_far(done)} of {done.total_jobs:,} and {done.total_events:,}")


def _far(done: reindexing.Rebuilt) -> str:
    return f"{done.jobs:,} jobs and {done.events:,} events"
