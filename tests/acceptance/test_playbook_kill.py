"""A server killed with SIGKILL in each stage of a playbook, and by each agent: the same answer, nobody asked twice."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ostinato import EngineOptions, Ostinato, audit
from tests.acceptance import killable_playbook

ROOT = Path(__file__).parents[2]
ANSWER = {"a": "a(x)", "b": "b(x)", "c": "c(xa(x))", "d": "d(xb(x)c(xa(x)))"}
PATIENCE = 40.0
DONE = "Task Completed"


@contextlib.contextmanager
def serving(url: str, calls: Path, victim: str = "-") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server and its address. It is killed at the end, if it has not done so itself."""
    command = [sys.executable, "-m", "tests.acceptance.killable_playbook", url, str(calls), victim]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def read(address: str, path: str) -> Any:
    answer = httpx2.get(f"{address}{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def ended(address: str, job_id: str) -> str:
    until = time.monotonic() + PATIENCE
    while (state := read(address, f"/v1/jobs/{job_id}")["state"]) == "running":
        assert time.monotonic() < until, read(address, f"/v1/jobs/{job_id}/events")
        time.sleep(0.1)
    return state


@pytest.mark.parametrize("victim", [*killable_playbook.STAGES, *killable_playbook.AGENTS])
async def test_a_killed_server_goes_on_where_it_was(url: str, tmp_path: Path, victim: str) -> None:
    calls = tmp_path / "calls"
    with serving(url, calls, victim) as (process, address):
        job_id = httpx2.post(f"{address}/ingest", json={"domain_id": "d", "data": "x"}).json()["job_id"]
        assert process.wait(PATIENCE) == -signal.SIGKILL
    with serving(url, calls) as (_, address):
        assert ended(address, job_id) == "completed"
        answer = read(address, f"/v1/jobs/{job_id}/tasks/$synthesize")["output"]
        assert {name: output["value"] for name, output in answer["synthesized"].items()} == ANSWER
        assert (answer["failed"], answer["skipped"]) == ([], [])
        (saved,) = read(address, "/v1/results")["results"]
        assert read(address, f"/v1/jobs/{job_id}/tasks/$save")["output"]["incident_id"] == saved["resultId"]
        finished = [e["taskId"] for e in read(address, f"/v1/jobs/{job_id}/events")["events"] if e["type"] == DONE]
        assert len(finished) == len(set(finished)) == len(ANSWER) + len(killable_playbook.STAGES)
    asked = calls.read_text().split()
    once = {name: asked.count(name) for name in killable_playbook.AGENTS}
    if victim in killable_playbook.STAGES:
        assert once == dict.fromkeys(killable_playbook.AGENTS, 1)
    else:  # whoever was at work at that instant had not finished, and is asked again
        assert all(1 <= times <= 2 for times in once.values())
        assert once[victim] == 1
    async with Ostinato(url, options=EngineOptions(work=False, check_functions=False)) as app:
        assert not (await audit.audit(app.engine.store)).problems
