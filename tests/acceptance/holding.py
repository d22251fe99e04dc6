"""A program that holds tasks until it is killed: `python -m tests.acceptance.holding URL`."""

import asyncio
import sys
from typing import Any

from ostinato import Retry
from tests.engine import support


async def main(url: str) -> None:
    app = support.make(url, lease_seconds=60, default_retry=Retry(max_attempts=3, base_delay=0))

    @app.function("gate")
    async def hold(ctx: Any) -> None:
        print(ctx.task_id, flush=True)
        await asyncio.sleep(600)

    async with app:
        await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
