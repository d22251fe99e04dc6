"""A worker process to be killed: `python -m tests.acceptance.killable URL EFFECTS`.

Every task writes a line to the EFFECTS file when its body runs, so that a test can count what really happened.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys

from ostinato import Context, EngineOptions, Ostinato, Retry

PATIENT = Retry(max_attempts=50, base_delay=0.02, multiplier=1.0)


def build(url: str, effects: str) -> Ostinato:
    app = Ostinato(url, options=EngineOptions(lease_seconds=1.0, poll_seconds=0.1, concurrency=8))
    out = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(kind: str, ctx: Context) -> None:
        os.write(out, f"{kind} {ctx.idempotency_key}\n".encode())

    @app.function(retry=PATIENT)
    async def quick(ctx: Context, n: int) -> int:
        note("run", ctx)
        return n

    @app.function(retry=PATIENT)
    async def slow(ctx: Context, n: int) -> int:
        note("run", ctx)
        await asyncio.sleep(random.random() * 0.05)
        return n

    @app.function(retry=PATIENT)
    async def careful(ctx: Context, n: int) -> int:
        async def effect() -> int:
            note("step", ctx)
            return n

        got = await ctx.step("effect", effect)
        await ctx.sleep(0.05)
        if ctx.attempt == 1:
            raise ConnectionError("once more")
        return got

    @app.function(retry=PATIENT)
    async def grower(ctx: Context) -> str:
        await ctx.add_tasks([{"taskId": f"{ctx.task_id}.child", "name": "quick", "input": {"n": 1}}])
        return "grown"

    @app.function(retry=PATIENT)
    async def join(ctx: Context) -> int:
        return sum(v for v in (await ctx.dependency_outputs.load()).values() if isinstance(v, int))

    return app


def job(number: int) -> dict[str, object]:
    tasks = [
        {"taskId": "q1", "name": "quick", "input": {"n": 1}},
        {"taskId": "q2", "name": "quick", "input": {"n": 2}, "dependsOn": ["q1"]},
        {"taskId": "s", "name": "slow", "input": {"n": 3}, "dependsOn": ["q1"]},
        {"taskId": "c", "name": "careful", "input": {"n": 4}},
        {"taskId": "g", "name": "grower", "dependsOn": ["q2"]},
        {"taskId": "j", "name": "join", "dependsOn": ["q2", "s", "c"]},
    ]
    return {"name": "kill", "idempotencyKey": f"job-{number}", "tasks": tasks}


async def main(url: str, effects: str) -> None:
    async with build(url, effects):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
