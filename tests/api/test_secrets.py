"""A secret that a worker has is nowhere else: not in the database, not in the logs, not in any answer of the server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx2

from tests.api import test_server
from tests.engine.support import job, task
from tests.engine.test_encryption import stored

PLANTED = "pl4nt3d-s3cr3t-0f-th3-w0rk3r"
APP = """
from ostinato import Ostinato, Retry

app = Ostinato()

@app.function("leak", retry=Retry(max_attempts=1))
async def leak(ctx, key):
    ctx.log.error("using %s", key)
    await ctx.step("login", lambda: {"token": key})
    print("printed", len(key))
    raise RuntimeError(f"the key {key} was refused")

@app.function("echo")
async def echo(**given):
    return given
"""


def test_a_planted_secret_is_found_nowhere(url: str, tmp_path: Path) -> None:
    (tmp_path / "leaky.py").write_text(APP)
    environment = os.environ | {
        "OSTINATO_URL": url,
        "OSTINATO_SECRET_API_KEY": PLANTED,
        "PYTHONPATH": f"{test_server.ROOT / 'src'}{os.pathsep}{tmp_path}",
    }
    command = [sys.executable, "-m", "ostinato.cli.main", "worker", "leaky:app"]
    pipe = subprocess.PIPE
    worker = subprocess.Popen(command, env=environment, text=True, stdout=pipe, stderr=pipe)
    try:
        with test_server.serving(url) as (server, address), httpx2.Client(base_url=address, timeout=30) as client:
            said = [submit(client, "leak"), submit(client, "echo")]
            for path in ("jobs", "dead-letters", "workers", "functions", "audit-log"):
                said.append(client.get(f"/v1/{path}").text)
            server.terminate()
            said += server.communicate(timeout=30)
    finally:
        worker.terminate()
        said_by_worker = worker.communicate(timeout=30)
    everything = "".join(said) + "".join(said_by_worker)
    assert "***" in everything
    assert "secret://API_KEY" in everything
    assert PLANTED not in everything
    assert PLANTED.encode() not in asyncio.run(stored(url))


def submit(client: httpx2.Client, name: str) -> str:
    """Run a job that is given the secret, and gather all that can be read of it."""
    until = time.monotonic() + 30
    document = job(task("a", name, input={"key": "secret://API_KEY"}))
    made = client.post("/v1/jobs", json=document)
    while made.status_code == 422 and time.monotonic() < until:  # the worker has not said yet what it can do
        time.sleep(0.1)
        made = client.post("/v1/jobs", json=document)
    job_id = made.json()["jobId"]
    while client.get(f"/v1/jobs/{job_id}").json()["state"] == "running":
        assert time.monotonic() < until
        time.sleep(0.05)
    paths = ("", "/events", "/tasks/a", "/tasks/a/why")
    return json.dumps([client.get(f"/v1/jobs/{job_id}{path}").json() for path in paths])
