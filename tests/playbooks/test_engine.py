"""The job of a playbook in the real engine: its tasks are taken as they are, and what they leave can be put together.

The stages have nobody here who runs them: what they will do is done by the test, with what they will have.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from ostinato import Context, Job, Ostinato
from ostinato.core import graph, rows
from ostinato.core.commands import producing
from ostinato.playbooks import aggregation, invocation, job, synthesis
from ostinato.playbooks import plan as plans
from ostinato.playbooks.definition import Agent, Playbook
from tests.engine import support as engines
from tests.playbooks import support

DATA = {"text": "Smoke in Dyers Lane"}


def register(app: Ostinato, agent: Agent, code: Callable[[dict[str, Any]], Any]) -> None:
    """Let a function of the application be the agent."""
    assert agent.function is not None

    @app.function(agent.function)
    async def run(ctx: Context, **stored: Any) -> Any:
        given = job.given(stored)
        member = given.pins.agents[ctx.task_id]
        call = invocation.invocation(
            ctx.task_id,
            given.raw_data,
            member.parents,
            await ctx.dependency_outputs.load(),
            tenant_id=ctx.tenant,
            domain_id=given.pins.domain_id,
        )
        skipped = invocation.left_out(call, member.on_parent_failure)
        if skipped is not None:
            return skipped
        answer = code(invocation.arguments(call, given.template(ctx.task_id), lambda *_: None))
        return await answer if asyncio.iscoroutine(answer) else answer


async def start(app: Ostinato, book: Playbook, plan: plans.Plan, known: dict[str, Agent]) -> Job:
    made = job.entries(book, None, plan, known, job.Versions(1, dict.fromkeys(known, 1)), DATA)
    spec = graph.JobSpec(made.tasks, name=f"{job.JOB}{book.name}", deadline=book.deadline)
    answer = await app.engine.execute(producing.Submit("the-job", spec, made.inputs))
    return await app.job(answer.job_id)


async def outcomes(made: Job, known: dict[str, Agent]) -> dict[str, aggregation.Outcome]:
    """Once the first stage is about to start, which it is when all agents have ended."""
    await engines.reaches(made, job.AGGREGATE, "pending")
    found: dict[str, aggregation.Outcome] = {}
    for name in known:
        detail = await made.task(name)
        error = detail.task.error
        failure = None if error is None else msgspec.convert(error, rows.Failure)
        found[name] = aggregation.Outcome(detail.task.state, detail.task.attempt, detail.output, failure)
    return found


def broken(given: dict[str, Any]) -> None:
    raise ValueError("no idea")


async def test_a25_the_others_go_on_without_the_agent_that_failed(url: str) -> None:
    once: dict[str, Any] = {"retry": {"maxAttempts": 1}}
    known = support.agents(
        support.agent("place"),
        support.agent("category", **once),
        support.agent("severity", "category"),
        support.agent("cost", "severity"),
        support.agent("alarm", "category", onParentFailure="fail"),
        support.agent("advice", "category", "place", onParentFailure="run"),
    )
    called: dict[str, dict[str, Any]] = {}

    def answering(given: dict[str, Any]) -> dict[str, Any]:
        called[given["agent_id"]] = given
        return {"value": given["agent_id"], "evidence": ["Dyers Lane"]}

    book = support.playbook(known)
    plan = plans.plan(book, None, known)
    async with engines.opened(url) as app:
        for name, agent in known.items():
            register(app, agent, broken if name == "category" else answering)
        ended = await outcomes(await start(app, book, plan, known), known)

    assert set(called) == {"place", "advice"}
    assert called["place"] == {"agent_id": "place", "raw_data": DATA, "parent_output": None}
    assert called["advice"]["parent_output"] == {
        "place": {"value": "place", "evidence": ["Dyers Lane"]},
        "category": None,
    }
    assert called["advice"]["parent_error"] == {"category": {"type": "ValueError", "message": "no idea"}}
    result = synthesis.synthesize(book, aggregation.aggregate(plan, known, ended), evaluate=lambda *_: None)
    assert result.synthesized == {"place": {"value": "place"}, "advice": {"value": "advice"}}
    assert [absence.agent for absence in result.failed] == ["category", "alarm"]
    assert [absence.agent for absence in result.skipped] == ["severity", "cost"]


async def test_x4_d_does_not_wait_for_a(url: str) -> None:
    known = support.agents(*[support.agent(name) for name in "ABCDE"])
    edges = support.graph("A>C", "B>D", "C>E")
    book = support.playbook(known)
    plan = plans.plan(book, edges, known)
    d_ran = asyncio.Event()
    order: list[str] = []

    async def answering(given: dict[str, Any]) -> dict[str, Any]:
        name = given["agent_id"]
        if name == "A":  # which ends after D, though D is one level further down
            await asyncio.wait_for(d_ran.wait(), engines.PATIENCE)
        if name == "D":
            d_ran.set()
        order.append(name)
        return {"value": name}

    async with engines.opened(url) as app:
        for agent in known.values():
            register(app, agent, answering)
        ended = await outcomes(await start(app, book, plan, known), known)
    assert {outcome.state for outcome in ended.values()} == {"completed"}
    assert order == ["B", "D", "A", "C", "E"]
