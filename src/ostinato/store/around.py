"""What a database that stands around another one leaves to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ostinato.store import database, inspection

D = TypeVar("D", bound=database.Database)


class Around(Generic[D]):
    """Everything but how it reads and writes, and what of it a tenant sees."""

    def __init__(self, inner: D) -> None:
        self._inner = inner
        self.dialect = inner.dialect
        self.before_commit: Callable[[], None] | None = None
        self.after_commit: Callable[[], None] | None = None

    def now(self) -> int:
        return self._inner.now()

    async def open(self, *, migrate: bool) -> None:
        await self._inner.open(migrate=migrate)

    async def close(self) -> None:
        await self._inner.close()

    async def changed(self, timeout: float, *, eager: bool = False) -> bool:
        return await self._inner.changed(timeout, eager=eager)

    def announce(self) -> None:
        self._inner.announce()

    async def settings(self) -> dict[str, Any]:
        return await self._inner.settings()

    async def damage(self, seconds: float) -> inspection.Damage:
        return await self._inner.damage(seconds)
