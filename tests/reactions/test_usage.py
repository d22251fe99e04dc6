"""What agents ask models for is paid for, also when nothing comes of it."""

from __future__ import annotations

from typing import Any

from ostinato import audit, views
from tests.agents import support as models
from tests.engine import support
from tests.engine.support import PATIENCE
from tests.reactions.test_playbooks import agent, define

BAD = {"category": "earthquake", "severity": 0}
SETTINGS: dict[str, Any] = {"model": "small", "system": "Be brief.", "price": {"input": 100, "output": 1000}}


async def test_the_answers_of_models_are_paid_for_whatever_becomes_of_them(url: str) -> None:
    app = support.make(url, webhooks=True, webhook_networks=("127.0.0.1",))
    async with models.running() as endpoint, app:
        endpoint.plan(models.saying(BAD), models.saying(BAD), models.saying())
        model = SETTINGS | {"baseUrl": endpoint.base_url}
        retry = {"maxAttempts": 2, "baseDelay": 0.01}
        judge = agent("judge", kind="llm", function=None, llm=model, outputSchema=models.SCHEMA, retry=retry)
        await define(app, judge)
        made = await app.ingest("d", {"text": "smoke"})
        answer = (await made.result(PATIENCE))["$synthesize"]
        assert answer["synthesized"] == {"judge": {"category": "fire", "severity": 2}}
        detail = await made.task("judge")
        assert [attempt.usage for attempt in detail.attempts] == [
            views.UsageView(0.06, 2, 200, 40),
            views.UsageView(0.03, 1, 100, 20),
        ]
        assert detail.steps == []
        assert (await made.info()).spent == 0.09
        assert [(row.key, row.cost) for row in (await app.usage("function")).rows] == [("agent:judge", 0.09)]
        assert [row.key for row in (await app.usage("name")).rows] == ["playbook:p"]
        assert not (await audit.audit(app.engine.store)).problems
