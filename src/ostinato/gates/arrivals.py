"""One arrival against the definition of its gate: refused with a reason, or turned into the record that is kept."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from ostinato import errors
from ostinato.core import documents, graph
from ostinato.gates import aggregate, definition
from ostinato.gates.records import Record
from ostinato.rules import targets

SUCCESS, FAILED = "success", "failed"


def check(
    gate: definition.Gate,
    key: str,
    member: str,
    data: Any = None,
    status: str | None = None,
    *,
    correlation_id: str | None = None,
    arrived_at: datetime.datetime | None = None,
) -> Record:
    """The record of an arrival. A failed one is no error: `success` says so, and the gate's policy what follows.

    Status and correlation id may be given beside the data or in it (`status`, `correlation_id`).
    """
    targets.check_key(key, "key")
    _check_member(gate, member)
    content = {} if data is None else documents.as_object(data, "data")
    status = _status(status, content)
    said = content if status is None else content | {"status": status}
    _check_key(gate, key, content)
    _check_required(gate, member, said)
    success = _succeeded(gate, said)
    if success:
        aggregate.check(gate, member, content)
    return Record(
        member=member,
        status=status or (SUCCESS if success else FAILED),
        success=success,
        data=content,
        correlation_id=_correlation_id(correlation_id, content),
        execution_id=_found(content, str, "execution_id", "executionId"),
        record_count=_found(content, int, "record_count", "recordCount"),
        arrived_at=arrived_at,
    )


def _check_member(gate: definition.Gate, member: str) -> None:
    graph.check_id(member, "member")
    if member not in gate.expected:
        count = len(gate.expected)
        raise errors.UnknownMember(
            f"gate {gate.name!r} does not expect {member!r}: {documents.nearest(member, gate.expected)}"
            f"it expects {count:,} member{'' if count == 1 else 's'}",
            gate=gate.name,
            member=member,
            expectedCount=count,
            field="member",
        )


def _check_key(gate: definition.Gate, key: str, data: Mapping[str, Any]) -> None:
    """Data of another day in the instance of this one is a mistake of the sender that nobody would find later."""
    own = None if gate.key is None else data.get(gate.key)
    if own is not None and str(own) != key:
        raise errors.InvalidInput(
            f"the arrival is for {documents.short(key)}, but {gate.key} in its data is {documents.short(own)}",
            field=f"data.{gate.key}",
        )


def _check_required(gate: definition.Gate, member: str, said: Mapping[str, Any]) -> None:
    missing = [path for path in gate.required if documents.look_up(said, path) is None]
    if missing:
        raise errors.MissingField(
            f"the data of {member!r} lacks {documents.listed(missing)}: gate {gate.name!r} requires "
            f"{documents.listed(gate.required)}",
            gate=gate.name,
            member=member,
            missing=missing,
            field=f"data.{missing[0]}",
        )


def _status(given: Any, data: Mapping[str, Any]) -> str | None:
    own = data.get("status")
    for value, field in ((given, "status"), (own, "data.status")):
        if value is not None:
            targets.check_status(value, field)
    if given is not None and own is not None and given != own:
        raise errors.InvalidStatus(
            f"the status is {given!r}, but in the data it is {own!r}: give it once", field="status"
        )
    return own if given is None else given


def _succeeded(gate: definition.Gate, said: Mapping[str, Any]) -> bool:
    pattern = gate.success_pattern
    return said.get("status", SUCCESS) in (SUCCESS, None) if pattern is None else pattern.matches(said)


def _correlation_id(given: str | None, data: Mapping[str, Any]) -> str | None:
    """It becomes the correlation id of a job, and so it must be one."""
    if given is not None:
        return graph.check_id(given, "correlationId")
    return graph.correlation_id_in(data, "data")


def _found(data: Mapping[str, Any], kind: type[Any], *names: str) -> Any:
    """What the data has under one of these names, if it is what the name promises."""
    return next((data[name] for name in names if type(data.get(name)) is kind), None)
