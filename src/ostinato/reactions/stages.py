"""The stages of a playbook, as functions of the engine: load, plan, put the answers together, judge and save them.

Each may run more than once, and does the same once: what it read is pinned by versions, what it enters is a step.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import msgspec

from ostinato import embedding, expressions, results, threads
from ostinato.agents import schema
from ostinato.context import Context
from ostinato.core import codec, commands, rows
from ostinato.engine import engine
from ostinato.playbooks import aggregation, job, synthesis, validation
from ostinato.reactions import agents, definitions, playbooks

PLANNED = "plan"


class Stages:
    def __init__(self, app: definitions.Application, callers: agents.Agents, embedder: embedding.Embedder) -> None:
        self._playbooks = callers.playbooks  # what one has read, the other need not read again
        self._app = app
        self._callers = callers
        self._results = results.Results(lambda: app.engine, embedder)

    async def load(self, ctx: Context, playbook: str, version: int, raw_data: str) -> dict[str, Any]:
        """Which versions of its agents the job works with: the newest, also of those that were saved a moment ago."""
        await asyncio.gather(self._playbooks.agents.refresh(), self._playbooks.graphs.refresh())
        found = await self._playbooks.configuration(playbook, version)
        return {"agents": dict(found.versions.agents)}

    async def load_graph(self, ctx: Context, playbook: str, version: int, raw_data: str) -> dict[str, Any]:
        found = await self._playbooks.configuration(playbook, version)
        return {"graph": found.versions.graph}

    async def plan(self, ctx: Context, playbook: str, version: int, raw_data: str) -> dict[str, Any]:
        """Enter a task for each agent and for each stage after them."""
        loaded = await ctx.dependency_outputs.load()
        versions = job.Versions(version, loaded[job.LOAD]["agents"], loaded[job.LOAD_GRAPH]["graph"])
        found = await self._playbooks.pinned(playbook, versions)
        made = found.plan
        if PLANNED not in await self._engine.read_steps(ctx.lease):
            entries = job.entries(found.playbook, found.edges, made, found.agents, versions, codec.decode(raw_data))
            await self._engine.execute(commands.AddTasks(ctx.job_id, entries.tasks, entries.inputs, ctx.lease, PLANNED))
        return {"levels": made.levels, "criticalPath": made.critical_path, "warnings": made.warnings}

    async def aggregate(self, ctx: Context, **given: Any) -> Any:
        """What became of all agents, if any of them has answered."""
        found = await self._configuration(given)
        outcomes = {
            task.task_id: await self._outcome(task)
            for task in await self._engine.store.all_tasks(ctx.tenant, ctx.job_id)
        }
        answers = aggregation.aggregate(found.plan, found.agents, outcomes)
        await threads.run(lambda: validation.check_answered(answers, found.agents, _violations))
        return msgspec.to_builtins(answers)

    async def validate(self, ctx: Context, **given: Any) -> Any:
        """Whether they answered what their schemas say."""
        found = await self._configuration(given)
        answers = await _aggregate(ctx)
        return msgspec.to_builtins(await threads.run(lambda: validation.validate(answers, found.agents, _violations)))

    async def synthesize(self, ctx: Context, **given: Any) -> Any:
        """One answer of all that are valid."""
        found = await self._configuration(given)
        outputs = await ctx.dependency_outputs.load()
        report = msgspec.convert(outputs[job.VALIDATE], validation.Report)
        answers = validation.marked(await _aggregate(ctx), report)
        synthesizer = found.playbook.synthesis.agent
        if synthesizer is None:
            evaluate = functools.partial(_evaluate, ctx.tenant)
            made = await threads.run(lambda: synthesis.synthesize(found.playbook, answers, evaluate=evaluate))
            return msgspec.to_builtins(made)
        question = synthesis.question(
            synthesizer,
            answers,
            job.given(given).raw_data,
            tenant_id=ctx.tenant,
            domain_id=found.playbook.domain,
        )
        answer = await self._callers.ask(ctx, found.agents[synthesizer], msgspec.to_builtins(question))
        own = {synthesizer: list(answer.evidence)} if answer.evidence else {}
        return msgspec.to_builtins(synthesis.result(answers, answer.output, own))

    async def save(self, ctx: Context, **given: Any) -> dict[str, Any]:
        """Keep the answer, to be found by its words, its meaning and its fields."""
        found = await self._configuration(given)
        said = job.given(given)
        answer = (await ctx.dependency_outputs.load())[job.SYNTHESIZE]
        about = {
            "raw_data": said.raw_data,
            "synthesized": answer["synthesized"],
            "job_id": ctx.job_id,
            "tenant_id": ctx.tenant,
            "domain_id": found.playbook.domain,
        }
        wanted = {"text": found.playbook.save.text, "fields": found.playbook.save.fields}
        filled = await threads.run(lambda: expressions.render(wanted, about, "save", whose=ctx.tenant))
        saved = await self._results.save(
            ctx.job_id, answer, domain=found.playbook.domain, kind=found.playbook.type, **filled
        )
        return {"incident_id": saved.result_id, "status": "saved"}

    # --- reading ----------------------------------------------------------------------------------------------------

    async def _configuration(self, given: dict[str, Any]) -> playbooks.Configuration:
        pins = job.given(given).pins
        return await self._playbooks.pinned(pins.playbook, pins.versions)

    async def _outcome(self, task: rows.Task) -> aggregation.Outcome:
        output = None
        if task.output is not None:
            stored = await self._engine.store.payload(self._engine.tenant, task.job_id, task.output)
            output = codec.decode(stored)
        failure = None if task.error is None else msgspec.convert(codec.decode(task.error), rows.Failure)
        return aggregation.Outcome(task.state, task.attempt - task.attempt_base, output, failure)

    @property
    def _engine(self) -> engine.Engine:
        return self._app.engine


async def _aggregate(ctx: Context) -> aggregation.Aggregate:
    outputs = await ctx.dependency_outputs.load()
    return msgspec.convert(outputs[job.AGGREGATE], aggregation.Aggregate)


def _violations(given: Any, value: Any) -> list[tuple[str, str]]:
    return [(violation.path, violation.message) for violation in schema.validate(given, value)]


def _evaluate(whose: str, expression: str, data: Any) -> Any:
    return expressions.Expression(expression, "synthesis.expression").evaluate(data, whose=whose)


def named(stages: Stages) -> dict[str, Any]:
    """By the names of the functions."""
    return {
        f"{job.STAGE}{name.removeprefix('$')}": code
        for name, code in {
            job.LOAD: stages.load,
            job.LOAD_GRAPH: stages.load_graph,
            job.PLAN: stages.plan,
            job.AGGREGATE: stages.aggregate,
            job.VALIDATE: stages.validate,
            job.SYNTHESIZE: stages.synthesize,
            job.SAVE: stages.save,
        }.items()
    }
