"""After `kill -9`, another process of the same machine takes over at once: it sees that the dead one is gone."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import time

import pytest

from ostinato import Job, Retry, process
from ostinato.core import commands, rows
from ostinato.engine import maintenance
from tests.engine import support
from tests.engine.support import PATIENCE, job, task


async def killed(url: str) -> None:
    """A process is killed with a task in its hands, and a lease of a minute."""
    program = [sys.executable, "-m", "tests.acceptance.holding", url]
    held = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
    assert held.stdout is not None
    assert await asyncio.wait_for(held.stdout.readline(), 30) == b"a\n"
    held.kill()
    await held.wait()


@pytest.mark.parametrize("there_before", [True, False])
async def test_a_killed_process_is_taken_over_from_at_once(
    url: str, there_before: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether the heir was there before or starts afterwards; and the log says what happened."""
    heir = support.make(url, lease_seconds=8, concurrency=1, default_retry=Retry(max_attempts=3, base_delay=0))
    gate = support.Gate(heir)
    gate.opened.set()
    told = "has ended without a word"
    asks = support.make(url, work=False, maintain=False, check_functions=False)
    if there_before:
        heir.functions.pop("gate")
        await heir.start()
    async with asks:
        made = await asks.submit(job(task("a", "gate", retry={"maxAttempts": 3, "baseDelay": 0})))
        await killed(url)
        killed_at = time.monotonic()
        if not there_before:
            await heir.start()
            assert await made.result(PATIENCE) == {"a": {}}
        else:
            await support.until(lambda: _lost(made))
        assert time.monotonic() - killed_at < 5, "not the lease of a minute"
        assert any(told in record.message for record in caplog.records)
    await heir.stop()


async def _lost(made: Job) -> bool:
    return "Task Lost" in await support.told(made)


async def test_the_living_and_those_elsewhere_are_left_alone(url: str) -> None:
    """A process of another machine, or of another namespace of process ids, is judged by its lease alone."""
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    gone, since = ended.pid, 1
    async with support.opened(url, work=False, maintain=False) as app:
        store, machine = app.engine.store, process.machine()
        own = process.here()
        workers = {
            "gone": (machine, {"pid": gone, "began": since}),
            "living": (machine, own),
            "same id": (machine, own | {"began": own["began"] + 1}),
            "elsewhere": ("another boot", {"pid": gone, "began": since}),
            "unknown": (None, {"pid": gone, "began": since}),
            "says nothing": (machine, {}),
        }
        for name, (place, about) in workers.items():
            await store.register_worker("default", name, 60, about, {}, place)
        await app.engine.reaper.run_once()
        left = {worker["workerId"] for worker in await store.workers("default")}
        assert left & workers.keys() == {"living", "elsewhere", "unknown", "says nothing"}


async def test_a_process_that_nobody_has_asked_after_has_ended_too() -> None:
    """One that was killed stays in the table of processes until its parent asks for it."""
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(60)")
    since = process.began(child.pid)
    assert since is not None
    assert not process.has_ended(child.pid, since)
    os.kill(child.pid, 9)
    async with asyncio.timeout(PATIENCE):
        while not process.has_ended(child.pid, since):
            await asyncio.sleep(0.01)
    await child.wait()
    assert process.has_ended(child.pid, since)


async def test_waiting_for_a_lease_is_told(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of a worker elsewhere nobody can see whether it lives: the log says once how long it is waited for."""
    async with support.opened(url, work=False, maintain=False, check_functions=False, lease_seconds=4) as app:
        store, reaper = app.engine.store, app.engine.reaper
        await store.register_worker("default", "far", 2, {"host": "far", "pid": 7, "leaseSeconds": 4}, {})
        await store.register_worker("default", "idle", 2, {"host": "idle", "pid": 7, "leaseSeconds": 4}, {})
        await store.register_worker("default", "near", 4, {"host": "near", "pid": 7, "leaseSeconds": 4}, {})
        await app.submit(job(task("a")))
        policies = {"echo": rows.FunctionPolicy(1, None)}
        claim = commands.Claim("far", "token", policies, frozenset({"default"}), 1)
        assert (await store.execute("default", [], claim)).leases
        with caplog.at_level(logging.WARNING, "ostinato"):
            for _ in range(3):
                await reaper.run_once()
        told = [record.message for record in caplog.records if record.name == maintenance.log.name]
        assert len(told) == 1
        assert re.fullmatch(
            r"worker far \(process 7 on far\) has not been heard of for [23] s: .* in [12] s, .*", told[0]
        )
