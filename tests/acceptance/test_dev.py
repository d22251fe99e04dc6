"""`ostinato dev` and `make run`: a server and a worker that start again when the program changes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
from ostinato import Ostinato
from word import WORD

app = Ostinato("postgresql://nobody@nowhere/never-used")

@app.function
async def speak():
    return WORD
"""
DOCUMENT = {"tasks": [{"taskId": "a", "name": "speak"}]}


@contextlib.contextmanager
def running(folder: Path, *arguments: str, port: str = "0") -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}", "OSTINATO_URL": "postgresql://nobody@nowhere/never"}
    command = [sys.executable, "-m", "ostinato.cli.main", "dev", *arguments, "--port", port]
    with open(folder / "complaints", "w") as complaints:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=complaints
        )
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=30)


def address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    while line := process.stdout.readline():
        if found := re.search(r"ready: (http://\S+:\d+), sqlite:///ostinato.db", line):
            return found[1]
    raise AssertionError("it did not start")


def until(look: Callable[[], Any], seconds: float = 20) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


def spoken(server: str) -> Any:
    job_id = httpx2.post(f"{server}/v1/jobs", json=DOCUMENT).json()["jobId"]
    until(lambda: httpx2.get(f"{server}/v1/jobs/{job_id}").json()["state"] == "completed")
    return httpx2.get(f"{server}/v1/jobs/{job_id}/tasks/a").json()["output"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM)
    (tmp_path / "word.py").write_text("WORD = 'one'")
    return tmp_path


@pytest.mark.parametrize("reference", ["shop.py", "shop:app"])
def test_it_starts_again_when_a_file_changes(program: Path, reference: str) -> None:
    with running(program, reference) as process:
        assert spoken(address(process)) == "one"
        (program / "word.py").write_text("WORD = 'another'")
        assert spoken(address(process)) == "another"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
    assert (program / "ostinato.db").exists()
    assert "word.py has changed" in (program / "complaints").read_text()


def test_a_mistake_waits_for_its_cure(program: Path) -> None:
    with running(program, "shop.py") as process:
        address(process)
        (program / "word.py").write_text("WORD = (")
        until(lambda: "importing 'shop.py' failed" in (program / "complaints").read_text())
        assert process.poll() is None
        (program / "word.py").write_text("WORD = 'cured'")
        assert spoken(address(process)) == "cured"


@pytest.mark.parametrize("reload", ["--reload", "--no-reload"])
def test_b9_a_busy_port_is_the_end(program: Path, reload: str) -> None:
    """B9: it waited for a change of a file, which would not have made the port free."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with running(program, "shop.py", reload, port=port) as process:
            assert process.wait(timeout=20) == 1
    said = (program / "complaints").read_text()
    assert f"cannot listen on 127.0.0.1:{port}" in said
    assert "when a file changes" not in said


def test_b9_told_to_stop_while_it_waits_for_a_cure(program: Path) -> None:
    """B9: being told to stop is no failure, whatever the program ended with."""
    (program / "word.py").write_text("WORD = (")
    with running(program, "shop.py") as process:
        until(lambda: "when a file changes" in (program / "complaints").read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


def test_it_does_not_outlive_whoever_started_it(program: Path) -> None:
    with running(program, "shop.py") as process:
        server = address(process)
        process.kill()

        def gone() -> bool:
            try:
                return httpx2.get(f"{server}/healthz").status_code == 0
            except httpx2.TransportError:
                return True

        until(gone)


def test_make_run_has_something_to_look_at(tmp_path: Path) -> None:
    recipe = re.search(r"^run:.*\n\t\$\(BIN\)/ostinato dev (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    arguments = [str(ROOT / word) if word.startswith("examples/") else word for word in recipe[1].split()]
    with running(tmp_path, *arguments) as process:
        server = address(process)

        def states() -> dict[str, str] | None:
            found = httpx2.get(f"{server}/v1/jobs").json()["jobs"]
            told = {job["name"]: job["state"] for job in reversed(found) if not job["name"].startswith("pipeline:")}
            return told if sorted(told.values()) == [*["completed"] * 6, "failed", *["running"] * 2] else None

        assert until(states) == {
            "store-report": "completed",
            "price-import": "completed",
            "card-payment": "failed",
            "order-approval": "running",
            "shop-closing": "completed",
            "gate:shops-closed": "running",
            "incident-reports": "completed",
            "playbook:incident-ingestion": "completed",
            "article-feed": "completed",
        }

        def waiting() -> bool:
            items = httpx2.get(f"{server}/v1/pipelines/publishing/items", params={"status": "pending_review"})
            return len(items.json()["items"]) == 8

        assert until(waiting), "articles that wait for a review"
        page = httpx2.get(server, follow_redirects=True)
        assert page.url.path == "/ui/"
        assert '<div id="root">' in page.text
        answer = httpx2.post(f"{server}/v1/jobs/demo-approval/signals/approval", json={"payload": True})
        assert answer.json()["heard"] is True, answer.text
        ingest_watch_and_query(server)
    left = {path.name.partition(".db")[0] for path in tmp_path.iterdir()}
    assert left == {"complaints", "ostinato", "thumbnails"}


def ingest_watch_and_query(server: str) -> None:
    """The three lines of the README, as they stand there."""
    lines = re.findall(r"^curl .*$", (ROOT / "README.md").read_text(), re.M)
    ingest, watch, query = [line.replace("localhost:8080", server) for line in lines]
    begun = json.loads(subprocess.check_output(["bash", "-c", ingest], text=True))
    told: list[str] = []
    with subprocess.Popen(["bash", "-c", f"exec {watch}"], stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        while not told or told[-1] not in ("complete", "error"):
            line = watching.stdout.readline()
            assert line, "the stream has ended"
            if line.startswith("data: ") and (event := json.loads(line[6:]))["jobId"] == begun["job_id"]:
                told.append(event["properties"]["status"])
        watching.terminate()
    assert told[0] == "loading_agents"
    assert told.index("agent_complete_category") < told.index("invoking_severity")
    assert told[-3:] == ["validating", "synthesizing", "complete"]
    asked = f"{server}/v1/jobs/{json.loads(subprocess.check_output(['bash', '-c', query], text=True))['job_id']}"
    until(lambda: httpx2.get(asked).json()["state"] == "completed")
    answer = httpx2.get(f"{asked}/tasks/$synthesize").json()["output"]
    saved = httpx2.get(f"{server}/v1/jobs/{begun['job_id']}/tasks/$save").json()["output"]
    assert saved["incident_id"] in answer["evidence"]["count"]
    assert answer["synthesized"]["count"]["count"] == len(answer["evidence"]["count"])
