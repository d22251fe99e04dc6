"""Events as they come over HTTP: JSON in several shapes, and CloudEvents in the three modes of its HTTP binding.

In structured mode the body is the event, in batched mode a list of them, and in binary mode the body is the data and
the attributes are headers that begin with `ce-`.
"""

from __future__ import annotations

from typing import Any, Final, cast
from urllib.parse import unquote

import msgspec
from starlette.datastructures import Headers

from ostinato import errors
from ostinato.api import limits, routing
from ostinato.core import documents
from ostinato.reactions import events

STRUCTURED: Final = "application/cloudevents+json"
BATCHED: Final = "application/cloudevents-batch+json"
PREFIX: Final = "ce-"
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def read(headers: Headers, body: bytes) -> list[Any]:
    """The events of a request, not yet checked one by one."""
    kind = limits.media_type(headers)
    if kind not in (STRUCTURED, BATCHED) and f"{PREFIX}specversion" in headers:
        return [_from_headers(headers, body)]
    if not body:
        raise errors.MalformedBody("the request needs a body of JSON")
    given = routing.decode(_decoder, body)
    if kind == BATCHED and not isinstance(given, list):
        raise errors.InvalidInput(f"a body of {BATCHED} must be a list of events", field="events")
    if kind == STRUCTURED and not isinstance(given, dict):
        raise errors.InvalidInput(f"a body of {STRUCTURED} must be one event", field="events")
    items = _items(given)
    if kind in (STRUCTURED, BATCHED):  # what does not say which version it is of is refused, by itself
        return [{"specversion": None} | cast("dict[str, Any]", i) if isinstance(i, dict) else i for i in items]
    return items


def _items(given: Any) -> list[Any]:
    if isinstance(given, list):
        return cast("list[Any]", given)
    if isinstance(given, dict) and "Entries" in given:  # the body of PutEvents
        return documents.as_list(cast("dict[str, Any]", given)["Entries"], "Entries", 0, events.MOST_EVENTS)
    return [given]


def _from_headers(headers: Headers, body: bytes) -> dict[str, Any]:
    """Values of headers are percent-encoded where they are not plain ASCII."""
    event: dict[str, Any] = {
        name.removeprefix(PREFIX): unquote(value) for name, value in headers.items() if name.startswith(PREFIX)
    }
    event.pop("data", None)
    if body:
        event |= {"data": routing.decode(_decoder, body), "datacontenttype": limits.media_type(headers)}
    return event
