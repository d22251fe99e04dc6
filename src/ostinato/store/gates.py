"""Which jobs stand for gates and keys, and what others have told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ostinato import errors
from ostinato.core import absent
from ostinato.store import database
from ostinato.store.database import fetch

LAST_KEY = "\U0010ffff"
"""After every key."""


class Counts(NamedTuple):
    """How many members a key has, and how many of them count as arrived."""

    expected: int
    arrived: int


class GateKey(NamedTuple):
    """A key of a gate, and how its job stands. `completed` and `total` count its own tasks beside the members."""

    key: str
    job_id: str
    state: str
    created_at: int
    finished_at: int | None
    total: int
    completed: int
    expected: int
    """Members."""
    arrived: int
    """Members that count as arrived."""
    opened: bool


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
            return [GateKey(*row[:-1], opened=bool(row[-1])) for row in found]

        return await self.db.read(script, snapshot=False)

    async def gate_counts(self, tenant: str, job_id: str) -> Counts:
        """From the counters of the job, without looking at its members."""

        def script() -> database.Script[Counts]:
            found = yield fetch("count_gate_members", tenant=tenant, job_id=job_id)
            if not found:
                raise absent.job(job_id)
            return Counts(*found[0])

        return await self.db.read(script, snapshot=False)

    async def recorded_events(self, tenant: str, keys: Sequence[tuple[str, str]]) -> list[OutsideEvent]:
        """Those of the events, by source and id, that were recorded."""

        def script() -> database.Script[list[OutsideEvent]]:
            found = yield fetch("read_outside_events", tenant=tenant, keys=list(keys))
            return [OutsideEvent(*row) for row in found]

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
