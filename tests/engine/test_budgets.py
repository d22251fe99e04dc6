"""When a budget is used up nothing more begins, what runs goes on, and whatever raises it lets the rest go on."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from typing import Any

import pytest

from ostinato import Context, Job, Ostinato, Retry, audit, errors, testing
from ostinato.core import budgets, commands, rows
from ostinato.core.tallies import DAY
from tests.engine import support
from tests.engine.support import PATIENCE, job, reaches, standing, task

MONTH_START = datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC)


def make(url: str, **options: Any) -> Ostinato:
    app = support.make(url, **options)

    @app.function("pay", retry=Retry(max_attempts=5, base_delay=1))
    async def pay(ctx: Context, cost: float = 0.4, fail: bool = False) -> str:
        await ctx.spend(cost)
        if fail and ctx.attempt == 1:
            raise ConnectionError("once more")
        return ctx.task_id

    return app


def chain(count: int, **given: Any) -> list[dict[str, Any]]:
    return [task(f"t{n}", "pay", f"t{n - 1}" if n else "", input=given) for n in range(count)]


async def waits(made: Job) -> dict[str, str]:
    """What tasks wait for, by task."""
    found = [await made.task(view.task_id) for view in await made.tasks(state="waiting")]
    return {
        detail.task.task_id: f"{detail.waits_for['kind']} {detail.waits_for['name']}"
        for detail in found
        if detail.waits_for
    }


async def test_a_job_stops_at_its_budget_and_goes_on_when_it_is_raised(url: str) -> None:
    async with testing.open(make(url)) as kit:
        made = await kit.app.submit(job(*chain(5), task("free", after="t0"), budget=1))
        await kit.run_until_idle()
        assert await standing(made) == {
            "t0": "completed", "t1": "completed", "t2": "completed", "t3": "waiting", "t4": "blocked",
            "free": "completed",
        }  # fmt: skip
        why = await made.why("t3")
        assert why.code == "budget"
        assert why.sentence == (
            "The budget of 1.00 of its job is used up: 1.20 spent; "
            f"raise it with `ostinato budgets job {made.job_id} AMOUNT`."
        )
        assert why.details == {"scope": "job", "budget": 1.0, "spent": 1.2}
        info = await made.info()
        assert (info.spent, info.budget, info.state) == (1.2, 1.0, "running")
        waiting = [event.properties for event in await made.events(task_id="t3") if event.type == "Task Waiting"]
        assert waiting == [{"kind": "budget", "scope": "job", "budget": 1.0, "spent": 1.2}]
        await kit.advance(40 * DAY)
        assert await waits(made) == {"t3": "budget job"}
        await kit.audit()

        assert (await made.set_budget(1.2, actor="somebody")).budget == 1.2
        await kit.run_until_idle()
        assert await waits(made) == {"t3": "budget job"}, "that is used up too"
        await made.set_budget(1.21)
        await kit.run_until_idle()
        assert await waits(made) == {"t4": "budget job"}
        await made.set_budget(None)
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        changes = [event.properties for event in await made.events() if event.type == "Budget Changed"]
        assert [(change["budget"], change["actor"]) for change in changes] == [
            (1.2, "somebody"),
            (1.21, None),
            (None, None),
        ]
        await kit.audit()


async def test_retries_wait_too_and_what_waits_can_be_cancelled(url: str) -> None:
    async with testing.open(make(url)) as kit:
        made = await kit.app.submit(job(task("a", "pay", input={"fail": True}), task("b", "pay", delay=5), budget=0.4))
        await kit.run_until_idle()
        await kit.advance(10)
        assert await waits(made) == {"a": "budget job", "b": "budget job"}
        await made.retry_task("a")
        await kit.run_until_idle()
        assert await waits(made) == {"a": "budget job", "b": "budget job"}
        await made.cancel_task("b")
        await made.set_budget(10)
        await kit.run_until_idle()
        assert await standing(made) == {"a": "completed", "b": "cancelled"}
        await kit.audit()


async def test_a_budget_and_turns_do_not_get_in_each_others_way(url: str) -> None:
    async with testing.open(make(url)) as kit:
        tasks = [task(f"t{n}", "pay") for n in range(12)]
        made = await kit.app.submit(job(*tasks, budget=1, maxConcurrency=2))
        await kit.run_until_idle()
        assert list((await standing(made)).values()).count("completed") in (3, 4)
        await kit.audit()
        await made.set_budget(3)
        await kit.run_until_idle()
        assert list((await standing(made)).values()).count("completed") in (8, 9)
        await kit.audit()
        await made.set_budget(None)
        await kit.run_until_idle()
        assert len(await made.outputs()) == 12
        await kit.audit()


async def test_a_tenant_stops_for_the_day_and_goes_on_at_midnight(url: str) -> None:
    clock = testing.Clock(MONTH_START.timestamp() + 20 * 3600)
    async with testing.open(make(url), clock) as kit:
        assert await kit.app.set_budget(day=1) == await kit.app.budget()
        first = await kit.app.submit(job(*chain(4)))
        await kit.run_until_idle()
        second = await kit.app.submit(job(task("a"), task("b", "pay")))
        await kit.run_until_idle()
        assert await waits(first) == {"t3": "budget day"}
        assert await waits(second) == {"a": "budget day", "b": "budget day"}
        assert (await kit.app.budget()).spent_today == 1.2
        why = await second.why("a")
        assert why.sentence == (
            "The tenant's budget of 1.00 for a day is used up: 1.20 spent today; "
            "raise it with `ostinato budgets set --day AMOUNT`, or wait for the next day."
        )
        assert why.details["dueAt"] == MONTH_START + datetime.timedelta(days=1)
        await kit.audit()
        await kit.advance(4 * 3600 - 1)
        assert await waits(first) == {"t3": "budget day"}
        await kit.advance(1)
        assert {(await made.info()).state for made in (first, second)} == {"completed"}
        found = await kit.app.budget()
        assert (found.day, found.month, found.spent_today, found.spent_this_month) == (1, None, 0.8, 2.0)
        await kit.audit()


async def test_a_tenant_goes_on_when_its_budget_is_raised_or_a_month_is_over(url: str) -> None:
    clock = testing.Clock(MONTH_START.timestamp() + 30 * DAY)
    async with testing.open(make(url), clock) as kit:
        await kit.app.set_budget(day=1, month=1)
        made = await kit.app.submit(job(*chain(8)))
        await kit.run_until_idle()
        assert await waits(made) == {"t3": "budget month"}
        await kit.app.set_budget(day=1, month=2)
        await kit.run_until_idle()
        assert await waits(made) == {"t3": "budget day"}, "there is enough for the month, and not for the day"
        await kit.app.set_budget(day=None, month=2)
        await kit.run_until_idle()
        assert await waits(made) == {"t5": "budget month"}
        await kit.advance(DAY)  # now it is February
        assert (await made.info()).state == "completed"
        assert (await kit.app.budget()).spent_this_month == 1.2
        await kit.audit()


async def test_what_waits_for_its_job_waits_for_its_tenant_afterwards(url: str) -> None:
    async with testing.open(make(url)) as kit:
        made = await kit.app.submit(job(*chain(3), budget=0.4))
        await kit.run_until_idle()
        await kit.app.set_budget(day=0.4)
        await made.set_budget(5)
        await kit.run_until_idle()
        assert await waits(made) == {"t1": "budget day"}
        await kit.audit()
        await kit.app.set_budget()
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        await kit.audit()


async def test_other_tenants_and_the_engines_own_jobs_go_on(url: str) -> None:
    async with make(url) as app, make(url, tenant="other") as other:
        await app.set_budget(day=0)
        stopped = await app.submit(job(task("a")))
        await reaches(stopped, "a", "waiting")
        assert await support.run(other, task("a")) == {"a": {}}
        target = {"signal": {"jobId": stopped.job_id, "name": "go"}}
        await app.rules.define({"name": "r", "pattern": {"source": ["shop"]}, "targets": [target]})
        await app.post_events({"specversion": "1.0", "id": "1", "source": "shop", "type": "x"})

        async def heard() -> bool:
            return "Signal Received" in await support.told(stopped)

        await support.until(heard)
        assert (await standing(stopped))["a"] == "waiting"


async def test_two_engines_stop_at_the_same_budget_and_hear_of_another(url: str) -> None:
    """Each may have begun what the other's spending would have kept from it, and not more."""
    async with make(url, concurrency=1) as one, make(url, concurrency=1) as two:
        await one.set_budget(day=2)
        made = [await app.submit(job(*chain(5, cost=0.1))) for n in range(6) for app in (one, two)]

        async def stopped() -> bool:
            states = [await standing(item) for item in made]
            return all("waiting" in found.values() or set(found.values()) == {"completed"} for found in states)

        await support.until(stopped)
        spent = (await two.budget()).spent_today
        assert 2 <= spent < 6, spent
        assert not (await audit.audit(one.engine.store)).problems
        await two.set_budget(day=100)
        await asyncio.gather(*[item.result(PATIENCE) for item in made])
        assert (await one.budget()).spent_today == 6
        assert not (await audit.audit(one.engine.store)).problems


