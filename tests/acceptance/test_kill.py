"""Worker processes killed with SIGKILL, again and again, under load: nothing is lost and nothing is recorded twice."""

from __future__ import annotations

import asyncio
import collections
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from ostinato import EngineOptions, Ostinato, audit
from tests.acceptance import killable

KILLS = int(os.environ.get("OSTINATO_KILLS", "15"))
JOBS = int(os.environ.get("OSTINATO_KILL_JOBS", "60"))
ROOT = Path(__file__).parents[2]


def spawn(url: str, effects: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.acceptance.killable", url, str(effects)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


async def test_killed_workers_lose_nothing(url: str, tmp_path: Path) -> None:
    """D2, X10; I1–I12 by the audit, I14 by counting the effects that really happened."""
    effects = tmp_path / "effects"
    effects.touch()
    draw = random.Random(7)
    watcher = Ostinato(
        url, options=EngineOptions(work=False, poll_seconds=0.1, lease_seconds=1.0, check_functions=False)
    )
    async with watcher as app:
        workers = [spawn(url, effects) for _ in range(2)]
        try:
            jobs = []
            for kill in range(KILLS):
                share = range(kill * JOBS // KILLS, (kill + 1) * JOBS // KILLS)
                jobs += await app.submit_many([killable.job(number) for number in share])
                await asyncio.sleep(0.25 + draw.random() * 0.4)
                victim = draw.randrange(len(workers))
                workers[victim].send_signal(signal.SIGKILL)
                workers[victim].wait()
                workers[victim] = spawn(url, effects)
                report = await audit.audit(app.engine.store)
                assert not report.problems, f"after kill {kill + 1}: {report.problems[:5]}"
            results = await asyncio.gather(*[job.result(timeout=60) for job in jobs])
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        assert len({job.job_id for job in jobs}) == JOBS
        for result in results:
            assert result["j"] == 2 + 3 + 4
            assert result["g.child"] == 1
        report = await audit.audit(app.engine.store)
        assert report.jobs == JOBS
        assert not report.problems
        attempts = await attempts_by_key(app, jobs)
    ran = collections.Counter(line for line in effects.read_text().splitlines())
    for line, count in ran.items():
        kind, key = line.split()
        assert count <= attempts[key], f"{key} had {count} effects in {attempts[key]} attempts"
        assert kind in ("run", "step")


async def attempts_by_key(app: Ostinato, jobs: list) -> dict[str, int]:
    found: dict[str, int] = {}
    for job in jobs:
        for task in await job.tasks():
            found[f"{job.job_id}:{task.task_id}"] = task.attempt
    return found
