"""Attempts: retries, their delays, timeouts, and errors that say how to go on."""

import asyncio
import datetime
import functools
import math
import threading
import time
from typing import Any

import pytest

from ostinato import Retry, RetryAfter, SyncContext, errors, testing
from tests.engine import support
from tests.engine.support import job, run, task

QUICK = {"maxAttempts": 3, "baseDelay": 0.01, "multiplier": 1}


async def test_a_failed_attempt_is_tried_again(url: str) -> None:
    app = support.make(url)
    flaky = support.Flaky(app, failures=2)
    async with app:
        assert await run(app, task("a", "flaky", input={"x": 1}, retry=QUICK)) == {"a": {"x": 1}}
    assert flaky.calls == [("a", 1), ("a", 2), ("a", 3)]


async def test_max_attempts_counts_all_attempts(url: str) -> None:
    app = support.make(url)
    flaky = support.Flaky(app, failures=99)
    async with app:
        error = await support.failure(await app.submit(job(task("a", "flaky", retry=QUICK))))
    assert len(flaky.calls) == 3
    assert error.failed["a"]["message"] == "attempt 3 went wrong"


async def test_the_policy_of_the_task_beats_that_of_the_function(url: str) -> None:
    app = support.make(url)
    flaky = support.Flaky(app, failures=99, retry=Retry(max_attempts=9, base_delay=0))
    async with app:
        await support.failure(await app.submit(job(task("a", "flaky", retry={"maxAttempts": 2, "baseDelay": 0}))))
        assert len(flaky.calls) == 2
        await support.failure(await app.submit(job(task("a", "flaky"))))
        assert len(flaky.calls) == 2 + 9


async def test_the_delay_is_stored_with_the_timer(url: str) -> None:
    """The jitter too is drawn once, and recorded."""
    app = support.make(url)
    support.Flaky(app, failures=1)
    async with app:
        policy = {"maxAttempts": 2, "baseDelay": 1000, "jitter": 0.5}
        made = await app.submit(job(task("a", "flaky", retry=policy)))
        await support.reaches(made, "a", "waiting")
        [event] = [e for e in await made.events() if e.type == "Task Retry Scheduled"]
        assert 500 <= event.properties["delay"] <= 1000
        waits = (await made.task("a")).waits_for
        assert waits is not None
        assert waits["kind"] == "retry"
        due = datetime.datetime.fromisoformat(waits["dueAt"])
        assert abs((due - event.at).total_seconds() - event.properties["delay"]) < 0.001
        await made.cancel()


async def test_a_retry_that_is_due_later_can_be_made_due_now(url: str) -> None:
    app = support.make(url)
    flaky = support.Flaky(app, failures=1)
    async with app:
        made = await app.submit(job(task("a", "flaky", retry={"maxAttempts": 2, "baseDelay": 1000})))
        await support.reaches(made, "a", "waiting")
        await made.retry_task("a")
        await made.result(support.PATIENCE)
    assert flaky.calls == [("a", 1), ("a", 2)]


async def test_a_waiting_retry_holds_no_slot(url: str) -> None:
    app = support.make(url, concurrency=1)
    support.Flaky(app, failures=1)
    async with app:
        made = await app.submit(job(task("a", "flaky", retry={"maxAttempts": 2, "baseDelay": 1000})))
        await support.reaches(made, "a", "waiting")
        assert await run(app, task("b")) == {"b": {}}
        await made.cancel()


