"""`ostinato agents`, `graphs`, `playbooks`, `ingest` and `query`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli.support import ROOT, Shell, stop

EXAMPLE = ROOT / "examples" / "incidents"
AGENT: dict[str, Any] = {
    "name": "colour",
    "kind": "function",
    "function": "find-colour",
    "outputSchema": {"type": "object", "properties": {"colour": {"type": "string"}}},
}
REPORT = {"text": "Smoke from a roof in Dyers Lane at 06:40.", "reportedAt": "2026-03-09T06:52"}


def work(shell: Shell) -> subprocess.Popen[str]:
    process = shell.start("worker", str(EXAMPLE / "app.py"), "--url", shell.url, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready: ")
    return process


def test_a_folder_of_definitions_and_what_they_are_for(shell: Shell) -> None:
    tried = shell.json("playbooks", "apply", str(EXAMPLE), "--dry-run")
    assert {kind: len(tried[kind]) for kind in ("agents", "graphs", "playbooks")} == {
        "agents": 9,
        "graphs": 1,
        "playbooks": 2,
    }
    assert shell.json("playbooks", "ls")["playbooks"] == []
    said = shell.run("playbooks", "apply", str(EXAMPLE), "--yes")
    assert said.index("saved: agent category, version 1") < said.index("saved: playbook incident-query, version 1")
    again = shell.json("playbooks", "apply", str(EXAMPLE))
    assert {step["action"] for kind in ("agents", "graphs", "playbooks") for step in again[kind]} == {"unchanged"}
    assert re.search(r"^incident-query +incidents +query +count, where, changes", shell.run("playbooks", "ls"), re.M)
    assert re.search(r"^incident-ingestion +category → severity +1 ", shell.run("graphs", "ls"), re.M)
    assert re.search(r"^severity +function +severity, level +1 ", shell.run("agents", "ls"), re.M)
    assert shell.run("playbooks", "plan", "incident-ingestion") == (
        "level 1: place, time, category, summary\nlevel 2: severity\ncritical path: category → severity\n"
    )
    assert shell.json("playbooks", "plan", "incident-query")["levels"] == [["count", "where", "changes", "related"]]
    assert "incident-query" in shell.run("playbooks", "plan", "incident-querry", code=3)
    worker = work(shell)
    try:
        given = json.dumps(REPORT)
        read = shell.json("ingest", "incidents", "-", "--idempotency-key", "r-1", stdin=given)
        assert (read["playbook"], read["version"], read["state"]) == ("incident-ingestion", 1, "completed")
        assert (read["statuses"][0], read["statuses"][-1]) == ("loading_agents", "complete")
        assert read["answer"]["synthesized"]["category"] == "fire"
        known = shell.run("ingest", "incidents", "-", "--idempotency-key", "r-1", "--detach", stdin=given)
        assert known == f"{read['job_id']}\n"
        answer = json.loads(shell.run("query", "incidents", "How many fires were there?"))
        assert answer["count"] == {"count": 1, "byCategory": {"fire": 1}}
    finally:
        stop(worker)


@pytest.mark.parametrize(
    ("group", "document"),
    [
        ("agents", AGENT),
        ("graphs", {"name": "colour", "edges": [{"from": "a", "to": "b"}]}),
        ("playbooks", {"name": "colour", "domain": "colours", "type": "query", "agents": ["nobody"]}),
    ],
)
def test_definitions_have_versions(shell: Shell, group: str, document: dict[str, Any]) -> None:
    file = shell.write(f"{group}.json", document)
    shell.run(group, "apply", file, "--yes")
    shell.write(file, document | {"description": "Other"})
    assert '+  "description": "Other"' in shell.run(group, "apply", file, "--yes")
    assert json.loads(shell.run(group, "show", "colour"))["description"] == "Other"
    assert shell.json(group, "rollback", "colour", "1") == {"name": "colour", "rolledBackTo": 1, "version": 3}
    assert "description" not in shell.json(group, "show", "colour")["definition"]
    assert shell.json(group, "rm", "colour")["lastVersion"] == 3
    shell.run(group, "show", "colour", code=3)
    versions = shell.json(group, "versions", "colour")["versions"]
    assert [item["version"] for item in versions] == [4, 3, 2, 1]
    assert versions[0]["definition"] is None


def test_what_is_not_started(shell: Shell, tmp_path: Path) -> None:
    assert "no playbook for query in domain 'nowhere'" in shell.run("query", "nowhere", "Anything?", code=3)
    assert "no playbook for ingestion" in shell.run("ingest", "nowhere", "-", code=3, stdin="{}")
    assert "stdin" in shell.run("ingest", "nowhere", "-", code=2, stdin="{")
    file = shell.write("lost.json", {"name": "lost", "domain": "lost", "type": "query", "agents": ["nobody"]})
    shell.run("playbooks", "apply", file, "--yes")
    assert "'nobody'" in shell.run("playbooks", "plan", "lost", code=2)
    worker = work(shell)
    try:
        failed = shell.json("query", "lost", "Anything?", code=1)
        assert (failed["state"], failed["statuses"][-1], failed["answer"]) == ("failed", "error", None)
    finally:
        stop(worker)
