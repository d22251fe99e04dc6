"""B2: a durable wait that a function swallows, runs beside others or puts under a limit never completes the task."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ostinato import Ostinato, errors, testing
from tests.engine import support
from tests.engine.support import job, run, task

Body = Callable[[Any], Awaitable[Any]]


def register(app: Ostinato, body: Any, name: str = "f") -> None:
    app.function(name)(body)


# --- swallowed -------------------------------------------------------------------------------------------------------


async def bare_except(ctx: Any) -> str:
    try:
        await ctx.approve("Pay?")
    except:  # noqa: E722 - what people write
        return "swallowed"
    return "approved"


async def finally_returns(ctx: Any) -> str:
    answer = "swallowed"
    try:
        await ctx.approve("Pay?")
        answer = "approved"
    finally:
        return answer  # noqa: B012


async def raises_instead(ctx: Any) -> str:
    try:
        await ctx.approve("Pay?")
    except BaseException as error:
        raise ValueError("swallowed") from error
    return "approved"


async def goes_on(ctx: Any) -> str:
    with contextlib.suppress(BaseException):
        await ctx.approve("Pay?")
    return await ctx.step("pay", lambda: "approved")


async def gathers(ctx: Any) -> str:
    answers = await asyncio.gather(ctx.approve("Pay?"), return_exceptions=True)
    return "swallowed" if isinstance(answers[0], BaseException) else "approved"


async def groups(ctx: Any) -> str:
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(bare_except(ctx))
    return asked.result()


async def groups_in_its_own_task(ctx: Any) -> str:
    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.step("beside", lambda: 1))
        await ctx.approve("Pay?")
    return "approved"


async def insists(ctx: Any) -> str:
    while True:
        try:
            await ctx.approve("Pay?")
            return "approved"
        except BaseException:
            await asyncio.sleep(0)


def plain(ctx: Any) -> str:
    try:
        ctx.approve("Pay?")
    except:  # noqa: E722 - what people write
        return "swallowed"
    return "approved"


def plain_that_goes_on(ctx: Any) -> str:
    with contextlib.suppress(BaseException):
        ctx.approve("Pay?")
    return ctx.step("pay", lambda: "approved")


BODIES = [
    bare_except, finally_returns, raises_instead, goes_on, gathers, groups, groups_in_its_own_task, insists, plain,
    plain_that_goes_on,
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # `insists` refuses to be closed
async def test_what_a_function_swallows_is_asked_all_the_same(url: str, body: Any) -> None:
    """B2: the payment is made after the approval, and what ran before counts for nothing."""
    app = support.make(url)
    register(app, body)
    async with app:
        made = await app.submit(job(task("a", "f")))
        await support.reaches(made, "a", "waiting")
        assert [step.key for step in (await made.task("a")).steps if step.key != "beside"] == []
        await app.approvals.decide(made.job_id, "a", "approve", actor="ann")
        assert await made.result(support.PATIENCE) == {"a": "approved"}


async def test_code_behind_a_gathered_wait_does_not_run(url: str) -> None:
    """B2: with `return_exceptions=True`, not even what is in no step runs before people have decided."""
    app = support.make(url)
    paid: list[str] = []

    @app.function
    async def pay(ctx: Any) -> None:
        answers = await asyncio.gather(ctx.approve("Pay 1,000,000?"), return_exceptions=True)
        if not any(isinstance(answer, errors.Rejected) for answer in answers):
            paid.append(ctx.job_id)

    async with app:
        made = await app.submit(job(task("a", "pay")))
        await support.reaches(made, "a", "waiting")
        assert paid == []
        await app.approvals.decide(made.job_id, "a", "reject", actor="ann")
        await made.result(support.PATIENCE)
        assert paid == []


async def test_a_swallowed_wait_is_told_in_the_log(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """B2: the log says which function it was, and how to write it."""
    app = support.make(url)
    register(app, bare_except)
    with caplog.at_level(logging.WARNING, "ostinato"):
        async with app:
            made = await app.submit(job(task("a", "f")))
            await support.reaches(made, "a", "waiting")
    assert any("catch Exception, not BaseException" in record.message for record in caplog.records)


async def test_a_wait_that_passes_is_not_told_of(url: str, caplog: pytest.LogCaptureFixture) -> None:
    app = support.make(url)
    register(app, gathers)
    register(app, groups_in_its_own_task, "g")
    with caplog.at_level(logging.WARNING, "ostinato"):
        async with app:
            made = await app.submit(job(task("a", "f"), task("b", "g")))
            await support.reaches(made, "a", "waiting")
            await support.reaches(made, "b", "waiting")
    assert caplog.records == []


# --- several at once -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_group", [False, True])
async def test_sleeps_at_the_same_time_overlap(url: str, by_group: bool) -> None:
    """B2: three sleeps of a function take as long as the longest, and each goes on when it is over."""
    app = support.make(url)
    woken: list[str] = []

    @app.function
    async def nap(ctx: Any) -> list[str]:
        async def one(name: str, seconds: float) -> str:
            await ctx.sleep(seconds)
            return await ctx.step(name, lambda: woken.append(name) or name)

        naps = [one("short", 10), one("long", 30), one("middle", 20)]
        if not by_group:
            return await asyncio.gather(*naps)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(nap) for nap in naps]
        return [task.result() for task in tasks]

    async with testing.open(app) as kit:
        made = await app.submit(job(task("a", "nap")))
        await kit.run_until_idle()
        for name in ("short", "middle", "long"):
            before = len(woken)
            await kit.advance(9)
            assert len(woken) == before
            await kit.advance(1.01)
            assert woken[before:] == [name]
        assert await made.result(support.PATIENCE) == {"a": ["short", "long", "middle"]}
        await kit.audit()


async def test_approvals_at_the_same_time_are_asked_one_after_the_other(url: str) -> None:
    """B2: each of them is decided by people before the function goes on."""
    app = support.make(url)

    @app.function
    async def pay(ctx: Any) -> list[str]:
        made = await asyncio.gather(ctx.approve("First?"), ctx.approve("Second?"))
        return [decision.by[0] for decision in made]

    async with app:
        made = await app.submit(job(task("a", "pay")))
        for title, actor in (("First?", "ann"), ("Second?", "bob")):

            async def asked(title: str = title) -> bool:
                waiting = await app.approvals.list()
                return [view.title for view in waiting] == [title]

            await support.until(asked)
            await app.approvals.decide(made.job_id, "a", "approve", actor=actor)
        assert await made.result(support.PATIENCE) == {"a": ["ann", "bob"]}


async def test_a_signal_and_a_sleep_at_the_same_time_are_both_waited_for(url: str) -> None:
    """B2: the time of the sleep runs while the function waits for the signal."""
    app = support.make(url)

    @app.function
    async def both(ctx: Any) -> list[Any]:
        return await asyncio.gather(ctx.sleep(10), ctx.wait_for("go"))

    async with testing.open(app) as kit:
        made = await app.submit(job(task("a", "both")))
        await kit.run_until_idle()
        await kit.advance(11)
        assert await support.standing(made) == {"a": "waiting"}
        await made.signal("go", 7)
        await kit.run_until_idle()
        assert await made.result(support.PATIENCE) == {"a": [None, 7]}


async def test_steps_under_way_are_recorded_before_the_function_is_left(url: str) -> None:
    """B2: what runs beside a wait is not done twice."""
    app = support.make(url)
    calls: list[str] = []

    async def slow(name: str) -> str:
        calls.append(name)
        await asyncio.sleep(0.05)  # longer than the wait beside it takes to be entered
        return name

    @app.function
    async def both(ctx: Any) -> list[Any]:
        async def two() -> str:
            return await ctx.step("one", slow, "one") + await ctx.step("two", slow, "two")

        return await asyncio.gather(ctx.sleep(0.01), two(), return_exceptions=True)

    async with app:
        assert await run(app, task("a", "both")) == {"a": [None, "onetwo"]}
    assert calls == ["one", "two"]


async def test_a_wait_inside_a_step_is_entered(url: str) -> None:
    """B2: the step that waits is not waited for, those beside it are."""
    app = support.make(url)
    calls: list[str] = []

    @app.function
    async def nested(ctx: Any) -> list[Any]:
        async def naps() -> str:
            await ctx.sleep(0.01)
            await asyncio.gather(ctx.sleep(0.01), ctx.sleep(0.01))
            return "rested"

        async def slow() -> str:
            calls.append("slow")
            await asyncio.sleep(0.05)  # longer than the wait beside it takes to be entered
            return "slow"

        first = await ctx.step("outer", lambda: ctx.step("inner", naps))
        return [first, *await asyncio.gather(ctx.step("naps", naps), ctx.step("slow", slow))]

    @app.function
    def plain(ctx: Any) -> Any:
        return ctx.step("naps", lambda: ctx.sleep(0.01) or "rested")

    async with app:
        assert await run(app, task("a", "nested")) == {"a": ["rested", "rested", "slow"]}
        assert await run(app, task("a", "plain")) == {"a": "rested"}
    assert calls == ["slow"]


# --- limits and races ------------------------------------------------------------------------------------------------


async def limited(ctx: Any) -> Any:
    return await asyncio.wait_for(ctx.wait_for("go"), 60)


async def limited_block(ctx: Any) -> Any:
    async with asyncio.timeout(60):
        return await ctx.wait_for("go")


async def limited_and_swallowed(ctx: Any) -> Any:
    with contextlib.suppress(Exception):
        return await asyncio.wait_for(ctx.approve("Pay?"), 60)
    return "paid"


async def first_of_two(ctx: Any) -> Any:
    both = [asyncio.create_task(ctx.wait_for("go")), asyncio.create_task(ctx.sleep(1))]
    done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    return len(done)


async def as_completed(ctx: Any) -> Any:
    for first in asyncio.as_completed([ctx.wait_for("go"), ctx.sleep(1)]):
        return await first


async def limited_gather(ctx: Any) -> Any:
    async with asyncio.timeout(60):
        return await asyncio.gather(ctx.wait_for("go"))


@pytest.mark.parametrize(
    "body",
    [limited, limited_block, limited_and_swallowed, first_of_two, as_completed, limited_gather],
    ids=lambda body: body.__name__,
)
async def test_a_limit_that_would_be_forgotten_is_refused(url: str, body: Body) -> None:
    """B2: the error says what to write instead."""
    app = support.make(url)
    register(app, body)
    async with app:
        error = await support.failure(await app.submit(job(task("a", "f"))))
        assert error.failed["a"]["type"] == "TerminalError"
        assert "ctx.wait_for(name, timeout=seconds)" in error.failed["a"]["message"]


async def test_a_limit_without_time_is_none(url: str) -> None:
    app = support.make(url)

    @app.function
    async def nap(ctx: Any) -> str:
        async with asyncio.timeout(None):
            await ctx.sleep(0.01)
        return "rested"

    async with app:
        assert await run(app, task("a", "nap")) == {"a": "rested"}


async def test_a_wait_that_the_function_gives_up_is_none(url: str) -> None:
    app = support.make(url)

    @app.function
    async def gives_up(ctx: Any) -> str:
        waiting = asyncio.create_task(ctx.wait_for("go"))
        await asyncio.sleep(0)
        waiting.cancel()
        return "gone"

    async with app:
        assert await run(app, task("a", "gives_up")) == {"a": "gone"}


async def test_a_function_does_not_end_before_its_tasks_that_wait(url: str) -> None:
    """B2: a wait in a task that is never awaited would be forgotten."""
    app = support.make(url)

    @app.function
    async def forgets(ctx: Any) -> str:
        ctx.waiting = asyncio.create_task(ctx.approve("Pay?"))
        await asyncio.sleep(0)
        return "paid"

    async with app:
        error = await support.failure(await app.submit(job(task("a", "forgets"))))
        assert "await that task" in error.failed["a"]["message"]


async def test_calls_of_the_application_behind_a_swallowed_wait_take_effect(url: str) -> None:
    """D4: the application does not hold back what a function that was left asks of it; a step is the place for it."""
    app = support.make(url)
    made: list[str] = []

    @app.function
    async def submits(ctx: Any) -> None:
        with contextlib.suppress(BaseException):
            await ctx.approve("Pay?")
        made.append((await app.submit_task("echo", n=1)).job_id)

    async with app:
        asked = await app.submit(job(task("a", "submits")))
        await support.reaches(asked, "a", "waiting")
        assert await (await app.job(made[0])).result(support.PATIENCE) == {"task": {"n": 1}}


async def test_a_task_that_has_not_started_is_not_waited_for(url: str) -> None:
    app = support.make(url)

    @app.function
    async def forgets(ctx: Any) -> str:
        ctx.waiting = asyncio.create_task(ctx.approve("Pay?"))
        return "done"

    async with app:
        assert await run(app, task("a", "forgets")) == {"a": "done"}
        assert await app.approvals.list() == []
