"""The example of the incidents: from the reports to answers, as a program and as the lines of its README."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devtools import programs
from tests.agents import support as models
from tests.playbooks.test_incidents import code as incident_agents

FOLDER = Path(__file__).parents[2] / "examples" / "incidents"
REPORTS: list[dict[str, Any]] = json.loads((FOLDER / "reports.json").read_text())


def environment(url: str) -> dict[str, str]:
    return os.environ | {"OSTINATO_URL": url}


def run(folder: Path, url: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(url),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ostinato(folder: Path, url: str, *arguments: str) -> Any:
    done = programs.run_command([*arguments, "--json"], cwd=folder, env=environment(url))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def answers_of(printed: str) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = []
    place, decoder = printed.index("{"), json.JSONDecoder()
    while place < len(printed):
        found, place = decoder.raw_decode(printed, place)
        documents.append(found)
        place += 1  # the end of the line
    return documents


def labelled(**wanted: str) -> list[dict[str, Any]]:
    return [one for one in REPORTS if wanted.items() <= one["label"].items()]


@contextlib.contextmanager
def developing(folder: Path, url: str) -> Iterator[str]:
    """`ostinato dev` with the example; its address."""
    command = [sys.executable, "-m", "ostinato.cli.main", "dev", str(FOLDER / "app.py"), "--port", "0", "--no-reload"]
    process = subprocess.Popen(
        [*command, "--url", url], cwd=folder, env=environment(url), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        yield next(found[0] for line in lines if (found := re.search(r"http://\S*\d", line)))
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_all_reports_and_three_questions(tmp_path: Path, url: str) -> None:
    out = run(tmp_path, url, str(FOLDER / "main.py"))
    assert out.startswith(f"read: {len(REPORTS)} reports\n")
    how_many, where, changed = answers_of(out)
    fires, floods = labelled(category="fire"), labelled(category="flood")
    assert how_many["synthesized"]["count"] == {"count": len(fires), "byCategory": {"fire": len(fires)}}
    assert {item["place"] for item in where["synthesized"]["where"]["places"]} == {
        one["label"]["place"] for one in floods
    }
    assert changed["synthesized"]["changes"]["since"] == "2026-03-04"
    assert changed["synthesized"]["changes"]["more"] or changed["synthesized"]["changes"]["fewer"]
    for answer in (how_many, where, changed):
        assert (answer["failed"], answer["skipped"]) == ([], [])
    assert how_many["synthesized"]["related"]["related"]
    saved = {item["resultId"]: item for item in ostinato(tmp_path, url, "results", "ls", "--limit", "500")["results"]}
    assert len(saved) == len(REPORTS)
    assert {saved[one]["text"] for one in how_many["evidence"]["count"]} == {one["text"] for one in fires}
    assert {saved[one]["text"] for one in where["evidence"]["where"]} == {one["text"] for one in floods}
    again = answers_of(run(tmp_path, url, str(FOLDER / "main.py")))
    assert [one["synthesized"] for one in again] == [
        how_many["synthesized"],
        where["synthesized"],
        changed["synthesized"],
    ]


async def test_a_language_model_reads_instead_with_one_setting(tmp_path: Path, url: str) -> None:
    """The playbook is the same, and so are the answers: here the model is a server that knows what the functions do."""
    async with models.running() as endpoint:
        endpoint.choose = model
        settings = {"INCIDENTS_MODEL": "test", "INCIDENTS_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": models.KEY}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(FOLDER / "main.py"),
            cwd=tmp_path,
            env=environment(url) | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, complaints = await process.communicate()
        assert process.returncode == 0, complaints.decode()
    how_many, where, _ = answers_of(out.decode())
    assert how_many["synthesized"]["count"]["count"] == len(labelled(category="fire"))
    assert {item["place"] for item in where["synthesized"]["where"]["places"]} == {
        one["label"]["place"] for one in labelled(category="flood")
    }
    assert len(endpoint.requests) == 5 * len(REPORTS)
    assert {request.body["model"] for request in endpoint.requests} == {"test"}
    assert {request.headers["authorization"] for request in endpoint.requests} == {f"Bearer {models.KEY}"}


def model(request: models.Request) -> models.Behaviour:
    said = json.loads(request.body["messages"][1]["content"])
    return models.saying(
        incident_agents.FUNCTIONS[f"incidents.{said['agent_id']}"](said["raw_data"], said["parent_output"])
    )


def test_the_lines_of_the_readme(tmp_path: Path, url: str) -> None:
    lines = re.findall(r"^curl .*$", (FOLDER / "README.md").read_text(), re.M)
    assert len(lines) == 3
    with developing(tmp_path, url) as address:
        ostinato(tmp_path, url, "playbooks", "apply", str(FOLDER), "--yes")
        ingest, watch, query = [line.replace("localhost:8080", address) for line in lines]
        begun = json.loads(subprocess.check_output(["bash", "-c", ingest], text=True))
        assert begun["playbook"] == "incident-ingestion"
        ended(tmp_path, url, begun["job_id"])
        told = subprocess.run(
            ["bash", "-c", f"timeout 2 {watch}"], stdout=subprocess.PIPE, text=True, check=False
        ).stdout
        said = [json.loads(line[6:])["properties"]["status"] for line in told.splitlines() if line.startswith("data: ")]
        assert said[0] == "loading_agents"
        assert said.index("agent_complete_category") < said.index("invoking_severity")
        assert said[-3:] == ["validating", "synthesizing", "complete"]
        asked = json.loads(subprocess.check_output(["bash", "-c", query], text=True))
        ended(tmp_path, url, asked["job_id"])
        answer = ostinato(tmp_path, url, "tasks", "show", asked["job_id"], "$synthesize")["output"]
        assert answer["synthesized"]["count"] == {"count": 1, "byCategory": {"fire": 1}}
        printed = ostinato(tmp_path, url, "query", "incidents", "Where were the fires?")
        assert printed["statuses"][-1] == "complete"
        assert printed["answer"]["synthesized"]["where"]["places"] == [{"place": "Dyers Lane", "count": 1}]


def ended(folder: Path, url: str, job_id: str) -> None:
    for _ in range(100):
        state = ostinato(folder, url, "jobs", "show", job_id)["job"]["state"]
        if state != "running":
            assert state == "completed"
            return
        time.sleep(0.1)
    raise AssertionError("it does not end")
