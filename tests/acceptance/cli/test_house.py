"""Keeping house: `ostinato doctor`, `workers`, `functions`, `encryption` and `prune`."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw

from tests.acceptance.cli.support import FINE, Shell, stop


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


def opened(path: Path) -> Any:
    return apsw.Connection(str(path))


def test_doctor_does_not_call_a_damaged_file_durable(tmp_path: Path) -> None:
    """F-3: a page is overwritten that nothing else reads, and the exit code says so too."""
    path = tmp_path / "test.db"
    shell = Shell(tmp_path, f"sqlite:///{path}")
    shell.run("doctor", "--migrate")
    assert re.search(r"^damage +none found \(looked at (\d+) of \1 tables\)$", shell.run("doctor"), re.M)
    assert re.search(r"^triggers +all triggers are there$", shell.run("doctor"), re.M)
    with contextlib.closing(opened(path)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'edge'")
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xaa" * 4096)
    found = shell.run("doctor", code=1)
    assert re.search(r"^durable +NO", found, re.M)
    assert re.search(r"^damage +FOUND: ", found, re.M)
    answer = shell.json("doctor", code=1)
    assert answer["database"]["durable"] is False
    assert answer["damage"]["found"]
    assert any("the database is damaged" in warning for warning in answer["warnings"])


def test_doctor_misses_triggers(tmp_path: Path) -> None:
    """A-6: a database that no longer refuses illegal moves is not called durable."""
    path = tmp_path / "test.db"
    shell = Shell(tmp_path, f"sqlite:///{path}")
    shell.run("doctor", "--migrate")
    with contextlib.closing(opened(path)) as connection:
        connection.execute("DROP TRIGGER job_move")
    assert re.search(r"^triggers +the trigger job_move is missing$", shell.run("doctor", code=1), re.M)
    answer = shell.json("doctor", code=1)
    assert answer["triggers"] == ["the trigger job_move is missing"]
    assert answer["database"]["durable"] is False


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
    (queue,) = shell.json("doctor")["queues"]
    assert datetime.datetime.fromisoformat(queue["oldestReadyAt"]).tzinfo is not None


def test_workers_and_functions_are_listed(shell: Shell) -> None:
    worker = shell.work()
    try:
        assert re.search(rf" alive +\S+:{worker.pid} +default ", shell.run("workers"))
        assert worker.pid in [item["pid"] for item in shell.json("workers")["workers"] if item["alive"]]
    finally:
        stop(worker)
    assert re.search(r"^scrape +2 +none ", shell.run("functions"), re.M)
    assert {"approve", "scrape", "slow"} <= {f["name"] for f in shell.json("functions")["functions"]}


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
    recorded = shell.json("audit", "--log", *tenant)["entries"]
    for days in ("-1.0", "nan", "1e+300"):
        said = shell.run("prune", "--older-than", days, *tenant, code=2)
        assert said == f"error: --older-than must be a number of days, 0 or more, not {days}\n"
    assert shell.json("audit", "--log", *tenant)["entries"] == recorded


def test_b11_the_retention_is_shown_and_set(shell: Shell) -> None:
    """B11: for every process at once, with `--json` too, and in the audit log."""
    tenant = ["--tenant", "kept", "--url", shell.url]
    shell.run("run", "shop:document", *tenant)
    assert shell.run("retention", "show", *tenant) == (
        "finished jobs: kept for ever\ntheir idempotency keys: kept for ever\n"
    )
    assert shell.json("prune", *tenant) == {"removed": 0}
    assert shell.json("retention", "set", "--jobs", "0", "--keys", "1.5", *tenant) == {"jobs": 0, "keys": 129_600}
    assert shell.json("prune", *tenant) == {"removed": 1}
    assert shell.run("retention", "set", "--jobs", "forever", *tenant) == (
        "finished jobs: kept for ever\ntheir idempotency keys: 1.5 days after that\n"
    )
    assert shell.json("retention", "show", *tenant) == {"jobs": None, "keys": 129_600}
    assert "is not a number of days" in shell.run("retention", "set", "--jobs", "soon", *tenant, code=2)
    assert "--jobs DAYS" in shell.run("retention", "set", *tenant, code=2)
    log = shell.json("audit", "--log", *tenant)["entries"]
    assert [entry["action"] for entry in log].count("retention.set") == 2
