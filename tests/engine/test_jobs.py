"""Jobs that go well: submission, order, what functions receive, what callers get back."""

import asyncio
import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devtools.postgres import PostgresServer
from ostinato import Context, Job, Ostinato, Retry, context, errors
from ostinato.store import database, sqlite
from tests.engine import support
from tests.engine.support import job, run, task


async def test_d1_d2_the_example_job_completes(url: str) -> None:
    """D1: A, B roots; C, D need A; E needs C and D. D2: completed when all tasks are."""
    async with support.opened(url) as app:
        made = await app.submit(
            job(task("A"), task("B"), task("C", "join", "A"), task("D", "join", "A"), task("E", "join", "C D"))
        )
        result = await made.result(support.PATIENCE)
        assert result["E"] == {"C": {"A": {}}, "D": {"A": {}}}
        info = await made.info()
        assert info.state == "completed"
        assert info.task_statuses == {"completed": 5}


async def test_the_readme_example(url: str) -> None:
    app = support.bare(url)
    fetched: list[str] = []

    async def fetch(store: str) -> list[str]:
        fetched.append(store)
        return ["shoe"]

    @app.function("scrape-store", retry=Retry(max_attempts=4, base_delay=2, multiplier=2), timeout=300)
    async def scrape_store(ctx: Any, storeId: str) -> dict[str, Any]:
        return {"products": await ctx.step("fetch", fetch, storeId)}

    @app.function("color-tags")
    def color_tags(ctx: Any, style: str) -> dict[str, Any]:
        return {"style": style, "of": ctx.dependency_outputs["task-A"]["products"]}

    document = {
        "name": "store-report",
        "requestId": "req-789",
        "tasks": [
            {"taskId": "task-A", "name": "scrape-store", "dependsOn": [], "input": {"storeId": "store-123"}},
            {"taskId": "task-C", "name": "color-tags", "dependsOn": ["task-A"], "input": {"style": "modern"}},
        ],
    }
    async with app:
        result = await (await app.submit(document)).result(support.PATIENCE)
    assert result == {"task-A": {"products": ["shoe"]}, "task-C": {"style": "modern", "of": ["shoe"]}}
    assert fetched == ["store-123"]


async def test_d17_the_producer_defines_the_graph_at_run_time(url: str) -> None:
    async with support.opened(url) as app:
        for width in (1, 3):
            ids = [f"t{n}" for n in range(width)]
            result = await run(app, *[task(i, input={"id": i}) for i in ids], task("end", "join", ids))
            assert result["end"] == {i: {"id": i} for i in ids}


async def test_d11_what_a_function_is_told(url: str) -> None:
    """D11: the message: taskId, jobId, static input, outputs of the dependencies."""
    app = support.make(url, tenant="acme")

    @app.function
    async def tell(ctx: Any, colour: str, size: int = 3) -> dict[str, Any]:
        return {
            "job": ctx.job_id,
            "task": ctx.task_id,
            "attempt": ctx.attempt,
            "input": ctx.input,
            "outputs": dict(ctx.dependency_outputs),
            "correlation": ctx.correlation_id,
            "request": ctx.request_id,
            "tenant": ctx.tenant,
            "size": size,
        }

    async with app:
        first = task("a", input={"x": 1})
        second = task("b", "tell", "a", input={"colour": "red"})
        made = await app.submit(job(first, second, jobId="j1", correlationId="c1", requestId="r1"))
        result = await made.result(support.PATIENCE)
    assert result["b"] == {
        "job": "j1",
        "task": "b",
        "attempt": 1,
        "input": {"colour": "red"},
        "outputs": {"a": {"x": 1}},
        "correlation": "c1",
        "request": "r1",
        "tenant": "acme",
        "size": 3,
    }


