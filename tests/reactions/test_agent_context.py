"""What an agent knows of its execution, and who chooses the id of its job."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Context, errors
from tests.engine import support
from tests.engine.support import PATIENCE, until
from tests.reactions.test_playbooks import agent, define

COURSE = [{"status": "in"}, {"step": "ask", "agent": "told", "statuses": ["to_ask", "asking", "asked"]}]


async def test_a2_an_agent_knows_the_arn_of_its_execution(url: str) -> None:
    """A2: in a playbook, in a template, and as a step of a pipeline."""
    app = support.make(url)

    @app.agent("agent-told")
    async def told(ctx: Context) -> dict[str, Any]:
        return {"value": ctx.execution_arn}

    @app.agent("agent-templated")
    async def templated(arn: str) -> dict[str, Any]:
        return {"value": arn}

    async with app:
        await define(app, agent("told"), agent("templated", input={"arn": "{% execution_arn %}"}))
        made = await app.ingest("d", None)
        answer = (await made.result(PATIENCE))["$synthesize"]["synthesized"]
        [execution] = await app.executions(agent_name="playbook:p")
        arn = execution.execution_arn
        assert answer == {"told": {"value": arn}, "templated": {"value": arn}}
        names = ["in", "to_ask", "asking", "asked", "done", "failed", "dead"]
        await app.pipelines.define(
            {
                "name": "line",
                "statuses": [{"code": 100 + n, "name": name} for n, name in enumerate(names)],
                "course": [*COURSE, {"status": "done"}],
                "failed": "failed",
                "deadLetter": "dead",
            }
        )
        entered = await app.pipelines.enter("line", {})
        assert entered.job_id is not None

        async def ended() -> Any:
            return (await app.executions(agent_name="pipeline:line", status="SUCCEEDED")) or None

        [run] = await until(ended, "the run")
        outputs = await (await app.job(entered.job_id)).result(PATIENCE)
        assert outputs["ask"] == {"value": run.execution_arn}


async def test_a_job_of_a_playbook_may_have_an_id_that_was_chosen(url: str) -> None:
    app = support.make(url)

    @app.agent("agent-a")
    async def run() -> dict[str, Any]:
        return {"value": "x"}

    async with app:
        await define(app, agent("a"))
        made = await app.ingest("d", {"n": 1}, job_id="report-1")
        assert (made.job_id, made.created) == ("report-1", True)
        again = await app.ingest("d", {"n": 1}, job_id="report-1")
        assert (again.job_id, again.created) == ("report-1", False)
        with pytest.raises(errors.IdempotencyConflict):
            await app.ingest("d", {"n": 2}, job_id="report-1")
        with pytest.raises(errors.InvalidInput, match="job_id"):
            await app.ingest("d", {"n": 2}, job_id="a b")
        await made.result(PATIENCE)
