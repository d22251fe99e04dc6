"""The command line as people and scripts use it: as a process, on both databases."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from devtools import postgres as pg

ROOT = Path(__file__).parents[2]
SHOP = """
import asyncio
from ostinato import Ostinato, Retry

app = Ostinato("sqlite:///never-used.db")

@app.function("scrape", retry=Retry(max_attempts=2, base_delay=0.05))
async def scrape(ctx, store, fail=0):
    page = await ctx.step("fetch", lambda: {"page": store})
    if ctx.attempt <= fail:
        raise ValueError(f"{store} said \\x1b[31mno[/red]")
    return page

@app.function("approve")
async def approve(ctx):
    return await ctx.wait_for("ok")

@app.function("slow")
async def slow(seconds):
    print("working", flush=True)
    await asyncio.sleep(seconds)
    return seconds

graph = app.graph("from-code")
graph.task(scrape, after=[graph.task(scrape, store="one")], store="two")
document = {"name": "from-dict", "tasks": [{"taskId": "a", "name": "scrape", "input": {"store": "x"}}]}
"""
FINE = {
    "name": "fine",
    "requestId": "req-1",
    "correlationId": "corr-1",
    "tasks": [
        {"taskId": "A", "name": "scrape", "input": {"store": "one"}},
        {"taskId": "B", "name": "scrape", "dependsOn": ["A"], "input": {"store": "two", "fail": 1}},
    ],
}
BROKEN = {
    "name": "broken",
    "tasks": [
        {"taskId": "A", "name": "scrape", "input": {"store": "one"}},
        {"taskId": "bad", "name": "scrape", "input": {"store": "two", "fail": 99}},
        {"taskId": "C", "name": "scrape", "dependsOn": ["A", "bad"], "input": {"store": "three"}},
    ],
}
ASKING = {"name": "asking", "tasks": [{"taskId": "ask", "name": "approve"}]}


class Shell:
    """A folder with an application and a database, and a command line in it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.environment = os.environ | {"OSTINATO_URL": url, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        (folder / "shop.py").write_text(SHOP)

    def write(self, name: str, content: Any) -> str:
        (self.folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return name

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ostinato.cli.main", *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True, **options)

    def run(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        """What it printed: on stdout if all went well, on stderr if a failure was expected and it was silent."""
        pipe = subprocess.PIPE
        process = self.start(*arguments, stdin=pipe, stdout=pipe, stderr=pipe)
        printed, complained = process.communicate(stdin, timeout=60)
        assert process.returncode == code, f"{arguments}: {process.returncode}\n{printed}\n{complained}"
        assert not re.search("^Traceback|bug in Ostinato", complained, re.M)
        assert "\x1b" not in printed + complained
        return printed or complained

    def json(self, *arguments: str, code: int = 0, stdin: str = "") -> Any:
        return json.loads(self.run(*arguments, "--json", code=code, stdin=stdin))

    def submit(self, document: Any) -> str:
        submitted = self.run("jobs", "submit", "-", "--app", "shop:app", "--url", self.url, stdin=json.dumps(document))
        return submitted.strip()

    def fail(self, job_id: str, document: Any) -> str:
        arguments = ["run", "-", "--app", "shop:app", "--url", self.url]
        self.run(*arguments, code=1, stdin=json.dumps(document | {"jobId": job_id}))
        return job_id

    def work(self) -> subprocess.Popen[str]:
        """A worker that is ready."""
        process = self.start("worker", "shop:app", "--url", self.url, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: 3 functions, queue default, concurrency 10")
        return process


def stop(process: subprocess.Popen[str], with_signal: signal.Signals = signal.SIGTERM) -> str:
    process.send_signal(with_signal)
    printed, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return printed


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """One database for all tests of this file, with a job that completed and one that failed."""
    folder = tmp_path_factory.mktemp("cli")
    if request.param == "sqlite":
        server, url = None, f"sqlite:///{folder}/test.db"
    else:
        server = request.getfixturevalue("postgres")
        url = server.create_database()
    made = Shell(folder, url)
    made.write("fine.json", FINE | {"jobId": "fine-1"})
    made.write("broken.json", BROKEN | {"jobId": "broken-1"})
    made.run("run", "fine.json", "--app", "shop:app", "--url", url)
    made.run("run", "broken.json", "--app", "shop.py", "--url", url, code=1)
    yield made
    if server is not None:
        pg.drop_database(url, server.url())


# --- running -------------------------------------------------------------------------------------------------------


def test_run_prints_the_result(shell: Shell) -> None:
    document = shell.write("again.json", FINE)
    assert json.loads(shell.run("run", document, "--app", "shop", "--url", shell.url)) == {
        "A": {"page": "one"},
        "B": {"page": "two"},
    }
    answer = shell.json("run", "-", "--app", "./shop.py:app", "--url", shell.url, stdin=json.dumps(FINE))
    assert answer["job"]["state"] == "completed"
    assert answer["outputs"]["A"] == {"page": "one"}


def test_run_takes_graphs_from_modules(shell: Shell) -> None:
    assert json.loads(shell.run("run", "shop:graph", "--url", shell.url))["scrape-2"] == {"page": "two"}
    assert shell.json("--url", shell.url, "run", "shop.py:document")["job"]["name"] == "from-dict"
    assert not (shell.folder / "never-used.db").exists()


def test_run_of_a_failing_job_says_what_failed(shell: Shell) -> None:
    document = shell.write("again.json", BROKEN | {"idempotencyKey": "fails"})
    sentence = shell.run("run", document, "--app", "shop", "--url", shell.url, code=1)
    assert "failed: bad: ValueError: two said \\x1b[31mno[/red]; blocked: C" in sentence
    error = shell.json("run", document, "--app", "shop", "--url", shell.url, code=1)["error"]
    assert error["code"] == "job_failed"
    assert error["failed"].keys() == {"bad"}
    assert error["blocked"] == ["C"]


def test_worker_finishes_what_runs_when_it_is_told_to_stop(shell: Shell) -> None:
    job_id = shell.submit({"tasks": [{"taskId": "s", "name": "slow", "input": {"seconds": 0.8}}]})
    worker = shell.work()
    assert worker.stdout is not None
    assert worker.stdout.readline() == "working\n"
    printed = stop(worker)
    assert printed == "SIGTERM: finishing what runs, or handing it back\nstopped\n"
    assert shell.json("jobs", "show", job_id)["job"]["state"] == "completed"


def test_worker_hands_back_what_takes_too_long(shell: Shell) -> None:
    job_id = shell.submit({"tasks": [{"taskId": "s", "name": "slow", "input": {"seconds": 60}}]})
    options = ["--shutdown-seconds", "0.1", "--concurrency", "2", "--queue", "default", "--json", "--url", shell.url]
    worker = shell.start("worker", "shop:app", *options, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert json.loads(worker.stdout.readline())["worker"] == "ready"
    assert worker.stdout.readline() == "working\n"
    assert "stopped" in stop(worker, signal.SIGINT)
    task = shell.json("jobs", "show", job_id)["tasks"][0]
    assert (task["state"], task["attempt"]) == ("pending", 0)
    assert shell.json("jobs", "cancel", job_id)["state"] == "cancelled"


# --- jobs ----------------------------------------------------------------------------------------------------------


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
    assert any(re.match(r"fine-1 +fine +completed +2/2 +\d+ s ago", line) for line in lines)
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


def test_a_reader_that_has_seen_enough_is_no_error(shell: Shell) -> None:
    watcher = shell.start("events", "--all", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watcher.stdout is not None
    watcher.stdout.close()
    assert watcher.stderr is not None
    assert watcher.stderr.read() == ""
    watcher.stderr.close()
    assert watcher.wait(10) == 141


def test_resume_runs_what_failed_with_another_input(shell: Shell) -> None:
    job_id = shell.fail("to-resume", BROKEN)
    assert re.match(r"would run again +bad\nreused +A\nwaiting +C\n", shell.run("jobs", "resume", job_id, "--dry-run"))
    new_input = 'bad={"store": "mended"}'
    plan = shell.json("jobs", "resume", job_id, "--input", new_input)["plan"]
    assert plan == {"rerun": ["bad"], "reused": ["A"], "waiting": ["C"]}
    stop_when(shell, job_id, "completed")
    assert shell.json("tasks", "show", job_id, "bad")["input"] == {"store": "mended"}
    assert "nothing to resume" in shell.run("jobs", "resume", job_id, code=1)


def stop_when(shell: Shell, job_id: str, state: str) -> None:
    """Let a worker run until the job has ended."""
    worker = shell.work()
    try:
        watched = shell.run("jobs", "watch", job_id, "--json", code=0 if state == "completed" else 1)
        assert json.loads(watched.splitlines()[-1])["state"] == state
    finally:
        stop(worker)


# --- tasks and dead letters ----------------------------------------------------------------------------------------


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


# --- events and signals --------------------------------------------------------------------------------------------


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


def test_a_signal_is_kept_until_somebody_asks(shell: Shell) -> None:
    job_id = shell.submit(ASKING)
    assert shell.json("signal", job_id, "ok", "[1]") == {"jobId": job_id, "name": "ok", "heard": False}
    assert "kept for the next task" in shell.run("signal", job_id, "other")
    stop_when(shell, job_id, "completed")


# --- the whole -----------------------------------------------------------------------------------------------------


def test_doctor_says_how_things_stand(shell: Shell) -> None:
    # The PostgreSQL of the tests runs without fsync, for speed: the doctor must not like that.
    durable = shell.url.startswith("sqlite") or "OSTINATO_TEST_POSTGRES" in os.environ
    if durable:
        assert re.search(r"^durable +yes", shell.run("doctor"), re.M)
    else:
        assert "warning: the database may lose acknowledged work" in shell.run("doctor", code=1)
    answer = shell.json("doctor", code=0 if durable else 1)
    assert answer["database"]["durable"] is durable
    assert answer["deadLetters"] >= 1
    assert any("dead letter" in warning for warning in answer["warnings"])
    assert answer["versions"].keys() == {"ostinato", "python", "platform"}


def test_doctor_makes_a_database_when_asked(url: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path, url)
    code = "schema_missing" if url.startswith("postgres") else "database_unavailable"
    assert shell.json("jobs", "ls", code=4)["error"]["code"] == code
    assert not (tmp_path / "test.db").exists()
    made = subprocess.run(
        [sys.executable, "-m", "ostinato.cli.main", "doctor", "--migrate"], env=shell.environment, capture_output=True
    )
    assert made.returncode in (0, 1)
    assert shell.run("jobs", "ls") == "no jobs\n"
    assert "'scrape'" in shell.run("jobs", "submit", "-", stdin=json.dumps(FINE), code=2)
    assert shell.run("prune") == "removed: 0 jobs\n"
    assert shell.run("functions") == "no functions\n"


def test_doctor_shows_what_waits_for_nobody(tmp_path: Path) -> None:
    shell = Shell(tmp_path, f"sqlite:///{tmp_path}/test.db")
    shell.run("doctor", "--migrate")
    shell.run("jobs", "submit", "-", "--app", "shop:app", "--url", shell.url, stdin=json.dumps(FINE))
    found = shell.run("doctor")
    assert re.search(r"^default +scrape +1 ", found, re.M)
    assert "no worker serves it" in found


def test_workers_and_functions_are_listed(shell: Shell) -> None:
    worker = shell.work()
    try:
        assert re.search(rf" alive +\S+:{worker.pid} +default ", shell.run("workers"))
        assert worker.pid in [item["pid"] for item in shell.json("workers")["workers"] if item["alive"]]
    finally:
        stop(worker)
    assert re.search(r"^scrape +2 +none ", shell.run("functions"), re.M)
    assert [f["name"] for f in shell.json("functions")["functions"]] == ["approve", "scrape", "slow"]


def test_audit_finds_nothing(shell: Shell) -> None:
    assert shell.run("audit").endswith(" events checked: 0 problems\n")
    assert shell.json("audit")["problems"] == []


def test_the_audit_log_knows_what_was_done_here(shell: Shell) -> None:
    where = ["--tenant", "logged", "--url", shell.url]
    shell.run("run", "broken.json", "--app", "shop:app", *where, code=1)
    shell.run("jobs", "resume", "broken-1", "--dry-run", *where)
    assert shell.run("audit", "--log", *where).startswith("no entries\n0 entries checked: the log is whole")
    shell.run("jobs", "resume", "broken-1", *where)
    shell.run("tasks", "cancel", "broken-1", "bad", "--reason", "enough", *where)
    shell.run("tasks", "skip", "broken-1", "bad", *where)
    shell.run("signal", "broken-1", "ok", '"not for the log"', *where)
    shell.run("jobs", "cancel", "broken-1", *where)
    shell.run("tasks", "retry", "broken-1", "C", *where)
    shell.run("prune", "--older-than", "9", *where)
    shell.run("jobs", "cancel", "no-such-job", *where, code=3)
    answer = shell.json("audit", "--log", *where)
    assert [(e["action"], e["target"]) for e in reversed(answer["entries"])] == [
        ("jobs.resume", "broken-1"),
        ("tasks.cancel", "broken-1/bad"),
        ("tasks.skip", "broken-1/bad"),
        ("jobs.signal", "broken-1"),
        ("jobs.cancel", "broken-1"),
        ("tasks.retry", "broken-1/C"),
        ("jobs.prune", ""),
    ]
    assert all(e["actor"].startswith("cli") for e in answer["entries"])
    assert "not for the log" not in json.dumps(answer)
    head = f"{answer['verdict']['seq']}:{answer['verdict']['hash']}"
    assert head in shell.run("audit", "--log", "--head", head, *where)
    shell.run("audit", "--log", "--head", "1:nonsense", *where, code=2)
    assert "is missing" in shell.run("audit", "--log", "--head", f"99:{'0' * 64}", *where, code=1)


def test_redriving_is_logged(shell: Shell) -> None:
    where = ["--tenant", "redriven", "--url", shell.url]
    shell.run("run", "broken.json", "--app", "shop:app", *where, code=1)
    shell.run("dead-letters", "redrive", "--all", "--dry-run", *where)
    shell.run("dead-letters", "redrive", "broken-1", "bad", *where)
    entries = shell.json("audit", "--log", "--action", "deadLetters.redrive", *where)["entries"]
    assert [(e["target"], e["details"]) for e in entries] == [("broken-1/bad", {"letters": 1})]


def test_keys_are_made_used_and_changed(shell: Shell) -> None:
    where = ["--tenant", "sealed", "--url", shell.url]
    first, second = shell.run("encryption", "new-key", "one").strip(), shell.json("encryption", "new-key", "two")["key"]
    before = shell.environment
    try:
        shell.run("run", "fine.json", "--app", "shop:app", *where)
        assert "no encryption keys" in shell.run("encryption", "rotate", *where, code=1)
        shell.environment = before | {"OSTINATO_ENCRYPTION_KEYS": first}
        shell.run("run", "broken.json", "--app", "shop:app", *where, code=1)
        assert {p["keyId"] for p in shell.json("encryption", "status", *where)["payloads"]} == {None, "one"}
        shell.environment = before | {"OSTINATO_ENCRYPTION_KEYS": f"{second},{first}"}
        assert re.search(r"^rotated: \d+ rows$", shell.run("encryption", "rotate", *where), re.M)
        assert "rotated: 0 rows\n" in shell.run("encryption", "rotate", *where)
        shell.environment = before | {"OSTINATO_ENCRYPTION_KEYS": second}
        assert re.search(r"^sealed +input +two +\d+$", shell.run("encryption", "status", *where), re.M)
        assert shell.json("tasks", "show", "fine-1", "A", *where)["input"] == {"store": "one"}
        assert shell.json("audit", *where)["problems"] == []
        shell.environment = before
        assert "key 'two'" in shell.run("tasks", "show", "fine-1", "A", *where, code=1)
        shell.environment = before | {"OSTINATO_ENCRYPTION_KEYS": "two:nonsense"}
        assert "nonsense" not in shell.run("jobs", "ls", *where, code=2)
    finally:
        shell.environment = before


def test_prune_removes_what_ended_long_ago(shell: Shell) -> None:
    tenant = ["--tenant", "pruned", "--url", shell.url]
    shell.run("run", "shop:document", *tenant)
    assert shell.json("prune", *tenant) == {"removed": 0}
    assert shell.run("prune", "--older-than", "0", *tenant) == "removed: 1 job\n"
    assert "0 or more" in shell.run("prune", "--older-than", "-1", *tenant, code=2)


# --- bad input -----------------------------------------------------------------------------------------------------


def test_unknown_things_are_not_found(shell: Shell) -> None:
    assert shell.run("jobs", "show", "nope", code=3) == "error: there is no job 'nope'\n"
    assert shell.json("jobs", "watch", "nope", code=3)["error"] == {
        "code": "job_not_found",
        "message": "there is no job 'nope'",
        "jobId": "nope",
    }
    assert "no task 'nope' in job 'fine-1'" in shell.run("tasks", "show", "fine-1", "nope", code=3)
    assert shell.json("signal", "nope", "ok", code=3)["error"]["code"] == "job_not_found"


BAD_INPUT: list[tuple[list[str], str, str]] = [
    (["jobs", "submit", "missing.json"], "", "there is no file 'missing.json'"),
    (["jobs", "submit", "."], "", "the file '.' cannot be read"),
    (["jobs", "submit", "-"], "{", "the job on stdin is not valid JSON"),
    (["jobs", "submit", "-"], "17", "is not a job document"),
    (["jobs", "submit", "-"], '{"tasks": [{"taskId": "a", "name": "never-heard-of"}]}', "never-heard-of"),
    (["jobs", "submit", "-"], "[" * 100_000, "nested too deeply"),
    (["run", "missing.json", "--app", "shop"], "", "there is no file 'missing.json'"),
    (["run", "fine.json"], "", "say where they are with --app"),
    (["run", "fine.json", "--app", "nowhere"], "", "there is no module 'nowhere'"),
    (["run", "fine.json", "--app", "nowhere.py:app"], "", "there is no file 'nowhere.py'"),
    (["run", "fine.json", "--app", "shop:graph"], "", "not an Ostinato application"),
    (["run", "shop:nothing"], "", "'shop' has no 'nothing'"),
    (["run", "shop:app"], "", "`run` needs a graph"),
    (["worker", "explodes:app"], "", "importing 'explodes' failed: ZeroDivisionError"),
    (["worker", "shop:app", "--concurrency", "0"], "", "--concurrency"),
    (["jobs", "ls", "--state", "blue"], "", "state must be one of"),
    (["jobs", "ls", "--tenant", "no/slash"], "", "not a valid id"),
    (["jobs", "ls", "--url", "mysql://host/db"], "", "use sqlite:///file.db"),
    (["jobs", "resume", "x", "--input", "oops"], "", "TASK=JSON"),
    (["signal", "x", "ok", "{"], "", "not valid JSON"),
    (["events"], "", "either a JOB, or --all"),
    (["events", "--all", "--cursor", "x"], "", "is not a cursor"),
    (["dead-letters", "redrive"], "", "say which"),
    (["dead-letters", "redrive", "x"], "", "JOB TASK"),
    (["jobs", "fly"], "", "No such command 'fly'"),
    (["jobs", "show"], "", "Missing argument 'JOB'"),
]


def test_bad_input_gets_a_sentence(sqlite_shell: Shell) -> None:
    def answer(case: tuple[list[str], str, str]) -> str:
        arguments, stdin, _ = case
        return sqlite_shell.json(*arguments, code=2, stdin=stdin)["error"]["message"]

    with ThreadPoolExecutor(2) as pool:  # each is a process of its own
        for (arguments, _, sentence), message in zip(BAD_INPUT, pool.map(answer, BAD_INPUT), strict=True):
            assert sentence in message, arguments


@pytest.fixture(scope="module")
def sqlite_shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("bad")
    made = Shell(folder, f"sqlite:///{folder}/test.db")
    made.write("fine.json", FINE)
    made.write("explodes.py", "1 / 0")
    made.run("doctor", "--migrate")
    return made


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://127.0.0.1:1/nothing", "PostgreSQL cannot be reached"),
        ("sqlite:///text.db", "not a SQLite database"),
        ("sqlite:///missing.db", "there is no database file 'missing.db'"),
        ("sqlite:////no/such/folder/x.db", "there is no database file"),
    ],
)
def test_no_database_is_a_code_of_its_own(sqlite_shell: Shell, url: str, sentence: str) -> None:
    sqlite_shell.write("text.db", "this is a text, and not even a short one")
    assert sentence in sqlite_shell.run("jobs", "ls", "--url", url, code=4)
    assert sentence in sqlite_shell.json("--url", url, "doctor", code=4)["error"]["message"]
    assert not (sqlite_shell.folder / "missing.db").exists()


def test_help_and_version_are_there_at_once(sqlite_shell: Shell) -> None:
    assert sqlite_shell.run("--version").startswith("ostinato ")
    assert "dead-letters" in sqlite_shell.run("--help")
    # What makes a start slow is imported by the commands that need it.
    program = "import sys, ostinato.cli.main; print({'rich', 'apsw', 'asyncpg', 'uvloop'} & set(sys.modules))"
    printed = subprocess.run(
        [sys.executable, "-c", program], env=sqlite_shell.environment, capture_output=True, text=True
    )
    assert printed.stdout == "set()\n"
