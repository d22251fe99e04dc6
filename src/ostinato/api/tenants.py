"""One database for all, and a client for each tenant that is there.

The home application opens the database and runs the maintenance loops, which look after all tenants. The other clients
are guests of its engine: a committer each, so that every tenant has its group commit, and nothing else.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import dataclasses
import time

from ostinato import app
from ostinato.engine import engine

UNUSED_SECONDS = 60.0
"""A client that nobody asked for in this time may be closed. Whoever works longer asks for it again each time."""


class Tenants:
    def __init__(self, home: app.Ostinato, *, most: int = 1024) -> None:
        self.home = home
        self._most = most
        self._clients: collections.OrderedDict[str, tuple[float, app.Ostinato]] = collections.OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()
        db = home.engine.db
        self._walled = db.seen_by(home.tenant) is not db
        """The home application sees all tenants: where there is a wall, its own tenant stays behind it too."""

    async def client(self, tenant: str) -> app.Ostinato:
        """The application of this tenant, ready to be used now. Cheap: ask again rather than keep it."""
        if tenant == self.home.tenant and not self._walled:
            return self.home
        if tenant not in self._clients:
            async with self._opening:
                if tenant not in self._clients:
                    self._clients[tenant] = (time.monotonic(), await self._open(tenant))
        _, found = self._clients[tenant]
        self._clients[tenant] = (time.monotonic(), found)
        self._clients.move_to_end(tenant)
        return found

    async def close(self) -> None:
        """Commit what the tenants have handed in. The home application is closed by whoever opened it."""
        clients = [client for _, client in self._clients.values()]
        self._clients.clear()
        await asyncio.gather(*self._closing, *[client.stop() for client in clients])

    async def _open(self, tenant: str) -> app.Ostinato:
        settings = dataclasses.replace(self.home.options, work=False, maintain=False)
        made = app.Ostinato(self.home.url, tenant=tenant, options=settings, encryption=self.home.keyring)
        made.embedder = self.home.embedder
        if tenant == self.home.tenant:
            made.functions = self.home.functions
        running = engine.Engine(made.url, tenant, made.functions, settings, host=self.home.engine)
        self._make_room()
        # What it logs later is not about the request that happened to be the first one.
        await asyncio.get_running_loop().create_task(running.start(), context=contextvars.Context())
        made.attach(running)
        return made

    def _make_room(self) -> None:
        """Close those that were not used for longest. What may still be in use is kept, if need be above the bound."""
        while len(self._clients) >= self._most:
            tenant, (used_at, oldest) = next(iter(self._clients.items()))
            if time.monotonic() - used_at < UNUSED_SECONDS:
                return
            del self._clients[tenant]
            closing = asyncio.get_running_loop().create_task(oldest.stop())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
