"""`python -m bench.neighbours`: how long a tenant waits beside one that misbehaves, and without it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from bench.databases import BACKENDS, databases

EVERY = 0.02
"""Seconds between the requests of the calm tenant."""
AT_ONCE = 4
MOST_TIMES = 5.0
"""By how much the calm tenant's 99th percentile may grow."""
ENDLESS = "($f := function($n) { $f($n) }; $f(1))"
OUTSIDE: dict[str, Any] = {"name": "outside", "external": True}

Send = Callable[[httpx2.AsyncClient, int], Awaitable[httpx2.Response]]


def _tasks(count: int, depends_on: Callable[[int], list[str]]) -> bytes:
    tasks = [OUTSIDE | {"taskId": f"t{n}", "dependsOn": depends_on(n)} for n in range(count)]
    return json.dumps({"tasks": tasks}).encode()


LAYERS = _tasks(10_000, lambda n: [f"t{n - 100}"] if n >= 100 else [])
DENSE = _tasks(480, lambda n: [f"t{other}" for other in range(n)])
CIRCLE = _tasks(10_000, lambda n: [f"t{(n + 1) % 10_000}"])
SMALL = json.dumps([{"tasks": [OUTSIDE | {"taskId": "a"}]} for _ in range(5_000)]).encode()


def _posting(path: str, body: bytes) -> Send:
    return lambda client, n: client.post(path, content=body, headers={"Content-Type": "application/json"})


async def _endless(client: httpx2.AsyncClient, n: int) -> httpx2.Response:
    return await client.post(f"/v1/gates/slow/{n}/arrivals", json={"member": "a"})


LOUD: dict[str, Send] = {
    "plans of 10,000 tasks": _posting("/v1/plans", LAYERS),
    "dense plans": _posting("/v1/plans", DENSE),
    "circles of 10,000 tasks": _posting("/v1/plans", CIRCLE),
    "counts by hour": lambda client, n: client.get("/v1/executions/counts?by=hour"),
    "endless expressions": _endless,
    "jobs of 10,000 tasks": _posting("/v1/jobs", LAYERS),
    "batches of 5,000 jobs": _posting("/v1/jobs", SMALL),
}


async def calm(client: httpx2.AsyncClient, seconds: float) -> list[float]:
    """Submissions and reads, one after the other."""
    took: list[float] = []
    until = time.perf_counter() + seconds
    path = "/v1/jobs"
    while time.perf_counter() < until:
        began = time.perf_counter()
        if len(took) % 2:
            answer = await client.get(path)
        else:
            answer = await client.post("/v1/jobs", json={"tasks": [OUTSIDE | {"taskId": "a"}]})
            path = f"/v1/jobs/{answer.json()['jobId']}"
        took.append(time.perf_counter() - began)
        answer.raise_for_status()
        await asyncio.sleep(EVERY)
    return sorted(took)


async def gate(client: httpx2.AsyncClient, count: int) -> float:
    """The longest time from a report to the start of the job that it triggers, whose input is an expression."""
    longest = 0.0
    for _ in range(count):
        key = str(time.perf_counter_ns())
        began = time.perf_counter()
        (
            await client.post(f"/v1/gates/quick/{key}/arrivals", json={"member": "a", "data": {"n": 1}})
        ).raise_for_status()
        while not (await client.get("/v1/jobs", params={"correlationId": f"c{key}", "limit": 1})).json()["jobs"]:
            await asyncio.sleep(0.02)
        longest = max(longest, time.perf_counter() - began)
    return longest


async def loud(client: httpx2.AsyncClient, send: Send, sent: list[int]) -> None:
    """As often as it is let."""
    numbers = itertools.count()

    async def go() -> None:
        while True:
            answer = await send(client, next(numbers))
            sent.append(answer.status_code)
            if answer.status_code == 429:
                await asyncio.sleep(float(answer.headers["retry-after"]))

    await asyncio.gather(*[go() for _ in range(AT_ONCE)])


class Measured(NamedTuple):
    beside: str
    p50: float
    p99: float
    longest: float
    gate: float
    times: float
    sent: int
    refused: int


