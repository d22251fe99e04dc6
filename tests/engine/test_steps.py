"""Steps and attempts: X7, what finished is not done again, and what history says of it."""

import asyncio
from typing import Any

import pytest

from ostinato import Retry, errors
from tests.engine import support
from tests.engine.support import job, run, task

TWICE = {"maxAttempts": 2, "baseDelay": 0}


async def test_x7_a_finished_step_is_not_repeated_after_a_failure(url: str) -> None:
    app = support.make(url)
    calls: list[str] = []

    async def call(name: str) -> str:
        calls.append(name)
        return name.upper()

    @app.function
    async def work(ctx: Any) -> list[str]:
        first = await ctx.step("first", call, "first")
        second = await ctx.step("second", call, "second")
        if ctx.attempt == 1:
            raise ValueError("after two steps")
        return [first, second, await ctx.step("third", call, "third")]

    async with app:
        made = await app.submit(job(task("a", "work", retry=TWICE)))
        assert await made.result(support.PATIENCE) == {"a": ["FIRST", "SECOND", "THIRD"]}
        assert [step.key for step in (await made.task("a")).steps] == ["first", "second", "third"]
    assert calls == ["first", "second", "third"]


async def test_the_arguments_of_a_step_may_have_any_name(url: str) -> None:
    app = support.make(url)

    @app.function
    async def work(ctx: Any) -> Any:
        return await ctx.step("call", dict, name=1, function=2, self=3)

    @app.function
    def plain(ctx: Any) -> Any:
        return ctx.step("call", dict, name=1, function=2, self=3)

    async with app:
        expected = {"name": 1, "function": 2, "self": 3}
        assert await run(app, task("a", "work"), task("b", "plain")) == {"a": expected, "b": expected}


async def test_x7_a_finished_step_is_not_repeated_after_a_resume(url: str) -> None:
    app = support.make(url)
    calls: list[int] = []
    broken = [True]

    @app.function
    async def work(ctx: Any) -> int:
        value = await ctx.step("call", lambda: calls.append(1) or len(calls))
        if broken[0]:
            raise ValueError("later")
        return value

    async with app:
        made = await app.submit(job(task("a", "work")))
        await support.failure(made)
    broken[0] = False
    async with app:
        again = await app.job(made.job_id)
        await again.resume()
        assert await again.result(support.PATIENCE) == {"a": 1}
    assert calls == [1]


async def test_x7_a_failed_step_is_repeated(url: str) -> None:
    app = support.make(url)
    calls: list[int] = []

    def call() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("no network")
        return len(calls)

    @app.function
    async def work(ctx: Any) -> int:
        return await ctx.step("call", call)

    async with app:
        assert await run(app, task("a", "work", retry=TWICE)) == {"a": 2}


async def test_steps_with_one_name_are_told_apart_by_their_order(url: str) -> None:
    app = support.make(url)
    calls: list[int] = []

    @app.function
    async def work(ctx: Any) -> list[int]:
        found = [await ctx.step("item", lambda n: calls.append(n) or n, n) for n in range(3)]
        if ctx.attempt == 1:
            raise ValueError
        return found

    async with app:
        made = await app.submit(job(task("a", "work", retry=TWICE)))
        assert await made.result(support.PATIENCE) == {"a": [0, 1, 2]}
        assert [step.key for step in (await made.task("a")).steps] == ["item", "item#2", "item#3"]
    assert calls == [0, 1, 2]


async def test_a_step_that_returns_nothing_is_recorded_too(url: str) -> None:
    app = support.make(url)
    calls: list[int] = []

    @app.function
    async def work(ctx: Any) -> None:
        await ctx.step("send", calls.append, 1)
        if ctx.attempt == 1:
            raise ValueError

    async with app:
        await run(app, task("a", "work", retry=TWICE))
    assert calls == [1]


async def test_a_step_returns_the_same_value_the_first_time_and_later(url: str) -> None:
    """What JSON makes of a tuple is what the function gets from the start."""
    app = support.make(url)
    seen: list[Any] = []

    @app.function
    async def work(ctx: Any) -> None:
        seen.append(await ctx.step("pair", lambda: (1, 2)))
        if ctx.attempt == 1:
            raise ValueError

    async with app:
        await run(app, task("a", "work", retry=TWICE))
    assert seen == [[1, 2], [1, 2]]


