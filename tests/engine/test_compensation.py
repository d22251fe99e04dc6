"""B7: once a task that compensates has begun, nothing before it runs again."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Context, TerminalError, errors, testing
from tests.engine import support
from tests.engine.support import job, standing, task

ORDER = job(
    task("charge", "note"),
    task("ship", "note", "charge", onDependencyFailure="skip"),
    task("refund", "note", "charge ship", onDependencyFailure="run", compensates=True),
    task("letter", "note", "refund"),
    task("beside", "note"),
)


def shop(url: str, failing: set[str]) -> tuple[Any, list[str]]:
    app, runs = support.make(url), list[str]()

    @app.function
    async def note(ctx: Context) -> None:
        runs.append(ctx.task_id)
        if ctx.task_id in failing:
            raise TerminalError("as asked")

    return app, runs


async def test_what_was_compensated_does_not_run_again(url: str) -> None:
    """B7: resume, also dry, retry and redrive refuse it, and say why and what to do."""
    failing = {"ship"}
    app, runs = shop(url, failing)
    async with testing.open(app) as kit:
        made = await app.submit(ORDER)
        await kit.run_until_idle()
        assert sorted(runs) == ["beside", "charge", "letter", "refund", "ship"]
        failing.clear()
        runs.clear()
        why = "'refund' compensates what came before it \\('ship'\\) and has begun; submit a new job"
        for dry_run in (True, False):
            with pytest.raises(errors.NotPossible, match=f"cannot be resumed: {why}") as caught:
                await made.resume(dry_run=dry_run)
            assert caught.value.details == {"taskIds": ["ship"], "compensatedBy": ["refund"]}
        with pytest.raises(errors.NotPossible, match=f"task 'ship' does not run again: {why}"):
            await made.retry_task("ship")
        with pytest.raises(errors.NotPossible, match="submit a new job"):
            await app.redrive([(made.job_id, "ship")])
        await kit.run_until_idle()
        assert runs == []
        await kit.audit()


async def test_a_compensation_that_failed_runs_again_by_itself(url: str) -> None:
    """B7: with what comes after it, and what is beside it."""
    failing = {"ship", "refund", "beside"}
    app, runs = shop(url, failing)
    async with testing.open(app) as kit:
        made = await app.submit(ORDER)
        await kit.run_until_idle()
        failing.clear()
        runs.clear()
        plan = await made.resume(dry_run=True)
        assert (plan.rerun, plan.reused, plan.waiting) == (["refund", "beside"], [], ["letter"])
        assert (plan.undone, plan.undone_by) == (["charge", "ship"], ["refund"])
        assert await made.resume() == plan
        await kit.run_until_idle()
        assert sorted(runs) == ["beside", "letter", "refund"]
        assert (await standing(made))["ship"] == "failed"
        await kit.audit()


async def test_before_it_has_begun_a_compensation_changes_nothing(url: str) -> None:
    """B7: and one that has nothing before it is refused."""
    failing = {"charge"}
    app, runs = shop(url, failing)
    async with testing.open(app) as kit:
        waits = task("refund", "note", "charge ship", onDependencyFailure="run", compensates=True, delay=60)
        made = await app.submit(job(task("charge", "note"), task("ship", "note", "charge"), waits))
        await kit.run_until_idle()
        failing.clear()
        assert (await made.resume()).undone == []
        await kit.advance(61)
        await kit.run_until_idle()
        assert runs == ["charge", "charge", "ship"]
        with pytest.raises(errors.InvalidInput, match="compensates nothing"):
            await app.submit(job(task("a", compensates=True)))
        graph = app.graph("order")
        first = graph.task("note")
        graph.task("note", after=first, options={"compensates": True})
        assert graph.document()["tasks"][1]["compensates"] is True
        await kit.audit()
