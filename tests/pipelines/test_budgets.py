"""An item that has cost what it may waits until somebody decides that it may cost more."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import errors, testing, views
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import check, status


def spending(url: str) -> Newsroom:
    room = Newsroom(url)

    @room.app.step("summarize-dearly")
    async def summarize(ctx: Any, item: Any) -> dict[str, Any]:
        room.calls["summarize"] += 1
        await ctx.spend(cost=1.25, input_tokens=100)
        return {"by": "summarize"}

    return room


async def paused(kit: testing.Kit) -> None:
    course = publishing()["course"]
    course[4] = course[4] | {"function": "summarize-dearly"}
    await kit.app.pipelines.define(publishing(course=course, budget=1.0))
    await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1", actor="olga")
    await kit.run_until_idle()
    found = await kit.app.pipelines.view("a1")
    assert (found.code, found.sentence) == (220, "Waits for people to decide whether it may cost more")


async def test_b22_an_item_goes_on_when_its_budget_is_raised(url: str) -> None:
    room = spending(url)
    async with testing.open(room.app) as kit:
        await paused(kit)
        [asked] = await kit.app.approvals.list()
        assert asked.title == "May item a1 cost more? 1.25 of 1.00 is spent"
        assert asked.payload["raiseTo"] == 2.25
        assert (room.calls["tag"], room.calls["thumbnail"]) == (0, 0)
        more = asked.payload | {"raiseTo": 5}
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "approve", actor="rita", payload=more)
        await kit.run_until_idle()
        assert (await status(kit), room.calls["tag"]) == (300, 1)
        assert (await (await kit.app.job("a1:1")).info()).budget == 5
        found = await kit.app.pipelines.detail("a1")
        assert ([one.job_id for one in found.runs], found.sentence) == (
            ["a1:1"],
            "Waits for people to decide in review",
        )
        await check(kit)


async def test_an_item_that_may_not_cost_more_is_given_up(url: str) -> None:
    room = spending(url)
    async with testing.open(room.app) as kit:
        await paused(kit)
        [asked] = await kit.app.approvals.list()
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "reject", actor="rita", notes="too dear")
        await kit.run_until_idle()
        assert (await status(kit), room.undone) == (500, ["summarize"])
        assert not await kit.app.dead_letters()
        await check(kit)


async def test_b22_what_steps_cost_is_summed_by_step_item_day_and_tenant(url: str) -> None:
    room = spending(url)
    async with testing.open(room.app) as kit:
        await paused(kit)
        [row] = (await kit.app.usage("step")).rows
        assert (row.key, row.cost, row.input_tokens) == ("publishing/summarize", 1.25, 100)
        assert [row.cost for row in (await kit.app.usage("day")).rows] == [1.25]
        assert (await (await kit.app.job("a1:1")).usage()).cost == 1.25
        await kit.app.pipelines.restart("a1", "summarize", actor="olga")
        await kit.run_until_idle()
        found = await kit.app.pipelines.detail("a1")
        summarize = next(one for one in found.steps if one.step == "summarize")
        assert [(one.run, one.usage and one.usage.cost) for one in summarize.attempts] == [(1, 1.25), (2, 1.25)]
        assert summarize.usage == found.usage == views.UsageView(2.5, 2, 200, 0)
        assert (found.spent, summarize.seconds) == (2.5, 0.0), "time stands still here, and both runs count"
        assert {one.usage.cost for one in found.steps if one.step != "summarize"} == {0.0}


async def test_a_question_about_an_item_is_withdrawn_when_somebody_raises_its_budget_by_hand(url: str) -> None:
    room = spending(url)
    async with testing.open(room.app) as kit:
        await paused(kit)
        [asked] = await kit.app.approvals.list()
        await (await kit.app.job("a1:1")).set_budget(1.2, actor="olga")
        await kit.run_until_idle()
        [again] = await kit.app.approvals.list()
        assert again.title == "May item a1 cost more? 1.25 of 1.20 is spent", "that was too little: it is asked anew"
        assert (await kit.app.approvals.get(asked.job_id, asked.task_id)).approval.state == "withdrawn"
        await (await kit.app.job("a1:1")).set_budget(9)
        await kit.run_until_idle()
        assert [one.title for one in await kit.app.approvals.list()] == ["a1: review"]
        assert (await (await kit.app.job(again.job_id)).info()).state == "cancelled"
        with pytest.raises(errors.ApprovalDecided):
            await kit.app.approvals.decide(again.job_id, again.task_id, "reject", actor="rita")
        await check(kit)


@pytest.mark.parametrize("how", ["restart", "roll-back", "cancel"])
async def test_a_question_about_an_item_is_withdrawn_with_the_run_that_it_is_about(url: str, how: str) -> None:
    room = spending(url)
    async with testing.open(room.app) as kit:
        await paused(kit)
        [asked] = await kit.app.approvals.list()
        if how == "restart":
            await kit.app.pipelines.restart("a1", "tag")
        elif how == "roll-back":
            await kit.app.pipelines.roll_back("a1")
        else:
            await (await kit.app.job("a1:1")).cancel()
        await kit.run_until_idle()
        assert (await kit.app.approvals.get(asked.job_id, asked.task_id)).approval.state == "withdrawn"
        assert await status(kit) == (300 if how == "restart" else 500)
        if how == "cancel":
            await (await kit.app.job("a1:1")).resume()
            await kit.run_until_idle()
            [again] = await kit.app.approvals.list()
            assert again.job_id != asked.job_id, "its budget is still used up"
        await check(kit)


async def test_many_items_of_a_tenant_that_has_spent_all_ask_once(url: str) -> None:
    room = spending(url)
    async with testing.open(room.app) as kit:
        course = publishing()["course"]
        course[4] = course[4] | {"function": "summarize-dearly"}
        await kit.app.pipelines.define(publishing(course=course))
        await kit.app.set_budget(day=2)
        for number in range(5):
            await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id=f"a{number}")
        await kit.run_until_idle()
        [asked] = [one for one in await kit.app.approvals.list() if "review" not in one.title]
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "approve", actor="rita", payload={"raiseTo": 100})
        await kit.run_until_idle()
        assert {await status(kit, f"a{number}") for number in range(5)} == {300}
        assert (await kit.app.budget()).day == 100
        await check(kit)
