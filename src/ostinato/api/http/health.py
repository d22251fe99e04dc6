"""Whether the server is alive, whether it can work, and what it offers."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from ostinato import errors
from ostinato.api import answers, calls, models, routing, schemas
from ostinato.store import migrate

routes = routing.Routes()


@routes("GET", "/healthz", scope=routing.PUBLIC, tag="server")
async def healthz() -> models.Health:
    """The server is alive."""
    return models.Health("ok")


@routes("GET", "/readyz", scope=routing.PUBLIC, problems=(503,), tag="server")
async def readyz(request: Request) -> models.Health:
    """The database can be reached and has the schema of this version."""
    db = calls.tenants_of(request).home.engine.db
    async with answers.within(answers.READY_SECONDS):
        version = (await db.settings())["schema"]
    if version != migrate.migrations(db.dialect)[-1].number:
        raise errors.SchemaMissing()
    return models.Health("ready")


@routes("GET", "/v1/openapi.json", scope=routing.ANY, tag="server")
async def openapi(request: Request) -> dict[str, Any]:
    """This description."""
    return schemas.document(request.app)
