"""US-6: an operator sees what is where, what fails, what takes long, and what is stuck and why."""

from __future__ import annotations

from typing import Any

from ostinato import audit, testing
from ostinato.reactions import item_views
from ostinato.reactions import pipelines as pipelines_
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import by_raw_sql, enter


async def test_b20_the_health_of_a_pipeline_from_its_counters(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        pipelines = kit.app.pipelines
        await pipelines.define(publishing())
        room.fail("tag", 1)
        for number in range(4):
            await pipelines.enter("publishing", {"title": "News"}, item_id=f"a{number}")
        await pipelines.enter("publishing", {"title": "Old"}, item_id="held", hold=True)
        await kit.run_until_idle()
        found = await pipelines.health("publishing")
        assert {s.name: s.items for s in found.statuses if s.items} == {"to_tag": 4, "discovered": 1}
        assert (found.items, found.retrying, found.reviews_waiting) == (5, 4, 0)
        assert found.next_retry_at is not None
        assert found.next_retry_at.timestamp() * 1e6 == kit.clock() + 60_000_000
        await kit.advance(60)
        for number in range(3):
            await pipelines.decide(f"a{number}", "approve" if number else "reject", actor="rita")
        found = await pipelines.health("publishing")
        counts = {s.name: s.items for s in found.statuses if s.items}
        assert counts == {"pending_review": 1, "published": 2, "rejected": 1, "discovered": 1}
        assert (found.items, found.retrying, found.next_retry_at, found.reviews_waiting) == (2, 0, None, 1)
        tag = next(step for step in found.steps if step.step == "tag")
        assert (tag.completed, tag.failed, tag.failure_rate) == (4, 4, 0.5)
        assert tag.average_seconds is not None
        assert tag.p95_seconds is not None
        assert sum(hour.items for hour in found.throughput) == 3
        assert not found.stuck
        await kit.advance(3700)
        found = await pipelines.health("publishing")
        assert (found.stuck, found.stuck_count) == ([], 0), "what is held back or in a review waits for people"
        await by_raw_sql(url, "UPDATE item SET status = 310 WHERE item_id = 'a3'")
        found = await pipelines.health("publishing")
        assert next(s.items for s in found.statuses if s.name == "in_review") == 1
        await kit.app.set_retention(jobs=30 * 86_400)
        await kit.advance(40 * 86_400)
        await kit.app.prune()
        found = await pipelines.health("publishing")
        assert {s.name: s.items for s in found.statuses if s.items} == {"in_review": 1, "discovered": 1}


async def test_what_is_stuck_is_not_crowded_out_by_what_waits_for_people(url: str) -> None:
    """B20: neither reviews nor held items are stuck; and all that are stuck are counted, though 50 are shown."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        pipelines = kit.app.pipelines
        await pipelines.define(publishing())
        many = [pipelines_.NewItem({"title": "News"}, f"review-{n}") for n in range(60)]
        await pipelines.enter_many("publishing", many)
        await kit.run_until_idle()
        await pipelines.enter("publishing", {"title": "Old"}, item_id="held", hold=True)
        room.fail("fetch")
        failing = [pipelines_.NewItem({"title": "News"}, f"fails-{n}") for n in range(53)]
        await pipelines.set_retry("publishing", "fetch", {"maxAttempts": 3, "baseDelay": 3600, "maxDelay": 3600})
        await pipelines.enter_many("publishing", failing)
        await kit.run_until_idle()
        kit.clock.advance(3500)
        assert (await pipelines.health("publishing")).stuck_count == 0
        assert (await pipelines.health("publishing", stuck_seconds=3000)).stuck_count == 53
        found = await pipelines.health("publishing", stuck_seconds=3000)
        assert (len(found.stuck), {one.item_id.partition("-")[0] for one in found.stuck}) == (50, {"fails"})
        wanted = item_views.Wanted(stuck=3000)
        first = await pipelines.views("publishing", wanted)
        rest = await pipelines.views("publishing", wanted, cursor=first.cursor)
        assert len({one.item_id for one in (*first, *rest)}) == 53
        assert (found.reviews_waiting, rest.cursor) == (60, None)


async def test_the_audit_sees_an_item_whose_history_or_count_is_wrong(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing())
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        assert not (await audit.audit(kit.app.engine.store)).problems
        unguarded = {
            "sqlite": "DROP TRIGGER status_history_stays",
            "postgresql": "ALTER TABLE status_history DISABLE TRIGGER USER",
        }
        await by_raw_sql(url, unguarded[url.partition(":")[0]])  # a damaged file, or somebody who may do everything
        await by_raw_sql(url, "DELETE FROM status_history WHERE to_code IN (212, 300)")
        await by_raw_sql(url, "UPDATE tally SET count = count + 1 WHERE topic = 'items' AND key = 'publishing/300'")
        problems = (await audit.audit(kit.app.engine.store, kit.app.tenant)).problems
        found = [problem.message for problem in problems if problem.tenant]  # not those of the database
        assert found == [
            "item 'a1' is in 300, and move 10 of its history goes from 210 to 211",
            "item 'a1' is in 300, and move 12 of its history goes from 212 to 220",
            "item 'a1' is in 300, and move 18 of its history goes from 232 to 240",
            "1 items are in publishing/300, and 2 are counted",
        ]


async def test_what_is_stuck_says_why_in_the_words_of_its_version(url: str) -> None:
    """Also if a step asks people in the midst of its work, and if the pipeline has other statuses by now."""
    room = Newsroom(url)

    @room.app.step("tag-with-care")
    async def tag(ctx: Any) -> None:
        await ctx.approve("Are these tags right?")

    @room.app.step("score-later")
    async def score(ctx: Any) -> None:
        await ctx.sleep(86_400)

    document = publishing()
    document["course"][2] |= {"function": "score-later"}
    asking = publishing(name="asking")
    asking["course"][5]["together"][0] |= {"function": "tag-with-care"}
    async with testing.open(room.app) as kit:
        pipelines = kit.app.pipelines
        await enter(kit)
        await pipelines.define(document)
        await pipelines.enter("publishing", {"title": "News"}, item_id="slow")
        await pipelines.define(asking)
        await pipelines.enter("asking", {"title": "News"}, item_id="asked")
        await kit.run_until_idle()
        renumbered = [one | {"code": one["code"] + 5} for one in publishing()["statuses"]]
        await pipelines.define(publishing(statuses=renumbered))
        await kit.advance(3601)
        found = await pipelines.health("publishing")
        assert {one.item_id: (one.status, one.why) for one in found.stuck} == {
            "slow": ("to_score", "Waits in score"),
        }
        [asked] = (await pipelines.health("asking")).stuck
        assert (asked.status, asked.why) == ("to_tag", "Waits for people to decide in tag")
        for shown in (await pipelines.view("asked"), (await pipelines.views("asking"))[0]):
            assert shown.sentence == asked.why
        assert (await pipelines.detail("asked")).sentence == asked.why
        await kit.app.approvals.decide("asked:1", "tag", "approve", actor="rita")
        await kit.run_until_idle()
        assert (await pipelines.view("asked")).sentence == "Waits for people to decide in review"


async def test_items_in_statuses_that_only_an_earlier_version_has_are_counted(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        renumbered = [one | {"code": 305} if one["code"] == 300 else one for one in publishing()["statuses"]]
        await kit.app.pipelines.define(publishing(statuses=renumbered))
        found = await kit.app.pipelines.health("publishing")
        assert (found.version, found.items, found.reviews_waiting) == (2, 1, 1)
        assert [(one.code, one.name, one.items) for one in found.statuses if one.items] == [(300, "pending_review", 1)]
