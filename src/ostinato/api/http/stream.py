"""What happens, as it happens: as server-sent events and over a socket."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any

import msgspec
from fastapi import Header, Query
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from ostinato import errors
from ostinato.api import calls, models, problems, routing
from ostinato.api.calls import Cursor, JobId, Principal
from ostinato.api.http.jobs import Name, TaskReference
from ostinato.api.live import hub, messages, streams
from ostinato.core import codec, scopes

HEARTBEAT_SECONDS = 15.0
FIRST_MESSAGE_SECONDS = 10.0
_HEARTBEAT = b": still here\n\n"

routes = routing.Routes()

FunctionName = Annotated[Name, Query(alias="function", description="Events about tasks of this function.")]
Types = Annotated[list[str] | None, Query(description="Types of events: one or several.", max_length=50)]
LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=100, description="Sent by browsers: go on after this event.")
]


class EventStream(Response):
    """Server-sent events until the reader goes away or the stream ends. The id of each event is its cursor."""

    media_type = "text/event-stream"

    def __init__(self, request: Request, subscription: hub.Subscription) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._request = request
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        async def beat() -> None:
            while True:
                await write(_HEARTBEAT)
                await asyncio.sleep(HEARTBEAT_SECONDS)

        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        async with self._subscription as subscription:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            pumping = asyncio.create_task(
                streams.pump(self._request, subscription, lambda message: write(_written(message)))
            )
            beating, leaving = asyncio.create_task(beat()), asyncio.create_task(gone())
            try:
                await asyncio.wait([pumping, leaving], return_when=asyncio.FIRST_COMPLETED)
                if pumping.done():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(streams.GRACE_SECONDS):
                            said = codec.encode_own(closed(pumping.result(), subscription))
                            await send(
                                {"type": "http.response.body", "body": b"event: closed\ndata: " + said + b"\n\n"}
                            )
            finally:
                for task in (pumping, beating, leaving):
                    task.cancel()
                await asyncio.gather(pumping, beating, leaving, return_exceptions=True)


class Closed(models.Answer):
    """Why a stream ended, and where to go on."""

    code: str
    detail: str
    cursor: str


def closed(reason: errors.OstinatoError, subscription: hub.Subscription) -> Closed:
    about = problems.describe(reason)
    return Closed(about["code"], about["detail"], subscription.cursor)


def _written(message: messages.Message) -> bytes:
    return b"id: " + message.event.cursor.encode() + b"\ndata: " + message.encoded + b"\n\n"


@routes("GET", "/v1/jobs/{jobId}/stream", scope=scopes.JOBS_READ, problems=(404,), tag="streams")
async def stream_job(
    request: Request,
    principal: Principal,
    job_id: JobId,
    task_id: TaskReference = None,
    function: FunctionName = None,
    types: Types = None,
    cursor: Cursor = None,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Follow one job, from now on or from a cursor, as server-sent events."""
    wanted = messages.Wanted(job_id, task_id, types=frozenset(types or ()), function=function)
    return EventStream(request, await _subscribed(request, principal, wanted, last_event_id or cursor))


@routes("GET", "/v1/events/stream", scope=scopes.JOBS_READ, tag="streams")
async def stream_events(
    request: Request,
    principal: Principal,
    task_id: TaskReference = None,
    job_name: Annotated[Name, Query(alias="jobName")] = None,
    function: FunctionName = None,
    types: Types = None,
    cursor: Cursor = None,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Follow all jobs, from now on or from a cursor, as server-sent events."""
    wanted = messages.Wanted(None, task_id, job_name, frozenset(types or ()), function)
    return EventStream(request, await _subscribed(request, principal, wanted, last_event_id or cursor))


async def _subscribed(
    request: Request, principal: Principal, wanted: messages.Wanted, cursor: str | None
) -> hub.Subscription:
    live: hub.Hub = request.app.state.hub
    return await live.subscribe(principal.tenant, wanted, cursor)


# --- over a socket -------------------------------------------------------------------------------------------------


class Follow(models.Body):
    """The first message of a socket: what to follow, from where, and the key if it was not in a header."""

    key: str | None = None
    job_id: models.Id | None = None
    task_id: models.TaskId | None = None
    job_name: models.Name | None = None
    function: models.Name | None = None
    types: tuple[str, ...] = ()
    cursor: str | None = None


_follow = msgspec.json.Decoder(Follow)


@routes.websocket("/v1/stream", scope=scopes.JOBS_READ, late=True)
async def stream(websocket: WebSocket) -> None:
    """`{"ready": …}`, then an `{"event": …}` for each, and `{"closed": …}` with the reason at the end."""
    await websocket.accept()
    with contextlib.suppress(WebSocketDisconnect):
        try:
            subscription = await _first_message(websocket)
        except errors.OstinatoError as error:
            await _end(websocket, error, {name: problems.describe(error)[name] for name in ("code", "detail")})
            return
        async with subscription:
            await _feed(websocket, subscription)


async def _first_message(websocket: WebSocket) -> hub.Subscription:
    try:
        async with asyncio.timeout(FIRST_MESSAGE_SECONDS):
            text = await websocket.receive_text()
    except TimeoutError:
        raise errors.RequestRefused("nothing came: send what to follow, as JSON") from None
    except KeyError:
        raise errors.MalformedBody("messages are text") from None
    asked = None if streams.read_message(text) is None else routing.decode(_follow, text.encode())
    if websocket.state.principal is None:
        websocket.state.principal = await streams.authenticate(websocket, None if asked is None else asked.key)
    principal = calls.principal_of(websocket)
    principal.require(scopes.JOBS_READ)
    if asked is None:
        raise errors.MalformedBody("the message is not a JSON object")
    wanted = messages.Wanted(asked.job_id, asked.task_id, asked.job_name, frozenset(asked.types), asked.function)
    live: hub.Hub = websocket.app.state.hub
    return await live.subscribe(principal.tenant, wanted, asked.cursor)


async def _feed(websocket: WebSocket, subscription: hub.Subscription) -> None:
    async def write(message: messages.Message) -> None:
        await websocket.send_text('{"event":' + message.encoded.decode() + "}")

    async def gone() -> None:
        """Nothing more is expected of the client but that it goes away."""
        while (await websocket.receive())["type"] != "websocket.disconnect":
            pass

    await websocket.send_text(codec.encode_own({"ready": {"cursor": subscription.cursor}}).decode())
    pumping = asyncio.create_task(streams.pump(websocket, subscription, write))
    leaving = asyncio.create_task(gone())
    try:
        await asyncio.wait([pumping, leaving], return_when=asyncio.FIRST_COMPLETED)
        if pumping.done():
            reason = pumping.result()
            await _end(websocket, reason, closed(reason, subscription))
    finally:
        pumping.cancel()
        leaving.cancel()
        await asyncio.gather(pumping, leaving, return_exceptions=True)


async def _end(websocket: WebSocket, reason: errors.OstinatoError, said: Any) -> None:
    """The code is 4000 and the status that HTTP has for it. A reader that takes nothing is cut off."""
    with contextlib.suppress(TimeoutError, RuntimeError):
        async with asyncio.timeout(streams.GRACE_SECONDS):
            if websocket.application_state is WebSocketState.CONNECTED:
                await websocket.send_text(codec.encode_own({"closed": said}).decode())
                await websocket.close(4000 + problems.status_of(reason), reason.code)
