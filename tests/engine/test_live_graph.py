"""A graph that changes while it runs: tasks added, retried, skipped and cancelled; jobs cancelled."""

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from ostinato import errors
from tests.engine import support
from tests.engine.support import job, task

# --- D8: adding tasks ----------------------------------------------------------------------------------------------


async def test_d8_a_function_adds_tasks(url: str) -> None:
    app = support.make(url)

    @app.function
    async def fan_out(ctx: Any, count: int) -> list[str]:
        ids = [f"part-{n}" for n in range(count)]
        tasks = [task(i, input={"id": i}) for i in ids] + [task("end", "join", [*ids])]
        return await ctx.add_tasks(tasks)

    async with app:
        made = await app.submit(job(task("a", "fan_out", input={"count": 3})))
        result = await made.result(support.PATIENCE)
        assert result["a"] == ["part-0", "part-1", "part-2", "end"]
        assert set(result["end"]) == {"part-0", "part-1", "part-2"}
        [event] = [e for e in await made.events() if e.type == "Job Tasks Added"]
        assert [t["taskId"] for t in event.properties["newTasks"]] == result["a"]
        assert (await made.info()).total_tasks == 5


async def test_d8_added_tasks_may_depend_on_what_is_there(url: str) -> None:
    app = support.make(url)

    @app.function
    async def grow(ctx: Any) -> None:
        await ctx.add_tasks([task("after-me", "join", "a"), task("after-done", "join", "done")])

    async with app:
        made = await app.submit(job(task("done", input={"x": 1}), task("a", "grow", "done")))
        result = await made.result(support.PATIENCE)
        assert result["after-me"] == {"a": None}
        assert result["after-done"] == {"done": {"x": 1}}


async def test_d8_a_plain_function_adds_tasks(url: str) -> None:
    app = support.make(url)

    @app.function
    def grow(ctx: Any) -> list[str]:
        return ctx.add_tasks([task("more", input={"x": 1})])

    async with app:
        made = await app.submit(job(task("a", "grow")))
        assert await made.result(support.PATIENCE) == {"a": ["more"], "more": {"x": 1}}


async def test_d8_tasks_are_added_from_outside(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), task("b")))
        await support.reaches(made, "b", "completed")
        assert await made.add_tasks([task("c", "join", "a b"), task("d", "join", "b")], actor="me") == ["c", "d"]
        await support.reaches(made, "d", "completed")
        gate.opened.set()
        result = await made.result(support.PATIENCE)
        assert result["c"] == {"a": {}, "b": {}}
        [event] = [e for e in await made.events() if e.type == "Job Tasks Added"]
        assert event.properties["actor"] == "me"


@pytest.mark.parametrize(
    ("tasks", "kind"),
    [
        ([task("new"), task("a")], errors.DuplicateTask),
        ([task("new"), task("new")], errors.DuplicateTask),
        ([task("new"), task("other", after="ghost")], errors.UnknownDependency),
        ([task("new", after="other"), task("other", after="new")], errors.CycleFound),
        ([task("new", after="new")], errors.CycleFound),
        ([task("new"), task("odd id")], errors.InvalidId),
        ([task("new"), task("other", "no-such-function")], errors.UnknownFunction),
        ([task("new", input={"x": float("nan")})], errors.InvalidPayload),
        ([task("new"), {"taskId": "x"}], errors.InvalidInput),
        (5, errors.InvalidInput),
        ("new", errors.InvalidInput),
        (task("new"), errors.InvalidInput),
        (None, errors.InvalidInput),
    ],
)
@pytest.mark.parametrize("where", ["outside", "inside"])
async def test_all_tasks_are_added_or_none(url: str, tasks: Any, kind: type[Exception], where: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)

    @app.function
    async def grow(ctx: Any) -> str:
        try:
            await ctx.add_tasks(tasks)
        except errors.OstinatoError as error:
            return type(error).__name__
        return "added"

    async with app:
        made = await app.submit(job(task("a", "gate"), task("b", "grow" if where == "inside" else "echo")))
        await support.reaches(made, "b", "completed")
        if where == "outside":
            with pytest.raises(kind):
                await made.add_tasks(tasks)
        else:
            assert (await made.outputs())["b"] == kind.__name__
        assert set(await support.standing(made)) == {"a", "b"}
        assert "Job Tasks Added" not in await support.told(made)
        gate.opened.set()
        await made.result(support.PATIENCE)


