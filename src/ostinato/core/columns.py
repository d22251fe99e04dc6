"""Columns, each declared once, as a field of the struct that is its row.

Its properties stand beside its type: `budget: Changes[int | None]`, `input: Annotated[bytes, Payload("input")]`. The
statements that write it, the columns of queries and what is encrypted follow from them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Payload(NamedTuple):
    """What users gave: it is encrypted where there is a key, bound to its kind, its row and its job."""

    kind: str


class WrittenWith(NamedTuple):
    """One of the sets of columns that are written together."""

    name: str


CHANGE: Final = WrittenWith("change")
ADVANCE: Final = WrittenWith("advance")
CLAIM: Final = WrittenWith("claim")
COMPLETE: Final = WrittenWith("complete")
NOT_STORED: Final = "not stored"

Changes = Annotated[T, CHANGE]
"""It can change in the life of a row."""
Advances = Annotated[T, CHANGE, ADVANCE]
"""It changes whenever a task of a job moves on."""
Claims = Annotated[T, CHANGE, CLAIM]
"""It changes when a worker claims a task."""
Completes = Annotated[T, CHANGE, COMPLETE]
"""It changes when a task completes."""
NotStored = Annotated[T, NOT_STORED]
"""A field for the transaction alone."""

TEXT: Final = "text"
NUMBER: Final = "int8"
TRUTH: Final = "bool"
BYTES: Final = "bytea"
_TYPES: Final[dict[Any, str]] = {str: TEXT, int: NUMBER, bool: TRUTH, bytes: BYTES}


class Column(NamedTuple):
    name: str
    type: str
    """What PostgreSQL calls it."""
    nullable: bool = False
    payload: str | None = None
    sets: frozenset[str] = frozenset()


def text(name: str, *, nullable: bool = False) -> Column:
    return Column(name, TEXT, nullable)


def number(name: str, *, nullable: bool = False) -> Column:
    return Column(name, NUMBER, nullable)


def payload(name: str, kind: str, *, nullable: bool = False) -> Column:
    return Column(name, BYTES, nullable, kind)


def of(struct: type) -> tuple[Column, ...]:
    """The columns of a row, in the order of its fields."""
    hints = get_type_hints(struct, include_extras=True)
    return tuple(_column(name, hint) for name, hint in hints.items() if NOT_STORED not in _marks(hint))


def row_of(names: Sequence[str]) -> Callable[[str, Any], tuple[Any, ...]]:
    """A function that makes the row of a tenant and a value: as fast as one that is written out, which `attrgetter` is
    not by half."""
    values = "".join(f", value.{name}" for name in names)
    return eval(f"lambda tenant, value: (tenant{values})")  # noqa: S307 -- made of our own names, as a named tuple is


def _column(name: str, hint: Any) -> Column:
    marks = _marks(hint)
    kinds = _kinds(get_args(hint)[0] if marks else hint)
    kind = next((mark.kind for mark in marks if isinstance(mark, Payload)), None)
    sets = frozenset(mark.name for mark in marks if isinstance(mark, WrittenWith))
    (stored,) = kinds - {types.NoneType}
    return Column(name, _TYPES[stored], types.NoneType in kinds, kind, sets)


def _marks(hint: Any) -> tuple[Any, ...]:
    return hint.__metadata__ if get_origin(hint) is Annotated else ()


def _kinds(hint: Any) -> set[Any]:
    return set(get_args(hint)) if get_origin(hint) in (types.UnionType, Union) else {hint}
