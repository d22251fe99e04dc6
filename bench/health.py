"""`python -m bench.health`: what a look at the health of a pipeline costs, and pages of its items, with many items.

The dashboard is the query of the web UI, from the request to the answer, without a network. The items are filled in by
plain SQL, without their jobs and history, which none of this reads.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import httpx2

from bench.databases import BACKENDS, databases
from ostinato import EngineOptions, Ostinato
from ostinato.api import server, settings
from ostinato.core import item_filters

QUERIES = Path(__file__).parents[1] / "ui" / "src" / "services" / "pipelines.ts"
DASHBOARD = re.findall(r"const HEALTH = graphql\(`(.*?)`\)", QUERIES.read_text(), re.S)[0]
SIZES = (10_000, 100_000, 1_000_000)
TARGET_MS = 50.0
PIECE = 50_000
STEPS = ("fetch", "score", "summarize", "tag", "thumbnail")
SPREAD = (100, 110, 111, 122, 210, 211, 220, 300, 300, 400, 400, 400, 400, 400, 400, 400, 500, 540, 599, 400)
"""The statuses of twenty items; the same for the next twenty."""
FILL = """
INSERT INTO item (
    tenant, item_id, pipeline, version, status, open, job_id, run, steps, step, attempt, retry_at, failures, entered_at,
    status_at, digest, payload
)
SELECT 'default', 'item-' || n, 'bench', 1, {status}, {status} < 400, 'item-' || n || ':1', 1,
    CAST('{"tag":["waiting",1]}' AS {bytes}), 'tag', 1, CASE WHEN {status} = 220 THEN {now} + n END, 0,
    {now} - n * 50000, {now} - n * 50000, CAST('' AS {bytes}), CAST('null' AS {bytes})
FROM {numbers};
"""
COUNT = """
INSERT INTO tally (tenant, topic, key, bucket, writer, count, amount)
SELECT 'default', 'items', 'bench/' || status, 0, '', count(*), 0 FROM item GROUP BY status;
"""
TIMES = """
INSERT INTO tally (tenant, topic, key, bucket, writer, count, amount) VALUES
"""


def pipeline() -> dict[str, Any]:
    """As many statuses and steps as a pipeline of people's has."""
    names = {code: f"status-{code}" for code in (*range(100, 600, 10), *range(111, 600, 10), *range(112, 600, 10), 599)}
    steps = [
        {"step": step, "function": "noop", "statuses": [names[at], names[at + 1], names[at + 2]]}
        for step, at in zip(STEPS, (110, 120, 210, 220, 230), strict=True)
    ]
    review = {"review": "review", "waiting": names[300], "taken": names[310], "reject": names[540]}
    return {
        "name": "bench",
        "statuses": [{"code": code, "name": name} for code, name in sorted(names.items())],
        "course": [{"status": names[100]}, *steps, review, {"status": names[400]}],
        "failed": names[500],
        "deadLetter": names[599],
    }


async def fill(url: str, first: int, until: int) -> None:
    lite = url.startswith("sqlite")
    connection: Any = apsw.Connection(url.removeprefix("sqlite:///")) if lite else await asyncpg.connect(url)

    async def execute(text: str) -> None:
        if lite:
            with connection:
                connection.execute(text)
        else:
            await connection.execute(text, timeout=600)

    await execute("DROP TRIGGER item_entered" if lite else "ALTER TABLE item DISABLE TRIGGER USER")
    now = int(time.time() * 1e6)
    status = "CASE n % 20 " + " ".join(f"WHEN {n} THEN {code}" for n, code in enumerate(SPREAD)) + " END"
    for start in range(first, until, PIECE):
        stop = min(start + PIECE, until)
        numbers = f"generate_series({start}::int8, {stop - 1}::int8) AS s (n)"
        if lite:
            numbers = (
                f"(WITH RECURSIVE c(n) AS (SELECT {start} UNION ALL SELECT n + 1 FROM c WHERE n < {stop - 1}) "
                "SELECT n FROM c) s"
            )
        text = FILL
        values = {"status": status, "now": now, "numbers": numbers, "bytes": "BLOB" if lite else "bytea"}
        for name, value in values.items():
            text = text.replace("{" + name + "}", str(value))
        await execute(text)
        print(f"  {stop:,} items", end="\r", file=sys.stderr, flush=True)
    hour = now // 3_600_000_000
    rows = [
        f"('default', '{topic}', 'bench/{step}/{part}', {hour - ago}, '', {count}, {count * 250_000})"
        for step in STEPS
        for ago in range(24 * 35)
        for topic, parts, count in (("steps", ("completed", "failed"), 900), ("steps.times", range(10, 40), 30))
        for part in (parts if topic == "steps" else [f"{number:03d}" for number in parts])
    ]
    await execute("DELETE FROM tally")
    for start in range(0, len(rows), 500):
        await execute(TIMES + ", ".join(rows[start : start + 500]))
    await execute(COUNT)
    if lite:
        connection.close()
    else:
        await connection.execute("VACUUM ANALYZE item, tally", timeout=600)
        await connection.close()


