"""Why a task is not running, asked of jobs that really stand so."""

import asyncio
from typing import Any

import pytest

from ostinato import Ostinato, Retry, errors, testing
from ostinato.core import why
from tests.engine import support
from tests.engine.support import job, task


async def ask(app: Ostinato, job_id: str, task_id: str = "a") -> why.Why:
    return await (await app.job(job_id)).why(task_id)


async def test_running_then_ended(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate", timeout=60)))
        await support.soon(gate.started.wait())
        answer = await made.why("a")
        worker = app.engine.worker
        assert worker is not None
        assert answer.code == "running"
        assert answer.details["worker"] == worker.worker_id
        assert (answer.details["workerAlive"], answer.details["attempt"]) == (True, 1)
        assert answer.details["timeoutAt"] > answer.details["since"]
        gate.opened.set()
        await made.result(support.PATIENCE)
        answer = await made.why("a")
        assert (answer.code, answer.details["state"]) == ("ended", "completed")


async def test_a_dependency_that_runs_and_one_that_failed(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(
            job(
                task("a", "gate"),
                task("bad", "break"),
                task("b", after="a"),
                task("c", after="a bad"),
                task("d", after="c"),
            )
        )
        await support.soon(gate.started.wait())
        await support.reaches(made, "bad", "failed")
        waiting = await made.why("b")
        assert (waiting.code, waiting.sentence) == ("dependency", "It waits for 'a' (processing) to complete.")
        blocked = await made.why("c")
        assert blocked.code == "dependency"
        assert blocked.details["dependencies"] == [
            {"taskId": "bad", "state": "failed"},
            {"taskId": "a", "state": "processing"},
        ]
        assert "stays blocked" in blocked.sentence
        assert (await made.why("d")).code == "dependency"
        gate.opened.set()
        await support.failure(made)
        assert (await made.why("bad")).details["error"] == {"type": "TerminalError", "message": "broken"}
        assert (await made.why("c")).code == "dependency"
        ended = await made.why("d")
        assert (ended.code, ended.details["jobState"]) == ("job_ended", "failed")


async def test_what_counts_as_done_is_not_waited_for(url: str) -> None:
    """Optional failures and tasks skipped by hand satisfy; a failed task does for those that run all the same."""
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(
            job(
                task("a", "gate"),
                task("optional", "break", optional=True),
                task("by-hand", "gate"),
                task("bad", "break"),
                task("last", after="a optional by-hand bad", onDependencyFailure="run"),
            )
        )
        await made.skip_task("by-hand")
        await support.reaches(made, "bad", "failed")
        await support.reaches(made, "optional", "failed")
        answer = await made.why("last")
        assert answer.details["openDependencies"] == 1
        assert [d["taskId"] for d in answer.details["dependencies"]] == ["a"]
        gate.opened.set()


async def test_only_some_of_many_dependencies_are_named(url: str) -> None:
    app = support.make(url, work=False, check_functions=False)
    async with app:
        many = [f"t{n}" for n in range(50)]
        made = await app.submit(job(*[task(name) for name in many], task("last", after=many)))
        answer = await made.why("last")
        assert len(answer.details["dependencies"]) == 20
        assert answer.details["openDependencies"] == 50
        assert "and 30 more" in answer.sentence


async def test_retry_sleep_and_signal(url: str) -> None:
    app = support.make(url)
    support.Flaky(app, failures=1, retry=Retry(max_attempts=3, base_delay=60, jitter=0))

    @app.function("nap")
    async def nap(ctx: Any) -> None:
        await ctx.sleep(3600)

    @app.function("ask")
    async def ask_(ctx: Any) -> None:
        await ctx.wait_for("ok", timeout=7200)

    async with testing.open(app) as kit:
        made = await app.submit(job(task("flaky", "flaky"), task("nap", "nap"), task("ask", "ask")))
        await kit.run_until_idle()
        retry = await made.why("flaky")
        assert retry.code == "retry"
        assert retry.sentence.startswith(
            "Attempt 1 of 3 failed (ValueError: attempt 1 went wrong); the next one is due in"
        )
        assert (await made.why("nap")).sentence == "It sleeps; it goes on in 1 h."
        signal = await made.why("ask")
        assert (signal.code, signal.details["signal"]) == ("signal", "ok")
        assert signal.sentence == "It awaits the signal 'ok'; it gives up in 2 h."


async def test_no_worker(url: str) -> None:
    idle = support.make(url, work=False, check_functions=False)
    async with idle:
        made = await idle.submit(
            job(task("a"), task("gpu", queue="gpu"), task("unknown", "nobody-has-this", queue="elsewhere"))
        )
        assert (await made.why("a")).details["missing"] == "worker"
        async with support.opened(url):
            await support.reaches(made, "a", "completed")
            queue, function = await made.why("gpu"), await made.why("unknown")
        assert (queue.code, queue.details["missing"]) == ("no_worker", "queue")
        assert (function.code, function.details["missing"]) == ("no_worker", "function")
        assert (await made.why("gpu")).details["missing"] == "worker"


async def test_a_full_queue_and_the_next_in_line(url: str) -> None:
    app = support.make(url, concurrency=1, max_prefetch=0)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("first", "gate"), priority=9))
        await support.soon(gate.started.wait())
        others = await app.submit(job(task("a", "gate"), task("b"), task("c", "gate", priority=-1)))
        one = await others.why("a")
        assert (one.code, one.details["ahead"], one.details["free"], one.details["slots"]) == ("queue_full", 0, 0, 1)
        last = await others.why("c")
        assert (last.code, last.details["ahead"]) == ("queue_full", 2)
        gate.opened.set()
        await made.result(support.PATIENCE)
        await others.result(support.PATIENCE)
    # A worker that has just registered and has not claimed yet: nothing stands between it and the task.
    idle = support.make(url, work=False)
    async with idle, testing.open(support.make(url), testing.Clock(4_000_000_000)):
        fresh = await idle.submit(job(task("a")))
        answer = await fresh.why("a")
        assert (answer.code, answer.details["free"]) == ("next", 10)


async def test_claims_whose_tasks_have_ended_are_not_held(url: str) -> None:
    """A claim is kept until its last task is reported: the others do not fill the worker."""
    app = support.make(url, concurrency=3, max_prefetch=0)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("quick"), task("a", "gate"), task("b", "gate")))
        await support.reaches(made, "quick", "completed")
        await support.soon(gate.started.wait())
        waiting = await app.submit(job(*[task(f"t{n}", "gate") for n in range(3)]))
        while gate.running < 3:
            await asyncio.sleep(0.005)
        answers = [await waiting.why(f"t{n}") for n in range(3)]
        assert sorted(answer.code for answer in answers) == ["queue_full", "queue_full", "running"]
        gate.opened.set()


async def test_the_unknown_and_the_foreign_are_not_found(url: str) -> None:
    async with support.opened(url) as app, support.opened(url, tenant="other") as other:
        made = await app.submit(job(task("a")))
        with pytest.raises(errors.TaskNotFound):
            await made.why("none")
        with pytest.raises(errors.JobNotFound):
            await other.engine.store.facts("other", made.job_id, "a")
