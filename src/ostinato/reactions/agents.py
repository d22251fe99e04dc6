"""How an agent is called, whatever it is made of: `{agent_id, raw_data, parent_output}` in, an object out."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from ostinato import context, expressions, functions, outgoing, threads
from ostinato.core import codec
from ostinato.core.retry import NO_RETRY
from ostinato.playbooks import invocation, job
from ostinato.reactions import callouts, definitions, playbooks


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

    async def http(self, ctx: context.Context, **given: Any) -> Any:
        """POST to the address of the agent; what it answers is the output."""
        callouts.check_allowed(self._app.engine)
        member = job.given(given).pins.agents[ctx.task_id]
        agent = (await self._playbooks.agents.get(ctx.task_id, member.version)).value
        body = codec.encode(await arguments(ctx, given), "the input of the agent")
        secret = None if agent.secret is None else await callouts.secret(self._app.engine, agent.secret)
        answer = await self._calls.post(
            agent.url or "", body, secret=secret, idempotency_key=ctx.idempotency_key, timeout=ctx.lease.timeout or 10.0
        )
        return codec.parse(answer.body, "the answer of the agent")


def _render(template: Any, data: Any) -> Any:
    return expressions.render(template, data, "input")


def named(agents: Agents) -> dict[str, Any]:
    """By the names of the functions."""
    return {f"{job.AGENT}http": agents.http}
