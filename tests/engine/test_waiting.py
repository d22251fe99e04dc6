"""Waiting durably: sleep, signals, timeouts. A function that waits holds no slot and is entered again."""

import asyncio
from typing import Any

import pytest

from ostinato import Ostinato, audit, errors
from ostinato.core import commands, rows
from tests.engine import support
from tests.engine.support import job, run, task

LARGE = "x" * 200_000


def waiter(app: Ostinato, timeout: float | None = None) -> list[str]:
    """Register `wait`, which asks for one signal; the list has an entry for each time it was entered."""
    entries: list[str] = []

    @app.function("wait")
    async def wait(ctx: Any, signal: str = "go") -> Any:
        entries.append(ctx.task_id)
        try:
            return await ctx.wait_for(signal, timeout)
        except errors.SignalTimeout:
            return "nobody came"

    return entries


# --- sleep ---------------------------------------------------------------------------------------------------------


async def test_sleep_leaves_and_enters_again(url: str) -> None:
    app = support.make(url)
    entries: list[int] = []

    @app.function
    async def nap(ctx: Any) -> str:
        entries.append(ctx.attempt)
        await ctx.sleep(0.05)
        await ctx.sleep(0.01)
        return "rested"

    async with app:
        assert await run(app, task("a", "nap")) == {"a": "rested"}
    assert entries == [1, 1, 1], "the same attempt each time"


async def test_a_plain_function_can_sleep_too(url: str) -> None:
    app = support.make(url)

    @app.function
    def nap(ctx: Any) -> str:
        got = ctx.step("before", lambda: 1)
        ctx.sleep(0.02)
        return f"rested {got}"

    async with app:
        assert await run(app, task("a", "nap")) == {"a": "rested 1"}


async def test_a_sleeping_function_holds_no_slot(url: str) -> None:
    app = support.make(url, concurrency=1)

    @app.function
    async def nap(ctx: Any) -> None:
        await ctx.sleep(1000)

    async with app:
        sleeping = await app.submit_many([job(task("a", "nap")) for _ in range(5)])
        for made in sleeping:
            await support.reaches(made, "a", "waiting")
        assert await run(app, task("b")) == {"b": {}}


async def test_sleep_outlives_the_process(url: str) -> None:
    app = support.make(url)

    @app.function
    async def nap(ctx: Any) -> str:
        await ctx.sleep(0.3)
        return "rested"

    async with app:
        made = await app.submit(job(task("a", "nap")))
        await support.reaches(made, "a", "waiting")
    async with app:
        assert await (await app.job(made.job_id)).result(support.PATIENCE) == {"a": "rested"}


async def test_the_timeout_does_not_count_the_sleep(url: str) -> None:
    app = support.make(url)

    @app.function(timeout=0.2)
    async def nap(ctx: Any) -> str:
        await ctx.sleep(0.4)
        return "rested"

    async with app:
        assert await run(app, task("a", "nap")) == {"a": "rested"}


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "1", None, 1e300])
async def test_sleeping_nonsense_fails_the_attempt(url: str, seconds: Any) -> None:
    app = support.make(url)

    @app.function
    async def nap(ctx: Any) -> None:
        await ctx.sleep(seconds)

    async with app:
        error = await support.failure(await app.submit(job(task("a", "nap"))))
        assert error.failed["a"]["type"] == "InvalidInput"


async def test_what_is_waited_for_is_shown(url: str) -> None:
    app = support.make(url)
    waiter(app, timeout=1000)
    async with app:
        made = await app.submit(job(task("a", "wait")))
        await support.reaches(made, "a", "waiting")
        waits = (await made.task("a")).waits_for
        assert waits is not None
        assert (waits["kind"], waits["name"]) == ("wait", "go")
        await made.cancel()


# --- signals -------------------------------------------------------------------------------------------------------


async def test_a_signal_wakes_who_waits(url: str) -> None:
    app = support.make(url)
    entries = waiter(app)
    async with app:
        made = await app.submit(job(task("a", "wait")))
        await support.reaches(made, "a", "waiting")
        assert await made.signal("go", {"approved": True}) is True
        assert await made.result(support.PATIENCE) == {"a": {"approved": True}}
    assert entries == ["a", "a"]


