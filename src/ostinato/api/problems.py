"""Errors as `application/problem+json`: a stable code, a sentence and the request id; never a stack, SQL or a path."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, cast

import msgspec
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ostinato import errors
from ostinato.core import shapes

MEDIA_TYPE = "application/problem+json"
STATUSES: dict[type[errors.OstinatoError], int] = {
    errors.OstinatoError: 500,
    errors.InvalidInput: 422,
    errors.PayloadTooLarge: 413,
    errors.IdempotencyConflict: 409,
    errors.NotFound: 404,
    errors.NotPossible: 409,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.RequestRefused: 400,
    errors.OriginNotAllowed: 403,
    errors.BodyTooLarge: 413,
    errors.HeadersTooLarge: 431,
    errors.UnsupportedMediaType: 415,
    errors.TooManyRequests: 429,
    errors.DatabaseError: 503,
    errors.ServerFull: 503,
    errors.NotRunning: 503,
    errors.ServerStopping: 503,
}
"""The nearest class that is named here decides."""

log = logging.getLogger("ostinato")


class Problem(msgspec.Struct, rename="camel", omit_defaults=True):
    """What went wrong. Further members name what it is about, such as `field`, `jobId` or `taskId`."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str


class _NoSuchRoute(errors.NotFound):
    """There is nothing under this path."""

    code = "route_not_found"


class MethodNotAllowed(errors.RequestRefused):
    """This path does not know this method."""

    code = "method_not_allowed"


class _Unexpected(errors.OstinatoError):
    """Something went wrong in the server. The request id finds it in the log."""

    code = "internal"


STATUSES[MethodNotAllowed] = 405


def status_of(error: errors.OstinatoError) -> int:
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def describe(error: errors.OstinatoError) -> dict[str, Any]:
    """What may be said of an error, by whatever way it is said."""
    status = status_of(error)
    title = (type(error).__doc__ or "").strip().partition("\n")[0]
    # What the database says may name files, hosts and SQL: that is for the log.
    inner = status >= 500
    problem = {
        "type": f"urn:ostinato:problem:{error.code}",
        "title": title,
        "status": status,
        "code": error.code,
        "detail": title if inner else error.message,
    }
    return problem if inner else {**_wire(error.details), **problem}


def response(error: errors.OstinatoError, request_id: str) -> Response:
    document = describe(error) | {"requestId": request_id}
    return Response(msgspec.json.encode(document), status_of(error), _headers(error), MEDIA_TYPE)


def _headers(error: errors.OstinatoError) -> dict[str, str]:
    if isinstance(error, errors.Unauthenticated):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, errors.TooManyRequests):
        return {"Retry-After": str(max(1, math.ceil(error.seconds)))}
    if isinstance(error, errors.ServerFull):
        return {"Retry-After": "1", "Connection": "close"}
    return dict(error.details.get("headers", {})) if isinstance(error, MethodNotAllowed) else {}


def _wire(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if name != "headers"}


async def send(error: errors.OstinatoError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request, or refuse a socket that was not accepted yet, outside of any route."""
    answer = response(error, scope["state"]["request_id"])
    if scope["type"] == "http" or "websocket.http.response" in scope.get("extensions", {}):
        await answer(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": error.code})


def unexpected(error: Exception, request_id: str) -> errors.OstinatoError:
    """Log what nobody foresaw, and say nothing of it."""
    log.error("request %s failed", request_id, exc_info=error)
    return _Unexpected()


async def on_unexpected(request: Request, error: Exception) -> Response:
    """Only answers: Starlette raises the error again afterwards, and the envelope logs it."""
    return response(_Unexpected(), request.state.request_id)


# --- what FastAPI and Starlette raise -----------------------------------------------------------------------------


async def on_error(request: Request, error: Exception) -> Response:
    ours = cast("errors.OstinatoError", error)
    if status_of(ours) >= 500:
        log.error("request %s: %s: %s", request.state.request_id, type(error).__name__, error)
    return response(ours, request.state.request_id)


async def on_invalid(request: Request, error: Exception) -> Response:
    """Parameters of the path and the query that are not what they should be."""
    wrong = cast("RequestValidationError", error).errors()
    found = [{"field": _parameter(item["loc"]), "message": _message(item)} for item in wrong]
    sentence = "; ".join(f"{item['field']}: {item['message']}" for item in found)
    return response(errors.InvalidInput(sentence, field=found[0]["field"], errors=found), request.state.request_id)


def _message(item: Any) -> str:
    if item["type"] == "string_pattern_mismatch":
        return f"the text is not valid: {shapes.in_words(item['ctx']['pattern'])}"
    return str(item["msg"])


def _parameter(place: Sequence[Any]) -> str:
    """Its name, and not which of its values."""
    return next(part for part in reversed(place) if isinstance(part, str))


async def on_http(request: Request, error: Exception) -> Response:
    """Paths and methods that are not there."""
    raised = cast("HTTPException", error)
    if raised.status_code == 405:
        return response(MethodNotAllowed(headers=raised.headers or {}), request.state.request_id)
    if raised.status_code == 404:
        return response(_NoSuchRoute(), request.state.request_id)
    return response(errors.RequestRefused(raised.detail), request.state.request_id)
