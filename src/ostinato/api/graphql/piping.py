"""Pipelines and their items, by the same handlers that HTTP has for them."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from ariadne import ObjectType

from ostinato import errors
from ostinato.api import models, piping
from ostinato.api.graphql.resolvers import Call, Connection, convert, most, number, page
from ostinato.api.http import pipelines
from ostinato.core import commands
from ostinato.pipelines import diagram
from ostinato.reactions import bulk, health, item_views, policies

query = ObjectType("Query")
mutation = ObjectType("Mutation")
item = ObjectType("Item")


# --- looking -----------------------------------------------------------------------------------------------------


class Drawn(diagram.Moves, frozen=True):
    """The legal moves of a pipeline, and a diagram of them."""

    mermaid: str


@query.field("pipelineMoves")
async def list_moves(_: Any, info: Any, name: str, version: int | None = None) -> Drawn | None:
    try:
        course = await info.context.client.pipelines.course(name, version)
    except errors.DefinitionNotFound:
        return None
    return Drawn(**msgspec.structs.asdict(diagram.moves(course)), mermaid=diagram.mermaid(course))


@query.field("pipelineHealth")
async def show_health(_: Any, info: Any, name: str, stuckSeconds: float) -> health.Health | None:
    try:
        return await info.context.client.pipelines.health(name, stuck_seconds=stuckSeconds)
    except errors.DefinitionNotFound:
        return None


@query.field("retryPolicies")
async def list_policies(_: Any, info: Any, pipeline: str) -> list[policies.PolicyView] | None:
    try:
        return await info.context.client.pipelines.policies(pipeline)
    except errors.DefinitionNotFound:
        return None


@query.field("items")
async def list_items(
    _: Any, info: Any, pipeline: str, first: int, after: str | None = None, filter: dict[str, Any] | None = None
) -> Connection | None:
    wanted = convert(filter or {}, piping.ItemFilter).wanted()
    try:
        found = await info.context.client.pipelines.views(pipeline, wanted, cursor=after, most=most(first))
    except errors.DefinitionNotFound:
        return None
    return page(found, found.cursor)


@query.field("item")
async def find_item(_: Any, info: Any, itemId: str) -> item_views.ItemDetail | None:
    try:
        return await info.context.client.pipelines.detail(itemId)
    except errors.ItemNotFound:
        return None


@item.field("detail")
async def detail_of_item(found: item_views.ItemView, info: Any) -> item_views.ItemDetail:
    if isinstance(found, item_views.ItemDetail):
        return found
    return await info.context.client.pipelines.detail(found.item_id)


@item.field("history")
async def history_of_item(found: item_views.ItemView, info: Any, first: int, after: str | None = None) -> Connection:
    moves = await info.context.client.pipelines.moves(found.item_id, after=number(after, 0), most=most(first))
    return page(moves, moves.cursor)


# --- definitions -------------------------------------------------------------------------------------------------


@mutation.field("setRetryPolicy")
async def set_policy(_: Any, info: Any, pipeline: str, step: str, retry: dict[str, Any]) -> policies.PolicyView:
    call: Call = info.context
    body = convert(retry, piping.RetryPolicy)
    return await pipelines.change_retry_policy(call.client, call.principal, pipeline, step, body)


@mutation.field("resetRetryPolicy")
async def reset_policy(_: Any, info: Any, pipeline: str, step: str) -> policies.PolicyView:
    call: Call = info.context
    return await pipelines.reset_retry_policy(call.client, call.principal, pipeline, step)


# --- items -------------------------------------------------------------------------------------------------------


class _Items(msgspec.Struct):
    items: piping.EnterItems


@mutation.field("enterItems")
async def enter_items(_: Any, info: Any, pipeline: str, items: list[dict[str, Any]]) -> list[piping.Entered]:
    call: Call = info.context
    body = convert({"items": [_without_payload(one) for one in items]}, _Items).items
    for one, given in zip(body, items, strict=True):
        one.payload = given.get("payload")
    answer = await pipelines.enter_items(call.client, call.principal, pipeline, body)
    return cast("piping.EnteredItems", answer.value).items


def _without_payload(given: dict[str, Any]) -> dict[str, Any]:
    """In a payload null is a value; elsewhere it stands for what is not given."""
    return {name: value for name, value in given.items() if name != "payload" and value is not None}


@mutation.field("processItems")
async def process_items(_: Any, info: Any, pipeline: str, **given: Any) -> list[piping.Entered]:
    call: Call = info.context
    body = convert(given, piping.Process)
    return (await pipelines.process_items(call.client, call.principal, pipeline, body)).items


@mutation.field("restartItem")
async def restart_item(_: Any, info: Any, itemId: str, **given: Any) -> item_views.ItemView:
    call: Call = info.context
    body = convert(given, piping.Restart)
    return await pipelines.restart_item(call.client, call.principal, itemId, body)


@mutation.field("decideItem")
async def decide_item(_: Any, info: Any, itemId: str, **given: Any) -> commands.Decided:
    call: Call = info.context
    body = convert(given, piping.Decision)
    return await pipelines.decide_item(call.client, call.principal, itemId, body)


@mutation.field("moveItem")
async def move_item(_: Any, info: Any, itemId: str, **given: Any) -> item_views.ItemView:
    call: Call = info.context
    body = convert(given, piping.MoveItem)
    return await pipelines.move_item(call.client, call.principal, itemId, body)


@mutation.field("rollBackItem")
async def roll_back_item(_: Any, info: Any, itemId: str, **given: Any) -> item_views.ItemView:
    call: Call = info.context
    body = convert(given, models.Reason)
    return await pipelines.roll_back_item(call.client, call.principal, itemId, body)


@mutation.field("migrateItem")
async def migrate_item(_: Any, info: Any, itemId: str, **given: Any) -> item_views.ItemView:
    call: Call = info.context
    body = convert(given, piping.Migrate)
    return await pipelines.migrate_item(call.client, call.principal, itemId, body)


@mutation.field("bulkItems")
async def act_on_items(_: Any, info: Any, pipeline: str, input: dict[str, Any]) -> bulk.Done:
    call: Call = info.context
    body = convert(input, piping.Bulk)
    return await pipelines.act_on_items(call.client, call.principal, pipeline, body)


ALL = (query, mutation, item)
