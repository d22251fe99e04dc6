"""Wakes whoever follows the feed as soon as there may be something new in it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING

from ostinato import errors
from ostinato.store import stream

if TYPE_CHECKING:
    from ostinato.engine import engine

log = logging.getLogger("ostinato")

LOOK_AGAIN_SECONDS = 0.005
"""The first look at what an older transaction still holds back; each further one waits twice as long."""


class Bell:
    """Rung after every commit of this process that tells something, and when others may have committed.

    It only says that it is time to look: what there is, the feed says.
    """

    def __init__(self) -> None:
        self._listeners: set[tuple[str, asyncio.Event]] = set()

    @property
    def heard(self) -> bool:
        """Somebody listens, so it is worth looking often."""
        return bool(self._listeners)

    def ring(self, tenant: str | None = None) -> None:
        """Something was committed for this tenant, or perhaps for any."""
        for listener, event in self._listeners:
            if tenant is None or tenant == listener:
                event.set()

    @contextlib.contextmanager
    def listen(self, tenant: str) -> Generator[asyncio.Event]:
        event = asyncio.Event()
        self._listeners.add((tenant, event))
        try:
            yield event
        finally:
            self._listeners.discard((tenant, event))


PAGE = 256
"""Events that are read at once: few enough that whoever handles them does not hold up the event loop."""


async def follow(running: engine.Engine, tenant: str, place: stream.Place | None) -> AsyncGenerator[stream.FeedPage]:
    """Pages of a tenant's feed as they are committed, from a place on (or from now on), without end: a database that
    is away is waited for."""
    at = place if place is not None else await running.store.feed_end(tenant)
    pause = LOOK_AGAIN_SECONDS
    with running.bell.listen(tenant) as rung:
        while True:
            rung.clear()
            try:
                page = await running.store.feed_page(tenant, at, PAGE)
            except errors.DatabaseUnavailable as error:
                log.warning("the feed cannot be read, trying again: %s", error)
                await asyncio.sleep(running.options.poll_seconds)
                continue
            at = page.place
            if page.events:
                pause = LOOK_AGAIN_SECONDS
                yield page
            if page.full:
                continue
            poll = running.options.poll_seconds
            pause = poll if page.complete else min(pause, poll)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await rung.wait()
            pause = LOOK_AGAIN_SECONDS if page.complete or rung.is_set() else pause * 2
