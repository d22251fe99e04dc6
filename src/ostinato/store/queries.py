"""Loads SQL from named blocks: `-- name: what_it_does`, a line of purpose, then the statement with `:name` parameters.

`sql/common/` holds what both databases understand; `sql/<dialect>/` the rest. `:rows.0` is the first column of a
parameter that holds a set of rows: PostgreSQL takes each column as an array, SQLite the whole set as one JSON text.
`{task t}` stands for all columns of a task, each as `t.column`. Writes of many rows are in no file: they are generated.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import NamedTuple

from ostinato.store import generated

_HEADER = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)(?:\.(\d+))?")
_COLUMNS = re.compile(r"\{(\w+)(?: (\w+))?\}")

_BOTH_WAYS = " Both ways."
"""In the comment of a block that lists newest first: there is a twin that lists oldest first."""
UPWARDS = "_upwards"


class Parameter(NamedTuple):
    name: str
    column: int | None


class Block(NamedTuple):
    """One statement, with its parameters in the order in which the driver numbers them."""

    name: str
    sql: str
    parameters: tuple[Parameter, ...]


@functools.cache
def blocks(dialect: str) -> dict[str, Block]:
    """All blocks of a dialect; its own override the common ones."""
    mark = "$" if dialect == "postgres" else "?"
    found = {name: _number(name, sql, mark) for name, sql in generated.blocks(dialect).items()}
    for folder in ("common", dialect):
        for file in sorted((resources.files("ostinato.store") / "sql" / folder).iterdir(), key=lambda f: f.name):
            if file.name.endswith(".sql"):
                for name, sql in parse(file.read_text()).items():
                    found[name] = _number(name, sql, mark)
                    if _BOTH_WAYS in sql:
                        found[name + UPWARDS] = _number(name + UPWARDS, sql.replace(" DESC", ""), mark)
    return found


def parse(text: str) -> dict[str, str]:
    parts = _HEADER.split(text)
    return {name: _spelt_out(body.strip().rstrip(";")) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _spelt_out(sql: str) -> str:
    return _COLUMNS.sub(lambda columns: generated.selected(columns[1], columns[2] or ""), sql)


def _number(name: str, sql: str, mark: str) -> Block:
    order: dict[Parameter, int] = {}

    def place(match: re.Match[str]) -> str:
        column = match.group(2)
        parameter = Parameter(match.group(1), None if column is None else int(column))
        return f"{mark}{order.setdefault(parameter, len(order) + 1)}"

    body = "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))
    return Block(name, _PARAMETER.sub(place, body), tuple(order))


def renumber(sql: str, offset: int) -> str:
    """The same PostgreSQL statement with its parameters counted from `offset`."""
    return re.sub(r"\$(\d+)", lambda match: f"${int(match.group(1)) + offset}", sql)
