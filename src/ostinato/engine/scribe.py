"""Writes the audit log. While one batch of entries is being written the next gathers, as for everything else."""

from __future__ import annotations

import asyncio
import contextvars

from ostinato.core import audit_chain
from ostinato.store import store

request_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("ostinato_request_id", default=None)
"""The request that is being answered here, if there is one: entries name it."""


class Scribe:
    def __init__(self, tenant: str, target: store.Store) -> None:
        self._tenant = tenant
        self._store = target
        self._waiting: list[tuple[audit_chain.Entry, asyncio.Future[audit_chain.Entry]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def record(self, entry: audit_chain.Entry) -> audit_chain.Entry:
        """Add an entry to the tenant's chain; it is durable when this returns."""
        future: asyncio.Future[audit_chain.Entry] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, future))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="ostinato-scribe")
        return await future

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                written = await self._store.append_audit(self._tenant, [entry for entry, _ in batch])
            except BaseException as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                continue
            for (_, future), entry in zip(batch, written, strict=True):
                if not future.done():
                    future.set_result(entry)
