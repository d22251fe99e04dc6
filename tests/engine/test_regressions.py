"""Faults that were found once. Each test tells the story of one."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import asyncpg
import pytest

from ostinato import Context, EngineOptions, Ostinato, Retry, audit, errors
from ostinato.core import commands, rows


def make(url: str, **options: Any) -> Ostinato:
    settings: dict[str, Any] = {
        "poll_seconds": 0.05,
        "lease_seconds": 2,
        "shutdown_seconds": 0.2,
        "default_retry": Retry(max_attempts=3, base_delay=0.05),
        "prune_every_seconds": None,
    }
    return Ostinato(url, options=EngineOptions(**(settings | options)))


def one(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": "x", "tasks": [{"taskId": "t", "name": name}]} | fields


async def sound(app: Ostinato) -> bool:
    return not (await audit.audit(app.engine.store)).problems


async def test_a_claim_under_way_when_the_worker_stops_is_handed_back(url: str) -> None:
    app = make(url)

    @app.function
    async def work() -> int:
        return 1

    producer = make(url, work=False, maintain=False, check_functions=False)
    async with producer:
        job = await producer.submit(one("work"))
        slow = [True]
        await app.start()
        # The first commit, which claims the task, meets a slow disk; the stop comes meanwhile.
        app.engine.db.before_commit = lambda: time.sleep(0.3) if slow and not slow.clear() else None
        await app.stop()
        assert await sound(producer)
        async with app:
            assert await (await app.job(job.job_id)).result(10) == {"t": 1}


async def test_cancelling_a_job_gives_all_slots_back(url: str) -> None:
    """Functions that were cancelled before their first step used to keep their slots."""
    app = make(url)

    @app.function
    async def busy() -> None:
        time.sleep(0.002)

    async with app:
        tasks = [{"taskId": f"t{i}", "name": "busy"} for i in range(400)]
        job = await app.submit({"name": "x", "tasks": tasks})
        await asyncio.sleep(0.2)
        await job.cancel()
        assert await (await app.submit(one("busy"))).result(10) == {"t": None}
        assert await sound(app)


async def test_a_finished_step_is_not_repeated_after_a_hand_back(url: str) -> None:
    calls: list[str] = []
    patient = asyncio.Event()

    def build() -> Ostinato:
        app = make(url)

        async def pay() -> int:
            calls.append("pay")
            return 1

        @app.function
        async def body(ctx: Context) -> str:
            await ctx.step("pay", pay)
            await ctx.add_tasks([{"taskId": "extra", "name": "leaf"}])
            await patient.wait()
            return "ok"

        @app.function
        async def leaf() -> int:
            return 1

        return app

    async with build() as app:
        job = await app.submit(one("body"))
        while len(await job.tasks()) < 2:
            await asyncio.sleep(0.02)
    patient.set()
    async with build() as app:
        assert await (await app.job(job.job_id)).result(10) == {"t": "ok", "extra": 1}
        assert await sound(app)
    assert calls == ["pay"]


async def test_completion_and_cancel_in_one_batch_count_a_dependency_once(url: str) -> None:
    app = make(url, work=False, maintain=False, check_functions=False)
    async with app:
        tasks = [
            {"taskId": "a", "name": "f"},
            {"taskId": "b", "name": "f"},
            {"taskId": "d", "name": "f", "dependsOn": ["a", "b"]},
        ]
        job = await app.submit({"name": "x", "tasks": tasks})
        target = app.engine.store
        claim = commands.Claim("w", "token", {"f": rows.FunctionPolicy(1, None)}, frozenset({"default"}), 2)
        leases = {lease.task_id: lease for lease in (await target.execute("default", [], claim)).leases}
        batch = [commands.Complete(leases["a"], b"1"), commands.CancelTask(job.job_id, "a")]
        assert (await target.execute("default", batch)).answers == [None, "completed"]
        assert {t.task_id: t.state for t in await job.tasks()}["d"] == "blocked"


async def test_a_claim_whose_answer_was_lost_is_found_again(url: str) -> None:
    """The database has recorded the claim, and the worker never heard of it."""
    app = make(url)

    @app.function
    async def work() -> int:
        return 1

    async with app, make(url, work=False, maintain=False) as producer:
        armed = [True]

        def cut() -> None:
            if armed:
                armed.clear()
                raise errors.DatabaseUnavailable("the answer was lost")

        app.engine.db.after_commit = cut
        job = await producer.submit(one("work"))
        assert await job.result(15) == {"t": 1}
        assert not armed
        assert await sound(app)


async def test_a_report_that_cannot_be_recorded_fails_its_task_and_no_other(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make(url)
    held = asyncio.Event()

    @app.function
    async def bad() -> int:
        return 13

    @app.function
    async def slow() -> int:
        await held.wait()
        return 1

    good = commands.Complete.apply

    def apply(self: commands.Complete, book: Any) -> None:
        if self.output == b"13":
            raise OverflowError("this cannot be written")
        good(self, book)

    monkeypatch.setattr(commands.Complete, "apply", apply)
    async with app:
        tasks = [{"taskId": "bad", "name": "bad"}, {"taskId": "slow", "name": "slow"}]
        job = await app.submit({"name": "x", "tasks": tasks})
        while (await job.task("bad")).task.state != "failed":
            await asyncio.sleep(0.02)
        assert await sound(app)  # `slow` is still covered by its lease
        held.set()
        with pytest.raises(errors.JobFailed, match="could not be recorded"):
            await job.result(10)
        assert (await job.task("slow")).output == 1


async def test_an_input_nested_too_deeply_leaves_no_ghost(url: str) -> None:
    async with make(url, work=False, maintain=False, check_functions=False) as app:
        for depth in [*range(246, 266, 2), *range(940, 1010, 2), 5_000]:
            value: Any = 1
            for _ in range(depth):
                value = [value]
            document = {"name": "x", "tasks": [{"taskId": "t", "name": "f", "input": {"v": value}}]}
            if depth < 256:
                await app.submit(document)
            else:
                with pytest.raises(errors.InvalidPayload, match="nested deeper than 256 levels"):
                    await app.submit(document)
        assert len(await app.jobs(most=100)) == 5
        assert await sound(app)


async def test_a_wait_that_timed_out_can_be_tried_again(url: str) -> None:
    app = make(url, default_retry=Retry(max_attempts=1))

    @app.function
    async def approve(ctx: Context) -> Any:
        return await ctx.wait_for("go", timeout=0.1)

    async with app:
        job = await app.submit(one("approve"))
        with pytest.raises(errors.JobFailed, match="SignalTimeout"):
            await job.result(10)
        await job.resume()
        await app.signal(job.job_id, "go", "late but here")
        assert await job.result(10) == {"t": "late but here"}


@pytest.mark.parametrize("again", ["retry", "skip"])
async def test_a_job_taken_up_again_keeps_a_deadline_that_lies_ahead(url: str, again: str) -> None:
    app = make(url)

    @app.function
    async def broken() -> None:
        raise errors.TerminalError("no")

    async with app:
        job = await app.submit(one("broken", deadline=60))
        with pytest.raises(errors.JobFailed):
            await job.result(10)
        await (job.retry_task("t") if again == "retry" else job.skip_task("t"))
        assert await sound(app)


async def test_waiting_inside_a_task_group_is_waiting(url: str) -> None:
    app = make(url)

    @app.function
    async def grouped(ctx: Context) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.sleep(0.05))
        return "rested"

    async with app:
        assert await (await app.submit(one("grouped"))).result(10) == {"t": "rested"}


async def test_a_blocked_step_does_not_hold_up_a_stop(url: str) -> None:
    app = make(url)

    @app.function
    async def stuck(ctx: Context) -> None:
        await ctx.step("sleep", time.sleep, 5)

    await app.start()
    await app.submit(one("stuck"))
    await asyncio.sleep(0.2)
    started = time.monotonic()
    await app.stop()
    assert time.monotonic() - started < 3


async def test_a_function_queue_is_honoured_for_tasks_given_as_data(url: str) -> None:
    app = make(url, queues=("slow",))

    @app.function("f", queue="slow")
    async def f() -> int:
        return 1

    async with app:
        job = await app.submit(one("f"))
        assert await job.result(10) == {"t": 1}
        assert (await job.tasks())[0].queue == "slow"


async def test_tasks_with_one_attempt_are_not_claimed_ahead(url: str) -> None:
    """If a worker dies, what it had claimed ahead loses an attempt without having run."""
    app = make(url, concurrency=2)
    blocked = asyncio.Event()

    @app.function("once", retry=Retry(max_attempts=1))
    async def once(wait: bool = False) -> int:
        if wait:
            await blocked.wait()
        return 1

    async with app:
        await (await app.submit({"tasks": [{"taskId": f"t{i}", "name": "once"} for i in range(50)]})).result(10)
        tasks = [{"taskId": f"w{i}", "name": "once", "input": {"wait": True}} for i in range(20)]
        job = await app.submit({"tasks": tasks})
        await asyncio.sleep(0.3)
        assert sum(task.state == "processing" for task in await job.tasks()) == 2
        blocked.set()
        await job.result(10)


@pytest.mark.parametrize("wrong", [float("inf"), float("nan"), -1, 1e300, "soon", None])
async def test_a_retry_after_that_was_made_no_time_later_falls_back_to_the_policy(url: str, wrong: Any) -> None:
    """Such seconds are refused where it is made; whatever becomes of it then, the engine computes with a time."""
    app = make(url)

    @app.function
    async def busy(ctx: Context) -> int:
        if ctx.attempt == 1:
            error = errors.RetryAfter(1000)
            error.seconds = wrong
            raise error
        return ctx.attempt

    async with app:
        assert await (await app.submit(one("busy"))).result(10) == {"t": 2}


async def test_the_feed_tells_the_events_of_a_job_in_their_order_whoever_wrote_them(url: str) -> None:
    """Several processes write to the same jobs at once, in batches that hold the jobs in different orders."""
    async with make(url, work=False, maintain=False, check_functions=False) as first:
        jobs = [(await first.submit(one("f"))).job_id for _ in range(6)]
        async with make(url, work=False, maintain=False) as second:

            async def chatter(app: Ostinato, order: list[str]) -> None:
                for _ in range(25):
                    await asyncio.gather(*[app.signal(job_id, "hello") for job_id in order])

            await asyncio.gather(chatter(first, jobs), chatter(second, jobs[::-1]))
        await asyncio.sleep(0.1)
        seen: dict[str, int] = {}
        for item in await first.events(most=10_000):
            assert item.event.seq == seen.get(item.event.job_id, 0) + 1
            seen[item.event.job_id] = item.event.seq
        assert set(seen.values()) == {2 + 50}


async def test_a_large_job_is_taken_where_others_were_first(postgres_url: str) -> None:
    """After a conflict transactions are begun by hand, and what is written in pieces could not begin one in there."""
    app = make(postgres_url, check_functions=False, work=False)
    async with app:
        conflicts = [asyncpg.SerializationError("somebody else was first")]

        def conflict() -> None:
            if conflicts:
                raise conflicts.pop()

        app.engine.db.before_commit = conflict
        tasks = [{"taskId": f"t{n}", "name": "later"} for n in range(10_001)]
        made = await app.submit({"name": "large", "tasks": tasks})
        assert not conflicts
        assert len(await made.tasks(state="pending", most=20_000)) == 10_001
        assert await sound(app)
