"""Playbooks: their plan, and data or a question for them, by the same handlers that HTTP has for them."""

from __future__ import annotations

from typing import Any

from ariadne import ObjectType

from ostinato import errors
from ostinato.api import playing
from ostinato.api.graphql.resolvers import Call, convert
from ostinato.api.http import playbooks
from ostinato.playbooks import plan

query = ObjectType("Query")
mutation = ObjectType("Mutation")


@query.field("playbookPlan")
async def plan_playbook(_: Any, info: Any, name: str) -> plan.Plan | None:
    call: Call = info.context
    try:
        await call.client.playbooks.shelf.stored(name)
    except errors.DefinitionNotFound:
        return None
    return await playbooks.plan_playbook(call.client, name)


@mutation.field("ingest")
async def ingest(_: Any, info: Any, idempotencyKey: str | None = None, **given: Any) -> playing.Accepted:
    call: Call = info.context
    return (await playbooks.ingest(call.client, call.principal, _given(**given), idempotencyKey)).value


@mutation.field("query")
async def ask(_: Any, info: Any, idempotencyKey: str | None = None, **given: Any) -> playing.Accepted:
    call: Call = info.context
    return (await playbooks.query(call.client, call.principal, _given(**given), idempotencyKey)).value


def _given(domainId: str, **given: Any) -> playing.Given:
    """As HTTP reads it. Null is data too, and data that is left out is refused."""
    held = {"data": True} if "data" in given else {}
    if "jobId" in given:
        given["job_id"] = given.pop("jobId")
    body = convert({"domain_id": domainId} | given | held, playing.Given)
    body.data = given["data"]
    return body


ALL = (query, mutation)
