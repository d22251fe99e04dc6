"""What followers get, and what they may ask for: the same for sockets, server-sent events and GraphQL."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import msgspec

from ostinato import errors, views
from ostinato.api import models
from ostinato.core import codec, events, rows
from ostinato.store import stream

_encode = msgspec.json.Encoder().encode


class StreamEvent(views.EventView, frozen=True, rename="camel"):
    """An event in the feed. `cursor` is where to go on after it."""

    job_name: str
    cursor: str


class JobStatus(models.Answer):
    """What a job says of itself: a status that was published, or the state that it is in from now on."""

    job_id: str
    status: str
    message: str | None
    timestamp: datetime.datetime
    task_id: str | None
    cursor: str


class Message:
    """One event on its way to any number of followers; it is written as JSON once for all of them."""

    __slots__ = ("encoded", "event", "place")

    def __init__(self, item: stream.FeedEvent) -> None:
        view = views.event_view(item.event, item.correlation_id)
        self.place = item.place
        self.event = StreamEvent(**msgspec.structs.asdict(view), job_name=item.job_name, cursor=item.cursor)
        self.encoded = _encode(self.event)

    @property
    def size(self) -> int:
        return len(self.encoded)


class Wanted(msgspec.Struct, frozen=True):
    """Which events a follower wants; all that is given must match."""

    job_id: str | None = None
    task_id: str | None = None
    job_name: str | None = None
    types: frozenset[str] = frozenset()
    function: str | None = None
    """Events about tasks of this function. They do not say which it is: whoever asks for a match has to."""

    def __post_init__(self) -> None:
        for kind in sorted(self.types):
            if kind not in events.TYPES:
                raise errors.InvalidInput(
                    f"there are no events of the type {kind!r}: use some of {', '.join(events.TYPES)}", field="types"
                )

    def matches(self, item: stream.FeedEvent, functions: Mapping[rows.TaskKey, str]) -> bool:
        event = item.event
        return (
            self.job_id in (None, event.job_id)
            and self.task_id in (None, event.task_id)
            and self.job_name in (None, item.job_name)
            and (not self.types or event.type in self.types)
            and (self.function is None or self.function == functions.get((event.job_id, event.task_id or "")))
        )


STATUSES = frozenset({events.STATUS_PUBLISHED, *events.JOB_STATE_AFTER})
"""The events that tell of the status of a job."""


def job_status(event: StreamEvent) -> JobStatus:
    """A status from an event, one of `STATUSES`."""
    told: dict[str, Any] = event.properties
    state = events.JOB_STATE_AFTER.get(event.type)
    return JobStatus(
        job_id=event.job_id,
        status=told["status"] if state is None else state,
        message=told.get("message") if state is None else told.get("reason"),
        timestamp=event.at if told.get("timestamp") is None else _moment(told["timestamp"]),
        task_id=event.task_id,
        cursor=event.cursor,
    )


def _moment(text: str) -> datetime.datetime:
    return msgspec.convert(text, datetime.datetime)


def encode_status(event: StreamEvent) -> bytes:
    return codec.encode_own(job_status(event))
