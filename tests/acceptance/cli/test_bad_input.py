"""What cannot be done gets a sentence and a code of its own."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import pytest

from devtools import postgres as pg
from tests.acceptance.cli.support import Shell


def test_unknown_things_are_not_found(shell: Shell) -> None:
    assert shell.run("jobs", "show", "nope", code=3) == "error: there is no job 'nope'\n"
    assert shell.json("jobs", "watch", "nope", code=3)["error"] == {
        "code": "job_not_found",
        "message": "there is no job 'nope'",
        "jobId": "nope",
    }
    assert "no task 'nope' in job 'fine-1'" in shell.run("tasks", "show", "fine-1", "nope", code=3)
    assert shell.json("signal", "nope", "ok", code=3)["error"]["code"] == "job_not_found"


def test_tasks_in_a_state_that_there_is_not_are_no_empty_list(shell: Shell) -> None:
    said = shell.json("jobs", "show", "fine-1", "--state", "blue", code=2)["error"]["message"]
    assert said.startswith("state must be one of blocked, pending, ")
    assert "no tasks" in shell.run("jobs", "show", "fine-1", "--state", "failed")


BAD_INPUT: list[tuple[list[str], str, str]] = [
    (["jobs", "submit", "missing.json"], "", "there is no file 'missing.json'"),
    (["jobs", "submit", "."], "", "the file '.' cannot be read"),
    (["jobs", "submit", "-"], "{", "the job on stdin is not valid JSON"),
    (["jobs", "submit", "-"], "17", "is not a job document"),
    (["jobs", "submit", "-"], '{"tasks": [{"taskId": "a", "name": "never-heard-of"}]}', "never-heard-of"),
    (["jobs", "submit", "-"], "[" * 100_000, "nested deeper than 256 levels"),
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
    (["jobs", "resume", "x", "--input", 'b={"x": 1}', "--input", 'b={"x": 2}'], "", "two inputs for task 'b'"),
    (["signal", "x", "ok", "{"], "", "not valid JSON"),
    (["events"], "", "either a JOB, or --all"),
    (["events", "--all", "--cursor", "x"], "", "is not a cursor"),
    (["events", "--all", "--task", "A"], "", "for the events of one JOB"),
    (["events", "--all", "--after", "3"], "", "for the events of one JOB"),
    (["events", "x", "--cursor", "1.0.1"], "", "--cursor is for --all"),
    (["events", "x", "--follow", "--limit", "3"], "", "leave out --limit"),
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


@pytest.mark.parametrize("arguments", [["--version"], ["jobs", "ls"], ["jobs", "ls", "--json"]], ids=str)
def test_output_that_nobody_can_take_gets_a_sentence(sqlite_shell: Shell, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        started = sqlite_shell.start(*arguments, stdout=full, stderr=subprocess.PIPE)
        _, said = started.communicate()
    assert (started.returncode, "No space left on device" in said, "Traceback" in said) == (1, True, False), said


@pytest.mark.parametrize(
    ("closed", "arguments", "code", "sentence"),
    [
        (">&-", "jobs ls", 0, ""),
        (">&- 2>&-", "jobs show nope", 3, ""),
        ("<&-", "jobs submit -", 2, "the job on stdin is not valid JSON"),
    ],
)
def test_streams_may_be_closed(sqlite_shell: Shell, closed: str, arguments: str, code: int, sentence: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {sys.executable} -m ostinato.cli.main {arguments} {closed}"],
        cwd=sqlite_shell.folder,
        env=sqlite_shell.environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, sentence in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr


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


def test_a_database_of_another_program_is_none(empty_postgres_url: str, tmp_path: Path) -> None:
    async def write_theirs() -> None:
        link = await asyncpg.connect(empty_postgres_url)
        await link.execute("CREATE TABLE job (x int)")
        await link.close()

    pg.run_in_thread(write_theirs())
    shell = Shell(tmp_path, empty_postgres_url)
    said = shell.json("doctor", "--migrate", code=4)["error"]["message"]
    assert said.startswith("the database belongs to another program: choose an empty one")
