"""A crash before and after every commit of an item that is retried, rejected, taken back, and begun again."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest

from ostinato import Context, EngineOptions, Ostinato, errors, testing
from tests.engine.support import CRASH_EVERY
from tests.pipelines.support import publishing

RETRY = {"maxAttempts": 6, "baseDelay": 5, "multiplier": 1}
ASKED: collections.Counter[tuple[str, str]] = collections.Counter()
"""How often agents were asked, by database and step."""


def build(url: str) -> Ostinato:
    app = Ostinato(url, options=EngineOptions(lease_seconds=10))

    def register(name: str) -> None:
        @app.step(name)
        async def work(ctx: Context, item: dict[str, Any], run: int) -> dict[str, Any]:
            def ask() -> str:
                ASKED[(url, f"{name}:{run}")] += 1
                return name

            answer = await ctx.step("agent", ask)
            if name == "summarize" and run == 1 and ctx.attempt == 1:
                raise ConnectionError("try again")
            if name == "thumbnail":
                raise errors.TerminalError("no picture")
            return {"by": answer}

    for name in ("summarize", "tag", "thumbnail"):
        register(name)

    @app.step("forget")
    async def forget(output: dict[str, Any]) -> str:
        return output["by"]

    return app


def document() -> dict[str, Any]:
    """As short as can be: one step, two at once, a review."""
    made = publishing()
    made["course"] = [entry | {"retry": RETRY} if "step" in entry else entry for entry in made["course"][3:]]
    return made


async def life(kit: testing.Kit) -> None:
    """Written so that it can be started again at any time."""
    pipelines = kit.app.pipelines
    await pipelines.define(document())
    await pipelines.enter("publishing", {"title": "News"}, item_id="a1")
    await rest(kit)
    item, _ = await pipelines.item("a1")
    if item.run == 1:
        if item.open:
            await pipelines.decide("a1", "reject", actor="rita")
        await rest(kit)
        assert (await pipelines.item("a1"))[0].status == 540
        await pipelines.restart("a1", "pending_enrichment", actor="olga")
        await rest(kit)
    if (await pipelines.item("a1"))[0].open:
        await pipelines.decide("a1", "approve", actor="rita")
    await check(kit)


async def rest(kit: testing.Kit) -> None:
    """Let time pass until the item is over or waits for its review, and nothing else is to be done."""
    await kit.run_until_idle()
    while await kit.app.jobs(state="running"):
        if (await kit.app.pipelines.item("a1"))[0].status == 300 and not await kit.app.jobs(
            name="undo:publishing", state="running"
        ):
            return
        await kit.advance(6)


async def check(kit: testing.Kit) -> None:
    item, _ = await kit.app.pipelines.item("a1")
    assert (item.status, item.run, item.reviewed_by) == (400, 2, "rita")
    moves = await kit.app.pipelines.history("a1")
    assert [one.to_code for one in moves[:-1]] == [other.from_code for other in moves[1:]]
    undone = await kit.app.jobs(name="undo:publishing")
    outputs = [await (await kit.app.job(view.job_id)).outputs() for view in undone]
    assert [{n: o for n, o in one.items() if n != "$undo"} for one in outputs] == [
        {"undo-tag": "tag", "undo-summarize": "summarize"}
    ]


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
@pytest.mark.timeout(300)
async def test_an_item_survives_a_crash_at_every_commit(new_postgres_url: Callable[[], str], backend: str) -> None:
    ASKED.clear()
    fresh, every = (new_postgres_url, CRASH_EVERY) if backend == "postgres" else (None, 1)
    assert await testing.crash_everywhere(build, life, fresh_url=fresh, every=every) >= 40 // every
    again = {step: count for (_, step), count in ASKED.items() if count > 2}
    assert not again, "only who was at work when the process ended is asked once more"