async def test_nothing_is_added_to_a_job_that_ended(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a")))
        await made.result(support.PATIENCE)
        with pytest.raises(errors.JobEnded, match="completed"):
            await made.add_tasks([task("b")])
        assert set(await support.standing(made)) == {"a"}


async def test_concurrent_additions_of_one_id_let_one_win(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app, support.opened(url, work=False) as other:
        made = await app.submit(job(task("a", "gate")))
        handles = [made, await other.job(made.job_id)] * 5
        answers = await asyncio.gather(*[h.add_tasks([task("new")]) for h in handles], return_exceptions=True)
        assert sorted(type(a).__name__ for a in answers) == ["DuplicateTask"] * 9 + ["list"]
        gate.opened.set()
        await made.result(support.PATIENCE)


async def test_a_task_added_after_a_failure_goes_by_its_policy(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("bad", "break"), task("a", "gate")))
        await support.reaches(made, "bad", "failed")
        await made.add_tasks(
            [
                task("block", after="bad"),
                task("skip", after="bad", onDependencyFailure="skip"),
                task("run", "join", after="bad", onDependencyFailure="run"),
            ]
        )
        gate.opened.set()
        error = await support.failure(made)
        assert error.blocked == ["block"]
        found = await support.standing(made)
        assert (found["skip"], found["run"]) == ("skipped", "completed")


# --- one task --------------------------------------------------------------------------------------------------------


async def test_a_failed_task_is_retried_alone(url: str) -> None:
    app = support.make(url)
    flaky = support.Flaky(app)
    async with app:
        made = await app.submit(job(task("a"), task("b", "flaky", "a"), task("c", "join", "b")))
        await support.failure(made)
        await made.retry_task("b")
        assert (await made.result(support.PATIENCE))["c"] == {"b": {}}
    assert flaky.calls == [("b", 1), ("b", 2)]


async def test_a_failed_task_is_retried_while_the_job_runs(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    support.Flaky(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), task("b", "flaky"), task("c", "join", "a b")))
        await support.reaches(made, "b", "failed")
        await made.retry_task("b", input={"x": 2})
        await support.reaches(made, "b", "completed")
        gate.opened.set()
        assert (await made.result(support.PATIENCE))["c"] == {"a": {}, "b": {"x": 2}}


@pytest.mark.parametrize("state", ["completed", "blocked", "processing"])
async def test_only_what_ended_badly_can_be_retried(url: str, state: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("completed"), task("processing", "gate"), task("blocked", after="processing")))
        await support.soon(gate.started.wait())
        await support.reaches(made, "completed", "completed")
        with pytest.raises(errors.NotPossible, match=f"is {state}"):
            await made.retry_task(state)
        gate.opened.set()
        await made.result(support.PATIENCE)


async def test_a_failed_task_is_skipped_and_the_job_completes(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break"), task("b", "join", "a")))
        await support.failure(made)
        assert await made.skip_task("a", "not needed", actor="me") == "skipped"
        assert await made.result(support.PATIENCE) == {"b": {"a": None}}
        [event] = [e for e in await made.events() if e.type == "Task Skipped"]
        assert event.properties == {"reason": "not needed", "actor": "me"}


async def test_a_blocked_task_is_skipped_before_its_time(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), task("b", after="a"), task("c", "join", "b")))
        await made.skip_task("b")
        await support.reaches(made, "c", "completed")
        gate.opened.set()
        assert (await made.result(support.PATIENCE))["c"] == {"b": None}


async def test_a_running_task_is_skipped_and_interrupted(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), task("b", "join", "a")))
        await support.soon(gate.started.wait())
        await made.skip_task("a")
        await support.soon(gate.cancelled.wait())
        assert await made.result(support.PATIENCE) == {"b": {"a": None}}


async def test_a_completed_task_cannot_be_skipped(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a")))
        await made.result(support.PATIENCE)
        with pytest.raises(errors.IllegalMove, match="completed"):
            await made.skip_task("a")


async def test_skipping_twice_is_skipping_once(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), task("b", after="a"), task("c", "join", "b")))
        await made.skip_task("b")
        await made.skip_task("b")
        gate.opened.set()
        await made.result(support.PATIENCE)
        assert (await support.told(made)).count("Task Skipped") == 1


