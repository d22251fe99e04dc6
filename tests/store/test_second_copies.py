"""Python's `sqlite3` is another copy of SQLite in the same process: its closes drop the locks of ours."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ostinato import errors
from ostinato.store import guards
from tests.engine import support

HURT = """
import asyncio, os, signal, sqlite3, sys
from ostinato import Ostinato

async def main() -> None:
    async with Ostinato(f"sqlite:///{sys.argv[1]}") as app:
        @app.function
        async def echo() -> None: ...
        for n in range(6):
            job = await app.submit({"tasks": [{"taskId": "a", "name": "echo"}]})
            await job.result()
            if n == 2:
                LOOK
        print("acknowledged", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
LOOKS = {
    "sqlite3": "db = sqlite3.connect(sys.argv[1]); db.execute('SELECT count(*) FROM job').fetchone(); db.close()",
    "copied": "open(sys.argv[1], 'rb').read()",
    "other process": (
        "import subprocess; open(sys.argv[1]).close(); "
        "subprocess.run([sys.executable, '-c', \"import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
        "db.execute('SELECT 1 FROM job').fetchall(); db.close()\", sys.argv[1]], check=True)"
    ),
}


@pytest.mark.parametrize("look", LOOKS)
def test_no_acknowledged_job_is_lost_when_another_copy_of_sqlite_closes_the_file(sqlite_url: str, look: str) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    done = subprocess.run(
        [sys.executable, "-c", HURT.replace("LOOK", LOOKS[look]), path], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.returncode) == ("acknowledged\n", -signal.SIGKILL), done.stderr
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM job WHERE state = 'completed'").fetchone() == (6,)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def look(path: str) -> None:
    db = sqlite3.connect(path)
    db.execute("SELECT count(*) FROM job").fetchone()
    db.close()


@pytest.mark.parametrize("times", [1, 2])
async def test_a_transaction_whose_lock_was_dropped_is_done_again_and_then_refused(sqlite_url: str, times: int) -> None:
    """Another process could write at the same time, and each would overwrite what the other has committed."""
    path = sqlite_url.removeprefix("sqlite:///")
    async with support.opened(sqlite_url, work=False) as app:
        left = times

        def hurt() -> None:
            nonlocal left
            if left:
                left -= 1
                look(path)

        app.engine.db.before_commit = hurt
        if times == 1:
            await app.submit(support.job(support.task("a")))
        else:
            with pytest.raises(errors.DatabaseUnavailable, match="another copy of SQLite in this process"):
                await app.submit(support.job(support.task("a")))
        assert len(await app.jobs()) == (times == 1)


async def test_what_another_copy_commits_during_a_transaction_is_not_overwritten(sqlite_url: str) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    async with support.opened(sqlite_url, work=False) as app:
        other = sqlite3.connect(path, check_same_thread=False)
        other.execute("SELECT count(*) FROM job").fetchone()
        todo = [1]

        def write() -> None:
            if todo:
                other.execute("CREATE TABLE mine (n)")
                other.execute("INSERT INTO mine VALUES (?)", todo[:1])
                other.commit()
                todo.clear()

        app.engine.db.before_commit = write
        await app.submit(support.job(support.task("a")))
        assert other.execute("SELECT (SELECT n FROM mine), (SELECT count(*) FROM job)").fetchone() == (1, 1)
        other.close()


@pytest.mark.parametrize("what", ["removed", "replaced"])
async def test_nothing_is_acknowledged_once_the_log_is_gone(sqlite_url: str, what: str) -> None:
    log = Path(sqlite_url.removeprefix("sqlite:///") + "-wal")
    async with support.opened(sqlite_url, work=False) as app:
        await app.submit(support.job(support.task("a")))
        content = log.read_bytes()
        log.rename(log.with_suffix(".aside"))
        if what == "replaced":
            log.write_bytes(content)
        for _ in range(2):
            with pytest.raises(errors.DatabaseUnavailable, match=r"the log .* was removed or replaced"):
                await app.submit(support.job(support.task("a")))


async def test_who_closes_a_file_last_leaves_the_file_alone(sqlite_url: str, tmp_path: Path) -> None:
    """Its log is in it then, and no descriptor is left open, whoever looked on in between."""
    path = sqlite_url.removeprefix("sqlite:///")
    before = set(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else set[str]()
    async with support.opened(sqlite_url, work=False) as one:
        async with support.opened(sqlite_url, work=False) as two:
            await two.submit(support.job(support.task("a")))
            look(path)
        assert Path(f"{path}-wal").exists()
        await one.submit(support.job(support.task("a")))
        elsewhere = subprocess.Popen(
            [sys.executable, "-c", "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
             "db.execute('SELECT 1 FROM job').fetchall(); print('open', flush=True); input(); db.close()", path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert elsewhere.stdout is not None
        assert (await asyncio.to_thread(elsewhere.stdout.readline)) == "open\n"
    assert Path(f"{path}-wal").exists()
    await asyncio.to_thread(elsewhere.communicate, "\n")
    assert [found.name for found in tmp_path.iterdir()] == ["test.db"]
    guards.close_unused()
    assert set(os.listdir("/proc/self/fd")) - before <= set() if before else True
    look(path)
