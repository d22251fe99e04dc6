"""Events of others on their way in: in the shape of EventBridge or of CloudEvents, one or many, each recorded once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
import uuid_utils

from ostinato import errors, indexing, logs, tracing
from ostinato.core import codec, commands, documents, executions, graph, moments, rulebook
from ostinato.engine import engine
from ostinato.reactions import definitions

MOST_EVENTS = 500
LONGEST_EVENT = 256 * 1024
LONGEST_ID = 255
Outcome = Literal["recorded", "duplicate"]


class Received(msgspec.Struct, frozen=True, rename="camel"):
    """What became of one event: an outcome, or the code and the sentence of why it was refused, and the field."""

    id: str | None
    source: str | None
    outcome: Literal["recorded", "duplicate", "refused"]
    indexed: bool | None = None
    """Of a status change of an execution: whether the execution is in the index."""
    skipped: str | None = None
    """Why it is not."""
    code: str | None = None
    detail: str | None = None
    field: str | None = None


async def post(
    app: definitions.Application, index: indexing.Indexer, given: Any, *, actor: str | None = None
) -> list[Received]:
    """Record events, and index executions of which they tell. One that is wrong is refused, and the others are taken;
    only if all are wrong is that an error."""
    received, wrong = await take(app, index, given, actor=actor)
    if len(wrong) == len(received):
        raise wrong[0]
    return received


async def take(
    app: definitions.Application, index: indexing.Indexer, given: Any, *, actor: str | None = None, first: int = 0
) -> tuple[list[Received], list[errors.InvalidInput]]:
    """The same, with what was wrong with those that were refused. They are counted from `first` on."""
    items = cast("list[Any]", given) if isinstance(given, list) else [given]
    if not 1 <= len(items) <= MOST_EVENTS:
        raise errors.InvalidInput(f"send 1 to {MOST_EVENTS} events at a time, not {len(items):,}", field="events")
    running = app.engine
    now = moments.text(running.db.now())
    answers: dict[int, Received] = {}
    wrong: list[errors.InvalidInput] = []
    batch: dict[int, dict[str, Any]] = {}
    for number, item in enumerate(items):
        try:
            batch[number] = read(item, running.tenant, now, f"events[{first + number}]")
        except errors.InvalidInput as error:
            wrong.append(error)
            answers[number] = _refused(item, error)
    if batch:
        await app.note(actor, "events.post", events=len(batch))
        answers |= zip(batch, await _taken(running, index, list(batch.values())), strict=True)
    return [answers[number] for number in range(len(items))], wrong


async def _taken(running: engine.Engine, index: indexing.Indexer, batch: Sequence[dict[str, Any]]) -> list[Received]:
    outcomes = await record(running, batch)
    # One that was recorded before is indexed again, in case that whoever recorded it did not get that far.
    known = await _as_recorded(running, batch, outcomes)
    reported = await index.take([event for event in known if executions.is_status_change(event)])
    reasons = {skipped.execution_arn: skipped.reason for skipped in reported.skipped}
    return [_received(event, outcome, reasons) for event, outcome in zip(known, outcomes, strict=True)]


def _refused(item: Any, error: errors.InvalidInput) -> Received:
    """What it says of itself, so far as it can be told."""
    event = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    said = [event.get(name) for name in ("id", "source")]
    event_id, source = (one if isinstance(one, str) and len(one) <= LONGEST_ID else None for one in said)
    return Received(
        event_id, source, "refused", code=error.code, detail=error.message, field=error.details.get("field")
    )


async def report(
    running: engine.Engine, given: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any] | errors.InvalidInput]:
    """Record status changes that are reported in Python; the answer is each as it was recorded, now or before."""
    answers: dict[str, dict[str, Any] | errors.InvalidInput] = {}
    batch: dict[str, dict[str, Any]] = {}
    for name, event in given.items():
        try:
            batch[name] = stamped(running, event, name)
        except errors.InvalidInput as error:
            answers[name] = error
    known = list(batch.values())
    return answers | dict(zip(batch, await _as_recorded(running, known, await record(running, known)), strict=True))


async def record(running: engine.Engine, batch: Sequence[dict[str, Any]]) -> list[Outcome]:
    origin = (tracing.inherited(running.tracer), logs.correlation_id())
    observed = [commands.Observe(event["source"], event["id"], codec.encode(event), *origin) for event in batch]
    return await asyncio.gather(*[running.execute(command) for command in observed])


async def _as_recorded(
    running: engine.Engine, batch: Sequence[dict[str, Any]], outcomes: Sequence[Outcome]
) -> list[dict[str, Any]]:
    """What others have told, as they told it first: a status change with the id of another one does not count."""
    again = {
        (event["source"], event["id"])
        for event, outcome in zip(batch, outcomes, strict=True)
        if outcome == "duplicate" and executions.is_status_change(event)
    }
    found = await running.store.recorded_events(running.tenant, sorted(again)) if again else []
    known = {(one.source, one.event_id): codec.decode(one.data) for one in found}
    return [known.get((event["source"], event["id"]), event) for event in batch]


def stamped(running: engine.Engine, event: Mapping[str, Any], field: str = "event") -> dict[str, Any]:
    """In the shape that patterns see. One without an id has one by what it says: it is recorded once."""
    if event.get("id") is None:
        said = codec.decode(codec.encode(event, field))
        event = {**event, "id": f"sha256:{hashlib.sha256(codec.encode_canonical(said)).hexdigest()}"}
    return shape(event, running.tenant, moments.text(running.db.now()), field)


def _received(event: dict[str, Any], outcome: Outcome, reasons: Mapping[str, str]) -> Received:
    if not executions.is_status_change(event):
        return Received(event["id"], event["source"], outcome)
    reason = reasons.get(event["detail"]["executionArn"])
    return Received(event["id"], event["source"], outcome, reason is None, reason)


def read(given: Any, tenant: str, now: str, field: str) -> dict[str, Any]:
    """An event of somebody else in the shape that patterns see."""
    made = shape(given, tenant, now, field)
    if made["source"] == rulebook.SOURCE:
        raise errors.InvalidInput(
            f"{field}.source {rulebook.SOURCE!r} is that of the engine's own events: use another",
            field=f"{field}.source",
        )
    if executions.is_status_change(made):
        executions.read_event(made, at=field)
    return made


def shape(given: Any, tenant: str, now: str, field: str) -> dict[str, Any]:
    """An event in the shape that patterns see, whatever shape it came in, and whoever speaks."""
    event = documents.as_object(given, field)
    if len(codec.encode(event)) > LONGEST_EVENT:
        raise errors.InvalidInput(f"{field} is longer than {LONGEST_EVENT // 1024} KiB", field=field)
    made = _from_cloud_event(event, field) if "specversion" in event else _from_event_bridge(event, field)
    called = "data" if "specversion" in event else "Detail" if "Source" in event else "detail"
    if not executions.is_status_change(made):  # an execution elsewhere may have any text
        graph.correlation_id_in(made["detail"], f"{field}.{called}")
    return {"version": "0", "time": now} | made | {"account": tenant}


def _from_event_bridge(event: Mapping[str, Any], field: str) -> dict[str, Any]:
    """As EventBridge delivers them, or as `PutEvents` takes them: `Source`, `DetailType`, `Detail` as a text."""
    if "Source" in event:
        event = _from_entry(event, field)
    detail = event.get("detail", {})
    if not isinstance(detail, dict):
        raise errors.InvalidInput(f"{field}.detail must be an object", field=f"{field}.detail")
    return {
        **{name: value for name, value in event.items() if name != "time"},
        **_time(event, field),
        "id": _text(event, "id", field, default=str(uuid_utils.uuid7())),
        "source": _text(event, "source", field),
        "detail-type": _text(event, "detail-type", field),
        "detail": detail,
    }


def _from_entry(entry: Mapping[str, Any], field: str) -> dict[str, Any]:
    names = {"Source": "source", "DetailType": "detail-type", "Time": "time", "Resources": "resources", "Id": "id"}
    made = {small: entry[large] for large, small in names.items() if large in entry}
    detail = entry.get("Detail", "{}")
    try:
        made["detail"] = codec.parse(detail, f"{field}.Detail") if isinstance(detail, str) else detail
    except errors.InvalidPayload as error:
        raise errors.InvalidInput(error.message, field=f"{field}.Detail") from None
    if isinstance(seconds := made.get("time"), (int, float)) and (at := executions.micros(seconds * 1000)) is not None:
        made["time"] = moments.text(at)  # so do the clients of AWS send it
    return made


def _from_cloud_event(event: Mapping[str, Any], field: str) -> dict[str, Any]:
    """The type becomes the detail-type, the data the detail; everything else is under `cloudevent`."""
    if event["specversion"] != "1.0":
        raise errors.InvalidInput(f"{field}.specversion must be '1.0'", field=f"{field}.specversion")
    if "data_base64" in event:
        raise errors.InvalidInput(
            f"{field}.data_base64 cannot be matched: send data as JSON", field=f"{field}.data_base64"
        )
    data = event.get("data", {})
    made: dict[str, Any] = {
        "id": _text(event, "id", field),
        "source": _text(event, "source", field),
        "detail-type": _text(event, "type", field),
        "detail": data if isinstance(data, dict) else {"data": data},
        "cloudevent": {name: value for name, value in event.items() if name != "data"},
    }
    return made | _time(event, field)


def _time(event: Mapping[str, Any], field: str) -> dict[str, str]:
    """When it happened, if it says so."""
    value = event.get("time")
    if value is None:
        return {}
    if not isinstance(value, str) or executions.micros(value) is None:
        raise errors.InvalidInput(
            f"{field}.time must be a time like 2026-01-31T12:00:00Z, not {documents.short(value)}",
            field=f"{field}.time",
        )
    return {"time": value}


def _text(event: Mapping[str, Any], name: str, field: str, default: str | None = None) -> str:
    value = default if event.get(name) is None else event[name]
    if value is None:
        raise errors.InvalidInput(f"{field}.{name} is missing: it is required", field=f"{field}.{name}")
    documents.check_text(value, f"{field}.{name}", LONGEST_ID)
    return value  # pyright: ignore[reportReturnType]
