"""`ostinato worker`: run tasks until told to stop."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato import errors
from ostinato.cli import output
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import app as app_


def register(root: typer.Typer) -> None:
    command(root, "worker", fast_loop=True)(worker)


async def worker(
    settings: Settings,
    application: Annotated[
        str, typer.Argument(metavar="MODULE:APP", help="The application, or path/to/file.py:app.", show_default=False)
    ],
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", help="Functions that run at the same time.", min=1)
    ] = None,
    queue: Annotated[list[str] | None, typer.Option("--queue", help="Serve this queue; may be repeated.")] = None,
    shutdown_seconds: Annotated[
        float | None, typer.Option("--shutdown-seconds", help="How long to let functions finish when stopped.", min=0)
    ] = None,
    server: Annotated[
        str | None,
        typer.Option("--server", envvar="OSTINATO_SERVER", help="Take tasks from this server, not from a database."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="The key for the server. Others on this machine can see it: rather $OSTINATO_KEY."),
    ] = None,
    key_file: Annotated[str | None, typer.Option("--key-file", help="A file with the key for the server.")] = None,
) -> None:
    """Run tasks until stopped.

    SIGTERM or Ctrl-C let what runs finish, or hand it back."""
    from ostinato.cli import loading, session

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    app = loading.application(application)
    chosen: dict[str, Any] = {"concurrency": concurrency, "shutdown_seconds": shutdown_seconds, "work": True}
    chosen["queues"] = tuple(queue) if queue else None
    session.configure(app, settings, **{name: value for name, value in chosen.items() if value is not None})
    place = session.shown_url(app.url) if server is None else server
    async with app if server is None else _remote(app, server, _key(key, key_file)):
        _say(settings, "ready", f"ready: {_about(app)}, {place}", app)
        ended = await session.told_to_stop()
        _say(settings, "stopping", f"{ended.name}: finishing what runs, or handing it back", app)
    _say(settings, "stopped", "stopped", app)


def _about(app: app_.Ostinato) -> str:
    functions = f"{len(app.functions)} function{'' if len(app.functions) == 1 else 's'}"
    queues = ", ".join(app.options.queues)
    return f"{functions}, queue {queues}, concurrency {app.options.concurrency}"


def _remote(app: app_.Ostinato, server: str, key: str | None) -> contextlib.AbstractAsyncContextManager[Any]:
    from ostinato.remote import engine

    return engine.RemoteEngine(app.functions, app.options, server, key, secret_source=app.secret_source)


def _key(given: str | None, file: str | None) -> str | None:
    """From the command line, a file or the environment, in this order; None for a server that has no keys yet."""
    if file is None:
        return given or os.environ.get("OSTINATO_KEY") or None
    try:
        return pathlib.Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidInput(f"the key file {file!r} cannot be read: {error}", field="key-file") from None


def _say(settings: Settings, state: str, text: str, app: app_.Ostinato) -> None:
    if settings.json:
        output.json_line({"worker": state, "functions": sorted(app.functions), "queues": app.options.queues})
    else:
        output.say(text)
