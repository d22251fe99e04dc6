"""The test kit on ourselves: a crash before and after every commit of a job that uses everything."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from ostinato import Context, EngineOptions, Ostinato, Retry, errors, testing

STUBBORN = Retry(max_attempts=6, base_delay=5)
JOB = {
    "name": "everything",
    "idempotencyKey": "everything",
    "tasks": [
        {"taskId": "flaky", "name": "flaky", "input": {"n": 1}},
        {"taskId": "waiter", "name": "waiter", "dependsOn": ["flaky"]},
        {"taskId": "broken", "name": "broken"},
        {"taskId": "join", "name": "leaf", "dependsOn": ["waiter", "broken"]},
    ],
}


def build(url: str) -> Ostinato:
    app = Ostinato(url, options=EngineOptions(lease_seconds=10))

    @app.function(retry=STUBBORN)
    async def flaky(ctx: Context, n: int) -> int:
        doubled = await ctx.step("double", lambda: n * 2)
        if ctx.attempt == 1:
            raise ConnectionError("try again")
        await ctx.sleep(60)
        return doubled

    @app.function(retry=STUBBORN)
    async def waiter(ctx: Context) -> Any:
        payload = await ctx.wait_for("go", timeout=10_000)
        await ctx.add_tasks([{"taskId": "extra", "name": "leaf", "dependsOn": [ctx.task_id]}])
        return payload

    @app.function(retry=STUBBORN)
    async def leaf(ctx: Context) -> dict[str, Any]:
        return await ctx.dependency_outputs.load()

    @app.function(retry=STUBBORN)
    async def broken(mended: bool = False) -> str:
        if not mended:
            raise errors.TerminalError("not like this")
        return "mended"

    return app


async def everything(kit: testing.Kit) -> None:
    """Retries, sleeps, signals, added tasks and a resume; written so that it can be started again at any time."""
    job = await kit.app.submit(JOB)
    await kit.run_until_idle()
    await kit.advance(6)
    await kit.advance(61)
    if (await job.info()).state == "running":
        await kit.app.signal(job.job_id, "go", {"v": 7}, signal_id="the-only-one")
    await kit.advance(100)
    if (await job.info()).state == "failed":
        await job.resume(inputs={"broken": {"mended": True}})
    await kit.advance(100)
    result = await job.result(timeout=5)
    assert result == {
        "flaky": 2,
        "waiter": {"v": 7},
        "broken": "mended",
        "extra": {"waiter": {"v": 7}},
        "join": {"waiter": {"v": 7}, "broken": "mended"},
    }


async def test_crash_everywhere_on_sqlite() -> None:
    assert await testing.crash_everywhere(build, everything) >= 50


@pytest.mark.timeout(300)
async def test_crash_everywhere_on_postgres(new_postgres_url: Callable[[], str]) -> None:
    assert await testing.crash_everywhere(build, everything, fresh_url=new_postgres_url) >= 50


async def test_one_crash_in_some_is_one_crash_in_some() -> None:
    assert await testing.crash_everywhere(build, everything, every=25) in (2, 3)
    with pytest.raises(errors.InvalidInput):
        await testing.crash_everywhere(build, everything, every=0)


@pytest.mark.parametrize("every", [2, 3, 4])
async def test_some_crashes_are_before_a_commit_and_some_after(every: int) -> None:
    async def short(kit: testing.Kit) -> None:
        await kit.app.submit({"idempotencyKey": "k", "tasks": [{"taskId": "a", "name": "flaky", "input": {"n": 1}}]})
        await kit.run_until_idle()
        await kit.advance(6)

    places: list[int] = []
    await testing.crash_everywhere(build, short, every=every, progress=lambda done, total: places.append(done))
    assert {place % 2 for place in places[:2]} == {0, 1}
    assert all(later - earlier <= every + 1 for earlier, later in itertools.pairwise(places))


async def test_crashes_are_not_logged_as_errors(caplog: pytest.LogCaptureFixture) -> None:
    """They are wanted, and would hide what is not."""

    async def steps(kit: testing.Kit) -> None:
        await kit.app.submit({"idempotencyKey": "k", "tasks": [{"taskId": "a", "name": "flaky", "input": {"n": 1}}]})
        await kit.run_until_idle()

    await testing.crash_everywhere(build, steps)
    gc.collect()
    assert not caplog.records


async def test_the_harness_finds_a_scenario_that_is_not_safe() -> None:
    """An oracle that finds nothing proves nothing: a job without an idempotency key is submitted twice."""

    async def careless(kit: testing.Kit) -> None:
        await kit.app.submit({**JOB, "idempotencyKey": None})
        await kit.run_until_idle()
        assert len(await kit.app.jobs()) == 1

    with pytest.raises(AssertionError):
        await testing.crash_everywhere(build, careless)
