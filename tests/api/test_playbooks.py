"""Playbooks over HTTP: defined, planned, given data and questions, and watched while they work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from ostinato import Ostinato, TerminalError
from ostinato.api import server
from tests.api import support
from tests.api.support import Site, problem
from tests.api.test_graphql import ask, refused
from tests.api.test_streams import Live, receive, subscribe
from tests.api.test_streams import events_of as read_events
from tests.engine.support import PATIENCE

TEXT = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
PLAYBOOK: dict[str, Any] = {"domain": "d", "type": "ingestion", "agents": ["a", "b"], "graph": "g"}


def agent(name: str, **fields: Any) -> dict[str, Any]:
    told = {"kind": "function", "function": f"agent-{name}", "outputSchema": TEXT, "retry": {"maxAttempts": 1}}
    return told | fields


async def put(client: httpx2.AsyncClient, path: str, document: dict[str, Any]) -> int:
    answer = await client.put(f"/v1/{path}", json=document)
    assert answer.status_code == 200, answer.text
    return answer.json()["version"]


async def define(client: httpx2.AsyncClient, **fields: Any) -> None:
    """A playbook in which `b` needs `a`, and others need nobody."""
    playbook = PLAYBOOK | fields
    for name in playbook["agents"]:
        await put(client, f"agents/{name}", agent(name, timeout=0.3) if name == "slow" else agent(name))
    await put(client, "graphs/g", {"edges": [{"from": "a", "to": "b"}]})
    await put(client, "playbooks/p", playbook)


def register(app: Ostinato) -> list[str]:
    """The functions of the agents; the answer lists their calls."""
    calls: list[str] = []

    def well(name: str) -> None:
        @app.agent(f"agent-{name}")
        async def run(raw_data: Any) -> dict[str, Any]:
            calls.append(name)
            return {"value": f"{name} of {raw_data}", "evidence": [raw_data]}

    for name in ("a", "b", "c"):
        well(name)

    @app.agent("agent-bad")
    async def bad() -> None:
        raise TerminalError("no idea")

    @app.agent("agent-slow")
    async def slow() -> None:
        await asyncio.sleep(60)

    @app.agent("agent-wrong")
    async def wrong() -> dict[str, int]:
        return {"value": 7}

    return calls


@contextlib.asynccontextmanager
async def serving(url: str, **options: Any) -> AsyncGenerator[tuple[Live, httpx2.AsyncClient]]:
    """A server on a real port, with functions for the agents, and a client who may do everything."""
    async with support.opened(url, port=0, **({"prepare": register} | options)) as site:
        listener = server.Listener(site.server)
        await listener.start()
        live = Live(site, listener.address)
        key = await site.key()
        try:
            async with httpx2.AsyncClient(headers=live.headers(key), base_url=live.address, timeout=PATIENCE) as client:
                yield live, client
        finally:
            await listener.stop()


async def watched(
    client: httpx2.AsyncClient, path: str, count: int, *, domain: str = "d", data: Any = "x"
) -> tuple[list[str], str]:
    """Send data while somebody follows all jobs: the statuses in the order in which they come, and the job."""
    async with client.stream("GET", "/v1/events/stream?types=Status%20Published") as stream:
        answer = await client.post(path, json={"domain_id": domain, "data": data})
        assert answer.status_code == 202, answer.text
        async with asyncio.timeout(PATIENCE):
            events = await read_events(stream, count)
    job_id = answer.json()["job_id"]
    assert {event["jobId"] for event in events} == {job_id}
    return [event["properties"]["status"] for event in events], job_id


async def output(client: httpx2.AsyncClient, job_id: str, task_id: str) -> Any:
    return (await client.get(f"/v1/jobs/{job_id}/tasks/{task_id}")).json()["output"]


# --- from data to answer, with somebody watching -------------------------------------------------------------------


async def test_a_subscriber_sees_the_statuses_in_order(url: str) -> None:
    """A3, A21, A22, A23: the seed's names for how a job stands, live."""
    async with serving(url) as (_, client):
        await define(client)
        told, job_id = await watched(client, "/ingest", 8)
        assert told == [
            "loading_agents",
            "invoking_a",
            "agent_complete_a",
            "invoking_b",
            "agent_complete_b",
            "validating",
            "synthesizing",
            "complete",
        ]
        assert (await support.ended(client, job_id))["state"] == "completed"
        answer = await output(client, job_id, "$synthesize")
        assert answer["synthesized"] == {"a": {"value": "a of x"}, "b": {"value": "b of x"}}
        assert answer["evidence"] == {"a": ["x"], "b": ["x"]}
        saved = await output(client, job_id, "$save")
        assert saved["status"] == "saved"
        found = (await client.get(f"/v1/results/{saved['incident_id']}")).json()
        assert (found["jobId"], found["domain"]) == (job_id, "d")


