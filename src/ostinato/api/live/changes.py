"""What no event tells of: that a definition, a worker, a function or a key has come, changed or gone.

It is looked for once a second for each tenant whom somebody follows, however many do. What has changed is not said: who
hears of it asks again, for what they may see.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

from ostinato import errors
from ostinato.store import store

LOOK_SECONDS = 1.0


class Changes:
    def __init__(self, target: store.Store) -> None:
        self._store = target
        self._seen: dict[str, tuple[float, object]] = {}

    async def follow(self, tenant: str) -> AsyncGenerator[int]:
        """A number for each time that something has changed from now on. The first one says that it is now: what has
        changed since somebody last asked, and before this, nobody will tell."""
        before = await self._look(tenant)
        count = 0
        yield count
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = await self._look(tenant)
            if now != before:
                before = now
                count += 1
                yield count

    async def _look(self, tenant: str) -> object:
        looked_at, known = self._seen.get(tenant, (-LOOK_SECONDS, None))
        if time.monotonic() - looked_at >= LOOK_SECONDS:
            self._seen[tenant] = (time.monotonic(), known)  # one looks; the others go by what was known
            try:
                known = await self._stamp(tenant)
            except errors.DatabaseError:
                return known
            self._seen[tenant] = (time.monotonic(), known)
        return known

    async def _stamp(self, tenant: str) -> object:
        """Another value whenever something has changed."""
        return (
            await self._store.definitions_stamp(tenant),
            [(worker["workerId"], worker["alive"]) for worker in await self._store.workers(tenant)],
            await self._store.functions(tenant),
            [(key.key_id, key.revoked_at) for key in await self._store.keys(tenant)],
        )
