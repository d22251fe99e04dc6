"""Playbooks whose agents are language models: over HTTP, against a real server that speaks the protocol."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx2
import pytest

from ostinato.agents import limiter
from tests.agents import support as models
from tests.agents.support import KEY, Request, refusing, saying
from tests.api import support
from tests.api.test_playbooks import output, put, serving, watched
from tests.engine.support import until

VALUE = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
CLOSED = VALUE | {"additionalProperties": False}
ALLOWED = {"webhooks": True, "webhook_networks": ("127.0.0.1/32",)}


@contextlib.asynccontextmanager
async def answering(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[tuple[Any, httpx2.AsyncClient, Any]]:
    """A server that may call models, a client of it, and the endpoint of the models."""
    for tenant in ("default", "other"):
        monkeypatch.setenv(f"OSTINATO_SECRET_{tenant}.MODELS", KEY)
    async with models.running() as endpoint, serving(url, engine=ALLOWED) as (live, client):
        yield live, client, endpoint


def agent(endpoint: models.Endpoint, name: str, *parents: str, **fields: Any) -> dict[str, Any]:
    model = {"model": "test", "baseUrl": endpoint.base_url, "apiKey": "secret://MODELS", "system": f"You are {name}."}
    return {
        "kind": "llm",
        "llm": model | {"price": {"input": 2.5, "output": 10}},
        "outputSchema": CLOSED,
        "retry": {"maxAttempts": 3, "baseDelay": 0.01},
        "timeout": 20,
        "dependencyParents": list(parents),
    } | fields


async def define(client: httpx2.AsyncClient, agents: dict[str, dict[str, Any]], **fields: Any) -> None:
    for name, document in agents.items():
        await put(client, f"agents/{name}", document)
    await put(client, "playbooks/p", {"domain": "d", "type": "ingestion", "agents": list(agents)} | fields)


def name_of(request: Request) -> str:
    return request.body["messages"][0]["content"].removeprefix("You are ").partition(".")[0]


def about(request: Request) -> Any:
    return json.loads(request.body["messages"][1]["content"])


def choosing(endpoint: models.Endpoint, **behaviours: Callable[[Request, int], models.Behaviour]) -> None:
    """What each agent is told, by its name and how often it has asked before."""
    asked: dict[str, int] = {}

    def choose(request: Request) -> models.Behaviour:
        name = name_of(request)
        asked[name] = asked.get(name, -1) + 1
        return behaviours[name](request, asked[name])

    endpoint.choose = choose


async def test_a_whole_playbook_of_models(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One answers badly and is corrected, one needs the other's output, a third puts both together."""
    async with answering(url, monkeypatch) as (_, client, endpoint):
        category = {"value": "fire", "evidence": ["smoke"]}
        choosing(
            endpoint,
            category=lambda _, count: saying("No idea!" if count == 0 else category),
            severity=lambda request, _: saying({"value": about(request)["parent_output"]["category"]["value"] + "!"}),
            writer=lambda _, __: saying({"value": "A fire.", "evidence": ["fire!"]}),
        )
        await put(client, "agents/writer", agent(endpoint, "writer"))
        await define(
            client,
            {"category": agent(endpoint, "category"), "severity": agent(endpoint, "severity", "category")},
            synthesis={"how": "agent", "agent": "writer"},
        )
        told, job_id = await watched(client, "/ingest", 8)
        assert told == [
            "loading_agents",
            "invoking_category",
            "agent_complete_category",
            "invoking_severity",
            "agent_complete_severity",
            "validating",
            "synthesizing",
            "complete",
        ]
        assert (await support.ended(client, job_id))["state"] == "completed"
        answer = await output(client, job_id, "$synthesize")
        assert answer["synthesized"] == {"value": "A fire."}
        assert answer["evidence"] == {"category": ["smoke"], "writer": ["fire!"]}
        assert [name_of(request) for request in endpoint.requests] == ["category", "category", "severity", "writer"]
        assert about(endpoint.requests[0]) == {"agent_id": "category", "raw_data": "x", "parent_output": None}
        correction = endpoint.requests[1].body["messages"]
        assert [message["role"] for message in correction] == ["system", "user", "assistant", "user"]
        said = about(endpoint.requests[3])
        assert said["parent_output"]["severity"] == {"value": "fire!"}, said
        task = (await client.get(f"/v1/jobs/{job_id}/tasks/category")).json()
        used = task["usage"]
        assert (used["calls"], used["inputTokens"], used["outputTokens"], used["cost"]) == (2, 200, 40, 0.0009)
        everything = [
            (await client.get(f"/v1/jobs/{job_id}{path}")).text for path in ("", "/events?limit=500", "/tasks")
        ]
        assert KEY not in str([*everything, task, answer])
        found = (await client.get("/v1/results/search?q=fire&domain=d")).json()["hits"]
        assert [hit["jobId"] for hit in found] == [job_id]