async def test_a_step_with_a_large_result(url: str) -> None:
    app = support.make(url)

    @app.function
    async def work(ctx: Any) -> int:
        text = await ctx.step("load", lambda: "x" * 1_000_000)
        if ctx.attempt == 1:
            raise ValueError
        return len(text)

    async with app:
        assert await run(app, task("a", "work", retry=TWICE)) == {"a": 1_000_000}


async def test_steps_of_plain_functions(url: str) -> None:
    app = support.make(url)
    calls: list[int] = []

    @app.function
    def work(ctx: Any) -> int:
        value = ctx.step("call", lambda: calls.append(1) or 5)
        if ctx.attempt == 1:
            raise ValueError
        return value

    async with app:
        assert await run(app, task("a", "work", retry=TWICE)) == {"a": 5}
    assert calls == [1]


async def test_a_step_that_cannot_be_recorded_fails_the_attempt(url: str) -> None:
    app = support.make(url, max_payload_bytes=1000)

    @app.function
    async def work(ctx: Any, size: int) -> None:
        await ctx.step("s", lambda: "x" * size if size else object())

    async with app:
        made = await app.submit(job(task("a", "work", input={"size": 0}), task("b", "work", input={"size": 2000})))
        error = await support.failure(made)
        assert error.failed["a"]["type"] == "InvalidPayload"
        assert error.failed["b"]["type"] == "PayloadTooLarge"
        assert "step 's'" in error.failed["b"]["message"]


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 300])
async def test_odd_names_of_steps_fail_the_attempt(url: str, name: str) -> None:
    app = support.make(url)

    @app.function
    async def work(ctx: Any, name: str) -> None:
        await ctx.step(name, lambda: 1)

    async with app:
        error = await support.failure(await app.submit(job(task("a", "work", input={"name": name}))))
        assert error.failed["a"]["type"] == "InvalidId"


async def test_a_step_of_a_users_own_name_does_not_collide_with_ours(url: str) -> None:
    app = support.make(url)

    @app.function
    async def work(ctx: Any) -> list[Any]:
        mine = await ctx.step("sleep", lambda: "mine")
        await ctx.sleep(0.01)
        waited = await ctx.step("wait:go", lambda: "also mine")
        return [mine, waited, await ctx.wait_for("go")]

    async with app:
        made = await app.submit(job(task("a", "work")))
        await made.signal("go", "signal")
        assert await made.result(support.PATIENCE) == {"a": ["mine", "also mine", "signal"]}


async def test_x7_the_idempotency_key_is_the_same_for_every_attempt(url: str) -> None:
    app = support.make(url)
    keys: list[str] = []

    @app.function(retry=Retry(max_attempts=3, base_delay=0))
    async def charge(ctx: Any) -> None:
        keys.append(ctx.idempotency_key)
        if ctx.attempt < 3:
            raise ValueError

    async with app:
        made = await app.submit(job(task("pay", "charge"), task("pay2", "charge"), jobId="order-1"))
        await made.result(support.PATIENCE)
    assert sorted(set(keys)) == ["order-1:pay", "order-1:pay2"]
    assert len(keys) == 6


async def test_x7_history_shows_every_attempt_by_the_seeds_key(url: str) -> None:
    app = support.make(url)
    support.Flaky(app, failures=2)
    async with app:
        made = await app.submit(job(task("a", "flaky", retry={"maxAttempts": 3, "baseDelay": 0}), jobId="j1"))
        await made.result(support.PATIENCE)
        attempts = (await made.task("a")).attempts
        assert [a.key for a in attempts] == ["j1:a:1", "j1:a:2", "j1:a:3"]
        assert [a.outcome for a in attempts] == ["failed", "failed", "completed"]
        assert attempts[0].error["message"] == "attempt 1 went wrong"
        assert all(a.ended_at is not None and a.started_at <= a.ended_at for a in attempts)


async def test_x7_attempts_go_on_counting_after_a_resume(url: str) -> None:
    app = support.make(url)
    support.Flaky(app, failures=1)
    async with app:
        made = await app.submit(job(task("a", "flaky"), jobId="j1"))
        await support.failure(made)
        await made.resume()
        await made.result(support.PATIENCE)
        assert [a.key for a in (await made.task("a")).attempts] == ["j1:a:1", "j1:a:2"]


