"""The test PostgreSQL is a real one, keeps its data, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from devtools import postgres as pg

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def server() -> Iterator[pg.PostgresServer]:
    with pg.PostgresServer() as server:
        yield server


async def test_url_fixture_gives_an_empty_database_of_each_kind(url: str) -> None:
    if url.startswith("sqlite:"):
        assert url.startswith("sqlite:////")
        assert not Path(url.removeprefix("sqlite:///")).exists()
        return
    connection = await asyncpg.connect(url)
    try:
        assert await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    finally:
        await connection.close()


async def test_server_is_postgres_18_with_fsync_on(server: pg.PostgresServer) -> None:
    connection = await asyncpg.connect(server.url())
    try:
        assert (await connection.fetchval("SELECT version()")).startswith("PostgreSQL 18")
        assert await connection.fetchval("SHOW fsync") == "on"
        assert await connection.fetchval("SHOW listen_addresses") == ""
    finally:
        await connection.close()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_committed_rows_survive_a_restart(server: pg.PostgresServer, mode: pg.StopMode) -> None:
    url = server.create_database()
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (42)")
    await connection.close()

    server.restart(mode)

    connection = await asyncpg.connect(url)
    assert await connection.fetchval("SELECT n FROM kept") == 42
    await connection.close()


async def test_database_can_be_a_copy_of_a_template(server: pg.PostgresServer) -> None:
    connection = await asyncpg.connect(server.create_database("original"))
    await connection.execute("CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
    await connection.close()

    connection = await asyncpg.connect(server.create_database("copy", template="original"))
    assert await connection.fetchval("SELECT n FROM t") == 1
    await connection.close()


def test_close_removes_everything() -> None:
    with pg.PostgresServer(fsync=False) as server:
        home, pid = server.home, server.pid
        assert _is_alive(pid)
    assert not _is_alive(pid)
    assert not home.exists()


def test_server_goes_down_with_its_killed_owner() -> None:
    code = "from devtools.postgres import *; s = PostgresServer(); s.start(); print(s.home, s.pid, flush=True); input()"
    owner = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    home, pid = owner.stdout.readline().split()

    owner.send_signal(signal.SIGKILL)
    owner.communicate()

    deadline = time.monotonic() + 20
    while Path(home).exists() or _is_alive(int(pid)):
        assert time.monotonic() < deadline, "the server outlived its owner"
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie that nobody has collected yet is dead enough; where there is no /proc, trust the signal.
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"
