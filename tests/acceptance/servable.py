"""A server process to be killed: `python -m tests.acceptance.servable URL PORT`. Its loops are quick, for the test."""

from __future__ import annotations

import asyncio
import sys

from ostinato import EngineOptions, Ostinato
from ostinato.api import server, settings


async def main(url: str, port: int) -> None:
    options = EngineOptions(work=False, lease_seconds=2.0, poll_seconds=0.1, check_functions=False)
    async with Ostinato(url, options=options) as home:
        made = settings.ServerOptions(port=port, requests_per_second=10_000.0)
        async with server.Server(home, made) as running:
            listener = server.Listener(running)
            await listener.start()
            print("ready", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
