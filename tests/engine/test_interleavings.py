"""What went wrong once when two things met that seldom meet."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import asyncpg
import pytest

from ostinato import Context, Ostinato, Retry, audit, errors, testing
from ostinato.core import commands
from tests.engine import support
from tests.engine.support import job, task


async def sound(app: Ostinato) -> None:
    found = (await audit.audit(app.engine.store)).problems
    assert not found, found


async def test_a_deadline_and_a_later_timer_that_are_fired_together(url: str) -> None:
    """Nobody was there when they fell due. The tasks are cancelled by the deadline, and stay so."""
    app = support.make(url, default_retry=Retry(max_attempts=3, base_delay=20))

    @app.function
    async def nap(ctx: Context) -> None:
        await ctx.sleep(20)

    @app.function
    async def fails() -> None:
        raise ValueError

    @app.function
    async def waits(ctx: Context) -> None:
        await ctx.wait_for("go", timeout=20)

    async with testing.open(app) as kit:
        made = await kit.app.submit(job(task("n", "nap"), task("f", "fails"), task("w", "waits"), deadline=10))
        await kit.run_until_idle()
        await kit.advance(60)
        assert (await made.info()).state == "timed_out"
        assert {t.state for t in await made.tasks()} == {"cancelled"}
        await sound(kit.app)


@pytest.mark.parametrize("retried", ["y", "w"])
async def test_a_task_that_is_skipped_again_is_not_counted_again(url: str, retried: str) -> None:
    async with support.opened(url, work=False, check_functions=False) as app:
        made = await app.submit(
            job(
                task("a"),
                task("x"),
                task("w"),
                task("y", after="x w", onDependencyFailure="skip"),
                task("z", after="a y", onDependencyFailure="run"),
            )
        )
        for one in ("y", "x", "w") if retried == "y" else ("x", "w"):
            await made.cancel_task(one)
        await made.retry_task(retried)
        assert {t.task_id: t.state for t in await made.tasks()}["z"] == "blocked", "a is still open"
        await sound(app)


@pytest.mark.parametrize("end", ["cancel", "deadline"])
@pytest.mark.parametrize("what", ["skip_task", "retry_task"])
async def test_a_job_that_has_ended_is_taken_up_and_ends_again_at_once(url: str, what: str, end: str) -> None:
    app = support.make(url, work=False, check_functions=False)
    async with testing.open(app) as kit:
        made = await kit.app.submit(job(task("a"), task("b", after="a"), deadline=5))
        if end == "cancel":
            await made.cancel()
        else:
            await kit.advance(10)
        await getattr(made, what)("b")
        assert (await made.info()).state in ("failed", "running")
        await sound(kit.app)


async def test_a_listener_that_lost_its_connection_listens_again(postgres_url: str) -> None:
    async with (
        support.opened(postgres_url, poll_seconds=60) as worker,
        support.opened(postgres_url, work=False) as other,
    ):
        await (await other.submit(job(task("a")))).result(timeout=support.PATIENCE)
        pg = await asyncpg.connect(postgres_url)
        await pg.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database() AND (query ILIKE '%LISTEN%' OR query ILIKE '%NOTIFY%')"
        )
        await pg.close()
        await (await worker.submit(job(task("a")))).result(timeout=support.PATIENCE)
        await asyncio.sleep(0.5)
        began = time.monotonic()
        await (await other.submit(job(task("a")))).result(timeout=support.PATIENCE)
        assert time.monotonic() - began < 5


async def test_a_claim_that_failed_is_tried_again_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with support.opened(url, poll_seconds=60) as app:
        await asyncio.sleep(0.1)
        store = app.engine.store
        execute = store.execute
        failing = True

        async def unlucky(tenant: str, batch: object, claim: object = None) -> object:
            nonlocal failing
            if failing and claim is not None and not batch:
                failing = False
                raise errors.DatabaseUnavailable("for a moment")
            return await execute(tenant, batch, claim)  # pyright: ignore[reportArgumentType]

        async with support.opened(url, work=False) as other:
            made = await other.submit(job(task("a")))
            monkeypatch.setattr(store, "execute", unlucky)
            app.engine.committer.want_claim()
            assert await made.result(timeout=5) == {"a": {}}


@pytest.mark.parametrize("what", ["resume", "skip_task", "retry_task", "cancel_task"])
async def test_a_job_that_grows_while_it_is_read_is_read_again(
    postgres_url: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL others may write between two reads. (SQLite keeps them out until a transition is over.)"""
    tasks = [task("a"), task("b", after="a", onDependencyFailure="skip"), task("held", "held")]
    async with (
        support.opened(postgres_url, work=False, check_functions=False) as app,
        support.opened(postgres_url, work=False, check_functions=False) as other,
    ):
        made = await app.submit({"tasks": tasks})
        if what != "cancel_task":
            await made.cancel_task("a")
        fetch = app.engine.db._fetch  # type: ignore[attr-defined]
        grown = False

        async def slow(connection: Any, name: str, args: Any) -> Any:
            nonlocal grown
            found = await fetch(connection, name, args)
            if name in ("load_whole_jobs", "load_edges") and not grown:
                grown = True
                await (await other.job(made.job_id)).add_tasks([task("c", after="a", onDependencyFailure="skip")])
            return found

        monkeypatch.setattr(app.engine.db, "_fetch", slow)
        commanded: dict[str, commands.Command] = {
            "resume": commands.Resume(made.job_id),
            "skip_task": commands.SkipTask(made.job_id, "a"),
            "retry_task": commands.RetryTasks(made.job_id, ["a"]),
            "cancel_task": commands.CancelTask(made.job_id, "a"),
        }
        await app.engine.store.execute("default", [commanded[what]])
        assert grown
        found = {view.task_id: view.state for view in await made.tasks()}
        assert found["b"] == found["c"] == {"skip_task": "pending", "cancel_task": "skipped"}.get(what, "blocked")
        assert not (await audit.audit(app.engine.store)).problems


async def test_a_damaged_row_keeps_nobody_waiting_in_the_queue(url: str) -> None:
    async with support.opened(url, work=False, check_functions=False) as producer:
        made = [await producer.submit(job(task("a", timeout=60))) for _ in range(3)]
        await support.sql(url, "UPDATE task SET options = $1 WHERE job_id = $2", b"\xff", made[0].job_id)
        async with support.opened(url):
            for one in made[1:]:
                assert await one.result(support.PATIENCE) == {"a": {}}
        assert await support.standing(made[0]) == {"a": "pending"}