async def test_an_early_signal_is_kept(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    waiter(app)
    async with app:
        made = await app.submit(job(task("first", "gate"), task("a", "wait", "first")))
        await support.soon(gate.started.wait())
        assert await app.signal(made.job_id, "go", 7) is False
        gate.opened.set()
        assert (await made.result(support.PATIENCE))["a"] == 7


@pytest.mark.parametrize("ids", [(None, None, None), ("z", "b", "m")])
async def test_early_signals_are_taken_in_their_order(url: str, ids: tuple[str | None, ...]) -> None:
    """That is the order in which they came, whatever ids their senders give them."""
    app = support.make(url)
    gate = support.Gate(app)

    @app.function
    async def three(ctx: Any) -> list[Any]:
        return [await ctx.wait_for("go") for _ in range(3)]

    async with app:
        made = await app.submit(job(task("first", "gate"), task("a", "three", "first")))
        for n, signal_id in enumerate(ids):
            await app.signal(made.job_id, "go", n, signal_id=signal_id)
        gate.opened.set()
        assert (await made.result(support.PATIENCE))["a"] == [0, 1, 2]


async def test_a_signal_that_does_not_come_times_out(url: str) -> None:
    app = support.make(url)
    waiter(app, timeout=0.05)
    async with app:
        assert await run(app, task("a", "wait")) == {"a": "nobody came"}


async def test_a_signal_timeout_that_is_not_caught_fails_the_attempt(url: str) -> None:
    app = support.make(url)

    @app.function
    async def wait(ctx: Any) -> None:
        await ctx.wait_for("go", timeout=0.01)

    async with app:
        error = await support.failure(await app.submit(job(task("a", "wait"))))
        assert error.failed["a"]["type"] == "SignalTimeout"


async def test_a_signal_after_the_timeout_is_for_the_next_one_that_asks(url: str) -> None:
    app = support.make(url)
    waiter(app, timeout=0.02)
    gate = support.Gate(app)
    async with app:
        tasks = [task("a", "wait"), task("b", "gate", "a"), task("c", "wait", "b")]
        made = await app.submit(job(*tasks))
        await support.soon(gate.started.wait())
        assert await made.signal("go", "late") is False
        gate.opened.set()
        result = await made.result(support.PATIENCE)
        assert (result["a"], result["c"]) == ("nobody came", "late")


async def test_two_waiters_need_two_signals(url: str) -> None:
    app = support.make(url)
    waiter(app)
    async with app:
        made = await app.submit(job(task("a", "wait"), task("b", "wait")))
        await support.reaches(made, "a", "waiting")
        await support.reaches(made, "b", "waiting")
        assert await made.signal("go", 1) is True
        await support.until(lambda: made.tasks(state="completed"))
        assert sorted((await support.standing(made)).values()) == ["completed", "waiting"]
        assert await made.signal("go", 2) is True
        assert sorted((await made.result(support.PATIENCE)).values()) == [1, 2]


async def test_signals_go_by_name_and_job(url: str) -> None:
    app = support.make(url)
    waiter(app)
    async with app:
        one, other = await app.submit_many([job(task("a", "wait")), job(task("a", "wait"))])
        await support.reaches(one, "a", "waiting")
        await support.reaches(other, "a", "waiting")
        assert await one.signal("stop", 0) is False
        assert await other.signal("go", 2) is True
        assert await other.result(support.PATIENCE) == {"a": 2}
        assert (await support.standing(one)) == {"a": "waiting"}
        await one.signal("go", 1)
        assert await one.result(support.PATIENCE) == {"a": 1}


async def test_signals_of_before_are_not_read_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job may get thousands of one name: neither who sends the next one nor who waits for it looks at all of them."""
    app = support.make(url)
    seen = 0
    make = rows.Signal

    def counted(*values: Any, **more: Any) -> rows.Signal:
        nonlocal seen
        seen += 1
        return make(*values, **more)

    @app.function
    async def listen(ctx: Any) -> list[int]:
        return [await ctx.wait_for("go") for _ in range(20)]

    monkeypatch.setattr(rows, "Signal", counted)
    async with app:
        made = await app.submit(job(task("a", "listen")))
        for n in range(20):
            await app.signal(made.job_id, "go", n, signal_id=f"s{n:02}")
        assert await made.result(support.PATIENCE) == {"a": list(range(20))}
        assert await app.signal(made.job_id, "go", 5, signal_id="s05") is False
    assert seen < 100  # each is made when it is sent and perhaps when it is taken; if all were read, 400 at least


async def test_many_signals_at_once_wake_as_many(url: str) -> None:
    app = support.make(url)
    waiter(app)
    async with app:
        made = await app.submit(job(*[task(f"t{n}", "wait") for n in range(20)]))
        for n in range(20):
            await support.reaches(made, f"t{n}", "waiting")
        woken = await asyncio.gather(*[made.signal("go", n) for n in range(20)])
        assert woken == [True] * 20
        assert sorted((await made.result(support.PATIENCE)).values()) == list(range(20))


@pytest.mark.parametrize("early", [True, False])
async def test_a_large_payload_arrives_whole(url: str, early: bool) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    waiter(app)
    async with app:
        made = await app.submit(job(task("first", "gate"), task("a", "wait", "first")))
        if early:
            await made.signal("go", {"text": LARGE})
        gate.opened.set()
        if not early:
            await support.reaches(made, "a", "waiting")
            await made.signal("go", {"text": LARGE})
        assert (await made.result(support.PATIENCE))["a"] == {"text": LARGE}
        assert (await made.task("a")).steps[0].key == "wait:go"


async def test_a_payload_that_looks_like_our_own_marks_is_only_a_payload(url: str) -> None:
    app = support.make(url)
    waiter(app)
    async with app:
        for payload in ({"timedOut": True}, {"blob": "00"}, {"value": 1}, None, [], "\0"):
            made = await app.submit(job(task("a", "wait")))
            await made.signal("go", payload)
            assert await made.result(support.PATIENCE) == {"a": payload}


async def test_a_signal_to_a_job_that_ended_or_never_was_is_refused(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a")))
        await made.result(support.PATIENCE)
        with pytest.raises(errors.JobEnded, match="completed"):
            await made.signal("go")
        with pytest.raises(errors.JobNotFound):
            await app.signal("ghost", "go")


async def test_a_bad_signal_is_refused(url: str) -> None:
    app = support.make(url, max_payload_bytes=1000)
    waiter(app)
    async with app:
        made = await app.submit(job(task("a", "wait")))
        before = await support.told(made)
        with pytest.raises(errors.InvalidId):
            await made.signal("a b")
        with pytest.raises(errors.InvalidPayload):
            await made.signal("go", object())
        with pytest.raises(errors.PayloadTooLarge):
            await made.signal("go", "x" * 1000)
        await support.reaches(made, "a", "waiting")
        assert "Signal Received" not in await support.told(made)
        assert before[0] == "Job Created"
        await made.cancel()


async def test_cancelling_a_job_that_waits(url: str) -> None:
    app = support.make(url)
    waiter(app)
    async with app:
        made = await app.submit(job(task("a", "wait")))
        await support.reaches(made, "a", "waiting")
        assert await made.cancel() == "cancelled"
        assert await support.count(url, "timer") == 0


async def test_a_step_before_a_wait_is_not_repeated(url: str) -> None:
    app = support.make(url)
    calls: list[int] = []

    @app.function
    async def approve(ctx: Any) -> Any:
        asked = await ctx.step("ask", lambda: calls.append(1) or len(calls))
        answer = await ctx.wait_for("answer")
        return [asked, answer]

    async with app:
        made = await app.submit(job(task("a", "approve")))
        await support.reaches(made, "a", "waiting")
        await made.signal("answer", "yes")
        assert await made.result(support.PATIENCE) == {"a": [1, "yes"]}
    assert calls == [1]


async def test_a_signal_does_not_wake_who_waits_for_something_else_by_now(url: str) -> None:
    """Cancelled, run again and sent a signal, all at once: it waits for its turn, and has not asked yet."""
    async with support.opened(url, work=False, check_functions=False) as app:
        made = await app.submit(job(task("a"), task("b"), maxConcurrency=1))
        policies = {"echo": rows.FunctionPolicy(3, None)}
        claim = commands.Claim("w", "token", policies, frozenset({"default"}), 1)
        [lease] = (await app.engine.store.execute("default", [], claim)).leases
        await app.engine.execute(commands.Suspend(lease, "wait", "wait:go", name="go"))
        batch = [
            commands.CancelTask(made.job_id, "a"),
            commands.RetryTasks(made.job_id, ["a"]),
            commands.SendSignal(made.job_id, "go", "s", b"1"),
        ]
        outcome = await app.engine.store.execute("default", batch)
        assert outcome.answers == ["cancelled", ["a"], False]
        assert "Step Completed" not in await support.told(made)
        assert not (await audit.audit(app.engine.store)).problems
