"""`python -m bench.remote`: tasks per second through one server with one worker that has no database.

Three processes as people start them: the server, the worker, and this one, which submits over HTTP and waits.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from bench.databases import BACKENDS, databases

APP = """
from ostinato import Ostinato
app = Ostinato()

@app.function
async def nothing():
    pass
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.remote", description=__doc__)
    parser.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    parser.add_argument("--tasks", type=int, default=20_000, help="in the wide job")
    parser.add_argument("--links", type=int, default=200, help="of the chain")
    parser.add_argument("--requests-per-second", type=float, default=10_000, help="what the server lets a key do")
    parser.add_argument("--scratch", type=Path, default=Path(), help="a folder on a real disk for SQLite files")
    options = parser.parse_args()
    for backend in BACKENDS if options.backend == "both" else (options.backend,):
        with databases(backend, options.scratch) as fresh, fresh() as url, _running(url, options) as client:
            wide = _time(client, [_task(number) for number in range(options.tasks)])
            chain = _time(client, [_task(number, [number - 1] if number else []) for number in range(options.links)])
        result = {"tasksPerSecond": round(options.tasks / wide), "linkMs": round(chain / options.links * 1000, 2)}
        print(json.dumps({"scenario": "remote", "backend": backend, "tasks": options.tasks} | result), flush=True)


def _task(number: int, after: list[int] | None = None) -> dict[str, Any]:
    return {"taskId": f"t{number}", "name": "nothing", "dependsOn": [f"t{up}" for up in after or []]}


def _time(client: httpx2.Client, tasks: list[dict[str, Any]]) -> float:
    """From handing in a job to its end, on the clock of the database."""
    job_id = client.post("/v1/jobs", json={"tasks": tasks}).raise_for_status().json()["jobId"]
    while True:
        job = client.get(f"/v1/jobs/{job_id}", params={"tasksLimit": 0}).raise_for_status().json()
        if job["state"] == "completed":
            return _moment(job["finishedAt"]) - _moment(job["createdAt"])
        time.sleep(0.05)


def _moment(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


@contextlib.contextmanager
def _running(url: str, options: argparse.Namespace) -> Iterator[httpx2.Client]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "app.py").write_text(APP)
        made = _ostinato("keys", "create", "--url", url, "--scopes", "admin", "--json")
        key = json.loads(made.communicate()[0])["key"]
        limits = ["--requests-per-second", str(options.requests_per_second), "--max-body-bytes", str(64 * 1024 * 1024)]
        server = _ostinato("server", "--url", url, "--port", "0", *limits)
        stack.callback(_end, server)
        address = re.search(r"http://\S+:\d+", _line(server))
        if address is None:
            raise SystemExit("bench: the server did not start")
        worker = _ostinato("worker", f"{folder}/app.py:app", "--server", address[0], OSTINATO_KEY=key)
        stack.callback(_end, worker)
        _line(worker)
        headers = {"Authorization": f"Bearer {key}"}
        yield stack.enter_context(httpx2.Client(base_url=address[0], headers=headers, timeout=60))


def _ostinato(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ostinato.cli.main", *arguments]
    return subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)


def _line(process: subprocess.Popen[str]) -> str:
    return "" if process.stdout is None else process.stdout.readline()


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate(timeout=60)


if __name__ == "__main__":
    main()
