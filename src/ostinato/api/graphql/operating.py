"""What operators look at: who they are, how much waits, how functions do, and the keys of their tenant."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

from ariadne import ObjectType

from ostinato import views
from ostinato.api import access
from ostinato.api.graphql.resolvers import Call
from ostinato.core import filters
from ostinato.store import gauges, keys

query = ObjectType("Query")
mutation = ObjectType("Mutation")
viewer = ObjectType("Viewer")
queue = ObjectType("Queue")
waiting = ObjectType("Waiting")


class ShownKey(NamedTuple):
    """A key without its secret, and what has become of it."""

    key_id: str
    name: str
    scopes: list[str]
    state: str
    created_at: datetime.datetime | None
    expires_at: datetime.datetime | None
    last_used_at: datetime.datetime | None
    revoked_at: datetime.datetime | None


class MadeKey(NamedTuple):
    key: ShownKey
    text: str


@query.field("viewer")
def find_viewer(_: Any, info: Any) -> access.Principal:
    return info.context.principal


@viewer.field("scopes")
def scopes_of_viewer(found: access.Principal, _: Any) -> list[str]:
    return sorted(found.scopes)


# --- how much waits ------------------------------------------------------------------------------------------------


@query.field("queues")
async def list_queues(_: Any, info: Any) -> list[gauges.QueueDepth]:
    client = info.context.client
    return (await client.engine.store.waiting(client.tenant)).queues


@query.field("waiting")
async def list_waiting(_: Any, info: Any) -> list[gauges.Waiting]:
    client = info.context.client
    return await client.engine.store.timers(client.tenant)


@query.field("functionNumbers")
async def list_numbers(_: Any, info: Any, since: datetime.datetime) -> list[gauges.FunctionNumbers]:
    client = info.context.client
    with info.context.account.long():
        return await client.engine.store.function_numbers(client.tenant, filters.micros(since, "since") or 0)


@queue.field("oldestReadyAt")
def oldest_of_queue(found: gauges.QueueDepth, _: Any) -> datetime.datetime | None:
    return views.moment(found.oldest_ready_at)


@waiting.field("nextDueAt")
def next_of_waiting(found: gauges.Waiting, _: Any) -> datetime.datetime | None:
    return views.moment(found.next_due_at)


# --- keys ----------------------------------------------------------------------------------------------------------


@query.field("keys")
async def list_keys(_: Any, info: Any) -> list[ShownKey]:
    call: Call = info.context
    return [_shown(call, found) for found in await call.keys.keys(call.principal.tenant)]


@mutation.field("createKey")
async def create_key(_: Any, info: Any, name: str, scopes: list[str], expiresIn: float | None = None) -> MadeKey:
    call: Call = info.context
    await call.client.note(call.principal.actor, "keys.create", name, scopes=scopes)
    made = await call.keys.create_key(call.principal.tenant, name, scopes, expires_in=expiresIn)
    return MadeKey(_shown(call, made.key), made.text)


@mutation.field("revokeKey")
async def revoke_key(_: Any, info: Any, keyId: str) -> datetime.datetime | None:
    call: Call = info.context
    await call.client.note(call.principal.actor, "keys.revoke", keyId)
    return views.moment(await call.keys.revoke_key(call.principal.tenant, keyId))


def _shown(call: Call, found: keys.Key) -> ShownKey:
    state = "works" if found.works(call.client.engine.db.now()) else "expired"
    times = (found.created_at, found.expires_at, found.last_used_at, found.revoked_at)
    return ShownKey(
        found.key_id,
        found.name,
        sorted(found.scopes),
        state if found.revoked_at is None else "revoked",
        *map(views.moment, times),
    )


ALL = (query, mutation, viewer, queue, waiting)
