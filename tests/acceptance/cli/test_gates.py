"""`ostinato gates`, `ostinato rules` and `ostinato events post`."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli.support import Shell, stop

NEXT = {"name": "next", "tasks": [{"taskId": "t", "name": "scrape", "input": {"store": "{% key %}"}}]}


@pytest.fixture
def names(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A gate and a rule for one test, in the database that all share."""
    made = re.sub(r"\W+", "-", request.node.name)
    return f"gate-{made}"[:60].strip("-"), f"rule-{made}"[:60].strip("-")


def define(shell: Shell, name: str, *members: str, **fields: Any) -> None:
    document = {"name": name, "members": list(members) or ["alpha", "beta"], "trigger": [{"job": NEXT}]} | fields
    shell.run("gates", "apply", shell.write(f"{name}.json", document), "--yes")


def test_a_gate_from_its_definition_to_what_it_starts(shell: Shell, names: tuple[str, str]) -> None:
    gate = names[0]
    define(shell, gate, "alpha", "beta", "gamma", key="day", aggregate={"n": {"how": "sum"}})
    assert re.search(rf"^{gate} +3 +day +job +1 +\S+.* cli:", shell.run("gates", "ls"), re.M)
    assert shell.run("gates", "keys", gate) == "nobody has reported yet\n"
    first = shell.run("gates", "arrive", gate, "d1", "alpha", "--data", '{"n": 1}', "--correlation-id", "c-1")
    assert first.startswith("arrived: alpha. Completed: 1/3; missing: beta, gamma since ")
    assert shell.run("gates", "arrive", gate, "d1", "alpha").startswith("had reported before: alpha.")
    assert shell.run("gates", "arrive", gate, "d1", "beta", "--status", "error").startswith("reported as failed: beta.")
    assert shell.run("gates", "missing", gate, "d1", code=1) == "beta\ngamma\n"
    shown = shell.run("gates", "show", gate, "d1")
    assert re.search(r"^status +waiting$", shown, re.M)
    assert re.search(r"^arrived +1 of 3$", shown, re.M)
    assert re.search(r"^correlation +c-1$", shown, re.M)
    assert re.search(r"^alpha +arrived +\S+ \S+ \(.*\) +success$", shown, re.M)
    assert re.search(r"^beta +failed +.* error$", shown, re.M)
    assert re.search(r"^gamma +missing +for [\d.]+ ", shown, re.M)
    assert "triggered" not in shown
    shell.run("gates", "arrive", gate, "d1", "beta", "--data", '{"n": 2}')
    answer = shell.json("gates", "arrive", gate, "d1", "gamma", "--data", '{"n": 4}')["answer"]
    assert (answer["outcome"], answer["opened"]) == ("arrived", True)
    assert shell.json("gates", "missing", gate, "d1") == {"gate": gate, "key": "d1", "status": "open", "missing": []}
    job_id = triggered(shell, gate, "d1")
    shown = shell.run("gates", "show", gate, "d1")
    assert re.search(r"^opened by +gamma$", shown, re.M)
    assert re.search(rf"^triggered +job {job_id}$", shown, re.M)
    assert shell.json("tasks", "show", job_id, "t")["input"] == {"store": "d1"}
    assert shell.json("jobs", "show", job_id)["job"]["correlationId"] == "c-1"
    assert re.search(r"^d1 +open +3/3 ", shell.run("gates", "keys", gate), re.M)
    assert [found["key"] for found in shell.json("gates", "show", gate)["keys"]] == ["d1"]


def triggered(shell: Shell, gate: str, key: str) -> str:
    """Let a worker run until the gate has started its job."""
    worker = shell.work()
    try:
        for _ in range(100):
            [target] = shell.json("gates", "show", gate, key)["triggered"]
            if target["state"] == "completed":
                return target["result"]["jobId"]
            time.sleep(0.1)
        raise AssertionError(target)
    finally:
        stop(worker)


def test_e13_a_gate_that_failed_says_why(shell: Shell, names: tuple[str, str]) -> None:
    """E13: `gates show` has the error, and the job to resume."""
    gate = names[0]
    define(shell, gate, "a", aggregate={"x": {"how": "jsonata", "expression": "$error('no luck')"}})
    shell.run("gates", "arrive", gate, "d1", "a")
    worker = shell.work()
    try:
        for _ in range(100):
            shown = shell.run("gates", "show", gate, "d1")
            if re.search(r"^status +failed$", shown, re.M):
                break
            time.sleep(0.1)
    finally:
        stop(worker)
    assert re.search(r"^error +ExpressionFailed: .+", shown, re.M)
    job_id = shell.json("gates", "show", gate, "d1")["jobId"]
    assert re.search(rf"^job +{job_id}$", shown, re.M)
    assert f"{job_id} " in shell.run("dead-letters", "ls")


