"""`python -m bench.pipelines`: 10,000 items through the pipeline of seed 001, from discovery to publication.

Five steps that do nothing, two of them at the same time, then a review that is approved; every item makes 20 moves,
which the database checks and writes down. What is told is items, tasks and moves a second, and the peak of the memory
of this process (without PostgreSQL's).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

from bench.databases import BACKENDS, databases
from bench.profiling import Profiler, profiler
from ostinato import EngineOptions, Ostinato, definition_files
from ostinato.core import commands
from ostinato.reactions.pipelines import NewItem

PIPELINE = Path(__file__).parents[1] / "examples" / "publishing" / "pipeline.yaml"
STEPS = ("fetch", "score", "summarize", "tag", "thumbnail")
TASKS = len(STEPS) + 1
MOVES = 20
AT_ONCE = 500


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pipelines", description=__doc__)
    parser.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--scratch", type=Path, default=Path())
    parser.add_argument("--profile", action="store_true", help="profile it as well")
    options = parser.parse_args()
    if options.backend == "both":  # each in a process of its own, which has a peak of its own
        for backend in BACKENDS:
            subprocess.run([sys.executable, "-m", "bench.pipelines", *sys.argv[1:], "--backend", backend], check=True)
        return
    with databases(options.backend, options.scratch) as fresh, fresh() as url:
        figures = asyncio.run(_measure(url, options))
        print(json.dumps({"backend": options.backend, "items": options.items} | figures), flush=True)


async def _measure(url: str, options: argparse.Namespace) -> dict[str, float]:
    app = Ostinato(url, options=EngineOptions(concurrency=200))
    for name in (*STEPS, "remove-thumbnail"):
        app.step(f"publishing.{name}")(_work)
    async with app:
        await app.pipelines.define(definition_files.read(PIPELINE.read_bytes(), PIPELINE.name)[0].document)
        profile = profiler() if options.profile else contextlib.nullcontext()
        began, cpu = time.perf_counter(), time.process_time()
        with profile:
            entered, enriched = await _enrich(app, options.items)
            await _review(app, options.items)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        await _check(app, options.items)
    if options.profile:
        print(cast("Profiler", profile).text())
    return {
        "seconds": round(took, 2),
        "items_per_second": round(options.items / took),
        "tasks_per_second": round(options.items * TASKS / took),
        "moves_per_second": round(options.items * MOVES / took),
        "entered_per_second": round(options.items / entered),
        "enriched_per_second": round(options.items / enriched),
        "reviewed_per_second": round(options.items / (took - enriched)),
        "cpu_ms_per_item": round(cpu / options.items * 1e3, 2),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


async def _work(item: Any, results: dict[str, Any]) -> dict[str, Any]:
    return {"title": item["title"], "evidence": sorted(results)}


async def _enrich(app: Ostinato, count: int) -> tuple[float, float]:
    """Enter all items and wait until each waits for its review; the seconds of the first, and of both."""
    began = time.perf_counter()
    new = [NewItem({"title": f"News {n}", "file": f"{n}.txt"}, f"item-{n}") for n in range(count)]
    await app.pipelines.enter_many("publishing", new)
    entered = time.perf_counter() - began
    while (await app.approvals.waiting()).number < count:
        await asyncio.sleep(0.1)
    return entered, time.perf_counter() - began


async def _review(app: Ostinato, count: int) -> None:
    for start in range(0, count, AT_ONCE):
        decisions = [
            app.engine.execute(commands.Decide(f"item-{n}:1", "review", "approve", "editor", "fine"))
            for n in range(start, min(start + AT_ONCE, count))
        ]
        await asyncio.gather(*decisions)


async def _check(app: Ostinato, count: int) -> None:
    for n in range(0, count, max(1, count // 100)):
        item, _ = await app.pipelines.item(f"item-{n}")
        moves = await app.pipelines.history(f"item-{n}")
        if item.status != 400 or len(moves) < MOVES:  # more, where a worker handed back what it did not get to
            raise AssertionError(f"{item.item_id} is in {item.status} after {len(moves)} moves")


if __name__ == "__main__":
    main()
