"""Many rows in few statements: the same rows as one by one."""

from __future__ import annotations

import re
from typing import Any

import apsw
import pytest

from ostinato.store import chunks, queries

BLOCKS = queries.blocks("sqlite")
MANY = sorted(n for n, block in BLOCKS.items() if block.sql.startswith(("INSERT", "UPDATE")) and not block.parameters)
"""Those that take rows: their parameters have numbers instead of names."""


@pytest.fixture
def db(sqlite_url: str) -> apsw.Connection:
    return apsw.Connection(sqlite_url.removeprefix("sqlite:///"))


@pytest.mark.parametrize("name", MANY)
def test_the_database_understands_every_write_of_many_rows(db: apsw.Connection, name: str) -> None:
    sql = BLOCKS[name].sql
    width = len(set(re.findall(r"\?\d+", sql)))
    many = chunks.of_many(sql, chunks.ROWS)
    assert len(set(re.findall(r"\?\d+", many))) == width * chunks.ROWS
    db.execute(f"EXPLAIN {many}", [None] * width * chunks.ROWS).fetchall()


@pytest.mark.parametrize("count", [0, 1, chunks.ROWS - 1, chunks.ROWS, chunks.ROWS + 1, 3 * chunks.ROWS + 5])
def test_all_rows_are_written_once(db: apsw.Connection, count: int) -> None:
    rows = [("default", "job", f"up-{n}", f"down-{n}") for n in range(count)]
    for sql, bound in chunks.statements(BLOCKS["insert_edge"].sql, rows):
        db.executemany(sql, bound).fetchall()
    assert sorted(db.execute("SELECT tenant, job_id, up, down FROM edge").fetchall()) == sorted(rows)


COUNTS = [1, chunks.ROWS - 1, chunks.ROWS, chunks.ROWS + 1, 3 * chunks.ROWS + 5]


@pytest.mark.parametrize("count", COUNTS)
def test_all_rows_are_changed_and_no_others(db: apsw.Connection, count: int) -> None:
    def signals() -> list[Any]:
        return db.execute(
            "SELECT tenant, job_id, name, signal_id, payload, taken, seq FROM signal ORDER BY job_id"
        ).fetchall()

    kept = [("default", f"job-{n:03}", "go", "other", b"{}", 0, n) for n in range(count)]
    db.executemany(BLOCKS["insert_signal"].sql, [*kept, *[(*row[:3], "s", b"{}", 0, 0) for row in kept]]).fetchall()
    for sql, bound in chunks.statements(BLOCKS["take_signal"].sql, [(*row[:3], "s", n) for n, row in enumerate(kept)]):
        db.executemany(sql, bound).fetchall()
    assert [row for row in signals() if row[3] == "other"] == kept
    assert [row[-2] for row in signals() if row[3] == "s"] == list(range(count))


def test_an_illegal_move_among_many_takes_them_all_back(db: apsw.Connection) -> None:
    about = ("f", "default", 0, "block", 0, 0, None, b"{}")
    running = [
        ("default", "job", f"t{n}", n, *about, "processing", 1, 0, 0, *[None] * 4, "t", 1, None) for n in range(31)
    ]
    blocked = ("default", "job", "t31", 31, *about, "blocked", 0, 1, 0, *[None] * 4, None, 1, None)
    db.executemany(BLOCKS["insert_task"].sql, [*running, blocked]).fetchall()
    rows = [("default", "job", f"t{n}", b"{}", n) for n in range(chunks.ROWS)]
    ((many, bound),) = chunks.statements(BLOCKS["complete_task"].sql, rows)
    with pytest.raises(apsw.ConstraintError, match="not legal"):
        db.executemany(many, bound).fetchall()
    assert db.execute("SELECT count(*) FROM task WHERE state = 'completed'").fetchall() == [(0,)]


@pytest.mark.parametrize("name", ["claim_task", "delete_ready"])
def test_wide_changes_and_deletions_stay_as_they_are(name: str) -> None:
    sql = BLOCKS[name].sql
    rows = [tuple(range(len(set(re.findall(r"\?\d+", sql)))))] * 5 * chunks.ROWS
    assert list(chunks.statements(sql, rows)) == [(sql, rows)]
