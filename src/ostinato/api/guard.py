"""The one authentication layer, for everything that a server serves. Nothing passes it by the look of its path."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato import errors
from ostinato.api import access, answers, connections, limits, problems, routing

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


class Guard:
    """Finds the route that will answer, and lets a request in if its key has the scope that the route names.

    A path that nobody answers needs a key like any other, so that strangers cannot even learn which ones there are.
    """

    def __init__(self, app: ASGIApp, gate: access.Access, table: routing.Table, buckets: limits.Buckets) -> None:
        self._app = app
        self._access = gate
        self._table = table
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self._answer_head(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer_head(self, scope: Scope, receive: Receive, send: Send) -> None:
        """HEAD is GET without the body of the answer. What would stream is told that its reader has gone."""
        started, complete = False, True

        async def receiving() -> Message:
            return {"type": "http.disconnect"} if started else await receive()

        async def sending(message: Message) -> None:
            nonlocal started, complete
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            started, complete = True, message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        await self._answer({**scope, "method": "GET"}, receiving, sending)
        if not complete:
            await send({"type": "http.response.body", "body": b""})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            route = scope["state"]["route"] = self._table.find(scope)
            scope["state"]["principal"] = await self._admit(scope, route)
            if route is None and (known := self._table.methods(scope)):
                raise problems.MethodNotAllowed(headers={"Allow": ", ".join(known)})
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope, route: routing.Declared | None) -> access.Principal | None:
        client = scope["client"][0] if scope.get("client") else None
        headers = Headers(scope=scope)
        text = bearer(headers)
        if any(name in headers for name in FORWARDED):
            client = None  # it came through a proxy: whoever asks is not at this machine
        if route is not None and (route.scope == routing.PUBLIC or (route.late and text is None)):
            self._buckets.take(f"nobody:{route.path}:{client}")  # probes are not held up by others
            return None
        principal = await authenticate(self._access, self._buckets, text, client)
        self._buckets.take(f"key:{principal.key_id}")
        if route is not None and route.scope != routing.ANY:
            principal.require(route.scope)
        connections.admit(scope)
        return principal


async def authenticate(
    gate: access.Access, buckets: limits.Buckets, text: str | None, client: str | None
) -> access.Principal:
    """Who this is. Failures count for their address: one with too many is refused before a key of its is looked up."""
    address = f"address:{client}"
    if not gate.knows(text):
        buckets.check(address)
    try:
        async with answers.within(answers.ANSWER_SECONDS):
            return await gate.authenticate(text, client)
    except errors.Unauthenticated:
        buckets.take(address)
        raise


def bearer(headers: Headers) -> str | None:
    """The key in the Authorization header; None if there is no such header. What is no bearer is no key."""
    given = headers.getlist("authorization")
    if not given:
        return None
    kind, _, text = given[0].partition(" ")
    return text.strip() if len(given) == 1 and kind.lower() == "bearer" else ""