async def measure(
    address: str, keys: dict[str, str], only: list[str], seconds: float, *, gates: int = 5, settle: float = 2.0
) -> AsyncGenerator[Measured]:
    """For each way to misbehave: the calm tenant's percentiles, and how often they are those that it has alone."""
    quiet = 0.0
    async with contextlib.AsyncExitStack() as stack:
        clients: dict[str, httpx2.AsyncClient] = {}
        for tenant, key in keys.items():
            headers = {"Authorization": f"Bearer {key}"}
            client = httpx2.AsyncClient(base_url=address, headers=headers, timeout=120)
            clients[tenant] = await stack.enter_async_context(client)
        await prepare(clients)
        await calm(clients["calm"], seconds / 2)  # caches fill
        for name in ["nobody", *only]:
            sent: list[int] = []
            send = LOUD.get(name)
            beside = None if send is None else asyncio.create_task(loud(clients["loud"], send, sent))
            await asyncio.sleep(0 if send is None else 0.5)
            took = await calm(clients["calm"], seconds)
            opened = await gate(clients["calm"], gates)
            if beside is not None:
                beside.cancel()
                await asyncio.gather(beside, return_exceptions=True)
            p50, p99 = (took[int(len(took) * part)] for part in (0.5, 0.99))
            quiet = quiet or p99
            yield Measured(name, p50, p99, took[-1], opened, p99 / quiet, len(sent), sent.count(429))
            await asyncio.sleep(settle)  # what was taken from the loud tenant is worked off


async def prepare(clients: dict[str, httpx2.AsyncClient]) -> None:
    triggered = {"job": {"name": "next", "correlationId": "{% 'c' & key %}", "tasks": [OUTSIDE | {"taskId": "a"}]}}
    for tenant, name, expression in (("calm", "quick", "$sum(members.*.data.n)"), ("loud", "slow", ENDLESS)):
        answer = await clients[tenant].put(
            f"/v1/gates/{name}",
            json={
                "members": ["a"],
                "aggregate": {"x": {"how": "jsonata", "expression": expression}},
                "trigger": [triggered],
            },
        )
        answer.raise_for_status()


async def make_keys(url: str) -> dict[str, str]:
    """A key for each tenant."""
    from ostinato import EngineOptions, Ostinato

    async with Ostinato(url, options=EngineOptions(work=False, maintain=False)) as app:
        made = {name: await app.engine.store.create_key(name, name, ["admin"]) for name in ("calm", "loud")}
        return {name: key.text for name, key in made.items()}


@contextlib.contextmanager
def server(url: str) -> Generator[str]:
    """The address of a server with the limits that it has by default."""
    command = [sys.executable, "-m", "ostinato.cli.main", "server", "--port", "0", "--log-level", "error"]
    environment = os.environ | {"OSTINATO_URL": url}
    with subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1].rstrip(",")
        finally:
            process.kill()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.neighbours", description=__doc__)
    parser.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each way to misbehave")
    parser.add_argument("--only", choices=list(LOUD), action="append", help="one way to misbehave; all by default")
    options = parser.parse_args()
    worst = 0.0
    for backend in BACKENDS if options.backend == "both" else (options.backend,):
        with databases(backend, Path()) as fresh, fresh() as url:
            keys = asyncio.run(make_keys(url))
            with server(url) as address:
                measured = measure(address, keys, options.only or list(LOUD), options.seconds)
                worst = max(worst, asyncio.run(report(backend, measured)))
    return 1 if worst > MOST_TIMES else 0


async def report(backend: str, measured: AsyncGenerator[Measured]) -> float:
    """Print what is measured; the answer is by how much the calm tenant waits longer at the most."""
    worst = 0.0
    async for found in measured:
        times = "  ".join(f"{name} {getattr(found, name) * 1000:8.1f} ms" for name in ("p50", "p99", "longest", "gate"))
        sent = f"{found.sent} sent, {found.refused} refused"
        print(f"{backend:9}{found.beside:26}{times}  {found.times:5.1f} times  {sent}", flush=True)
        worst = max(worst, found.times)
    return worst


if __name__ == "__main__":
    sys.exit(main())
