"""Playbooks whose agents are HTTP endpoints: over HTTP, against real servers that answer, refuse and misbehave."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from ostinato import errors, outgoing
from tests.api import support
from tests.api.test_model_playbooks import ALLOWED, VALUE, define
from tests.api.test_playbooks import output, serving
from tests.outgoing import support as endpoints
from tests.outgoing.support import Behaviour, Server, answering

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = {"kind": "function", "function": "agent-b", "outputSchema": VALUE}
"""Answers whatever becomes of the endpoint."""
WELL = answering(200, b'{"value": "well", "evidence": ["seen"]}')


@contextlib.asynccontextmanager
async def answered(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[tuple[httpx2.AsyncClient, Server]]:
    """A client of a server that may call the other server, which is the endpoint of the agents."""
    monkeypatch.setenv("OSTINATO_SECRET_default.HOOK", SECRET)
    async with endpoints.running() as endpoint, serving(url, engine=ALLOWED) as (_, client):
        yield client, endpoint


def agent(url: str, *parents: str, **fields: Any) -> dict[str, Any]:
    told = {"kind": "http", "url": url, "outputSchema": VALUE, "dependencyParents": list(parents)}
    return told | {"retry": {"maxAttempts": 3, "baseDelay": 0.01}, "timeout": 10} | fields


def one_by_one(endpoint: Server, *behaviours: Behaviour) -> None:
    """Answer the first request so, the second so, and all others as the last."""
    left = list(behaviours)

    async def behave(writer: Any) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(writer)

    endpoint.behave = behave


async def ingested(client: httpx2.AsyncClient) -> tuple[str, Any]:
    job_id = (await client.post("/ingest", json={"domain_id": "d", "data": {"text": "x"}})).json()["job_id"]
    assert (await support.ended(client, job_id))["state"] == "completed"
    return job_id, await output(client, job_id, "$synthesize")


async def test_a8_a11_endpoints_are_posted_to_and_can_tell_who_calls(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent that needs another gets its output. What is signed was sent by who has the secret, and nobody else."""
    async with answered(url, monkeypatch) as (client, endpoint):
        endpoint.behave = WELL
        agents = {"a": agent(endpoint.url, secret="secret://HOOK"), "b": agent(endpoint.url, "a")}
        await define(client, agents, save={"enabled": False})
        job_id, answer = await ingested(client)
        assert answer == {
            "synthesized": {"a": {"value": "well"}, "b": {"value": "well"}},
            "evidence": {"a": ["seen"], "b": ["seen"]},
            "failed": [],
            "skipped": [],
        }
        first, second = endpoint.requests
        assert json.loads(first.body) == {"agent_id": "a", "raw_data": {"text": "x"}, "parent_output": None}
        assert json.loads(second.body)["parent_output"] == {"a": {"value": "well", "evidence": ["seen"]}}
        outgoing.verify(SECRET, first.headers, first.body, time.time())
        with pytest.raises(errors.InvalidSignature):
            outgoing.verify(SECRET, first.headers, first.body + b" ", time.time())
        assert "webhook-signature" not in second.headers
        assert first.headers["idempotency-key"] == f"{job_id}:a"


async def test_a20_an_endpoint_that_asks_for_time_gets_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`Retry-After` counts, and not the pause that the agent's policy has; each attempt has the same key."""
    asked_at: list[float] = []

    def at_the_time(behaviour: Behaviour) -> Behaviour:
        async def behave(writer: Any) -> None:
            asked_at.append(time.monotonic())
            await behaviour(writer)

        return behave

    async with answered(url, monkeypatch) as (client, endpoint):
        one_by_one(endpoint, at_the_time(answering(429, Retry_After="1")), at_the_time(WELL))
        await define(client, {"a": agent(endpoint.url)})
        _, answer = await ingested(client)
        assert answer["synthesized"] == {"a": {"value": "well"}}
        assert asked_at[1] - asked_at[0] >= 0.95
        assert len({request.headers["idempotency-key"] for request in endpoint.requests}) == 1


@pytest.mark.parametrize(
    ("behaviour", "calls", "error"),
    [
        (answering(503), 3, "CallFailed"),
        (endpoints.breaking_off, 3, "TargetUnreachable"),
        (answering(200, b"<html>"), 3, "CallFailed"),
        (answering(204), 3, "CallFailed"),
        (answering(404), 1, "CallRejected"),
        (answering(302, Location="http://127.0.0.1:1/"), 1, "CallRejected"),
        (answering(200, b'{"value": 7}'), 1, "InvalidOutput"),
        (answering(200, b"[1]"), 1, "InvalidOutput"),
    ],
    ids=["down", "cut", "html", "nothing", "gone", "redirect", "other-type", "no-object"],
)
async def test_a25_an_endpoint_that_fails_is_a_mark_in_the_answer(
    url: str, monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour, calls: int, error: str
) -> None:
    """What may pass is tried again, what will not is not."""
    async with answered(url, monkeypatch) as (client, endpoint):
        endpoint.behave = behaviour
        await define(client, {"a": agent(endpoint.url), "b": OTHER})
        _, answer = await ingested(client)
        (failed,) = answer["failed"]
        assert (failed["agent"], failed["error"]["type"]) == ("a", error), failed
        assert len(endpoint.requests) == calls


async def test_a_slow_endpoint_runs_out_of_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with answered(url, monkeypatch) as (client, endpoint):
        endpoint.behave = endpoints.dripping
        await define(client, {"a": agent(endpoint.url, timeout=0.5, retry={"maxAttempts": 1}), "b": OTHER})
        _, answer = await ingested(client)
        assert answer["failed"][0]["error"]["type"] in ("TaskTimeout", "TargetUnreachable")  # one and the same moment


@pytest.mark.parametrize(
    ("allowed", "error"), [({}, "TerminalError"), ({"webhooks": True}, "TargetRefused")], ids=["nothing", "internet"]
)
async def test_an_endpoint_inside_the_network_is_not_called(url: str, allowed: dict[str, Any], error: str) -> None:
    async with endpoints.running() as endpoint, serving(url, engine=allowed) as (_, client):
        await define(client, {"a": agent(endpoint.url), "b": OTHER})
        job_id, answer = await ingested(client)
        assert answer["failed"][0]["error"]["type"] == error
        assert len((await client.get(f"/v1/jobs/{job_id}/tasks/a")).json()["attempts"]) == 1
        assert endpoint.requests == []
