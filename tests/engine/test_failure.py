"""Jobs that fail: what is told, what goes on, what is blocked, and how they are taken up again."""

import asyncio
from typing import Any

import pytest

from ostinato import Context, TerminalError, audit, errors, testing
from tests.engine import support
from tests.engine.support import job, standing, task

# --- detection -------------------------------------------------------------------------------------------------------


async def test_d12_failure_is_detected_exactly_once(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(*[task(f"bad{n}", "break") for n in range(5)], task("ok")))
        await support.failure(made)
        detected = [e for e in await made.events() if e.type == "Job Failure Detected"]
        assert len(detected) == 1
        assert detected[0].properties["failedTaskId"].startswith("bad")
        assert "taskStatuses" in detected[0].properties


async def test_d2_what_does_not_depend_on_the_failure_goes_on(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        tasks = [task("bad", "break"), task("a", "gate"), task("b", "join", "a"), task("c", "join", "b")]
        made = await app.submit(job(*tasks, task("never", after="bad"), task("nor-this", after="never b")))
        await support.reaches(made, "bad", "failed")
        assert (await made.info()).state == "running"
        gate.opened.set()
        error = await support.failure(made)
        assert (await support.standing(made))["c"] == "completed"
        assert error.blocked == ["never", "nor-this"]


async def test_job_failed_says_what_failed_and_why(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(
            job(task("a", "break", input={"message": "no stock"}), task("b", after="a"), name="report")
        )
        error = await support.failure(made)
        assert type(error) is errors.JobFailed
        assert (error.job_id, error.state) == (made.job_id, "failed")
        assert error.failed == {"a": {"type": "TerminalError", "message": "no stock"}}
        assert error.blocked == ["b"]
        assert all(part in str(error) for part in ("report", "a: TerminalError: no stock", "blocked: b"))


async def test_a_job_that_fails_ends_with_the_counts(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break"), task("b", after="a"), task("c")))
        await support.failure(made)
        end = (await made.events())[-1]
        assert end.type == "Job Failed"
        assert end.properties == {"totalTasks": 3, "taskStatuses": {"blocked": 1, "completed": 1, "failed": 1}}


async def test_failures_from_several_workers_are_detected_once(url: str) -> None:
    async with support.opened(url) as app, support.opened(url):
        jobs = await app.submit_many([job(*[task(f"t{n}", "break") for n in range(6)]) for _ in range(10)])
        for made in jobs:
            await support.failure(made)
            assert (await support.told(made)).count("Job Failure Detected") == 1


# --- optional tasks and policies -----------------------------------------------------------------------------------


async def test_an_optional_failure_does_not_fail_the_job(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break", optional=True, input={"message": "oh"}), task("b", "join", "a")))
        result = await made.result(support.PATIENCE)
        assert result == {"b": {"a": {"error": {"type": "TerminalError", "message": "oh"}}}}
        assert "Job Failure Detected" not in await support.told(made)
        assert (await made.info()).task_statuses == {"completed": 1, "failed": 1}


async def test_nobody_misses_an_optional_task_that_was_skipped_since_another_failed(url: str) -> None:
    async with support.opened(url) as app:
        tasks = [
            task("a", "break", optional=True),
            task("b", after="a", optional=True, onDependencyFailure="skip"),
            task("c", after="b", optional=True, onDependencyFailure="skip"),
            task("d", "join", after="b"),
            task("e", "join", after="c d"),
        ]
        made = await app.submit(job(*tasks))
        assert await made.result(support.PATIENCE) == {"d": {"b": None}, "e": {"c": None, "d": {"b": None}}}
        assert (await made.info()).task_statuses == {"completed": 2, "failed": 1, "skipped": 2}


async def test_tasks_that_are_added_do_not_miss_it_either(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        skipped = task("b", after="a", optional=True, onDependencyFailure="skip")
        made = await app.submit(job(task("a", "break", optional=True), skipped, task("open", "gate")))
        await support.reaches(made, "b", "skipped")
        await made.add_tasks([task("c", "join", after="b"), task("d", after="b", onDependencyFailure="skip")])
        gate.opened.set()
        assert (await made.result(support.PATIENCE))["c"] == {"b": None}
        assert (await support.standing(made))["d"] == "skipped"


async def test_x10_block_is_what_happens_unless_told_otherwise(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break"), task("b", after="a"), task("c", after="b")))
        assert (await support.failure(made)).blocked == ["b", "c"]


async def test_x10_skip_cascades_along_skips(url: str) -> None:
    async with support.opened(url) as app:
        tasks = [
            task("a", "break"),
            task("b", after="a", onDependencyFailure="skip"),
            task("c", after="b", onDependencyFailure="skip"),
            task("d", "join", after="c", onDependencyFailure="run"),
            task("e", after="c"),
            task("f", "join", after="d"),
        ]
        made = await app.submit(job(*tasks))
        error = await support.failure(made)
        assert await support.standing(made) == {
            "a": "failed",
            "b": "skipped",
            "c": "skipped",
            "d": "completed",
            "e": "blocked",
            "f": "completed",
        }
        assert error.blocked == ["e"]


async def test_x10_run_sees_the_error(url: str) -> None:
    async with support.opened(url) as app:
        tasks = [
            task("a", "break", input={"message": "oh"}),
            task("b"),
            task("c", "join", "a b", onDependencyFailure="run"),
        ]
        made = await app.submit(job(*tasks))
        await support.failure(made)
        assert (await made.outputs())["c"] == {"a": {"error": {"type": "TerminalError", "message": "oh"}}, "b": {}}


async def test_run_waits_for_all_it_needs_failed_or_not(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        tasks = [task("a", "break"), task("b", "gate"), task("c", "join", "a b", onDependencyFailure="run")]
        made = await app.submit(job(*tasks))
        await support.reaches(made, "a", "failed")
        assert (await support.standing(made))["c"] == "blocked"
        gate.opened.set()
        await support.failure(made)
        assert (await support.standing(made))["c"] == "completed"


async def test_a_chain_of_a_thousand_skips(url: str) -> None:
    async with support.opened(url) as app:
        chain = [task(f"t{n}", after=f"t{n - 1}", onDependencyFailure="skip") for n in range(1, 1000)]
        made = await app.submit(job(task("t0", "break"), *chain))
        await support.failure(made)
        assert (await made.info()).task_statuses == {"failed": 1, "skipped": 999}


# --- resume --------------------------------------------------------------------------------------------------------


async def test_d2_x11_resume_runs_only_what_failed(url: str) -> None:
    """X11: and the log says that the job was resumed."""
    app = support.make(url)
    flaky = support.Flaky(app)
    runs: list[str] = []

    @app.function
    async def note(ctx: Any) -> None:
        runs.append(ctx.task_id)

    async with app:
        made = await app.submit(
            job(task("a", "note"), task("b", "flaky", "a"), task("c", "note", "b"), task("d", "note"))
        )
        await support.failure(made)
        plan = await made.resume(actor="me")
        assert (plan.rerun, sorted(plan.reused), plan.waiting) == (["b"], ["a", "d"], ["c"])
        await made.result(support.PATIENCE)
        types = await support.told(made)
        assert types.index("Job Failure Detected") < types.index("Job Failed") < types.index("Job Resumed")
        assert types[-1] == "Job Completed"
        [event] = [e for e in await made.events() if e.type == "Job Resumed"]
        assert event.properties == {"tasks": ["b"], "actor": "me", "deadlineAt": None}
    assert sorted(runs) == ["a", "c", "d"], "nothing ran twice"
    assert flaky.calls == [("b", 1), ("b", 2)]


async def test_resume_with_changed_input(url: str) -> None:
    app = support.make(url)
    support.Flaky(app)
    async with app:
        made = await app.submit(job(task("a", "flaky", input={"x": 1}), task("b", "join", "a")))
        await support.failure(made)
        await made.resume(inputs={"a": {"x": 2}})
        assert await made.result(support.PATIENCE) == {"a": {"x": 2}, "b": {"a": {"x": 2}}}
        assert (await made.task("a")).input == {"x": 2}


async def test_new_input_for_what_would_not_run_again_is_refused(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a"), task("b", "break", "a")))
        await support.failure(made)
        for wrong in ("a", "ghost"):
            with pytest.raises(errors.NotPossible, match=wrong):
                await made.resume(inputs={wrong: {}})
        with pytest.raises(errors.InvalidInput):
            await made.resume(inputs={"b": [1]})  # type: ignore[dict-item]
        assert (await made.info()).state == "failed"


async def test_a_dry_run_says_and_does_not(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a"), task("b", "break", "a"), task("c", after="b")))
        await support.failure(made)
        before = await made.events()
        plan = await made.resume(dry_run=True)
        assert (plan.rerun, plan.reused, plan.waiting) == (["b"], ["a"], ["c"])
        assert await made.events() == before
        assert (await made.info()).state == "failed"


async def test_a_dry_run_leaves_every_row_as_it_was(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(
            job(
                task("a", "break"), task("b", after="a", onDependencyFailure="skip"), task("c", after="b"), deadline=600
            )
        )
        await support.failure(made)
        tables = [name for name in await support.tables_of_jobs(url) if name != "lease"]
        before = {name: sorted(map(repr, await support.sql(url, f"SELECT * FROM {name}"))) for name in tables}
        plan = await made.resume(inputs={"a": {"message": "x" * 100_000}}, deadline=60, dry_run=True)
        assert (plan.rerun, plan.waiting) == (["a"], ["b", "c"])
        after = {name: sorted(map(repr, await support.sql(url, f"SELECT * FROM {name}"))) for name in tables}
        assert after == before
        assert await made.resume() == plan


async def test_a_resumed_job_gets_all_its_attempts_again(url: str) -> None:
    app = support.make(url)
    flaky = support.Flaky(app, failures=3)
    async with app:
        made = await app.submit(job(task("a", "flaky", retry={"maxAttempts": 2, "baseDelay": 0})))
        await support.failure(made)
        await made.resume()
        await made.result(support.PATIENCE)
    assert [attempt for _, attempt in flaky.calls] == [1, 2, 3, 4]


async def test_a_job_may_fail_again_and_be_resumed_again(url: str) -> None:
    app = support.make(url)
    support.Flaky(app, failures=3)
    async with app:
        made = await app.submit(job(task("a", "flaky")))
        for _ in range(3):
            await support.failure(made)
            await made.resume()
        await made.result(support.PATIENCE)
        types = await support.told(made)
        assert types.count("Job Failure Detected") == types.count("Job Resumed") == 3


async def test_resume_while_the_rest_still_runs(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    support.Flaky(app)
    async with app:
        made = await app.submit(job(task("a", "flaky"), task("b", "gate"), task("c", "join", "a b")))
        await support.reaches(made, "a", "failed")
        await made.resume()
        await support.reaches(made, "a", "completed")
        gate.opened.set()
        await made.result(support.PATIENCE)
        assert gate.runs == 1


async def test_a_completed_job_has_nothing_to_resume(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a")))
        await made.result(support.PATIENCE)
        with pytest.raises(errors.NotPossible, match="nothing to resume"):
            await made.resume()


async def test_a_running_job_without_failures_has_nothing_to_resume(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        with pytest.raises(errors.NotPossible, match="nothing in it has failed"):
            await made.resume()
        gate.opened.set()
        await made.result(support.PATIENCE)


async def test_a_cancelled_job_is_resumed(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a"), task("b", "gate", "a"), task("c", "join", "b")))
        await support.soon(gate.started.wait())
        await made.cancel()
        plan = await made.resume()
        assert (plan.rerun, plan.reused) == (["b", "c"], ["a"])
        gate.opened.set()
        assert (await made.result(support.PATIENCE))["c"] == {"b": {}}


async def test_what_was_skipped_because_of_a_failure_runs_after_a_resume(url: str) -> None:
    app = support.make(url)
    support.Flaky(app)
    async with app:
        tasks = [
            task("a", "flaky"),
            task("b", "join", "a", onDependencyFailure="skip"),
            task("c", "join", "b", onDependencyFailure="skip"),
        ]
        made = await app.submit(job(*tasks))
        await support.failure(made)
        assert await support.standing(made) == {"a": "failed", "b": "skipped", "c": "skipped"}
        await made.resume()
        assert (await made.result(support.PATIENCE))["c"] == {"b": {"a": {}}}


async def test_what_was_skipped_by_hand_stays_skipped_after_a_resume(url: str) -> None:
    app = support.make(url)
    support.Flaky(app)
    async with app:
        made = await app.submit(job(task("a", "flaky"), task("b", after="a"), task("c", "join", "b")))
        await support.failure(made)
        await made.skip_task("b")
        await support.failure(made)
        await made.resume()
        await made.result(support.PATIENCE)
        assert (await support.standing(made))["b"] == "skipped"


async def test_two_resumes_at_once_run_it_once(url: str) -> None:
    app = support.make(url)
    flaky = support.Flaky(app)
    async with app:
        made = await app.submit(job(task("a", "flaky")))
        await support.failure(made)
        answers = await asyncio.gather(*[made.resume() for _ in range(5)], return_exceptions=True)
        assert sum(not isinstance(a, Exception) for a in answers) == 1
        await made.result(support.PATIENCE)
    assert len(flaky.calls) == 2


# --- the deadline --------------------------------------------------------------------------------------------------


async def test_a_job_past_its_deadline_is_stopped(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), task("b", after="a"), deadline=0.1))
        error = await support.failure(made)
        assert isinstance(error, errors.JobTimedOut)
        await support.soon(gate.cancelled.wait())
        assert await support.standing(made) == {"a": "cancelled", "b": "cancelled"}
        assert (await support.told(made))[-1] == "Job Timed Out"


async def test_a_job_that_ends_in_time_has_no_deadline_left(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a"), deadline=1000))
        await made.result(support.PATIENCE)
        assert (await made.info()).deadline_at is not None
        assert await support.count(url, "timer") == 0


async def test_a_job_that_timed_out_is_resumed_without_its_old_deadline(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), task("b", "join", "a"), deadline=0.1))
        await support.failure(made)
        plan = await made.resume()
        assert plan.rerun == ["a", "b"]
        assert (await made.info()).deadline_at is None
        gate.opened.set()
        await made.result(support.PATIENCE)


@pytest.mark.parametrize("running", [False, True])
async def test_a_resumed_job_keeps_a_deadline_that_has_not_passed(url: str, running: bool) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        tasks = [task("a", "break"), *([task("b", "gate")] if running else [])]
        made = await app.submit(job(*tasks, deadline=1000))
        await support.reaches(made, "a", "failed")
        before = (await made.info()).deadline_at
        await made.resume()
        assert (await made.info()).deadline_at == before is not None
        gate.opened.set()
        await support.failure(made)
        assert not (await audit.audit(app.engine.store)).problems


async def test_a_resumed_job_may_get_a_new_deadline(url: str) -> None:
    app = support.make(url)
    support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), deadline=0.05))
        await support.failure(made)
        await made.resume(deadline=0.05)
        assert isinstance(await support.failure(made), errors.JobTimedOut)
        assert (await support.told(made)).count("Job Timed Out") == 2


@pytest.mark.parametrize("deadline", [0, -1, float("nan")])
async def test_a_deadline_that_is_over_at_once_is_refused_by_a_resume_too(url: str, deadline: float) -> None:
    app = support.make(url)
    support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        await made.cancel()
        with pytest.raises(errors.InvalidInput, match="deadline must be more than 0 seconds"):
            await made.resume(deadline=deadline)
        assert (await made.info()).state == "cancelled"


async def test_a_deadline_of_less_than_the_clock_tells_passes_at_once(url: str) -> None:
    app = support.make(url)
    support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        await made.cancel()
        await made.resume(deadline=1e-7)
        assert isinstance(await support.failure(made), errors.JobTimedOut)


async def test_a_deadline_passes_while_nobody_is_there(url: str) -> None:
    app = support.make(url)
    support.Gate(app)
    async with support.opened(url, work=False, maintain=False, check_functions=False) as producer:
        made = await producer.submit(job(task("a", "gate"), deadline=0.01))
    async with support.opened(url, work=False) as keeper:
        assert isinstance(await support.failure(await keeper.job(made.job_id)), errors.JobTimedOut)


async def test_no_task_begins_before_what_it_depends_on_when_a_job_is_resumed(url: str) -> None:
    """Skipped tasks wait again: what runs after a failure waits for them, too, whether it had failed or not begun."""
    app, runs = support.make(url), list[str]()
    failing, go = {"a", "after"}, asyncio.Event()

    @app.function
    async def note(ctx: Context) -> None:
        runs.append(ctx.task_id)
        if ctx.task_id == "a" and "a" not in failing:
            await go.wait()
        if ctx.task_id in failing:
            raise TerminalError("as asked")

    @app.function(queue="later")
    async def late(ctx: Context) -> None:
        runs.append(ctx.task_id)

    async with testing.open(app) as kit:
        tasks = [
            task("a", "note"),
            task("b", "note", "a", onDependencyFailure="skip"),
            task("after", "note", "b", onDependencyFailure="run"),
            task("soon", "note", "b", onDependencyFailure="run", delay=60),
            task("asked", "review", "b", onDependencyFailure="run", approval={"title": "Go on?"}),
            task("last", "note", "after soon"),
        ]
        made = await app.submit(job(*tasks))
        await kit.run_until_idle()
        assert runs == ["a", "after"]
        failing.clear()
        await made.resume()
        after = await standing(made)
        assert [after[name] for name in ("b", "after", "soon", "asked", "last")] == ["blocked"] * 5
        assert await app.approvals.list() == []
        go.set()
        await kit.run_until_idle()
        await app.approvals.decide(made.job_id, "asked", "approve", actor="ann")
        await kit.advance(61)
        await kit.run_until_idle()
        assert [task_id for task_id in runs if task_id != "a"] == ["after", "b", "after", "soon", "last"]
        await kit.audit()


async def test_a_job_that_is_taken_up_again_with_failures_left_says_so_once_more(url: str) -> None:
    app = support.make(url)
    support.Flaky(app)
    async with app:
        made = await app.submit(job(task("a", "flaky"), task("b", "break")))
        await support.failure(made)
        before = len(await support.told(made))
        await made.retry_task("a")
        await support.failure(made)
        again = (await support.told(made))[before:]
        assert again.count("Job Failure Detected") == 1
        assert (await support.standing(made)) == {"a": "completed", "b": "failed"}
        assert (await made.info()).failure_detected_at is not None
