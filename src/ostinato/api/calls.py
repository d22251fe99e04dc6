"""What handlers ask for: the principal, the tenant's client, ids and pages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query
from starlette.requests import HTTPConnection

from ostinato import app, errors
from ostinato.api import access, limits, models, tenants

MOST = 500
"""The longest page."""


def principal_of(connection: HTTPConnection) -> access.Principal:
    """Who is asking. For sockets too: `principal_of(websocket)`."""
    found: access.Principal | None = connection.state.principal
    if found is None:
        raise errors.Unauthenticated()
    return found


def access_of(connection: HTTPConnection) -> access.Access:
    return connection.app.state.access


def tenants_of(connection: HTTPConnection) -> tenants.Tenants:
    return connection.app.state.tenants


async def client_of(connection: HTTPConnection) -> app.Ostinato:
    """The application of the tenant who is asking: all that a handler needs, and nothing of anybody else."""
    return await tenants_of(connection).client(principal_of(connection).tenant)


async def _principal(connection: HTTPConnection) -> access.Principal:
    return principal_of(connection)


async def account_of(connection: HTTPConnection) -> limits.Account:
    """What the tenant who is asking pays large work with."""
    return limits.Account(connection.app.state.buckets, principal_of(connection).tenant)


# Dependencies are async, all of them: FastAPI would run others in threads, one hop for each request.
Principal = Annotated[access.Principal, Depends(_principal)]
Account = Annotated[limits.Account, Depends(account_of)]
Client = Annotated[app.Ostinato, Depends(client_of)]
JobId = Annotated[str, Path(alias="jobId", pattern=models.ID_PATTERN, description="The id of the job.")]
TaskId = Annotated[str, Path(alias="taskId", pattern=models.TASK_ID_PATTERN, description="The id of the task.")]


async def job_of(client: Client, job_id: JobId) -> app.Job:
    """A handle on the job in the path. Nothing is read yet: what is done with it finds out whether it is there."""
    return app.Job(client, job_id)


def person(who: access.Principal) -> dict[str, Any]:
    """Who gives an order, where it depends on what they may do."""
    return {"actor": who.actor, "called": who.name, "scopes": who.scopes}


Job = Annotated[app.Job, Depends(job_of)]
Limit = Annotated[int, Query(ge=1, le=MOST, description="At most this many.")]
Cursor = Annotated[
    str | None, Query(max_length=1024, description="Go on where a page ended: its `nextCursor`.", examples=[None])
]
