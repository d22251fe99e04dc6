"""A gate as its author writes it: whom it expects for each business key, and what is to happen when all have come."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ostinato import errors
from ostinato.core import documents, graph, patterns
from ostinato.rules import targets

DYNAMIC = "dynamic"
MOST_MEMBERS = 10_000
MOST_FIELDS = 100
LONGEST_DESCRIPTION = 1024
LONGEST_EXPRESSION = 10_000
DAY = 86_400.0
LONGEST_DEADLINE = 366 * DAY
LONGEST_RETENTION = 10 * 366 * DAY

How = Literal["union", "merge", "count", "sum", "min", "max", "list", "first", "by-kind", "jsonata"]


class Member(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Somebody who is expected. The kind says what its lists are lists of."""

    name: str
    kind: str | None = None


class Aggregation(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """How the values of one field become one value. `path` is where in the data they are, if not under its name."""

    how: How
    path: str | None = msgspec.field(default=None, name="from")
    expression: str | None = None


class Gate(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """`key` is the name of the business key, like `game_date`; each value of it has an instance of its own."""

    name: str
    members: list[Member] | Literal["dynamic"]
    key: str | None = None
    description: str | None = None
    required: list[str] = []
    success: dict[str, Any] | None = None
    """A pattern over the data; without one, an arrival without a status or with the status `success` is one."""
    on_failure: Literal["fail", "wait", "partial"] = "wait"
    aggregate: dict[str, Aggregation] = {}
    trigger: list[targets.Target] = []
    deadline: float | None = None
    """Seconds from the first arrival."""
    on_deadline: Literal["fail", "partial"] = "fail"
    late: Literal["ignore", "refuse", "trigger"] = "ignore"
    retention: float | None = None
    """Seconds for which a key is kept after everything about it has ended; None is as long as the tenant keeps jobs."""

    @functools.cached_property
    def expected(self) -> Mapping[str, Member]:
        """The members by name, in the order of the definition."""
        if isinstance(self.members, str):
            raise errors.GateNotFrozen(
                f"gate {self.name!r} gets its members at run time: freeze those of the key first", gate=self.name
            )
        return {member.name: member for member in self.members}

    @functools.cached_property
    def kinds(self) -> Sequence[str]:
        """Every kind that a member has, in the order of the definition."""
        return list(dict.fromkeys(member.kind for member in self.expected.values() if member.kind is not None))

    @functools.cached_property
    def success_pattern(self) -> patterns.Pattern | None:
        return None if self.success is None else patterns.compile(self.success, "success")


def read(document: Any) -> Gate:
    """Turn a document into a checked gate, or raise InvalidInput naming the field."""
    given = documents.check_names(document, Gate)
    if given["members"] != DYNAMIC:
        given["members"] = _members(given["members"], least=1)
    if "aggregate" in given:
        given["aggregate"] = _aggregations(given["aggregate"])
    if "trigger" in given:
        given["trigger"] = targets.read(given["trigger"], "trigger", least=0)
    gate = documents.read(given, Gate)
    _check(gate)
    if "onDeadline" in given and gate.deadline is None:
        raise errors.InvalidInput("onDeadline has no meaning without a deadline: give one", field="onDeadline")
    return gate


def freeze(gate: Gate, members: Any) -> Gate:
    """The gate with the members that were given at run time. There may be none: then it opens at once."""
    if gate.members != DYNAMIC:
        raise errors.InvalidInput(
            f"gate {gate.name!r} has its members in its definition: they cannot be given at run time", field="members"
        )
    frozen = msgspec.structs.replace(gate, members=_members(members, least=0))
    _check_kinds(frozen)
    return frozen


def expressions(gate: Gate) -> Iterator[tuple[str, str]]:
    """Every JSONata expression in the gate, with the path of its field, for who can tell whether it is valid."""
    for name, aggregation in gate.aggregate.items():
        if aggregation.expression is not None:
            yield f"aggregate.{name}.expression", aggregation.expression
    yield from targets.expressions(gate.trigger, "trigger")


def _check(gate: Gate) -> None:
    targets.check_name(gate.name, "name")
    if gate.key is not None:
        documents.check_text(gate.key, "key", 128)
    if gate.description is not None:
        documents.check_text(gate.description, "description", LONGEST_DESCRIPTION)
    documents.as_list(gate.required, "required", 0, MOST_FIELDS)
    for index, path in enumerate(gate.required):
        documents.check_path(path, f"required[{index}]")
        if path in gate.required[:index]:
            raise errors.InvalidInput(f"required has {path!r} twice: name it once", field=f"required[{index}]")
    _ = gate.success_pattern  # a bad pattern is told now, not at the first arrival
    documents.check_seconds(gate.deadline, "deadline", LONGEST_DEADLINE)
    documents.check_seconds(gate.retention, "retention", LONGEST_RETENTION)
    if gate.members != DYNAMIC:
        _check_kinds(gate)


def _members(given: Any, least: int) -> list[Member]:
    if isinstance(given, str):
        raise errors.InvalidInput(
            f"members must be a list, or {DYNAMIC!r} if they are given at run time, not {documents.short(given)}",
            field="members",
        )
    members: dict[str, Member] = {}
    for index, item in enumerate(documents.as_list(given, "members", least, MOST_MEMBERS)):
        member = _member(item, f"members[{index}]")
        if member.name in members:
            raise errors.InvalidInput(
                f"members is a set and has {member.name!r} twice: name each member once", field=f"members[{index}]"
            )
        members[member.name] = member
    return list(members.values())


def _member(item: Any, field: str) -> Member:
    """A member is a task of the instance, so that its name must be the id of a task."""
    if isinstance(item, str):
        graph.check_id(item, field)
        return Member(item)
    member = item if isinstance(item, Member) else documents.read(item, Member, field)
    graph.check_id(member.name, f"{field}.name")
    if member.kind is not None:
        graph.check_id(member.kind, f"{field}.kind")
    return member


def _aggregations(document: Any) -> dict[str, Aggregation]:
    fields = documents.as_object(document, "aggregate")
    if len(fields) > MOST_FIELDS:
        raise errors.InvalidInput(f"aggregate has more than {MOST_FIELDS} fields", field="aggregate")
    return {name: _aggregation(name, item) for name, item in fields.items()}


def _aggregation(name: str, item: Any) -> Aggregation:
    field = f"aggregate.{documents.short_text(name)}"
    documents.check_text(name, field, 128)
    aggregation = documents.read(item, Aggregation, field)
    if aggregation.how == "jsonata":
        if not aggregation.expression or len(aggregation.expression) > LONGEST_EXPRESSION:
            raise errors.InvalidInput(
                f"{field}.expression must be JSONata of 1 to {LONGEST_EXPRESSION:,} characters",
                field=f"{field}.expression",
            )
        if aggregation.path is not None:
            raise errors.InvalidInput(
                f"{field}.from has no meaning with jsonata: the expression says where to look", field=f"{field}.from"
            )
        return aggregation
    if aggregation.expression is not None:
        raise errors.InvalidInput(
            f"{field}.expression has no meaning with {aggregation.how}: use how: jsonata", field=f"{field}.expression"
        )
    if aggregation.path is None:
        documents.check_path(name, field)
    else:
        documents.check_path(aggregation.path, f"{field}.from")
    return aggregation


def _check_kinds(gate: Gate) -> None:
    by_kind = next((name for name, how in gate.aggregate.items() if how.how == "by-kind"), None)
    for index, member in enumerate(gate.expected.values()):
        if by_kind is not None and member.kind is None:
            field = f"members[{index}].kind"
            raise errors.InvalidInput(
                f"{field} is missing: {by_kind!r} is aggregated by kind, so that {member.name!r} needs one", field=field
            )