async def test_a_wait_that_was_overtaken_by_a_raise_is_decided_anew(url: str) -> None:
    """A process that knows the budget of a moment ago must not let a task wait until midnight."""
    async with make(url, work=False, check_functions=False) as slow, make(url, work=False) as quick:
        await quick.set_budget(day=5)
        known = [slow.engine.store.budgets.of]
        seen: list[bool] = []

        def stale(tenant: str, now: int, *, fresh: bool) -> Any:
            seen.append(fresh)
            found = yield from known[0](tenant, now, fresh=fresh)
            return found if len(seen) > 2 else budgets.TenantBudget(0, None)

        slow.engine.store.budgets.of = stale  # type: ignore[method-assign]
        made = await slow.submit(job(task("a")))
        assert seen == [False, True, True], "it looks again, and once more when the write finds another budget"
        assert await standing(made) == {"a": "pending"}


def test_what_keeps_a_task_from_beginning() -> None:
    def one(budget: int | None = None, spent: int = 0, name: str = "test") -> rows.Job:
        fields = dict.fromkeys(rows.Job.__struct_fields__, 0) | {"name": name, "budget": budget, "spent": spent}
        return rows.Job(**fields)  # type: ignore[arg-type]

    now = int(datetime.datetime(2026, 12, 31, 23, 59, tzinfo=datetime.UTC).timestamp()) * 10**6
    ends = int(datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC).timestamp()) * 10**6
    tenant = budgets.TenantBudget(5, 10, 5, 9)
    assert budgets.budget_exhausted(one(), None, now) is None
    assert budgets.budget_exhausted(one(0), None, now) == budgets.Exhausted("job", 0, 0, None)
    assert budgets.budget_exhausted(one(2, 1), None, now) is None
    assert budgets.budget_exhausted(one(), tenant, now) == budgets.Exhausted("day", 5, 5, ends)
    assert budgets.budget_exhausted(one(name="rule:x"), tenant, now) is None
    tenant.spend(1)
    assert budgets.budget_exhausted(one(), tenant, now) == budgets.Exhausted("month", 10, 10, ends)
    february = int(datetime.datetime(2028, 2, 29, 12, tzinfo=datetime.UTC).timestamp()) * 10**6
    assert budgets.next_month(february) == int(datetime.datetime(2028, 3, 1, tzinfo=datetime.UTC).timestamp()) * 10**6


