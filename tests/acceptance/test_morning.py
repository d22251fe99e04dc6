"""An ordinary morning: the server is deployed, reports come in, and the worker is started last."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.test_server import run, serving, start

WORKER = """
from ostinato import Ostinato

app = Ostinato()

@app.function
async def phase3(ctx):
    return "ran"
"""
GATE = {"members": ["A"], "trigger": [{"job": {"name": "next", "tasks": [{"taskId": "t", "name": "phase3"}]}}]}
RULE = {"pattern": {"source": ["shop"]}, "targets": GATE["trigger"]}


def until(look: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(what)


@pytest.mark.timeout(120)
def test_e9_a_worker_that_comes_last_runs_what_was_triggered_before(url: str, tmp_path: Path) -> None:
    """E9: server, definitions, reports, then the worker; nothing is lost, and everything says what it waits for."""
    (tmp_path / "phases.py").write_text(WORKER)
    with serving(url) as (_, address), httpx2.Client(base_url=address) as client:
        assert client.put("/v1/gates/p2", json=GATE).status_code == 200
        assert client.put("/v1/rules/r", json=RULE).status_code == 200
        assert client.post("/v1/gates/p2/k/arrivals", json={"member": "A"}).status_code == 200
        client.post("/v1/events", json={"source": "shop", "detail-type": "Sold", "detail": {}}).raise_for_status()

        def jobs(state: str) -> list[str]:
            found = client.get("/v1/jobs", params={"name": "next", "state": state}).json()["jobs"]
            return [job["jobId"] for job in found]

        waiting = until(lambda: jobs("running") if len(jobs("running")) == 2 else None, "both are entered")
        why = client.get(f"/v1/jobs/{waiting[0]}/tasks/t/why").json()
        assert (why["code"], why["details"]["function"]) == ("no_worker", "phase3")
        assert "phase3" in run(url, "doctor", code=1 if url.startswith("postgres") else 0)
        metric = 'ostinato_queue_unserved_tasks{function="phase3",queue="default",tenant="default"} 2.0'
        until(lambda: metric in client.get("/metrics").text, "the metric")
        worker = start(url, "worker", f"{tmp_path}/phases.py:app")
        try:
            until(lambda: set(jobs("completed")) == set(waiting), "both have run")
        finally:
            worker.terminate()
            worker.communicate(timeout=30)
        shown = client.get("/v1/gates/p2/k").json()
        assert shown["triggered"][0]["state"] == "completed"
