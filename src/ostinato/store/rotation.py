"""Rotation: everything that is stored becomes encrypted with the newest key, a bounded batch at a time.

It may run beside workers, and be stopped and started again: what is done is not looked at twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ostinato import encryption
from ostinato.core import codec
from ostinato.store import database, sealed
from ostinato.store.database import fetch


class Table(NamedTuple):
    """A table that holds payloads: its key after the tenant, where a walk over it starts, its payloads by kind."""

    name: str
    key: dict[str, Any]
    payloads: dict[str, str]
    batch: int


TABLES = (
    Table("task", {"job": "", "task": ""}, {"input": "input", "output": "output", "error": "error"}, 200),
    Table("step", {"job": "", "task": "", "key": ""}, {"output": "step"}, 500),
    Table("signal", {"job": "", "name": "", "signal": ""}, {"payload": "signal"}, 500),
    Table("blob", {"job": "", "digest": b""}, {"data": "blob"}, 4),
    Table("event_page", {"job": "", "seq": 0}, {"body": "events"}, 50),
    Table(
        "approval",
        {"job": "", "task": "", "key": ""},
        {"document": "approval", "payload": "approval_payload"},
        200,
    ),
    Table("outside_event", {"source": "", "event": ""}, {"data": "outside"}, 200),
    Table("item", {"item": ""}, {"payload": "item", "digest": "item_digest"}, 200),
    Table("result", {"job": ""}, {"document": "result", "text": "result_text"}, 50),
)


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

        return await self.db.read(script, snapshot=False)

    async def reseal(
        self, tenant: str, keyring: encryption.Keyring, table: Table, after: dict[str, Any]
    ) -> tuple[int, dict[str, Any] | None]:
        """Encrypt the next batch of a table anew: how many rows that were, and where to go on (None at the end)."""

        def script() -> database.Script[tuple[int, dict[str, Any] | None]]:
            places = {f"after_{name}": value for name, value in after.items()}
            found = yield fetch(f"rotate_{table.name}", tenant=tenant, head=keyring.head, most=table.batch, **places)
            changed = 0
            last = after
            for row in found:
                last = dict(zip(table.key, row, strict=False))
                values = _resealed(tenant, keyring, table, last, row[len(table.key) :])
                changed += len((yield fetch(f"reseal_{table.name}", tenant=tenant, **last, **values)))
            return changed, last if len(found) == table.batch else None

        return await self.db.write(script)


def _resealed(
    tenant: str, keyring: encryption.Keyring, table: Table, key: dict[str, Any], stored: tuple[bytes | None, ...]
) -> dict[str, bytes | None]:
    job_id, *place = key.values()
    values: dict[str, bytes | None] = {}
    for (column, kind), old in zip(table.payloads.items(), stored, strict=True):
        values[f"old_{column}"] = values[f"new_{column}"] = old
        if old is not None and not old.startswith(keyring.head):
            about = sealed.about(tenant, job_id, kind, *place)
            values[f"new_{column}"] = keyring.seal(keyring.open(old, about), about)
    return values
