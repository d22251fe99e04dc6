"""What every open stream does: it lets in only who may come in, looks again and again, and ends with a reason."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
from starlette.requests import HTTPConnection

from ostinato import errors
from ostinato.api import access, calls, connections, guard, limits
from ostinato.api.live import hub, messages
from ostinato.core import codec

CHECK_SECONDS = 1.0
"""How often it is asked whether a key still works. What is known of a key is believed for two seconds more."""
GRACE_SECONDS = 5.0
"""How long a reader that takes nothing is waited for before it is cut off."""
MOST_DEPTH = 64


async def authenticate(connection: HTTPConnection, key: str | None) -> access.Principal:
    """Who brought this key in a message, instead of a header."""
    client = None if connection.client is None else connection.client.host
    buckets: limits.Buckets = connection.app.state.buckets
    principal = await guard.authenticate(calls.access_of(connection), buckets, key, client)
    connections.admit(connection.scope)
    return principal


async def valid(connection: HTTPConnection, principal: access.Principal) -> bool:
    """Whether they would still be let in. While that cannot be found out, they stay: they were let in before."""
    try:
        return await calls.access_of(connection).still_valid(principal)
    except errors.DatabaseError:
        return True


def read_message(text: str) -> dict[str, Any] | None:
    """A message that is a JSON object and not too deep; else None."""
    data = text.encode("utf-8", "replace")
    if codec.depth(data, MOST_DEPTH) > MOST_DEPTH:
        return None
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


async def watch(connection: HTTPConnection, subscription: hub.Subscription) -> None:
    """End a stream when its key no longer works; come back when it has ended and its reader does not take it."""
    principal = calls.principal_of(connection)
    while subscription.ended is None:
        await asyncio.sleep(CHECK_SECONDS)
        if not await valid(connection, principal):
            subscription.end(errors.Unauthenticated("the key no longer works", cursor=subscription.cursor))
    await asyncio.sleep(GRACE_SECONDS)


async def pump(
    connection: HTTPConnection,
    subscription: hub.Subscription,
    send: Callable[[messages.Message], Awaitable[None]],
) -> errors.OstinatoError:
    """Send what comes until the stream ends, and say why it did. A reader that takes nothing is given up."""

    async def sending() -> None:
        async with contextlib.aclosing(aiter(subscription)) as stream:
            async for message in stream:
                await send(message)

    tasks = [asyncio.create_task(sending()), asyncio.create_task(watch(connection, subscription))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            try:
                await tasks[0]
            except errors.OstinatoError as error:
                return error
        return subscription.ended or errors.StreamClosed(cursor=subscription.cursor)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
