"""A process that is told to stop, or starts, while its database gives no answer."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable

import apsw
import pytest

from devtools.proxy import Proxy
from ostinato import errors
from ostinato.store import sqlite
from tests.engine import support
from tests.engine.support import job, soon, task


@pytest.mark.parametrize("busy", [False, True])
async def test_a_worker_stops_in_time_though_its_database_is_silent(postgres_url: str, busy: bool) -> None:
    """It had 2 seconds; functions that run are given them, and the rest a moment."""
    async with Proxy(postgres_url) as line:
        app = support.make(line.url, shutdown_seconds=2, lease_seconds=2)
        gate = support.Gate(app)
        await app.start()
        if busy:
            await app.submit(job(task("a", "gate")))
            await soon(gate.started.wait())
        line.silent = True
        await asyncio.sleep(0.6)  # a heartbeat is on its way, and whoever looks for work waits
        began = time.monotonic()
        await app.stop()
        assert time.monotonic() - began < (4.5 if busy else 3.5)


async def test_a_start_waits_for_the_database(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """F-4: it begins when the database is there, and the log says what it waits for."""
    line = Proxy(postgres_url)
    with socket.socket() as taken:  # a port that nobody listens on yet
        taken.bind(("127.0.0.1", 0))
        line.port = taken.getsockname()[1]
    app = support.make(line.url, wait_seconds=20)
    with caplog.at_level(logging.WARNING, "ostinato"):
        starting = asyncio.create_task(app.start())
        await support.until(lambda: _told(caplog))
        async with line:
            await soon(starting)
            assert await support.run(app, task("a")) == {"a": {}}
            await app.stop()
    assert len([record for record in caplog.records if "waiting up to 20 s" in record.message]) == 1


async def _told(caplog: pytest.LogCaptureFixture) -> bool:
    return any("waiting up to 20 s for it" in record.message for record in caplog.records)


async def test_a_start_waits_for_the_file(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F-4: another process holds it."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0)
    holder = apsw.Connection(sqlite_url.removeprefix("sqlite:///"))
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("DELETE FROM clock")
    app = support.make(sqlite_url, wait_seconds=20, work=False, maintain=False)
    with pytest.raises(errors.DatabaseAway):
        await support.make(sqlite_url).start()
    starting = asyncio.create_task(app.start())
    await asyncio.sleep(0.2)  # it has tried
    holder.execute("COMMIT")
    holder.close()
    await soon(starting)
    await app.stop()


@pytest.mark.parametrize(
    "place",
    [lambda url: url.replace("test_", "none_", 1), lambda _: "sqlite:////nowhere/x.db", lambda _: "sqlite:////tmp"],
    ids=["no such database", "no such folder", "no file"],
)
async def test_a_start_does_not_wait_for_what_time_does_not_mend(
    postgres_url: str, place: Callable[[str], str]
) -> None:
    """F-4: a wrong URL is told at once."""
    began = time.monotonic()
    with pytest.raises(errors.DatabaseUnavailable):
        await support.make(place(postgres_url), wait_seconds=20).start()
    assert time.monotonic() - began < 5


async def test_a_start_does_not_wait_for_ever() -> None:
    """F-4: the error is that of a start without patience."""
    began = time.monotonic()
    with pytest.raises(errors.DatabaseUnavailable, match="cannot be reached"):
        await support.make("postgresql://nobody@127.0.0.1:1/nothing", wait_seconds=0.5).start()
    assert 0.5 <= time.monotonic() - began < 5
