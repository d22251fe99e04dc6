"""Faults of the outside world: a database that goes away, and a worker that is paused for longer than its lease."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devtools.postgres import PostgresServer
from ostinato import EngineOptions, Ostinato, Retry, audit
from tests.acceptance import killable
from tests.acceptance.test_kill import spawn


@pytest.mark.timeout(180)
async def test_postgres_restarts_are_survived_without_restarting_anything(tmp_path: Path) -> None:
    """Crash and restart the server again and again under load: what was acknowledged is there, and all jobs end."""
    with PostgresServer(fsync=True) as server:
        app = Ostinato(server.create_database(), options=EngineOptions(poll_seconds=0.1, lease_seconds=5))

        @app.function(retry=Retry(max_attempts=20, base_delay=0.05, multiplier=1))
        async def work(n: int) -> int:
            await asyncio.sleep(0.01)
            return n

        async with app:
            acknowledged: list[str] = []
            for round_ in range(4):
                jobs = [
                    {"tasks": [{"taskId": f"t{i}", "name": "work", "input": {"n": i}} for i in range(20)]}
                    for _ in range(5)
                ]
                acknowledged += [job.job_id for job in await app.submit_many(jobs)]
                await asyncio.sleep(0.05 * round_)
                await asyncio.get_running_loop().run_in_executor(None, server.restart, "immediate")
            for job_id in acknowledged:
                result = await retrying(lambda job_id=job_id: finish(app, job_id))
                assert sorted(result.values()) == list(range(20))
            assert not (await audit.audit(app.engine.store)).problems


@pytest.mark.timeout(120)
async def test_who_follows_something_waits_for_a_server_that_restarts(tmp_path: Path) -> None:
    with PostgresServer(fsync=False) as server, contextlib.ExitStack() as following:
        app = Ostinato(server.create_database(), options=EngineOptions(poll_seconds=0.1, lease_seconds=5))
        restarted = asyncio.Event()

        @app.function(retry=Retry(max_attempts=20, base_delay=0.05, multiplier=1))
        async def wait() -> None:
            await restarted.wait()

        def follow(*arguments: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "ostinato.cli.main", *arguments, "--url", app.url]
            pipe = subprocess.PIPE
            process = following.enter_context(subprocess.Popen(command, cwd=tmp_path, text=True, stdout=pipe))
            following.callback(process.kill)
            return process

        async with app:
            job = await app.submit({"tasks": [{"taskId": "a", "name": "wait"}]})
            watch = follow("jobs", "watch", job.job_id, "--json")
            one = follow("events", job.job_id, "--follow", "--json")
            every = follow("events", "--all", "--follow", "--json", "--cursor", "0.0.0")
            for process in (watch, one, every):
                assert process.stdout is not None
                await asyncio.to_thread(process.stdout.readline)
            tail = app.tail(cursor="")
            assert (await anext(tail)).event.type == "Job Created"
            await asyncio.to_thread(server.restart, "immediate")
            restarted.set()
            async with asyncio.timeout(30):
                while (await anext(tail)).event.type != "Job Completed":
                    pass
                assert '"completed"' in (await asyncio.to_thread(watch.communicate))[0].splitlines()[-1]
                assert "Job Completed" in (await asyncio.to_thread(one.communicate))[0].splitlines()[-1]
                assert (watch.returncode, one.returncode) == (0, 0)
                assert every.stdout is not None
                while "Job Completed" not in await asyncio.to_thread(every.stdout.readline):
                    pass


async def finish(app: Ostinato, job_id: str) -> dict[str, int]:
    return await (await app.job(job_id)).result(timeout=60)


async def retrying(call) -> dict[str, int]:
    from ostinato import errors

    for _ in range(50):
        try:
            return await call()
        except errors.DatabaseUnavailable:
            await asyncio.sleep(0.1)
    raise AssertionError("the database did not come back")


@pytest.mark.timeout(120)
async def test_a_worker_paused_beyond_its_lease_changes_nothing_when_it_wakes(url: str, tmp_path: Path) -> None:
    """Another worker takes over; the zombie's reports are refused and every outcome is recorded once."""
    effects = tmp_path / "effects"
    effects.touch()
    options = EngineOptions(work=False, poll_seconds=0.1, lease_seconds=1.0, check_functions=False)
    async with Ostinato(url, options=options) as app:
        zombie = spawn(url, effects)
        healthy = None
        try:
            jobs = await app.submit_many([killable.job(number) for number in range(30)])
            async with asyncio.timeout(20):
                while "run" not in effects.read_text():
                    await asyncio.sleep(0.02)
            zombie.send_signal(signal.SIGSTOP)
            healthy = spawn(url, effects)
            await asyncio.sleep(2.5)
            zombie.send_signal(signal.SIGCONT)
            results = await asyncio.gather(*[job.result(timeout=60) for job in jobs])
            assert all(result["j"] == 9 for result in results)
            assert not (await audit.audit(app.engine.store)).problems
        finally:
            for worker in (zombie, healthy):
                if worker is not None:
                    worker.kill()
                    worker.wait()
