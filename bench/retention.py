"""`python -m bench.retention`: how long submissions take beside the removal of old jobs.

Some thousand jobs run and end; then all of them are removed, as `ostinato prune` does it, by this process or by another
one, while jobs are submitted one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.databases import BACKENDS, databases
from ostinato import EngineOptions, Ostinato

TARGET_MS = 50.0
BATCH = 500
PRUNE = "import asyncio, sys; from ostinato import EngineOptions, Ostinato\n" + (
    "async def main():\n"
    "    async with Ostinato(sys.argv[1], options=EngineOptions(work=False, maintain=False)) as app:\n"
    "        print(await app.prune(older_than=0))\n"
    "asyncio.run(main())"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.retention", description=__doc__)
    parser.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--tasks", type=int, default=1, help="tasks of each job")
    parser.add_argument("--scratch", type=Path, default=Path(), help="a folder on a real disk for SQLite files")
    options = parser.parse_args()
    late = False
    for backend in BACKENDS if options.backend == "both" else (options.backend,):
        for where in ("same process", "another process"):
            with databases(backend, options.scratch) as fresh, fresh() as url:
                late |= asyncio.run(_measure(backend, where, url, options.jobs, options.tasks))
    return 1 if late else 0


async def _measure(backend: str, where: str, url: str, jobs: int, tasks: int) -> bool:
    async with Ostinato(url, options=EngineOptions(prune_every_seconds=None, concurrency=100)) as app:
        app.function("noop")(_noop)
        await app.engine.register()
        await _fill(app, jobs, tasks)
        quiet = await _submissions(app, asyncio.create_task(asyncio.sleep(3)))
        began = time.perf_counter()
        beside = await _submissions(app, asyncio.create_task(_prune(app, url, where)))
        took = time.perf_counter() - began
    print(f"{backend}, {where}: {jobs:,} jobs of {tasks} removed in {took:.1f} s")
    for name, times in (("quiet", quiet), ("beside", beside)):
        print(f"  submissions {name}: p50 {_at(times, 50):.1f}, p99 {_at(times, 99):.1f}, most {max(times):.1f} ms")
    return _at(beside, 99) > TARGET_MS


async def _fill(app: Ostinato, jobs: int, tasks: int) -> None:
    document = {"name": "old", "tasks": [{"taskId": f"t{n}", "name": "noop"} for n in range(tasks)]}
    for start in range(0, jobs, BATCH):
        made = await app.submit_many([document] * min(BATCH, jobs - start))
        await made[-1].result(600)
    while await app.jobs(state="running", most=1):
        await asyncio.sleep(0.1)


async def _submissions(app: Ostinato, until: asyncio.Task[object]) -> list[float]:
    """How many milliseconds each took."""
    times: list[float] = []
    while not until.done():
        began = time.perf_counter()
        await app.submit({"name": "new", "tasks": [{"taskId": "a", "name": "noop"}]})
        times.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.005)
    await until
    return times


async def _prune(app: Ostinato, url: str, where: str) -> None:
    if where == "same process":
        await app.prune(older_than=0)
        return
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", PRUNE, url, stdout=subprocess.PIPE)
    await child.communicate()


async def _noop() -> None:
    pass


def _at(times: list[float], percent: int) -> float:
    return statistics.quantiles(times, n=100)[percent - 1] if len(times) > 1 else max(times, default=0.0)


if __name__ == "__main__":
    sys.exit(main())
