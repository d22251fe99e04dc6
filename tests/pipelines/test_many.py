"""Many items at once: which of them are taken, in which order, and which are left alone."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import errors, testing
from ostinato.reactions import bulk
from ostinato.reactions.item_views import Wanted
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import check, enter, status


async def test_b4_the_queue_is_processed_by_a_filter_too(url: str) -> None:
    """Held items begin, others go on where they have got to; what is over or waits for people is left alone."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        pipelines = kit.app.pipelines
        await enter(kit, "reviewed")
        await enter(kit, "held", hold=True)
        await enter(kit, "resting", hold=True)
        await pipelines.restart("resting", "fetch", only=True)
        room.ending["score"] = "irrelevant"
        await enter(kit, "over")
        del room.ending["score"]
        room.fail("tag", terminal=True)
        await enter(kit, "failed")
        room.fail("tag", 1)
        for item_id in ("retried0", "retried1"):
            await enter(kit, item_id)
            await kit.advance(1)
        room.recover("tag")

        async def process(most: int = 100, **wanted: Any) -> list[str]:
            begun = await pipelines.process("publishing", most, Wanted(**wanted), actor="olga")
            await kit.run_until_idle()
            return [one.item_id for one in begun]

        assert await process(1, retrying=True) == ["retried0"], "that which is due first, and not in a minute but now"
        assert (await status(kit, "retried0"), await status(kit, "retried1")) == (300, 220)
        assert await process(status="failed") == ["failed"]
        assert await process(status="fetched") == ["resting"]
        for left in ("irrelevant", "pending_review"):
            assert await process(status=left) == []
        assert await process(held=True) == ["held"]
        assert room.calls == {"fetch": 7, "score": 7, "summarize": 6, "tag": 8, "thumbnail": 6}
        with pytest.raises(errors.InvalidInput, match="no status 'nowhere'"):
            await process(status="nowhere")
        assert [await status(kit, one) for one in ("reviewed", "over")] == [300, 530]
        await check(kit)


async def test_held_items_begin_where_their_version_does(url: str) -> None:
    """Whatever is first in the version of now."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit, hold=True)
        found = [{**one, "name": "found"} if one["code"] == 100 else one for one in publishing()["statuses"]]
        course = [{"status": "found"}, *publishing()["course"][1:]]
        await kit.app.pipelines.define(publishing(statuses=found, course=course))
        assert [one.item_id for one in await kit.app.pipelines.process("publishing")] == ["a1"]
        await kit.run_until_idle()
        assert await status(kit) == 300


async def test_many_are_answered_in_the_order_of_the_list(url: str) -> None:
    """Those that are in their status longest first, and each as it was before."""
    room = Newsroom(url)
    room.fail("tag", terminal=True)
    async with testing.open(room.app) as kit:
        for item_id in ("b", "c", "a"):
            await enter(kit, item_id)
            await kit.advance(1)
        room.recover("tag")
        restart = bulk.Bulk(action="restart", at="tag")
        for dry_run, outcome in ((True, "possible"), (False, "done")):
            done = await kit.app.pipelines.bulk(
                "publishing", Wanted(status=500), restart, dry_run=dry_run, actor="olga"
            )
            told = [(one.item_id, one.code, one.outcome) for one in done.items]
            assert told == [("b", 500, outcome), ("c", 500, outcome), ("a", 500, outcome)]