async def test_one_fails_one_is_too_slow_and_one_answers_something_else(url: str) -> None:
    """A25: what the others answered is kept, and the answer says what is missing and why."""
    async with serving(url) as (_, client):
        await define(client, agents=["a", "b", "bad", "slow", "wrong"])
        told, job_id = await watched(client, "/ingest", 14)
        assert told[0] == "loading_agents"
        assert told[-3:] == ["validating", "synthesizing", "complete"]
        middle = told[1:-3]
        begun = {f"invoking_{name}" for name in ("a", "b", "bad", "slow", "wrong")}
        assert set(middle) == begun | {f"agent_complete_{name}" for name in ("a", "b", "wrong")} | {
            "agent_failed_bad",
            "agent_failed_slow",
        }
        assert middle.index("agent_complete_a") < middle.index("invoking_b") < middle.index("agent_complete_b")
        assert (await support.ended(client, job_id))["state"] == "completed"
        answer = await output(client, job_id, "$synthesize")
        assert answer["synthesized"] == {"a": {"value": "a of x"}, "b": {"value": "b of x"}}
        failed = {item["agent"]: item["error"] for item in answer["failed"]}
        assert (failed["bad"]["message"], failed["slow"]["type"]) == ("no idea", "TaskTimeout")
        assert set(failed) == {"bad", "slow", "wrong"}
        verdict = await output(client, job_id, "$validate")
        assert verdict["valid"] is False
        assert "wrong" in str(verdict["errors"])
        assert (await output(client, job_id, "$save"))["status"] == "saved"


async def test_a_question_to_the_query_playbook(url: str) -> None:
    async with serving(url) as (_, client):
        await define(client)
        await put(client, "playbooks/q", {"domain": "d", "type": "query", "agents": ["a"], "save": {"enabled": False}})
        asked = await client.post("/query", json={"domain_id": "d", "data": "y", "correlationId": "c-1"})
        assert asked.status_code == 202
        accepted = asked.json()
        assert accepted == {"job_id": accepted["job_id"], "playbook": "q", "version": 1}
        assert asked.headers["location"] == f"/v1/jobs/{accepted['job_id']}"
        found = (await client.get(asked.headers["location"])).json()
        assert (found["correlationId"], found["tags"]) == ("c-1", {"playbook": "q", "domain": "d", "type": "query"})
        await support.ended(client, accepted["job_id"])
        answer = await output(client, accepted["job_id"], "$synthesize")
        assert answer["synthesized"] == {"a": {"value": "a of y"}}


async def test_the_same_key_is_the_same_job(site: Site) -> None:
    client = await site.admin()
    await define(client)
    given = {"domain_id": "d", "data": {"n": 1}}
    first = await client.post("/ingest", json=given, headers={"Idempotency-Key": "k"})
    again = await client.post("/ingest", json=given, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json()) == (202, first.json())
    assert (await client.post("/ingest", json=given)).json()["job_id"] != first.json()["job_id"]
    other = await client.post("/ingest", json=given | {"data": {"n": 2}}, headers={"Idempotency-Key": "k"})
    problem(other, 409, "idempotency_conflict")


