"""The life cycle that every background loop shares: `start`, `stop`, `wake`, and a `run_once` that tests can drive."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from ostinato import errors

log = logging.getLogger("ostinato")
LONGEST_PAUSE = 5.0


class Service:
    def __init__(self) -> None:
        self._wake = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        self._stopping = False
        self._loop = asyncio.create_task(self._run(), name=f"ostinato-{type(self).__name__.lower()}")

    async def stop(self) -> None:
        # A cancellation can get lost when what was waited for happens at the same moment: the flag cannot.
        self._stopping = True
        self._wake.set()
        while self._loop is not None and not self._loop.done():
            self._loop.cancel()
            await asyncio.wait([self._loop], timeout=1)
        self._loop = None

    def wake(self) -> None:
        """Run again soon, without waiting for the pause to end."""
        self._wake.set()

    async def run_once(self) -> float:
        """Do what is to be done now; the answer is how many seconds to pause before the next time."""
        raise NotImplementedError

    async def _run(self) -> None:
        """Whatever happens in a run, the loop goes on: the next run starts from what the database says."""
        trouble = 0.05
        while not self._stopping:
            self._wake.clear()
            try:
                pause = await self.run_once()
                trouble = 0.05
            except errors.DatabaseError as error:
                log.warning("%s: %s", type(self).__name__, error)
                pause = trouble = min(trouble * 2, LONGEST_PAUSE)
            except Exception:
                log.exception("%s failed and will run again", type(self).__name__)
                pause = trouble = min(trouble * 2, LONGEST_PAUSE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
