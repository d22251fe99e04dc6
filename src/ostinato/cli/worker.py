"""`ostinato worker`: run tasks until told to stop."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato import errors
from ostinato.cli import output
from ostinato.cli.log_options import LogFormat, LogLevel
from ostinato.cli.settings import OF_APPLICATION, WAIT_SECONDS, Settings, Wait, command
from ostinato.cli.webhooks import Networks, Webhooks

if TYPE_CHECKING:
    from ostinato import app as app_


def register(root: typer.Typer) -> None:
    command(root, "worker", fast_loop=True, url=OF_APPLICATION)(worker)


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
    metrics_port: Annotated[
        int | None, typer.Option("--metrics-port", help="Serve /metrics and /healthz there.", min=0, max=65_535)
    ] = None,
    metrics_host: Annotated[str, typer.Option("--metrics-host", help="The address for that.")] = "127.0.0.1",
    wait: Wait = WAIT_SECONDS,
    webhooks: Webhooks = False,
    webhook_network: Networks = None,
    log_format: LogFormat = None,
    log_level: LogLevel = "info",
) -> None:
    """Run tasks until stopped.

    SIGTERM or Ctrl-C let what runs finish, or hand it back."""
    from ostinato import logs
    from ostinato.cli import loading, session
    from ostinato.cli.webhooks import changes

    logs.configure(log_format, log_level)
    app = loading.application(application)
    chosen: dict[str, Any] = {"concurrency": concurrency, "shutdown_seconds": shutdown_seconds, "work": True}
    chosen["wait_seconds"] = wait
    chosen["queues"] = tuple(queue) if queue else None
    chosen |= changes(webhooks, webhook_network)
    session.configure(app, settings, **{name: value for name, value in chosen.items() if value is not None})
    if server is None:
        running = _local(app, metrics_host, metrics_port)
    elif metrics_port is None:
        running = _remote(app, server, _key(key, key_file))
    else:
        raise errors.InvalidInput("the metrics of a server's workers are the server's: ask it", field="metrics-port")
    async with running as place:
        _say(settings, "ready", f"ready: {_about(app)}, {place}", app)
        ended = await session.told_to_stop()
        _say(settings, "stopping", f"{ended.name}: finishing what runs, or handing it back", app)
    _say(settings, "stopped", "stopped", app)


@contextlib.asynccontextmanager
async def _observed(app: app_.Ostinato, host: str, port: int | None) -> AsyncGenerator[str | None]:
    """Behind the same door as everything that a server serves: with a key, or for this machine while there is none."""
    if port is None:
        yield None
        return
    from ostinato.api import settings as api_settings
    from ostinato.cli import serving

    options = api_settings.ServerOptions(host=host, port=port)
    async with serving.listening(app, options, serving.OBSERVED) as listener:
        yield listener.address


def _about(app: app_.Ostinato) -> str:
    functions = f"{len(app.functions)} function{'' if len(app.functions) == 1 else 's'}"
    queues = ", ".join(app.options.queues)
    return f"{functions}, queue {queues}, concurrency {app.options.concurrency}"


@contextlib.asynccontextmanager
async def _local(app: app_.Ostinato, metrics_host: str, metrics_port: int | None) -> AsyncGenerator[str]:
    from ostinato.cli import session

    async with app, _observed(app, metrics_host, metrics_port) as address:
        yield session.shown_url(app.url) + (f", metrics on {address}" if address else "")


@contextlib.asynccontextmanager
async def _remote(app: app_.Ostinato, server: str, key: str | None) -> AsyncGenerator[str]:
    from ostinato.remote import engine

    async with engine.RemoteEngine(app.functions, app.options, server, key, secret_source=app.secret_source):
        yield server


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
