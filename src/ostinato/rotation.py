"""Changing encryption keys: what is encrypted with which, and encrypting all of it with the first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ostinato import encryption
from ostinato.store import rotation, store

Progress = Callable[[str, str, int], None]
"""Hears of each batch: the tenant, the table, how many rows."""


class SealedCount(msgspec.Struct, frozen=True, rename="camel"):
    """How many payloads of a kind a key has encrypted; no `key_id` stands for those that are not encrypted."""

    tenant: str
    kind: str
    key_id: str | None
    count: int


async def status(target: store.Store, tenant: str | None = None) -> list[SealedCount]:
    """Count the payloads of one tenant, or of all of them."""
    found: list[SealedCount] = []
    for owner in [tenant] if tenant is not None else await target.tenants():
        found += [SealedCount(owner, *row) for row in await target.count_sealed(owner)]
    return found


async def rotate(
    target: store.Store,
    keyring: encryption.Keyring,
    tenant: str | None = None,
    progress: Progress = lambda tenant, table, rows: None,
) -> int:
    """Encrypt everything of one tenant, or of all of them, with the first key; how many rows that were."""
    done = 0
    for owner in [tenant] if tenant is not None else await target.tenants():
        for walk in rotation.WALKS:
            after: dict[str, Any] | None = walk.start
            while after is not None:
                count, after = await target.reseal(owner, keyring, walk, after)
                done += count
                if count:
                    progress(owner, walk.table.name, count)
    return done
