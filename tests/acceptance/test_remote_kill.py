"""Workers without a database, and their server, killed again and again under load: nothing is lost, nothing recorded
twice, and a step that was recorded never runs again.
"""

from __future__ import annotations

import asyncio
import collections
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx2

from ostinato import EngineOptions, Job, Ostinato, audit
from tests.acceptance import killable

KILLS = int(os.environ.get("OSTINATO_REMOTE_KILLS", "8"))
JOBS = int(os.environ.get("OSTINATO_REMOTE_KILL_JOBS", "120"))
ROOT = Path(__file__).parents[2]
APP = """
from tests.acceptance import killable
app = killable.build("sqlite:////nowhere/none.db", {effects!r})
"""


def spawn_server(url: str, port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.acceptance.servable", url, str(port)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


def spawn_worker(app: Path, port: int, key: Path) -> subprocess.Popen[bytes]:
    """As people start it."""
    place = ["--server", f"http://127.0.0.1:{port}", "--key-file", str(key)]
    command = [sys.executable, "-m", "ostinato.cli.main", "worker", f"{app}:app", *place]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


async def ready(worker: subprocess.Popen[bytes]) -> None:
    """Its first word is that it has started. One that is told to stop before that says so by its exit code."""
    assert worker.stdout is not None
    assert (await asyncio.to_thread(worker.stdout.readline)).startswith(b"ready")


async def serving(port: int) -> None:
    async with asyncio.timeout(20), httpx2.AsyncClient() as client:
        while True:
            try:
                if (await client.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200:
                    return
            except httpx2.HTTPError:
                await asyncio.sleep(0.05)


async def test_killed_servers_and_workers_lose_nothing(url: str, tmp_path: Path, new_port: Callable[[], int]) -> None:
    effects, key_file, port = tmp_path / "effects", tmp_path / "key", new_port()
    effects.touch()
    (tmp_path / "shop.py").write_text(APP.format(effects=str(effects)))
    draw = random.Random(7)
    options = EngineOptions(work=False, maintain=False, poll_seconds=0.1, check_functions=False)
    async with Ostinato(url, options=options) as watcher:
        key_file.write_text((await watcher.engine.store.create_key("default", "workers", ["tasks:work"])).text)
        server = spawn_server(url, port)
        workers = [spawn_worker(tmp_path / "shop.py", port, key_file) for _ in range(2)]
        try:
            await serving(port)
            jobs = []
            for kill in range(KILLS):
                share = range(kill * JOBS // KILLS, (kill + 1) * JOBS // KILLS)
                jobs += await watcher.submit_many([killable.job(number) for number in share])
                await asyncio.sleep(0.1 + draw.random() * 0.4)
                if kill % 2:
                    server.send_signal(signal.SIGKILL)
                    server.wait()
                    server = spawn_server(url, port)
                    await serving(port)
                else:
                    victim = draw.randrange(len(workers))
                    end(workers[victim])
                    workers[victim] = spawn_worker(tmp_path / "shop.py", port, key_file)
                report = await audit.audit(watcher.engine.store)
                assert not report.problems, f"after kill {kill + 1}: {report.problems[:5]}"
            results = await asyncio.gather(*[job.result(timeout=60) for job in jobs])
            for worker in workers:
                await ready(worker)
                worker.terminate()
            assert [worker.wait(timeout=20) for worker in workers] == [0, 0]
        finally:
            for process in (server, *workers):
                end(process)
        assert len({job.job_id for job in jobs}) == JOBS
        for result in results:
            assert result["j"] == 2 + 3 + 4
            assert result["g.child"] == 1
        report = await audit.audit(watcher.engine.store)
        assert report.jobs == JOBS
        assert not report.problems
        starts = await starts_by_key(watcher, jobs)
    ran = collections.Counter(effects.read_text().splitlines())
    for line, count in ran.items():
        _, key = line.split()
        assert count <= starts[key], f"{key} had {count} effects and was started {starts[key]} times"


async def starts_by_key(app: Ostinato, jobs: list[Job]) -> dict[str, int]:
    """How often each task was started. A worker that lost its server for long hands back what runs; that attempt does
    not count, and yet it may have had its effect."""
    found: collections.Counter[str] = collections.Counter()
    for job in jobs:
        for event in await job.events(most=10_000):
            if event.type == "Task Processing":
                found[f"{job.job_id}:{event.task_id}"] += 1
    return found


STEPPED = """
import asyncio, os
from ostinato import Context, EngineOptions, Ostinato, Retry
app = Ostinato("sqlite:////nowhere/none.db", options=EngineOptions(lease_seconds=1.0, default_retry=Retry(3, 0.01)))

def note(text):
    with open({effects!r}, "a") as file:
        file.write(text + "\\n")

@app.function
async def long(ctx: Context):
    await ctx.step("pay", lambda: note("paid"))
    note(f"entered {{ctx.attempt}}")
    if ctx.attempt == 1:
        await asyncio.sleep(60)
    return ctx.attempt
"""


async def test_a_recorded_step_does_not_run_again_after_a_kill(
    url: str, tmp_path: Path, new_port: Callable[[], int]
) -> None:
    effects, key_file, port = tmp_path / "effects", tmp_path / "key", new_port()
    effects.touch()
    (tmp_path / "shop.py").write_text(STEPPED.format(effects=str(effects)))
    async with Ostinato(url, options=EngineOptions(work=False, maintain=False, check_functions=False)) as watcher:
        key_file.write_text((await watcher.engine.store.create_key("default", "workers", ["tasks:work"])).text)
        processes = [spawn_server(url, port), spawn_worker(tmp_path / "shop.py", port, key_file)]
        try:
            made = await watcher.submit({"tasks": [{"taskId": "a", "name": "long"}]})
            until = time.monotonic() + 20
            while "entered 1" not in effects.read_text():
                assert time.monotonic() < until
                await asyncio.sleep(0.02)
            end(processes[1])
            processes.append(spawn_worker(tmp_path / "shop.py", port, key_file))
            assert await made.result(20) == {"a": 2}
        finally:
            for process in processes:
                end(process)
    assert effects.read_text().split("\n") == ["paid", "entered 1", "entered 2", ""]


def test_the_key_is_not_shown(tmp_path: Path, new_port: Callable[[], int]) -> None:
    """From a file or the environment it reaches neither the list of processes nor what is printed."""
    secret = "ost_0123456789abcdef_" + "s" * 43
    (tmp_path / "key").write_text(secret)
    (tmp_path / "shop.py").write_text("from ostinato import Ostinato\napp = Ostinato()\n@app.function\ndef f(): pass\n")
    place = ["--server", f"http://127.0.0.1:{new_port()}"]
    for arguments, more in ((["--key-file", str(tmp_path / "key")], {}), ([], {"OSTINATO_KEY": secret})):
        command = [sys.executable, "-m", "ostinato.cli.main", "worker", f"{tmp_path}/shop.py:app", *place, *arguments]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | more, stdout=pipe, stderr=pipe, text=True)
        assert process.stderr is not None
        line = process.stderr.readline()  # it cannot reach the server, and tries again
        assert "trying again" in line
        listed = Path(f"/proc/{process.pid}/cmdline").read_text()
        assert "worker" in listed
        process.terminate()
        printed, complained = process.communicate(timeout=20)
        assert "s" * 43 not in listed + line + printed + complained
