"""A shell to use the command line in, and the application and the jobs that are used there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from devtools import programs

ROOT = Path(__file__).parents[3]
SHOP = """
import asyncio
from ostinato import Ostinato, Retry

app = Ostinato("sqlite:///never-used.db")

@app.function("scrape", retry=Retry(max_attempts=2, base_delay=0.05))
async def scrape(ctx, store, fail=0):
    page = await ctx.step("fetch", lambda: {"page": store})
    if ctx.attempt <= fail:
        raise ValueError(f"{store} said \\x1b[31mno[/red]")
    return page

@app.function("approve")
async def approve(ctx):
    return await ctx.wait_for("ok")

@app.function("slow")
async def slow(seconds):
    print("working", flush=True)
    await asyncio.sleep(seconds)
    return seconds

graph = app.graph("from-code")
graph.task(scrape, after=[graph.task(scrape, store="one")], store="two")
document = {"name": "from-dict", "tasks": [{"taskId": "a", "name": "scrape", "input": {"store": "x"}}]}
"""
FINE = {
    "name": "fine",
    "requestId": "req-1",
    "correlationId": "corr-1",
    "tasks": [
        {"taskId": "A", "name": "scrape", "input": {"store": "one"}},
        {"taskId": "B", "name": "scrape", "dependsOn": ["A"], "input": {"store": "two", "fail": 1}},
    ],
}
BROKEN = {
    "name": "broken",
    "tasks": [
        {"taskId": "A", "name": "scrape", "input": {"store": "one"}},
        {"taskId": "bad", "name": "scrape", "input": {"store": "two", "fail": 99}},
        {"taskId": "C", "name": "scrape", "dependsOn": ["A", "bad"], "input": {"store": "three"}},
    ],
}
ASKING = {"name": "asking", "tasks": [{"taskId": "ask", "name": "approve"}]}


class Shell:
    """A folder with an application and a database, and a command line in it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.environment = os.environ | {"OSTINATO_URL": url, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        (folder / "shop.py").write_text(SHOP)

    def write(self, name: str, content: Any) -> str:
        (self.folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return name

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ostinato.cli.main", *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True, **options)

    def run(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        """What it printed: on stdout if all went well, on stderr if a failure was expected and it was silent."""
        done = programs.run_command(arguments, cwd=self.folder, env=self.environment, stdin=stdin)
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert not re.search("^Traceback|bug in Ostinato", done.stderr, re.M)
        assert "\x1b" not in done.stdout + done.stderr
        return done.stdout or done.stderr

    def json(self, *arguments: str, code: int = 0, stdin: str = "") -> Any:
        return json.loads(self.run(*arguments, "--json", code=code, stdin=stdin))

    def submit(self, document: Any) -> str:
        submitted = self.run("jobs", "submit", "-", "--app", "shop:app", "--url", self.url, stdin=json.dumps(document))
        return submitted.strip()

    def fail(self, job_id: str, document: Any) -> str:
        arguments = ["run", "-", "--app", "shop:app", "--url", self.url]
        self.run(*arguments, code=1, stdin=json.dumps(document | {"jobId": job_id}))
        return job_id

    def work(self) -> subprocess.Popen[str]:
        """A worker that is ready."""
        process = self.start("worker", "shop:app", "--url", self.url, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: 3 functions, queue default, concurrency 10")
        return process


def stop(process: subprocess.Popen[str], with_signal: signal.Signals = signal.SIGTERM) -> str:
    process.send_signal(with_signal)
    printed, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return printed


def stop_when(shell: Shell, job_id: str, state: str) -> None:
    """Let a worker run until the job has ended."""
    worker = shell.work()
    try:
        watched = shell.run("jobs", "watch", job_id, "--json", code=0 if state == "completed" else 1)
        assert json.loads(watched.splitlines()[-1])["state"] == state
    finally:
        stop(worker)
