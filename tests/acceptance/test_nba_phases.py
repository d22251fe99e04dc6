"""The example of the two gates: one date through both phases, on both databases, and again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from devtools import programs
from ostinato import Ostinato

FOLDER = Path(__file__).parents[2] / "examples" / "nba_phases"
DATE = "2025-11-29"
CHANGED = {"players": ["lebron-james", "stephen-curry", "jayson-tatum"], "teams": ["LAL", "GSW", "BOS"]}


def environment(url: str) -> dict[str, str]:
    return os.environ | {"OSTINATO_URL": url, "COLUMNS": "120"}


def run(folder: Path, url: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(url),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ostinato(folder: Path, url: str, *arguments: str) -> Any:
    done = programs.run_command([*arguments, "--json"], cwd=folder, env=environment(url))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


async def test_one_date_runs_through_both_phases(tmp_path: Path, url: str) -> None:
    out = run(tmp_path, url, str(FOLDER / "main.py"), DATE)
    told = [out.index(words) for words in ("before:", "half-way:", "when all had reported:", "at the end:")]
    assert told == sorted(told)
    assert "0/21" in out.partition("half-way:")[0]
    assert re.search(r"phase2-to-phase3 +│ 21/21 +│ open +│ phase3-analytics +│ 5/5 ", out)
    assert re.search(r"phase3-to-phase4 +│ 5/5 +│ open +│ phase4-precompute +│ 1/1 ", out)
    assert "{'failed': 1, 'arrived': 21, 'duplicate': 5}" in out
    correlation_id = re.findall(r"for (run-\w{8}):", out)[0]
    await assert_once(url, correlation_id)

    again = run(tmp_path, url, str(FOLDER / "main.py"), DATE)
    assert "{'duplicate': 27}" in again
    await assert_once(url, correlation_id)

    status = ostinato(tmp_path, url, "gates", "show", "phase3-to-phase4", DATE)
    assert (status["status"], status["missing"], status["correlationIds"]) == ("open", [], [correlation_id])
    assert ostinato(tmp_path, url, "gates", "missing", "phase2-to-phase3", DATE)["missing"] == []
    assert len(ostinato(tmp_path, url, "rules", "show", "analytics-report")["jobs"]) == 5
    for group, where in (("gates", FOLDER), ("rules", FOLDER / "rules")):
        applied = ostinato(tmp_path, url, group, "apply", str(where))
        assert {item["action"] for item in applied[group]} == {"unchanged"}


async def assert_once(url: str, correlation_id: str) -> None:
    """Each phase was started once, by what all had reported, and everything belongs to the run that began it."""
    app = Ostinato(url)
    async with app:
        [third] = await app.jobs(name="phase3-analytics")
        [fourth] = await app.jobs(name="phase4-precompute")
        [first] = await app.jobs(name="gate:phase2-to-phase3")
        [second] = await app.jobs(name="gate:phase3-to-phase4")
        assert {job.correlation_id for job in (first, second, third, fourth)} == {correlation_id}
        assert {job.state for job in (first, second, third, fourth)} == {"completed"}
        task = await (await app.job(third.job_id)).task("PlayerGameSummaryProcessor")
        assert task.input == {"game_date": DATE, "record_count": sum(range(100, 121))}
        task = await (await app.job(fourth.job_id)).task("precompute")
        assert task.input == {"game_date": DATE, "entities_changed": CHANGED, "correlation_id": correlation_id}
        assert task.output["features"] == 72