async def test_a_terminal_error_ends_all_attempts(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break", retry=QUICK, input={"message": "no use"})))
        error = await support.failure(made)
        assert error.failed["a"] == {"type": "TerminalError", "message": "no use"}
        assert (await made.task("a")).task.attempt == 1


async def test_retry_after_beats_the_policy(url: str) -> None:
    app = support.make(url)
    tries: list[int] = []

    @app.function(retry=Retry(max_attempts=2, base_delay=1000))
    async def later(ctx: Any) -> None:
        tries.append(ctx.attempt)
        if ctx.attempt == 1:
            raise RetryAfter(0.01)

    async with app:
        await run(app, task("a", "later"))
    assert tries == [1, 2]


async def test_retry_after_counts_as_an_attempt(url: str) -> None:
    """Otherwise whoever is always told to come later would come for ever."""
    app = support.make(url)
    tries: list[int] = []

    @app.function(retry=Retry(max_attempts=3, base_delay=1000))
    async def busy(ctx: Any) -> None:
        tries.append(ctx.attempt)
        raise RetryAfter(0.01, "too many calls")

    async with app:
        error = await support.failure(await app.submit(job(task("a", "busy"))))
    assert tries == [1, 2, 3]
    assert error.failed["a"] == {"type": "RetryAfter", "message": "too many calls"}


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1e300, 1e300, "soon", None, True], ids=str)
async def test_retry_after_nonsense_fails_its_own_task_and_says_why(url: str, seconds: Any) -> None:
    app = support.make(url)

    @app.function(retry=Retry(max_attempts=2, base_delay=0))
    async def odd(ctx: Any) -> None:
        raise RetryAfter(seconds)

    async with app:
        made = await app.submit(job(task("a", "odd")))
        assert await run(app, task("b")) == {"b": {}}, "the engine goes on"
        failed = (await support.failure(made)).failed["a"]
        assert failed["type"] == "InvalidInput"
        assert failed["message"].startswith("seconds of RetryAfter must be a number up to ")


async def test_a_delay_of_centuries_is_only_a_late_timer(url: str) -> None:
    app = support.make(url)
    support.Flaky(app)
    async with app:
        policy = {"maxAttempts": 2, "baseDelay": 9e9, "maxDelay": 9e9}
        made = await app.submit(job(task("a", "flaky", retry=policy)))
        await support.reaches(made, "a", "waiting")
        assert (await made.task("a")).waits_for is not None
        await made.cancel()


async def test_an_attempt_past_its_timeout_fails(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        error = await support.failure(await app.submit(job(task("a", "gate", timeout=0.05))))
    assert error.failed["a"]["type"] == "TaskTimeout"
    assert gate.cancelled.is_set(), "the function was interrupted"


async def test_a_timeout_is_retried_and_is_per_attempt(url: str) -> None:
    app = support.make(url)

    @app.function(timeout=0.1, retry=Retry(max_attempts=2, base_delay=0))
    async def slow_at_first(ctx: Any) -> str:
        if ctx.attempt == 1:
            await asyncio.sleep(60)
        return "done"

    async with app:
        assert await run(app, task("a", "slow_at_first")) == {"a": "done"}


async def test_a_plain_function_past_its_timeout_fails_too(url: str) -> None:
    app = support.make(url)
    done = threading.Event()

    @app.function(timeout=0.05)
    def stuck() -> None:
        done.wait(support.PATIENCE)

    async with app:
        try:
            error = await support.failure(await app.submit(job(task("a", "stuck"))))
        finally:
            done.set()
    assert error.failed["a"]["type"] == "TaskTimeout"


async def test_a_plain_function_is_told_that_its_time_is_up(url: str) -> None:
    app = support.make(url)
    told = threading.Event()

    @app.function(timeout=0.05)
    def busy(ctx: SyncContext) -> None:
        ends = time.monotonic() + support.PATIENCE
        while not ctx.cancelled and time.monotonic() < ends:
            time.sleep(0.005)
        try:
            ctx.heartbeat()
        except errors.LeaseLost:
            told.set()

    async with app:
        await support.failure(await app.submit(job(task("a", "busy"))))
        assert await asyncio.to_thread(told.wait, support.PATIENCE)


async def test_a_plain_function_that_returns_a_coroutine_is_told_what_is_wrong(url: str) -> None:
    app = support.make(url)

    async def real() -> str:
        return "never"

    @app.function("wrapped", retry=Retry(max_attempts=5))
    @functools.wraps(real)
    def wrapped() -> object:
        return real()

    class Callable_:
        async def __call__(self) -> str:
            return "called"

    app.function("object")(Callable_())
    async with app:
        error = await support.failure(await app.submit(job(task("a", "wrapped"))))
        assert "with `async def`" in error.failed["a"]["message"]
        assert await run(app, task("a", "object")) == {"a": "called"}


async def test_a_timeout_error_of_the_authors_own_is_not_ours(url: str) -> None:
    app = support.make(url)

    @app.function(timeout=60)
    async def own() -> None:
        raise TimeoutError("the shop did not answer")

    async with app:
        error = await support.failure(await app.submit(job(task("a", "own"))))
    assert error.failed["a"]["type"] == "TimeoutError"
    assert error.failed["a"]["message"] == "the shop did not answer"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit, MemoryError])
