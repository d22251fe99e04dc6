"""How an instance of a gate stands: who has come, who is missing and since when, and what came of it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from ostinato.core import documents
from ostinato.gates import definition, records
from ostinato.gates.records import Record

State = Literal["waiting", "open", "failed", "expired", "reset"]

_ALWAYS = datetime.datetime.max.replace(tzinfo=datetime.UTC)


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one business key of a gate."""

    key: str
    state: State
    job_id: str = ""
    records: Mapping[str, Record] = {}
    """The last arrival of each member; later ones than the opening are in `late`."""
    late: Sequence[Record] = ()
    since: datetime.datetime | None = None
    """When the first arrival came, or the members were frozen."""
    opened_at: datetime.datetime | None = None
    opened_by: str | None = None
    """The member that came last, or who opened it by hand."""
    reason: str | None = None
    """Why it was opened by hand or reset, or why it failed."""
    ended_at: datetime.datetime | None = None
    """When it failed, expired or was reset."""
    error: Mapping[str, Any] | None = None
    """Why what was reported could not be put together: a type and a message."""
    triggered: Sequence[Any] = ()


class Arrival(msgspec.Struct, frozen=True, rename="camel"):
    """A record without its data, which may be large."""

    member: str
    status: str
    success: bool
    arrived_at: datetime.datetime | None
    correlation_id: str | None
    execution_id: str | None
    record_count: int | None


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to "why has it not opened?". `missing` are those that the gate still counts on."""

    gate: str
    key: str
    job_id: str
    """The job in which the members report."""
    status: State
    completed_count: int
    expected_count: int
    arrived: list[Arrival]
    missing: list[str]
    failed: list[Arrival]
    late: list[Arrival]
    since: datetime.datetime | None
    opened_at: datetime.datetime | None
    opened_by: str | None
    reason: str | None
    ended_at: datetime.datetime | None
    error: Mapping[str, Any] | None
    triggered: list[Any]
    correlation_ids: list[str]
    sentence: str


def view(gate: definition.Gate, instance: Instance) -> Status:
    """How the instance stands. The gate's members are those of this instance: a dynamic gate is frozen before."""
    reported = [instance.records[name] for name in gate.expected if name in instance.records]
    reported.sort(key=lambda record: record.arrived_at or _ALWAYS)  # stable: those of one moment stay in member order
    counted = {record.member: record for record in reported if record.success or gate.on_failure == "partial"}
    missing = [name for name in gate.expected if name not in counted]
    failed = [record for record in reported if not record.success]
    return Status(
        gate=gate.name,
        key=instance.key,
        job_id=instance.job_id,
        status=instance.state,
        completed_count=len(counted),
        expected_count=len(gate.expected),
        arrived=[_arrival(record) for record in counted.values()],
        missing=missing,
        failed=[_arrival(record) for record in failed],
        late=[_arrival(record) for record in instance.late],
        since=instance.since,
        opened_at=instance.opened_at,
        opened_by=instance.opened_by,
        reason=instance.reason,
        ended_at=instance.ended_at,
        error=instance.error,
        triggered=list(instance.triggered),
        correlation_ids=records.correlation_ids([*reported, *instance.late]),
        sentence=_sentence(len(counted), len(gate.expected), missing, failed, instance),
    )


def _arrival(record: Record) -> Arrival:
    return Arrival(
        member=record.member,
        status=record.status,
        success=record.success,
        arrived_at=record.arrived_at,
        correlation_id=record.correlation_id,
        execution_id=record.execution_id,
        record_count=record.record_count,
    )


# --- words -----------------------------------------------------------------------------------------------------


def _sentence(
    completed: int, expected: int, missing: Sequence[str], failed: Sequence[Record], instance: Instance
) -> str:
    parts = [f"Completed: {completed:,}/{expected:,}"]
    if instance.state != "waiting":
        parts.append(_outcome(instance))
    if instance.error is not None:
        parts.append(_trouble(instance.error, instance))
    if missing:
        since = _at("since", instance.since) if instance.state == "waiting" else ""
        parts.append(f"missing: {documents.listed(missing)}{since}")
    if failed:
        parts.append("failed: " + documents.listed([f"{record.member} ({record.status})" for record in failed]))
    if instance.late:
        parts.append("late: " + documents.listed(list(dict.fromkeys(record.member for record in instance.late))))
    return "; ".join(parts)


def _outcome(instance: Instance) -> str:
    reason = f" ({instance.reason})" if instance.reason else ""
    if instance.state == "open":
        by = f" by {instance.opened_by}" if instance.opened_by else ""
        return f"opened{_at('at', instance.opened_at)}{by}{reason}"
    return f"{instance.state}{_at('at', instance.ended_at)}{reason}"


def _trouble(error: Mapping[str, Any], instance: Instance) -> str:
    what = f"what was reported could not be put together ({error['type']}: {error['message']})"
    if instance.state != "failed":
        return f"{what}, and is tried again"
    return f"{what}: correct the definition and resume job {instance.job_id}"


def _at(word: str, moment: datetime.datetime | None) -> str:
    if moment is None:
        return ""
    return f" {word} {moment.astimezone(datetime.UTC).isoformat(timespec='seconds').replace('+00:00', 'Z')}"
