"""A job that runs only so many of its tasks at the same time: never more, and never fewer than it could."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ostinato import Context, Ostinato, Retry, audit, errors, testing
from tests.engine import support
from tests.engine.support import PATIENCE, job, standing, task, until


class Meter:
    """A function that notes how many of it run at the same time."""

    def __init__(self, app: Ostinato, seconds: float = 0.01) -> None:
        self.running = self.most = 0

        @app.function("metered", retry=Retry(max_attempts=3, base_delay=0.01))
        async def metered(ctx: Context, fail: bool = False, nap: bool = False) -> int:
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await asyncio.sleep(seconds)
                if fail and ctx.attempt == 1:
                    raise ConnectionError("once more")
            finally:
                self.running -= 1
            if nap:
                await ctx.sleep(0.02)
            return ctx.attempt


async def sound(app: Ostinato) -> None:
    report = await audit.audit(app.engine.store)
    assert not report.problems, report.problems[:3]


async def test_never_more_than_that(url: str) -> None:
    app = support.make(url, concurrency=20)
    meter = Meter(app)
    async with app:
        made = await app.submit(job(*[task(f"t{n}", "metered") for n in range(30)], maxConcurrency=3))
        await sound(app)
        assert set((await standing(made)).values()) <= {"pending", "processing", "waiting", "completed"}
        assert len(await made.result(PATIENCE)) == 30
        assert meter.most == 3
        await sound(app)


async def test_retries_and_naps_give_their_turn_to_others(url: str) -> None:
    app = support.make(url, concurrency=20)
    meter = Meter(app)
    tasks = [task(f"f{n}", "metered", input={"fail": True}) for n in range(5)]
    tasks += [task(f"n{n}", "metered", input={"nap": True}) for n in range(5)]
    tasks += [task(f"d{n}", "metered", f"f{n} n{n}") for n in range(5)]
    async with app:
        made = await app.submit(job(*tasks, maxConcurrency=2))
        outputs = await made.result(PATIENCE)
        assert [outputs[f"f{n}"] for n in range(5)] == [2] * 5
        assert meter.most == 2
        await sound(app)


async def test_in_the_order_of_the_job(url: str) -> None:
    order: list[str] = []
    app = support.make(url, concurrency=20)

    @app.function("note")
    async def note(ctx: Context) -> None:
        order.append(ctx.task_id)

    async with app:
        names = [f"t{n:02d}" for n in range(12)]
        await (await app.submit(job(*[task(name, "note") for name in names], maxConcurrency=1))).result(PATIENCE)
    assert order == names


async def test_who_waits_says_why_and_can_be_cancelled(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), task("b", "gate"), task("c"), maxConcurrency=1))
        await support.soon(gate.started.wait())
        assert (await made.why("b")).code == "turn"
        await made.cancel_task("b")
        gate.opened.set()
        await until(lambda: _is(made, "c", "completed"), "c")
        assert (await standing(made))["b"] == "cancelled"
        await sound(app)


async def test_a_resumed_job_keeps_to_it(url: str) -> None:
    app = support.make(url, concurrency=20)
    meter = Meter(app)
    healthy = False

    @app.function("moody")
    async def moody() -> None:
        if not healthy:
            raise errors.TerminalError("not today")

    async with app:
        tasks = [task("m", "moody"), *[task(f"t{n}", "metered", "m") for n in range(10)]]
        made = await app.submit(job(*tasks, maxConcurrency=2))
        await support.failure(made)
        healthy = True
        await made.resume()
        assert len(await made.result(PATIENCE)) == 11
        assert meter.most == 2
        await sound(app)


def build(where: str) -> Ostinato:
    app = support.make(where, default_retry=Retry(max_attempts=5, base_delay=0.01))
    Meter(app, 0.0)
    return app


async def scenario(kit: testing.Kit) -> None:
    tasks = [task(f"t{n}", "metered", input={"fail": n == 1}) for n in range(3)]
    made = await kit.app.submit(job(*tasks, task("last", "metered", "t0"), maxConcurrency=2, idempotencyKey="once"))
    for _ in range(3):
        await kit.run_until_idle()
        await kit.advance(1)
    assert len(await made.outputs()) == 4


async def test_it_survives_a_crash_at_every_commit_on_sqlite() -> None:
    assert await testing.crash_everywhere(build, scenario) > 5


async def test_it_survives_a_crash_at_every_commit_on_postgres(new_postgres_url: Callable[[], str]) -> None:
    assert await testing.crash_everywhere(build, scenario, fresh_url=new_postgres_url) > 5


async def _is(made: Any, task_id: str, state: str) -> bool:
    return (await standing(made))[task_id] == state


@pytest.mark.parametrize("value", [0, -1, 10**9])
async def test_nonsense_is_refused(url: str, value: int) -> None:
    async with support.opened(url) as app:
        with pytest.raises(errors.InvalidInput, match="maxConcurrency"):
            await app.submit(job(task("a"), maxConcurrency=value))