async def measure(url: str, repeat: int) -> dict[str, tuple[float, float]]:
    """p50 and p95 in milliseconds."""
    app = Ostinato(url, options=EngineOptions(work=False, maintain=False))
    took: dict[str, list[float]] = {}
    options = settings.ServerOptions(requests_per_second=10_000.0)
    async with app, server.Server(app, options) as running:
        transport = httpx2.ASGITransport(running, client=("127.0.0.1", 4711))
        client = httpx2.AsyncClient(transport=transport, base_url="http://localhost")

        async def dashboard() -> None:
            answer = await client.post("/graphql", json={"query": DASHBOARD, "variables": {"name": "bench"}})
            if answer.json()["data"]["pipelineHealth"]["items"] == 0:
                raise AssertionError(answer.text)

        asks: dict[str, Callable[[], Awaitable[Any]]] = {
            "the dashboard, over GraphQL": dashboard,
            "health": lambda: app.pipelines.health("bench"),
            "items": lambda: app.pipelines.list(item_filters.ItemFilter("bench")),
            "items in a status": lambda: app.pipelines.list(item_filters.ItemFilter("bench", status=400)),
            "items that are retried": lambda: app.pipelines.list(item_filters.ItemFilter("bench", retrying=True)),
        }
        for turn in range(repeat + 5):
            for name, ask in asks.items():
                began = time.perf_counter()
                await ask()
                if turn >= 5:  # the first ones make connections and plans
                    took.setdefault(name, []).append((time.perf_counter() - began) * 1000)
    return {name: (statistics.median(times), statistics.quantiles(times, n=20)[-1]) for name, times in took.items()}


async def _prepare(url: str) -> None:
    async with Ostinato(url, options=EngineOptions(work=False, maintain=False)) as app:
        await app.pipelines.define(pipeline())


def run(backend: str, options: argparse.Namespace) -> bool:
    columns: dict[str, dict[str, tuple[float, float]]] = {}
    sizes = [size for size in SIZES if size < options.items] + [options.items]
    with databases(backend, options.scratch) as fresh:
        for size in sizes:
            with fresh() as url:
                asyncio.run(_prepare(url))
                asyncio.run(fill(url, 0, size))
                columns[f"{size:,} items"] = asyncio.run(measure(url, options.repeat))
    lines = [f"| {backend}: p50 / p95 ms | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for name in next(iter(columns.values())):
        cells = [f"{column[name][0]:.1f} / {column[name][1]:.1f}" for column in columns.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    print("\n".join(lines), flush=True)
    slow = {
        f"{name} ({size})": round(times[1], 1)
        for size, column in columns.items()
        for name, times in column.items()
        if times[1] > TARGET_MS
    }
    print(f"\n{backend}: everything within {TARGET_MS:.0f} ms" if not slow else f"\n{backend}: too slow: {slow}")
    return not slow


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.health", description=__doc__)
    parser.add_argument("--items", type=int, default=SIZES[-1])
    parser.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--scratch", type=Path, default=Path(), help="a folder on a real disk for SQLite files")
    options = parser.parse_args()
    quick = [run(backend, options) for backend in (BACKENDS if options.backend == "both" else (options.backend,))]
    return 0 if all(quick) else 1


if __name__ == "__main__":
    sys.exit(main())
