"""The server: routes, and the layers that every request passes before it reaches one."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from types import TracebackType

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from ostinato import app, errors
from ostinato.api import (
    access,
    answers,
    connections,
    cors,
    desk,
    envelope,
    guard,
    limits,
    metrics,
    problems,
    protocol,
    recording,
    routing,
    settings,
    tenants,
)
from ostinato.api.graphql import app as graphql
from ostinato.api.http import (
    approvals,
    audit_log,
    dead_letters,
    events,
    executions,
    fleet,
    gates,
    health,
    jobs,
    pages,
    pipelines,
    playbooks,
    results,
    rules,
    stream,
    tasks,
    usage,
    work,
)
from ostinato.api.http import metrics as metrics_routes
from ostinato.api.live import changes, hub

ROUTES = (
    health.routes,
    jobs.routes,
    tasks.routes,
    dead_letters.routes,
    approvals.routes,
    executions.routes,
    results.routes,
    gates.routes,
    rules.routes,
    playbooks.routes,
    pipelines.routes,
    events.routes,
    fleet.routes,
    usage.routes,
    audit_log.routes,
    work.routes,
    stream.routes,
    graphql.routes,
    metrics_routes.routes,
    pages.routes,
)
PUBLIC_ROUTES = frozenset({"/", "/healthz", "/readyz", "/ui", pages.PATH})
"""The only ones that need no key. A route that says it is public and is not here cannot be installed."""

BACKLOG = 128
"""Connections that may come at once: they are all accepted before any can be closed for another."""


class Server:
    """An ASGI application over one open `Ostinato`, which is home to the database and the maintenance loops.

    Use it as `async with Server(home, options) as server:`; what others add to it, such as hubs and streams, goes on
    `resources` and is closed with it.
    """

    def __init__(
        self, home: app.Ostinato, options: settings.ServerOptions, routes: Sequence[routing.Routes] = ROUTES
    ) -> None:
        self.options = options
        self.tenants = tenants.Tenants(home, most=options.max_tenants)
        open_as = home.tenant if access.is_loopback(options.host) else None
        self.access = access.Access(home.engine.store, open_as=open_as)
        self.desk = desk.Desk(options)
        self.metrics = metrics.Metrics(home.engine.store, home.tenant)
        self._observers = home.engine.observers
        self._observers.add(self.metrics)
        self.table = routing.Table()
        self.connections = connections.Connections(options.max_connections, options.max_connections_per_address)
        self.hub = hub.Hub(home.engine)
        self.changes = changes.Changes(home.engine.store)
        self.resources = contextlib.AsyncExitStack()
        self.app = self._build(routes)
        buckets = self.app.state.buckets = limits.Buckets(options.requests_per_second)
        guarded = guard.Guard(limits.Bodies(answers.Answers(self.app), options), self.access, self.table, buckets)
        enveloped = envelope.Envelope(limits.Limits(guarded, options), cors.Cors(options.allowed_origins))
        self._asgi: ASGIApp = recording.Recorder(enveloped, self.metrics)

    def _build(self, routes: Sequence[routing.Routes]) -> FastAPI:
        """No documentation pages and no slashes added to paths: what is not in the table is not there."""
        made = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
        made.state.access = self.access
        made.state.tenants = self.tenants
        made.state.desk = self.desk
        made.state.hub = self.hub
        made.state.changes = self.changes
        made.state.metrics = self.metrics
        for group in routes:
            self.table.install(made, group, public=PUBLIC_ROUTES)
        made.add_exception_handler(errors.OstinatoError, problems.on_error)
        made.add_exception_handler(RequestValidationError, problems.on_invalid)
        made.add_exception_handler(HTTPException, problems.on_http)
        made.add_exception_handler(Exception, problems.on_unexpected)
        return made

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._asgi(scope, receive, send)

    def stop_waiting(self) -> None:
        """Answer what waits for something to happen, so that a stop need not wait for it."""
        self.desk.close()

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_waiting()
        await self.hub.close()
        await self.resources.aclose()
        self._observers.remove(self.metrics)
        await self.access.close()
        await self.tenants.close()


async def check_bind(home: app.Ostinato, host: str) -> None:
    """Refuse to let everybody in by accident."""
    if not access.is_loopback(host) and not await home.engine.store.any_key():
        raise errors.UnsafeBind(
            f"{host} can be reached from other machines and there is no key yet, so anybody could do anything: make "
            "one with `ostinato keys create --scopes admin`, or listen on 127.0.0.1"
        )


class Listener:
    """Listens on an address and serves an application there until it is told to stop."""

    def __init__(self, server: Server) -> None:
        self._server = server
        options = server.options
        server.connections.bound(connections.raise_limit())
        self._socket = bind(options.host, options.port)
        host, port = self._socket.getsockname()[:2]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                server,
                http=protocol.CarefulProtocol,
                ws=protocol.CarefulWebSocket,
                loop="none",
                lifespan="off",
                backlog=BACKLOG,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws_max_size=256 * 1024,
                ws_ping_interval=20.0,
                timeout_graceful_shutdown=options.shutdown_seconds,
            )
        )
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Come back when requests are answered."""
        self._serving = asyncio.create_task(self._uvicorn.serve(sockets=[self._socket]), name="ostinato-server")
        while not self._uvicorn.started and not self._serving.done():
            await asyncio.sleep(0.005)
        if self._serving.done():
            self._serving.result()

    async def stop(self) -> None:
        """Take no new requests, finish those that run, then come back. Streams would run for ever: they are ended."""
        self._uvicorn.should_exit = True
        self._server.stop_waiting()
        await self._server.hub.close()
        if self._serving is not None:
            await self._serving
        self._socket.close()


class _Uvicorn(uvicorn.Server):
    """Signals are for whoever started the server, which has more to stop than this."""

    @contextlib.contextmanager
    def capture_signals(self):  # pyright: ignore[reportIncompatibleMethodOverride]
        yield


def bind(host: str, port: int) -> socket.socket:
    """A socket with this address; NotPossible if it cannot be used."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With the protocol: asyncio only turns Nagle's delays off for sockets that say that they are TCP.
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "the address is not understood"
        raise errors.NotPossible(f"cannot listen on {host}:{port}: {reason}", host=host, port=port) from None
    return made
