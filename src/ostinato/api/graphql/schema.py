"""The schema, which is the contract, with its resolvers behind the scopes that they need."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import resources
from typing import Any, cast

from ariadne import make_executable_schema
from ariadne.utils import unwrap_graphql_error
from graphql import GraphQLError, GraphQLObjectType, GraphQLSchema

from ostinato import errors
from ostinato.api import graphql, problems, routing
from ostinato.api.graphql import (
    approvals,
    definitions,
    operating,
    permissions,
    piping,
    playing,
    reacting,
    resolvers,
    spending,
)
from ostinato.engine import scribe

Resolver = Callable[..., Any]


def text() -> str:
    return resources.files(graphql).joinpath("schema.graphql").read_text()


@functools.cache
def build() -> GraphQLSchema:
    parts = (resolvers, definitions, reacting, playing, approvals, piping, spending, operating)
    made = make_executable_schema(text(), *[bindable for part in parts for bindable in part.ALL])
    _read_by_attribute(made)
    for kind, needed in permissions.NEEDED.items():
        fields = cast("GraphQLObjectType", made.type_map[kind]).fields
        if fields.keys() != needed.keys():
            raise ValueError(f"{kind}: {sorted(fields.keys() ^ needed.keys())} has no scope or no field")
        for name, field in fields.items():
            if kind == "Subscription":
                field.subscribe = _guarded(cast("Resolver", field.subscribe), needed[name])
            else:
                resolve = cast("Resolver", field.resolve)
                field.resolve = _guarded(_telling(resolve) if kind == "Mutation" else resolve, needed[name])
    return made


def _read_by_attribute(made: GraphQLSchema) -> None:
    """A field `jobId` without a resolver is the attribute `job_id` of what was found."""
    for name, kind in made.type_map.items():
        if isinstance(kind, GraphQLObjectType) and not name.startswith("__"):
            for wire, field in kind.fields.items():
                if field.resolve is None:
                    field.resolve = _attribute(resolvers.snake(wire))


def _attribute(name: str) -> Callable[[Any, Any], Any]:
    return lambda found, _: getattr(found, name, None)


def _guarded(resolve: Resolver, scope: str) -> Resolver:
    def guarded(parent: Any, info: Any, **given: Any) -> Any:
        if scope != routing.ANY:
            info.context.principal.require(scope)
        return resolve(parent, info, **given)

    return guarded


def _telling(resolve: Resolver) -> Resolver:
    """What is refused is in the audit log as refused."""

    @scribe.telling_refusals
    async def told(*args: Any, **given: Any) -> Any:
        found = resolve(*args, **given)
        return await found if inspect.isawaitable(found) else found

    return told


def show_error(error: GraphQLError, debug: bool = False) -> dict[str, Any]:
    """An error with the code that HTTP has for it; nothing of what is inside leaves here."""
    cause = unwrap_graphql_error(error)
    shown = error.formatted
    if cause is None or isinstance(cause, GraphQLError):
        known: errors.OstinatoError = errors.RequestRefused(error.message)
    elif isinstance(cause, errors.OstinatoError):
        known = cause
    else:
        known = problems.unexpected(cause, "over GraphQL")
    about = problems.describe(known)
    extensions = {name: value for name, value in about.items() if name not in ("type", "title", "detail")}
    return {**shown, "message": about["detail"], "extensions": extensions}
