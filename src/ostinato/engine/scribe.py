"""Writes the audit log. While one batch of entries is being written the next gathers, as for everything else."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from ostinato import errors
from ostinato.core import audit_chain
from ostinato.store import store

P = ParamSpec("P")
T = TypeVar("T")

request_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("ostinato_request_id", default=None)
"""The request that is being answered here, if there is one: entries name it."""


_orders: contextvars.ContextVar[list[tuple[Scribe, audit_chain.Entry]] | None] = contextvars.ContextVar(
    "ostinato_orders", default=None
)
"""What has been recorded here and may still be refused."""


@contextlib.asynccontextmanager
async def refusals() -> AsyncGenerator[None]:
    """Record of what is ordered in here that it was refused, if it was. A database that failed has refused nothing:
    whether it was done is in the events."""
    orders: list[tuple[Scribe, audit_chain.Entry]] = []
    token = _orders.set(orders)
    try:
        yield
    except errors.DatabaseError:
        raise
    except errors.OstinatoError as error:
        for own, entry in orders:
            if entry.refuses is None:
                with contextlib.suppress(errors.DatabaseError):
                    await own.record(audit_chain.refusal(entry, error.code))
        raise
    finally:
        _orders.reset(token)


def telling_refusals(order: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The same for a whole function."""

    @functools.wraps(order)
    async def ordered(*args: P.args, **given: P.kwargs) -> T:
        async with refusals():
            return await order(*args, **given)

    return ordered


class Scribe:
    def __init__(self, tenant: str, target: store.Store) -> None:
        self._tenant = tenant
        self._store = target
        self._waiting: list[tuple[audit_chain.Entry, asyncio.Future[audit_chain.Entry]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def record(self, entry: audit_chain.Entry) -> audit_chain.Entry:
        """Add an entry to the tenant's chain; it is durable when this returns."""
        future: asyncio.Future[audit_chain.Entry] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, future))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="ostinato-scribe")
        placed = await future
        orders = _orders.get()
        if orders is not None:
            orders.append((self, placed))
        return placed

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                written = await self._store.append_audit(self._tenant, [entry for entry, _ in batch])
            except BaseException as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                continue
            for (_, future), entry in zip(batch, written, strict=True):
                if not future.done():
                    future.set_result(entry)
