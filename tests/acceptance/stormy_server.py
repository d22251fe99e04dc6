"""A server that also works, to be killed in the storm: `python -m tests.acceptance.stormy_server URL PORT`."""

from __future__ import annotations

import asyncio
import sys

from ostinato.api import server, settings
from tests.acceptance import stormy


async def main(url: str, port: int) -> None:
    async with stormy.build(url) as home:
        made = settings.ServerOptions(port=port, requests_per_second=100_000.0)
        async with server.Server(home, made) as running:
            listener = server.Listener(running)
            await listener.start()
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
