"""`python -m bench.index`: what a page of the execution index costs, by filter, size and number of agents.

Half of the executions are jobs, half were reported from outside. They are filled in by plain SQL, without the tasks and
events of the jobs, which the index does not read; the pages are read through the library.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import math
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import asyncpg

from bench.databases import BACKENDS, databases
from ostinato import EngineOptions, Ostinato

SIZES = (10_000, 100_000, 1_000_000)
AGENTS = (10, 1_000)
FIRST = 1_750_000_000_000_000
EVERY = 30_000_000
"""Microseconds from one execution to the next: a million of them are most of a year."""
TARGET_MS = 10.0
PIECE = 50_000
ARN = "'arn:aws:states:us-west-2:123456789012:execution:agent-' || (n * 7919 % {agents}) || '-prod:run-' || n"
FILL = """
INSERT INTO job (
    tenant, job_id, name, state, priority, correlation_id, tags, cascades, created_at, finished_at, last_seq, total,
    blocked, active, completed, failed, tolerated, skipped, cancelled
)
SELECT 'default', 'job-' || n, 'agent-' || (n * 7919 % {agents}),
    CASE WHEN n % 1000 = 0 THEN 'running' WHEN n % 50 = 1 THEN 'failed' WHEN n % 500 = 2 THEN 'timed_out'
        WHEN n % 200 = 3 THEN 'cancelled' ELSE 'completed' END,
    0, 'order-' || (n / 10), CAST('{"team":"' || (n % 20) || '","customer":"' || (n / 40) || '"}' AS {bytes}), {false},
    {first} + n * {every}, CASE WHEN n % 1000 <> 0 THEN {first} + n * {every} + 1000000 END, 4, 1, 0, 0, 1, 0, 0, 0, 0
FROM {numbers};
INSERT INTO job_tag (tenant, job_id, key, value, created_at)
SELECT 'default', 'job-' || n, 'team', CAST(n % 20 AS TEXT), {first} + n * {every} FROM {numbers};
INSERT INTO job_tag (tenant, job_id, key, value, created_at)
SELECT 'default', 'job-' || n, 'customer', CAST(n / 40 AS TEXT), {first} + n * {every} FROM {numbers};
INSERT INTO execution (
    tenant, execution_arn, state_machine_arn, agent_name, execution_name, status, start_at, stop_at, correlation_id,
    indexed_at
)
SELECT 'default', {arn},
    'arn:aws:states:us-west-2:123456789012:stateMachine:agent-' || (n * 7919 % {agents}) || '-prod',
    'agent-' || (n * 7919 % {agents}), 'run-' || n,
    CASE WHEN n % 1000 = 0 THEN 'RUNNING' WHEN n % 50 = 1 THEN 'FAILED' WHEN n % 500 = 2 THEN 'TIMED_OUT'
        WHEN n % 200 = 3 THEN 'ABORTED' ELSE 'SUCCEEDED' END,
    {first} + n * {every} + 500, CASE WHEN n % 1000 <> 0 THEN {first} + n * {every} + 1000500 END, 'order-' || (n / 10),
    {first} + n * {every}
FROM {numbers};
INSERT INTO execution_tag (tenant, execution_arn, key, value, start_at)
SELECT 'default', {arn},
    t.key, CASE t.key WHEN 'Type' THEN 'Agent' WHEN 'team' THEN CAST(n % 20 AS TEXT) ELSE CAST(n / 40 AS TEXT) END,
    {first} + n * {every} + 500
