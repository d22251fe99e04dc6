"""`ostinato server`: the HTTP API, and the loops that keep jobs going."""

from __future__ import annotations

from typing import Annotated

import typer

from ostinato.cli.log_options import LogFormat, LogLevel
from ostinato.cli.settings import WAIT_SECONDS, Settings, Wait, command
from ostinato.cli.webhooks import Networks, Webhooks


def register(root: typer.Typer) -> None:
    command(root, "server", fast_loop=True)(server)


async def server(
    settings: Settings,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0 takes a free one.", min=0, max=65_535)] = 8080,
    allowed_host: Annotated[
        list[str] | None, typer.Option("--allowed-host", help="A name under which it is reached; may be repeated.")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option("--allowed-origin", help="An origin whose pages may use the API; may be repeated."),
    ] = None,
    max_body_bytes: Annotated[int, typer.Option("--max-body-bytes", help="The largest request.", min=1)] = 1024 * 1024,
    requests_per_second: Annotated[
        float, typer.Option("--requests-per-second", help="For each key.", min=0.001)
    ] = 100.0,
    waiting_claims: Annotated[
        int, typer.Option("--waiting-claims", help="Remote workers that wait at the same time, for each key.", min=1)
    ] = 200,
    max_connections: Annotated[
        int, typer.Option("--max-connections", help="Connections that are open at the same time.", min=10)
    ] = 5000,
    max_connections_per_address: Annotated[
        int, typer.Option("--max-connections-per-address", help="Of one address, which may be a proxy's.", min=10)
    ] = 1000,
    index_tags_url: Annotated[
        str | None,
        typer.Option(
            "--index-tags-url",
            help="Ask here for the tags of definitions that nobody has told of. [env: OSTINATO_INDEX_TAGS_URL]",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    wait: Wait = WAIT_SECONDS,
    webhooks: Webhooks = False,
    webhook_network: Networks = None,
    log_format: LogFormat = None,
    log_level: LogLevel = "info",
) -> None:
    """Serve the HTTP API until stopped.

    Without any key it serves this machine only. Other addresses need a key to exist: `ostinato keys create`."""
    from ostinato import app as app_
    from ostinato import logs
    from ostinato import options as options_
    from ostinato.api import settings as api_settings
    from ostinato.cli import serving, session
    from ostinato.cli.webhooks import changes

    logs.configure(log_format, log_level)
    options = api_settings.ServerOptions(
        host=host,
        port=port,
        allowed_hosts=tuple(allowed_host or ()),
        allowed_origins=tuple(allowed_origin or ()),
        max_body_bytes=max_body_bytes,
        requests_per_second=requests_per_second,
        max_waiting_claims=waiting_claims,
        max_connections=max_connections,
        max_connections_per_address=max_connections_per_address,
    )
    home = app_.Ostinato(settings.url, options=options_.EngineOptions(work=False))
    asked = {} if index_tags_url is None else {"index_tags_url": index_tags_url}
    session.configure(home, settings, wait_seconds=wait, **changes(webhooks, webhook_network), **asked)
    await serving.serve(home, options, settings)