async def test_a_cancelled_task_counts_as_failed_for_those_that_need_it(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        tasks = [task("a", "gate"), task("b", after="a"), task("c", "join", "a", onDependencyFailure="run")]
        made = await app.submit(job(*tasks))
        await support.soon(gate.started.wait())
        assert await made.cancel_task("a", "enough", actor="me") == "cancelled"
        await support.soon(gate.cancelled.wait())
        error = await support.failure(made)
        assert error.blocked == ["b"]
        assert error.failed == {"a": {"type": "cancelled"}}
        assert (await support.standing(made))["c"] == "completed"


async def test_cancelling_a_task_that_ended_answers_how(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a"), task("b", "gate")))
        await support.reaches(made, "a", "completed")
        assert await made.cancel_task("a") == "completed"
        gate.opened.set()
        await made.result(support.PATIENCE)


async def test_commands_to_tasks_that_are_not_there(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break")))
        await support.failure(made)
        for command in (made.retry_task, made.skip_task, made.cancel_task):
            with pytest.raises(errors.TaskNotFound):
                await command("ghost")


# --- the whole job ---------------------------------------------------------------------------------------------------


async def test_cancel_stops_what_runs_and_what_waits(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate"), task("b", after="a"), task("c")))
        await support.soon(gate.started.wait())
        await support.reaches(made, "c", "completed")
        assert await made.cancel("changed my mind", actor="me") == "cancelled"
        await support.soon(gate.cancelled.wait())
        assert gate.context.cancelled, "the function is told through its context"
        error = await support.failure(made)
        assert isinstance(error, errors.JobCancelled)
        assert await support.standing(made) == {"a": "cancelled", "b": "cancelled", "c": "completed"}
        end = (await made.events())[-1]
        assert end.type == "Job Cancelled"
        assert (end.properties["reason"], end.properties["actor"]) == ("changed my mind", "me")


async def test_the_reply_says_that_completion_won(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a")))
        await made.result(support.PATIENCE)
        assert await made.cancel() == "completed"
        assert (await made.info()).state == "completed"


async def test_the_reply_says_that_failure_won(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break")))
        await support.failure(made)
        assert await made.cancel() == "failed"


async def test_cancelling_twice_is_cancelling_once(url: str) -> None:
    app = support.make(url)
    support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        assert await asyncio.gather(*[made.cancel() for _ in range(5)]) == ["cancelled"] * 5
        assert (await support.told(made)).count("Job Cancelled") == 1


async def test_cancel_and_completion_at_once_have_one_winner(url: str) -> None:
    async with support.opened(url) as app, support.opened(url, work=False) as other:
        for _ in range(20):
            made = await app.submit(job(task("a")))
            answer = await (await other.job(made.job_id)).cancel()
            assert answer in ("cancelled", "completed")
            info = await made.info()
            assert info.state == answer
            ends = {"Job Completed", "Job Cancelled"} & set(await support.told(made))
            assert len(ends) == 1


async def test_a_job_is_cancelled_from_another_process(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app, support.opened(url, work=False) as other:
        made = await app.submit(job(task("a", "gate")))
        await support.soon(gate.started.wait())
        assert await (await other.job(made.job_id)).cancel() == "cancelled"
        await support.soon(gate.cancelled.wait())


async def test_a_plain_function_is_told_of_the_cancellation(url: str) -> None:
    app = support.make(url)
    started, told = threading.Event(), threading.Event()

    @app.function
    def busy(ctx: Any) -> None:
        started.set()
        while not ctx.cancelled:
            if told.wait(0.005):
                return
        told.set()

    async with app:
        made = await app.submit(job(task("a", "busy")))
        await asyncio.to_thread(started.wait, support.PATIENCE)
        await made.cancel()
        assert await asyncio.to_thread(told.wait, support.PATIENCE)


async def test_a_cancelled_function_that_goes_on_changes_nothing(url: str) -> None:
    app = support.make(url)
    started, ended = asyncio.Event(), asyncio.Event()

    @app.function
    async def stubborn(ctx: Any) -> str:
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        try:
            await ctx.step("late", lambda: 1)
        except errors.LeaseLost:
            ended.set()
        return "too late"

    async with app:
        made = await app.submit(job(task("a", "stubborn")))
        await support.soon(started.wait())
        await made.cancel()
        await support.soon(ended.wait())
        assert await support.standing(made) == {"a": "cancelled"}
        assert (await made.task("a")).steps == []
        assert await made.outputs() == {}


async def test_a_cancelled_job_leaves_no_work_behind(url: str) -> None:
    app = support.make(url, concurrency=2)
    support.Gate(app)
    async with app:
        made = await app.submit(job(*[task(f"t{n}", "gate") for n in range(20)]))
        await made.cancel()
        assert (await app.engine.store.depth("default"))["queues"] == []
        assert await support.run(app, task("b")) == {"b": {}}
