"""Random graphs with random failures, against a model that is too simple to be wrong, on both databases."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ostinato import EngineOptions, Job, Ostinato, Retry, TerminalError, audit
from ostinato.core import commands
from ostinato.errors import JobFailed

EXAMPLES = int(os.environ.get("OSTINATO_EXAMPLES", "40"))

Graph = list[dict[str, Any]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to nine tasks, each depending on some before it, in any order, some failing, with every policy. Some are done
    by somebody outside, and some begin a little later."""
    size = draw(st.integers(1, 9))
    tasks: Graph = []
    for index in range(size):
        ups = draw(st.lists(st.integers(0, index - 1), unique=True, max_size=3)) if index else []
        begins = draw(st.sampled_from([{}, {}, {}, {"external": True}, {"delay": 0.001}]))
        tasks.append(
            begins
            | {
                "taskId": f"t{index}",
                "name": "maybe",
                "dependsOn": [f"t{up}" for up in ups],
                "input": {"fails": draw(st.booleans()) and draw(st.booleans())},
                "optional": draw(st.booleans()) and draw(st.booleans()),
                "onDependencyFailure": draw(st.sampled_from(["block", "block", "skip", "run"])),
            }
        )
    return draw(st.permutations(tasks))


def expected(graph: Graph) -> tuple[str, dict[str, str]]:
    """How a job must end: nothing but the rules, read off the graph in order of dependence."""
    by_id = {task["taskId"]: task for task in graph}
    states: dict[str, str] = {}
    good: dict[str, bool] = {}

    def settle(task_id: str) -> None:
        if task_id in states:
            return
        task = by_id[task_id]
        for up in task["dependsOn"]:
            settle(up)
        policy = task["onDependencyFailure"]
        blocked = any(states[up] == "blocked" for up in task["dependsOn"])
        failed = any(states[up] != "blocked" and not good[up] for up in task["dependsOn"])
        unwanted = failed or any(states[up] in ("failed", "skipped") for up in task["dependsOn"])
        if unwanted and policy == "skip":
            states[task_id], good[task_id] = "skipped", task["optional"]
        elif blocked or (failed and policy == "block"):
            states[task_id], good[task_id] = "blocked", False
        elif task["input"]["fails"]:
            states[task_id], good[task_id] = "failed", task["optional"]
        else:
            states[task_id], good[task_id] = "completed", True

    for task_id in by_id:
        settle(task_id)
    bad = any(s == "blocked" or (s == "failed" and not by_id[t]["optional"]) for t, s in states.items())
    return ("failed" if bad else "completed"), states


def application(url: str) -> Ostinato:
    app = Ostinato(url, options=EngineOptions(poll_seconds=0.05, prune_every_seconds=None))

    @app.function(retry=Retry(max_attempts=1))
    async def maybe(fails: bool) -> str:
        if fails:
            raise TerminalError("as asked")
        return "done"

    return app


async def check(app: Ostinato, graph: Graph) -> None:
    state, states = expected(graph)
    job = await app.submit({"tasks": graph})
    await ended(app, job, graph)
    assert (await job.info()).state == state
    assert {task.task_id: task.state for task in await job.tasks()} == states
    if state == "failed":
        await mend(app, job.job_id, graph)


async def ended(app: Ostinato, job: Job, graph: Graph) -> None:
    """Wait for its end, and be the one outside, who does what the input says."""
    outside = {task["taskId"] for task in graph if task.get("external")}
    async with asyncio.timeout(20):
        while (await job.info()).state == "running":
            for view in await job.tasks():
                if view.state == "waiting" and view.task_id in outside:
                    await app.engine.execute(await outcome(job, view.task_id))
            await asyncio.sleep(0.001)
    with contextlib.suppress(JobFailed):
        await job.result(timeout=20)


async def outcome(job: Job, task_id: str) -> commands.Command:
    if (await job.task(task_id)).input["fails"]:
        return commands.FailTask(job.job_id, task_id, commands.make_failure("Refused", "as asked"))
    return commands.CompleteTask(job.job_id, task_id, b'"done"')


async def mend(app: Ostinato, job_id: str, graph: Graph) -> None:
    """Resume with inputs that do not fail: then only optional tasks may have failed, and nothing ran twice."""
    job = await app.job(job_id)
    before = {task.task_id: task.attempt for task in await job.tasks() if task.state == "completed"}
    plan = await job.resume(dry_run=True)
    assert set(plan.reused) == set(before)
    assert await job.resume(inputs={task_id: {"fails": False} for task_id in plan.rerun}) == plan
    mended = [t | {"input": {"fails": t["input"]["fails"] and t["taskId"] not in plan.rerun}} for t in graph]
    state, _ = expected(mended)
    await ended(app, job, graph)
    assert (await job.info()).state == state
    after = {task.task_id: task.attempt for task in await job.tasks()}
    assert {task_id: after[task_id] for task_id in before} == before


@pytest.fixture
def on_loop() -> Any:
    with asyncio.Runner() as runner:
        yield runner


def test_jobs_end_as_the_model_says(url: str, on_loop: asyncio.Runner) -> None:
    app = application(url)
    on_loop.run(app.start())
    try:

        @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
        @given(graphs())
        def run(graph: Graph) -> None:
            on_loop.run(check(app, graph))

        run()
        assert not on_loop.run(audit.audit(app.engine.store)).problems
    finally:
        on_loop.run(app.stop())