async def test_whatever_a_function_raises_fails_the_attempt_not_the_worker(url: str, kind: type[BaseException]) -> None:
    app = support.make(url)

    @app.function
    async def wild() -> None:
        raise kind

    async with app:
        error = await support.failure(await app.submit(job(task("a", "wild"))))
        assert "a" in error.failed
        assert await run(app, task("b")) == {"b": {}}


@pytest.mark.parametrize("kind", [SystemExit, StopIteration, GeneratorExit])
async def test_whatever_a_plain_function_raises_fails_the_attempt_not_the_worker(
    url: str, kind: type[BaseException]
) -> None:
    app = support.make(url)

    @app.function
    def wild() -> None:
        raise kind

    async with app:
        error = await support.failure(await app.submit(job(task("a", "wild"))))
        assert "a" in error.failed
        assert await run(app, task("b")) == {"b": {}}


async def test_an_exception_that_cannot_be_shown_is_shown_anyway(url: str) -> None:
    app = support.make(url)

    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even this works")

    @app.function
    async def odd() -> None:
        raise Odd

    class Nameless(type):
        @property
        def __name__(cls) -> str:
            raise RuntimeError("nor this")

    class Anonymous(Exception, metaclass=Nameless): ...

    @app.function
    async def nameless() -> None:
        raise Anonymous

    @app.function
    async def surrogate() -> None:
        raise ValueError("\ud800" + "x" * 1_000_000 + "\0")

    async with app:
        tasks = [task("a", "odd"), task("b", "surrogate"), task("c", "nameless")]
        error = await support.failure(await app.submit(job(*tasks)))
        assert error.failed["c"]["type"] == "Exception"
        assert error.failed["a"]["type"] == "Odd"
        assert len(error.failed["b"]["message"]) <= 16 * 1024


async def test_input_that_does_not_fit_the_function_is_not_retried(url: str) -> None:
    app = support.make(url, default_retry=Retry(max_attempts=5, base_delay=1000))

    @app.function
    async def wants(x: int) -> None: ...

    async with app:
        made = await app.submit(job(task("a", "wants", input={"y": 1})))
        error = await support.failure(made)
        assert "needs the input 'x'" in error.failed["a"]["message"]
        assert (await made.task("a")).task.attempt == 1


async def test_the_traceback_is_kept(url: str) -> None:
    app = support.make(url)
    support.Flaky(app)
    async with app:
        made = await app.submit(job(task("a", "flaky")))
        error = await support.failure(made)
        assert "in _run" in error.failed["a"]["traceback"]


async def test_a_function_that_allows_fewer_attempts_than_were_made_gets_its_last_one(url: str) -> None:
    """A new version of the program is stricter than the one that made the first attempts."""
    clock, made, calls = testing.Clock(), "", []
    for attempts in (5, 1):
        app = support.make(url)
        flaky = support.Flaky(app, failures=9, retry=Retry(max_attempts=attempts, base_delay=60, multiplier=1))
        async with testing.open(app, clock) as kit:
            made = made or (await app.submit(job(task("a", "flaky")))).job_id
            await kit.advance(61)
            calls.append([attempt for _, attempt in flaky.calls])
            await kit.audit()
    assert calls == [[1], [2]]
