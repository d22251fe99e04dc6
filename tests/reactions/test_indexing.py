"""Executions that events tell of: indexed as the events come in, by tags, or because a rule says so."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Ostinato, errors
from tests.engine import support
from tests.engine.support import until
from tests.reactions.support import quiet

MACHINE = "arn:aws:states:us-west-2:123:stateMachine:my-agent-prod"
TAGS = {"Type": "Agent", "Application": "StepFunctionsAgent"}


def change(status: str, number: int = 1, **detail: Any) -> dict[str, Any]:
    """As AWS sends it (C2, C4)."""
    return {
        "id": f"{status}-{number}",
        "source": "aws.states",
        "detail-type": "Step Functions Execution Status Change",
        "detail": {
            "executionArn": f"arn:aws:states:us-west-2:123:execution:my-agent-prod:abc{number}",
            "stateMachineArn": MACHINE,
            "name": f"abc{number}",
            "status": status,
            "startDate": 1_759_149_290_000,
        }
        | ({} if status == "RUNNING" else {"stopDate": 1_759_149_300_000})
        | detail,
    }


async def test_c3_tags_decide_and_c5_the_stage_is_dropped(url: str) -> None:
    async with support.opened(url) as app:
        [first] = await app.post_events(change("RUNNING"))
        assert (first.outcome, first.indexed) == ("recorded", False)
        assert first.skipped is not None
        assert "tags" in first.skipped
        await app.index.tag(MACHINE, TAGS)
        answers = await app.post_events([change("SUCCEEDED"), change("RUNNING"), change("RUNNING", 2)])
        assert [(answer.outcome, answer.indexed) for answer in answers] == [
            ("recorded", True),
            ("duplicate", True),
            ("recorded", True),
        ]
        found = {view.execution_name: view for view in (await app.executions(agent_name="my-agent"))}
        assert {name: view.status for name, view in found.items()} == {"abc1": "SUCCEEDED", "abc2": "RUNNING"}
        assert found["abc1"].duration_seconds == 10
        await app.rebuild_index()
        assert {view.execution_name: view for view in (await app.executions(agent_name="my-agent"))} == found


async def test_an_unknown_status_is_answered_for_that_entry(url: str) -> None:
    async with support.opened(url) as app:
        good, refused = await app.post_events([change("RUNNING"), change("PENDING_REDRIVE", 2)])
        assert (good.outcome, refused.outcome, refused.code) == ("recorded", "refused", "invalid_input")
        assert refused.field == "events[1].detail.status"
        assert refused.detail is not None
        assert "PENDING_REDRIVE" in refused.detail
        with pytest.raises(errors.InvalidInput, match="PENDING_REDRIVE"):
            await app.post_events(change("PENDING_REDRIVE"))


async def test_a_rule_writes_to_the_index(url: str) -> None:
    target = {
        "executionArn": "{% 'arn:acme:run:' & detail.run %}",
        "stateMachineArn": "nightly-prod",
        "status": "{% detail.ok ? 'SUCCEEDED' : 'FAILED' %}",
        "startDate": "{% detail.began %}",
        "stopDate": "{% detail.ended %}",
    }
    async with support.opened(url) as app:
        await app.rules.define({"name": "runs", "pattern": {"source": ["acme"]}, "targets": [{"index": target}]})
        event = {"source": "acme", "id": "1", "detail-type": "Run Ended"}
        await app.post_events(event | {"detail": {"run": "7", "ok": False, "began": 1000, "ended": 3000}})
        [view] = await until(lambda: found(app, "nightly"), "the execution")
        assert (view.execution_arn, view.status, view.duration_seconds) == ("arn:acme:run:7", "FAILED", 2)


async def test_rules_act_once_on_what_was_reported_and_posted(url: str) -> None:
    job = {"name": "next", "tasks": [{"taskId": "a", "name": "echo"}]}
    async with support.opened(url) as app:
        await app.rules.define({"name": "ends", "pattern": {"source": ["aws.states"]}, "targets": [{"job": job}]})
        await app.index.report([change("FAILED")])
        [answer] = await app.post_events(change("FAILED"))
        assert answer.outcome == "duplicate"
        await quiet(app)
        assert len(await app.jobs(name="next")) == 1


async def found(app: Ostinato, agent: str) -> list[Any]:
    return list(await app.executions(agent_name=agent))
