"""Rows that contradict what their own events say was asked for: planted by raw SQL, one at a time, and found."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Context, EngineOptions, Ostinato, Retry, TerminalError, audit, testing
from ostinato.core import codec, events, fold
from tests.engine.test_audit import run_sql

JOB = {
    "jobId": "one",
    "name": "asked-for",
    "requestId": "request-1",
    "correlationId": "of-many",
    "priority": 3,
    "tags": {"team": "blue", "city": "Ghent"},
    "maxConcurrency": 2,
    "tasks": [
        {"taskId": "plain", "name": "echo", "input": {"n": 1}},
        {"taskId": "large", "name": "echo", "input": {"text": "x" * 40_000}},
        {"taskId": "chosen", "name": "routed", "input": {"n": 2}},
        {
            "taskId": "said",
            "name": "echo",
            "input": {"n": 3},
            "queue": "own",
            "priority": 7,
            "optional": True,
            "onDependencyFailure": "skip",
            "dependsOn": ["plain"],
        },
        {"taskId": "grows", "name": "grows"},
        {"taskId": "bad", "name": "bad"},
    ],
}
OF_THE_JOB = (
    "name = 'another'",
    "priority = 4",
    "request_id = 'request-2'",
    "request_id = NULL",
    "correlation_id = 'of-others'",
    "max_parallel = 3",
    "finished_at = finished_at + 1",
    "finished_at = NULL",
    """tags = CAST('{"team":"red","city":"Ghent"}' AS {bytes})""",
    "tags = CAST('{}' AS {bytes})",
)
OF_TASKS = {
    "name = 'other'": ("plain", "said", "added"),
    "priority = 8": ("plain", "said", "added"),
    "queue = 'elsewhere'": ("plain", "said", "chosen", "added"),
    "policy = 'run'": ("plain", "said", "added"),
    "optional = NOT optional": ("plain", "added"),
    """input = CAST('{"n":9}' AS {bytes})""": ("plain", "large", "said", "chosen", "added"),
    """error = CAST('{"type":"Other","message":"no"}' AS {bytes})""": ("bad",),
    "error = NULL": ("bad",),
}
OF_OTHERS = {
    "DELETE FROM job_tag WHERE key = 'team'": "it is not found by the tags",
    "UPDATE job_tag SET value = 'Bruges' WHERE key = 'city'": "it is not found by the tags",
    "DELETE FROM signal": "which signals it got",
    "UPDATE signal SET signal_id = 'another'": "which signals it got",
}


def build(url: str) -> Ostinato:
    app = Ostinato(url, options=EngineOptions(queues=("default", "own")))

    @app.function
    async def echo(n: int = 0, text: str = "") -> int:
        return n

    @app.function(queue="own")
    async def routed(n: int) -> int:
        return n

    @app.function
    async def grows(ctx: Context) -> None:
        await ctx.add_tasks([{"taskId": "added", "name": "echo", "input": {"n": 4}}])

    @app.function(retry=Retry(max_attempts=2, base_delay=5))
    async def bad(mended: bool = False) -> None:
        if not mended:
            raise (ConnectionError("once more") if mended is None else TerminalError("not like this"))

    return app


async def find(url: str, sql: str) -> list[audit.Problem]:
    """What the audit finds once this is planted, where it has found nothing before."""
    async with testing.open(build(url)) as kit:
        await kit.app.submit(JOB)
        await kit.app.signal("one", "go", signal_id="first")
        await kit.run_until_idle()
        target = kit.app.engine.store
        assert (await target.job("default", "one")).finished_at is not None
        assert not (await audit.audit(target)).problems
        await run_sql(url, sql)
        return (await audit.audit(target)).problems


@pytest.mark.parametrize("change", OF_THE_JOB)
async def test_a_job_is_what_was_asked_for(url: str, change: str) -> None:
    found = await find(url, f"UPDATE job SET {change}")
    assert {(p.invariant, p.task_id) for p in found} >= {("I8", None)}


@pytest.mark.parametrize(("change", "task_id"), [(change, name) for change in OF_TASKS for name in OF_TASKS[change]])
async def test_a_task_is_what_was_asked_for(url: str, change: str, task_id: str) -> None:
    found = await find(url, f"UPDATE task SET {change} WHERE task_id = '{task_id}'")
    assert [(p.invariant, p.task_id) for p in found] == [("I8", task_id)]


@pytest.mark.parametrize("sql", OF_OTHERS)
async def test_tags_and_signals_are_those_of_the_events(url: str, sql: str) -> None:
    (problem,) = await find(url, sql)
    assert problem.invariant == "I8"
    assert OF_OTHERS[sql] in problem.message


@pytest.mark.parametrize("how", ["resume", "retry"])
async def test_an_input_that_was_replaced_is_no_contradiction(url: str, how: str) -> None:
    job: dict[str, Any] = {"jobId": "one", "tasks": [{"taskId": "bad", "name": "bad", "input": {"mended": False}}]}
    async with testing.open(build(url)) as kit:
        made = await kit.app.submit(job)
        await kit.run_until_idle()
        if how == "resume":
            await made.resume(inputs={"bad": {"mended": True}})
        else:
            await made.retry_task("bad", input={"mended": True})
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        await kit.audit()


async def test_an_input_that_was_replaced_before_it_was_due_is_no_contradiction(url: str) -> None:
    job: dict[str, Any] = {"jobId": "one", "tasks": [{"taskId": "bad", "name": "bad", "input": {"mended": None}}]}
    async with testing.open(build(url)) as kit:
        made = await kit.app.submit(job)
        await kit.run_until_idle()
        await made.retry_task("bad", input={"mended": True})
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        await kit.audit()


def test_what_events_do_not_mention_is_not_known() -> None:
    tasks = [{"taskId": "a", "name": "f"}, {"taskId": "b", "name": "ostinato.fire", "input": {"n": 1}}]
    data = {"name": "old", "correlationId": "one", "tags": {}, "tasks": tasks}
    job = fold.fold([events.Event("one", 1, events.JOB_CREATED, None, None, 0, codec.encode(data))])
    assert job.asked == {"name": "old", "correlation_id": "one", "created_at": 0, "submitted_by": None}
    assert job.tasks["a"].asked == {"name": "f", "queue": "default", "policy": "block", "optional": False}
    assert [task.input for task in job.tasks.values()] == [None, None]
