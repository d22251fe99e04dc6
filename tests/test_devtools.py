"""The test PostgreSQL is a real one, keeps its data, and leaves nothing behind; commands are processes."""

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
from devtools import programs
from ostinato import EngineOptions, Ostinato

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def server() -> Iterator[pg.PostgresServer]:
    with pg.PostgresServer() as server:
        yield server


async def tables(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
    finally:
        await connection.close()


async def test_there_is_nothing_in_an_empty_database(empty_url: str) -> None:
    if empty_url.startswith("sqlite:"):
        assert empty_url.startswith("sqlite:////")
        assert not Path(empty_url.removeprefix("sqlite:///")).exists()
    else:
        assert await tables(empty_url) == 0


async def test_a_database_with_the_schema_needs_no_migration_and_has_no_rows(url: str) -> None:
    app = Ostinato(url, options=EngineOptions(work=False, maintain=False))
    await app.start(migrate=False)
    try:
        assert await app.jobs() == []
        assert await app.engine.store.functions("default") == {}
    finally:
        await app.stop()


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


def test_a_command_is_a_process_with_its_own_folder_environment_and_streams(tmp_path: Path) -> None:
    def run(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return programs.run_command(arguments, cwd=tmp_path, env=os.environ | more, stdin=stdin)

    (tmp_path / "odd.py").write_text("import os\nprint(os.getppid(), os.environ['ODD'], flush=True)\n1 / 0\n")
    failed = run("worker", "odd.py", ODD="first")
    assert failed.returncode == 2
    assert failed.stdout.split()[1] == "first"
    assert failed.stdout.split()[0] != str(os.getppid())
    assert failed.stderr.startswith("error: importing 'odd.py' failed: ZeroDivisionError")
    assert run("worker", "odd.py", ODD="second").stdout.split()[1] == "second"
    assert "ODD" not in os.environ
    assert "the job on stdin is not valid JSON" in run("jobs", "submit", "-", stdin="{").stderr
    assert run("--version").stdout.startswith("ostinato ")


def test_a_command_that_does_not_end_is_killed(tmp_path: Path) -> None:
    (tmp_path / "idle.py").write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(subprocess.TimeoutExpired):
        programs.run_command(["worker", "idle.py"], cwd=tmp_path, env=os.environ, timeout=0.5)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:  # also if it is collected while its status is read
        return False
    except FileNotFoundError:  # collected meanwhile; where there is no /proc, trust the signal
        return not Path("/proc").exists()
    # A zombie that nobody has collected yet is dead enough.
    return status.rsplit(")", 1)[1].split()[0] != "Z"
