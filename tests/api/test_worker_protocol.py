"""The document of the worker protocol, line by line, and a worker that was written from it alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2

from tests.api.test_server import ROOT, run, serving

LETTERS = {
    "jobId": "letters",
    "tasks": [{"taskId": "first", "name": "print"}, {"taskId": "second", "name": "print"}],
}


def ended(address: str, key: str, job_id: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {key}"}
    until = time.monotonic() + 20
    while True:
        found = httpx2.get(f"{address}/v1/jobs/{job_id}", headers=headers).json()
        if found["state"] != "running":
            return found
        assert time.monotonic() < until, found
        time.sleep(0.02)


def test_every_curl_line_runs(url: str, tmp_path: Path) -> None:
    lines = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/reference/worker-protocol.md").read_text(), re.DOTALL)
    assert len(lines) == 7
    key = run(url, "keys", "create", "--scopes", "jobs:read,jobs:write,tasks:work").split()[0]
    headers = {"Authorization": f"Bearer {key}"}
    environment = os.environ | {"KEY": key, "LEASES": str(tmp_path / "leases"), "TOKEN": ""}
    with serving(url) as (_, address):
        answers: list[Any] = []
        for number, line in enumerate(lines):
            script = line.replace("curl -sS", "curl -sS --fail-with-body")
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", script],
                env=environment | {"SERVER": address},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
            answers.append(json.loads(done.stdout))
            if number == 0:
                assert httpx2.post(f"{address}/v1/jobs", json=LETTERS, headers=headers).status_code == 201
            if number == 1:
                assert [lease["taskId"] for lease in answers[1]["leases"]] == ["first", "second"]
                environment["TOKEN"] = answers[1]["leases"][0]["token"]
        assert answers[2] == {"lost": []}
        assert answers[4]["recorded"]
        assert [outcome["recorded"] for outcome in answers[5]["outcomes"]] == [True]
        assert answers[6] == {"forgotten": True}
        first = httpx2.get(f"{address}/v1/jobs/letters/tasks/first", headers=headers).json()
        assert first["output"] == {"printed": True}
        assert first["steps"][0]["key"] == "typeset"


def test_a_worker_without_ostinato(url: str) -> None:
    key = run(url, "keys", "create", "--scopes", "jobs:read,jobs:write,tasks:work").split()[0]
    commands = ["shout=tr a-z A-Z", "sum=python3 -c 'import json; print(sum(json.load(open(0))[\"of\"]))'", "no=exit 3"]
    with serving(url) as (_, address):
        environment = {"PATH": os.environ["PATH"], "SERVER": address, "KEY": key}
        # In isolated mode it cannot import anything of ours.
        command = [sys.executable, "-I", str(ROOT / "examples/shell_worker/worker.py"), *commands]
        worker = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert worker.stdout is not None
            assert worker.stdout.readline().startswith("ready")
            tasks = [
                {"taskId": "shout", "name": "shout", "input": {"text": "hello"}},
                {"taskId": "sum", "name": "sum", "input": {"of": [1, 2, 3]}, "dependsOn": ["shout"]},
                {"taskId": "no", "name": "no", "optional": True, "retry": {"maxAttempts": 2, "baseDelay": 0.05}},
            ]
            headers = {"Authorization": f"Bearer {key}"}
            made = httpx2.post(f"{address}/v1/jobs", json={"tasks": tasks}, headers=headers).json()
            assert ended(address, key, made["jobId"])["state"] == "completed"
            place = f"{address}/v1/jobs/{made['jobId']}/tasks"
            assert httpx2.get(f"{place}/shout", headers=headers).json()["output"] == {"TEXT": "HELLO"}
            assert httpx2.get(f"{place}/sum", headers=headers).json()["output"] == 6
            refused = httpx2.get(f"{place}/no", headers=headers).json()
            assert [attempt["error"]["message"] for attempt in refused["attempts"]] == ["exit 3", "exit 3"]
        finally:
            worker.kill()
            worker.communicate()
