"""Approvals, by the same handlers that HTTP has for them."""

from __future__ import annotations

from typing import Any

from ariadne import ObjectType

from ostinato import approving, errors
from ostinato.api import approvals
from ostinato.api.graphql.resolvers import Call, Connection, convert, most, page
from ostinato.api.http import approvals as handlers
from ostinato.core import approvals as rules
from ostinato.core import commands, graph

query = ObjectType("Query")
mutation = ObjectType("Mutation")


@query.field("approvals")
async def list_approvals(
    _: Any, info: Any, first: int, after: str | None = None, filter: dict[str, Any] | None = None
) -> Connection:
    call: Call = info.context
    given = filter or {}
    found = await handlers.list_approvals(
        call.client,
        call.principal,
        given.get("state") or rules.WAITING,
        given.get("jobId"),
        given.get("approver"),
        most(first),
        after,
    )
    return page(found.approvals, found.next_cursor)


@query.field("approval")
async def find_approval(
    _: Any, info: Any, jobId: str, taskId: str, key: str | None = None
) -> approving.ApprovalDetail | None:
    try:
        return await info.context.client.approvals.get(graph.check_id(jobId, "jobId"), taskId, key=key)
    except errors.ApprovalNotFound:
        return None


@mutation.field("decide")
async def decide(_: Any, info: Any, jobId: str, taskId: str, **given: Any) -> commands.Decided:
    call: Call = info.context
    body = convert(given, approvals.Decision)
    job_id = graph.check_id(jobId, "jobId")
    return await handlers.decide_approval(call.client, call.principal, job_id, taskId, body)


ALL = (query, mutation)
