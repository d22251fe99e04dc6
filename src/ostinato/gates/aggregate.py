"""What the arrivals of a gate come to. Members count in the order of the definition, whatever order they came in.

Only successes are aggregated, and of those the members that have the field; null is as good as not there. At the end of
each line is what comes of nobody having it.

- `union`: each item of the lists once, in the order of first appearance. `[]`
- `merge`: one object of all; of two equal names the later member's wins, as it is, not merged further down. `{}`
- `by-kind`: a `union` for each kind of the definition, also for one without items. `{"players": [], "teams": []}`
- `list`: the value of each member, by its name. `{}`
- `count`: how many members have it. `0`
- `sum`: of numbers. `0`
- `min`, `max`: of numbers, or of texts, as dates in ISO 8601 are compared. `null`
- `first`: the value of the first member that has it. `null`
- `jsonata`: whatever the expression makes of `{"members": {name: record}}`, with those that failed too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ostinato import errors
from ostinato.core import codec, documents
from ostinato.gates import definition
from ostinato.gates.records import Record

Evaluate = Callable[[str, Any], Any]
"""From a JSONata expression and its input to its value."""


def aggregate(gate: definition.Gate, records: Mapping[str, Record], evaluate: Evaluate) -> dict[str, Any]:
    """Each field of the definition with what the records come to."""
    ordered = {name: records[name] for name in gate.expected if name in records}
    return {name: _one(gate, name, how, ordered, evaluate) for name, how in gate.aggregate.items()}


def check(gate: definition.Gate, member: str, data: Mapping[str, Any]) -> None:
    """Refuse data that could not be aggregated, before one bad arrival spoils what all the others brought."""
    for name, aggregation in gate.aggregate.items():
        value = _value(name, aggregation, data)
        if value is not None:
            _fit(gate, name, aggregation, member, value)


def _one(
    gate: definition.Gate,
    name: str,
    aggregation: definition.Aggregation,
    records: Mapping[str, Record],
    evaluate: Evaluate,
) -> Any:
    if aggregation.expression is not None:
        return evaluate(aggregation.expression, {"members": msgspec.to_builtins(records)})
    values: dict[str, Any] = {}
    for member, record in records.items():
        value = _value(name, aggregation, record.data) if record.success else None
        if value is not None:
            _fit(gate, name, aggregation, member, value)
            values[member] = value
    try:
        return _WAYS[aggregation.how](gate, values)
    except OverflowError:
        raise errors.UnfitValue(
            f"gate {gate.name!r}: the sum of {name!r} is larger than a number can be", gate=gate.name, field=name
        ) from None
    except TypeError:
        raise errors.UnfitValue(
            f"gate {gate.name!r}: {name!r} is a number for some members and a text for others, which do not compare",
            gate=gate.name,
            field=name,
        ) from None


def _value(name: str, aggregation: definition.Aggregation, data: Mapping[str, Any]) -> Any:
    return None if aggregation.expression is not None else documents.look_up(data, aggregation.path or name)


# --- what fits ---------------------------------------------------------------------------------------------------


def _fit(gate: definition.Gate, name: str, aggregation: definition.Aggregation, member: str, value: Any) -> None:
    wanted, fits = _FITTING.get(aggregation.how, ("", _anything))
    if not fits(value):
        path = aggregation.path or name
        raise errors.UnfitValue(
            f"gate {gate.name!r}: {path} of member {member!r} must be {wanted} ({aggregation.how} of {name!r}), "
            f"not {documents.short(value)}",
            gate=gate.name,
            member=member,
            field=f"data.{path}",
        )


def _anything(_: Any) -> bool:
    return True


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and math.isfinite(value)
    )


def _is_comparable(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


_FITTING: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "union": ("a list", _is_list),
    "by-kind": ("a list", _is_list),
    "merge": ("an object", _is_object),
    "sum": ("a number", _is_number),
    "min": ("a number or a text", _is_comparable),
    "max": ("a number or a text", _is_comparable),
}


# --- the ways ------------------------------------------------------------------------------------------------------


def _union(lists: Sequence[list[Any]]) -> list[Any]:
    """Equal is what is written alike as JSON: in Python, 1 and true would be equal too."""
    found: dict[bytes, Any] = {}
    for items in lists:
        for item in items:
            found.setdefault(codec.encode_canonical(item), item)
    return list(found.values())


def _merge(objects: Sequence[dict[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for item in objects:
        merged |= item
    return merged


def _by_kind(gate: definition.Gate, values: Mapping[str, Any]) -> dict[str, list[Any]]:
    members = gate.expected
    return {
        kind: _union([value for name, value in values.items() if members[name].kind == kind]) for kind in gate.kinds
    }


def _sum(numbers: Sequence[int | float]) -> int | float:
    """Whole numbers stay exact, and fractions are rounded once."""
    whole = [number for number in numbers if isinstance(number, int)]
    return sum(whole) if len(whole) == len(numbers) else math.fsum(numbers)


def _listed(way: Callable[[Any], Any]) -> Callable[[definition.Gate, Mapping[str, Any]], Any]:
    return lambda gate, values: way(list(values.values()))


def _least(values: Sequence[Any]) -> Any:
    return min(values, default=None)


def _most(values: Sequence[Any]) -> Any:
    return max(values, default=None)


def _first(values: Sequence[Any]) -> Any:
    return values[0] if values else None


_WAYS: dict[str, Callable[[definition.Gate, Mapping[str, Any]], Any]] = {
    "union": _listed(_union),
    "merge": _listed(_merge),
    "by-kind": _by_kind,
    "list": lambda gate, values: dict(values),
    "count": _listed(len),
    "sum": _listed(_sum),
    "min": _listed(_least),
    "max": _listed(_most),
    "first": _listed(_first),
}
