"""US-6: an operator sees what is where, what fails, what takes long, and what is stuck and why."""

from __future__ import annotations

from typing import Any

from ostinato import audit, testing
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
        assert {one.item_id: one.why for one in found.stuck} == {
            "held": "Held back: nothing is done with it until it is processed",
            "a3": "Waits for people to decide in review",
        }
        await by_raw_sql(url, "UPDATE item SET status = 310 WHERE item_id = 'a3'")
        found = await pipelines.health("publishing")
        assert next(s.items for s in found.statuses if s.name == "in_review") == 1
        await kit.advance(40 * 86_400)
        await kit.app.prune()
        found = await pipelines.health("publishing")
        assert {s.name: s.items for s in found.statuses if s.items} == {"in_review": 1, "discovered": 1}


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
            "a1": ("pending_review", "Waits for people to decide in review"),
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
