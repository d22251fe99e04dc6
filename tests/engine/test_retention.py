"""Finished work goes after its time; unfinished work never does."""

from typing import Any

import pytest

from ostinato import errors
from ostinato.store import fleet
from tests.engine import support
from tests.engine.support import job, run, task


async def test_a_finished_job_is_removed_with_all_that_belongs_to_it(url: str) -> None:
    app = support.make(url, retention_seconds=0)

    @app.function
    async def busy(ctx: Any) -> str:
        await ctx.step("s", lambda: "x" * 50_000)
        await ctx.sleep(0.01)
        return "y" * 50_000

    async with app:
        tasks = [task("a", "busy"), task("b", "break", "a", optional=True), task("c", "join", "b")]
        made = await app.submit(job(*tasks, deadline=1000))
        await made.signal("unheard", "z" * 50_000)
        await made.result(support.PATIENCE)
        assert await app.prune() == 1
        tables = await support.tables_of_jobs(url)
        assert {"job", "task", "event_page", "blob"} <= set(tables)
        assert {table: await support.count(url, table) for table in tables} == dict.fromkeys(tables, 0)
        with pytest.raises(errors.JobNotFound):
            await app.job(made.job_id)


async def test_large_jobs_go_a_few_at_a_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of tasks in one transaction would hold up everybody else who writes to the file."""
    monkeypatch.setattr(fleet, "PRUNE_TASKS", 5)
    async with support.opened(url, work=False, check_functions=False) as app:
        for tasks in (7, 1, 2, 2, 4):
            made = await app.submit(job(*[task(f"t{n}") for n in range(tasks)]))
            await made.cancel()
        assert [await app.engine.store.prune("default", 0, 0) for _ in range(4)] == [1, 3, 1, 0]


async def test_what_is_young_stays(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
        assert await app.prune() == 0
        assert len(await app.jobs()) == 1


async def test_unfinished_jobs_stay(url: str) -> None:
    app = support.make(url, retention_seconds=0)
    gate = support.Gate(app)

    @app.function
    async def nap(ctx: Any) -> None:
        await ctx.sleep(1000)

    async with app:
        running = await app.submit(job(task("done"), task("a", "gate", "done")))
        waiting = await app.submit(job(task("a", "nap")))
        await support.soon(gate.started.wait())
        await support.reaches(waiting, "a", "waiting")
        assert await app.prune() == 0
        gate.opened.set()
        assert set(await running.result(support.PATIENCE)) == {"done", "a"}


async def test_failed_and_cancelled_jobs_go_too(url: str) -> None:
    app = support.make(url, retention_seconds=0)
    support.Gate(app)
    async with app:
        await support.failure(await app.submit(job(task("a", "break"), task("b", after="a"))))
        await (await app.submit(job(task("a", "gate")))).cancel()
        assert await app.prune() == 2
        assert await app.dead_letters() == []


async def test_a_resumed_job_is_unfinished_again(url: str) -> None:
    app = support.make(url, retention_seconds=0)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        await made.cancel()
        await made.resume()
        assert await app.prune() == 0
        gate.opened.set()
        await made.result(support.PATIENCE)
        assert await app.prune() == 1


async def test_each_tenant_has_its_own_retention(url: str) -> None:
    async with support.opened(url, tenant="one") as one, support.opened(url, tenant="other") as other:
        for app in (one, other):
            await run(app, task("a"))
        await one.set_retention(0)
        assert await one.prune() == 1
        assert await other.prune() == 0
        assert (len(await one.jobs()), len(await other.jobs())) == (0, 1)


async def test_a_tenants_own_retention_can_be_taken_back(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
        await app.set_retention(0)
        await app.set_retention(None)
        assert await app.prune() == 0


@pytest.mark.parametrize("seconds", [-1, float("nan"), "1", 1e300])
async def test_a_retention_that_makes_no_sense_is_refused(url: str, seconds: Any) -> None:
    async with support.opened(url) as app:
        with pytest.raises(errors.InvalidInput, match="retention"):
            await app.set_retention(seconds)


async def test_the_engine_prunes_by_itself(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
    async with support.opened(url, retention_seconds=0, prune_every_seconds=0.05) as app:

        async def gone() -> bool:
            return await app.jobs() == []

        await support.until(gone)


async def test_many_jobs_are_pruned_in_one_go(url: str) -> None:
    async with support.opened(url, retention_seconds=0) as app:
        made = await app.submit_many([job(task("a"), task("b", "join", "a")) for _ in range(300)])
        for one in made:
            await one.result(support.PATIENCE)
        assert await app.prune() == 300
        assert await support.count(url, "event_page") == 0


async def test_a_pruned_key_is_free_again(url: str) -> None:
    async with support.opened(url, retention_seconds=0) as app:
        first = await app.submit(job(task("a"), idempotencyKey="k"))
        await first.result(support.PATIENCE)
        await app.prune()
        again = await app.submit(job(task("b"), idempotencyKey="k"))
        assert again.created
