"""Pipelines: describe them, enter items, see where they stand and why, and act on them, one by one or many at once."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Path, Query
from starlette.responses import PlainTextResponse

from ostinato.api import calls, models, piping, routing
from ostinato.api.calls import Client, Cursor, Limit, Principal
from ostinato.api.http import definitions
from ostinato.api.http.definitions import AtVersion, Name
from ostinato.core import commands, scopes
from ostinato.pipelines import diagram
from ostinato.reactions import bulk, health, item_views, pipelines, policies

routes = routing.Routes()
TAG = "pipelines"
ITEMS = "items"

KIND = definitions.Kind(
    "pipeline",
    lambda client: client.pipelines.shelf,
    piping.PipelineDefinition,
    piping.Pipelines,
    piping.pipeline_summary,
    saved="Items that were entered keep the version of then, until they are migrated.",
    removed="Its versions stay, and so do its items.",
)
definitions.register(routes, KIND)

ItemId = Annotated[str, Path(alias="itemId", pattern=piping.ITEM_PATTERN, description="The id of the item.")]
StepName = Annotated[str, Path(pattern=piping.STEP_PATTERN, description="The name of a step.")]


@routes("GET", "/v1/pipelines/{name}/moves", scope=scopes.JOBS_READ, problems=(404,), tag=TAG)
async def list_pipeline_moves(
    client: Client,
    name: Name,
    version: AtVersion = None,
    format: Annotated[Literal["json", "mermaid"], Query(description="Data, or a diagram.")] = "json",
) -> diagram.Moves | PlainTextResponse:
    """List the legal moves of a pipeline, by the codes and the names of its statuses; or draw them."""
    course = await client.pipelines.course(name, version)
    return PlainTextResponse(diagram.mermaid(course)) if format == "mermaid" else diagram.moves(course)


@routes("GET", "/v1/pipelines/{name}/health", scope=scopes.JOBS_READ, problems=(404,), tag=TAG)
async def show_pipeline_health(
    client: Client,
    name: Name,
    stuck_seconds: Annotated[
        float, Query(alias="stuckSeconds", gt=0, le=1e9, description="In one status for longer than this is stuck.")
    ] = health.STUCK_SECONDS,
) -> health.Health:
    """Show how a pipeline does: what is where, what fails, what takes long, what is stuck and why."""
    return await client.pipelines.health(name, stuck_seconds=stuck_seconds)


# --- retry policies ------------------------------------------------------------------------------------------------


@routes("GET", "/v1/pipelines/{name}/retry", scope=scopes.JOBS_READ, problems=(404,), tag=TAG)
async def list_retry_policies(client: Client, name: Name) -> piping.Policies:
    """List how often and how soon each step is tried again, as it is now."""
    return piping.Policies(await client.pipelines.policies(name))


@routes("GET", "/v1/pipelines/{name}/retry/{step}", scope=scopes.JOBS_READ, problems=(404,), tag=TAG)
async def show_retry_policy(client: Client, name: Name, step: StepName) -> policies.PolicyView:
    """Show how often and how soon a step is tried again, as it is now."""
    return await client.pipelines.policy(name, step)


@routes("PUT", "/v1/pipelines/{name}/retry/{step}", scope=scopes.CONFIG_WRITE, problems=(404,), tag=TAG)
async def change_retry_policy(
    client: Client, principal: Principal, name: Name, step: StepName, body: piping.RetryPolicy
) -> policies.PolicyView:
    """Change how often and how soon a step is tried again: from now on, also for items that are under way."""
    return await client.pipelines.set_retry(name, step, body.policy(), actor=principal.actor)


@routes("DELETE", "/v1/pipelines/{name}/retry/{step}", scope=scopes.CONFIG_WRITE, problems=(404,), tag=TAG)
async def reset_retry_policy(client: Client, principal: Principal, name: Name, step: StepName) -> policies.PolicyView:
    """Go back to what the pipeline says of a step."""
    return await client.pipelines.set_retry(name, step, None, actor=principal.actor)


# --- items of a pipeline -------------------------------------------------------------------------------------------


@routes(
    "POST", "/v1/pipelines/{name}/items", scope=scopes.JOBS_WRITE, status=(201, 200), problems=(404, 409), tag=ITEMS
)
async def enter_items(
    client: Client, principal: Principal, name: Name, body: piping.EnterItem | piping.EnterItems
) -> routing.Reply[piping.Entered | piping.EnteredItems]:
    """Enter an item, or a list of which each is checked before any is entered. 200 if nothing is new."""
    given = body if isinstance(body, list) else [body]
    new = [pipelines.NewItem(one.payload, one.item_id, one.hold) for one in given]
    found = await client.pipelines.enter_many(name, new, actor=principal.actor)
    course = await client.pipelines.course(name)
    told = [piping.entered(course, one) for one in found]
    answer = piping.EnteredItems(told) if isinstance(body, list) else told[0]
    headers = None if isinstance(body, list) else {"Location": f"/v1/items/{told[0].item_id}"}
    return routing.Reply(answer, 201 if any(one.created for one in told) else 200, headers)


async def wanted_items(
    status: Annotated[
        str | None, Query(min_length=1, max_length=64, pattern=r"^[^\x00]+$", description="By name, or by code.")
    ] = None,
    stuck: Annotated[
        float | None, Query(gt=0, le=1e9, description="Not over, and in their status for more than these seconds.")
    ] = None,
    retrying: Annotated[bool, Query(description="The next attempt is due at a time.")] = False,
    held: Annotated[bool, Query(description="Entered, never run, and not over.")] = False,
) -> item_views.Wanted:
    return item_views.Wanted(status, stuck, retrying, held)


Wanted = Annotated[item_views.Wanted, Depends(wanted_items)]


@routes("GET", "/v1/pipelines/{name}/items", scope=scopes.JOBS_READ, problems=(404,), tag=ITEMS)
async def list_items(
    client: Client, name: Name, wanted: Wanted, limit: Limit = 50, cursor: Cursor = None
) -> piping.ItemPage:
    """List items of a pipeline, newest first; those in one status, stuck or retried, longest first."""
    found = await client.pipelines.views(name, wanted, cursor=cursor, most=limit)
    return piping.ItemPage(list(found), found.cursor)


@routes("POST", "/v1/pipelines/{name}/process", scope=scopes.JOBS_WRITE, problems=(404,), tag=ITEMS)
async def process_items(client: Client, principal: Principal, name: Name, body: piping.Process) -> piping.EnteredItems:
    """Begin items that were held back, those that wait longest first; or go on with those that match a filter."""
    found = await client.pipelines.process(name, body.most, body.filter.wanted(), actor=principal.actor)
    course = await client.pipelines.course(name)
    return piping.EnteredItems([piping.entered(course, one) for one in found])


@routes("POST", "/v1/pipelines/{name}/bulk", scope=scopes.JOBS_WRITE, problems=(404,), tag=ITEMS)
async def act_on_items(client: Client, principal: Principal, name: Name, body: piping.Bulk) -> bulk.Done:
    """Do something with all items that match, or see what would become of each. To decide needs the scope for that."""
    if body.action == "decide":
        principal.require(scopes.APPROVALS_DECIDE)
    return await client.pipelines.bulk(
        name,
        body.filter.wanted(),
        body.what(),
        dry_run=body.dry_run,
        most=body.most,
        **calls.person(principal),
    )


# --- one item ------------------------------------------------------------------------------------------------------


@routes("GET", "/v1/items/{itemId}", scope=scopes.JOBS_READ, problems=(404,), tag=ITEMS)
async def show_item(client: Client, item_id: ItemId) -> item_views.ItemDetail:
    """Show an item: where it stands and why, its payload and results, its attempts and runs."""
    return await client.pipelines.detail(item_id)


@routes("GET", "/v1/items/{itemId}/history", scope=scopes.JOBS_READ, problems=(404,), tag=ITEMS)
async def list_item_history(
    client: Client,
    item_id: ItemId,
    limit: Limit = 100,
    after: Annotated[int, Query(ge=0, lt=2**31, description="`nextAfter` of the page before.")] = 0,
) -> piping.HistoryPage:
    """List the moves of an item in order: from where to where, when, by whom and why."""
    found = await client.pipelines.moves(item_id, after=after, most=limit)
    return piping.HistoryPage(list(found), None if found.cursor is None else int(found.cursor))


@routes("POST", "/v1/items/{itemId}/restart", scope=scopes.JOBS_WRITE, problems=(404, 409), tag=ITEMS)
async def restart_item(
    client: Client, principal: Principal, item_id: ItemId, body: piping.Restart
) -> item_views.ItemView:
    """Begin an item again at a step or a status. What was done before that place is not done again."""
    await client.pipelines.restart(
        item_id,
        body.at,
        only=body.only,
        payload=body.payload,
        version=body.version,
        actor=principal.actor,
        reason=body.reason,
    )
    return await client.pipelines.view(item_id)


@routes("POST", "/v1/items/{itemId}/decision", scope=scopes.APPROVALS_DECIDE, problems=(403, 404, 409), tag=ITEMS)
async def decide_item(client: Client, principal: Principal, item_id: ItemId, body: piping.Decision) -> commands.Decided:
    """Decide in the review of an item, in the name of the key."""
    return await client.pipelines.decide(
        item_id,
        body.decision,
        actor=principal.actor,
        called=principal.name,
        notes=body.notes,
        payload=body.payload,
    )


@routes("POST", "/v1/items/{itemId}/move", scope=scopes.JOBS_WRITE, problems=(404, 409), tag=ITEMS)
async def move_item(
    client: Client, principal: Principal, item_id: ItemId, body: piping.MoveItem
) -> item_views.ItemView:
    """Move an item by hand: take it for review, begin to edit it, or as its pipeline allows beside the course."""
    who = calls.person(principal)
    await client.pipelines.move(item_id, body.status, payload=body.payload, reason=body.reason, **who)
    return await client.pipelines.view(item_id)


@routes("POST", "/v1/items/{itemId}/roll-back", scope=scopes.JOBS_WRITE, problems=(404, 409), tag=ITEMS)
async def roll_back_item(
    client: Client, principal: Principal, item_id: ItemId, body: models.Reason
) -> item_views.ItemView:
    """Give an item up: its run ends, and what its steps did is taken back where they say how."""
    await client.pipelines.roll_back(item_id, actor=principal.actor, reason=body.reason)
    return await client.pipelines.view(item_id)


@routes("POST", "/v1/items/{itemId}/migrate", scope=scopes.JOBS_WRITE, problems=(404, 409), tag=ITEMS)
async def migrate_item(
    client: Client, principal: Principal, item_id: ItemId, body: piping.Migrate
) -> item_views.ItemView:
    """Let an item go on in another version of its pipeline, in the status that it has."""
    await client.pipelines.migrate(item_id, body.version, actor=principal.actor, dry_run=body.dry_run)
    return await client.pipelines.view(item_id)


# --- under the names that a newsroom knows them by -------------------------------------------------------------------


@routes("POST", "/process-queue", scope=scopes.JOBS_WRITE, problems=(404,), tag=ITEMS)
async def process_queue(client: Client, principal: Principal, body: piping.ProcessQueue) -> piping.EnteredItems:
    """Process items of a pipeline, as `POST /v1/pipelines/{name}/process` does."""
    return await process_items(client, principal, body.pipeline, body)


@routes("POST", "/enrich-item", scope=scopes.JOBS_WRITE, problems=(404, 409), tag=ITEMS)
async def enrich_item(client: Client, principal: Principal, body: piping.EnrichItem) -> item_views.ItemView:
    """Go on with an item, or if there is nothing left to do, begin it again where its review would."""
    await client.pipelines.enrich(body.item_id, body.at, actor=principal.actor)
    return await client.pipelines.view(body.item_id)


@routes("POST", "/enrich-single-step", scope=scopes.JOBS_WRITE, problems=(404, 409), tag=ITEMS)
async def enrich_single_step(client: Client, principal: Principal, body: piping.EnrichStep) -> item_views.ItemView:
    """Run one step of an item, and nothing after it."""
    await client.pipelines.restart(body.item_id, body.step, only=True, actor=principal.actor)
    return await client.pipelines.view(body.item_id)