async def test_a19_a_key_may_do_what_its_scopes_say(site: Site) -> None:
    """The execution role of the seed: who sends in data defines nothing, and who defines sends in nothing."""
    await define(await site.admin())
    producer, author = site.client(await site.key("jobs:write")), site.client(await site.key("config:write"))
    given = {"domain_id": "d", "data": 1}
    assert (await producer.post("/ingest", json=given)).status_code == 202
    problem(await producer.put("/v1/playbooks/p", json=PLAYBOOK), 403, "forbidden")
    problem(await producer.get("/v1/playbooks/p/plan"), 403, "forbidden")
    problem(await author.post("/ingest", json=given), 403, "forbidden")
    assert (await author.put("/v1/playbooks/p", json=PLAYBOOK)).status_code == 200


async def test_every_tenant_has_its_own(site: Site) -> None:
    client, stranger = await site.admin(), await site.admin("other")
    await define(client)
    given = {"domain_id": "d", "data": None}
    problem(await stranger.post("/ingest", json=given), 404, "definition_not_found")
    for path in ("agents/a", "graphs/g", "playbooks/p", "playbooks/p/plan", "playbooks/p/versions"):
        problem(await stranger.get(f"/v1/{path}"), 404, "definition_not_found")
    assert (await stranger.get("/v1/playbooks")).json() == {"playbooks": []}
    job_id = (await client.post("/ingest", json=given)).json()["job_id"]
    problem(await stranger.get(f"/v1/jobs/{job_id}"), 404, "job_not_found")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "domain_id"),
        ({"data": 1}, "domain_id"),
        ({"domain_id": "d"}, "data"),
        ({"domain_id": "", "data": 1}, "domain_id"),
        ({"domain_id": "x" * 129, "data": 1}, "domain_id"),
        ({"domain_id": "d\x00", "data": 1}, "domain_id"),
        ({"domain_id": 7, "data": 1}, "domain_id"),
        ({"domain_id": "d", "data": 1, "tenant_id": "other"}, "tenant_id"),
        ({"domain_id": "d", "data": 1, "playbook": "-"}, "playbook"),
        ({"domain_id": "d", "data": 1, "playbook": "other"}, "playbook"),
        ({"domain_id": "d", "data": 1, "correlationId": "no id"}, "correlationId"),
    ],
)
async def test_what_cannot_be_sent(site: Site, given: dict[str, Any], field: str) -> None:
    client = await site.admin()
    await define(client)
    await put(client, "playbooks/other", PLAYBOOK | {"domain": "elsewhere"})
    found = problem(await client.post("/ingest", json=given), 422, "invalid_input")
    assert found["field"] == field
    assert (await client.get("/v1/jobs")).json()["jobs"] == []


async def test_nobody_or_too_many_answer_for_a_domain(site: Site) -> None:
    client = await site.admin()
    given = {"domain_id": "d", "data": 1}
    problem(await client.post("/query", json=given), 404, "definition_not_found")
    await define(client)
    problem(await client.post("/query", json=given), 404, "definition_not_found")
    problem(await client.post("/ingest", json=given | {"playbook": "none"}), 404, "definition_not_found")
    await put(client, "playbooks/twin", PLAYBOOK)
    found = problem(await client.post("/ingest", json=given), 422, "invalid_input")
    assert "'p', 'twin'" in found["detail"]
    named = await client.post("/ingest", json=given | {"playbook": "twin"})
    assert named.json()["playbook"] == "twin"


