"""Which jobs stand for gates and keys, and what others have told."""

from __future__ import annotations

from typing import NamedTuple

from ostinato import errors
from ostinato.store import database
from ostinato.store.database import fetch

LAST_KEY = "\U0010ffff"
"""After every key."""


class GateKey(NamedTuple):
    """A key of a gate, and how its job stands. `completed` and `total` count its own tasks beside the members."""

    key: str
    job_id: str
    state: str
    created_at: int
    finished_at: int | None
    total: int
    completed: int


class OutsideEvent(NamedTuple):
    source: str
    event_id: str
    received_at: int
    data: bytes


class Gates:
    db: database.Database

    async def gate_job(self, tenant: str, gate: str, key: str) -> str:
        """The job in which the members report for a key."""

        def script() -> database.Script[str]:
            found = yield fetch("read_gate_key", tenant=tenant, gate=gate, key=key)
            if not found:
                raise errors.GateKeyNotFound(f"nobody has reported to gate {gate!r} for key {key!r}")
            return found[0][0]

        return await self.db.read(script, snapshot=False)

    async def gate_keys(self, tenant: str, gate: str, *, before: str | None = None, most: int = 100) -> list[GateKey]:
        """The keys of a gate, the last ones first: most keys are dates."""

        def script() -> database.Script[list[GateKey]]:
            found = yield fetch(
                "list_gate_keys", tenant=tenant, gate=gate, before=LAST_KEY if before is None else before, most=most
            )
            return [GateKey(*row) for row in found]

        return await self.db.read(script, snapshot=False)

    async def outside_events(
        self, tenant: str, after: OutsideEvent | None = None, most: int = 500
    ) -> list[OutsideEvent]:
        """What others have told, in the order in which it was received."""

        def script() -> database.Script[list[OutsideEvent]]:
            found = yield fetch(
                "list_outside_events",
                tenant=tenant,
                after_at=-1 if after is None else after.received_at,
                after_source="" if after is None else after.source,
                after_id="" if after is None else after.event_id,
                most=most,
            )
            return [OutsideEvent(*row) for row in found]

        return await self.db.read(script, snapshot=False)

    async def prune_outside_events(self, tenant: str, default_seconds: float) -> None:
        """Forget what was received longer ago than the tenant's retention. If it is sent again, it is new."""

        def script() -> database.Script[None]:
            own = yield fetch("read_retention", tenant=tenant)
            seconds = own[0][0] if own and own[0][0] is not None else default_seconds
            yield fetch("prune_outside_event", tenant=tenant, before=self.db.now() - int(seconds * 1e6))

        await self.db.write(script)
