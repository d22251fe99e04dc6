"""`ostinato audit`: of the rows, and the log of who did what."""

from __future__ import annotations

import asyncio
import json

from tests.acceptance.cli.support import FINE, Shell
from tests.engine.support import sql


def test_audit_finds_nothing(shell: Shell) -> None:
    assert shell.run("audit").endswith(" events checked: 0 problems\n")
    assert shell.json("audit")["problems"] == []


def test_audit_goes_on_after_a_job_of_which_something_is_missing(shell: Shell) -> None:
    where = ["--tenant", "damaged", "--url", shell.url]
    large = {"taskId": "A", "name": "scrape", "input": {"store": "x" * 40_000}}
    shell.write("large.json", {"jobId": "large-1", "tasks": [large]})
    shell.write("other.json", FINE | {"jobId": "other-1"})
    for name in ("large.json", "other.json"):
        shell.run("run", name, "--app", "shop:app", *where)
    asyncio.run(sql(shell.url, "DELETE FROM blob WHERE tenant = 'damaged'"))
    answer = shell.json("audit", *where, code=1)
    asyncio.run(sql(shell.url, "DELETE FROM job WHERE tenant = 'damaged'"))  # of which other tests know nothing
    ((invariant, job_id),) = [(problem["invariant"], problem["jobId"]) for problem in answer["problems"]]
    assert (invariant, job_id, answer["jobs"]) == ("I4", "large-1", 1)


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
