"""`ostinato dev`: server and worker in one process, on one file, started again when the program changes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.log_options import LogFormat, LogLevel
from ostinato.cli.settings import WAIT_SECONDS, Settings, Wait, command
from ostinato.cli.webhooks import Networks, Webhooks

if TYPE_CHECKING:
    from ostinato import app as app_

URL = "sqlite:///ostinato.db"
"""Whatever the application or the environment says: what is tried out here must not run on somebody's real database."""
SHUTDOWN_SECONDS = 2.0
"""What still runs so long after a change is handed back, and runs again in the new program."""


def register(root: typer.Typer) -> None:
    command(root, "dev", fast_loop=True, url=URL)(dev)


async def dev(
    settings: Settings,
    application: Annotated[
        str, typer.Argument(metavar="APP", help="The application: app.py, app:app or path/to/file.py:app.")
    ],
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0 takes a free one.", min=0, max=65_535)] = 8080,
    submit: Annotated[
        str | None,
        typer.Option("--submit", help="Jobs to submit at the start: a JSON file.", metavar="FILE", show_default=False),
    ] = None,
    wait: Wait = WAIT_SECONDS,
    webhooks: Webhooks = False,
    webhook_network: Networks = None,
    reload: Annotated[bool, typer.Option("--reload/--no-reload", help="Start again when a file changes.")] = True,
    log_format: LogFormat = None,
    log_level: LogLevel = "info",
) -> int | None:
    """Run an application with its worker and the server, for trying things out.

    The database is the file ostinato.db in this folder, unless --url names another, whatever the application says."""
    from ostinato.cli import webhooks as calling

    if not reload:
        from ostinato import logs

        logs.configure(log_format, log_level)
        await _serve(
            settings,
            application,
            host,
            port,
            submit,
            calling.changes(webhooks, webhook_network) | {"wait_seconds": wait},
        )
        return None
    from ostinato.cli import reloading

    flags = ["--host", host, "--port", str(port), "--url", settings.url or URL, "--no-reload"]
    flags += ["--log-level", log_level, *(["--log-format", log_format] if log_format else [])]
    flags += ["--wait", str(wait)]
    flags += ["--submit", submit] if submit else []
    flags += calling.flags(webhooks, webhook_network)
    flags += ["--tenant", settings.tenant] if settings.tenant else []
    flags += ["--json"] if settings.json else []
    command = [sys.executable, "-m", "ostinato.cli.main", "dev", application, *flags]
    return await reloading.run(command, _folder(application), lambda code: _cannot_listen(code, host, port))


async def _serve(
    settings: Settings, application: str, host: str, port: int, submit: str | None, changes: dict[str, Any]
) -> None:
    import asyncio

    from ostinato.api import settings as api_settings
    from ostinato.cli import loading, serving, session

    documents = loading.documents(submit) if submit else []
    app = loading.application(application)
    changes = {"work": True, "shutdown_seconds": SHUTDOWN_SECONDS} | changes
    session.configure(app, settings._replace(url=settings.url or URL), **changes)
    watching = asyncio.create_task(_stop_when_orphaned())
    options = api_settings.ServerOptions(host=host, port=port)
    await serving.serve(app, options, settings, at_first=lambda: _submit(app, documents))
    watching.cancel()


async def _submit(app: app_.Ostinato, documents: Sequence[Any]) -> None:
    """With idempotency keys in the file, starting again submits nothing twice."""
    from ostinato import errors

    for document in documents:
        try:
            await app.submit(document)
        except errors.IdempotencyConflict as error:
            output.note(f"not submitted: {error}")


async def _stop_when_orphaned() -> None:
    """Nobody reaches a program whose reloader was killed: it ends as if it had been told to."""
    import asyncio

    from ostinato.cli import reloading

    parent = os.environ.get(reloading.PARENT)
    while parent is None or os.getppid() == int(parent):
        await asyncio.sleep(1.0)
    os.kill(os.getpid(), signal.SIGTERM)


def _cannot_listen(code: int, host: str, port: int) -> bool:
    """Whether the program has ended because its address cannot be used, which no change of a file would cure."""
    from ostinato import errors
    from ostinato.api import server
    from ostinato.cli import failures

    if code != failures.FAILED:
        return False
    try:
        server.bind(host, port).close()
    except errors.NotPossible:
        return True
    return False


def _folder(application: str) -> str:
    """Where the files of an application are: beside its file, or in this folder, from which modules are imported."""
    where, separator, _ = application.rpartition(":")
    where = where if separator else application
    return (os.path.dirname(where) or ".") if where.endswith(".py") or os.sep in where else "."
