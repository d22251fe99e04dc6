"""Finished work goes after its time, if its tenant has set one; unfinished work never does."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from ostinato import Ostinato, errors, testing
from ostinato.core import states
from ostinato.engine import maintenance, retention
from tests.engine import support
from tests.engine.support import job, run, task

DAY = 86_400


async def test_a_finished_job_is_removed_with_all_that_belongs_to_it(url: str) -> None:
    app = support.make(url)

    @app.function
    async def busy(ctx: Any) -> str:
        await ctx.step("s", lambda: "x" * 50_000)
        await ctx.sleep(0.01)
        return "y" * 50_000

    async with app:
        await app.set_retention(jobs=0)
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
    monkeypatch.setattr(retention, "MOST", 6)
    async with support.opened(url, work=False, check_functions=False) as app:
        for tasks in (7, 1, 2, 2, 4):
            made = await app.submit(job(*[task(f"t{n}") for n in range(tasks)]))
            await made.cancel()
        batches: list[int] = []
        remove = app.engine.store.remove_jobs

        async def counted(tenant: str, job_ids: Any, before: int | None) -> int:
            batches.append(len(job_ids))
            return await remove(tenant, job_ids, before)

        monkeypatch.setattr(app.engine.store, "remove_jobs", counted)
        monkeypatch.setattr(retention, "FEWEST", 6)
        assert await app.prune(older_than=0) == 5
        assert batches == [1, 3, 1]


async def test_b10_nothing_is_removed_of_a_tenant_that_has_not_asked_for_it(url: str) -> None:
    """B10: however old it is, and whatever removes things otherwise."""
    async with testing.open(support.make(url)) as kit:
        made = await kit.app.submit(job(task("a"), idempotencyKey="order-17"))
        await kit.run_until_idle()
        await kit.app.post_events({"source": "s", "detail-type": "t", "detail": {}, "id": "1"})
        kit.clock.advance(100 * 365 * DAY)
        await maintenance.Pruner(kit.app.engine.store, 1).run_once()
        assert await kit.app.prune() == 0
        assert await made.result(0) == {"a": {}}
        assert len(await kit.app.engine.store.outside_events("default")) == 1


async def test_b11_the_retention_is_the_tenants_whichever_process_prunes(url: str) -> None:
    """B11: a process has no setting of its own, so no two can disagree."""
    with pytest.raises(TypeError, match="retention_seconds"):
        support.make(url, retention_seconds=1)
    clock = testing.Clock()
    async with testing.open(support.make(url), clock) as one, testing.open(support.make(url), clock) as two:
        await one.app.submit(job(task("a")))
        await one.run_until_idle()
        assert (await one.app.set_retention(jobs=10 * DAY)).jobs == (await two.app.retention()).jobs == 10 * DAY
        clock.advance(9 * DAY)
        assert (await one.app.prune(), await two.app.prune()) == (0, 0)
        clock.advance(2 * DAY)
        assert (await two.app.prune(), len(await one.app.jobs())) == (1, 0)


async def test_what_is_young_stays(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
        assert await app.prune() == 0
        assert len(await app.jobs()) == 1


async def test_unfinished_jobs_stay(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)

    @app.function
    async def nap(ctx: Any) -> None:
        await ctx.sleep(1000)

    async with app:
        await app.set_retention(jobs=0)
        running = await app.submit(job(task("done"), task("a", "gate", "done")))
        waiting = await app.submit(job(task("a", "nap")))
        await support.soon(gate.started.wait())
        await support.reaches(waiting, "a", "waiting")
        assert await app.prune() == 0
        gate.opened.set()
        assert set(await running.result(support.PATIENCE)) == {"done", "a"}


async def test_failed_and_cancelled_jobs_go_too(url: str) -> None:
    app = support.make(url)
    support.Gate(app)
    async with app:
        await app.set_retention(jobs=0)
        await support.failure(await app.submit(job(task("a", "break"), task("b", after="a"))))
        await (await app.submit(job(task("a", "gate")))).cancel()
        assert await app.prune() == 2
        assert await app.dead_letters() == []


async def test_a_resumed_job_is_unfinished_again(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        await app.set_retention(jobs=0)
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
        await one.set_retention(jobs=0)
        assert await one.prune() == 1
        assert await other.prune() == 0
        assert (len(await one.jobs()), len(await other.jobs())) == (0, 1)


async def test_a_tenants_own_retention_can_be_taken_back(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
        await app.set_retention(jobs=0)
        assert await app.set_retention() == await app.retention()
        assert await app.prune() == 0


@pytest.mark.parametrize("seconds", [-1, float("nan"), "1", 1e300])
async def test_a_retention_that_makes_no_sense_is_refused(url: str, seconds: Any) -> None:
    async with support.opened(url) as app:
        with pytest.raises(errors.InvalidInput, match="jobs must be a number of seconds"):
            await app.set_retention(jobs=seconds)
        with pytest.raises(errors.InvalidInput, match="keys must be a number of seconds"):
            await app.set_retention(keys=seconds)
        assert await app.audit_log() == []


async def test_setting_the_retention_is_in_the_audit_log(url: str) -> None:
    async with support.opened(url) as app:
        await app.set_retention(jobs=1.5, keys=60, actor="ann")
        [entry] = await app.audit_log()
        assert (entry.actor, entry.action, entry.details) == ("ann", "retention.set", {"jobs": 1.5, "keys": 60})
        assert (await app.retention()).jobs == 2, "whole seconds, and none too few"


async def test_the_engine_prunes_by_itself(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
        await app.set_retention(jobs=0)
    async with support.opened(url, prune_every_seconds=0.05) as app:

        async def gone() -> bool:
            return await app.jobs() == []

        await support.until(gone)


async def test_many_jobs_are_pruned_in_one_go(url: str) -> None:
    async with support.opened(url) as app:
        await app.set_retention(jobs=0)
        made = await app.submit_many([job(task("a"), task("b", "join", "a")) for _ in range(300)])
        for one in made:
            await one.result(support.PATIENCE)
        assert await app.prune() == 300
        assert await support.count(url, "event_page") == 0


async def test_b10_a_key_outlives_the_rows_of_its_job(url: str) -> None:
    """B10: a repetition finds the job of before, also when nothing else is left of it; another body is a conflict."""
    async with support.opened(url) as app:
        first = await app.submit(job(task("a"), idempotencyKey="k"))
        await first.result(support.PATIENCE)
        assert await app.prune(older_than=0) == 1
        again = await app.submit(job(task("a"), idempotencyKey="k"))
        assert (again.job_id, again.created) == (first.job_id, False)
        with pytest.raises(errors.JobNotFound):
            await again.result(support.PATIENCE)
        with pytest.raises(errors.IdempotencyConflict, match="another body") as caught:
            await app.submit(job(task("b"), idempotencyKey="k"))
        assert caught.value.details["jobId"] == first.job_id
        some = await app.submit_many([job(task("a"), idempotencyKey="k"), job(task("a"), idempotencyKey="new")])
        assert [one.created for one in some] == [False, True]
    async with support.opened(url, tenant="other") as other:
        assert (await other.submit(job(task("b"), idempotencyKey="k"))).created


async def test_b10_keys_go_after_a_period_of_their_own(url: str) -> None:
    async with testing.open(support.make(url)) as kit:
        app = kit.app
        await app.set_retention(jobs=10, keys=100)
        wanted = job(task("a"), idempotencyKey="k")
        first = await app.submit(wanted)
        await kit.advance(1)
        kit.clock.advance(11)
        assert await app.prune() == 1
        kit.clock.advance(99)
        await app.prune()
        assert not (await app.submit(wanted)).created
        kit.clock.advance(2)
        await app.prune()
        second = await app.submit(wanted)
        assert second.created
        assert second.job_id != first.job_id
        await kit.run_until_idle()
        await app.set_retention(jobs=0, keys=0)
        kit.clock.advance(1)
        await app.prune()
        assert (await app.submit(wanted)).created, "a period of 0 lets the key go with its job"


async def test_an_event_of_others_is_known_again_after_it_was_removed(url: str) -> None:
    async with testing.open(support.make(url)) as kit:
        app, event = kit.app, {"source": "s", "detail-type": "t", "detail": {}, "id": "1"}
        await app.post_events(event)
        await app.set_retention(jobs=10, keys=100)
        kit.clock.advance(11)
        await app.prune()
        assert await app.engine.store.outside_events("default") == []
        assert [answer.outcome for answer in await app.post_events(event)] == ["duplicate"]
        kit.clock.advance(101)
        await app.prune()
        assert [answer.outcome for answer in await app.post_events(event)] == ["recorded"]


async def test_figures_go_after_their_time_where_the_tenant_has_a_retention(url: str) -> None:
    async with testing.open(support.make(url)) as kit:
        app = kit.app

        @app.function
        async def pay(ctx: Any) -> None:
            await ctx.spend(0.5)

        await app.engine.register()
        await app.submit(job(task("a", "pay")))
        await kit.run_until_idle()
        day = (await app.usage()).to
        kit.clock.advance(800 * DAY)
        await app.prune()
        assert (await app.usage("day", day, day)).total.cost == 0.5
        await app.set_retention(jobs=DAY)
        await app.prune()
        assert (await app.usage("day", day, day)).total.cost == 0


# --- what only a planted bug showed ---------------------------------------------------------------------------------


async def test_other_tenants_keep_what_belongs_to_a_job_of_the_same_id(url: str) -> None:
    """Rows of every table that keeps something of jobs, of two tenants whose jobs have the same id."""
    for tenant in ("one", "other"):
        async with support.opened(url, tenant=tenant) as app:
            await _leave_rows(app)
    async with support.opened(url, tenant="one", work=False) as app:
        tables = [name for name in await support.tables_of_jobs(url) if name != "removed_key"]
        before = {table: await _rows_by_tenant(url, table) for table in tables}
        empty = {table for table, rows in before.items() if not rows.get("other")}
        assert empty <= {"timer", "ready", "lease", "gate_key", "item", "result", "usage"}, "the test leaves too little"
        assert await app.prune(older_than=0) == 2
        after = {table: await _rows_by_tenant(url, table) for table in tables}
    assert after == {table: {"other": rows["other"]} if "other" in rows else {} for table, rows in before.items()}


async def _leave_rows(app: Ostinato) -> None:
    """In as many tables as one job can."""

    @app.function("busy")
    async def busy(ctx: Any) -> str:
        await ctx.step("s", lambda: "x" * 50_000)
        await ctx.wait_for("go")
        return "y" * 50_000

    made = await app.submit(
        job(
            task("a", "busy"), task("b", "break", "a", optional=True), jobId="same", tags={"k": "v"}, idempotencyKey="k"
        )
    )
    await made.signal("go", "z" * 50_000)
    await made.signal("unheard", "z")
    await made.result(support.PATIENCE)
    asked = await app.submit(job(task("ask", approval={"title": "May I?"}), task("c", "break"), jobId="asks"))
    await support.reaches(asked, "c", "failed")
    await asked.cancel()


async def _rows_by_tenant(url: str, table: str) -> dict[str, int]:
    found = await support.sql(url, f"SELECT tenant, count(*) FROM {table} WHERE tenant <> '' GROUP BY tenant")
    return {row[0]: row[1] for row in found}


async def test_a_job_that_is_resumed_between_the_look_and_the_removal_stays(url: str) -> None:
    async with support.opened(url, work=False, check_functions=False) as app:
        made = await app.submit(job(task("a")))
        await made.cancel()
        target, now = app.engine.store, app.engine.db.now() + 1
        [(job_id, tasks)] = (await target.old_jobs("default", states.CANCELLED, now)).jobs
        assert (job_id, tasks) == (made.job_id, 1)
        await made.resume()
        assert await target.remove_jobs("default", [job_id], now) == 0
        assert (await made.info()).state == "running"
        await made.cancel()
        assert await target.remove_jobs("default", [job_id], now - 10_000_000) == 0, "it ended after that"
        assert await target.remove_jobs("default", [job_id], None) == 0, "the tenant keeps it for ever"
        assert await target.remove_jobs("default", [job_id], app.engine.db.now() + 1) == 1


async def test_the_look_for_old_jobs_goes_on_where_it_was(url: str) -> None:
    """Jobs that stay are passed once in a round, and not once for each batch."""
    async with testing.open(support.make(url)) as kit:
        target = kit.app.engine.store
        made = [await kit.app.submit(job(task("a"))) for _ in range(5)]
        await kit.advance(1)
        before, place, found = kit.clock() + 1, (-1, ""), []
        while place is not None:
            old = await target.old_jobs("default", states.COMPLETED, before, place, most=2)
            found += [job_id for job_id, _ in old.jobs]
            place = old.place
        assert sorted(found) == sorted(one.job_id for one in made)


async def test_p2_what_is_removed_goes_in_small_transactions_with_rests(url: str) -> None:
    """P-2: somebody who submits meanwhile waits for a small transaction only."""
    async with support.opened(url) as app:
        for one in await app.submit_many([job(task("a")) for _ in range(300)]):
            await one.result(support.PATIENCE)
        worst, removing = 0.0, asyncio.create_task(app.prune(older_than=0))
        while not removing.done():
            began = time.perf_counter()
            await app.submit(job(task("a")))
            worst = max(worst, time.perf_counter() - began)
        assert await removing >= 300
        assert worst < 1.0


async def test_p2_each_transaction_is_followed_by_a_rest(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-2: others who write find the writer free, also from another process."""
    monkeypatch.setattr(retention, "REST_SECONDS", 0.1)
    async with support.opened(url) as app:
        began = time.monotonic()
        await app.prune(older_than=0)
        assert time.monotonic() - began > 0.25, "for executions, events and figures"


