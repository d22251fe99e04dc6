"""Two tenants on one database see nothing of each other."""

import asyncio
from typing import Any

import pytest

from ostinato import errors
from tests.engine import support
from tests.engine.support import job, run, task


async def test_jobs_events_and_dead_letters_belong_to_one_tenant(url: str) -> None:
    async with support.opened(url, tenant="one") as one, support.opened(url, tenant="other") as other:
        made = await one.submit(job(task("a", "break"), jobId="same"))
        await support.failure(made)
        assert len(await one.dead_letters()) == 1
        assert await other.jobs() == []
        assert await other.dead_letters() == []
        assert await other.events() == []
        with pytest.raises(errors.JobNotFound):
            await other.job("same")


async def test_the_same_ids_and_keys_in_two_tenants_are_two_jobs(url: str) -> None:
    async with support.opened(url, tenant="one") as one, support.opened(url, tenant="other") as other:
        first = await one.submit(job(task("a", input={"t": 1}), jobId="j", idempotencyKey="k"))
        second = await other.submit(job(task("a", input={"t": 2}), jobId="j", idempotencyKey="k"))
        assert await first.result(support.PATIENCE) == {"a": {"t": 1}}
        assert await second.result(support.PATIENCE) == {"a": {"t": 2}}


async def test_workers_take_only_their_tenants_tasks(url: str) -> None:
    ran: dict[str, list[str]] = {"one": [], "other": []}
    apps = {name: support.make(url, tenant=name) for name in ran}
    for name, app in apps.items():

        @app.function
        async def note(ctx: Any, name: str = name) -> None:
            ran[name].append(ctx.tenant)

    async with apps["one"] as one, apps["other"] as other:
        await asyncio.gather(*[run(app, *[task(f"t{n}", "note") for n in range(20)]) for app in (one, other)])
    assert ran == {"one": ["one"] * 20, "other": ["other"] * 20}


@pytest.mark.parametrize("command", ["cancel", "resume", "signal", "add", "retry", "skip"])
async def test_commands_do_not_reach_across(url: str, command: str) -> None:
    app = support.make(url, tenant="one")
    gate = support.Gate(app)
    async with app as one, support.opened(url, tenant="other", check_functions=False) as other:
        made = await one.submit(job(task("a", "gate"), jobId="j"))
        await other.submit(job(task("b", input={}), jobId="mine"))
        stranger = await other.job("mine")
        stranger.job_id = "j"
        calls = {
            "cancel": lambda: stranger.cancel(),
            "resume": lambda: stranger.resume(),
            "signal": lambda: stranger.signal("go"),
            "add": lambda: stranger.add_tasks([task("x")]),
            "retry": lambda: stranger.retry_task("a"),
            "skip": lambda: stranger.skip_task("a"),
        }
        with pytest.raises(errors.JobNotFound):
            await calls[command]()
        gate.opened.set()
        assert await made.result(support.PATIENCE) == {"a": {}}


async def test_a_signal_reaches_only_its_tenant(url: str) -> None:
    one, other = support.make(url, tenant="one"), support.make(url, tenant="other")
    for app in (one, other):

        @app.function
        async def wait(ctx: Any) -> Any:
            return await ctx.wait_for("go")

    async with one, other:
        mine = await one.submit(job(task("a", "wait"), jobId="j"))
        theirs = await other.submit(job(task("a", "wait"), jobId="j"))
        await support.reaches(mine, "a", "waiting")
        await support.reaches(theirs, "a", "waiting")
        await mine.signal("go", 1)
        assert await mine.result(support.PATIENCE) == {"a": 1}
        assert await support.standing(theirs) == {"a": "waiting"}
        await theirs.cancel()


async def test_the_tail_of_one_tenant_shows_nothing_of_another(url: str) -> None:
    async with support.opened(url, tenant="one") as one, support.opened(url, tenant="other") as other:
        tail = one.tail(cursor="")
        await run(other, *[task(f"t{n}") for n in range(10)])
        made = await one.submit(job(task("a")))
        await made.result(support.PATIENCE)
        seen = [(await support.soon(anext(tail))).event.job_id for _ in range(5)]
        assert set(seen) == {made.job_id}
        await tail.aclose()  # type: ignore[attr-defined]


async def test_functions_of_one_tenant_are_unknown_to_another(url: str) -> None:
    one = support.make(url, tenant="one")
    support.Gate(one, "special")
    async with one, support.opened(url, tenant="other") as other:
        with pytest.raises(errors.UnknownFunction):
            await other.submit(job(task("a", "special")))


async def test_timers_of_any_tenant_are_fired_by_whoever_is_there(url: str) -> None:
    app = support.make(url, tenant="one", maintain=False)

    @app.function
    async def nap(ctx: Any) -> str:
        await ctx.sleep(0.05)
        return "rested"

    async with app, support.opened(url, tenant="other"):
        assert await run(app, task("a", "nap")) == {"a": "rested"}