async def test_models_that_fail_in_every_way(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A25 with models: errors, slow answers and bad JSON are marks in the answer, and what passes is tried again."""
    async with answering(url, monkeypatch) as (_, client, endpoint):
        good = saying({"value": "well"})
        choosing(
            endpoint,
            shaky=lambda _, count: good if count else refusing(503),
            cut=lambda _, count: good if count else saying("<html>", usage=None),
            barred=lambda _, __: refusing(401),
            slow=lambda _, __: saying(after=30),
            wild=lambda _, __: saying({"value": 7}),
            silent=lambda _, __: saying(None, refusal="I would rather not"),
        )
        one = {"retry": {"maxAttempts": 1}}
        names = {"shaky": {}, "cut": {}, "barred": {}, "slow": one | {"timeout": 1.0}, "wild": one, "silent": {}}
        await define(client, {name: agent(endpoint, name, **fields) for name, fields in names.items()})
        job_id = (await client.post("/ingest", json={"domain_id": "d", "data": None})).json()["job_id"]
        assert (await support.ended(client, job_id))["state"] == "completed"
        answer = await output(client, job_id, "$synthesize")
        assert answer["synthesized"] == {"shaky": {"value": "well"}, "cut": {"value": "well"}}
        failed = {item["agent"]: item["error"] for item in answer["failed"]}
        assert failed["slow"].pop("type") in ("TaskTimeout", "TargetUnreachable")  # one and the same moment
        assert {name: error.get("type") for name, error in failed.items()} == {
            "barred": "CallRejected",
            "slow": None,
            "wild": "AnswerInvalid",
            "silent": "ModelRefused",
        }
        assert "value" in failed["wild"]["message"]
        assert KEY not in str(answer)
        calls = [name_of(request) for request in endpoint.requests]
        assert {name: calls.count(name) for name in names} == {
            "shaky": 2,
            "cut": 2,
            "barred": 1,
            "slow": 1,
            "wild": 2,
            "silent": 1,
        }
        used = (await client.get(f"/v1/jobs/{job_id}/tasks/wild")).json()["usage"]
        assert used["calls"] == 2  # paid for, though nothing came of it


async def test_a_refusal_slows_all_agents_on_a_key(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all jobs and all tenants: nobody asks again before the endpoint said so, and nobody fails for it."""
    pause, refused_at = 0.6, list[float]()
    asked_at: list[float] = []

    def choose(_: Request) -> models.Behaviour:
        asked_at.append(time.monotonic())
        if len(asked_at) > 1:
            return saying({"value": "well"}, after=0.01)
        refused_at.append(time.monotonic())
        return refusing(429, headers={"retry-after-ms": str(int(pause * 1000))})

    async with answering(url, monkeypatch) as (live, client, endpoint):
        endpoint.choose = choose
        many = {f"a{number}": agent(endpoint, f"a{number}") for number in range(6)}
        await define(client, many | {"a0": agent(endpoint, "a0")})
        await put(client, "playbooks/first", {"domain": "e", "type": "ingestion", "agents": ["a0"]})
        other = httpx2.AsyncClient(headers=live.headers(await live.site.key(tenant="other")), base_url=live.address)
        async with other:
            await define(other, {"b": agent(endpoint, "b")})
            first = (await client.post("/ingest", json={"domain_id": "e", "data": 1})).json()["job_id"]

            async def is_refused() -> bool:  # and the answer has arrived: before that, others cannot know
                lines = limiter.shared()._lines.values()  # pyright: ignore[reportPrivateUsage]
                return any(line.throttle.paused_until for line in lines)

            await until(is_refused, "the refusal")
            jobs = [
                (who, (await who.post("/ingest", json={"domain_id": "d", "data": 1})).json()["job_id"])
                for who in (client, other)
            ]
            for who, job_id in (*jobs, (client, first)):
                assert (await support.ended(who, job_id))["state"] == "completed"
                assert (await output(who, job_id, "$synthesize"))["failed"] == []
        assert len(asked_at) == 1 + 1 + 6 + 1
        assert min(asked_at[1:]) - refused_at[0] >= pause * 0.9


async def test_a_model_is_asked_as_its_settings_say(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with what only its endpoint knows; what is ours is refused when it is saved."""
    async with answering(url, monkeypatch) as (_, client, endpoint):
        endpoint.plan(saying({"value": "well"}))
        plain = agent(endpoint, "plain")
        asked = plain | {"llm": plain["llm"] | {"evidence": False, "parameters": {"max_tokens": 50, "seed": 7}}}
        ours = plain | {"llm": plain["llm"] | {"parameters": {"stream": True}}}
        told = support.problem(await client.put("/v1/agents/plain", json=ours), 422, "invalid_input")
        assert told["field"] == "llm.parameters.stream"
        await define(client, {"plain": asked})
        job_id = (await client.post("/ingest", json={"domain_id": "d", "data": "x"})).json()["job_id"]
        assert (await support.ended(client, job_id))["state"] == "completed"
        assert (await output(client, job_id, "$synthesize"))["synthesized"] == {"plain": {"value": "well"}}
        (request,) = endpoint.requests
        assert (request.body["max_tokens"], request.body["seed"]) == (50, 7)
        assert "evidence" not in str(request.body["response_format"])


async def test_an_agent_asks_no_more_when_its_budget_is_used_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All attempts together may use up so much: the third one would be too dear."""
    async with answering(url, monkeypatch) as (_, client, endpoint):
        choosing(endpoint, dear=lambda _, __: saying("No idea!"))
        other = {"kind": "function", "function": "agent-a", "outputSchema": VALUE}
        await define(client, {"dear": agent(endpoint, "dear", budget={"tokens": 300}), "other": other})
        started = await client.post("/ingest", json={"domain_id": "d", "data": "x"})
        job_id = started.json()["job_id"]
        await support.ended(client, job_id)
        failed = (await output(client, job_id, "$synthesize"))["failed"]
        assert failed[0]["error"]["message"].startswith("the budget of agent 'dear' is used up after 2 attempts: ")
        assert len(endpoint.requests) == 4, "each attempt asks, and asks for a correction"


async def test_a_model_does_a_step_of_a_pipeline_under_another_name(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = ("new", "to_tell", "telling", "told", "failed", "dead")
    pipeline = {
        "statuses": [{"code": code, "name": name} for code, name in enumerate(statuses, 1)],
        "course": [
            {"status": "new"},
            {"step": "tell", "agent": "narrator", "statuses": ["to_tell", "telling", "told"]},
        ],
        "failed": "failed",
        "deadLetter": "dead",
    }
    async with answering(url, monkeypatch) as (_, client, endpoint):
        choosing(endpoint, narrator=lambda request, _: saying({"value": about(request)["raw_data"]["title"] + "!"}))
        await put(client, "agents/narrator", agent(endpoint, "narrator"))
        await put(client, "pipelines/stories", pipeline)
        entered = await client.post("/v1/pipelines/stories/items", json={"itemId": "a", "payload": {"title": "Once"}})
        assert entered.status_code in (200, 201, 202), entered.text

        async def told() -> Any:
            item = (await client.get("/v1/items/a")).json()
            return item if item["status"] == "told" else None

        item = await until(told, "the step")
        assert (item["results"]["tell"], item["spent"]) == ({"value": "Once!"}, 0.00045)
