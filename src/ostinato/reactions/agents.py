"""How an agent is called, whatever it is made of: `{agent_id, raw_data, parent_output}` in, an object out."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from ostinato import context, errors, expressions, outgoing, threads
from ostinato.agents import cost, limiter, llm
from ostinato.core import codec, courses, executions, usage
from ostinato.pipelines import run
from ostinato.playbooks import definition, invocation, job
from ostinato.reactions import adapting, callouts, definitions, playbooks


async def arguments(ctx: context.Context, given: dict[str, Any]) -> dict[str, Any]:
    """What the agent of a task is called with: by its template, or what every agent gets."""
    said = job.given(given)
    outcomes = await ctx.dependency_outputs.load()
    member = said.pins.agents[ctx.task_id]
    of = job.JOB if member.agent is None else courses.JOB  # a step of a pipeline has a name of its own
    ctx.execution_arn = executions.own_arn(ctx.tenant, of + said.pins.playbook, ctx.job_id)
    call = invocation.invocation(
        ctx.task_id,
        run.as_reviewed(said.raw_data, said.pins.reviews, outcomes),
        member.parents,
        outcomes,
        tenant_id=ctx.tenant,
        domain_id=said.pins.domain_id,
        execution_arn=ctx.execution_arn,
    )
    template = said.template(ctx.task_id)
    render = functools.partial(_render, ctx.tenant)
    if template is None:
        return invocation.arguments(call, None, render)
    return await threads.run(lambda: invocation.arguments(call, template, render))


def as_function(name: str, code: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's as the engine calls it for a playbook. It gets those arguments that it has names for."""
    return adapting.adapted(name, code, arguments)


class Agents:
    """Agents that the engine calls itself."""

    def __init__(self, app: definitions.Application, calls: outgoing.Caller) -> None:
        self.playbooks = playbooks.Playbooks(app)
        self._app = app
        self._calls = calls
        self._models = llm.Llm(calls, limiter.shared())

    async def http(self, ctx: context.Context, **given: Any) -> Any:
        """POST to the address of the agent; what it answers is the output."""
        callouts.check_allowed(self._app.engine)
        agent = await self._agent(ctx, given)
        body = codec.encode(await arguments(ctx, given), "the input of the agent")
        secret = None if agent.secret is None else await callouts.secret(self._app.engine, agent.secret)
        answer = await self._calls.post(
            agent.url or "", body, secret=secret, idempotency_key=ctx.idempotency_key, timeout=ctx.lease.timeout or 10.0
        )
        try:
            return codec.parse(answer.body, "the answer of the agent")
        except errors.InvalidPayload as error:  # often the page of a gateway in between, and gone the next time
            raise errors.CallFailed(error.message, status=answer.status) from None

    async def llm(self, ctx: context.Context, **given: Any) -> Any:
        """Ask a model; what it answers fits the schema of the agent."""
        answer = await self.ask(ctx, await self._agent(ctx, given), await arguments(ctx, given))
        return answer.output | ({"evidence": list(answer.evidence)} if answer.evidence else {})

    async def ask(self, ctx: context.Context, agent: definition.Agent, about: Any) -> llm.LlmAnswer:
        """What was spent is recorded with the attempt, also if nothing came of it."""
        callouts.check_allowed(self._app.engine)
        said = agent.llm
        if said is None:
            raise errors.TerminalError(f"agent {agent.name!r} is no language model")
        settings = llm.LlmSettings(
            model=said.model,
            base_url=said.base_url,
            api_key="" if said.api_key is None else await callouts.secret(self._app.engine, said.api_key),
            system=said.system,
            temperature=said.temperature,
            price=None if said.price is None else cost.Price(said.price.input, said.price.output),
            evidence=said.evidence,
            parameters=said.parameters,
        )
        await self._check_budget(ctx, agent)
        meter = cost.Meter()
        try:
            return await self._models.ask(
                settings,
                codec.encode(about, "the input of the agent").decode(),
                agent.output_schema,
                timeout=ctx.lease.timeout or definition.TIMEOUT,
                idempotency_key=f"{ctx.idempotency_key}:{ctx.attempt}",
                meter=meter,
            )
        finally:
            spent = meter.usage
            if spent.calls:
                paid = cost.of(spent, settings.price) or 0.0
                used = usage.read(paid, spent.input_tokens, spent.output_tokens, spent.calls)
                with contextlib.suppress(errors.LeaseLost):
                    await ctx.record_usage(used, said.model, f"agent:{agent.name}")

    async def _check_budget(self, ctx: context.Context, agent: definition.Agent) -> None:
        """Not another question, once the attempts before have used up what they may together."""
        budget = agent.budget
        if budget is None or ctx.attempt == 1:
            return
        used = await self._app.engine.store.usage_of_task(ctx.tenant, ctx.job_id, ctx.task_id)
        tokens, paid = used.input_tokens + used.output_tokens, usage.money(used.cost)
        spent_tokens = budget.tokens is not None and tokens >= budget.tokens
        if spent_tokens or (budget.cost is not None and paid >= budget.cost):
            raise errors.TerminalError(
                f"the budget of agent {agent.name!r} is used up after {ctx.attempt - 1} attempts: {tokens} tokens, "
                f"{usage.shown(used.cost)}"
            )

    async def _agent(self, ctx: context.Context, given: dict[str, Any]) -> definition.Agent:
        member = job.given(given).pins.agents[ctx.task_id]
        return (await self.playbooks.agents.get(member.agent or ctx.task_id, member.version)).value


def _render(whose: str, template: Any, data: Any) -> Any:
    return expressions.render(template, data, "input", whose=whose)


def named(agents: Agents) -> dict[str, Any]:
    """By the names of the functions."""
    return {f"{job.AGENT}http": agents.http, f"{job.AGENT}llm": agents.llm}
