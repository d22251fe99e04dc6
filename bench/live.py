"""`python -m bench.live`: how long it takes from a commit to somebody who follows the job over a socket.

The commit is one of the server's own process, or one of another process on the same database.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect

from bench.databases import BACKENDS, databases
from ostinato import EngineOptions, Ostinato
from ostinato.api import server, settings

WARM_UP = 20
PAUSE = 0.06
"""Longer than announcements are gathered, as in a job that says something now and then."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.live", description=__doc__)
    parser.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--scratch", type=Path, default=Path())
    parser.add_argument("--publish", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.publish:
        asyncio.run(_elsewhere(options.publish, options.count))
        return
    for backend in BACKENDS if options.backend == "both" else (options.backend,):
        with databases(backend, options.scratch) as fresh:
            for where in ("here", "elsewhere"):
                with fresh() as url:
                    took = sorted(asyncio.run(_measure(url, where, options.count)))
                shown = {name: round(took[int(len(took) * part)] * 1e3, 2) for name, part in PARTS.items()}
                print(json.dumps({"backend": backend, "commit": where, "events": len(took)} | shown), flush=True)


PARTS = {"p50_ms": 0.5, "p95_ms": 0.95}


async def _measure(url: str, where: str, count: int) -> list[float]:
    home = Ostinato(url, options=EngineOptions(work=False, check_functions=False))
    async with home, server.Server(home, settings.ServerOptions(port=0)) as made:
        listener = server.Listener(made)
        await listener.start()
        await home.submit({"jobId": "bench", "tasks": [{"taskId": "a", "name": "nobody"}]})
        try:
            async with connect(listener.address.replace("http", "ws") + "/v1/stream") as socket:
                await socket.send('{"jobId": "bench"}')
                await socket.recv()
                await asyncio.sleep(home.options.poll_seconds)
                publishing = asyncio.create_task(_publish(home, count) if where == "here" else _other(url, count))
                took = [await _next(socket) for _ in range(count)]
                await publishing
        finally:
            await listener.stop()
    return took[WARM_UP:]


async def _next(socket: ClientConnection) -> float:
    return time.time() - float(json.loads(await socket.recv())["event"]["properties"]["message"])


async def _publish(app: Ostinato, count: int) -> None:
    """The time is taken before the order is given: the commit itself is part of what is measured."""
    for _ in range(count):
        await asyncio.sleep(PAUSE)
        await app.publish_status("bench", "working", repr(time.time()))


async def _elsewhere(url: str, count: int) -> None:
    async with Ostinato(url, options=EngineOptions(work=False, maintain=False)) as app:
        await _publish(app, count)


async def _other(url: str, count: int) -> None:
    command = [sys.executable, "-m", "bench.live", "--publish", url, "--count", str(count)]
    process = await asyncio.create_subprocess_exec(*command, env=os.environ)
    if await process.wait():
        raise subprocess.CalledProcessError(process.returncode or 1, command)


if __name__ == "__main__":
    main()