def test_a_gate_opened_and_reset_by_hand(shell: Shell, names: tuple[str, str]) -> None:
    gate = names[0]
    define(shell, gate, trigger=[])
    shell.run("gates", "arrive", gate, "d1", "alpha")
    assert "Missing option '--reason'" in shell.run("gates", "open", gate, "d1", "--yes", code=2)
    asked = shell.json("gates", "open", gate, "d1", "--reason", "enough", code=2)["error"]["message"]
    assert "missing: beta" in asked
    assert asked.endswith("Confirm with --yes")
    opened = shell.run("gates", "open", gate, "d1", "--reason", "enough", "--yes")
    assert opened == f"opened: gate {gate} for d1, without beta\n"
    late = shell.run("gates", "arrive", gate, "d1", "beta")
    assert late.startswith("too late, and recorded as such: beta.")
    shown = shell.run("gates", "show", gate, "d1")
    assert re.search(r"^opened by +cli:", shown, re.M)
    assert re.search(r"^reason +enough$", shown, re.M)
    assert re.search(r"^beta +late +", shown, re.M)
    assert "open already" in shell.run("gates", "open", gate, "d1", "--reason", "x", "--yes", code=1)
    answer = shell.json("gates", "reset", gate, "d1", "--reason", "wrong day", "--yes")
    assert "Gate Reset" in shell.run("events", answer["jobId"])
    assert "nobody has reported" in shell.run("gates", "missing", gate, "d1", code=3)
    log = shell.json("audit", "--log", "--action", "gates.open")["entries"]
    assert any(entry["target"] == f"{gate}/d1" and entry["details"].get("reason") == "enough" for entry in log)


def test_members_that_are_known_at_run_time(sqlite_shell: Shell, names: tuple[str, str]) -> None:
    shell = sqlite_shell
    gate = names[0]
    shell.run("gates", "apply", shell.write("g.json", {"name": gate, "members": "dynamic"}), "--yes")
    assert re.search(rf"^{gate} +at run time +nothing ", shell.run("gates", "ls"), re.M)
    assert "freeze its members" in shell.run("gates", "arrive", gate, "k", "one", code=1)
    assert shell.run("gates", "freeze", gate, "k", "one", "two:teams") == "expected: 2 members\n"
    assert shell.run("gates", "freeze", gate, "k", "one", "two:teams") == "had been set before: 2 members\n"
    assert "are others" in shell.run("gates", "freeze", gate, "k", "three", code=1)
    assert shell.run("gates", "missing", gate, "k", code=1) == "one\ntwo\n"
    assert shell.run("gates", "freeze", gate, "nobody") == "expected: 0 members\n"
    assert shell.json("gates", "show", gate, "nobody")["status"] == "open"
    page = shell.json("gates", "keys", gate, "--limit", "1")
    assert ([found["key"] for found in page["keys"]], page["before"]) == (["nobody"], "nobody")
    assert [found["key"] for found in shell.json("gates", "keys", gate, "--before", "nobody")["keys"]] == ["k"]


def test_definitions_are_applied_in_versions(sqlite_shell: Shell, names: tuple[str, str], tmp_path: Path) -> None:
    shell = sqlite_shell
    gate, other = names
    (tmp_path / "a.json").write_text(json.dumps({"name": gate, "members": ["alpha"]}))
    (tmp_path / "b.json").write_text(json.dumps([{"name": other, "members": ["beta"]}]))
    folder = str(tmp_path)
    assert (
        "2 gates would be saved: confirm with --yes" in shell.json("gates", "apply", folder, code=2)["error"]["message"]
    )
    looked = shell.json("gates", "apply", folder, "--dry-run")
    assert [(item["name"], item["action"], item["version"]) for item in looked["gates"]] == [
        (gate, "new", 0),
        (other, "new", 0),
    ]
    assert f"there is no gate '{gate}'" in shell.run("gates", "versions", gate, code=3)
    assert f"saved: gate {gate}, version 1\nsaved: gate {other}, version 1\n" in shell.run(
        "gates", "apply", folder, "--yes"
    )
    (tmp_path / "a.json").write_text(json.dumps({"name": gate, "members": ["alpha", "gamma"]}))
    preview = shell.run("gates", "apply", folder, "--dry-run")
    assert re.search(rf'^changed: gate {gate} .*\n@@.*(\n.*)*\n\+ +"name": "gamma"$', preview, re.M)
    assert f"unchanged: gate {other} (" in preview
    assert [item["version"] for item in shell.json("gates", "apply", folder, "--yes")["gates"]] == [2, 1]
    assert shell.run("gates", "rollback", gate, "1") == f"gate {gate} is as in version 1 again, as version 3\n"
    assert shell.run("gates", "rollback", gate, "3") == f"gate {gate} is the same as in version 3 already\n"
    assert "has no version 9 to go back to: there is 3, 2, 1" in shell.run("gates", "rollback", gate, "9", code=3)
    assert "back again with: ostinato gates rollback" in shell.run("gates", "rm", gate)
    assert [item["definition"] is None for item in shell.json("gates", "versions", gate)["versions"]] == [
        True,
        False,
        False,
        False,
    ]
    assert re.search(r"^4 +removed +", shell.run("gates", "versions", gate), re.M)
    assert f"there is no gate '{gate}'" in shell.run("gates", "rm", gate, code=3)
    assert shell.json("gates", "apply", folder, "--yes")["gates"][0]["action"] == "new"


