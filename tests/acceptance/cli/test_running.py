"""Running jobs, and workers that run them."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess

from tests.acceptance.cli.support import BROKEN, FINE, Shell, stop


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


def test_run_says_where_a_worker_finds_what_it_left(shell: Shell) -> None:
    document = shell.write("slow.json", {"tasks": [{"taskId": "s", "name": "slow", "input": {"seconds": 60}}]})
    where = ["--url", shell.url, "--tenant", "left"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with shell.start("run", document, "--app", "shop:app", *where, **pipes) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "working\n"
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)
    (job,) = shell.json("jobs", "ls", *where)["jobs"]
    command = f"ostinato worker shop:app --url {shlex.quote(shell.url)} --tenant left"
    assert said == f"job {job['jobId']} goes on when a worker runs: {command}\n"
    shell.run("jobs", "cancel", job["jobId"], *where)


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
