"""`ostinato events` and `ostinato signal`."""

from __future__ import annotations

import json
import re
import signal
import subprocess

from tests.acceptance.cli.support import ASKING, Shell, stop_when


def test_events_of_a_job(shell: Shell) -> None:
    lines = shell.run("events", "broken-1", "--task", "bad").splitlines()
    assert [re.split(r"\s{2,}", line.strip())[2] for line in lines][-1] == "Task Failed"
    answer = shell.json("events", "broken-1", "--after", "3", "--limit", "2")
    assert [event["seq"] for event in answer["events"]] == [4, 5]
    assert answer["after"] == 5
    followed = shell.run("events", "fine-1", "--follow", "--json").splitlines()
    assert [json.loads(line)["seq"] for line in followed] == list(range(1, len(followed) + 1))


def test_events_of_all_jobs_go_on_after_a_cursor(shell: Shell) -> None:
    first = shell.json("events", "--all", "--limit", "3")
    second = shell.json("events", "--all", "--limit", "3", "--cursor", first["cursor"])
    assert [event["seq"] for event in first["events"] + second["events"]] == [1, 2, 3, 4, 5, 6]
    assert first["events"][0]["jobName"] == "fine"
    assert shell.run("events", "--all", "--limit", "1").startswith("fine-1  fine  ")
    follower = shell.start("events", "--all", "--follow", "--cursor", first["cursor"], "--json", stdout=subprocess.PIPE)
    assert follower.stdout is not None
    assert json.loads(follower.stdout.readline())["seq"] == 4
    follower.send_signal(signal.SIGTERM)
    follower.communicate(timeout=10)
    assert follower.returncode == 143


def test_times_in_events_are_written_for_people(shell: Shell) -> None:
    job_id = shell.submit({"tasks": [{"taskId": "late", "name": "scrape", "delay": 3600}]})
    assert re.search(r"kind=delay, dueAt=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", shell.run("events", job_id), re.M)
    assert isinstance(shell.json("events", job_id)["events"][-1]["properties"]["dueAt"], int)
    shell.run("jobs", "cancel", job_id)


def test_a_reader_that_has_seen_enough_is_no_error(shell: Shell) -> None:
    watcher = shell.start("events", "--all", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watcher.stdout is not None
    watcher.stdout.close()
    assert watcher.stderr is not None
    assert watcher.stderr.read() == ""
    watcher.stderr.close()
    assert watcher.wait(10) == 141


def test_a_signal_is_kept_until_somebody_asks(shell: Shell) -> None:
    job_id = shell.submit(ASKING)
    assert shell.json("signal", job_id, "ok", "[1]") == {"jobId": job_id, "name": "ok", "heard": False}
    assert "kept for the next task" in shell.run("signal", job_id, "other")
    stop_when(shell, job_id, "completed")
