"""A worker killed with SIGKILL in every step of an item: it ends right, and no agent that answered is asked again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ostinato import EngineOptions, Ostinato, audit
from tests.acceptance import killable_pipeline
from tests.acceptance.killable_pipeline import ITEM, STEPS

ROOT = Path(__file__).parents[2]
UNDONE = ("undo-tag", "undo-summarize")


def work(url: str, calls: Path, victim: str, when: str) -> int:
    command = [sys.executable, "-m", "tests.acceptance.killable_pipeline", url, str(calls), victim, when]
    return subprocess.run(command, cwd=ROOT, timeout=60, check=False, stdout=subprocess.DEVNULL).returncode


@pytest.mark.parametrize("victim", [*STEPS, UNDONE[-1]])
async def test_an_item_goes_on_where_it_was_killed(url: str, tmp_path: Path, victim: str) -> None:
    """X7, B16, B18: before the agent was asked, and after: once it has answered, it is not asked again."""
    calls = tmp_path / "calls"
    when = "before" if victim in ("fetch", "tag") else "after"
    assert work(url, calls, victim, when) == -signal.SIGKILL
    assert work(url, calls, "-", "-") == 0
    asked = calls.read_text().split()
    expected = dict.fromkeys((*STEPS, *UNDONE), 1)
    if when == "after" and victim in UNDONE:
        expected[victim] = 2  # it had not said so yet
    counted = {name: asked.count(name) for name in expected}
    beside = {"tag": "thumbnail", "thumbnail": "tag"}.get(victim)
    if beside is not None:  # it was at work at that instant too, and may not have been heard
        assert 1 <= counted.pop(beside) <= 2
        expected.pop(beside)
    assert counted == expected
    async with Ostinato(url, options=EngineOptions(work=False, check_functions=False)) as app:
        item, _ = await app.pipelines.item(ITEM)
        assert (item.status, item.reviewed_by) == (540, "rita")
        moves = await app.pipelines.history(ITEM)
        course = await app.pipelines.course("publishing", 1)
        assert all((move.from_code, move.to_code) in course.moves for move in moves)
        assert [one.to_code for one in moves[:-1]] == [other.from_code for other in moves[1:]]
        done = [e.task_id for e in await (await app.job(f"{ITEM}:1")).events() if e.type == "Task Completed"]
        assert sorted(done) == sorted(killable_pipeline.STEPS)
        assert not (await audit.audit(app.engine.store)).problems
