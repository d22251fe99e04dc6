"""Where bytes become requests: nobody is waited for without end, or listened to without bound.

The limits on what a request says apply when it is there. These apply while it is not.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ostinato.api import connections

HEADER_SECONDS = 5.0
"""How long the head of a request may take, from the first byte or from the connection on."""
MOST_HEADER_BYTES = 64 * 1024
"""More of a head than this is not kept, even if it never ends. (What is allowed is less, and is answered politely.)"""


def _registry(app: Any) -> connections.Connections:
    """That of the server whose connections these are."""
    return app.connections


class CarefulProtocol(HttpToolsProtocol):
    _head_bytes = 0
    _waiting: asyncio.TimerHandle | None = None
    _connection: connections.Connection

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._registry = _registry(self.config.app)
        self._connection = self._registry.opened(transport, self.client[0] if self.client else None)
        # Of this connection alone: what is spoken on it may change, and its place stays the same.
        self.ws_protocol_class = functools.partial(CarefulWebSocket, self._registry, self._connection)  # pyright: ignore
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        self._registry.closed(self._connection)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._waiting is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._waiting is not None and self._head_bytes > MOST_HEADER_BYTES:
            self._give_up()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["connection"] = self._connection  # pyright: ignore[reportTypedDictNotRequiredAccess]
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._head_is_there()
        self._connection.spoke()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self._connection.release()
        super().on_response_complete()

    def _wait_for_head(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _head_is_there(self) -> None:
        self._head_bytes = 0
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._head_is_there()
        self.transport.abort()


class CarefulWebSocket(WebSocketsSansIOProtocol):
    def __init__(self, registry: connections.Connections, connection: connections.Connection, **given: Any) -> None:
        super().__init__(**given)
        self._registry = registry
        self._connection = connection

    def connection_lost(self, exc: Exception | None) -> None:
        self._registry.closed(self._connection)
        super().connection_lost(exc)

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["state"]["connection"] = self._connection  # pyright: ignore[reportTypedDictNotRequiredAccess]

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # it was refused by a whole answer, which is no error to log
