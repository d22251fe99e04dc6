"""What is noted of every request: a line in the log, numbers for Prometheus, and whose trace it belongs to."""

from __future__ import annotations

import functools
import logging
import time
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato import logs, tracing
from ostinato.api import access, limits, metrics, routing

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", routing.WEBSOCKET)
OTHER = "OTHER"
NO_ROUTE = "(none)"
"""Of requests that nothing answers: their paths are whatever a stranger likes."""
EVENT_STREAM = "text/event-stream"

log = logging.getLogger("ostinato.access")


class Recorder:
    """Around everything else, so that what is refused is noted too."""

    def __init__(self, app: ASGIApp, counted: metrics.Metrics) -> None:
        self._app = app
        self._metrics = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        scope.setdefault("state", {})
        bound = logs.bind(functools.partial(_about, scope))
        seen = _Answer(scope, self._metrics)
        try:
            with tracing.incoming(Headers(scope=scope).get("traceparent")):
                await self._app(scope, receive, functools.partial(seen.send, send))
        finally:
            self._metrics.streams.pop(id(scope), None)
            self._note(scope, seen, time.perf_counter() - began)
            logs.unbind(bound)

    def _note(self, scope: Scope, seen: _Answer, seconds: float) -> None:
        state = scope["state"]
        route: routing.Declared | None = state.get("route")
        principal: access.Principal | None = state.get("principal")
        method = routing.WEBSOCKET if scope["type"] == "websocket" else scope["method"]
        method = method if method in METHODS else OTHER
        path = NO_ROUTE if route is None else route.path
        tenant = metrics.NOBODY if principal is None else principal.tenant
        self._metrics.answered(tenant, method, path, seen.status, None if seen.streams else seconds)
        level = logging.DEBUG if seen.status < 400 and _of_the_ui(scope, path) else logging.INFO
        if log.isEnabledFor(level):
            about = {"method": method, "route": path, "status": seen.status, "ms": round(seconds * 1000, 2)}
            log.log(level, "request", extra=about)


class _Answer:
    """The status of an answer, and whether it is one that stays open."""

    def __init__(self, scope: Scope, counted: metrics.Metrics) -> None:
        self._scope = scope
        self._metrics = counted
        self.status = 499 if scope["type"] == "http" else 403
        """What is noted if nothing is ever sent: the client went away, or the socket was closed unaccepted."""
        self.streams = False

    async def send(self, send: Send, message: Message) -> None:
        kind = message["type"]
        if kind in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            if Headers(raw=message.get("headers", [])).get("content-type", "").startswith(EVENT_STREAM):
                self._open("sse")
        elif kind == "websocket.accept":
            self.status = 101
            self._open("websocket")
        await send(message)

    def _open(self, kind: str) -> None:
        self.streams = True
        # The state, not the owner: a socket may say in its first message whose it is.
        self._metrics.streams[id(self._scope)] = (kind, self._scope["state"])


def _of_the_ui(scope: Scope, route: str) -> bool:
    """Its files, and what its pages ask for, which is a lot while somebody looks at them."""
    if route == "/" or route.startswith("/ui"):
        return True
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    return headers.get("sec-fetch-site") == "same-origin" or (
        origin is not None and limits.is_own_origin(origin, headers)
    )


def _about(scope: Scope) -> dict[str, Any]:
    state = scope["state"]
    principal: access.Principal | None = state.get("principal")
    about = {"request_id": state.get("request_id")}
    if principal is not None:
        about |= {"tenant": principal.tenant, "key_id": principal.key_id}
    return about
