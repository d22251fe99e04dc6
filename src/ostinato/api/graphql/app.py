"""The GraphQL application under `/graphql`."""

from __future__ import annotations

import logging
from typing import Any

from ariadne.asgi import GraphQL
from starlette.requests import HTTPConnection

from ostinato.api import calls, routing
from ostinato.api.graphql import bounds, resolvers, schema, sockets

PATH = "/graphql"
routes = routing.Routes()

# Errors are told to whoever asked; what nobody foresaw is logged when it is shown.
_silent = logging.Logger("ostinato.graphql", logging.CRITICAL + 1)


async def _context(connection: Any, _: Any = None) -> resolvers.Call:
    found: HTTPConnection = connection
    here = found.app.state
    home = calls.tenants_of(found).home
    return resolvers.Call(
        calls.principal_of(found), await calls.client_of(found), here.hub, here.changes, home.engine.store
    )


def make() -> GraphQL:
    return GraphQL(
        schema.build(),
        context_value=_context,
        query_parser=bounds.read,
        validation_rules=bounds.rules,
        error_formatter=schema.show_error,
        explorer=None,
        execute_get_queries=False,
        logger=_silent,
        websocket_handler=sockets.Sockets(),
    )


routes.asgi("graphql", PATH, make(), methods=("POST", routing.WEBSOCKET), scope=routing.ANY, late=True)
