"""`ostinato run`: one job, from submission to result, in this process."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.settings import OF_APPLICATION, WAIT_SECONDS, Settings, Wait, command

if TYPE_CHECKING:
    from ostinato import app as app_

SHUTDOWN_SECONDS = 2.0
SHOWN_OUTPUTS = 20


def register(root: typer.Typer) -> None:
    command(root, "run", fast_loop=True, url=OF_APPLICATION)(run)


async def run(
    settings: Settings,
    target: Annotated[
        str, typer.Argument(metavar="FILE|MODULE:GRAPH", help="A job document (- is stdin), or a graph in a module.")
    ],
    application: Annotated[
        str | None, typer.Option("--app", help="Where the functions are.", metavar="MODULE:APP")
    ] = None,
    wait: Wait = WAIT_SECONDS,
) -> None:
    """Run a job to its end, and print its result."""
    import asyncio

    from ostinato.cli import loading, session, watching

    app, job = loading.program(target, application)
    where = application or target.rpartition(":")[0]
    queues = tuple(sorted(_queues(app, job)))
    session.configure(app, settings, work=True, queues=queues, shutdown_seconds=SHUTDOWN_SECONDS, wait_seconds=wait)
    async with app:
        handle = await app.submit(job)
        try:
            if sys.stdout.isatty() and not settings.json:
                await watching.watch(app, handle, as_json=False)
            outputs = await handle.result()
        except asyncio.CancelledError:
            output.note(f"job {handle.job_id} goes on when a worker runs: ostinato worker {where}{_place(settings)}")
            raise
        if settings.json:
            output.document({"job": await handle.info(), "outputs": outputs})
        else:
            _print(outputs)


def _place(settings: Settings) -> str:
    """The options with which a worker finds the job: without them it would look where the application says."""
    from ostinato.cli import session

    url = "" if settings.url is None else f" --url {shlex.quote(session.shown_url(settings.url))}"
    return url if settings.tenant is None else f"{url} --tenant {settings.tenant}"


def _queues(app: app_.Ostinato, job: Any) -> set[str]:
    """Everything that this job may be queued on: there is no other worker to count on."""
    from ostinato import builder

    document: Any = job.document() if isinstance(job, builder.Graph) else job
    try:
        known = {str(task.get("queue", "default")) for task in document["tasks"]}
    except (TypeError, KeyError, AttributeError):
        known = set[str]()  # not a job document: submitting it will say why
    return known | set(app.options.queues) | {function.queue for function in app.functions.values()}


def _print(outputs: Mapping[str, Any]) -> None:
    """The outputs by task id; on a terminal only the last ones of many."""
    left_out = len(outputs) - SHOWN_OUTPUTS
    if left_out > 0 and sys.stdout.isatty():
        outputs = dict(list(outputs.items())[-SHOWN_OUTPUTS:])
        output.note(f"the outputs of {left_out:,} tasks are not shown; --json shows all")
    output.say(output.pretty(outputs))
