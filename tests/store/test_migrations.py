"""A database of before is brought up to date with what is in it."""

from __future__ import annotations

import asyncio
from typing import Any

import apsw
import asyncpg
import pytest

from ostinato.core import filters
from ostinato.store import connect, migrate, postgres, sqlite, store
from ostinato.store.database import Row, Script, fetch
from tests.engine import support

FIRST = """
INSERT INTO job (
    tenant, job_id, name, state, priority, correlation_id, tags, cascades, created_at, last_seq, total, blocked, active,
    completed, failed, tolerated, skipped, cancelled
) VALUES
    ('default', 'old', 'test', 'failed', 0, 'old', CAST('{"team":"a","empty":""}' AS {bytes}), {false}, 5, 1, 1, 0, 0,
        0, 1, 0, 0, 0),
    ('default', 'plain', 'test', 'completed', 0, 'plain', CAST('{}' AS {bytes}), {false}, 6, 1, 1, 0, 0, 1, 0, 0, 0, 0);
INSERT INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, input, state, attempt,
    attempt_base, crashes, open_dependencies, resuming, skipped_by_dependency, error, max_attempts
) VALUES (
    'default', 'old', 'a', 0, 'break', 'default', 0, 'block', {false}, 0, CAST('{}' AS {bytes}), 'failed', 1, 0, 0, 0,
    {false}, {false}, CAST('{"type":"ValueError","message":"no"}' AS {bytes}), 1
);
INSERT INTO dead_letter (tenant, job_id, task_id, name, failed_at) VALUES ('default', 'old', 'a', 'break', 7);
INSERT INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, input, state, attempt,
    attempt_base, crashes, open_dependencies, resuming, skipped_by_dependency, error, max_attempts
)
SELECT tenant, job_id, 'sealed', 1, name, queue, priority, policy, optional, dependencies, input, state, attempt,
    attempt_base, crashes, open_dependencies, resuming, skipped_by_dependency, CAST('not JSON' AS {bytes}), max_attempts
FROM task;
INSERT INTO dead_letter (tenant, job_id, task_id, name, failed_at) VALUES ('default', 'old', 'sealed', 'break', 8);
INSERT INTO job (
    tenant, job_id, name, state, priority, correlation_id, tags, cascades, created_at, last_seq, total, blocked, active,
    completed, failed, tolerated, skipped, cancelled
)
SELECT tenant, 'book', 'playbook:p', state, priority, 'book', tags, cascades, 4, last_seq, total, blocked, active,
    completed, failed, tolerated, skipped, cancelled
FROM job WHERE job_id = 'plain';
INSERT INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, input, state, attempt,
    attempt_base, crashes, open_dependencies, resuming, skipped_by_dependency, error, max_attempts
)
SELECT tenant, 'book', CASE position WHEN 0 THEN 'agent' ELSE '$save' END, position, name, queue, priority, policy,
    position = 0, dependencies, input, state, attempt, attempt_base, crashes, open_dependencies, resuming,
    skipped_by_dependency, error, max_attempts
FROM task;
INSERT INTO dead_letter (tenant, job_id, task_id, name, failed_at) VALUES
    ('default', 'book', 'agent', 'break', 9), ('default', 'book', '$save', 'break', 9);
"""


async def build_first(url: str) -> None:
    """The database as the first migration left it, with a job that failed. One of its errors cannot be read."""
    lite = url.startswith("sqlite")
    first = migrate.migrations("sqlite" if lite else "postgres")[0].sql
    fill = FIRST.replace("{bytes}", "BLOB" if lite else "bytea").replace("{false}", "0" if lite else "false")
    connection: Any
    if lite:
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(first + fill)
        connection.execute(f"PRAGMA user_version=1; PRAGMA application_id={sqlite.APPLICATION_ID}")
        connection.close()
        return
    connection = await asyncpg.connect(url)
    await connection.execute(first + fill)
    await connection.execute("CREATE TABLE ostinato_schema (version integer PRIMARY KEY)")
    await connection.execute("INSERT INTO ostinato_schema VALUES (1)")
    await connection.close()


async def test_jobs_and_dead_letters_of_before_are_found_by_what_is_indexed_now(empty_url: str) -> None:
    await build_first(empty_url)
    database = connect.connect(empty_url)
    await database.open(migrate=True)
    try:
        target = store.Store(database)
        for tag, found in (
            (("team", "a"), ["old"]),
            (("empty", ""), ["old"]),
            (("team", None), ["old"]),
            (None, ["plain", "old", "book"]),
        ):
            assert [job.job_id for job in await target.jobs("default", filters.JobFilter(tag=tag))] == found
        letters = await target.dead_letters("default", filters.DeadLetterFilter(error_type="ValueError"))
        assert [letter.task_id for letter in letters] == ["a"]
        kept = await target.dead_letter_keys("default", filters.DeadLetterFilter())
        assert sorted(kept) == [("book", "$save"), ("old", "a"), ("old", "sealed")]
    finally:
        await database.close()


async def test_a_file_of_before_goes_on_from_the_last_place_of_its_feed(empty_sqlite_url: str) -> None:
    """Also where the last pages were pruned: whoever has read them would miss what comes after."""
    await build_first(empty_sqlite_url)
    connection = apsw.Connection(empty_sqlite_url.removeprefix("sqlite:///"))
    page = "INSERT INTO event_page VALUES (?, 'default', 'old', ?, ?, 5, CAST('[]' AS BLOB))"
    connection.executemany(page, [(6, 1, 1), (9, 2, 2)])
    connection.execute("DELETE FROM event_page WHERE position = 9")
    connection.close()
    database = connect.connect(empty_sqlite_url)
    await database.open(migrate=True)
    try:
        assert list(await database.read(lambda: _feed_end())) == [10, 0, 1]
    finally:
        await database.close()


def _feed_end() -> Script[Row]:
    return (yield fetch("feed_end"))[0]


async def test_a_migration_may_take_longer_than_a_statement(
    empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does on large tables, and where another process is at it."""
    monkeypatch.setattr(postgres, "STATEMENT_SECONDS", 0.3)
    other = await asyncpg.connect(empty_postgres_url)
    await other.execute(f"SELECT pg_advisory_lock({postgres.MIGRATION_LOCK})")
    asyncio.get_running_loop().call_later(1.0, other.terminate)
    database = connect.connect(empty_postgres_url)
    await database.open(migrate=True)
    await database.close()


async def test_the_feed_may_take_longer_than_a_statement_to_take_over(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a dump was restored. Here it is held up by a lock, as it would be by many pages."""
    async with support.opened(postgres_url) as app:
        await support.run(app, support.task("a"))
    later = "ALTER TABLE event_page DISABLE TRIGGER USER; UPDATE event_page SET transaction = '9000000000000'"
    other = await asyncpg.connect(postgres_url)
    await other.execute(later)
    await other.execute("ALTER TABLE event_page ENABLE TRIGGER USER; BEGIN; LOCK event_page IN SHARE MODE")
    monkeypatch.setattr(postgres, "STATEMENT_SECONDS", 0.3)
    asyncio.get_running_loop().call_later(1.0, other.terminate)
    database = connect.connect(postgres_url)
    await database.open(migrate=True)
    await database.close()
    assert await support.sql(postgres_url, "SELECT DISTINCT transaction::text FROM event_page") == [("0",)]
