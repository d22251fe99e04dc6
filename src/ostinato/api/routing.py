"""Routes and who may use them, declared in one place: a route without a scope cannot be made.

    routes = routing.Routes()

    @routes("GET", "/v1/jobs/{jobId}", scope=scopes.JOBS_READ, problems=(404,))
    async def show_job(client: Client, job_id: JobId) -> models.JobDetail: ...

The parameter `body` is read from the request and checked; the answer is encoded, and OpenAPI describes both, from the
same annotations. `Reply` is for answers with a status of their own, and `takes` for bodies that are more than their
type says, or that come in other media types than JSON.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args, get_origin

import msgspec
from fastapi import Depends, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route, WebSocketRoute, compile_path
from starlette.types import ASGIApp, Scope
from starlette.websockets import WebSocket

from ostinato import errors
from ostinato.api import schemas
from ostinato.core import codec, documents, scopes, shapes
from ostinato.engine import scribe

T = TypeVar("T")
Handler = Callable[..., Awaitable[Any]]

ANY = "any"
"""Any key will do, whatever its scopes."""
PUBLIC = "public"
"""No key is needed. `server.PUBLIC_ROUTES` names the routes that may say so."""
JSON = "application/json"
WEBSOCKET = "WEBSOCKET"
"""The method of sockets."""
PUBLIC_PROBLEMS = (400, 413, 429, 431)
"""What may be said of any request, before its route is asked."""
PROBLEMS = (*PUBLIC_PROBLEMS, 401, 403)
WITH_BODY = (415, 422)
_encode = msgspec.json.Encoder().encode
_NAMED = re.compile(r"Object (?:missing required|contains unknown) field `(.{1,64})`")


class Reply(msgspec.Struct, Generic[T]):
    """An answer with a status of its own, and headers if it needs some."""

    value: T
    status: int = 200
    headers: Mapping[str, str] | None = None


class Declared(NamedTuple):
    """A route as it was declared; `install` makes it real. Layers see it in `scope["state"]["route"]`."""

    name: str
    methods: tuple[str, ...]
    path: str
    scope: str
    install: Callable[[FastAPI], BaseRoute]
    late: bool = False
    """A socket that may bring its key in its first message instead of a header. It must ask `Access` itself."""
    media_types: tuple[str, ...] = (JSON,)
    """Of the bodies that are taken."""


class Routes:
    """A list of routes, one for each resource."""

    def __init__(self) -> None:
        self.declared: list[Declared] = []

    def __call__(
        self,
        method: str,
        path: str,
        *,
        scope: str,
        status: int | tuple[int, ...] = 200,
        problems: tuple[int, ...] = (),
        tag: str = "",
        takes: Mapping[str, Any] | None = None,
    ) -> Callable[[Handler], Handler]:
        """Declare a route. `status` are those of good answers, `problems` those of bad ones besides the usual.

        `takes` says by media type what OpenAPI tells of the body, if that is not just the type of the parameter.
        """
        _check_scope(scope)
        statuses = (status,) if isinstance(status, int) else status

        def register(handler: Handler) -> Handler:
            call = _Call(handler, told=takes is not None)
            bodies = takes or ({} if call.body is None else {JSON: call.body})
            refused = (
                *(PUBLIC_PROBLEMS if scope == PUBLIC else PROBLEMS),
                *(WITH_BODY if bodies else ()),
                *problems,
            )
            if call.takes_parameters:
                refused += (422,)
            options: dict[str, Any] = {
                "methods": [method],
                "response_model": None,
                "response_class": call.answer if schemas.is_response(call.answer) else JSONResponse,
                "status_code": statuses[0],
                "operation_id": _camel(handler.__name__),
                "summary": (inspect.getdoc(handler) or handler.__name__).partition("\n")[0],
                "tags": [tag] if tag else None,
                "responses": schemas.responses(statuses, call.answer, refused),
                "openapi_extra": schemas.request_body(bodies, required=call.body_required) | _security(scope),
            }

            @functools.cache
            def made() -> APIRoute:
                """Once for all servers of a process: it knows none of them, and takes long to make."""
                known: set[str] = set()
                checks = [Depends(_query_check(known))]
                route = APIRoute(
                    path, call.endpoint(statuses[0], changes=method != "GET"), dependencies=checks, **options
                )
                known.update(_query_names(route.dependant))
                return route

            def install(app: FastAPI) -> BaseRoute:
                return _added(app, made())

            _, shown, _ = compile_path(path)  # as OpenAPI has it: without the converters of parameters
            media_types = tuple(bodies) or (JSON,)
            self.declared.append(Declared(handler.__name__, (method,), shown, scope, install, media_types=media_types))
            return handler

        return register

    def websocket(
        self, path: str, *, scope: str, late: bool = False
    ) -> Callable[[Callable[[WebSocket], Awaitable[None]]], Callable[[WebSocket], Awaitable[None]]]:
        """Declare a socket. It is refused before it is accepted, unless its key may come late."""
        _check_scope(scope)

        def register(handler: Callable[[WebSocket], Awaitable[None]]) -> Callable[[WebSocket], Awaitable[None]]:
            def install(app: FastAPI) -> BaseRoute:
                return _added(app, WebSocketRoute(path, handler))

            self.declared.append(Declared(handler.__name__, (WEBSOCKET,), path, scope, install, late))
            return handler

        return register

    def asgi(
        self, name: str, path: str, app: ASGIApp, *, methods: tuple[str, ...], scope: str, late: bool = False
    ) -> None:
        """Declare a whole ASGI application under one exact path, such as GraphQL; `WEBSOCKET` is one of the methods."""
        _check_scope(scope)
        endpoint = _Asgi(app)
        asked = tuple(method for method in methods if method != WEBSOCKET)
        if asked:
            http = Route(path, endpoint, methods=list(asked), include_in_schema=False)
            self.declared.append(Declared(name, asked, path, scope, functools.partial(_added, route=http)))
        if WEBSOCKET in methods:
            socket = WebSocketRoute(path, endpoint)
            install = functools.partial(_added, route=socket)
            self.declared.append(Declared(name, (WEBSOCKET,), path, scope, install, late))


class Table:
    """Every route of a server with its scope. What is not in it is not served."""

    def __init__(self) -> None:
        self.routes: list[tuple[BaseRoute, Declared]] = []

    def install(self, app: FastAPI, routes: Routes, *, public: frozenset[str]) -> None:
        for declared in routes.declared:
            if declared.scope == PUBLIC and declared.path not in public:
                raise ValueError(f"{declared.path} may not be public: it is not on the list")
            self.routes.append((declared.install(app), declared))

    def find(self, scope: Scope) -> Declared | None:
        """The route that will answer this request; None if none will."""
        for route, declared in self.routes:
            match, _ = route.matches(scope)
            if match is Match.FULL:
                return declared
        return None

    def methods(self, scope: Scope) -> list[str]:
        """Those that the path of this request knows; none if there is no such path."""
        known = {
            method
            for route, declared in self.routes
            if route.matches(scope)[0] is not Match.NONE
            for method in declared.methods
        }
        return sorted((known | {"HEAD"} if "GET" in known else known) - {WEBSOCKET})


class _Asgi:
    """Starlette takes a function for a handler of requests; an object is an application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)


