"""F-5, F-6: a wall clock that is set while jobs run."""

from __future__ import annotations

import asyncio
import sys
import textwrap
import time
from typing import Any

import pytest

from ostinato import Retry
from ostinato.store import clock, connect
from tests.engine import support
from tests.engine.support import PATIENCE, job, soon, task

HOUR = 3600


class Wall:
    """The clock of this machine, as somebody sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        monkeypatch.setattr(clock, "wall", lambda: int(time.time() * 1e6 + self.ahead * 1e6))


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    return Wall(monkeypatch)


@pytest.mark.parametrize("jump", [HOUR, -HOUR, 10 * 365 * 24 * HOUR])
async def test_what_runs_is_not_taken_from_the_living(url: str, wall: Wall, jump: int) -> None:
    """F-5: the leases of a living worker outlive a jump of the clock, and nothing runs twice."""
    app = support.make(url, lease_seconds=0.6, default_retry=Retry(max_attempts=3, base_delay=0))
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        await soon(gate.started.wait())
        wall.ahead = jump
        await asyncio.sleep(1.5)  # the reaper has looked many times
        gate.opened.set()
        await made.result(PATIENCE)
    assert gate.runs == 1


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_a_sleep_takes_as_long_as_it_should(url: str, wall: Wall, jump: int) -> None:
    """F-6: neither an hour longer nor no time at all."""
    app = support.make(url)

    @app.function
    async def nap(ctx: Any) -> None:
        await ctx.sleep(0.8)

    async with app:
        began = time.monotonic()
        made = await app.submit(job(task("a", "nap")))
        await support.reaches(made, "a", "waiting")
        wall.ahead = jump
        await made.result(PATIENCE)
        assert 0.75 < time.monotonic() - began < 3


OTHER = """
import asyncio, sys, time
from ostinato.store import clock
clock.wall = lambda: int((time.time() + float(sys.argv[2])) * 1e6)
from tests.engine import support

async def main():
    app = support.make(sys.argv[1], lease_seconds=0.6)
    async with app:
        print(app.engine.db.now(), flush=True)
        await asyncio.sleep(1.5)

asyncio.run(main())
"""


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_a_process_that_starts_after_the_jump_goes_by_the_same_clock(url: str, jump: int) -> None:
    """F-5: it takes nothing from the workers that were there before."""
    app = support.make(url, lease_seconds=0.6, default_retry=Retry(max_attempts=3, base_delay=0))
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        await soon(gate.started.wait())
        program = ["-c", textwrap.dedent(OTHER), url, str(jump)]
        process = await asyncio.create_subprocess_exec(sys.executable, *program, stdout=asyncio.subprocess.PIPE)
        told, _ = await process.communicate()
        assert process.returncode == 0
        assert abs(int(told) - app.engine.db.now()) < 30e6
        gate.opened.set()
        await made.result(PATIENCE)
    assert gate.runs == 1


async def test_the_clock_of_a_file_follows_one_that_was_set(sqlite_url: str, wall: Wall) -> None:
    """F-6: slowly, so that durations stay as they are, and until it is there; every process sees the same time."""
    database = connect.connect(sqlite_url)
    await database.open(migrate=False)
    again = connect.connect(sqlite_url)
    await again.open(migrate=False)
    try:
        wall.ahead = 4.0
        before, since = database.now(), time.monotonic()
        for connection in (database, again):
            await connection.changed(1.1)
        passed = (time.monotonic() - since) * 1e6
        assert 0.02 * passed < database.now() - before - passed < 0.06 * passed
        assert database.now() <= again.now() <= database.now()
    finally:
        await database.close()
        await again.close()


def test_a_clock_is_set_right_after_the_machine_was_started_anew(monkeypatch: pytest.MonkeyPatch, wall: Wall) -> None:
    """F-6: the time since the start begins anew then."""
    one = clock.Clock()
    assert abs(one.now() - clock.wall()) < 1e6
    wall.ahead = HOUR
    assert abs(one.now() - clock.wall()) > 3590e6
    line = one.corrected()
    assert line is not None
    assert line.faster == clock.SLEW
    one.line = line
    assert one.corrected() is None
    wall.ahead = -HOUR
    slower = one.corrected()
    assert slower is not None
    assert slower.faster == -clock.SLEW
    wall.ahead = 0
    stopped = one.corrected()
    assert stopped is not None
    assert stopped.faster == 0
    assert abs(clock.Clock().now() - clock.wall()) < 1e6


async def test_a_file_from_another_start_begins_at_the_wall_clock(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, wall: Wall
) -> None:
    for start, jump in (("first", 0), ("second", HOUR), ("second", 2 * HOUR)):
        monkeypatch.setattr(clock, "start", lambda start=start: start)
        wall.ahead = jump
        monkeypatch.setattr(clock, "_clocks", {})
        database = connect.connect(sqlite_url)
        await database.open(migrate=False)
        ahead = (database.now() - time.time() * 1e6) / 1e6
        await database.close()
        assert abs(ahead - min(jump, HOUR)) < 1, "the third finds the clock of the second"


async def test_the_reaper_is_patient_when_the_clock_of_the_server_jumps(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-5: all workers seem dead then, and get the time to be heard of again; whoever is dead is taken from later."""
    app = support.make(url, lease_seconds=1, maintain=False, default_retry=Retry(max_attempts=3, base_delay=0))
    gate = support.Gate(app)
    ahead = 0
    async with app:
        made = await app.submit(job(task("a", "gate")))
        await soon(gate.started.wait())
        reaper, database = app.engine.reaper, app.engine.db
        await reaper.run_once()
        right = database.now
        monkeypatch.setattr(database, "now", lambda: right() + ahead)
        ahead = 3600_000_000
        assert len(await app.engine.store.dead_workers()) == 1
        await reaper.run_once()
        assert await support.standing(made) == {"a": "processing"}
        await app.engine.store.beat(app.tenant, app.engine.worker.worker_id, 1)  # pyright: ignore
        await asyncio.sleep(0.6)
        await reaper.run_once()
        assert await support.standing(made) == {"a": "processing"}
        ahead *= 2  # and nothing is heard of it again
        await reaper.run_once()
        await asyncio.sleep(0.6)
        await reaper.run_once()
        await support.until(lambda: _lost(made))
        gate.opened.set()


async def _lost(made: Any) -> bool:
    return "Task Lost" in await support.told(made)
