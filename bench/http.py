"""`python -m bench.http`: requests per second through a real server, and lists over a million jobs.

The client speaks HTTP by itself: a library's client would be slower than the server that it measures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from bench.databases import BACKENDS, databases

CONNECTIONS = 16
JOB = json.dumps({"name": "bench", "tasks": [{"taskId": "a", "name": "noop", "input": {"i": 1}}]})
LISTS = {
    "newest": "/v1/jobs?limit=50",
    "by name": "/v1/jobs?limit=50&name=name-7",
    "by state": "/v1/jobs?limit=50&state=failed",
    "by correlation id": "/v1/jobs?limit=50&correlationId=correlation-4711",
    "by time": "/v1/jobs?limit=50&createdUntil=2026-01-01T00:00:00Z",
}
FILL = """
INSERT INTO job (
    tenant, job_id, name, state, priority, correlation_id, tags, cascades, created_at, finished_at, last_seq, total,
    blocked, active, completed, failed, tolerated, skipped, cancelled
)
SELECT
    'default', 'job-' || n, 'name-' || n % 100, CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END, 0,
    'correlation-' || n / 10, '{}', false, 1750000000000000 + n::int8 * 30000000, 1750000001000000 + n::int8 * 30000000,
    4, 1, 0, 0, (n % 50 <> 0)::int, (n % 50 = 0)::int, 0, 0, 0
FROM generate_series($1::int, $2::int) AS n
"""
"""Jobs as they look when they are over, without their tasks and events, which a list does not read."""


@contextmanager
def server(url: str) -> Iterator[int]:
    """A server in a process of its own, as people start it; its port."""
    command = [sys.executable, "-m", "ostinato.cli.main", "server", "--port", "0", "--requests-per-second", "1000000"]
    environment = os.environ | {"OSTINATO_URL": url}
    process = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        found = re.search(r":(\d+)", process.stdout.readline())
        if found is None:
            raise SystemExit("bench: the server did not start")
        yield int(found[1])
    finally:
        process.terminate()
        process.wait()


class Connection:
    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def ask(self, method: str, path: str, body: str = "") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(f"{head}\r\n{body}".encode())
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
        content = await self._reader.readexactly(int(length[1])) if length else b""
        if not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise SystemExit(f"bench: {method} {path} was answered {answer[:40]!r} {content[:200]!r}")
        return content


async def rate(port: int, seconds: float, request: Callable[[int], tuple[str, str, str]]) -> tuple[float, list[float]]:
    """Requests per second over some connections, and how long each took."""
    connections = [await Connection(port).open() for _ in range(CONNECTIONS)]
    took: list[float] = []
    until = time.perf_counter() + seconds

    async def go(connection: Connection) -> None:
        while (began := time.perf_counter()) < until:
            await connection.ask(*request(len(took)))
            took.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*map(go, connections))
    return len(took) / (time.perf_counter() - began), sorted(took)


async def register(url: str) -> None:
    """Let a worker be there once, so that the server knows the function."""
    from ostinato import Ostinato

    app = Ostinato(url)

    @app.function("noop")
    async def noop(i: int) -> int:
        return i

    async with app:
        pass


async def measure(port: int, backend: str, seconds: float) -> None:
    made = json.loads(await (await Connection(port).open()).ask("POST", "/v1/jobs", JOB))["jobId"]
    requests: dict[str, Callable[[int], tuple[str, str, str]]] = {
        "submit": lambda _: ("POST", "/v1/jobs", JOB),
        "read": lambda _: ("GET", f"/v1/jobs/{made}", ""),
        "list": lambda _: ("GET", "/v1/jobs?limit=50", ""),
    }
    for name, request in requests.items():
        per_second, took = await rate(port, seconds, request)
        report(backend, name, took, per_second)


async def fill(url: str, jobs: int) -> None:
    connection = await asyncpg.connect(url)
    for start in range(1, jobs + 1, 100_000):
        await connection.execute(FILL, start, min(start + 99_999, jobs))
        print(f"{min(start + 99_999, jobs):,} jobs", file=sys.stderr, flush=True)
    await connection.execute("ANALYZE")
    await connection.close()


async def measure_lists(port: int, jobs: int, pages: int) -> None:
    connection = await Connection(port).open()
    for name, path in LISTS.items():
        took: list[float] = []
        cursor = ""
        for _ in range(pages):
            began = time.perf_counter()
            page = json.loads(await connection.ask("GET", path + cursor))
            took.append(time.perf_counter() - began)
            cursor = f"&cursor={page['nextCursor']}" if page["nextCursor"] else ""
        report("postgres", f"list {name}, {jobs:,} jobs", sorted(took), None)


def report(backend: str, name: str, took: list[float], per_second: float | None) -> None:
    print(
        json.dumps(
            {
                "backend": backend,
                "request": name,
                "per_second": None if per_second is None else round(per_second, 1),
                "p50_ms": round(statistics.median(took) * 1e3, 3),
                "p95_ms": round(took[int(len(took) * 0.95)] * 1e3, 3),
            }
        ),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.http", description=__doc__)
    parser.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each kind of request")
    parser.add_argument("--jobs", type=int, default=0, help="measure lists over so many jobs on PostgreSQL instead")
    options = parser.parse_args()
    if options.jobs:
        with databases("postgres", Path()) as fresh, fresh() as url:
            asyncio.run(register(url))
            asyncio.run(fill(url, options.jobs))
            with server(url) as port:
                asyncio.run(measure_lists(port, options.jobs, 200))
        return
    for backend in BACKENDS if options.backend == "both" else (options.backend,):
        with databases(backend, Path()) as fresh, fresh() as url:
            asyncio.run(register(url))
            with server(url) as port:
                asyncio.run(measure(port, backend, options.seconds))


if __name__ == "__main__":
    main()