class _Call:
    """What a handler's signature says, and the endpoint that FastAPI gets for it."""

    def __init__(self, handler: Handler, *, told: bool) -> None:
        self._handler = handler
        self._signature = inspect.signature(handler, eval_str=True)
        given = self._signature.parameters.get("body")
        self.body: Any = None if given is None else given.annotation
        self.body_required = told or (given is not None and not _may_be_empty(given.annotation))
        returned = self._signature.return_annotation
        self.answer: Any = get_args(returned)[0] if get_origin(returned) is Reply else returned
        self.takes_parameters = any(
            parameter.name not in ("account", "body", "client", "principal", "request")
            for parameter in self._signature.parameters.values()
        )

    def endpoint(self, status: int, *, changes: bool) -> Handler:
        handler = self._handler

        @functools.wraps(handler)
        async def call(**given: Any) -> Response:
            async with scribe.refusals() if changes else contextlib.nullcontext():
                answer = await handler(**given)
            if isinstance(answer, Response):
                return answer
            if isinstance(answer, Reply):
                reply = cast("Reply[Any]", answer)
                return Response(_encode(reply.value), reply.status, reply.headers, media_type="application/json")
            return Response(_encode(answer), status, media_type="application/json")

        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, **self._read(parameter))
            for parameter in self._signature.parameters.values()
        ]
        call.__dict__["__signature__"] = inspect.Signature(parameters)
        del call.__dict__["__wrapped__"]  # else FastAPI looks at the handler instead
        return call

    def _read(self, parameter: inspect.Parameter) -> dict[str, Any]:
        if parameter.name != "body":
            return {}
        return {"annotation": Any, "default": Depends(_reader(self.body, required=self.body_required))}


def _may_be_empty(kind: Any) -> bool:
    """A body of which every field may be left out may be left out as a whole."""
    try:
        msgspec.json.decode(codec.EMPTY_OBJECT, type=kind)
    except msgspec.ValidationError:
        return False
    return True


def _reader(kind: Any, *, required: bool) -> Callable[[Request], Awaitable[Any]]:
    decoder = msgspec.json.Decoder(kind)

    async def read(request: Request) -> Any:
        data = await request.body()
        if not data and required:
            raise errors.MalformedBody("the request needs a body of JSON")
        return decode(decoder, data or codec.EMPTY_OBJECT)

    return read


def decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """Read a body: MalformedBody if it is not JSON, InvalidInput naming the field if it is not what is wanted."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at `")
        sentence = documents.cut(shapes.explain(said))
        field = where.rstrip("`").removeprefix("$").removeprefix(".").partition("[...]")[0]
        named = _NAMED.fullmatch(sentence)
        at = documents.join(field, named[1]) if named else field or "body"
        raise errors.InvalidInput(f"{field}: {sentence}" if field else sentence, field=at) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.MalformedBody(codec.why_not_json(data, "the body", error)) from None


def _query_check(known: set[str]) -> Callable[[Request], Awaitable[None]]:
    """A parameter that nobody reads would be a filter that does not filter."""

    async def check(request: Request) -> None:
        for name in request.query_params:
            if name not in known:
                raise errors.InvalidInput(
                    f"there is no parameter {name!r} here: use {', '.join(sorted(known)) or 'none'}", field=name
                )

    return check


def _query_names(part: Dependant) -> Iterator[str]:
    yield from (field.alias for field in part.query_params)
    for below in part.dependencies:
        yield from _query_names(below)


def _added(app: FastAPI, route: BaseRoute) -> BaseRoute:
    app.router.routes.append(route)
    return route


def _check_scope(scope: str) -> None:
    if scope not in (*scopes.SCOPES, ANY, PUBLIC):
        raise ValueError(f"{scope!r} is not a scope")


def _security(scope: str) -> dict[str, Any]:
    return {} if scope == PUBLIC else {"security": [{"key": []}], "x-required-scope": scope}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
