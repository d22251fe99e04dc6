"""A backup that is restored elsewhere has everything, and goes on telling."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import asyncpg
import pytest

from devtools import postgres as pg
from ostinato import Ostinato, audit, errors
from tests.engine import support
from tests.engine.support import job, task

ROLE = b"CREATE ROLE ostinato_api NOLOGIN;\n"
"""Roles belong to a server, and are in no dump of a database."""
TRANSACTIONS = 2_000
"""So many more than a new server has seen."""


@contextlib.contextmanager
def places(kind: str, folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """A new database, and how to restore a backup of it: where the copy is."""
    if kind == "sqlite":

        def copied() -> str:
            connection = apsw.Connection(str(folder / "here.db"))
            connection.execute("VACUUM INTO ?", (str(folder / "there.db"),))
            connection.close()
            return f"sqlite:///{folder}/there.db"

        yield f"sqlite:///{folder}/here.db", copied
        return
    with pg.PostgresServer(fsync=False) as old, pg.PostgresServer(fsync=False) as new:
        url, copy = old.create_database(), new.create_database()

        def restore() -> str:
            dump = subprocess.run([pg.program("pg_dump"), url], check=True, stdout=subprocess.PIPE).stdout
            command = [pg.program("psql"), "--quiet", "--set=ON_ERROR_STOP=1", copy]
            subprocess.run(command, check=True, input=ROLE + dump, stdout=subprocess.DEVNULL)
            return copy

        yield url, restore


async def grow_old(url: str) -> None:
    if not url.startswith("sqlite"):
        connection = await asyncpg.connect(url)
        for _ in range(TRANSACTIONS):
            await connection.execute("SELECT pg_current_xact_id()")
        await connection.close()


async def told(app: Ostinato) -> list[tuple[str, str]]:
    return [(item.event.job_id, item.event.type) for item in await app.events(most=1000)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_the_feed_of_a_restored_database_is_whole_and_goes_on(kind: str, tmp_path: Path) -> None:
    with places(kind, tmp_path) as (url, restore):
        await grow_old(url)
        async with support.opened(url) as app:
            for _ in range(3):
                await support.run(app, task("a"))
            before = await told(app)
            copy = restore()
            await support.run(app, task("a"))
            later = (await app.events(most=1000))[-1].cursor
        async with support.opened(copy) as app:
            assert await told(app) == before
            last = (await app.events(most=1000))[-1].cursor
            made = await app.submit(job(task("a")))
            await made.result(support.PATIENCE)
            assert {item.event.job_id for item in await app.events(cursor=last)} == {made.job_id}
            assert (await told(app))[: len(before)] == before
            assert len(await told(app)) > len(before)
            assert not (await audit.audit(app.engine.store)).problems
        async with support.opened(copy) as app:
            assert len(await told(app)) > len(before)
            with pytest.raises(errors.InvalidInput, match="cursor is of another database"):
                await app.events(cursor="9" + later)
