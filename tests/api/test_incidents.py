"""The incidents example over HTTP with somebody watching: once with all agents well, once with three that are not."""

from __future__ import annotations

import asyncio

import httpx2

from ostinato import Ostinato, TerminalError
from tests.api import support
from tests.api.test_playbooks import output, serving, watched
from tests.playbooks.test_incidents import code
from tests.playbooks.test_incidents import documents as definitions_of

REPORT = {"text": "Smoke from a roof in Dyers Lane at 06:40, two people are trapped.", "reportedAt": "2026-03-09T06:52"}
READ = {
    "place": "Dyers Lane",
    "at": "2026-03-09T06:40",
    "stated": True,
    "category": "fire",
    "severity": "high",
    "level": 3,
    "summary": "Smoke from a roof in Dyers Lane at 06:40, two people are trapped",
}
NAMES = ("place", "time", "category", "severity", "summary")


def prepare(app: Ostinato) -> None:
    code.register(app)

    @app.agent("test.fails")
    async def fails() -> None:
        raise TerminalError("the map is gone")

    @app.agent("test.sleeps")
    async def sleeps() -> None:
        await asyncio.sleep(60)

    @app.agent("test.rambles")
    async def rambles() -> dict[str, str]:
        return {"summary": "word " * 100}


async def define(client: httpx2.AsyncClient) -> None:
    for kind in ("agents", "graphs", "playbooks"):
        for name, document in definitions_of(kind).items():
            assert (await client.put(f"/v1/{kind}/{name}", json=document)).status_code == 200


def in_order(told: list[str], *failed: str) -> None:
    """A21, A23: each agent begins before it ends, severity begins after category, and the stages come last."""
    assert (told[0], told[-3:]) == ("loading_agents", ["validating", "synthesizing", "complete"])
    middle = told[1:-3]
    assert sorted(middle) == sorted(
        [f"invoking_{name}" for name in NAMES]
        + [f"agent_failed_{name}" if name in failed else f"agent_complete_{name}" for name in NAMES]
    )
    for name in set(NAMES) - set(failed):
        assert middle.index(f"invoking_{name}") < middle.index(f"agent_complete_{name}")
    assert middle.index("agent_complete_category") < middle.index("invoking_severity")


async def test_all_agents_are_well_and_then_three_are_not(url: str) -> None:
    """A25: what the others found is kept and saved, and the answer says who is missing and why."""
    async with serving(url, prepare=prepare) as (_, client):
        await define(client)
        told, job_id = await watched(client, "/ingest", 14, domain="incidents", data=REPORT)
        in_order(told)
        assert (await support.ended(client, job_id))["state"] == "completed"
        answer = await output(client, job_id, "$synthesize")
        assert (answer["synthesized"], answer["failed"], answer["skipped"]) == (READ, [], [])

        for name, function in (("place", "test.fails"), ("time", "test.sleeps"), ("summary", "test.rambles")):
            changed = definitions_of("agents")[name] | {"function": function, "retry": {"maxAttempts": 1}}
            changed |= {"timeout": 0.3} if name == "time" else {}
            assert (await client.put(f"/v1/agents/{name}", json=changed)).json()["version"] == 2
        told, job_id = await watched(client, "/ingest", 14, domain="incidents", data=REPORT)
        in_order(told, "place", "time")
        assert (await support.ended(client, job_id))["state"] == "completed"
        answer = await output(client, job_id, "$synthesize")
        assert answer["synthesized"] == {name: READ[name] for name in ("category", "severity", "level")}
        failed = {item["agent"]: item["error"] for item in answer["failed"]}
        assert set(failed) == {"place", "time", "summary"}
        assert (failed["place"]["message"], failed["time"]["type"]) == ("the map is gone", "TaskTimeout")
        (violation,) = (await output(client, job_id, "$validate"))["errors"]
        assert "summary" in str(violation)
        assert (await output(client, job_id, "$save"))["status"] == "saved"

        asked = await client.post("/query", json={"domain_id": "incidents", "data": {"question": "How many fires?"}})
        question = asked.json()["job_id"]
        assert (await support.ended(client, question))["state"] == "completed"
        answer = await output(client, question, "$synthesize")
        assert answer["synthesized"]["count"]["byCategory"] == {"fire": 2}
        assert answer["failed"] == []
