"""The GraphQL application under `/graphql`."""

from __future__ import annotations

import logging
from typing import Any

from ariadne.asgi import GraphQL
from ariadne.asgi.handlers import GraphQLHTTPHandler
from ariadne.exceptions import HttpBadRequestError
from starlette.requests import HTTPConnection, Request

from ostinato import errors
from ostinato.api import calls, routing
from ostinato.api.graphql import bounds, resolvers, schema, sockets
from ostinato.core import codec

PATH = "/graphql"
routes = routing.Routes()

# Errors are told to whoever asked; what nobody foresaw is logged when it is shown.
_silent = logging.Logger("ostinato.graphql", logging.CRITICAL + 1)


async def _context(connection: Any, _: Any = None) -> resolvers.Call:
    found: HTTPConnection = connection
    here = found.app.state
    home = calls.tenants_of(found).home
    return resolvers.Call(
        calls.principal_of(found),
        await calls.client_of(found),
        here.hub,
        here.changes,
        home.engine.store,
        await calls.account_of(found),
    )


class Requests(GraphQLHTTPHandler):
    async def extract_data_from_json_request(self, request: Request) -> Any:
        """Read as all other bodies are: without numbers that JSON does not have, and without lone surrogates."""
        try:
            return codec.parse(await request.body(), "the body")
        except errors.InvalidPayload as error:
            raise HttpBadRequestError(error.message) from None


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
        http_handler=Requests(),
        websocket_handler=sockets.Sockets(),
    )


routes.asgi("graphql", PATH, make(), methods=("POST", routing.WEBSOCKET), scope=routing.ANY, late=True)
