"""The life cycle of background loops."""

import asyncio

from ostinato.engine import service


class Counting(service.Service):
    """Notes its runs; `trouble` is raised by the first one."""

    def __init__(self, pause: float = 0.0, trouble: Exception | None = None) -> None:
        super().__init__()
        self.runs = 0
        self.ran_twice = asyncio.Event()
        self._pause = pause
        self._trouble = trouble

    async def run_once(self) -> float:
        self.runs += 1
        if self.runs == 2:
            self.ran_twice.set()
        if self._trouble is not None and self.runs == 1:
            raise self._trouble
        return self._pause


class Deaf(service.Service):
    """Loses its first cancellation, as `asyncio.wait_for` does in Python 3.11 when its future is done as well."""

    def __init__(self) -> None:
        super().__init__()
        self.started = asyncio.Event()
        self._deaf = True

    async def run_once(self) -> float:
        self.started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if not self._deaf:
                raise
            self._deaf = False
        return 0.0


async def test_a_service_runs_again_when_it_is_woken() -> None:
    loop = Counting(pause=1000)
    loop.start()
    await asyncio.sleep(0)
    loop.wake()
    await asyncio.wait_for(loop.ran_twice.wait(), 5)
    await loop.stop()


async def test_a_service_goes_on_after_trouble() -> None:
    loop = Counting(pause=1000, trouble=RuntimeError("once"))
    loop.start()
    await asyncio.wait_for(loop.ran_twice.wait(), 5)
    await loop.stop()


async def test_a_service_stops_even_if_a_cancellation_is_lost() -> None:
    loop = Deaf()
    loop.start()
    await loop.started.wait()
    await asyncio.wait_for(loop.stop(), 5)
