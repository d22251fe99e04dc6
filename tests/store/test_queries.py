"""SQL is named blocks: both dialects know the same ones, and every one of them is understood by its database."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import apsw
import asyncpg
import pytest

from ostinato.store import connect, migrate, queries, vectors

ONLY_POSTGRES = {"load_at_once", "lock_stripes"}
SQL = Path(queries.__file__).parent / "sql"


def test_both_dialects_know_the_same_blocks() -> None:
    sqlite, postgres = queries.blocks("sqlite"), queries.blocks("postgres")
    assert set(postgres) - set(sqlite) == ONLY_POSTGRES
    assert set(sqlite) <= set(postgres)


def test_a_dialect_says_why_it_differs() -> None:
    for folder in ("sqlite", "postgres"):
        for file in (SQL / folder).glob("*.sql"):
            assert "-- Differs: " in file.read_text(), file.name


def test_every_block_says_what_it_is_for() -> None:
    for file in SQL.glob("*/*.sql"):
        for name, body in queries.parse(file.read_text()).items():
            assert body.startswith("-- "), f"{name} in {file.name} has no line of purpose"


def test_migrations_have_the_same_numbers_and_names() -> None:
    sqlite, postgres = migrate.migrations("sqlite"), migrate.migrations("postgres")
    assert [(m.number, m.name) for m in sqlite] == [(m.number, m.name) for m in postgres]
    assert [m.number for m in sqlite] == list(range(1, len(sqlite) + 1))


async def test_every_sqlite_block_prepares(sqlite_url: str) -> None:
    database = connect.connect(sqlite_url)
    await database.open(migrate=True)
    await database.close()
    connection = apsw.Connection(sqlite_url.removeprefix("sqlite:///"))
    vectors.equip(connection)
    for block in queries.blocks("sqlite").values():
        highest = max((int(number) for number in re.findall(r"\?(\d+)", block.sql)), default=0)
        connection.execute("EXPLAIN " + block.sql, [None] * highest).fetchall()
    connection.close()


async def test_every_postgres_block_prepares(postgres_url: str) -> None:
    database = connect.connect(postgres_url)
    await database.open(migrate=True)
    await database.close()
    connection = await asyncpg.connect(postgres_url)
    for block in queries.blocks("postgres").values():
        await connection.prepare(block.sql)
    await connection.close()


async def test_the_schema_has_the_same_tables_and_columns(empty_sqlite_url: str, empty_postgres_url: str) -> None:
    for url in (empty_sqlite_url, empty_postgres_url):
        database = connect.connect(url)
        await database.open(migrate=True)
        await database.close()
    lite = apsw.Connection(empty_sqlite_url.removeprefix("sqlite:///"))
    tables = [row[1] for row in lite.execute("PRAGMA table_list") if row[2] == "table" and "sqlite_" not in row[1]]
    mine = {t: [row[1] for row in lite.execute(f"PRAGMA table_info({t})")] for t in tables}
    lite.close()
    pg = await asyncpg.connect(empty_postgres_url)
    found = await pg.fetch(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        " AND table_name <> 'ostinato_schema' ORDER BY table_name, ordinal_position"
    )
    await pg.close()
    theirs: dict[str, list[str]] = {}
    for table, column in found:
        theirs.setdefault(table, []).append(column)
    del theirs["result_words"]  # the index of words, for which SQLite has a virtual table
    theirs["event_page"].remove("transaction")  # the order of commits, which SQLite has in `position`
    assert mine == theirs


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_schema_from_the_future_is_refused(dialect: str) -> None:
    from ostinato import errors

    newest = migrate.migrations(dialect)[-1].number
    with pytest.raises(errors.SchemaTooNew, match="upgrade"):
        migrate.pending(dialect, newest + 1, migrate=True)
    with pytest.raises(errors.SchemaMissing, match="migrat"):
        migrate.pending(dialect, 0, migrate=False)


async def test_two_processes_may_migrate_at_once(empty_url: str) -> None:
    databases = [connect.connect(empty_url) for _ in range(4)]
    await asyncio.gather(*[database.open(migrate=True) for database in databases])
    for database in databases:
        assert (await database.settings())["schema"] == migrate.migrations(database.dialect)[-1].number
        await database.close()