def test_definitions_in_yaml(sqlite_shell: Shell) -> None:
    shell = sqlite_shell
    (shell.folder / "gates").mkdir()
    shell.write("gates/a.yml", "# two of them\nname: one\nmembers: [a, b]\n---\nname: two\nmembers: ['no', \"10\"]\n")
    shell.write("gates/b.yaml", "- name: three\n  members: [a]\n- {name: four, members: [a]}\n")
    shell.write("gates/c.json", {"name": "five", "members": ["a"]})
    said = shell.json("gates", "apply", "gates", "--yes")["gates"]
    assert [(step["name"], step["file"], step["version"]) for step in said] == [
        ("one", "gates/a.yml:2", 1),
        ("two", "gates/a.yml:5", 1),
        ("three", "gates/b.yaml:1", 1),
        ("four", "gates/b.yaml:3", 1),
        ("five", "gates/c.json", 1),
    ]
    again = shell.json("gates", "apply", "-", stdin="name: two\nmembers:\n- 'no'\n- '10'\n")["gates"]
    assert [(step["file"], step["action"]) for step in again] == [("stdin", "unchanged")]
    wrong = shell.json("gates", "apply", "-", code=2, stdin="name: six\nmembers:\n- a\n- {nam: b}\n")["error"]
    assert (wrong["file"], wrong["line"], wrong["field"]) == ("stdin", 4, "members[1].nam")