# --- definitions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "document", "summary"),
    [
        ("agents", agent("a", tags={"team": "city"}), {"kind": "function", "tags": {"team": "city"}}),
        ("graphs", {"edges": [{"from": "a", "to": "b"}]}, {}),
        ("playbooks", PLAYBOOK, {"domain": "d", "type": "ingestion", "agents": ["a", "b"]}),
    ],
)
async def test_definitions_have_versions(
    site: Site, kind: str, document: dict[str, Any], summary: dict[str, Any]
) -> None:
    client = await site.admin()
    assert await put(client, f"{kind}/x", document) == 1
    assert await put(client, f"{kind}/x", document | {"name": "x"}) == 1
    assert await put(client, f"{kind}/x?expectedVersion=1", document | {"description": "Other"}) == 2
    problem(await client.put(f"/v1/{kind}/x?expectedVersion=1", json=document), 409, "not_possible")
    (listed,) = (await client.get(f"/v1/{kind}")).json()[kind]
    assert listed.pop("createdBy").startswith("key:")
    assert listed.pop("createdAt")
    assert listed == {"name": "x", "version": 2, "description": "Other"} | summary
    assert "description" not in (await client.get(f"/v1/{kind}/x?version=1")).json()["definition"]
    assert (await client.post(f"/v1/{kind}/x/rollback", json={"version": 1})).json() == {"name": "x", "version": 3}
    assert (await client.delete(f"/v1/{kind}/x")).json() == {"name": "x"}
    problem(await client.get(f"/v1/{kind}/x"), 404, "definition_not_found")
    versions = (await client.get(f"/v1/{kind}/x/versions")).json()["versions"]
    assert [(v["version"], v["removed"]) for v in versions] == [(4, True), (3, False), (2, False), (1, False)]
    found = problem(await client.put(f"/v1/{kind}/x", json=document | {"name": "y"}), 422, "invalid_input")
    assert found["field"] == "name"
    found = problem(await client.put(f"/v1/{kind}/x", json=document | {"colour": "red"}), 422, "invalid_input")
    assert found["field"] == "colour"


async def test_the_plan(site: Site) -> None:
    """A7, by its example: levels [A, B] [C, D] [E]."""
    client = await site.admin()
    for name in "ABCDE":
        await put(client, f"agents/{name}", agent(name, timeout=10))
    edges = [{"from": "A", "to": "C"}, {"from": "B", "to": "D"}, {"from": "C", "to": "E"}]
    await put(client, "graphs/g", {"edges": edges})
    await put(client, "playbooks/p", PLAYBOOK | {"agents": list("ABCDE"), "deadline": 25})
    found = (await client.get("/v1/playbooks/p/plan")).json()
    assert found["levels"] == [["A", "B"], ["C", "D"], ["E"]]
    assert found["criticalPath"] == ["A", "C", "E"]
    assert found["warnings"]
    await put(client, "graphs/g", {"edges": [*edges, {"from": "X", "to": "A"}]})
    problem(await client.get("/v1/playbooks/none/plan"), 404, "definition_not_found")
    await client.delete("/v1/agents/E")
    found = problem(await client.get("/v1/playbooks/p/plan"), 422, "unknown_agent")
    assert found["agent"] == "E"
    await put(client, "agents/place", agent("place"))
    await put(client, "playbooks/misspelt", PLAYBOOK | {"agents": ["plaice"]})
    found = problem(await client.get("/v1/playbooks/misspelt/plan"), 422, "unknown_agent")
    assert "did you mean 'place'?" in found["detail"]


# --- GraphQL -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "document", "summary"),
    [
        ("agent", agent("a", tags={"team": "city"}), {"kind": "function", "tags": {"team": "city"}}),
        ("graph", {"edges": [{"from": "a", "to": "b"}]}, {}),
        ("playbook", PLAYBOOK, {"domain": "d", "type": "ingestion", "agents": ["a", "b"]}),
    ],
)
async def test_definitions_have_versions_by_graphql(
    site: Site, kind: str, document: dict[str, Any], summary: dict[str, Any]
) -> None:
    client = await site.admin()
    named = kind.capitalize()
    define = f"mutation($d: JSON!, $v: Int) {{ define{named}(definition: $d, expectedVersion: $v) {{ name version }} }}"
    document = document | {"name": "x"}
    assert (await ask(client, define, d=document, v=0))[f"define{named}"] == {"name": "x", "version": 1}
    assert (await refused(client, define, d=document, v=0))["extensions"]["status"] == 409
    await ask(client, define, d=document | {"description": "Other"})
    error = await refused(client, define, d=document | {"colour": "red"})
    assert (error["extensions"]["status"], error["extensions"]["field"]) == (422, "colour")
    found = await ask(
        client,
        f"""{{ {kind}s {{ name version description {" ".join(summary)} }} now: {kind}(name: "x") {{ version createdBy }}
              before: {kind}(name: "x", version: 1) {{ version definition }} none: {kind}(name: "none") {{ version }}
              never: {kind}Versions(name: "none") {{ version }} }}""",
    )
    assert found[f"{kind}s"] == [{"name": "x", "version": 2, "description": "Other"} | summary]
    assert found["now"]["createdBy"].startswith("key:")
    assert "description" not in found["before"]["definition"]
    assert (found["none"], found["never"]) == (None, None)
    back = f'mutation($v: Int!) {{ rollBack{named}(name: "x", version: $v) {{ name version }} }}'
    assert (await ask(client, back, v=1))[f"rollBack{named}"] == {"name": "x", "version": 3}
    assert (await refused(client, back, v=0))["extensions"]["field"] == "version"
    assert (await refused(client, back, v=9))["extensions"]["status"] == 404
    assert await ask(client, f'mutation {{ remove{named}(name: "x") }}') == {f"remove{named}": "x"}
    found = await ask(client, f'{{ {kind}(name: "x") {{ version }} {kind}Versions(name: "x") {{ version removed }} }}')
    assert found[kind] is None
    told = [(version["version"], version["removed"]) for version in found[f"{kind}Versions"]]
    assert told == [(4, True), (3, False), (2, False), (1, False)]


