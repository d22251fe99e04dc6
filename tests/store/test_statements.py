"""What is written together is known by its order: a set of writes in another order would never be met."""

from __future__ import annotations

import string

import asyncpg
import pytest

from devtools import postgres as pg
from ostinato.core import ledger
from ostinato.store import connect, statements, writes

SELDOM = ledger.Ledger("default", 0)
SELDOM.withdrawn.add(("job", "task"))
ORDER = [name for name, _ in writes.of_ledger("default", SELDOM)]


def test_every_write_has_one_place() -> None:
    assert len(set(ORDER)) == len(ORDER)


@pytest.mark.parametrize("names", sorted(statements._SINGLES))  # pyright: ignore[reportPrivateUsage]
def test_what_a_single_task_writes_is_named_in_that_order(names: tuple[str, ...]) -> None:
    assert [name for name in ORDER if name in names] == list(names)


def test_a_transaction_that_does_little_is_not_asked_for_more() -> None:
    little = [name for name, _ in writes.of_ledger("default", ledger.Ledger("default", 0))]
    assert "insert_timer" not in little
    assert little == [name for name in ORDER if name in little]


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("",),
        ("a",),
        ("task-A", "01987c3e-7a52-7c3e-8a52-7a52c3e8a527"),
        ("NULL", "null", None, ""),
        ('"', '""', '","', '",', "}{", "{}", ",", " ", " a ", "'"),
        ("\\", '\\"', "\\\\", "a\\"),
        ("\n\t\r", "ünï", "漢字", "🎼"),
        tuple(string.printable),
    ],
)
async def test_texts_arrive_as_they_were(postgres: pg.PostgresServer, values: tuple[str | None, ...]) -> None:
    connection = await asyncpg.connect(postgres.url())
    try:
        assert await connection.fetchval("SELECT $1::text::text[]", statements.texts(values)) == list(values)
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("kind", "values"),
    [("int8", (0, -1, 2**63 - 1, -(2**63), None)), ("int8", ()), ("bool", (True, False, None))],
)
async def test_numbers_arrive_as_they_were(
    postgres: pg.PostgresServer, kind: str, values: tuple[int | None, ...]
) -> None:
    connection = await asyncpg.connect(postgres.url())
    try:
        assert await connection.fetchval(f"SELECT $1::text::{kind}[]", statements.numbers(values)) == list(values)
    finally:
        await connection.close()


async def test_what_the_server_reads_anew_for_each_statement_is_short(postgres_url: str) -> None:
    """Checks and conditions of triggers are parsed from this text whenever a statement writes to their table."""
    database = connect.connect(postgres_url)
    await database.open(migrate=True)
    await database.close()
    connection = await asyncpg.connect(postgres_url)
    try:
        read = await connection.fetch(
            """
            SELECT conrelid::regclass::text, length(conbin::text) FROM pg_constraint WHERE contype = 'c'
            UNION ALL SELECT tgrelid::regclass::text, length(tgqual::text) FROM pg_trigger WHERE tgqual IS NOT NULL
            """
        )
    finally:
        await connection.close()
    for table in ("job", "task"):
        assert sum(length for name, length in read if name == table) < 8_000, read
    assert sum(length for name, length in read if name in ("lease", "ready", "edge", "step")) < 1_000, read


@pytest.mark.parametrize("names", sorted(statements._SINGLES))  # pyright: ignore[reportPrivateUsage]
def test_a_single_task_is_written_without_arrays(names: tuple[str, ...]) -> None:
    sql = statements._sql(names, single=True)  # pyright: ignore[reportPrivateUsage]
    assert "unnest" not in sql
    assert "[]" not in sql
