"""How a step of a pipeline is called: with what is known of its item, and what the steps before it came to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from ostinato import context, errors, expressions
from ostinato.core import budgets, commands, courses, documents, usage
from ostinato.pipelines import run as runs
from ostinato.reactions import adapting, definitions, pipelines


class Keeping:
    """What the engine itself does about items: it takes back what steps did, and raises budgets that people raise."""

    def __init__(self, app: definitions.Application) -> None:
        self._app = app
        self._pipelines = pipelines.Pipelines(app)

    async def undo(
        self, ctx: context.Context, item_id: str, version: int, run: int, job_id: str, steps: Sequence[str]
    ) -> list[str]:
        """Enter a task for each step that is to be taken back. Their order is the reverse of that of the course."""
        store = self._app.engine.store
        item, payload = await store.item(ctx.tenant, item_id)
        course = await self._pipelines.course(item.pipeline, version)
        about = runs.given(course, item_id, run, payload)
        return await ctx.add_tasks(runs.undo(course, steps, about, await store.outputs(ctx.tenant, job_id)))

    async def when(self, ctx: context.Context, **given: Any) -> bool:
        """Evaluate the condition of a step, once; where it is false, the step is left out."""
        name = ctx.task_id.removeprefix(courses.CONDITION)
        about = runs.read_given(given, await ctx.dependency_outputs.load())
        course = await self._pipelines.course(about["pipeline"], about["version"])
        holds: bool = await ctx.step("condition", _holds, name, course.steps[name].when or "true", about)
        if not holds:
            await self._app.engine.execute(commands.OmitStep(ctx.lease))
        return holds

    async def raise_budget(self, ctx: context.Context, item_id: str, job_id: str, budget: float) -> str:
        """Do what was decided about an item that has cost what it may: let it go on, or give it up. Who gives too
        little, or what is no amount at all, is asked again."""
        decided = (await ctx.dependency_outputs.load())[commands.APPROVE]
        running = self._app.engine
        item, _ = await running.store.item(ctx.tenant, item_id)
        if item.question() != ctx.job_id:
            return "it went on, or was given up, before this was decided"
        if decided is None or "error" in decided:
            await running.execute(commands.RollBack(item_id, reason="nobody wants it to cost more"))
            return "given up"
        more = _raised(decided["payload"], budget)
        await running.execute(commands.SetBudget(job_id, more, actor=", ".join(decided["reviewedBy"])))
        return f"raised to {usage.shown(more)}"

    async def raise_tenant_budget(self, ctx: context.Context, scope: str, period: str, budget: float) -> str:
        """Do what was decided about a tenant that has spent what it may. Who gives too little is asked again."""
        decided = (await ctx.dependency_outputs.load())[commands.APPROVE]
        running = self._app.engine
        if decided is None or budgets.period(scope, running.db.now()) != period:
            return "nobody has decided in time"
        was, more = usage.micros(budget, "budget"), _raised(decided["payload"], budget)
        raised = await running.store.raise_budget(ctx.tenant, scope, was, more)
        running.timers.wake()
        return f"raised to {usage.shown(more)}" if raised else "it is another budget by now, or this is no more than it"


def _holds(step: str, when: str, about: dict[str, Any]) -> bool:
    found = expressions.Expression(when, f"the condition of step {step!r}").evaluate(about, default=None)
    if not isinstance(found, bool):
        gives = "nothing" if found is None else documents.short(found)
        raise errors.ConditionFailed(
            f"the condition of step {step!r} gives {gives}, not true or false: use $exists(…) or $boolean(…) for what "
            f"may be missing, in {documents.short(when)}"
        )
    return found


def _raised(payload: Any, budget: float) -> int:
    """What somebody has raised a budget to; with what makes no sense, it stays what it was."""
    with contextlib.suppress(errors.InvalidInput, KeyError, TypeError):
        return usage.micros(payload["raiseTo"], "raiseTo")
    return usage.micros(budget, "budget")


def as_function(name: str, code: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's as the engine calls it for a pipeline. It gets those arguments that it has names for:
    `item`, `item_id`, `results`, `pipeline`, `version`, `run`, and `output` if it takes back what a step did."""
    return adapting.adapted(name, code, _arguments)


async def _arguments(ctx: context.Context, given: dict[str, Any]) -> dict[str, Any]:
    return runs.read_given(given, await ctx.dependency_outputs.load())


def named(keeping: Keeping) -> dict[str, Any]:
    """By the names of the functions."""
    return {
        commands.UNDO: keeping.undo,
        runs.WHEN: keeping.when,
        commands.RAISE: keeping.raise_budget,
        commands.RAISE_TENANT: keeping.raise_tenant_budget,
    }
