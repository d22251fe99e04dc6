"""Where bytes become requests: nobody is waited for without end, or listened to without bound.

The limits on what a request says apply when it is there. These apply while it is not.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 30.0
"""How long the head of a request may take, from the first byte or from the connection on."""
MOST_HEADER_BYTES = 64 * 1024
"""More of a head than this is not kept, even if it never ends. (What is allowed is less, and is answered politely.)"""


class CarefulProtocol(HttpToolsProtocol):
    _head_bytes = 0
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._waiting is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._waiting is not None and self._head_bytes > MOST_HEADER_BYTES:
            self._give_up()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._head_is_there()
        super().on_headers_complete()

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
