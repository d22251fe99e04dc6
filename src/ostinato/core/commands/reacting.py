"""What follows from events by the rules of the tenant: jobs that are entered in the transaction that records the event.

The queue of the engine is the outbox: such a job has one task for each target, which is tried until it succeeds, or
ends among the dead letters.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import msgspec

from ostinato.core import codec, graph, ledger, moments, needs, rulebook, sheet
from ostinato.core.commands import producing

FIRE: Final = "ostinato.fire"
RULE: Final = "rule:"
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
NO_ORIGIN: Final = sheet.Origin()
_SPACE: Final = uuid.UUID("6b0a3c9e-6f0e-5d7c-9d1e-3f5d0a7e9c11")


class Observe(msgspec.Struct, gc=False):
    """Record an event of somebody else, unless it was recorded before."""

    source: str
    event_id: str
    data: bytes
    """The whole event as JSON, in the shape that patterns see."""
    trace_parent: str | None = None
    correlation_id: str | None = None
    """Those of what tells it, for what follows from an event that has none of its own."""

    def needs(self, wanted: needs.Needs) -> None:
        wanted.outside_events.add((self.source, self.event_id))

    def apply(self, book: ledger.Ledger) -> Literal["recorded", "duplicate"]:
        key = (self.source, self.event_id)
        if key in book.outside_events:
            return "duplicate"
        book.outside_events.add(key)
        book.new_outside_events.append((*key, book.now, self.data))
        book.origins[key] = sheet.Origin(self.trace_parent, self.correlation_id)
        return "recorded"


def react(book: ledger.Ledger, rules: rulebook.RuleBook) -> None:
    """Enter what the rules want done about the events of this transaction."""
    for source, event_id, received_at, data in book.new_outside_events:
        if source == rulebook.SOURCE:
            continue  # a rule has led to it: it is recorded, and nothing follows from it
        origin = book.origins.get((source, event_id), NO_ORIGIN)
        _follow(book, rules, codec.decode(data), f"{source}/{event_id}/{received_at}", origin=origin)
    for heard in book.heard:
        event, job = _own_event(book, heard), book.jobs[heard.job_id]
        origin = sheet.Origin(job.trace_parent, job.correlation_id)
        _follow(book, rules, event, f"{heard.job_id}/{heard.seq}", _depth(event["detail"]), origin)
    book.heard = []


def _follow(
    book: ledger.Ledger,
    rules: rulebook.RuleBook,
    event: Mapping[str, Any],
    about: str,
    depth: int = 0,
    origin: sheet.Origin = NO_ORIGIN,
) -> None:
    for rule in rules.matching(event):
        job_id = f"rule~{uuid.uuid5(_SPACE, f'{book.tenant}/{about}/{rule.name}')}"
        _submission(rule, event, job_id, depth, origin).apply(book)


def _submission(
    rule: rulebook.Rule, event: Mapping[str, Any], job_id: str, depth: int, origin: sheet.Origin
) -> producing.Submit:
    """The job that does what a rule wants done."""
    tasks: list[graph.TaskSpec] = []
    inputs: list[bytes] = []
    for number, target in enumerate(rule.targets, 1):
        given = {"about": {"rule": rule.name, "depth": depth}, "target": target, "data": event}
        tasks.append(graph.TaskSpec(f"target-{number}", FIRE, queue=graph.SYSTEM_QUEUE))
        inputs.append(codec.encode_own(given))
    spec = graph.JobSpec(
        tasks,
        name=f"{RULE}{rule.name}",
        correlation_id=correlation_id(event),
        tags={"rule": rule.name},
    )
    return producing.Submit(
        job_id, spec, inputs, trace_parent=origin.trace_parent, correlation_id=origin.correlation_id
    )


def correlation_id(event: Mapping[str, Any]) -> str | None:
    """That of an event, in either spelling. (One that no job could have was refused when the event came.)"""
    detail: Any = event.get("detail")
    said = cast("dict[str, Any]", detail) if isinstance(detail, dict) else {}
    return next((said[name] for name in graph.CORRELATION if graph.is_id(said.get(name))), None)


def _depth(detail: Mapping[str, Any]) -> int:
    """How far it is from whoever started it all: as the job says, or whoever did something to it."""
    tag: Any = detail["tags"].get(rulebook.DEPTH_TAG, "")
    of_job = int(tag) if tag.isascii() and tag.isdigit() else 0
    return max(of_job, detail.get("depth", 0))


def _own_event(book: ledger.Ledger, heard: sheet.Heard) -> dict[str, Any]:
    """As patterns and templates see it: without fields that are too large to be carried about."""
    job = book.jobs[heard.job_id]
    detail: dict[str, Any] = {
        "jobId": job.job_id,
        "jobName": job.name,
        "seq": heard.seq,
        "correlationId": job.correlation_id,
        "requestId": job.request_id,
        "tags": codec.decode(job.tags),
    }
    if heard.task_id is not None:
        detail |= {"taskId": heard.task_id, "name": heard.name, "attempt": heard.attempt}
    told = {name: value for name, value in _fields.decode(heard.data).items() if len(bytes(value)) <= book.spill_bytes}
    return {
        "version": "0",
        "id": f"{job.job_id}:{heard.seq}",
        "source": rulebook.SOURCE,
        "account": book.tenant,
        "time": moments.text(book.now),
        "detail-type": heard.kind,
        "detail": {name: codec.decode(bytes(value)) for name, value in told.items()} | detail,
    }
