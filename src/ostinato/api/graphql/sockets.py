"""GraphQL over sockets: `graphql-transport-ws` and nothing else, and nothing before it is known who asks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, cast

from ariadne.asgi.handlers import GraphQLTransportWSHandler
from ariadne.asgi.handlers.graphql_transport_ws import ClientContext
from graphql import GraphQLError
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from ostinato import errors
from ostinato.api import access, calls, limits
from ostinato.api.graphql import schema
from ostinato.api.live import streams

PROTOCOL = "graphql-transport-ws"
MOST_OPERATIONS = 100
INIT_SECONDS = 10.0
STALLED_SECONDS = 10.0
"""A socket that takes nothing for so long is dropped, whatever it has subscribed to."""

# What the protocol says on closing, or nearly so.
BAD_MESSAGE, UNAUTHENTICATED, FORBIDDEN, SLOW, TOO_MANY = 4400, 4401, 4403, 4408, 4429


class Sockets(GraphQLTransportWSHandler):
    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]

    async def handle_connection_init_timeout(self, websocket: WebSocket, client_context: ClientContext) -> None:
        await asyncio.sleep(INIT_SECONDS)
        if not client_context.connection_init_received:
            await _close(websocket, SLOW, "connection initialisation timeout")

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        stalled = asyncio.Event()

        async def patient(message: Message) -> None:
            try:
                async with asyncio.timeout(STALLED_SECONDS):
                    await send(message)
            except TimeoutError:
                stalled.set()
                raise errors.SlowReader from None

        websocket = WebSocket(scope, receive, patient)
        websocket.state.stalled = stalled
        await self.handle_websocket(websocket)

    async def handle_websocket(self, websocket: WebSocket) -> None:
        if PROTOCOL not in websocket.scope.get("subprotocols", ()):
            raise errors.RequestRefused(f"this socket speaks {PROTOCOL} only: ask for it as the subprotocol")
        await websocket.accept(PROTOCOL)
        client = ClientContext()
        waiting = asyncio.create_task(self.handle_connection_init_timeout(websocket, client))
        listening = asyncio.create_task(self._listen(websocket, client))
        watching = asyncio.create_task(_watch(websocket))
        stalling = asyncio.create_task(websocket.state.stalled.wait())
        try:
            await asyncio.wait([listening, watching, stalling], return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                await _close(websocket, UNAUTHENTICATED, "the key no longer works")
        finally:
            ended = (listening, watching, waiting, stalling)
            for one in ended:
                one.cancel()
            await asyncio.gather(*ended, return_exceptions=True)
            for operation_id in list(client.operations):
                await _stop(client, operation_id)

    async def _listen(self, websocket: WebSocket, client: ClientContext) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            while websocket.application_state is WebSocketState.CONNECTED:
                message = streams.read_message(await websocket.receive_text())
                if message is None:
                    await _close(websocket, BAD_MESSAGE, "this is not a message of the protocol")
                    return
                await self.handle_websocket_message(websocket, message, client)  # pyright: ignore[reportUnknownMemberType]

    async def handle_websocket_connection_init_message(
        self, websocket: WebSocket, message: dict[str, Any], client_context: ClientContext
    ) -> None:
        """As above, but who is not let in is told so."""
        if client_context.connection_init_received:
            await _close(websocket, TOO_MANY, "too many initialisation requests")
            return
        client_context.connection_init_received = True
        try:
            await _admit(websocket, message.get("payload"))
        except errors.TooManyRequests:
            await _close(websocket, TOO_MANY, "too_many_requests")
        except errors.OstinatoError as error:
            await _close(websocket, FORBIDDEN, error.code)
        else:
            client_context.connection_acknowledged = True
            await websocket.send_json({"type": self.GQL_CONNECTION_ACK})

    async def handle_websocket_subscribe(
        self, websocket: WebSocket, data: Any, operation_id: str, client_context: ClientContext
    ) -> None:
        if not client_context.connection_acknowledged:
            await _close(websocket, UNAUTHENTICATED, "unauthenticated")
            return
        if not isinstance(operation_id, str) or not operation_id:  # pyright: ignore[reportUnnecessaryIsInstance]
            await _close(websocket, BAD_MESSAGE, "an operation needs an id")
            return
        try:
            buckets: limits.Buckets = websocket.app.state.buckets
            principal = calls.principal_of(websocket)
            buckets.take(f"key:{principal.key_id}")
            if not await streams.valid(websocket, principal):
                raise errors.Unauthenticated("the key no longer works")
            if len(client_context.operations) >= MOST_OPERATIONS:
                raise errors.TooManyRequests(1.0, f"there are already {MOST_OPERATIONS} subscriptions on this socket")
            await super().handle_websocket_subscribe(websocket, data, operation_id, client_context)
        except (GraphQLError, errors.OstinatoError) as error:
            shown = error if isinstance(error, GraphQLError) else GraphQLError(str(error), original_error=error)
            payload = [schema.show_error(shown)]
            await websocket.send_json({"type": self.GQL_ERROR, "id": operation_id, "payload": payload})


async def _admit(websocket: WebSocket, payload: Any) -> None:
    """Who came with a header is in already. Others bring their key now; without keys, this machine is let in."""
    if websocket.state.principal is None:
        websocket.state.principal = await streams.authenticate(websocket, _key(payload))


def _key(payload: Any) -> str | None:
    """From `{"authorization": "Bearer ost_…"}`, with a small or a capital letter."""
    given = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}
    text = given.get("authorization", given.get("Authorization"))
    if text is None:
        return None
    return text[7:].strip() if isinstance(text, str) and text[:7].lower() == "bearer " else ""


async def _stop(client: ClientContext, operation_id: str) -> None:
    """End an operation, even one that has failed, so that nothing is kept for it any longer."""
    operation: Any = client.operations.pop(operation_id)
    tasks: dict[str, asyncio.Task[Any]] = client.operation_tasks  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    running = tasks.pop(operation_id, None)
    if running is not None:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await operation.generator.aclose()


async def _watch(websocket: WebSocket) -> None:
    """Comes back when whoever is on this socket would not be let in any more."""
    while True:
        await asyncio.sleep(streams.CHECK_SECONDS)
        principal: access.Principal | None = websocket.state.principal
        if principal is not None and not await streams.valid(websocket, principal):
            return


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    """A socket that takes nothing more is left to be dropped."""
    with contextlib.suppress(RuntimeError, TimeoutError):
        async with asyncio.timeout(streams.GRACE_SECONDS):
            await websocket.close(code, reason)