async def test_d7_a_standalone_task_needs_no_job(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit_task("echo", x=1)
        assert await made.result(support.PATIENCE) == {"task": {"x": 1}}


async def test_d7_a_standalone_task_takes_settings(url: str) -> None:
    app = support.make(url)
    flaky = support.Flaky(app, failures=1)
    async with app:
        made = await app.submit_task("flaky", submit={"retry": {"maxAttempts": 2, "baseDelay": 0}}, x=1)
        assert await made.result(support.PATIENCE) == {"task": {"x": 1}}
    assert len(flaky.calls) == 2


async def test_x10_a_level_is_no_barrier(url: str) -> None:
    """X4/X10: tasks start when they are ready; D does not wait for A though it needs only B."""
    app = support.make(url)
    slow = support.Gate(app)
    async with app:
        made = await app.submit(job(task("A", "gate"), task("B"), task("C", "join", "A"), task("D", "join", "B")))
        await support.reaches(made, "D", "completed")
        assert (await support.standing(made))["C"] == "blocked"
        slow.opened.set()
        await made.result(support.PATIENCE)


async def test_a_job_of_a_thousand_tasks_and_a_join(url: str) -> None:
    app = support.make(url)

    @app.function
    async def number(n: int) -> int:
        return n

    @app.function
    async def total(ctx: Any) -> int:
        return sum((await ctx.dependency_outputs.load()).values())

    async with app:
        ids = [f"t{n}" for n in range(1000)]
        tasks = [task(i, "number", input={"n": n}) for n, i in enumerate(ids)]
        result = await run(app, *tasks, task("end", "total", ids))
        assert result["end"] == sum(range(1000))


async def test_a_chain_runs_in_order(url: str) -> None:
    app = support.make(url)
    order: list[str] = []

    @app.function
    async def note(ctx: Any) -> None:
        order.append(ctx.task_id)

    async with app:
        ids = [f"t{n}" for n in range(30)]
        tasks = [task(i, "note", ids[n - 1] if n else "") for n, i in enumerate(ids)]
        await run(app, *reversed(tasks))
    assert order == ids


async def test_many_jobs_in_one_call(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit_many([job(task("a", input={"n": n})) for n in range(200)])
        results = await asyncio.gather(*[one.result(support.PATIENCE) for one in made])
        assert [r["a"]["n"] for r in results] == list(range(200))


async def test_no_jobs_in_one_call(url: str) -> None:
    async with support.opened(url) as app:
        assert await app.submit_many([]) == []


async def test_one_bad_job_among_many_changes_nothing(url: str) -> None:
    async with support.opened(url) as app:
        with pytest.raises(errors.UnknownDependency):
            await app.submit_many([job(task("a")), job(task("a", after="ghost"))])
        assert await app.jobs() == []


async def test_a_job_may_come_as_json_text_or_from_the_builder(url: str) -> None:
    async with support.opened(url) as app:
        text = json.dumps(job(task("a", input={"x": 1})))
        assert await (await app.submit(text)).result(support.PATIENCE) == {"a": {"x": 1}}
        assert await (await app.submit(text.encode())).result(support.PATIENCE) == {"a": {"x": 1}}
        graph = app.graph("built")
        first = graph.task("echo", x=2)
        graph.task("join", after=[first])
        built = await app.submit(graph, request_id="r1")
        assert await built.result(support.PATIENCE) == {"echo": {"x": 2}, "join": {"echo": {"x": 2}}}
        assert (await built.info()).request_id == "r1"


async def test_a_job_is_found_again_from_another_process(url: str) -> None:
    async with support.opened(url) as one, support.opened(url, work=False) as other:
        made = await one.submit(job(task("a", input={"x": 1})))
        again = await other.job(made.job_id)
        assert await again.result(support.PATIENCE) == {"a": {"x": 1}}


async def test_what_is_not_there_is_said_to_be_missing(url: str) -> None:
    async with support.opened(url) as app:
        with pytest.raises(errors.JobNotFound, match="'ghost'"):
            await app.job("ghost")
        made = await app.submit(job(task("a")))
        await made.result(support.PATIENCE)
        with pytest.raises(errors.TaskNotFound, match="'ghost'"):
            await made.task("ghost")


async def test_waiting_for_a_result_has_an_end(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        with pytest.raises(errors.ResultTimeout, match="goes on running"):
            await made.result(0.05)
        gate.opened.set()
        assert await made.result(support.PATIENCE) == {"a": {}}


@pytest.mark.parametrize("timeout", [float("nan"), "5"])
async def test_waiting_for_a_time_that_is_none_is_refused(url: str, timeout: Any) -> None:
    """One NaN among the timers of an event loop, and none of them is on time any more."""
    async with support.opened(url) as app:
        made = await app.submit(job(task("a")))
        for handle in (made, await app.job(made.job_id)):
            with pytest.raises(errors.InvalidInput, match="timeout"):
                await handle.result(timeout)
        for endless in (float("inf"), 10**400):
            assert await made.result(endless) == {"a": {}}


async def test_a_result_that_is_there_is_given_to_who_has_no_time(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app, support.opened(url, work=False) as elsewhere:
        made = await app.submit(job(task("a", "gate")))
        found = await elsewhere.job(made.job_id)
        for handle in (made, found):
            with pytest.raises(errors.ResultTimeout):
                await handle.result(0)
        gate.opened.set()
        await support.reaches(made, "a", "completed")
        for handle in (made, await app.job(made.job_id), found):
            for timeout in (0, -1):
                assert await handle.result(timeout) == {"a": {}}


@contextlib.contextmanager
def freezable(url: str) -> Iterator[tuple[str, Callable[[Ostinato], object], Callable[[], object]]]:
    """A database that can be made to say nothing any more, and to speak again."""
    if url.startswith("sqlite"):
        thawed = threading.Event()

        def stand_still() -> database.Script[None]:
            thawed.wait()
            return
            yield

        asked: list[asyncio.Task[None]] = []

        def freeze(app: Ostinato) -> None:
            """All its readers, and those that it would add."""
            readers = sqlite.QUICK_READERS
            asked.extend(
                asyncio.create_task(app.engine.db.read(stand_still)) for _ in range(readers * (sqlite.QUEUED + 2))
            )

        yield url, freeze, thawed.set
        return
    with PostgresServer(fsync=False) as server:

        def tell(sign: signal.Signals) -> None:
            children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            for pid in (server.pid, *map(int, children)):
                with contextlib.suppress(ProcessLookupError):  # it has ended since it was listed
                    os.kill(pid, sign)

        yield server.create_database(), lambda _: tell(signal.SIGSTOP), lambda: tell(signal.SIGCONT)


async def test_outputs_that_were_waited_for_are_not_kept(url: str) -> None:
    """Thousands of ends are remembered, and each may have twenty outputs. Who comes late reads them."""
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", input={"text": "here"})))
        results = await asyncio.gather(*[made.result(support.PATIENCE) for _ in range(3)])
        assert [*results, await made.result(support.PATIENCE)] == [{"a": {"text": "here"}}] * 4
        lately = app.engine.ends._lately  # pyright: ignore[reportPrivateUsage]
        assert [ended.outputs for ended in lately.values()] == [None]


async def test_waiting_ends_in_time_though_the_database_says_nothing(url: str) -> None:
    with freezable(url) as (frozen_url, freeze, thaw):
        app = support.make(frozen_url, shutdown_seconds=0)
        gate = support.Gate(app)
        async with app:
            made = await app.submit(job(task("a", "gate")))
            found = await app.job(made.job_id)
            await support.soon(gate.started.wait())
            freeze(app)
            try:
                took = [await timed_out(handle) for handle in (made, found, made, found)]
            finally:
                thaw()
            assert max(took) < 5  # 1.1 s on a calm machine; without a limit, a minute or for ever


async def timed_out(handle: Job) -> float:
    """How long it takes to say that there is no result within a tenth of a second."""
    began = time.monotonic()
    with pytest.raises(errors.ResultTimeout, match=f"database did not say within 0.1 s whether job '{handle.job_id}'"):
        await handle.result(0.1)
    return time.monotonic() - began


async def test_jobs_are_listed_newest_first_and_in_pages(url: str) -> None:
    async with support.opened(url) as app:
        made = [await app.submit(job(task("a"), name=f"n{n % 2}", requestId=f"r{n}")) for n in range(5)]
        for one in made:
            await one.result(support.PATIENCE)
        ids = [one.job_id for one in made][::-1]
        assert [view.job_id for view in await app.jobs()] == ids
        page = await app.jobs(most=2)
        assert [view.job_id for view in await app.jobs(most=2, cursor=page.cursor)] == ids[2:4]
        assert len(await app.jobs(name="n0")) == 3
        assert [view.job_id for view in await app.jobs(request_id="r2")] == [made[2].job_id]
        assert len(await app.jobs(state="completed")) == 5
        with pytest.raises(errors.InvalidInput, match="state"):
            await app.jobs(state="happy")


async def test_tasks_of_a_job_in_the_producers_order_and_in_pages(url: str) -> None:
    """D15: the tasks of a job."""
    async with support.opened(url) as app:
        ids = [f"t{n}" for n in (3, 1, 2, 0)]
        made = await app.submit(job(*[task(i) for i in ids]))
        await made.result(support.PATIENCE)
        assert [view.task_id for view in await made.tasks()] == ids
        first = await made.tasks(most=3)
        assert [view.task_id for view in await made.tasks(after=first[-1].position)] == ids[3:]


async def test_a_functions_queue_and_timeout_are_its_defaults(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", priority=7), priority=3, tags={"team": "x"}))
        await made.result(support.PATIENCE)
        info = await made.info()
        assert (info.priority, info.tags, info.name) == (3, {"team": "x"}, "test")
        assert (await made.task("a")).task.priority == 7


async def test_plain_functions_and_no_context(url: str) -> None:
    app = support.make(url)

    @app.function
    def add(a: int, b: int = 10) -> int:
        return a + b

    async with app:
        assert await run(app, task("x", "add", input={"a": 1})) == {"x": 11}


@pytest.mark.parametrize("dependencies", [3, context.READ_AHEAD + 1])
async def test_the_error_of_an_optional_dependency_is_there_however_many_there_are(url: str, dependencies: int) -> None:
    """Few are read before the function starts, many when it asks: in all ways to ask."""
    app = support.make(url)

    @app.function
    async def one_by_one(ctx: Context) -> Any:
        return [ctx.dependency_outputs["bad"], ctx.dependency_outputs["good-0"], ctx.dependency_outputs["skipped"]]

    @app.function
    async def some(ctx: Context) -> Any:
        found = await ctx.dependency_outputs.load("bad", "good-0", "skipped")
        return [found["bad"], found["good-0"], found["skipped"]]

    @app.function
    async def whole(ctx: Context) -> Any:
        found = await ctx.dependency_outputs.load()
        assert len(found) == dependencies
        return [found["bad"], found["good-0"], found["skipped"]]

    @app.function
    async def listed(ctx: Context) -> Any:
        found = dict(ctx.dependency_outputs)
        return [found["bad"], found["good-0"], found["skipped"]]

    ways = ("one_by_one", "some", "whole", "listed")
    good = [task(f"good-{n}", input={"n": n}) for n in range(dependencies - 2)]
    bad = task("bad", "break", input={"message": "no luck"}, optional=True)
    others = [bad, task("skipped", delay=1000)]
    async with app:
        ups = [one["taskId"] for one in [*good, *others]]
        made = await app.submit(job(*good, *others, *[task(way, way, ups) for way in ways]))
        await made.skip_task("skipped")
        outputs = await made.result(support.PATIENCE)
    for way in ways:
        failed, first, skipped = outputs[way]
        assert (failed["error"]["message"], first, skipped) == ("no luck", {"n": 0}, None), way


async def test_dependency_outputs_are_read_lazily(url: str) -> None:
    """A join over many tasks loads only what it asks for."""
    app = support.make(url)

    @app.function
    async def pick(ctx: Any, which: str) -> Any:
        outputs = ctx.dependency_outputs
        return [len(outputs), outputs[which], "ghost" in outputs, which in outputs]

    @app.function
    def pick_plain(ctx: Any, which: str) -> Any:
        return ctx.dependency_outputs[which]

    async with app:
        ids = [f"t{n}" for n in range(100)]
        tasks = [task(i, input={"id": i}) for i in ids]
        ends = [
            task("end", "pick", ids, input={"which": "t77"}),
            task("plain", "pick_plain", ids, input={"which": "t3"}),
        ]
        result = await run(app, *tasks, *ends)
        assert result["end"] == [100, {"id": "t77"}, False, True]
        assert result["plain"] == {"id": "t3"}


async def test_only_dependencies_can_be_read(url: str) -> None:
    app = support.make(url)

    @app.function
    async def peek(ctx: Any) -> bool:
        return "a" in ctx.dependency_outputs

    async with app:
        result = await run(app, task("a"), task("b"), task("c", "peek", "b"), task("d", "peek"))
        assert (result["c"], result["d"]) == (False, False)


async def test_outputs_so_far(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", input={"x": 1}), task("b", "gate", "a")))
        await support.soon(gate.started.wait())
        assert await made.outputs() == {"a": {"x": 1}}
        gate.opened.set()
        await made.result(support.PATIENCE)


async def test_the_plan_of_a_graph_without_running_it(url: str) -> None:
    async with support.opened(url) as app:
        plan = await app.plan(
            job(task("A"), task("B"), task("C", after="A"), task("D", after="B"), task("E", after="C"))
        )
        assert plan.levels == [["A", "B"], ["C", "D"], ["E"]]
        assert await app.jobs() == []


async def test_an_application_that_is_not_open_says_so(url: str) -> None:
    app = support.make(url)
    with pytest.raises(errors.NotRunning):
        await app.submit(job(task("a")))
    async with app:
        with pytest.raises(errors.NotPossible, match="already open"):
            await app.start()


async def test_an_application_can_be_opened_again(url: str) -> None:
    app = support.make(url)
    for n in range(3):
        async with app:
            assert await run(app, task("a", input={"n": n})) == {"a": {"n": n}}


def test_code_that_is_not_async_has_a_door(url: str) -> None:
    app = support.make(url)

    async def main() -> Any:
        return await run(app, task("a", input={"x": 1}))

    assert app.run(main) == {"a": {"x": 1}}
    assert app.run(main()) == {"a": {"x": 1}}


def test_d14_d16_the_library_needs_no_other_infrastructure(sqlite_url: str, tmp_path: Any) -> None:
    """D14, D16: no queue, bus or function service beside the database: one file is all that is left behind."""
    app: Ostinato = support.make(sqlite_url)
    app.run(lambda: run(app, task("a"), task("b", "join", "a")))
    assert [path.name for path in tmp_path.iterdir()] == ["test.db"]
