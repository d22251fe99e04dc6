"""Tasks that nobody runs: somebody outside completes them, or fails them. And tasks whose time comes later."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato import Job, Ostinato, Retry, audit, errors, testing
from ostinato.core import commands
from tests.engine import support
from tests.engine.support import PATIENCE, job, reaches, run, standing, task


def outside(task_id: str = "x", after: str = "", **fields: Any) -> dict[str, Any]:
    return task(task_id, "approval", after, external=True, **fields)


async def complete(app: Ostinato, made: Job, task_id: str = "x", output: bytes = b'{"by":"ann"}') -> str:
    return await app.engine.execute(commands.CompleteTask(made.job_id, task_id, output))


async def fail(app: Ostinato, made: Job, task_id: str = "x", message: str = "no") -> str:
    failure = commands.make_failure("Refused", message)
    return await app.engine.execute(commands.FailTask(made.job_id, task_id, failure))


async def sound(app: Ostinato) -> None:
    assert not (await audit.audit(app.engine.store)).problems


# --- external -------------------------------------------------------------------------------------------------------


async def test_somebody_completes_it(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a"), outside("x", "a"), task("b", "join", "x")))
        await reaches(made, "x", "waiting")
        assert (await made.why("x")).code == "external"
        assert (await made.why("b")).code == "dependency"
        assert (await made.info()).state == "running"
        assert await complete(app, made) == "completed"
        assert await made.result(PATIENCE) == {"a": {}, "x": {"by": "ann"}, "b": {"x": {"by": "ann"}}}
        assert [view.attempt for view in await made.tasks()] == [1, 0, 1]
        await sound(app)


async def test_the_first_result_stands(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(outside()))
        answers = await asyncio.gather(*[complete(app, made, output=str(n).encode()) for n in range(10)])
        assert set(answers) == {"completed"}
        assert await made.result(PATIENCE) == {"x": 0}
        assert await complete(app, made, output=b"99") == "completed"
        assert await made.outputs() == {"x": 0}
        with pytest.raises(errors.NotPossible, match="is completed, not waiting"):
            await fail(app, made)
        await sound(app)


async def test_somebody_fails_it(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(
            job(outside(), task("b", "echo", "x"), task("c", "echo", "x", onDependencyFailure="run"))
        )
        assert await fail(app, made) == "failed"
        assert await fail(app, made, message="again") == "failed"
        assert "Refused: no" in str(await support.failure(made))
        assert await standing(made) == {"x": "failed", "b": "blocked", "c": "completed"}
        [letter] = await app.dead_letters()
        assert (letter.task_id, letter.error["type"]) == ("x", "Refused")
        with pytest.raises(errors.NotPossible, match="is failed, not waiting"):
            await complete(app, made)
        await app.redrive([(made.job_id, "x")])  # it waits for somebody again
        assert (await made.why("x")).code == "external"
        await complete(app, made)
        assert (await made.result(PATIENCE))["b"] == {}
        await sound(app)


async def test_an_optional_one_may_fail(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(outside(optional=True), task("b", "echo", "x")))
        await fail(app, made)
        assert await made.result(PATIENCE) == {"b": {}}
        await sound(app)


async def test_what_cannot_be_completed_from_outside(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), outside("x", "a")))
        await gate.started.wait()
        for do in (complete, fail):
            with pytest.raises(errors.NotPossible, match="is blocked, not waiting"):
                await do(app, made)
            with pytest.raises(errors.NotPossible, match="is not external"):
                await do(app, made, "a")
            with pytest.raises(errors.TaskNotFound):
                await do(app, made, "nothing")
            with pytest.raises(errors.JobNotFound):
                await do(app, Job(app, "nothing"))
        gate.opened.set()
        await reaches(made, "x", "waiting")
        await made.cancel()
        for do in (complete, fail):
            with pytest.raises(errors.NotPossible, match="is cancelled, not waiting"):
                await do(app, made)
        await sound(app)


async def test_cancel_skip_retry_and_resume(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(outside("x"), outside("y"), outside("z", "x"), task("b", "join", "x y z")))
        assert await made.skip_task("y") == "skipped"
        assert await made.cancel_task("x") == "cancelled"
        assert (await support.failure(made)).details["state"] == "failed"
        with pytest.raises(errors.NotPossible):
            await complete(app, made, "x")
        plan = await made.resume(dry_run=True)
        assert plan.rerun == ["x"]
        assert await made.resume() == plan
        assert await standing(made) == {"x": "waiting", "y": "skipped", "z": "blocked", "b": "blocked"}
        await made.retry_task("y")
        with pytest.raises(errors.NotPossible, match="is waiting"):
            await made.retry_task("y")
        for task_id in ("y", "x", "z"):
            await complete(app, made, task_id, b'"%b"' % task_id.encode())
        assert (await made.result(PATIENCE))["b"] == {"x": "x", "y": "y", "z": "z"}
        await sound(app)


async def test_a_job_cancelled_with_it_can_be_resumed(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(outside()))
        assert await made.cancel() == "cancelled"
        await made.resume()
        assert await standing(made) == {"x": "waiting"}
        await complete(app, made)
        assert await made.result(PATIENCE) == {"x": {"by": "ann"}}
        await sound(app)


async def test_a_deadline_does_not_wait_for_it(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(outside(), deadline=0.1))
        with pytest.raises(errors.JobTimedOut):
            await made.result(PATIENCE)
        assert await standing(made) == {"x": "cancelled"}
        await sound(app)


async def test_one_can_be_added(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(outside("x")))
        await made.add_tasks([outside("y", "x"), task("b", "echo", "y", delay=0.01)])
        await complete(app, made, "x")
        await complete(app, made, "y")
        assert (await made.result(PATIENCE))["b"] == {}
        await sound(app)


async def test_a_large_result(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(outside(), task("b", "join", "x")))
        await complete(app, made, output=b'"' + b"x" * 100_000 + b'"')
        assert (await made.result(PATIENCE))["b"] == {"x": "x" * 100_000}
        await sound(app)


# --- delay ----------------------------------------------------------------------------------------------------------


async def test_it_begins_later(url: str) -> None:
    """By the clock, once everything that it depends on is there; and a crash does not make it earlier."""
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(task("a", delay=60), task("b", "echo", "a", delay=60), task("c", delay=0)))
        await kit.run_until_idle()
        assert await standing(made) == {"a": "waiting", "b": "blocked", "c": "completed"}
        assert (await made.why("a")).code == "delay"
        await kit.advance(59)
        assert (await standing(made))["a"] == "waiting"
        await kit.advance(2)
        assert await standing(made) == {"a": "completed", "b": "waiting", "c": "completed"}
        await kit.advance(59)
        assert (await standing(made))["b"] == "waiting"
        await kit.advance(2)
        assert (await made.info()).state == "completed"
        [view] = [view for view in await made.tasks() if view.task_id == "b"]
        assert view.attempt == 1
        await kit.audit()


async def test_a_delay_is_for_the_first_attempt(url: str) -> None:
    app = support.make(url, default_retry=Retry(max_attempts=3, base_delay=1, multiplier=1, jitter=0))
    flaky = support.Flaky(app, failures=1)
    async with testing.open(app) as kit:
        made = await app.submit(job(task("a", "flaky", delay=100)))
        await kit.advance(101)
        assert flaky.calls == [("a", 1)]
        await kit.advance(2)
        assert flaky.calls == [("a", 1), ("a", 2)]
        assert (await made.info()).state == "completed"
        await kit.audit()


async def test_it_can_begin_now_or_never(url: str) -> None:
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(task("a", delay=1000), task("b", delay=1000), task("c", delay=1000)))
        await made.retry_task("a")  # what is due later is made due now
        await made.skip_task("b")
        await made.cancel_task("c")
        await kit.run_until_idle()
        assert await standing(made) == {"a": "completed", "b": "skipped", "c": "cancelled"}
        await made.resume()
        assert (await standing(made))["c"] == "waiting", "it waits anew"
        await kit.advance(1001)
        assert (await made.info()).state == "completed"
        await kit.audit()


async def test_a_cancelled_job_forgets_its_time(url: str) -> None:
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(task("a", delay=10)))
        await made.cancel()
        await kit.advance(100)
        assert await standing(made) == {"a": "cancelled"}
        await kit.audit()


# --- before it is submitted -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"delay": -1},
        {"delay": float("nan")},
        {"delay": float("inf")},
        {"delay": "soon"},
        {"external": "yes"},
        {"external": True, "delay": 1},
        {"external": True, "timeout": 1},
        {"external": True, "retry": {"maxAttempts": 2}},
    ],
)
async def test_bad_values_are_refused(sqlite_url: str, fields: dict[str, Any]) -> None:
    async with support.opened(sqlite_url) as app:
        with pytest.raises(errors.InvalidInput):
            await app.submit(job(task("a", **fields)))
        assert await app.jobs() == []


async def test_nobody_needs_to_have_its_function(sqlite_url: str) -> None:
    async with support.opened(sqlite_url) as app:
        with pytest.raises(errors.UnknownFunction):
            await app.submit(job(task("a", "approval")))
        assert (await app.submit(job(outside()))).created


async def test_the_plan(sqlite_url: str) -> None:
    async with support.opened(sqlite_url) as app:
        plan = await app.plan(
            job(task("a", timeout=5), task("b", delay=100), outside("x"), task("c", "echo", "a b x"), deadline=50)
        )
        assert plan.levels == [["a", "b", "x"], ["c"]]
        assert plan.critical_path == ["b", "c"]
        assert [warning for warning in plan.warnings if "'b'" in warning], "its time comes when the job is over"


async def test_a_task_that_is_neither_is_as_before(url: str) -> None:
    async with support.opened(url) as app:
        assert await run(app, task("a", external=False, input={"n": 1})) == {"a": {"n": 1}}
