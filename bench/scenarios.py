"""One scenario, run by the engine or by the floor in this process, and measured the same way."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.shapes import DIAMOND, Scenario, Shape

RESULT_TIMEOUT = 3600


@dataclass(frozen=True)
class Sample:
    """What one run showed."""

    tasks: int
    seconds: float
    tasks_per_s: float
    ms_per_task: float
    p50_ms: float
    p95_ms: float
    peak_mb: float

    def as_dict(self) -> dict[str, float]:
        return {name: round(value, 6) for name, value in asdict(self).items()}


class Subject(Protocol):
    """What is measured. `prepare` is not timed; `run` lasts from the submit to the result."""

    def prepare(self, shape: Shape, /) -> Any: ...

    async def run(self, job: Any, /) -> None: ...


class Engine:
    """Ostinato with its default options and a worker in the process."""

    def __init__(self, url: str) -> None:
        from ostinato import Ostinato

        self._app = Ostinato(url)

        @self._app.function("noop")
        async def noop(ctx: Any, i: int = 0) -> dict[str, int]:
            return {"i": i}

    async def __aenter__(self) -> Engine:
        await self._app.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._app.__aexit__(*exc)

    def prepare(self, shape: Shape) -> dict[str, Any]:
        needs: list[list[str]] = [[] for _ in range(shape.tasks)]
        for up, down in shape.edges:
            needs[down].append(f"t{up}")
        tasks = [
            {"taskId": f"t{index}", "name": "noop", "dependsOn": needs[index], "input": {"i": index}}
            for index in range(shape.tasks)
        ]
        return {"name": "bench", "tasks": tasks}

    async def run(self, job: dict[str, Any]) -> None:
        submitted = await self._app.submit(job)
        outputs = await submitted.result(timeout=RESULT_TIMEOUT)
        last = len(job["tasks"]) - 1
        if len(outputs) != last + 1 or outputs[f"t{last}"] != {"i": last}:
            raise RuntimeError(f"a job of {last + 1} tasks ended with {len(outputs)} outputs")


def subject(side: str, url: str) -> AbstractAsyncContextManager[Subject]:
    """The engine or the floor, on the database of that URL."""
    if side == "engine":
        return Engine(url)
    if url.startswith("sqlite:///"):
        from bench.floor_sqlite import SqliteFloor

        return SqliteFloor(Path(url.removeprefix("sqlite:///")))
    from bench.floor_postgres import PostgresFloor

    return PostgresFloor(url)


async def measure(
    scenario: Scenario, opened: AbstractAsyncContextManager[Subject], timed: AbstractContextManager[Any] | None = None
) -> Sample:
    """Run the scenario once, after a first job to warm up; `timed` is entered around what is timed."""
    shapes = scenario.jobs()
    latencies: list[float] = []
    async with opened as measured:

        async def run(job: Any) -> None:
            began = time.perf_counter()
            await measured.run(job)
            latencies.append(time.perf_counter() - began)

        await measured.run(measured.prepare(DIAMOND))
        jobs = [measured.prepare(shape) for shape in shapes]
        os.sync()
        with timed or nullcontext():
            began = time.perf_counter()
            if scenario.at_once:
                await asyncio.gather(*map(run, jobs))
            else:
                for job in jobs:
                    await run(job)
            seconds = time.perf_counter() - began
    return _sample(sum(shape.tasks for shape in shapes), seconds, latencies)


def _sample(tasks: int, seconds: float, latencies: list[float]) -> Sample:
    return Sample(
        tasks=tasks,
        seconds=seconds,
        tasks_per_s=tasks / seconds,
        ms_per_task=seconds / tasks * 1e3,
        p50_ms=statistics.median(latencies) * 1e3,
        p95_ms=sorted(latencies)[-(-len(latencies) * 95 // 100) - 1] * 1e3,
        peak_mb=peak_memory() / 1e6,
    )


def peak_memory() -> int:
    """The most memory, in bytes, that this process has held.

    On Linux it is read from /proc, since what getrusage tells includes the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def run_loop(main: Coroutine[Any, Any, Sample]) -> Sample:
    """Run on uvloop where it is installed."""
    runner: Callable[[Coroutine[Any, Any, Sample]], Sample] = asyncio.run
    try:
        import uvloop
    except ImportError:
        return runner(main)
    runner = uvloop.run
    return runner(main)
