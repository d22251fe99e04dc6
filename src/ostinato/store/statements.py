"""Several writes to PostgreSQL as one statement, made of data-modifying parts: one round trip, all or nothing."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from ostinato.core import tables
from ostinato.store import queries

Rows = list[tuple[Any, ...]]
Values = Sequence[Any]

_SETS = (
    ("update_job", "complete_task", "delete_lease", "insert_event_page"),
    ("insert_job", "insert_task", "delete_lease", "insert_lease", "insert_event_page"),
    ("advance_job", "claim_task", "complete_task", "delete_lease", "insert_lease", "insert_event_page"),
    ("insert_blob", "insert_job", "insert_job_tag", "update_job", "advance_job", "insert_task", "insert_edge",
     "update_task", "claim_task", "complete_task", "delete_ready", "insert_ready", "delete_lease", "insert_lease",
     "insert_event_page"),
    ("insert_job", "insert_job_tag", "update_job", "advance_job", "insert_task", "insert_edge", "update_task",
     "insert_ready", "delete_timer", "insert_timer", "insert_gate_key", "insert_event_page"),
    ("insert_job", "insert_job_tag", "update_job", "advance_job", "insert_task", "insert_edge", "update_task",
     "claim_task", "complete_task", "delete_ready", "insert_ready", "delete_lease", "insert_lease", "delete_timer",
     "insert_timer", "insert_step", "hold_budget", "add_usage", "add_tally", "insert_event_page"),
    ("insert_job", "insert_job_tag", "update_job", "advance_job", "insert_task", "insert_edge", "update_task",
     "claim_task", "complete_task", "delete_ready", "insert_ready", "delete_lease", "insert_lease", "delete_timer",
     "insert_timer", "insert_item", "update_item", "insert_approval", "add_usage", "add_tally", "insert_event_page"),
)  # fmt: skip
"""What is usually written together. A statement takes milliseconds to plan the first time, so there are only a few, and
what is not needed of one writes no rows."""


@functools.cache
def _known_set(wanted: frozenset[str]) -> tuple[str, ...] | None:
    return next((names for names in _SETS if wanted <= set(names)), None)


_SINGLES = {
    ("insert_job", "insert_task", "insert_lease", "insert_event_page"),
    ("insert_job", "insert_task", "delete_lease", "insert_lease", "insert_event_page"),
    ("update_job", "complete_task", "insert_event_page"),
    ("advance_job", "claim_task", "complete_task", "delete_lease", "insert_lease", "insert_event_page"),
}
"""What a single task writes: one row each. A driver encodes a value much quicker than an array of one, and the server
has no table to make of the arrays first."""
_UNNEST = re.compile(r"unnest\(([^()]*)\)")
_ARRAY = re.compile(r"(\$\d+)::(\w+)\[\]")


def together(writes: list[tuple[str, Rows]]) -> tuple[str, list[Any]]:
    """The statement that does all of the writes, and its arguments. All rows are of one tenant."""
    tenant = writes[0][1][0][0]
    rows_of = dict(writes)
    names = tuple(rows_of)
    single = names in _SINGLES and all(len(rows) == 1 for _, rows in writes)
    if single:
        args = [arg for name, rows in writes for arg in _values(name, tenant, rows[0])]
    else:
        names = _known_set(frozenset(names)) or names
        args = [arg for name in names for arg in _columns(name, tenant, rows_of.get(name))]
    if set(tables.GUARDED) & set(names):
        args.append(sum(len(rows_of.get(name, ())) for name in tables.GUARDED))
    return _sql(names, single=single), args


def _values(name: str, tenant: str, row: tuple[Any, ...]) -> list[Any]:
    parameters = queries.blocks("postgres")[name].parameters
    return [tenant if p.column is None else row[p.column] for p in parameters]


def _columns(name: str, tenant: str, rows: Rows | None) -> list[Any]:
    columns = list(zip(*rows, strict=True)) if rows else None
    return [
        tenant if p.column is None else written(() if columns is None else columns[p.column])
        for p, written in zip(queries.blocks("postgres")[name].parameters, _writers(name), strict=True)
    ]


@functools.cache
def _writers(name: str) -> list[Callable[[Values], Any]]:
    """How the column of each parameter goes to the driver."""
    block = queries.blocks("postgres")[name]
    kinds = dict(_ARRAY.findall(block.sql))
    return [LITERALS.get(kinds.get(f"${n}", ""), _as_it_is) for n in range(1, len(block.parameters) + 1)]


def _as_it_is(values: Values) -> Values:
    return values


def texts(values: Values) -> str:
    """An array of texts as PostgreSQL writes it."""
    if None in values:
        return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"
    inner = '","'.join(values)
    if "\\" in inner or inner.count('"') > 2 * (len(values) - 1):
        return "{" + ",".join(map(_quoted, values)) + "}"
    return '{"' + inner + '"}' if values else "{}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def numbers(values: Values) -> str:
    """The same of whole numbers, or of what is true or false."""
    return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"


LITERALS: dict[str, Callable[[Values], str]] = {"text": texts, "int8": numbers, "bool": numbers}
"""Arrays that go as one text. Of an array the driver asks each element whether it is a container, which takes as long
as to encode it: a tenth of what 500 jobs take."""


@functools.cache
def _sql(names: tuple[str, ...], *, single: bool) -> str:
    """The parameters of each part are numbered on from those of the part before."""
    blocks = queries.blocks("postgres")
    parts: list[str] = []
    offset = 0
    for name in names:
        parts.append(f"{name} AS ({queries.renumber(blocks[name].sql, offset)})")
        offset += len(blocks[name].parameters)
    guarded = [name for name in tables.GUARDED if name in names]
    last = "SELECT 1"
    if guarded:
        changed = " + ".join(f"(SELECT count(*) FROM {name})" for name in guarded)  # noqa: S608 -- our names
        last = f"SELECT ostinato_expect({changed}, $1)"
    made = f"WITH {', '.join(parts)} {queries.renumber(last, offset)}"
    if single:
        return _UNNEST.sub(lambda columns: f"(VALUES ({columns[1].replace('[]', '')}))", made)
    return _ARRAY.sub(lambda array: array[0].replace("::", "::text::") if array[2] in LITERALS else array[0], made)
