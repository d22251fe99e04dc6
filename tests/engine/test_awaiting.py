"""B1: a function that waits for the result of another job gives its slot back until then."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from ostinato import Ostinato, errors
from tests.engine import support
from tests.engine.support import PATIENCE, job, run, soon, task


def family(url: str, **options: Any) -> Ostinato:
    """`parent` waits for `child`, which sleeps durably and so needs a slot twice."""
    app = support.make(url, **options)

    @app.function
    async def child(ctx: Any) -> str:
        await ctx.sleep(0.01)
        return "grown"

    @app.function
    async def parent(name: str = "child", depth: int = 0) -> Any:
        given = {"name": name, "depth": depth - 1} if depth else {}
        made = await app.submit_task("parent" if depth else name, **given)
        return (await made.result())["task"]

    @app.function
    async def waits(held: str) -> Any:
        return await (await app.job(held)).result()

    return app


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_parents_in_all_slots_let_their_children_run(url: str, concurrency: int) -> None:
    """B1: as many parents as slots, and children that sleep."""
    async with family(url, concurrency=concurrency) as app:
        made = [await app.submit_task("parent") for _ in range(3)]
        assert [await parent.result(PATIENCE) for parent in made] == [{"task": "grown"}] * 3


async def test_grandparents_too(url: str) -> None:
    """B1: a chain of ten that wait for one another has enough in one slot."""
    async with family(url, concurrency=1) as app:
        made = await app.submit_task("parent", depth=10)
        assert await made.result(PATIENCE) == {"task": "grown"}


async def test_a_plain_function_gives_its_slot_back_too(url: str) -> None:
    """B1: a `def` waits in its thread, in our event loop or in one of its own."""
    app = family(url, concurrency=1)
    loops: list[asyncio.AbstractEventLoop] = []

    @app.function
    def in_our_loop() -> Any:
        async def wait() -> Any:
            return await (await app.submit_task("child")).result()

        return asyncio.run_coroutine_threadsafe(wait(), loops[0]).result(PATIENCE)

    @app.function
    def in_its_own() -> Any:
        other = support.make(url, work=False, maintain=False)

        async def wait() -> Any:
            return await (await other.submit_task("child")).result()

        return other.run(wait)

    async with app:
        loops.append(asyncio.get_running_loop())
        assert await run(app, task("a", "in_our_loop")) == {"a": {"task": "grown"}}
        assert await run(app, task("b", "in_its_own")) == {"b": {"task": "grown"}}


async def test_opening_the_same_application_twice_says_how_to_wait(url: str) -> None:
    """B1: `app.run` inside a function is refused at once, with what to write."""
    app = family(url)

    @app.function
    def runs() -> Any:
        return app.run(lambda: app.submit_task("child"))

    async with app:
        error = await support.failure(await app.submit(job(task("a", "runs"))))
        assert "run_coroutine_threadsafe" in error.failed["a"]["message"]


async def test_a_slot_is_taken_again_before_the_function_goes_on(url: str) -> None:
    """B1: no more functions run than there are slots; those that come back go before what is new."""
    app = support.make(url, concurrency=1)
    gate = support.Gate(app)
    order: list[str] = []

    @app.function
    async def parent(child: str) -> None:
        await (await app.job(child)).result()
        order.append("parent")
        assert gate.running == 0

    @app.function
    async def last() -> None:
        order.append("last")

    async with app:
        held = await app.submit(job(task("a", external=True)))
        waits = await app.submit_task("parent", child=held.job_id)
        running = await app.submit_task("gate")
        await soon(gate.started.wait())
        after = await app.submit_task("last")
        await held.complete_task("a")
        await asyncio.sleep(0.05)  # the parent has heard of it, and waits for its slot
        assert order == []
        gate.opened.set()
        for made in (waits, running, after):
            await made.result(PATIENCE)
    assert order == ["parent", "last"]


async def test_no_more_wait_than_may(url: str) -> None:
    """B1: the bound is an ordinary failure, which is tried again, and says what to change."""
    app = family(url, concurrency=4, max_awaiting=1)

    async with app:
        held = await app.submit(job(task("a", external=True)))
        first = await app.submit_task("waits", held=held.job_id)
        await support.until(lambda: _awaits(first, held.job_id))
        error = await support.failure(await app.submit_task("waits", held=held.job_id))
        assert "max_awaiting" in error.failed["task"]["message"]
        await held.complete_task("a", 1)
        assert await first.result(PATIENCE) == {"task": {"a": 1}}


async def _awaits(made: Any, awaited: str) -> bool:
    why = await made.why("task")
    return why.details.get("awaitsJob") == awaited and "has given its slot back" in why.sentence


async def test_waiting_for_oneself_is_refused(url: str) -> None:
    """B1: a job does not end before its functions do."""
    app = support.make(url)

    @app.function
    async def waits(ctx: Any) -> Any:
        return await (await app.job(ctx.job_id)).result()

    async with app:
        error = await support.failure(await app.submit(job(task("a", "waits"))))
        assert "its own job" in error.failed["a"]["message"]


async def test_a_result_that_does_not_come_in_time_needs_no_slot(url: str) -> None:
    """B1: a timeout is told in time, though all slots are taken meanwhile."""
    app = support.make(url, concurrency=1)
    gate = support.Gate(app)
    told = asyncio.Event()

    @app.function
    async def parent(child: str) -> None:
        try:
            await (await app.job(child)).result(timeout=0.1)
        except errors.ResultTimeout:
            told.set()

    async with app:
        held = await app.submit(job(task("a", external=True)))
        waits = await app.submit_task("parent", child=held.job_id)
        await app.submit_task("gate")
        await soon(gate.started.wait())
        await soon(told.wait())
        await waits.result(PATIENCE)
        gate.opened.set()


async def test_what_a_function_leaves_behind_frees_no_slot(url: str) -> None:
    """B1: a task that outlives its function may wait for a job, and the slots are still counted right."""
    app = support.make(url, concurrency=1)
    gate = support.Gate(app)
    left: list[asyncio.Task[Any]] = []

    @app.function
    async def leaves(child: str) -> None:
        async def wait() -> Any:
            await asyncio.sleep(0)
            return await (await app.job(child)).result()

        left.append(asyncio.create_task(wait()))

    async with app:
        held = await app.submit(job(task("a", external=True)))
        await (await app.submit_task("leaves", child=held.job_id)).result(PATIENCE)
        await asyncio.sleep(0.02)  # it waits by now
        running = [await app.submit_task("gate") for _ in range(2)]
        await soon(gate.started.wait())
        await held.complete_task("a", 1)
        assert await left[0] == {"a": 1}
        gate.opened.set()
        for made in running:
            await made.result(PATIENCE)
        assert gate.most == 1


async def test_cancelled_and_stopped_like_those_that_run(url: str) -> None:
    """B1: whoever waits without a slot is interrupted by a cancellation, and handed back by a stop."""
    app = support.make(url, concurrency=1, shutdown_seconds=0.1)
    interrupted = threading.Event()

    @app.function
    async def parent(child: str) -> Any:
        try:
            return await (await app.job(child)).result()
        except asyncio.CancelledError:
            interrupted.set()
            raise

    async with app:
        held = await app.submit(job(task("a", external=True)))
        first = await app.submit_task("parent", child=held.job_id)
        await support.until(lambda: _awaits(first, held.job_id))
        await first.cancel()
        await asyncio.to_thread(interrupted.wait, PATIENCE)
        second = await app.submit_task("parent", child=held.job_id)
        await support.until(lambda: _awaits(second, held.job_id))
        assert await run(app, task("b")) == {"b": {}}, "the slots are counted right"
    async with app:
        assert "Task Released" in await support.told(await app.job(second.job_id)), "the attempt did not count"
        await (await app.job(held.job_id)).complete_task("a", 1)
        assert await (await app.job(second.job_id)).result(PATIENCE) == {"task": {"a": 1}}


async def test_a_worker_whose_slots_all_wait_says_so(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """B1: in the log, once."""
    app = family(url, concurrency=2)
    with caplog.at_level(logging.WARNING, "ostinato"):
        async with app:
            held = await app.submit(job(task("a", external=True)))
            made = [await app.submit_task("waits", held=held.job_id) for _ in range(4)]
            for waiting in made:
                await support.until(lambda waiting=waiting: _awaits(waiting, held.job_id))
            depth = await app.engine.store.waiting("default")
            assert depth.awaiting == 4
            await held.complete_task("a")
            for waiting in made:
                await waiting.result(PATIENCE)
    assert len([record for record in caplog.records if "have given their slots back" in record.message]) == 1


async def test_a_function_that_waits_keeps_no_unlucky_task_from_running_alone(url: str) -> None:
    """A task whose workers died runs alone: functions without a slot are not in its way, for however long they wait."""
    async with family(url, concurrency=3, lease_seconds=PATIENCE) as app:
        asleep = await app.submit(job(task("a", delay=3600)))
        waiting = await app.submit_task("waits", held=asleep.job_id)
        slots = app.engine.worker.slots if app.engine.worker is not None else None
        assert slots is not None
        await support.until(lambda: _without(slots), "the function to wait")
        unlucky = [await app.submit(job(task("u", input={"n": n}, delay=0.5))) for n in range(3)]
        for one in unlucky:
            await support.sql(url, f"UPDATE task SET crashes = 2 WHERE job_id = '{one.job_id}'")
        assert [(await one.result(PATIENCE / 2))["u"] for one in unlucky] == [{"n": n} for n in range(3)]
        await waiting.cancel()


async def _without(slots: Any) -> bool:
    return slots.without == 1


@pytest.mark.parametrize("fails", [False, True], ids=["waits durably", "is tried again"])
async def test_a_child_with_a_key_of_the_attempt_is_submitted_once(url: str, fails: bool) -> None:
    """D3: a function that is entered again finds the child of before, which pays once."""
    app = support.make(url)
    paid: list[str] = []
    entered: list[int] = []

    @app.function
    async def pay(order: str) -> str:
        paid.append(order)
        return "receipt"

    @app.function
    async def order(ctx: Any) -> str:
        entered.append(ctx.attempt)
        child = job(task("pay", "pay", input={"order": "17"}))
        made = await app.submit(child, idempotency_key=f"{ctx.idempotency_key}:pay")
        receipt = (await made.result())["pay"]
        if fails and ctx.attempt == 1:
            raise ValueError("try again")
        await ctx.sleep(0.01)
        return receipt

    async with app:
        again = {"maxAttempts": 2, "baseDelay": 0.01}
        assert await run(app, task("a", "order", retry=again)) == {"a": "receipt"}
    assert paid == ["17"]
    assert len(entered) == (3 if fails else 2)
