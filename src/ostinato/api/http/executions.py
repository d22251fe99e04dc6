"""The execution index: executions found by agent, status, tag and time, wherever they ran."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Path, Query

from ostinato import views
from ostinato.api import models, routing
from ostinato.api.calls import Account, Client, Cursor, Limit, Principal
from ostinato.api.http.jobs import Moment, Tag
from ostinato.core import executions, filters, scopes

routes = routing.Routes()

Text = Annotated[str | None, Query(min_length=1, max_length=executions.LONGEST, pattern=r"^[^\x00]+$")]
Status = Literal["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]
ExecutionArn = Annotated[
    str, Path(alias="executionArn", min_length=1, max_length=1024, pattern=r"^[^\x00]+$", description="Its ARN.")
]


async def wanted_executions(
    agent_name: Annotated[Text, Query(alias="agentName")] = None,
    status: Annotated[list[Status] | None, Query(description="One or several.", max_length=5)] = None,
    tag: Tag = None,
    correlation_id: Annotated[Text, Query(alias="correlationId")] = None,
    started_from: Annotated[Moment, Query(alias="startedFrom")] = None,
    started_until: Annotated[Moment, Query(alias="startedUntil")] = None,
    include_engine: Annotated[
        bool | None,
        Query(
            alias="includeEngine",
            description="Also the engine's own: of rules and gates, about budgets. Left out, only if they are named.",
        ),
    ] = None,
) -> filters.ExecutionsWanted:
    """From the query to the arguments of `Ostinato.executions`: whatever executions can be found by is listed here."""
    return {
        "agent_name": agent_name,
        "status": status,
        "tag": tag,
        "correlation_id": correlation_id,
        "started_from": started_from,
        "started_until": started_until,
        "include_engine": include_engine,
    }


Wanted = Annotated[filters.ExecutionsWanted, Depends(wanted_executions)]


@routes("GET", "/v1/executions", scope=scopes.JOBS_READ, tag="executions")
async def list_executions(
    client: Client,
    wanted: Wanted,
    order: Annotated[Literal["newest", "oldest"], Query(description="What comes first, by start.")] = "newest",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> models.ExecutionPage:
    """List executions: jobs, and what was reported from outside."""
    found = await client.executions(order=order, most=limit, cursor=cursor, **wanted)
    return models.ExecutionPage(found, found.cursor)


@routes("GET", "/v1/executions/counts", scope=scopes.JOBS_READ, tag="executions")
async def count_executions(
    client: Client,
    account: Account,
    wanted: Wanted,
    by: Annotated[Literal["status", "day", "hour"], Query(description="Days and hours are those of UTC.")] = "status",
) -> models.ExecutionCounts:
    """Count executions by status, day or hour."""
    with account.long():
        return models.ExecutionCounts(by, await client.execution_counts(by, **wanted))


@routes("GET", "/v1/executions/{executionArn:path}", scope=scopes.JOBS_READ, problems=(404,), tag="executions")
async def show_execution(client: Client, execution_arn: ExecutionArn) -> views.ExecutionView:
    """Show one execution."""
    return await client.execution(execution_arn)


@routes("PUT", "/v1/index/definitions", scope=scopes.CONFIG_WRITE, tag="executions")
async def tag_definition(client: Client, principal: Principal, body: models.Definition) -> models.TaggedDefinition:
    """Say what the tags of a definition elsewhere are: they decide whether its executions are indexed."""
    arn = executions.check_arn(body.state_machine_arn, "stateMachineArn")
    tags = executions.read_tags(body.tags)
    await client.note(principal.actor, "index.tag", arn, tags=tags)
    await client.index.tag(arn, tags)
    return models.TaggedDefinition(arn, tags)
