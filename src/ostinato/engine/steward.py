"""Runs the engine's own functions: what gates and rules trigger, for every tenant that has some of it to do.

They are ordinary tasks on a queue of their own, so that they wait behind nobody's work. A tenant is attended to by a
worker of its own, which is there as long as there is something to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from ostinato.engine import service, worker
from ostinato.store import store

IDLE_SECONDS = 30.0
"""How long a worker stays that has nothing to do."""


class Attendant(Protocol):
    """An engine that runs the engine's own functions for one tenant."""

    worker: worker.Worker | None

    @property
    def busy(self) -> bool: ...
    def declared_dead(self) -> None: ...
    def attend(self) -> None: ...
    async def stop(self) -> None: ...
    async def kill(self) -> None: ...


class Steward(service.Service):
    def __init__(
        self,
        target: store.Store,
        engage: Callable[[str], Awaitable[Attendant]],
        poll_seconds: float,
        lease_seconds: float,
    ) -> None:
        super().__init__()
        self._store = target
        self._engage = engage
        self._poll_seconds = poll_seconds
        self._lease_seconds = lease_seconds
        self._attendants: dict[str, Attendant] = {}
        self._used_at: dict[str, float] = {}
        self._beat_at = 0.0

    @property
    def busy(self) -> bool:
        return any(attendant.busy for attendant in self._attendants.values())

    async def run_once(self) -> float:
        for tenant in await self._store.tenants_with_system_work():
            attendant = self._attendants.get(tenant)
            if attendant is None:
                attendant = self._attendants[tenant] = await self._engage(tenant)
            self._used_at[tenant] = time.monotonic()
            attendant.attend()
        if time.monotonic() - self._beat_at > self._lease_seconds / 4:
            await self.beat()
        await self._dismiss_idle()
        return min(self._poll_seconds, self._lease_seconds / 4)

    async def stop(self) -> None:
        await super().stop()
        leaving = list(self._attendants.values())
        self._attendants.clear()
        await asyncio.gather(*[attendant.stop() for attendant in leaving])

    async def kill(self) -> None:
        """End as a crash would. Only for the test kit."""
        while self._attendants:
            await self._attendants.popitem()[1].kill()

    async def beat(self) -> None:
        """All of them are alive."""
        self._beat_at = time.monotonic()
        for tenant, attendant in self._attendants.items():
            if attendant.worker is not None:
                alive = await self._store.beat(tenant, attendant.worker.worker_id, self._lease_seconds)
                if not alive:
                    attendant.declared_dead()

    async def _dismiss_idle(self) -> None:
        for tenant, attendant in list(self._attendants.items()):
            if attendant.busy:
                self._used_at[tenant] = time.monotonic()
            elif time.monotonic() - self._used_at[tenant] > IDLE_SECONDS:
                del self._attendants[tenant]
                await attendant.stop()
