"""SQLite's log is copied into the file beside what goes on, and begins anew."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from ostinato.store import connect, database, sqlite

PAGE = 4096


@pytest.fixture
async def db(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> database.Database:
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 50)
    return connect.connect(sqlite_url)


async def write(db: database.Database, number: int) -> None:
    def script() -> database.Script[None]:
        yield database.Run([("insert_blob", [("default", "job", b"%d" % number, b"x" * 10 * PAGE)])])

    await db.write(script)


def copied(db: database.Database) -> bool:
    """Whether what was to be copied by the other thread has been."""
    assert isinstance(db, sqlite.SqliteDatabase)
    assert db._copier is not None
    return db._copier.idle


def log_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///") + "-wal")


async def test_the_log_does_not_grow_for_ever(db: database.Database, sqlite_url: str) -> None:
    await db.open(migrate=False)
    try:
        for number in range(200):
            await write(db, number)
            while not copied(db):  # meanwhile others may write as much as they like: here nobody does
                await asyncio.sleep(0.001)
        # 2,200 pages were written, and never more than 50 and what one transaction adds were left to be copied.
        assert log_of(sqlite_url).stat().st_size < 100 * PAGE
    finally:
        await db.close()


async def test_the_log_is_copied_by_another_thread(db: database.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    done = threading.Event()

    def checkpoint(connection: Any) -> None:
        if threading.current_thread().name == "ostinato-checkpoints":
            copied.append(connection.wal_checkpoint()[1])
            done.set()

    monkeypatch.setattr(sqlite, "copy_log", checkpoint)
    await db.open(migrate=False)
    try:
        for number in range(10):
            await write(db, number)
        assert await asyncio.to_thread(done.wait, 10)
        assert copied[0] >= 50
    finally:
        await db.close()


async def test_a_log_that_cannot_be_copied_fails_nobody(db: database.Database, sqlite_url: str) -> None:
    await db.open(migrate=False)
    other = apsw.Connection(sqlite_url.removeprefix("sqlite:///"))
    try:
        await write(db, -1)
        other.execute("BEGIN")
        assert other.execute("SELECT count(*) FROM blob").fetchall() == [(1,)]  # it reads, and keeps the log as it is
        for number in range(30):
            await write(db, number)
        assert log_of(sqlite_url).stat().st_size > 300 * PAGE
        other.execute("ROLLBACK")
        for number in range(30, 60):
            await write(db, number)
        assert other.execute("SELECT count(*) FROM blob").fetchall() == [(61,)]
    finally:
        other.close()
        await db.close()


async def test_what_is_committed_while_the_database_is_closed_is_no_failure(db: database.Database) -> None:
    class Leaving:
        """The thread that copies the log is let go of just after it was seen to be there."""

        @property
        def idle(self) -> bool:
            db._copier = None  # type: ignore[attr-defined]
            return True

        def post(self, _: object) -> None:
            pass

    await db.open(migrate=False)
    assert isinstance(db, sqlite.SqliteDatabase)
    copier, db._copier = db._copier, Leaving()  # type: ignore[assignment]
    try:
        for number in range(10):
            await write(db, number)
    finally:
        db._copier = copier
        await db.close()


async def test_nothing_is_left_in_the_log_when_the_database_is_closed(db: database.Database, sqlite_url: str) -> None:
    await db.open(migrate=False)
    for number in range(30):
        await write(db, number)
    await db.close()
    assert not log_of(sqlite_url).exists()
