"""Rotation: everything that is stored becomes encrypted with the newest key, a bounded batch at a time.

It may run beside workers, and be stopped and started again: what is done is not looked at twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ostinato import encryption
from ostinato.core import codec, columns, tables
from ostinato.store import database, sealed
from ostinato.store.database import fetch


class Walk(NamedTuple):
    """A walk over a table with payloads: where it starts, and how many rows at a time."""

    table: tables.Table
    batch: int

    @property
    def start(self) -> dict[str, Any]:
        return {name: _LEAST[self.table.by_name[name].type] for name in self.table.key}


_LEAST: dict[str, Any] = {columns.TEXT: "", columns.NUMBER: 0, columns.BYTES: b""}
_BATCHES = {"step": 500, "signal": 500, "blob": 4, "event_page": 50, "result": 50}
WALKS = tuple(Walk(table, _BATCHES.get(table.name, 200)) for table in tables.SEALED)


class Rotation:
    db: database.Database

    async def count_sealed(self, tenant: str) -> list[tuple[str, str | None, int]]:
        """(kind, key id, how many) for all payloads; no key id stands for those that are not encrypted."""

        def script() -> database.Script[list[tuple[str, str | None, int]]]:
            found = yield fetch("count_sealed", tenant=tenant, mark=codec.SEAL_MARK)
            return [
                (kind, None if head is None else codec.seal_key_id(codec.SEAL_MARK + head), int(count))
                for kind, head, count in found
            ]

        return await self.db.read(script, snapshot=False, long=True)

    async def reseal(
        self, tenant: str, keyring: encryption.Keyring, walk: Walk, after: dict[str, Any]
    ) -> tuple[int, dict[str, Any] | None]:
        """Encrypt the next batch of a table again: how many rows that were, and where to go on (None at the end)."""
        table = walk.table

        def script() -> database.Script[tuple[int, dict[str, Any] | None]]:
            places = {f"after_{name}": value for name, value in after.items()}
            found = yield fetch(f"rotate_{table.name}", tenant=tenant, head=keyring.head, most=walk.batch, **places)
            changed = 0
            last = after
            for row in found:
                last = dict(zip(table.key, row, strict=False))
                values = _resealed(tenant, keyring, table, last, row[len(table.key) :])
                changed += len((yield fetch(f"reseal_{table.name}", tenant=tenant, **last, **values)))
            return changed, last if len(found) == walk.batch else None

        return await self.db.write(script)


def _resealed(
    tenant: str, keyring: encryption.Keyring, table: tables.Table, key: dict[str, Any], stored: tuple[bytes | None, ...]
) -> dict[str, bytes | None]:
    job_id, *place = key.values()
    values: dict[str, bytes | None] = {}
    for (column, kind), old in zip(table.payloads().items(), stored, strict=True):
        values[f"old_{column}"] = values[f"new_{column}"] = old
        if old is not None and not old.startswith(keyring.head):
            about = sealed.about(tenant, job_id, kind, *place)
            values[f"new_{column}"] = keyring.seal(keyring.open(old, about), about)
    return values