def test_rules_say_which_events_they_are_about(shell: Shell, names: tuple[str, str]) -> None:
    gate, rule = names
    define(shell, gate, "alpha", "beta")
    target = {"name": gate, "key": "{% detail.day %}", "member": "{% detail.who %}"}
    document = {"name": rule, "pattern": {"source": [rule]}, "targets": [{"gate": target}]}
    shell.run("rules", "apply", "-", "--yes", stdin=json.dumps(document))
    assert re.search(rf"^{rule} .* gate +yes +1 ", shell.run("rules", "ls"), re.M)
    events = [
        {"source": rule, "detail-type": "Done", "id": f"{who}-1", "detail": {"day": "d1", "who": who}}
        for who in ("alpha", "beta")
    ]
    lines = "\n".join(map(json.dumps, events))
    assert shell.run("rules", "match", "-", stdin=lines) == f"{rule}, Done: {rule}\n" * 2
    own = {"source": "ostinato", "detail-type": "Task Completed", "detail": {}}
    assert shell.run("rules", "match", "-", stdin=json.dumps(own), code=1) == "ostinato, Task Completed: no rule\n"
    assert "nobody has reported" in shell.run("gates", "missing", gate, "d1", code=3)
    assert shell.run("events", "post", "-", stdin=lines) == "recorded: 2 events\n"
    cloud = {"specversion": "1.0", "source": rule, "type": "Other", "id": "c"}
    answer = shell.json("events", "post", "-", stdin=json.dumps([*events, cloud]))
    assert [item["outcome"] for item in answer["events"]] == ["duplicate", "duplicate", "recorded"]
    assert shell.run("events", "post", "-", stdin=json.dumps(events[0])) == "recorded: 0 events; 1 known\n"
    worker = shell.work()
    try:
        for _ in range(100):
            shown = shell.start("gates", "missing", gate, "d1", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if shown.wait(30) == 0:
                break
        else:
            raise AssertionError("the rule did not report")
    finally:
        stop(worker)
    assert len(shell.json("rules", "show", rule)["jobs"]) == 3


def test_of_many_events_those_that_are_wrong_are_refused(sqlite_shell: Shell) -> None:
    """The others are recorded, the exit code says that some were not, and each is named."""
    change = {"source": "aws.states", "detail-type": "Step Functions Execution Status Change"}
    detail = {"executionArn": "a", "stateMachineArn": "m", "startDate": 1, "status": "PENDING_REDRIVE"}
    events = [{"source": "x", "detail-type": "y", "id": f"e{n}"} for n in range(501)]
    events[500] = change | {"detail": detail}
    given = json.dumps(events)
    said = sqlite_shell.run("events", "post", "-", stdin=given, code=1)
    assert said == "recorded: 500 events; 1 refused\n"
    answer = sqlite_shell.json("events", "post", "-", stdin=given, code=1)["events"]
    assert [one["outcome"] for one in answer] == ["duplicate"] * 500 + ["refused"]
    assert answer[500]["field"] == "events[500].detail.status"
    assert "PENDING_REDRIVE" in sqlite_shell.run("events", "post", "-", stdin=json.dumps(events[500]), code=2)


def test_what_is_wrong_is_named(sqlite_shell: Shell) -> None:
    shell = sqlite_shell
    define(shell, "weekly", "monday", "tuesday", required=["status"])
    rule = {
        "name": "on-order",
        "pattern": {"source": ["shop"]},
        "targets": [{"signal": {"jobId": "j", "name": "s"}}],
    }
    shell.run("rules", "apply", "-", "--yes", stdin=json.dumps(rule))
    shell.run("gates", "arrive", "weekly", "week-1", "monday", "--status", "success")
    (shell.folder / "empty").mkdir()
    shell.write("twice.json", [{"name": "x", "members": ["a"]}, {"name": "x", "members": ["b"]}])
    shell.write("typo.json", [{"name": "x", "members": ["a"]}, {"name": "y", "members": ["a"], "triger": []}])
    shell.write("two.yaml", "name: x\nmembers: [a]\n---\nname: z\nmembers: [a]\ntriger: []\n")
    shell.write("norway.yaml", "name: countries\nmembers:\n  - se\n  - no\n")
    for arguments, code, sentence in (
        (["gates", "apply", "two.yaml", "--yes"], 2, "two.yaml:6: triger is not a known field"),
        (["rules", "apply", "norway.yaml"], 2, "norway.yaml:4: members[1]: no may be text"),
        (["gates", "show", "weekl"], 3, "there is no gate 'weekl': did you mean 'weekly'?"),
        (["gates", "show", "zzz"], 3, "there is no gate 'zzz': `ostinato gates ls` lists them"),
        (["gates", "missing", "weekl", "week-1"], 3, "there is no gate 'weekl': did you mean 'weekly'?"),
        (["gates", "open", "weekly", "week-2", "--reason", "x", "--yes"], 3, "did you mean 'week-1'?"),
        (["gates", "arrive", "weekly", "week-1", "tusday"], 2, "did you mean 'tuesday'?"),
        (["gates", "arrive", "weekly", "week-1", "tuesday"], 2, "lacks status"),
        (["gates", "arrive", "weekly", "week-1", "tuesday", "--data", "{"], 2, "--data is not valid JSON"),
        (["gates", "freeze", "weekly", "week-1", "sunday"], 2, "has its members in its definition"),
        (["gates", "apply", "empty"], 2, "the folder 'empty' has no .json, .yaml or .yml files"),
        (["gates", "apply", "nowhere.json"], 2, "there is no file 'nowhere.json'"),
        (["gates", "apply", "twice.json"], 2, "'x' is in twice.json[0] and in twice.json[1]"),
        (
            ["gates", "apply", "typo.json", "--yes"],
            2,
            "typo.json[1]: triger is not a known field: did you mean 'trigger'?",
        ),
        (["rules", "show", "on-ordr"], 3, "there is no rule 'on-ordr': did you mean 'on-order'?"),
        (["rules", "match", "-"], 2, "stdin is not valid JSON"),
        (["events", "post", "typo.json"], 2, "events[0].source"),
    ):
        assert sentence in shell.run(*arguments, code=code), arguments
    assert "'x'" in shell.run("gates", "show", "x", code=3)  # one that is wrong keeps the others from being saved
    assert "line 2 of stdin is not valid JSON" in shell.run("events", "post", "-", code=2, stdin='{"a": 1}\n{\n')
    assert "stdin has no events" in shell.run("events", "post", "-", code=2, stdin="[]")