async def test_a_playbook_by_graphql(url: str) -> None:
    """A1, A22: planned, started and followed without a word of HTTP."""
    async with serving(url) as (live, client):
        await define(client)
        await put(client, "playbooks/q", {"domain": "d", "type": "query", "agents": ["a"], "save": {"enabled": False}})
        found = await ask(
            client,
            """{ playbookPlan(name: "p") { levels criticalPath warnings }
                 none: playbookPlan(name: "none") { levels } }""",
        )
        assert found["playbookPlan"]["levels"] == [["a"], ["b"]]
        assert found["none"] is None
        send = """mutation($data: JSON, $key: String) {
          ingest(domainId: "d", data: $data, idempotencyKey: $key, correlationId: "c-1") { jobId playbook version } }"""
        async with live.graphql(await live.site.key("jobs:read")) as opened:
            await subscribe(
                opened,
                """subscription { events(filter: {types: ["Status Published"]}, cursor: "0.0.0") {
                   jobId properties } }""",
            )
            accepted = (await ask(client, send, data={"n": 1}, key="k"))["ingest"]
            told = [(await receive(opened))["payload"]["data"]["events"] for _ in range(8)]
        assert accepted == {"jobId": told[0]["jobId"], "playbook": "p", "version": 1}
        assert [told[0]["properties"]["status"], told[-1]["properties"]["status"]] == ["loading_agents", "complete"]
        assert (await ask(client, send, data={"n": 1}, key="k"))["ingest"] == accepted
        assert (await refused(client, send, data={"n": 2}, key="k"))["extensions"]["code"] == "idempotency_conflict"
        assert (await refused(client, send, data=1, key=""))["extensions"]["field"] == "idempotencyKey"
        assert (await refused(client, send, data=1, key="x" * 256))["extensions"]["field"] == "idempotencyKey"
        asked = (await ask(client, 'mutation { query(domainId: "d", data: null) { jobId playbook } }'))["query"]
        await support.ended(client, asked["jobId"])
        shown = await ask(
            client,
            """query($id: ID!) { job(jobId: $id) { state }
               task(jobId: $id, taskId: "$synthesize") { detail { output } } }""",
            id=asked["jobId"],
        )
        assert shown["job"]["state"] == "completed"
        assert shown["task"]["detail"]["output"]["synthesized"] == {"a": {"value": "a of None"}}
        for given, field in (
            ('domainId: "", data: 1', "domain_id"),
            ('domainId: "d", data: 1, playbook: "-"', "playbook"),
            ('domainId: "d", data: 1, correlationId: "no id"', "correlationId"),
            ('domainId: "d"', "input"),
        ):
            error = await refused(client, f"mutation {{ query({given}) {{ jobId }} }}")
            assert error["extensions"]["field"] == field, given
