"""`python -m bench.playbooks`: what a playbook costs beside its agents, with 100 ingestions of five agents at once.

Four agents read the data at the same time and a fifth needs one of them; the answers are checked, put together and
saved. Each agent takes the time of `--own`, waiting, and what is told is what remains without it: the time on the
clock, and the processor time of this process, which is less disturbed on a busy machine. Both are for one agent, with
the share of the stages around it: seven for each ingestion.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import time
from pathlib import Path
from typing import Any, cast

from bench.databases import BACKENDS, databases
from bench.profiling import Profiler, profiler
from ostinato import EngineOptions, Ostinato

AGENTS = ("place", "time", "category", "summary", "severity")
CHAIN = 2
"""Agents that wait for each other: category, then severity."""
WARM_UP = 5
TARGETS = {"sqlite": 2.0}
SCHEMA = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
PLAYBOOK = {
    "name": "bench",
    "domain": "bench",
    "type": "ingestion",
    "agents": list(AGENTS),
    "save": {"text": "{% raw_data.text %}", "fields": "{% synthesized %}"},
}
TEXT = "Smoke from a roof in Dyers Lane at 06:40, two people are trapped."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.playbooks", description=__doc__)
    parser.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    parser.add_argument("--count", type=int, default=100, help="ingestions at once")
    parser.add_argument("--own", type=float, default=0.02, help="seconds that each agent takes itself")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scratch", type=Path, default=Path())
    parser.add_argument("--profile", action="store_true", help="profile the first round instead")
    options = parser.parse_args()
    for backend in BACKENDS if options.backend == "both" else (options.backend,):
        with databases(backend, options.scratch) as fresh:
            rounds = 1 if options.profile else options.rounds
            took = [_round(fresh, options) for _ in range(rounds)]
            figures = {name: _median([one[name] for one in took]) for name in took[0]}
            best = {f"best_{name}": round(min(one[name] for one in took), 3) for name in ("wall_ms", "cpu_ms")}
            told = {"backend": backend, "ingestions": options.count, "agents": options.count * len(AGENTS)}
            target = {"target_ms": TARGETS[backend]} if backend in TARGETS else {}
            print(json.dumps(told | figures | best | target), flush=True)


def _round(fresh: Any, options: argparse.Namespace) -> dict[str, float]:
    with fresh() as url:
        return asyncio.run(_measure(url, options))


async def _measure(url: str, options: argparse.Namespace) -> dict[str, float]:
    app = Ostinato(url, options=EngineOptions(concurrency=options.count * len(AGENTS)))

    @app.agent("bench-agent")
    async def run(raw_data: Any) -> dict[str, Any]:
        await asyncio.sleep(options.own)
        return {"value": "x", "evidence": [raw_data["text"]]}

    async with app:
        await _define(app)
        await _ingest(app, WARM_UP)
        profile = profiler() if options.profile else contextlib.nullcontext()
        wall, cpu = time.perf_counter(), time.process_time()
        with profile:
            await _ingest(app, options.count)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if options.profile:
        print(cast("Profiler", profile).text())
    agents = options.count * len(AGENTS)
    beside = wall - CHAIN * options.own
    return {"seconds": round(wall, 3), "wall_ms": beside / agents * 1e3, "cpu_ms": cpu / agents * 1e3}


async def _define(app: Ostinato) -> None:
    for name in AGENTS:
        parents = ["category"] if name == "severity" else []
        agent = {"name": name, "kind": "function", "function": "bench-agent", "outputSchema": SCHEMA}
        await app.playbooks.define_agent(agent | {"dependencyParents": parents})
    await app.playbooks.define(PLAYBOOK)


async def _ingest(app: Ostinato, count: int) -> None:
    jobs = await asyncio.gather(*[app.ingest("bench", {"text": TEXT, "number": n}) for n in range(count)])
    for outputs in await asyncio.gather(*[job.result() for job in jobs]):
        if outputs["$save"]["status"] != "saved":
            raise AssertionError("an answer was not saved")


def _median(values: list[float]) -> float:
    return round(sorted(values)[len(values) // 2], 3)


if __name__ == "__main__":
    main()
