"""`ostinato workers`, `ostinato functions` and `ostinato prune`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.settings import Settings, command

DAY = 86_400


def register(root: typer.Typer) -> None:
    command(root, "workers")(workers)
    command(root, "functions")(functions)
    command(root, "prune")(prune)


async def workers(settings: Settings) -> None:
    """List the workers that have been heard of lately."""
    from ostinato import views
    from ostinato.cli import session

    async with session.opened(settings) as app:
        found = await app.engine.store.workers(app.tenant)
        now = session.now(app)
    if settings.json:
        output.document({"workers": [_with_times(worker, "startedAt", "expiresAt") for worker in found]})
        return
    lines = [
        [
            w["workerId"],
            "alive" if w["alive"] else "not heard of",
            f"{w.get('host', '')}:{w.get('pid', '')}",
            ", ".join(w.get("queues", [])),
            output.ago(views.moment(w["startedAt"]), now),
        ]
        for w in found
    ]
    output.table(["worker id", "state", "process", "queues", "started"], lines, none="no workers")


async def functions(settings: Settings) -> None:
    """List the functions that workers have registered."""
    from ostinato import views
    from ostinato.cli import session

    async with session.opened(settings) as app:
        found = await app.engine.store.functions(app.tenant)
        now = session.now(app)
    if settings.json:
        documents = [{"name": name} | _with_times(about, "registeredAt") for name, about in found.items()]
        output.document({"functions": documents})
        return
    lines = [
        [
            name,
            str(about.get("retry", {}).get("maxAttempts", "")),
            output.duration(about["timeout"]) if about.get("timeout") else "none",
            output.ago(views.moment(about["registeredAt"]), now),
        ]
        for name, about in found.items()
    ]
    output.table(["function", "attempts", "timeout", "registered"], lines, none="no functions")


async def prune(
    settings: Settings,
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", help="Jobs that ended more days ago. [default: the retention]", metavar="DAYS"),
    ] = None,
) -> None:
    """Remove jobs that ended long ago."""
    from ostinato import errors
    from ostinato.cli import session
    from ostinato.core import graph

    if older_than is not None and not graph.is_seconds(older_than * DAY):
        raise errors.InvalidInput(f"--older-than must be a number of days, 0 or more, not {older_than!r}")
    async with session.opened(settings) as app:
        await session.record(app, "jobs.prune", olderThanDays=older_than)
        removed = await app.prune(older_than=None if older_than is None else older_than * DAY)
    if settings.json:
        output.document({"removed": removed})
    else:
        output.say(f"removed: {removed:,} job{'' if removed == 1 else 's'}")


def _with_times(about: dict[str, Any], *names: str) -> dict[str, Any]:
    from ostinato import views

    return about | {name: views.moment(about[name]) for name in names}