FROM {numbers} CROSS JOIN (SELECT 'Type' AS key UNION ALL SELECT 'team' UNION ALL SELECT 'customer') t;
"""

Ask = Callable[[Ostinato], Awaitable[Any]]


def moment(n: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp((FIRST + n * EVERY) / 1e6, datetime.UTC)


def filters(count: int, agents: int, chance: random.Random) -> dict[str, dict[str, Any]]:
    """Every documented way to ask, about a place picked anew each time."""
    last = count // 2
    start = chance.randrange(last)
    agent = f"agent-{chance.randrange(agents)}"
    days = {"started_from": moment(start), "started_until": moment(start + 20_000)}
    customer = f"customer={chance.randrange(last // 40)}"
    return {
        "newest": {},
        "oldest": {"order": "oldest"},
        "date range": days,
        "agent": {"agent_name": agent},
        "agent + dates": {"agent_name": agent} | days,
        "agent + dates, oldest first": {"agent_name": agent, "order": "oldest"} | days,
        "status": {"status": "FAILED"},
        "status + dates": {"status": "TIMED_OUT"} | days,
        "two statuses + dates": {"status": ["FAILED", "ABORTED"]} | days,
        "agent + FAILED + dates": {"agent_name": agent, "status": "FAILED"} | days,
        "agent + SUCCEEDED": {"agent_name": agent, "status": "SUCCEEDED"},
        "agent + RUNNING": {"agent_name": agent, "status": "RUNNING"},
        "tag": {"tag": f"team={chance.randrange(20)}"},
        "tag on a few": {"tag": customer},
        "tag + dates": {"tag": f"team={chance.randrange(20)}"} | days,
        "tag on all + agent + FAILED": {"tag": "Type=Agent", "agent_name": agent, "status": "FAILED"},
        "tag on a few + agent": {"tag": customer, "agent_name": agent},
        "tag + status": {"tag": f"team={chance.randrange(20)}", "status": "SUCCEEDED"},
        "tag + status that never meet": {"tag": "team=3", "status": "TIMED_OUT"},
        "tag + agent that never meet": {"tag": "team=3", "agent_name": "agent-0"},
        "correlation id": {"correlation_id": f"order-{chance.randrange(last // 10)}"},
        "correlation id + status": {"correlation_id": f"order-{chance.randrange(last // 10)}", "status": "FAILED"},
    }


async def fill(url: str, first: int, until: int, agents: int) -> None:
    """Executions `first` to `until`, half of them jobs."""
    lite = url.startswith("sqlite")
    connection: Any = apsw.Connection(url.removeprefix("sqlite:///")) if lite else await asyncpg.connect(url)
    for start in range(first // 2, until // 2, PIECE):
        stop = min(start + PIECE, until // 2)
        numbers = f"generate_series({start}::int8, {stop - 1}::int8) AS s (n)"
        if lite:
            numbers = (
                f"(WITH RECURSIVE c(n) AS (SELECT {start} UNION ALL SELECT n + 1 FROM c WHERE n < {stop - 1}) "
                "SELECT n FROM c) s"
            )
        values = {"agents": agents, "first": FIRST, "every": EVERY, "numbers": numbers}
        values |= {"bytes": "BLOB", "false": "0"} if lite else {"bytes": "bytea", "false": "false"}
        text = FILL.replace("{arn}", ARN)
        for name, value in values.items():
            text = text.replace("{" + name + "}", str(value))
        if lite:
            with connection:
                connection.execute(text)
        else:
            await connection.execute(text)
        print(f"  {2 * stop:,} executions", end="\r", file=sys.stderr, flush=True)
    if lite:
        connection.close()
    else:
        await connection.execute("VACUUM ANALYZE job, job_tag, execution, execution_tag", timeout=600)
        await connection.close()


async def measure(url: str, count: int, agents: int, repeat: int) -> dict[str, tuple[float, float]]:
    """p50 and p95 in milliseconds of a page of 50, by filter, and of the counts of 30 days."""
    app = Ostinato(url, options=EngineOptions(work=False, maintain=False))
    took: dict[str, list[float]] = {}
    chance = random.Random(5)
    async with app:
        for turn in range(repeat + 5):
            for name, wanted in filters(count, agents, chance).items():
                began = time.perf_counter()
                await app.executions(most=50, **wanted)
                if turn >= 5:  # the first ones make connections and plans
                    took.setdefault(name, []).append((time.perf_counter() - began) * 1000)
        start = chance.randrange(max(1, count // 2 - 86_400))
        days = {"started_from": moment(start), "started_until": moment(start + 86_400)}
        for name, wanted in (("30 days", days), ("agent, 30 days", days | {"agent_name": "agent-7"}), ("all", {})):
            for by in ("status", "day"):
                for _ in range(5):
                    began = time.perf_counter()
                    await app.execution_counts(by, **wanted)  # pyright: ignore[reportArgumentType]
                    took.setdefault(f"counts by {by}: {name}", []).append((time.perf_counter() - began) * 1000)
    return {name: (statistics.median(times), _p95(times)) for name, times in took.items()}


def _p95(times: list[float]) -> float:
    return sorted(times)[max(0, math.ceil(len(times) * 0.95) - 1)]


def table(backend: str, columns: dict[str, dict[str, tuple[float, float]]]) -> str:
    lines = [f"| {backend}: p50 / p95 ms | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for name in next(iter(columns.values())):
        cells = [f"{column[name][0]:.1f} / {column[name][1]:.1f}" for column in columns.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def run(backend: str, options: argparse.Namespace) -> bool:
    columns: dict[str, dict[str, tuple[float, float]]] = {}
    sizes = [size for size in SIZES if size < options.executions] + [options.executions]
    with databases(backend, options.scratch) as fresh:
        for agents in AGENTS:
            with fresh() as url:
                asyncio.run(_migrate(url))
                filled = 0
                for size in sizes:
                    asyncio.run(fill(url, filled, size, agents))
                    filled = size
                    measured = asyncio.run(measure(url, size, agents, options.repeat))
                    columns[f"{size:,}, {agents:,} agents"] = measured
    print(table(backend, columns), flush=True)
    slow = {
        f"{name} ({size})": round(times[1], 1)
        for size, column in columns.items()
        for name, times in column.items()
        if times[1] > TARGET_MS and not name.startswith("counts")
    }
    print(f"\n{backend}: every page within {TARGET_MS:.0f} ms" if not slow else f"\n{backend}: too slow: {slow}")
    return not slow


async def _migrate(url: str) -> None:
    async with Ostinato(url, options=EngineOptions(work=False, maintain=False)):
        pass


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.index", description=__doc__)
    parser.add_argument("--executions", type=int, default=SIZES[-1])
    parser.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    parser.add_argument("--repeat", type=int, default=100, help="pages of each filter")
    parser.add_argument("--scratch", type=Path, default=Path(), help="a folder on a real disk for SQLite files")
    options = parser.parse_args()
    backends = BACKENDS if options.backend == "both" else (options.backend,)
    quick = [run(backend, options) for backend in backends]
    return 0 if all(quick) else 1


if __name__ == "__main__":
    sys.exit(main())
