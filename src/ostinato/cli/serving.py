"""Serving an application until told to stop: what `server`, `dev` and `worker` share."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from ostinato import app
from ostinato.api import routing, server
from ostinato.api import settings as api_settings
from ostinato.api.http import health, metrics
from ostinato.cli import output, session
from ostinato.cli.settings import Settings

OBSERVED = (health.routes, metrics.routes)
"""What a worker serves: how it is, and what it does."""


@contextlib.asynccontextmanager
async def listening(
    home: app.Ostinato, options: api_settings.ServerOptions, routes: Sequence[routing.Routes] = server.ROUTES
) -> AsyncGenerator[server.Listener]:
    """Answer requests over an open application."""
    await server.check_bind(home, options.host)
    async with server.Server(home, options, routes) as made:
        listener = server.Listener(made)
        await listener.start()
        try:
            yield listener
        finally:
            await listener.stop()


async def serve(
    home: app.Ostinato,
    options: api_settings.ServerOptions,
    settings: Settings,
    *,
    at_first: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Open the application and answer requests over it. `at_first` runs once they are answered."""
    async with home, listening(home, options) as listener:
        _say(settings, "ready", f"ready: {listener.address}, {session.shown_url(home.url)}", listener.address)
        if not await home.engine.store.any_key():
            output.note("no key exists, so everybody on this machine may do everything: see `ostinato keys create`")
        if at_first is not None:
            await at_first()
        ended = await session.told_to_stop()
        _say(settings, "stopping", f"{ended.name}: finishing what was asked", listener.address)
    _say(settings, "stopped", "stopped", listener.address)


def _say(settings: Settings, state: str, text: str, address: str) -> None:
    if settings.json:
        output.json_line({"server": state, "address": address})
    else:
        output.say(text)
