"""Around every request: its id, the headers that keep browsers careful, and an answer whatever goes wrong."""

from __future__ import annotations

import re

import uuid_utils
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato import errors
from ostinato.api import cors, problems
from ostinato.engine import scribe

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""What a route says itself, such as a page with scripts of its own, is left alone."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class Envelope:
    """The outermost layer. Errors of the layers below that are ours become problems; others are logged and hidden."""

    def __init__(self, app: ASGIApp, pages: cors.Cors) -> None:
        self._app = app
        self._cors = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given = HTTPConnection(scope).headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else str(uuid_utils.uuid7())
        # A copy: a server gives the same state to all requests.
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        scribe.request_id.set(request_id)
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                self._cors.mark(scope, headers)
            await send(message)

        try:
            preflight = self._cors.preflight(scope)
            await (preflight or self._app)(scope, receive, watched)
        except errors.OstinatoError as error:
            if not started:
                await problems.send(error, scope, receive, watched)
        except Exception as error:
            hidden = problems.unexpected(error, request_id)
            if not started:
                await problems.send(hidden, scope, receive, watched)
