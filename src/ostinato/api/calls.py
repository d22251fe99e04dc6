"""What handlers ask for: the principal, the tenant's client, ids and pages."""

from __future__ import annotations

import base64
import binascii
import datetime
from typing import Annotated, TypeVar

import msgspec
from fastapi import Depends, Path, Query
from starlette.requests import HTTPConnection

from ostinato import app, errors
from ostinato.api import access, models, tenants

T = TypeVar("T")
MOST = 1000


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


# Dependencies are async, all of them: FastAPI would run others in threads, one hop for each request.
Principal = Annotated[access.Principal, Depends(_principal)]
Client = Annotated[app.Ostinato, Depends(client_of)]
JobId = Annotated[str, Path(alias="jobId", pattern=models.ID_PATTERN, description="The id of the job.")]
TaskId = Annotated[str, Path(alias="taskId", pattern=models.ID_PATTERN, description="The id of the task.")]


async def job_of(client: Client, job_id: JobId) -> app.Job:
    """A handle on the job in the path. Nothing is read yet: what is done with it finds out whether it is there."""
    return app.Job(client, job_id)


Job = Annotated[app.Job, Depends(job_of)]
Limit = Annotated[int, Query(ge=1, le=MOST, description="At most this many.")]
Cursor = Annotated[
    str | None, Query(max_length=1024, description="Go on where a page ended: its `nextCursor`.", examples=[None])
]

PlaceOfJob = tuple[int, str]
PlaceOfTask = tuple[int, str, str]


def write_cursor(*place: int | str) -> str:
    """Where a page ended, as text that means nothing to anybody else."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


def micros(moment: datetime.datetime) -> int:
    return round(moment.timestamp() * 1e6)


def read_place_of_job(cursor: str | None) -> PlaceOfJob | None:
    return None if cursor is None else _read(cursor, _place_of_job)


def read_place_of_task(cursor: str | None) -> PlaceOfTask | None:
    return None if cursor is None else _read(cursor, _place_of_task)


_Micros = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_place_of_job = msgspec.json.Decoder(tuple[_Micros, models.Id])
_place_of_task = msgspec.json.Decoder(tuple[_Micros, models.Id, models.Id])


def _read(cursor: str, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise errors.InvalidInput(f"{cursor[:60]!r} is not a cursor of this list", field="cursor") from None
