"""Serving an application until told to stop: what `server` and `dev` share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ostinato import app
from ostinato.api import server
from ostinato.api import settings as api_settings
from ostinato.cli import output, session
from ostinato.cli.settings import Settings


async def serve(
    home: app.Ostinato,
    options: api_settings.ServerOptions,
    settings: Settings,
    *,
    at_first: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Open the application and answer requests over it. `at_first` runs once they are answered."""
    async with home:
        await server.check_bind(home, options.host)
        async with server.Server(home, options) as made:
            listener = server.Listener(made)
            await listener.start()
            _say(settings, "ready", f"ready: {listener.address}, {session.shown_url(home.url)}", listener.address)
            if not await home.engine.store.any_key():
                output.note("no key exists, so everybody on this machine may do everything: see `ostinato keys create`")
            if at_first is not None:
                await at_first()
            ended = await session.told_to_stop()
            _say(settings, "stopping", f"{ended.name}: finishing what was asked", listener.address)
            await listener.stop()
    _say(settings, "stopped", "stopped", listener.address)


def _say(settings: Settings, state: str, text: str, address: str) -> None:
    if settings.json:
        output.json_line({"server": state, "address": address})
    else:
        output.say(text)
