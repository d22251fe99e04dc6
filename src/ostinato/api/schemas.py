"""OpenAPI from the types that read and write the bodies, so that it cannot say anything else than they do."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, TypeGuard, Union, get_args, get_origin

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import Response

from ostinato import __version__
from ostinato.api import problems

_REF = "#/components/schemas/{name}"
_MARK = "x-type"
_types: dict[str, Any] = {}
"""Types that routes mention, by a mark in their description until the document is made."""


def responses(statuses: Iterable[int], answer: Any, refused: Iterable[int]) -> dict[int | str, dict[str, Any]]:
    """The answers of a route: the good ones, and the problems."""
    found: dict[int | str, dict[str, Any]] = {
        status: {"description": HTTPStatus(status).phrase, "content": _content(answer)} for status in statuses
    }
    schema = _mark(problems.Problem)
    for status in sorted(set(refused)):
        content = {problems.MEDIA_TYPE: {"schema": schema}}
        found[status] = {"description": HTTPStatus(status).phrase, "content": content}
    return found


def is_response(answer: Any) -> TypeGuard[type[Response]]:
    """A handler that makes its own response says by its class what that is."""
    return isinstance(answer, type) and issubclass(answer, Response)


def _content(answer: Any) -> dict[str, Any]:
    kinds = get_args(answer) if _is_union(answer) else (answer,)
    found: dict[str, Any] = {kind.media_type: {} for kind in kinds if is_response(kind) and kind.media_type}
    documents = [_mark(kind) for kind in kinds if not is_response(kind)]
    if documents:
        found["application/json"] = {"schema": documents[0] if len(documents) == 1 else {"anyOf": documents}}
    return found


def request_body(kinds: Mapping[str, Any], *, required: bool) -> dict[str, Any]:
    """The bodies of a route by media type."""
    if not kinds:
        return {}
    content = {media_type: {"schema": _mark(kind)} for media_type, kind in kinds.items()}
    return {"requestBody": {"required": required, "content": content}}


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (types.UnionType, Union)


def _mark(kind: Any) -> dict[str, Any]:
    if _is_union(kind):
        return {"anyOf": [_mark(one) for one in get_args(kind)]}
    name = repr(kind)
    _types[name] = kind
    return {_MARK: name}


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of an application. It takes long enough to be made only once."""
    if app.openapi_schema is None:
        app.openapi_schema = _document(app)
    return app.openapi_schema


def _document(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title="Ostinato",
        version=__version__,
        summary="Durable jobs of tasks.",
        routes=app.routes,
        separate_input_output_schemas=False,
    )
    names = sorted(set(_marks(made)))
    found, components = msgspec.json.schema_components([_types[name] for name in names], ref_template=_REF)
    schemas = dict(zip(names, found, strict=True))
    made = _resolve(made, schemas)
    parts = made.setdefault("components", {})
    parts["schemas"] = components  # FastAPI's own describe its own errors, which never leave this server
    parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": "A key: ost_…"}}
    return made


def _marks(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if _MARK in value:
            yield value[_MARK]
        value = list(value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportUnknownMemberType]
    if isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _marks(item)


def _resolve(value: Any, found: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if _MARK in value:
            return found[value[_MARK]]
        return {name: _resolve(item, found) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_resolve(item, found) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
