"""The heartbeat, on a thread and a connection of its own: a function that blocks the event loop is busy, not dead."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from ostinato import errors, threads
from ostinato.store import database, store

LEAST_SECONDS = 1.0
"""How long a heartbeat may take in any case; otherwise, until it is time for the next one."""

T = TypeVar("T")
log = logging.getLogger("ostinato")


class Pulse:
    """Beats for one worker, and for others of the process that run something. The same thread also serves reads for
    code that cannot wait for the event loop."""

    def __init__(
        self,
        open_database: Callable[[], database.Database],
        tenant: str,
        worker_id: str,
        lease_seconds: float,
        on_lost: Callable[[], None],
        others: Callable[[], Iterable[tuple[str, str]]] = tuple,
    ) -> None:
        self._open_database = open_database
        self._tenant = tenant
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds
        self._on_lost = on_lost
        self._others = others
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._store: store.Store | None = None
        self._thread: threading.Thread | None = None

    async def start(self, *, beating: bool) -> None:
        self._thread = threading.Thread(target=self._run, args=(beating,), name="ostinato-pulse", daemon=True)
        self._thread.start()
        await threads.run(self._ready.wait)
        if self._error is not None:
            raise self._error

    async def stop(self) -> None:
        if self._thread is None:
            return
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        await threads.run(self._thread.join)
        self._thread = None

    def read_now(self, read: Callable[[store.Store], Coroutine[Any, Any, T]]) -> T:
        """Run a read on this thread and block the calling one until it is there."""
        if self._loop is None or self._store is None:
            raise errors.NotRunning()
        return asyncio.run_coroutine_threadsafe(read(self._store), self._loop).result(timeout=30)

    def _run(self, beating: bool) -> None:
        try:
            asyncio.run(self._main(beating))
        except BaseException as error:
            if self._ready.is_set():
                raise
            self._error = error
            self._ready.set()

    async def _main(self, beating: bool) -> None:
        db = self._open_database()
        await db.open(migrate=False)
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._store = store.Store(db)
        self._ready.set()
        try:
            while not self._stop.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._lease_seconds / 4):
                        await self._stop.wait()
                if beating and not self._stop.is_set():
                    beat, told = asyncio.create_task(self._beat(self._store)), asyncio.create_task(self._stop.wait())
                    await asyncio.wait([beat, told], return_when=asyncio.FIRST_COMPLETED)
                    told.cancel()
                    beat.cancel()  # if it is under way still, nobody needs it any more
                    await asyncio.wait([beat, told])
        finally:
            await db.close()

    async def _beat(self, target: store.Store) -> None:
        try:
            # A connection may have died without a word. The next heartbeat then goes over a new one.
            async with asyncio.timeout(max(self._lease_seconds / 4, LEAST_SECONDS)):
                if not await target.beat(self._tenant, self._worker_id, self._lease_seconds):
                    self._on_lost()
                for tenant, worker_id in self._others():  # whoever looks after them hears if one of them is lost
                    await target.beat(tenant, worker_id, self._lease_seconds)
        except Exception as error:
            log.warning("a heartbeat did not reach the database: %s", str(error) or "it got no answer")
