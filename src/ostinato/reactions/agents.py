"""How an agent is called, whatever it is made of: `{agent_id, raw_data, parent_output}` in, an object out."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from typing import Any

import msgspec

from ostinato import context, errors, expressions, functions, outgoing, threads
from ostinato.agents import cost, llm
from ostinato.core import codec, commands
from ostinato.core.retry import NO_RETRY
from ostinato.playbooks import definition, invocation, job
from ostinato.reactions import callouts, definitions, playbooks

USAGE = "usage#"
"""Steps of an agent's task that say what each attempt has used up."""


async def arguments(ctx: context.Context, given: dict[str, Any]) -> dict[str, Any]:
    """What the agent of a task is called with: by its template, or what every agent gets."""
    said = job.given(given)
    outcomes = await ctx.dependency_outputs.load()
    call = invocation.invocation(
        ctx.task_id,
        said.raw_data,
        said.pins.agents[ctx.task_id].parents,
        outcomes,
        tenant_id=ctx.tenant,
        domain_id=said.pins.domain_id,
    )
    template = said.template(ctx.task_id)
    if template is None:
        return invocation.arguments(call, None, _render)
    return await threads.run(lambda: invocation.arguments(call, template, _render))


def as_function(code: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's as the engine calls it for a playbook. It gets those arguments that it has names for."""
    inner = functions.Function(getattr(code, "__name__", "agent"), code, retry=NO_RETRY, timeout=None)

    @functools.wraps(code)
    async def run(ctx: context.Context, **given: Any) -> Any:
        found = await arguments(ctx, given)
        chosen = inner.bind(ctx, inner.known(found))
        if inner.is_async:
            return await code(**chosen)
        if inner.takes_context:
            chosen["ctx"] = context.SyncContext(ctx, asyncio.get_running_loop())
        return await threads.run(lambda: code(**chosen))

    del run.__wrapped__  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    return run


class Agents:
    """Agents that the engine calls itself."""

    def __init__(self, app: definitions.Application, calls: outgoing.Caller) -> None:
        self._playbooks = playbooks.Playbooks(app)
        self._app = app
        self._calls = calls
        self._models = llm.Llm(calls)

    async def http(self, ctx: context.Context, **given: Any) -> Any:
        """POST to the address of the agent; what it answers is the output."""
        callouts.check_allowed(self._app.engine)
        agent = await self._agent(ctx, given)
        body = codec.encode(await arguments(ctx, given), "the input of the agent")
        secret = None if agent.secret is None else await callouts.secret(self._app.engine, agent.secret)
        answer = await self._calls.post(
            agent.url or "", body, secret=secret, idempotency_key=ctx.idempotency_key, timeout=ctx.lease.timeout or 10.0
        )
        return codec.parse(answer.body, "the answer of the agent")

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
        )
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
            await self._record(ctx, agent, meter)

    async def _record(self, ctx: context.Context, agent: definition.Agent, meter: cost.Meter) -> None:
        usage = {"agent": agent.name, **msgspec.to_builtins(meter.usage)}
        price = None if agent.llm is None or agent.llm.price is None else agent.llm.price
        if price is not None:
            usage["cost"] = cost.of(meter.usage, cost.Price(price.input, price.output))
        with contextlib.suppress(errors.LeaseLost):
            await self._app.engine.execute(commands.RecordStep(ctx.lease, f"{USAGE}{ctx.attempt}", codec.encode(usage)))

    async def _agent(self, ctx: context.Context, given: dict[str, Any]) -> definition.Agent:
        member = job.given(given).pins.agents[ctx.task_id]
        return (await self._playbooks.agents.get(ctx.task_id, member.version)).value


def _render(template: Any, data: Any) -> Any:
    return expressions.render(template, data, "input")


def named(agents: Agents) -> dict[str, Any]:
    """By the names of the functions."""
    return {f"{job.AGENT}http": agents.http, f"{job.AGENT}llm": agents.llm}
