"""When a tenant has spent what it may, people are asked once whether it may spend more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ostinato import approving, audit, errors, testing
from tests.engine import support
from tests.engine.support import PATIENCE, job, standing, task
from tests.engine.test_budgets import MONTH_START, chain, make, waits


def evening() -> testing.Clock:
    return testing.Clock(MONTH_START.timestamp() + 20 * 3600)


async def question(kit: testing.Kit) -> approving.ApprovalView:
    [asked] = await kit.app.approvals.list()
    return asked


async def state_of(kit: testing.Kit, asked: approving.ApprovalView) -> str:
    return (await kit.app.approvals.get(asked.job_id, asked.task_id)).approval.state


async def test_people_are_asked_once_and_whoever_approves_lets_all_go_on(url: str) -> None:
    async with testing.open(make(url), evening()) as kit:
        await kit.app.set_budget(day=1, month=50)
        made = await kit.app.submit(job(*chain(8)))
        await kit.run_until_idle()
        later = await kit.app.submit(job(task("a"), task("b")))
        await kit.run_until_idle()
        asked = await question(kit)
        assert asked.title == "May more be spent today? 1.20 of 1.00 is spent"
        assert asked.payload == {"scope": "day", "period": "2027-01-01", "budget": 1.0, "spent": 1.2, "raiseTo": 2.2}
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "approve", actor="ann")
        await kit.run_until_idle()
        found = await kit.app.budget()
        assert (found.day, found.month) == (2.2, 50)
        assert await standing(later) == {"a": "completed", "b": "completed"}
        again = await question(kit)
        assert again.payload["budget"] == 2.2, "that was used up too, and so people are asked again"
        more = again.payload | {"raiseTo": 100}
        await kit.app.approvals.decide(again.job_id, again.task_id, "approve", actor="ann", payload=more)
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        assert not await kit.app.approvals.list()
        await kit.audit()


async def test_whoever_rejects_leaves_it_paused_until_the_day_is_over_and_is_not_asked_again(url: str) -> None:
    async with testing.open(make(url), evening()) as kit:
        await kit.app.set_budget(day=1)
        made = await kit.app.submit(job(*chain(8)))
        await kit.run_until_idle()
        asked = await question(kit)
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "reject", actor="ann", notes="enough")
        other = await kit.app.submit(job(task("a")))
        await kit.run_until_idle()
        assert (await waits(made), await waits(other)) == ({"t3": "budget day"}, {"a": "budget day"})
        assert not await kit.app.approvals.list()
        assert not await kit.app.dead_letters()
        assert (await (await kit.app.job(asked.job_id)).info()).state == "completed"
        await kit.advance(4 * 3600)
        assert await waits(made) == {"t6": "budget day"}
        assert (await question(kit)).payload["period"] == "2027-01-02", "it is another day"
        await kit.audit()


async def test_a_question_is_withdrawn_when_the_day_is_over(url: str) -> None:
    async with testing.open(make(url), evening()) as kit:
        await kit.app.set_budget(day=1)
        made = await kit.app.submit(job(*chain(4)))
        await kit.run_until_idle()
        asked = await question(kit)
        await kit.advance(4 * 3600)
        assert (await made.info()).state == "completed"
        assert await state_of(kit, asked) == "withdrawn"
        with pytest.raises(errors.ApprovalDecided):
            await kit.app.approvals.decide(asked.job_id, asked.task_id, "approve", actor="ann")
        assert (await kit.app.budget()).day == 1
        await kit.audit()


async def test_a_question_is_withdrawn_when_the_budget_is_set_by_hand(url: str) -> None:
    async with testing.open(make(url), evening()) as kit:
        await kit.app.set_budget(day=1)
        await kit.app.submit(job(*chain(8)))
        await kit.run_until_idle()
        asked = await question(kit)
        await kit.app.set_budget(day=1)
        await kit.run_until_idle()
        assert (await question(kit)).job_id == asked.job_id, "nothing has changed"
        await kit.app.set_budget(day=1.5, actor="olga")
        assert await state_of(kit, asked) == "withdrawn"
        await kit.run_until_idle()
        second = await question(kit)
        assert second.payload["budget"] == 1.5
        await kit.app.set_budget(day=1)
        await kit.run_until_idle()
        third = await question(kit)
        assert third.job_id != asked.job_id, "nobody has answered that one"
        await kit.app.set_budget()
        await kit.run_until_idle()
        assert not await kit.app.approvals.list()
        ended = [await (await kit.app.job(one.job_id)).info() for one in (asked, second, third)]
        assert {one.state for one in ended} == {"cancelled"}
        await kit.audit()


async def test_what_was_decided_too_late_changes_nothing(url: str) -> None:
    """The budget is set while what was decided is being done."""
    async with testing.open(make(url), evening()) as kit:
        await kit.app.set_budget(day=1)
        await kit.app.submit(job(*chain(4)))
        await kit.run_until_idle()
        asked = await question(kit)
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "approve", actor="ann", payload={"raiseTo": 500})
        await kit.app.set_budget(day=3)
        await kit.run_until_idle()
        assert (await kit.app.budget()).day == 3
        assert (await (await kit.app.job(asked.job_id)).info()).state == "completed"
        await kit.audit()


@pytest.mark.parametrize("given", [{"raiseTo": 0.5}, {"raiseTo": "much"}, {}, []])
async def test_who_gives_too_little_or_nonsense_is_asked_again(url: str, given: object) -> None:
    async with testing.open(make(url), evening()) as kit:
        await kit.app.set_budget(day=1)
        made = await kit.app.submit(job(*chain(4)))
        await kit.run_until_idle()
        asked = await question(kit)
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "approve", actor="ann", payload=given)
        await kit.run_until_idle()
        assert await waits(made) == {"t3": "budget day"}
        assert (await question(kit)).job_id != asked.job_id
        assert (await kit.app.budget()).day == 1, "and it is never lowered"
        await kit.audit()


async def test_a_month_that_is_used_up_is_asked_about_and_then_the_day(url: str) -> None:
    async with testing.open(make(url), evening()) as kit:
        await kit.app.set_budget(day=1, month=1)
        made = await kit.app.submit(job(*chain(4)))
        await kit.run_until_idle()
        asked = await question(kit)
        assert (asked.title, asked.payload["period"]) == (
            "May more be spent this month? 1.20 of 1.00 is spent",
            "2027-01",
        )
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "approve", actor="ann")
        await kit.run_until_idle()
        asked = await question(kit)
        assert (asked.payload["scope"], await waits(made)) == ("day", {"t3": "budget day"})
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "approve", actor="ann")
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"


async def test_a_budget_of_nothing_stops_everything_and_asks_nobody(url: str) -> None:
    async with testing.open(make(url)) as kit:
        await kit.app.set_budget(day=0)
        made = await kit.app.submit(job(task("a")))
        await kit.run_until_idle()
        assert await waits(made) == {"a": "budget day"}
        assert not await kit.app.approvals.list()


async def test_a_job_that_has_the_id_of_the_question_is_not_taken_for_it(url: str) -> None:
    async with testing.open(make(url), evening()) as kit:
        await kit.app.submit(job(task("a"), jobId="budget-day-2027-01-01-1000000.0"))
        await kit.run_until_idle()
        await kit.app.set_budget(day=1)
        await kit.app.submit(job(*chain(4)))
        await kit.run_until_idle()
        assert (await question(kit)).payload["budget"] == 1


async def test_nothing_is_added_to_the_job_of_a_question(url: str) -> None:
    """It goes on without money; what is added to it would too."""
    async with testing.open(make(url), evening()) as kit:
        await kit.app.set_budget(day=1)
        await kit.app.submit(job(*chain(4)))
        await kit.run_until_idle()
        asked = await question(kit)
        with pytest.raises(errors.NotPossible, match="engine's own"):
            await (await kit.app.job(asked.job_id)).add_tasks([task("b", "pay")])


async def test_two_engines_ask_once(url: str) -> None:
    async with make(url) as one, make(url) as two:
        await one.set_budget(day=0.5)
        made = [await app.submit(job(*chain(20))) for _ in range(10) for app in (one, two)]

        async def stopped() -> bool:
            states = [await standing(item) for item in made]
            return all("waiting" in found.values() or set(found.values()) == {"completed"} for found in states)

        await support.until(stopped)
        [asked] = await two.approvals.list()
        await two.approvals.decide(asked.job_id, asked.task_id, "approve", actor="ann", payload={"raiseTo": 1000})
        await asyncio.gather(*[item.result(PATIENCE) for item in made])
        assert len(await one.approvals.list(state=None)) == 1
        assert not (await audit.audit(one.engine.store)).problems


async def scenario(kit: testing.Kit) -> None:
    if (await kit.app.budget()).day is None:
        await kit.app.set_budget(day=1)
    made = await kit.app.submit(job(*chain(4), idempotencyKey="once"))
    await kit.run_until_idle()
    for asked in await kit.app.approvals.list():
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "approve", actor="ann")
    await kit.run_until_idle()
    await kit.advance(60)  # an attempt that was lost is tried again a little later
    assert (await made.info()).state == "completed"
    assert [one.state for one in await kit.app.approvals.list(state=None)] == ["approve"]


async def test_it_survives_a_crash_at_every_commit_on_sqlite() -> None:
    assert await testing.crash_everywhere(make, scenario) > 8


async def test_it_survives_a_crash_at_every_commit_on_postgres(new_postgres_url: Callable[[], str]) -> None:
    assert await testing.crash_everywhere(make, scenario, fresh_url=new_postgres_url) > 8
