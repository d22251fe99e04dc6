"""What is refused before any work is done for it: by size, by name, by origin, by rate."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import ipaddress
import time
from collections.abc import Generator, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato import errors
from ostinato.api import access, cors, routing, settings
from ostinato.core import codec, graph

BODY_SECONDS = 60.0
TASKS_OF_A_REQUEST = 125
"""So many tasks are as much work as a small request."""
LONG_WORK = 10.0
MOST_WORK = 40.0
"""A count or a search is as much work as so many small requests, until it is known; and at most."""
REQUEST_SECONDS = 0.01
"""How long a small request takes."""
READS = ("GET", "HEAD", "OPTIONS")
_NAMES_OF_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class Limits:
    """Checks what can be seen from the headers alone, before anybody is asked who they are."""

    def __init__(self, app: ASGIApp, options: settings.ServerOptions) -> None:
        self._app = app
        self._options = options
        self._hosts = {*_NAMES_OF_THIS_MACHINE, options.host.lower(), *(host.lower() for host in options.allowed_hosts)}
        self._any_address = _is_wildcard(options.host)
        self._origins = {cors.normal(origin) for origin in options.allowed_origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        self._check_size(scope)
        self._check_host(headers.getlist("host"))
        if scope["type"] == "websocket" or scope["method"] not in READS:
            self._check_origin(headers)
        limit = self._options.max_body_bytes
        declared = headers.get("content-length", "")
        if declared and not declared.isdecimal():
            raise errors.RequestRefused("Content-Length is not a number")
        if declared and int(declared) > limit:
            raise _too_large(limit)
        await self._app(scope, _counted(receive, limit), send)

    def _check_size(self, scope: Scope) -> None:
        limit = self._options.max_header_bytes
        size = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
        size += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if size > limit:
            raise errors.HeadersTooLarge(f"the headers have {size:,} bytes and the limit is {limit:,}", limit=limit)

    def _check_host(self, given: list[str]) -> None:
        """Against DNS rebinding: a page that gets its own name to point here still sends its own name."""
        name = _host_name(given[0]) if len(given) == 1 else None
        if name is None or not (name in self._hosts or (self._any_address and _is_address(name))):
            raise errors.HostNotAllowed()

    def _check_origin(self, headers: Headers) -> None:
        """A browser says whose page is writing; other programs say nothing."""
        for origin in headers.getlist("origin"):
            if not is_own_origin(origin, headers) and origin.lower() not in self._origins:
                raise errors.OriginNotAllowed()


class Bodies:
    """Takes bodies that are JSON, whole, and not too deep. Below authentication: only those who are let in are read."""

    def __init__(self, app: ASGIApp, options: settings.ServerOptions) -> None:
        self._app = app
        self._depth = options.max_json_depth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _whole(receive)
        except TimeoutError:
            raise errors.RequestRefused(f"the body was not there after {BODY_SECONDS:g} s") from None
        if body:
            _check_media_type(scope)
            if codec.depth(body, self._depth) > self._depth:
                raise errors.MalformedBody(f"the body is nested deeper than {self._depth} levels", limit=self._depth)
        await self._app(scope, _replayed(body, receive), send)


class Account:
    """Of a tenant, for work that is more than a request: in a second it may have as much done as small requests are."""

    def __init__(self, buckets: Buckets, tenant: str) -> None:
        self._buckets = buckets
        self._name = f"work:{tenant}"

    def charge(self, work: float) -> None:
        """Work that is as much as so many small requests. Once is always allowed; TooManyRequests until it is paid."""
        self._buckets.charge(self._name, work)

    @contextlib.contextmanager
    def long(self) -> Generator[None]:
        """Work that may go through all that a tenant has: charged as if it did, and then by the time it took."""
        self.charge(LONG_WORK)
        began = time.perf_counter()
        try:
            yield
        finally:
            cost = min((time.perf_counter() - began) / REQUEST_SECONDS, MOST_WORK)
            self._buckets.give_back(self._name, LONG_WORK - cost)

    def charge_for(self, *graphs: Sequence[graph.TaskSpec]) -> None:
        """Reading and entering tasks. A job of its own is as much as two more."""
        work = sum(map(graph.size, graphs)) + 2 * (len(graphs) - 1)
        if work >= TASKS_OF_A_REQUEST:
            self.charge(work / TASKS_OF_A_REQUEST)


class Buckets:
    """A token bucket for each name: so many requests a second, and as many at once."""

    def __init__(self, per_second: float, most_names: int = 10_000) -> None:
        self._rate = per_second
        self._burst = max(per_second, 1.0)
        self._most = most_names
        self._buckets: collections.OrderedDict[str, tuple[float, float]] = collections.OrderedDict()

    def check(self, name: str, now: float | None = None) -> None:
        """TooManyRequests if a request would not be welcome. It does not count as one."""
        left = self._left(name, time.monotonic() if now is None else now)
        if left < 1:
            raise errors.TooManyRequests((1 - left) / self._rate)

    def take(self, name: str, now: float | None = None) -> None:
        """One request; TooManyRequests says when the next one is welcome."""
        now = time.monotonic() if now is None else now
        left = self._left(name, now)
        self._put(name, left - 1 if left >= 1 else left, now)
        if left < 1:
            raise errors.TooManyRequests((1 - left) / self._rate)

    def charge(self, name: str, cost: float, now: float | None = None) -> None:
        """Take what was not known before, and more than there is if need be. TooManyRequests if it is owed already."""
        now = time.monotonic() if now is None else now
        left = self._left(name, now)
        if left < 0:
            raise errors.TooManyRequests(-left / self._rate)
        self._put(name, left - cost, now)

    def give_back(self, name: str, cost: float) -> None:
        """What was taken too much; or, below zero, was not yet taken."""
        now = time.monotonic()
        self._put(name, min(self._burst, self._left(name, now) + cost), now)

    def _left(self, name: str, now: float) -> float:
        left, at = self._buckets.get(name, (self._burst, now))
        return min(self._burst, left + (now - at) * self._rate)

    def _put(self, name: str, left: float, now: float) -> None:
        self._buckets[name] = (left, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)


def is_own_origin(origin: str, headers: Headers) -> bool:
    """Whether a page is this server's own, that is, a page of the web UI."""
    parts = urlsplit(origin.lower())
    return parts.netloc == headers.get("host", "").lower() and parts.scheme in ("http", "https")


def _too_large(limit: int) -> errors.BodyTooLarge:
    return errors.BodyTooLarge(f"the body has more than {limit:,} bytes, which is the limit", limit=limit)


def _counted(receive: Receive, limit: int) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            if size > limit:
                raise _too_large(limit)
        return message

    return counted


async def _whole(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise errors.RequestRefused("the client went away before its body was there")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    read = False

    async def replayed() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def media_type(headers: Headers) -> str:
    """What a body says that it is, without parameters such as its charset."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _check_media_type(scope: Scope) -> None:
    route: routing.Declared | None = scope["state"]["route"]
    taken = (routing.JSON,) if route is None else route.media_types
    if media_type(Headers(scope=scope)) not in taken:
        others = f" (or {', '.join(taken[1:])})" if taken[1:] else ""
        raise errors.UnsupportedMediaType(f"the body must be JSON: send `Content-Type: {taken[0]}`{others}")


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _host_name(host: str) -> str | None:
    """The name without the port: `[::1]:80` is `::1`."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _is_wildcard(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def _is_address(host: str) -> bool:
    """An address cannot be pointed elsewhere, as a name can."""
    if access.is_loopback(host):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
