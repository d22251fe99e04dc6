"""How much waits: cheap enough to be asked every few seconds, however many jobs have ended."""

from __future__ import annotations

from typing import NamedTuple

from ostinato.store import database
from ostinato.store.database import fetch


class QueueDepth(NamedTuple):
    queue: str
    name: str
    ready: int
    oldest_ready_at: int


class Depth(NamedTuple):
    queues: list[QueueDepth]
    dead_letters: int


class Gauges:
    db: database.Database

    async def waiting(self, tenant: str) -> Depth:
        """What is ready and not yet claimed, by queue and function, and how many dead letters there are."""

        def script() -> database.Script[Depth]:
            work = yield fetch("count_ready", tenant=tenant)
            letters = yield fetch("count_dead_letters", tenant=tenant)
            return Depth([QueueDepth(q, n, int(count), oldest) for q, n, count, oldest in work], int(letters[0][0]))

        return await self.db.read(script)
