"""A worker to be killed in a step of an item: `python -m tests.acceptance.killable_pipeline URL CALLS VICTIM WHEN`.

Every agent writes a line to the CALLS file when it is asked, as a checkpoint of its step. The process ends itself with
SIGKILL in the step VICTIM: `before` or `after` its agent was asked, in the first attempt; `-` lets it run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from ostinato import Context, EngineOptions, Ostinato
from ostinato.core import item_filters
from tests.pipelines.support import publishing

STEPS = ("fetch", "score", "summarize", "tag", "thumbnail")
RETRY = {"maxAttempts": 5, "baseDelay": 0.05, "multiplier": 1}
ITEM = "a1"


def build(url: str, calls: str, victim: str, when: str) -> Ostinato:
    app = Ostinato(url, options=EngineOptions(lease_seconds=1.0, poll_seconds=0.1))
    out = os.open(calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def die(at: str, name: str) -> None:
        if (at, name) == (when, victim):
            os.kill(os.getpid(), signal.SIGKILL)

    def register(name: str) -> None:
        @app.step(name)
        async def work(ctx: Context, item: dict[str, Any]) -> dict[str, Any]:
            async def ask() -> str:
                os.write(out, f"{name}\n".encode())
                return f"{name} of {item['title']}"

            die("before", name)
            answer = await ctx.step("agent", ask)
            die("after", name)
            if ctx.attempt == 1 and name == "score":
                raise ConnectionError("once more")
            return {"by": name, "answer": answer}

    for name in STEPS:
        register(name)

    @app.step("forget")
    async def forget(ctx: Context, output: dict[str, Any]) -> None:
        die("before", f"undo-{output['by']}")
        os.write(out, f"undo-{output['by']}\n".encode())
        die("after", f"undo-{output['by']}")

    return app


def document() -> dict[str, Any]:
    made = publishing()
    for entry in made["course"]:
        for step in entry.get("together", [entry]):
            if "step" in step:
                step["retry"] = RETRY
    return made


async def main(url: str, calls: str, victim: str, when: str) -> None:
    """Enter the item, reject it when it waits for its review, and end when everything was taken back."""
    async with build(url, calls, victim, when) as app:
        await app.pipelines.define(document())
        await app.pipelines.enter("publishing", {"title": "News"}, item_id=ITEM)
        while (item := (await app.pipelines.item(ITEM))[0]).status != 300 and item.open:
            await asyncio.sleep(0.02)
        if item.open:
            await app.pipelines.decide(ITEM, "reject", actor="rita", notes="dull")
        for view in await app.jobs(name="undo:publishing"):
            await (await app.job(view.job_id)).result(timeout=30)
        held = await app.pipelines.list(item_filters.ItemFilter("publishing", status=540))
        print(len(held), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
