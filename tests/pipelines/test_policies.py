"""Retry policies that are changed while items are under way."""

from __future__ import annotations

from ostinato import EngineOptions, Ostinato, testing
from ostinato.api import piping
from ostinato.core.retry import Retry
from ostinato.playbooks import definition
from tests.pipelines.support import Newsroom, publishing
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


async def test_b23_a_retry_may_wait_for_days_whoever_says_so(url: str) -> None:
    """B23: in a policy of a step, by a document; and of an agent."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing())
        await kit.app.pipelines.set_retry("publishing", "fetch", {"maxAttempts": 3, "baseDelay": 172_800})
        assert (await kit.app.pipelines.policy("publishing", "fetch")).retry.max_delay == 172_800
    assert piping.RetryPolicy(base_delay=172_800).policy().delay(1) == 172_800
    assert piping.RetryPolicy(base_delay=172_800, max_delay=60).policy().delay(1) == 60
    agent = {
        "name": "a",
        "kind": "function",
        "function": "f",
        "outputSchema": {"type": "object", "properties": {"value": {}}},
    }
    read = definition.read_agent(agent | {"retry": {"baseDelay": 172_800}})
    assert read.retry.delay(1) == 172_800