async def test_waiting_is_not_an_attempt(url: str) -> None:
    app = support.make(url)

    @app.function
    async def nap(ctx: Any) -> None:
        await ctx.sleep(0.01)

    async with app:
        made = await app.submit(job(task("a", "nap")))
        await made.result(support.PATIENCE)
        assert [a.outcome for a in (await made.task("a")).attempts] == ["completed"]


async def test_added_tasks_are_not_added_again_on_a_retry(url: str) -> None:
    app = support.make(url)
    answers: list[list[str]] = []

    @app.function
    async def grow(ctx: Any) -> None:
        answers.append(await ctx.add_tasks([task("b"), task("c", "join", "b")]))
        answers.append(await ctx.add_tasks([task("d")]))
        if ctx.attempt == 1:
            raise ValueError

    async with app:
        made = await app.submit(job(task("a", "grow", retry=TWICE)))
        await made.result(support.PATIENCE)
        assert answers == [["b", "c"], ["d"]] * 2
        assert (await support.told(made)).count("Job Tasks Added") == 2
        assert set(await support.standing(made)) == {"a", "b", "c", "d"}


async def test_heartbeat_leaves_a_function_whose_task_was_cancelled(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app, "other")
    left: list[str] = []

    @app.function
    async def busy(ctx: Any) -> None:
        gate.started.set()
        try:
            while True:
                await ctx.heartbeat()
        except BaseException as error:
            left.append(type(error).__name__)
            gate.cancelled.set()
            raise

    async with app:
        made = await app.submit(job(task("a", "busy")))
        await support.soon(gate.started.wait())
        await made.cancel()
        await support.soon(gate.cancelled.wait())
    assert left[0] in ("LeaseLost", "CancelledError")


async def test_the_log_says_whose_it_is(url: str, caplog: pytest.LogCaptureFixture) -> None:
    app = support.make(url)

    @app.function
    async def talk(ctx: Any) -> None:
        ctx.log.warning("hello")

    async with app:
        await run(app, task("a", "talk"), jobId="j1")
    [record] = [r for r in caplog.records if r.message == "hello"]
    assert (record.job_id, record.task_id, record.attempt) == ("j1", "a", 1)  # type: ignore[attr-defined]


async def test_a_step_after_the_end_of_the_job_is_refused(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        await support.soon(gate.started.wait())
        gate.opened.set()
        await made.result(support.PATIENCE)
        with pytest.raises(errors.LeaseLost):
            await gate.context.step("late", lambda: 1)


async def test_a_task_tells_its_attempts_with_their_workers_and_its_steps_with_their_sizes(url: str) -> None:
    app = support.make(url, spill_bytes=1000)

    @app.function("work", retry=Retry(max_attempts=2, base_delay=0))
    async def work(ctx: Any) -> None:
        await ctx.step("small", lambda: [1, 2])
        await ctx.step("large", lambda: "x" * 5000)
        if ctx.attempt == 1:
            raise ValueError("once")

    async with app:
        made = await app.submit(job(task("a", "work")))
        await made.result(support.PATIENCE)
        detail = await made.task("a")
        worker = app.engine.worker
        assert worker is not None
        assert [(a.attempt, a.outcome, a.worker) for a in detail.attempts] == [
            (1, "failed", worker.worker_id),
            (2, "completed", worker.worker_id),
        ]
        assert detail.attempts[0].error["message"] == "once"
        assert all(a.ended_at is not None and a.ended_at >= a.started_at for a in detail.attempts)
        steps = {step.key: (step.size, step.output) for step in detail.steps}
        assert steps == {"small": (5, [1, 2]), "large": (5002, None)}


async def test_a_task_with_very_many_steps_tells_all_its_attempts(url: str) -> None:
    app = support.make(url)

    @app.function("work", retry=Retry(max_attempts=2, base_delay=0))
    async def work(ctx: Any) -> None:
        for start in range(0, 1100, 100):
            await asyncio.gather(*[ctx.step(f"s{n:04}", lambda n=n: n) for n in range(start, start + 100)])
        if ctx.attempt == 1:
            raise ValueError("once")

    async with app:
        made = await app.submit(job(task("a", "work")))
        await made.result(support.PATIENCE)
        detail = await made.task("a")
        assert [a.outcome for a in detail.attempts] == ["failed", "completed"]
        assert (len(detail.steps), detail.more_steps) == (1000, True)
