"""`ostinato retention`: for how long a tenant keeps what has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ostinato.cli import output
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import views

DAY = 86_400
FOREVER = "forever"

retention = typer.Typer(cls=Group, help="Say for how long finished jobs are kept.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    root.add_typer(retention, name="retention")


@command(retention, "show")
async def show(settings: Settings) -> None:
    """Show for how long finished jobs, and after that their idempotency keys, are kept."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        _show(settings, await app.retention())


@command(retention, "set")
async def set_(
    settings: Settings,
    jobs: Annotated[
        str | None, typer.Option("--jobs", help="Days after the end of a job, or forever.", metavar="DAYS")
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys", help="Days for which its idempotency key is kept after that, or forever.", metavar="DAYS"
        ),
    ] = None,
) -> None:
    """Say for how long finished jobs, and after that their idempotency keys, are kept.

    What has been kept for longer is removed soon afterwards, and cannot be brought back."""
    from ostinato import errors
    from ostinato.cli import session

    if jobs is None and keys is None:
        raise errors.InvalidInput("say --jobs DAYS, or --keys DAYS, or both; forever removes nothing")
    async with session.opened(settings) as app:
        before = await app.retention()
        found = await app.set_retention(
            jobs=before.jobs if jobs is None else _seconds(jobs, "--jobs"),
            keys=before.keys if keys is None else _seconds(keys, "--keys"),
            actor=session.actor(),
        )
    _show(settings, found)


def _seconds(text: str, option: str) -> float | None:
    from ostinato import errors
    from ostinato.core import graph

    if text == FOREVER:
        return None
    try:
        seconds = float(text) * DAY
    except ValueError:
        seconds = None
    if seconds is None or not graph.is_seconds(seconds):
        raise errors.InvalidInput(f"{option} {text!r} is not a number of days: write 30, or {FOREVER}", field=option)
    return seconds


def _show(settings: Settings, found: views.RetentionView) -> None:
    if settings.json:
        output.document(found)
        return
    output.say(f"finished jobs: {_shown(found.jobs)}")
    output.say(f"their idempotency keys: {_shown(found.keys)}" + ("" if found.keys is None else " after that"))


def _shown(seconds: int | None) -> str:
    return "kept for ever" if seconds is None else f"{seconds / DAY:,g} days"
