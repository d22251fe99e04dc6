"""`ostinato tasks` and `ostinato dead-letters`."""

from __future__ import annotations

import re

from tests.acceptance.cli.support import Shell


def test_a_task_is_shown_with_its_attempts_and_steps(shell: Shell) -> None:
    printed = shell.run("tasks", "show", "broken-1", "bad")
    assert re.search(r"^function +scrape$", printed, re.M)
    assert re.search(r"^2 +failed .*ValueError", printed, re.M)
    assert re.search(r'^fetch +{"page":"two"}', printed, re.M)
    shown = shell.json("tasks", "show", "broken-1", "bad")
    assert [attempt["key"] for attempt in shown["attempts"]] == ["broken-1:bad:1", "broken-1:bad:2"]


def test_a_task_says_why_it_is_not_running(shell: Shell) -> None:
    assert shell.run("tasks", "why", "broken-1", "C").startswith(
        "dependency: It stays blocked, because it depends on 'bad'"
    )
    answer = shell.json("tasks", "why", "broken-1", "C")
    assert answer["code"] == "dependency"
    assert answer["details"]["dependencies"] == [{"taskId": "bad", "state": "failed"}]
    assert shell.json("tasks", "why", "broken-1", "none", code=3)["error"]["code"] == "task_not_found"


def test_single_tasks_are_retried_skipped_and_cancelled(shell: Shell) -> None:
    tasks = [{"taskId": name, "name": "approve"} for name in ("one", "two")]
    job_id = shell.submit({"tasks": [*tasks, {"taskId": "last", "name": "approve", "dependsOn": ["one", "two"]}]})
    assert shell.run("tasks", "cancel", job_id, "one") == f"task one of job {job_id} is cancelled\n"
    assert shell.json("tasks", "retry", job_id, "one", "--input", "{}")["state"] == "pending"
    assert shell.json("tasks", "skip", job_id, "one", "--reason", "no need")["state"] == "skipped"
    assert shell.run("tasks", "skip", job_id, "two") == f"task two of job {job_id} is skipped\n"
    assert shell.json("tasks", "cancel", job_id, "last")["state"] == "cancelled"
    assert "is completed: only failed" in shell.run("tasks", "retry", "fine-1", "A", code=1)


def test_dead_letters_are_listed_shown_and_redriven(shell: Shell) -> None:
    bad = [{"taskId": name, "name": "scrape", "input": {"store": name, "fail": 99}} for name in ("bad", "worse")]
    job_id = shell.fail("letters", {"tasks": bad})
    assert re.search(r"^letters +bad +scrape +2 .*ValueError", shell.run("dead-letters", "ls", "--job", job_id), re.M)
    letters = shell.json("dead-letters", "ls", "--job", job_id, "--name", "scrape")["deadLetters"]
    assert {letter["input"]["store"] for letter in letters} == {"bad", "worse"}
    assert "raise ValueError" in shell.run("dead-letters", "show", job_id, "bad")
    assert shell.json("dead-letters", "show", job_id, "bad")["detail"]["task"]["state"] == "failed"
    assert "not a dead letter" in shell.run("dead-letters", "show", "fine-1", "A", code=3)
    assert shell.run("dead-letters", "redrive", job_id, "bad") == "running again: 1 task\n"
    assert "--yes" in shell.run("dead-letters", "redrive", "--job", job_id, code=2)
    assert shell.run("dead-letters", "redrive", "--job", job_id, "--dry-run").splitlines()[1] == "letters  worse"
    narrowed = ["--function", "scrape", "--job", job_id, "--error", "ValueError", "--since", "2020-01-01"]
    assert shell.json("dead-letters", "redrive", *narrowed, "--dry-run")["count"] == 1
    answer = shell.json("dead-letters", "redrive", *narrowed, "--yes")
    assert answer == {"dryRun": False, "count": 1, "letters": [{"jobId": job_id, "taskId": "worse"}]}
    assert shell.run("dead-letters", "ls", "--job", job_id) == "no dead letters\n"
