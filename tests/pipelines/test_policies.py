"""Retry policies that are changed while items are under way."""

from __future__ import annotations

from ostinato import EngineOptions, Ostinato, testing
from ostinato.core.retry import Retry
from tests.pipelines.support import Newsroom
from tests.pipelines.test_items import check, enter, status


async def test_b14_a_policy_is_changed_and_reset_while_an_item_is_under_way(url: str) -> None:
    """By somebody in another process: within a second it counts, from the next failure on."""
    room = Newsroom(url)
    room.fail("summarize")
    elsewhere = Ostinato(url, options=EngineOptions(work=False, maintain=False, check_functions=False))
    async with testing.open(room.app) as kit, elsewhere:

        async def waits() -> float | None:
            item, _ = await kit.app.pipelines.item("a1")
            return None if item.retry_at is None else (item.retry_at - kit.clock()) / 1e6

        await enter(kit)
        assert await waits() == 60
        await elsewhere.pipelines.set_retry("publishing", "summarize", Retry(max_attempts=9, base_delay=5))
        await kit.advance(60)
        assert await waits() == 10, "the second delay of 5, 10, 20 …"
        await elsewhere.pipelines.set_retry("publishing", "summarize", None)
        await kit.advance(10)
        assert await waits() == 240, "the third of the pipeline's own"
        await elsewhere.pipelines.set_retry("publishing", "summarize", Retry(max_attempts=2))
        await kit.advance(240)
        assert (await status(kit), room.calls["summarize"]) == (599, 4), "that was more than are allowed now"
        await check(kit)
