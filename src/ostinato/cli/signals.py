"""`ostinato signal`: what a waiting task waits for."""

from __future__ import annotations

from typing import Annotated

import typer

from ostinato.cli import output
from ostinato.cli.jobs import JobId
from ostinato.cli.settings import Settings, command


def register(root: typer.Typer) -> None:
    command(root, "signal")(signal)


async def signal(
    settings: Settings,
    job_id: JobId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the signal.", show_default=False)],
    payload: Annotated[str, typer.Argument(metavar="[JSON]", help="What to send with it.")] = "null",
) -> None:
    """Send a signal to a job."""
    from ostinato.cli import loading, session

    value = loading.value(payload, "the payload of the signal")
    async with session.opened(settings) as app:
        heard = await app.signal(job_id, name, value, actor=session.actor())
    if settings.json:
        output.document({"jobId": job_id, "name": name, "heard": heard})
    else:
        output.say(
            "a waiting task has it" if heard else "nobody waits for it yet: it is kept for the next task that asks"
        )
