"""Many rows in few statements: the same rows as one by one."""

from __future__ import annotations

import re

import apsw
import pytest

from ostinato.store import chunks, queries

INSERTS = sorted(name for name, block in queries.blocks("sqlite").items() if block.sql.startswith("INSERT"))
WRITES = [name for name in INSERTS if not queries.blocks("sqlite")[name].parameters]
"""Those that take rows: their parameters have numbers instead of names."""


@pytest.fixture
def db(sqlite_url: str) -> apsw.Connection:
    return apsw.Connection(sqlite_url.removeprefix("sqlite:///"))


@pytest.mark.parametrize("name", WRITES)
def test_the_database_understands_every_insert_of_many_rows(db: apsw.Connection, name: str) -> None:
    sql = queries.blocks("sqlite")[name].sql
    width = len(set(re.findall(r"\?\d+", sql)))
    many = chunks.of_many(sql, chunks.ROWS)
    assert len(set(re.findall(r"\?\d+", many))) == width * chunks.ROWS
    db.execute(f"EXPLAIN {many}", [None] * width * chunks.ROWS).fetchall()


@pytest.mark.parametrize("count", [0, 1, chunks.ROWS - 1, chunks.ROWS, chunks.ROWS + 1, 3 * chunks.ROWS + 5])
def test_all_rows_are_written_once(db: apsw.Connection, count: int) -> None:
    rows = [("default", "job", f"up-{n}", f"down-{n}") for n in range(count)]
    for sql, bound in chunks.statements(queries.blocks("sqlite")["insert_edge"].sql, rows):
        db.executemany(sql, bound).fetchall()
    assert sorted(db.execute("SELECT tenant, job_id, up, down FROM edge").fetchall()) == sorted(rows)


def test_what_is_no_insert_stays_as_it_is() -> None:
    sql = queries.blocks("sqlite")["complete_task"].sql
    rows = [("default", "job", f"t{n}", b"{}", n) for n in range(5 * chunks.ROWS)]
    assert list(chunks.statements(sql, rows)) == [(sql, rows)]
