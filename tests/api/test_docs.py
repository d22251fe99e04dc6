"""The lines with `curl` in the documents do what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.api.test_server import ROOT, run, serving, start

APP = """
from ostinato import Ostinato
app = Ostinato()

@app.function
async def charge(amount=0):
    return amount

@app.function
async def ship():
    return "shipped"

@app.step("send")
async def send(item):
    return {"sent": item["to"]}

@app.agent("find-place")
async def find_place(raw_data):
    return {"place": raw_data["text"]}

@app.agent("find-district")
async def find_district(parent_output):
    return {"district": parent_output["place"]["place"]}
"""


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("http", 8),
        ("graphql", 10),
        ("streams", 4),
        ("executions", 5),
        ("results", 3),
        ("gates", 10),
        ("approvals", 5),
        ("rules", 4),
        ("playbooks", 8),
        ("pipelines", 9),
        ("usage", 4),
        ("retention", 2),
    ],
)
def test_every_curl_line_runs(url: str, tmp_path: Path, name: str, least: int) -> None:
    lines = re.findall(r"```sh\n(.*?)```", (ROOT / f"docs/reference/{name}.md").read_text(), re.DOTALL)
    assert len(lines) >= least
    (tmp_path / "shop.py").write_text(APP)
    more = ",admin" if name in ("usage", "retention") else ""
    scopes = f"jobs:read,jobs:write,config:write,approvals:decide{more}"
    key = run(url, "keys", "create", "--scopes", scopes).split()[0]
    with serving(url) as (_, address):
        worker = start(url, "worker", f"{tmp_path}/shop.py:app")
        try:
            assert worker.stdout is not None
            assert worker.stdout.readline().startswith("ready")
            for line in lines:
                environment = os.environ | {"SERVER": address, "KEY": key}
                script = line.replace("curl -sS", "curl -sS --fail-with-body")
                done = subprocess.run(
                    ["bash", "-c", script], env=environment, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
                assert "errors" not in json.loads(done.stdout), done.stdout
        finally:
            worker.terminate()
            worker.communicate(timeout=30)