async def test_other_tenants_keep_keys_and_events_of_the_same_name(url: str) -> None:
    clock = testing.Clock()
    event = {"source": "s", "detail-type": "t", "detail": {}, "id": "1"}
    async with (
        testing.open(support.make(url, tenant="one"), clock) as one,
        testing.open(support.make(url, tenant="other"), clock) as other,
    ):
        for kit in (one, other):
            await kit.app.submit(job(task("a"), idempotencyKey="k"))
            await kit.app.post_events(event)
            await kit.run_until_idle()
        clock.advance(10)
        assert await one.app.prune(older_than=1) == 1
        assert len(await other.app.engine.store.outside_events("other")) == 1
        assert await other.app.prune(older_than=1) == 1
        await one.app.set_retention(keys=0)
        await one.app.prune()
        known = [await support.count(url, table) for table in ("removed_key", "removed_event")]
        assert known == [1, 1]
        assert (await one.app.submit(job(task("a"), idempotencyKey="k"))).created
        assert not (await other.app.submit(job(task("a"), idempotencyKey="k"))).created
        assert [answer.outcome for answer in await other.app.post_events(event)] == ["duplicate"]


async def test_jobs_with_periods_of_their_own_go_by_these(url: str) -> None:
    async with testing.open(support.make(url)) as kit:
        for seconds in (10, 20):
            name = f"keeps-{seconds}"
            await kit.app.gates.define({"name": name, "members": ["a"], "retention": seconds})
            await kit.app.gate(name).arrive("k", "a")
        await kit.run_until_idle()
        assert await kit.app.engine.store.periods("default") == [10, 20]
        removed: list[int] = []
        for _ in range(5):
            kit.clock.advance(5.001)
            removed.append(await kit.app.prune())
        assert removed == [0, 1, 0, 1, 0]
