"""What items keep, and what they may pass, when they begin again, are skipped along, cancelled or given up."""

from __future__ import annotations

import pytest

from ostinato import errors, testing
from ostinato.core import item_filters
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import check, enter, passed, status


async def test_whoever_begins_again_does_not_get_past_a_review(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        with pytest.raises(errors.NotPossible, match="review of it is not done"):
            await kit.app.pipelines.restart("a1", "published", actor="olga")
        assert await status(kit) == 300
        await check(kit)


async def test_what_was_approved_is_not_asked_again_by_who_begins_after_it(url: str) -> None:
    course = publishing()["course"]
    promote = {"step": "promote", "function": "tag", "statuses": ["to_promote", "promoting", "promoted"]}
    statuses = [{"code": 401 + n, "name": name} for n, name in enumerate(promote["statuses"])]
    document = publishing(course=[*course, promote], statuses=[*publishing()["statuses"], *statuses])
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(document)
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        room.fail("tag", terminal=True)
        await kit.app.pipelines.decide("a1", "approve", actor="rita")
        await kit.run_until_idle()
        assert await status(kit) == 500
        room.recover("tag")
        await kit.app.pipelines.restart("a1", "promote", actor="olga")
        await kit.run_until_idle()
        assert (await passed(kit))[-5:] == [402, 500, 401, 402, 403]
        assert not await kit.app.approvals.list()
        assert (await kit.app.pipelines.item("a1"))[0].reviewed_by == "rita"
        await check(kit)


async def test_two_steps_of_a_group_that_failed_are_both_run_again(url: str) -> None:
    room = Newsroom(url)
    course = publishing()["course"]
    for step in course[5]["together"]:
        step.pop("optional", None)
    room.fail("tag", terminal=True)
    room.fail("thumbnail", terminal=True)
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing(course=course))
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        assert await status(kit) == 500
        room.recover("tag")
        room.recover("thumbnail")
        await kit.app.pipelines.restart("a1", "thumbnail")
        await kit.run_until_idle()
        assert (await status(kit), room.calls["tag"], room.calls["thumbnail"], room.calls["summarize"]) == (
            300,
            2,
            2,
            1,
        )
        await check(kit)


async def test_an_item_that_is_cancelled_is_not_published_because_the_rest_was_optional(url: str) -> None:
    room = Newsroom(url)
    room.fail("thumbnail", 1)
    course = [entry for entry in publishing()["course"] if "review" not in entry]
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing(course=course))
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        assert await status(kit) == 230
        await (await kit.app.job("a1:1")).cancel()
        assert await status(kit) == 500
        await check(kit)


async def test_a_step_that_is_skipped_lets_its_item_go_on(url: str) -> None:
    """Through all its statuses, so that every move is legal; the history says who did it."""
    room = Newsroom(url)
    room.fail("summarize", terminal=True)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await (await kit.app.job("a1:1")).skip_task("summarize", "it has none", actor="olga")
        await kit.run_until_idle()
        assert await status(kit) == 300
        moves = await kit.app.pipelines.history("a1")
        assert ("olga", "it has none") in [(move.moved_by, move.reason) for move in moves]
        await kit.app.pipelines.restart("a1", "tag")
        await kit.run_until_idle()
        assert (await status(kit), room.calls["summarize"], room.calls["tag"]) == (300, 1, 2)
        await check(kit)


async def test_what_was_taken_back_is_neither_kept_nor_taken_back_again(url: str) -> None:
    room = Newsroom(url)
    room.fail("tag", 1)
    async with testing.open(room.app) as kit:
        await enter(kit)
        assert await retrying(kit) == 1
        for _ in range(2):
            await kit.app.pipelines.roll_back("a1", actor="olga")
            await kit.run_until_idle()
        assert (await status(kit), room.undone, await retrying(kit)) == (500, ["summarize"], 0)
        with pytest.raises(errors.NotPossible, match="summarize of it is not done, or was taken back"):
            await kit.app.pipelines.restart("a1", "tag")
        await kit.app.pipelines.restart("a1", "summarize")
        await kit.run_until_idle()
        await kit.app.pipelines.roll_back("a1")
        await kit.run_until_idle()
        assert room.undone == ["summarize", "summarize"]
        await check(kit)


async def retrying(kit: testing.Kit) -> int:
    return len(await kit.app.pipelines.list(item_filters.ItemFilter("publishing", retrying=True)))


async def test_nobody_decides_again_what_was_rejected(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.decide("a1", "reject", actor="rita")
        await kit.run_until_idle()
        with pytest.raises(errors.ApprovalDecided, match="no longer waiting: it is rejected"):
            await kit.app.pipelines.decide("a1", "re-enrich", actor="rita")
        assert await status(kit) == 540


async def test_what_was_left_out_because_its_item_was_over_is_done_when_it_goes_on(url: str) -> None:
    room = Newsroom(url)
    room.ending["score"] = "irrelevant"
    async with testing.open(room.app) as kit:
        await enter(kit)
        with pytest.raises(errors.NotPossible, match="summarize of it is not done"):
            await kit.app.pipelines.restart("a1", "tag")
        await kit.app.pipelines.restart("a1", "pending_enrichment", actor="olga", reason="it is relevant")
        await kit.run_until_idle()
        assert (await status(kit), room.calls["score"], room.calls["summarize"]) == (300, 1, 1)
        await check(kit)
