"""Playbooks: describe agents and who needs whose output, see the plan, send in data or a question."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header

from ostinato import app
from ostinato.api import access, playing, routing
from ostinato.api.calls import Client, Principal
from ostinato.api.http import definitions
from ostinato.api.http.definitions import Name
from ostinato.core import scopes
from ostinato.playbooks import plan
from ostinato.reactions import playbooks

routes = routing.Routes()
TAG = "playbooks"
PINNED = "Jobs that have begun keep the version of then."

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="The same again finds the job of before, instead of starting another.",
    ),
]

KINDS = (
    definitions.Kind(
        "agent",
        lambda client: client.playbooks.agents,
        playing.AgentDefinition,
        playing.Agents,
        playing.agent_summary,
        PINNED,
    ),
    definitions.Kind(
        "graph",
        lambda client: client.playbooks.graphs,
        playing.GraphDefinition,
        playing.Graphs,
        playing.graph_summary,
        PINNED,
    ),
    definitions.Kind(
        "playbook",
        lambda client: client.playbooks.shelf,
        playing.PlaybookDefinition,
        playing.Playbooks,
        playing.playbook_summary,
        PINNED,
    ),
)
for _kind in KINDS:
    definitions.register(routes, _kind)


@routes("GET", "/v1/playbooks/{name}/plan", scope=scopes.JOBS_READ, problems=(404, 409), tag=TAG)
async def plan_playbook(client: Client, name: Name) -> plan.Plan:
    """Show the levels of a playbook, its critical path and what to be warned of, as everything is defined now."""
    return await client.playbooks.plan(name)


@routes("POST", "/ingest", scope=scopes.JOBS_WRITE, status=202, problems=(404, 409), tag=TAG)
async def ingest(
    client: Client, principal: Principal, body: playing.Given, idempotency_key: IdempotencyKey = None
) -> routing.Reply[playing.Accepted]:
    """Give data to the ingestion playbook of a domain. What comes of it is in the job."""
    return await _start(client, principal, "ingestion", body, idempotency_key)


@routes("POST", "/query", scope=scopes.JOBS_WRITE, status=202, problems=(404, 409), tag=TAG)
async def query(
    client: Client, principal: Principal, body: playing.Given, idempotency_key: IdempotencyKey = None
) -> routing.Reply[playing.Accepted]:
    """Ask the query playbook of a domain. The answer is in the job."""
    return await _start(client, principal, "query", body, idempotency_key)


async def _start(
    client: app.Ostinato,
    principal: access.Principal,
    type: playbooks.Type,
    given: playing.Given,
    idempotency_key: str | None,
) -> routing.Reply[playing.Accepted]:
    started = await client.playbooks.start(
        type,
        given.domain_id,
        given.data,
        playbook=given.playbook,
        idempotency_key=idempotency_key,
        correlation_id=given.correlation_id,
        job_id=given.job_id,
        actor=principal.actor,
    )
    answer = playing.Accepted(started.job_id, started.playbook, started.version)
    return routing.Reply(answer, 202, {"Location": f"/v1/jobs/{started.job_id}"})
