"""Approvals: what people are asked, and deciding on it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ostinato import approving
from ostinato.api import access, approvals, routing
from ostinato.api.calls import Client, Cursor, JobId, Limit, Principal, TaskId
from ostinato.api.http.jobs import Reference
from ostinato.core import approvals as rules
from ostinato.core import commands, scopes

routes = routing.Routes()
TAG = "approvals"
ME = "me"

Key = Annotated[
    str | None, Query(max_length=300, pattern=r"^[^\x00]*$", description="Which of several approvals of a function.")
]
State = Annotated[
    str,
    Query(
        pattern=approvals.STATE_PATTERN,
        description="`waiting`, `withdrawn`, `expired`, what was decided, or `any`.",
    ),
]
Approver = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=rules.LONGEST_ACTOR,
        pattern=r"^[^\x00-\x1f]*$",
        description="Only what this person may decide; `me` is the one whose key this is.",
    ),
]


@routes("GET", "/v1/approvals", scope=scopes.JOBS_READ, tag=TAG)
async def list_approvals(
    client: Client,
    principal: Principal,
    state: State = rules.WAITING,
    job_id: Annotated[Reference, Query(alias="jobId")] = None,
    approver: Approver = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> approvals.ApprovalPage:
    """List what waits for people, oldest first; or what became of it."""
    found = await client.approvals.list(
        state=None if state == approvals.ANY else state,
        job_id=job_id,
        **_named(principal, approver),
        cursor=cursor,
        most=limit,
    )
    return approvals.ApprovalPage(list(found), found.cursor)


def _named(principal: access.Principal, approver: str | None) -> dict[str, str | None]:
    if approver != ME:
        return {"approver": approver}
    return {"approver": principal.actor, "called": principal.name}


@routes("GET", "/v1/approvals/{jobId}/{taskId}", scope=scopes.JOBS_READ, problems=(404,), tag=TAG)
async def show_approval(client: Client, job_id: JobId, task_id: TaskId, key: Key = None) -> approving.ApprovalDetail:
    """Show what a task asks, or asked last, with the outputs of the tasks that it depends on."""
    return await client.approvals.get(job_id, task_id, key=key)


@routes(
    "POST",
    "/v1/approvals/{jobId}/{taskId}/decision",
    scope=scopes.APPROVALS_DECIDE,
    problems=(403, 404, 409),
    tag=TAG,
)
async def decide_approval(
    client: Client, principal: Principal, job_id: JobId, task_id: TaskId, body: approvals.Decision
) -> commands.Decided:
    """Decide, in the name of the key. The same decision again changes nothing. What the tenant may spend is for an
    admin to decide."""
    if await client.approvals.is_about_tenant(job_id):
        principal.require(scopes.ADMIN)
    return await client.approvals.decide(
        job_id,
        task_id,
        body.decision,
        actor=principal.actor,
        called=principal.name,
        notes=body.notes,
        payload=body.edited,
        key=body.key,
        version=body.version,
    )
