"""The database as one tenant may see it: reads go through the wall, everything else to the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from ostinato.store import around, database

T = TypeVar("T")


class Whole(database.Database, Protocol):
    """A database that can read on behalf of a tenant."""

    async def read_as(
        self, tenant: str, script: Callable[[], database.Script[T]], *, snapshot: bool, long: bool
    ) -> T: ...


class WalledDatabase(around.Around[Whole]):
    """Writes are decided by the ledger of one tenant, and go the way of the engine."""

    def __init__(self, whole: Whole, tenant: str) -> None:
        super().__init__(whole)
        self._tenant = tenant

    async def close(self) -> None:
        """The whole is closed by whoever opened it."""

    async def write(
        self,
        script: Callable[[], database.Script[T]],
        *,
        optimistic: bool = False,
        brief: bool = False,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        return await self._inner.write(script, optimistic=optimistic, brief=brief, committed=committed)

    async def read(
        self,
        script: Callable[[], database.Script[T]],
        *,
        snapshot: bool = True,
        brief: bool = False,
        long: bool = False,
    ) -> T:
        return await self._inner.read_as(self._tenant, script, snapshot=snapshot, long=long)

    def seen_by(self, tenant: str) -> database.Database:
        return WalledDatabase(self._inner, tenant)
