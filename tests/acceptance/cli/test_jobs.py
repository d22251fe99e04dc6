"""`ostinato jobs`: submit, list, show, watch, cancel and resume."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from typing import Any

import pytest

from tests.acceptance.cli.support import ASKING, BROKEN, Shell, stop, stop_when


def test_jobs_are_submitted_once_by_their_key(shell: Shell) -> None:
    document = ASKING | {"idempotencyKey": "cli-key"}
    job_id = shell.submit([document])
    assert shell.submit(document) == f"{job_id} (was there before, by its idempotency key)"
    two = shell.json("jobs", "submit", "-", stdin=json.dumps([document, ASKING]))["jobs"]
    assert [item["created"] for item in two] == [False, True]
    changed = json.dumps(document | {"name": "other"})
    assert shell.json("jobs", "submit", "-", code=2, stdin=changed)["error"]["code"] == "idempotency_conflict"


def test_jobs_are_listed(shell: Shell) -> None:
    lines = shell.run("jobs", "ls", "--correlation-id", "corr-1", "--name", "fine").splitlines()
    assert re.split(r"\s{2,}", lines[0]) == ["job id", "name", "state", "tasks", "created", "took"]
    assert any(re.match(r"fine-1 +fine +completed +2/2 +\d+ (s|min)\b.* ago", line) for line in lines)
    listed = shell.json("jobs", "ls", "--state", "failed", "--limit", "50")["jobs"]
    assert "broken-1" in [job["jobId"] for job in listed]
    assert {job["state"] for job in listed} == {"failed"}
    page = shell.json("jobs", "ls", "--limit", "1", "--request-id", "req-1")
    assert "fine-1" in [job["jobId"] for job in [*page["jobs"], *rest_of(shell, page["cursor"])]]
    assert shell.json("jobs", "ls", "--tag", "team=none")["jobs"] == []
    assert shell.json("jobs", "ls", "--until", "2020-01-01")["jobs"] == []
    assert shell.json("jobs", "ls", "--since", "soon", code=2)["error"]["field"] == "--since"
    assert shell.run("jobs", "ls", "--tenant", "nobody") == "no jobs\n"


def rest_of(shell: Shell, cursor: str | None) -> list[Any]:
    if cursor is None:
        return []
    return shell.json("jobs", "ls", "--request-id", "req-1", "--cursor", cursor)["jobs"]


def test_a_job_is_shown(shell: Shell) -> None:
    printed = shell.run("jobs", "show", "broken-1")
    assert re.search(r"^tasks +3: 1 blocked, 1 completed, 1 failed$", printed, re.M)
    assert re.search(r"^bad +scrape +failed +2 .*ValueError: two said \\x1b\[31mno\[/red\]$", printed, re.M)
    shown = shell.json("jobs", "show", "broken-1", "--state", "blocked")
    assert shown["job"]["taskStatuses"] == {"blocked": 1, "completed": 1, "failed": 1}
    assert [task["taskId"] for task in shown["tasks"]] == ["C"]


def test_watch_in_a_pipe_prints_a_line_for_each_change(shell: Shell) -> None:
    lines = shell.run("jobs", "watch", "broken-1", code=1).splitlines()
    assert "Job Created" in lines[0]
    assert "Task Failed           bad #2  ValueError" in "\n".join(lines)
    assert lines[-1].startswith("job broken-1 (broken) is failed")
    documents = shell.run("jobs", "watch", "fine-1", "--json").splitlines()
    assert json.loads(documents[-1])["state"] == "completed"


def test_watch_draws_a_tree_on_a_terminal_until_the_job_ends(shell: Shell) -> None:
    job_id = shell.submit(ASKING)
    worker = shell.work()
    screen, terminal = pty.openpty()
    watcher = shell.start("jobs", "watch", job_id, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    try:
        seen = read_until(screen, "waits for signal ok")
        assert seen.count("running") >= 1
        assert "a waiting task has it" in shell.run("signal", job_id, "ok", '{"by": "me"}')
        seen = read_until(screen, "1 completed")
        assert "1/1" in seen
        assert watcher.wait(10) == 0
    finally:
        watcher.kill()
        watcher.wait()
        os.close(screen)
        stop(worker)
    assert shell.json("tasks", "show", job_id, "ask")["output"] == {"by": "me"}


def test_a_narrow_terminal_shows_how_far_a_job_is(shell: Shell) -> None:
    screen, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (20, 44))
    watcher = shell.start("jobs", "watch", "broken-1", stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    try:
        assert re.search("━  2/3  [0-9].*  1 blocked", read_until(screen, "1 blocked"))
        assert watcher.wait(10) == 1
    finally:
        watcher.kill()
        watcher.wait()
        os.close(screen)


def test_a_narrow_terminal_breaks_lines_and_not_words(shell: Shell) -> None:
    screen, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (40, 40))
    lister = shell.start("dead-letters", "ls", "--job", "broken-1", stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    try:
        seen = read_until(screen, "ValueError:")
        assert re.search(r"job id +task id +function +attempts +failed +error", seen)
        assert re.search(r"broken-1 +bad +scrape +2 +", seen)
        assert lister.wait(10) == 0
    finally:
        lister.kill()
        lister.wait()
        os.close(screen)


def test_a_terminal_that_cannot_be_drawn_on_gets_lines(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(shell.environment, "TERM", "dumb")
    job_id = shell.submit(ASKING)
    screen, terminal = pty.openpty()
    watcher = shell.start("jobs", "watch", job_id, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    try:
        read_until(screen, "Job Created")
        shell.run("jobs", "cancel", job_id)
        read_until(screen, f"job {job_id} (asking) is cancelled")
        assert watcher.wait(10) == 1
    finally:
        watcher.kill()
        watcher.wait()
        os.close(screen)


def read_until(screen: int, text: str, seconds: float = 20) -> str:
    seen, until = "", time.monotonic() + seconds
    while text not in seen and time.monotonic() < until:
        if select.select([screen], [], [], 0.5)[0]:
            try:
                seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(screen, 65536).decode(errors="replace"))
            except OSError:
                break
    assert text in seen
    return seen


def test_ctrl_c_leaves_cleanly(shell: Shell) -> None:
    job_id = shell.submit(ASKING)
    watcher = shell.start("jobs", "watch", job_id, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watcher.stdout is not None
    assert "Job Created" in watcher.stdout.readline()
    watcher.send_signal(signal.SIGINT)
    _, complained = watcher.communicate(timeout=10)
    assert (watcher.returncode, complained) == (130, "")
    assert shell.run("jobs", "cancel", job_id, "--reason", "enough") == f"job {job_id} is cancelled\n"
    assert shell.run("jobs", "cancel", "fine-1") == "job fine-1 had already ended: completed\n"


def test_resume_runs_what_failed_with_another_input(shell: Shell) -> None:
    job_id = shell.fail("to-resume", BROKEN)
    assert re.match(r"would run again +bad\nreused +A\nwaiting +C\n", shell.run("jobs", "resume", job_id, "--dry-run"))
    new_input = 'bad={"store": "mended"}'
    plan = shell.json("jobs", "resume", job_id, "--input", new_input)["plan"]
    assert plan == {"rerun": ["bad"], "reused": ["A"], "waiting": ["C"], "undone": [], "undoneBy": []}
    stop_when(shell, job_id, "completed")
    assert shell.json("tasks", "show", job_id, "bad")["input"] == {"store": "mended"}
    assert "nothing to resume" in shell.run("jobs", "resume", job_id, code=1)