@pytest.mark.parametrize("value", [-1, float("inf"), 1e12, True])
async def test_nonsense_is_refused(url: str, value: float) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a")))
        for attempt in (app.submit(job(task("a"), budget=value)), app.set_budget(day=value), made.set_budget(value)):
            with pytest.raises(errors.InvalidInput):
                await attempt
        with pytest.raises(errors.JobNotFound):
            await app.engine.execute(commands.SetBudget("none", 1))


async def scenario(kit: testing.Kit) -> None:
    """The second task waits for the budget of its job, then for that of its tenant, and runs the day after."""
    made = await kit.app.submit(job(*chain(2), budget=0.4, idempotencyKey="once"))
    await kit.run_until_idle()
    await kit.app.set_budget(day=0.4)
    await made.set_budget(50)
    await kit.run_until_idle()
    await kit.advance(DAY)
    assert await made.outputs() == {"t0": "t0", "t1": "t1"}
    spent = (await made.info()).spent
    assert spent == (await made.usage()).cost == (await kit.app.usage("name")).total.cost


async def test_it_survives_a_crash_at_every_commit_on_sqlite() -> None:
    assert await testing.crash_everywhere(make, scenario) > 8


async def test_it_survives_a_crash_at_every_commit_on_postgres(new_postgres_url: Callable[[], str]) -> None:
    assert await testing.crash_everywhere(make, scenario, fresh_url=new_postgres_url) > 8
