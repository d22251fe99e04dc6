"""Inserts of many rows in few statements, for SQLite.

Each statement lets go of Python's lock, and waits for it again while a function computes in another thread. One that
takes many rows waits once for all of them, and writes a narrow row in two thirds of the time. (An update of many rows
gains nothing: what they are to become is written to a table of its own first.)
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from typing import Any

ROWS = 32
"""How many rows a statement takes. Twice as many save nothing more, and the rest, which goes one by one, is longer."""

_PARAMETER = re.compile(r"\?(\d+)")
_VALUES = re.compile(r"(?<=VALUES )\([^()]*\)")

Row = tuple[Any, ...]


def statements(sql: str, rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """What to run, and with which parameters, so that all rows are written."""
    full = len(rows) - len(rows) % ROWS
    if not full or not sql.startswith("INSERT"):
        yield sql, rows
        return
    flat = itertools.chain.from_iterable
    yield of_many(sql, ROWS), [tuple(flat(rows[at : at + ROWS])) for at in range(0, full, ROWS)]
    if full < len(rows):
        yield sql, rows[full:]


@functools.cache
def of_many(sql: str, count: int) -> str:
    """A statement that inserts `count` rows, with their parameters one row after the other."""
    width = max(int(number) for number in _PARAMETER.findall(sql))
    return _VALUES.sub(lambda row: ", ".join(_shifted(row[0], nth * width) for nth in range(count)), sql)


def _shifted(row: str, by: int) -> str:
    return _PARAMETER.sub(lambda parameter: f"?{int(parameter[1]) + by}", row)
