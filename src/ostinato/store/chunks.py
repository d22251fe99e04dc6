"""Writes of many rows in few statements, for SQLite.

Each statement lets go of Python's lock, and waits for it again while functions run in another thread: for up to 0.1 ms,
fifty times as long as it takes to write a row. One that takes many rows waits once for all of them, and SQLite works
while the functions do. That pays for narrow rows: new ones are written in two thirds of the time even if nobody else
runs, and changed ones in the same. What a wide row is to become is written to a table of its own first, which takes a
quarter longer than to change one row after the other.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from typing import Any

ROWS = 32
"""How many rows a statement takes. Twice as many save nothing more, and the rest, which goes one by one, is longer."""
NARROW = 6
"""The columns of a row up to which a change of many rows in one statement takes no longer."""

_PARAMETER = re.compile(r"\?(\d+)")
_VALUES = re.compile(r"(?<=VALUES )\([^()]*\)")

Row = tuple[Any, ...]


def statements(sql: str, rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """What to run, and with which parameters, so that all rows are written."""
    full = len(rows) - len(rows) % ROWS
    if not full or not (sql.startswith("INSERT") or (sql.startswith("UPDATE") and len(rows[0]) <= NARROW)):
        yield sql, rows
        return
    flat = itertools.chain.from_iterable
    yield of_many(sql, ROWS), [tuple(flat(rows[at : at + ROWS])) for at in range(0, full, ROWS)]
    if full < len(rows):
        yield sql, rows[full:]


@functools.cache
def of_many(sql: str, count: int) -> str:
    """A statement that writes `count` rows, with their parameters one row after the other."""
    width = max(int(number) for number in _PARAMETER.findall(sql))
    if sql.startswith("INSERT"):
        return _VALUES.sub(lambda row: _repeated(row[0], width, count), sql)
    given = f"({', '.join(f'?{number + 1}' for number in range(width))})"
    change, where = _PARAMETER.sub(r"given.column\1", sql).split("WHERE")
    return f"{change}FROM (VALUES {_repeated(given, width, count)}) AS given\nWHERE{where}"


def _repeated(row: str, width: int, count: int) -> str:
    return ", ".join(_shifted(row, nth * width) for nth in range(count))


def _shifted(row: str, by: int) -> str:
    return _PARAMETER.sub(lambda parameter: f"?{int(parameter[1]) + by}", row)
