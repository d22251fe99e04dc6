"""What attempts use up is counted once, wherever it is asked for: by attempt, task, job, day, name and function."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import msgspec
import pytest

from ostinato import Context, Ostinato, Retry, audit, errors, testing, views
from ostinato.core import commands, rows, usage
from ostinato.core.tallies import DAY
from tests.engine import support
from tests.engine.support import PATIENCE, job, standing, task


def make(url: str, **options: Any) -> Ostinato:
    app = support.make(url, **options)

    @app.function("pay", retry=Retry(max_attempts=3, base_delay=1))
    async def pay(ctx: Context, cost: float = 0.1, failures: int = 0) -> None:
        await ctx.spend(cost, 100, 20, model="small")
        if ctx.attempt <= failures:
            raise ConnectionError("it was paid all the same")

    @app.function("pay-in-thread")
    def pay_in_thread(ctx: Any) -> None:
        ctx.spend(cost=0.000001, calls=2)

    return app


def used(cost: float, calls: int, given: int = 0, made: int = 0) -> views.UsageView:
    return views.UsageView(cost, calls, given, made)


async def sound(app: Ostinato) -> None:
    report = await audit.audit(app.engine.store)
    assert not report.problems, report.problems[:3]


async def test_sums_of_attempts_tasks_jobs_days_names_and_functions(url: str) -> None:
    async with testing.open(make(url)) as kit:
        app = kit.app
        tasks = [task("a", "pay", input={"failures": 1}), task("b", "pay-in-thread", "a"), task("c", after="b")]
        first = await app.submit(job(*tasks, name="one"))
        await kit.run_until_idle()
        await kit.advance(2)
        await kit.advance(DAY)
        second = await app.submit(job(task("a", "pay", input={"cost": 1}), name="two"))
        await kit.run_until_idle()

        detail = await first.task("a")
        assert [attempt.usage for attempt in detail.attempts] == [used(0.1, 1, 100, 20)] * 2
        assert detail.usage == used(0.2, 2, 200, 40)
        assert await first.usage() == used(0.200001, 4, 200, 40)
        assert (await first.info()).spent == 0.200001
        assert (await first.task("c")).usage == used(0, 0)
        assert (await second.info()).spent == 1

        found = await app.usage()
        today = found.to
        assert found.from_ == today - datetime.timedelta(days=29)
        assert [(row.key, row.cost, row.calls) for row in found.rows] == [
            (str(today - datetime.timedelta(days=1)), 0.200001, 4),
            (str(today), 1.0, 1),
        ]
        assert found.total == used(1.200001, 5, 300, 60)
        by_name = (await app.usage("name")).rows
        assert [(row.key, row.cost, row.input_tokens) for row in by_name] == [("two", 1, 100), ("one", 0.200001, 200)]
        by_function = (await app.usage("function", since=today)).rows
        assert [(row.key, row.cost, row.output_tokens) for row in by_function] == [("pay", 1, 20)]
        assert (
            await app.usage(since=today - datetime.timedelta(days=9), until=today - datetime.timedelta(days=5))
        ).rows == []
        told = [event for event in await first.events(task_id="a") if event.type == "Usage Recorded"]
        assert [event.attempt for event in told] == [1, 2]
        assert told[0].properties == {"cost": 0.1, "inputTokens": 100, "outputTokens": 20, "calls": 1, "model": "small"}
        await kit.audit()


async def test_two_engines_count_exactly(url: str) -> None:
    async with make(url, concurrency=8) as one, make(url, concurrency=8) as two:
        tasks = [task(f"t{n}", "pay", input={"cost": 0.01}) for n in range(10)]
        made = [await app.submit(job(*tasks, name=f"job-{n % 2}")) for n in range(4) for app in (one, two)]
        await asyncio.gather(*[item.result(PATIENCE) for item in made])
        assert (await one.usage()).total == (await two.usage()).total == used(0.8, 80, 8000, 1600)
        assert {row.key: row.cost for row in (await two.usage("name")).rows} == {"job-0": 0.4, "job-1": 0.4}
        assert [(await item.info()).spent for item in made] == [0.1] * 8
        await sound(one)


async def test_what_a_cancelled_attempt_has_paid_counts(url: str) -> None:
    app = make(url)
    started = asyncio.Event()
    said = asyncio.Event()

    @app.function("slow")
    async def slow(ctx: Context) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            await ctx.spend(0.5)
            said.set()

    async with app:
        made = await app.submit(job(task("a", "slow")))
        await support.soon(started.wait())
        await made.cancel()
        await support.soon(said.wait())
        assert (await standing(made))["a"] == "cancelled"
        assert (await made.info()).spent == 0.5
        await sound(app)


@pytest.mark.parametrize("model", [["small"], {"small": 1}, 5, "", "a\0b", "\ud800", "x" * 257], ids=ascii)
async def test_a_model_is_a_text(url: str, model: Any) -> None:
    """A list was recorded, and the audit found that the events say something else than the rows."""
    app = make(url)

    @app.function("ask")
    async def ask(ctx: Context) -> None:
        await ctx.spend(0.5, model=model)

    async with app:
        error = await support.failure(await app.submit(job(task("a", "ask"))))
        assert (error.failed["a"]["type"], error.failed["a"]["message"][:5]) == ("InvalidInput", "model")
        await sound(app)


async def test_only_the_attempt_that_is_the_last_one_may_say_so(url: str) -> None:
    app = make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        await support.soon(gate.started.wait())
        held: rows.Lease = gate.context.lease
        paid = usage.Usage(1, 0, 0, 1000)
        for wrong in ({"token": "other"}, {"attempt": held.attempt - 1}, {"attempt": held.attempt + 1}):
            stranger = msgspec.structs.replace(held, **wrong)
            with pytest.raises(errors.LeaseLost):
                await app.engine.execute(commands.RecordUsage(stranger, paid, late=True))
        again = [commands.RecordUsage(held, paid, usage_id=name) for name in ("x", "x", "y", "y")]
        assert [await app.engine.execute(command) for command in again] == [True, False, True, False]
        gate.opened.set()
        await made.result(PATIENCE)
        with pytest.raises(errors.LeaseLost):
            await app.engine.execute(commands.RecordUsage(held, paid))
        assert await made.usage() == used(0.002, 2)
        await sound(app)


async def test_the_audit_notices_other_sums(url: str) -> None:
    async with make(url) as app:
        made = await app.submit(job(task("a", "pay")))
        await made.result(PATIENCE)
        await support.sql(url, "UPDATE job SET spent = spent + 1")
        await support.sql(url, "UPDATE usage SET calls = 2")
        found = (await audit.audit(app.engine.store)).problems
        assert [problem.invariant for problem in found] == ["I8", "I8"]
        assert "0.100001 spent and the events say 0.10" in found[0].message
        assert "what attempt 1 used up" in found[1].message


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"cost": -1}, "cost"),
        ({"cost": float("nan")}, "cost"),
        ({"cost": "much"}, "cost"),
        ({"cost": 1e10}, "cost"),
        ({"input_tokens": -1}, "input_tokens"),
        ({"output_tokens": 1.5}, "output_tokens"),
        ({"calls": True}, "calls"),
        ({"model": ""}, "model"),
    ],
)
def test_nonsense_is_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        usage.read(**({"cost": 0, "input_tokens": 0, "output_tokens": 0, "calls": 1} | given))
    assert refused.value.details["field"] == field


def test_money_is_exact_to_the_millionth() -> None:
    assert [usage.micros(amount, "cost") for amount in (0.1, 0.15, 1e-6, 2, 4e-7)] == [
        100_000,
        150_000,
        1,
        2_000_000,
        0,
    ]
    assert sum(usage.micros(0.1, "cost") for _ in range(10)) == usage.micros(1, "cost")
    assert [usage.shown(amount) for amount in (0, 1_000_000, 1_020_000, 1, 1_234_567_890_000)] == [
        "0.00", "1.00", "1.02", "0.000001", "1,234,567.89"
    ]  # fmt: skip


async def test_a_report_must_make_sense(url: str) -> None:
    async with make(url) as app:
        with pytest.raises(errors.InvalidInput, match="by must be one of day, name, function"):
            await app.usage("week")
        assert (await app.usage(since=datetime.date(2026, 2, 1), until=datetime.date(2026, 1, 1))).rows == []
        assert (await app.usage(until=datetime.date.min)).rows == []
        assert (await app.usage("name", datetime.date.min, datetime.date.max)).rows == []
