"""`ostinato pipelines` and `ostinato items`."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.cli.support import Shell, stop
from tests.pipelines.support import Newsroom, publishing

ROOM = """
from ostinato import Ostinato, errors

app = Ostinato("sqlite:///never-used.db")

def work(name):
    @app.step(name)
    async def run(item, results):
        if item["title"] == name:
            raise errors.TerminalError(f"{name} is down")
        return {"by": name}

for name in ("fetch", "score", "summarize", "tag", "thumbnail"):
    work(name)

@app.step("forget")
async def forget(item_id):
    pass
"""
ME = f"cli:{pwd.getpwuid(os.getuid()).pw_name}"


@pytest.fixture(scope="module")
def room(shell: Shell) -> Iterator[Shell]:
    """A worker that knows the steps, and the pipeline."""
    shell.write("room.py", ROOM)
    worker = shell.start("worker", "room:app", "--url", shell.url, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert worker.stdout.readline().startswith("ready: ")
    shell.run("pipelines", "apply", shell.write("publishing.json", publishing()), "--yes")
    yield shell
    stop(worker)


def enter(shell: Shell, item_id: str, title: str = "News", *options: str) -> None:
    said = shell.run("items", "enter", "publishing", "-", "--id", item_id, *options, stdin=json.dumps({"title": title}))
    assert said == f"{item_id}\n"


def reaches(shell: Shell, item_id: str, status: str) -> dict[str, Any]:
    end = time.monotonic() + 30
    while (found := shell.json("items", "show", item_id))["status"] != status:
        assert time.monotonic() < end, found
    return found


def test_a_pipeline_from_its_definition_to_its_moves(room: Shell) -> None:
    steps = ", ".join(Newsroom.STEPS)
    assert re.search(rf"^publishing +29 +{steps} +review +1 ", room.run("pipelines", "ls"), re.M)
    room.write("publishing2.json", publishing(description="Ours"))
    assert '+  "description": "Ours"' in room.run("pipelines", "apply", "publishing2.json", "--yes")
    assert room.json("pipelines", "rollback", "publishing", "1")["version"] == 3
    assert [one["version"] for one in room.json("pipelines", "versions", "publishing")["versions"]] == [3, 2, 1]
    assert room.json("pipelines", "show", "publishing")["definition"]["failed"] == "failed"
    moves = room.run("pipelines", "moves", "publishing")
    assert re.search(r"^\(entered\) +100 discovered +enter$", moves, re.M)
    assert re.search(r"^300 pending_review +540 rejected +review$", moves, re.M)
    assert not re.search("again$", moves, re.M)
    assert re.search(r"^500 failed +220 to_tag +again$", room.run("pipelines", "moves", "publishing", "--all"), re.M)
    assert room.run("pipelines", "moves", "publishing", "--mermaid").startswith("stateDiagram-v2\n")
    assert room.json("pipelines", "moves", "publishing", "--at-version", "2")["version"] == 2
    assert "did you mean 'publishing'?" in room.run("pipelines", "moves", "publising", code=3)
    assert "no version 9" in room.run("pipelines", "moves", "publishing", "--at-version", "9", code=3)


def test_retry_policies(room: Shell) -> None:
    told = room.run("pipelines", "retry", "publishing")
    assert re.search(r"^tag +4 +1 min, 2 min, 4 min$", told, re.M)
    changed = room.run("pipelines", "retry", "publishing", "tag", "--attempts", "4", "--delay", "5")
    assert re.search(r"^tag +4 +5\.0 s, 10 s, 20 s +changed$", changed, re.M)
    assert room.json("pipelines", "retry", "publishing", "tag", "--reset")["policies"][0]["changed"] is False
    assert "did you mean 'tag'?" in room.run("pipelines", "retry", "publishing", "tagg", "--reset", code=3)
    assert "which step" in room.run("pipelines", "retry", "publishing", "--attempts", "4", code=2)
    assert "retry.maxAttempts" in room.run("pipelines", "retry", "publishing", "tag", "--attempts", "0", code=2)


def test_an_item_from_its_entry_to_its_publication(room: Shell) -> None:
    enter(room, "a1")
    shown = reaches(room, "a1", "pending_review")
    assert (shown["sentence"], shown["submittedBy"]) == ("Waits for people to decide in review", ME)
    text = room.run("items", "show", "a1")
    assert re.search(r"^status +300 pending_review \(review\)$", text, re.M)
    assert re.search(r'^tag +completed +1 +[\d.]+ m?s +\{"by":"tag"\}$', text, re.M)
    assert re.search(r"^1 +a1:1 +running ", text, re.M)
    assert re.search(r"^a1 +300 pending_review .* Waits for people", room.run("items", "ls", "publishing"), re.M)
    moved = room.run("items", "move", "a1", "in_review", "--reason", "mine")
    assert moved.startswith("a1 is 310 in_review, in run 1")
    assert "nobody moves it to 400" in room.run("items", "move", "a1", "published", code=1)
    again = room.json("items", "decide", "a1", "re-enrich", "--notes", "once more", "--payload", '{"title": "Better"}')
    assert again["answer"]["state"] == "re-enrich"
    assert reaches(room, "a1", "pending_review")["run"] == 2
    assert room.run("items", "decide", "a1", "approve", "--notes", "good").startswith("a1 is 400 published")
    over = room.json("items", "show", "a1")
    assert (over["reviewedBy"], over["payload"]) == (ME, {"title": "Better"})
    history = room.run("items", "history", "a1")
    assert re.search(rf"^\d+ +300 pending_review +400 published .* {ME} +good$", history, re.M)
    assert re.search(r"^\d+ +220 to_tag +221 tagging .* a1:tag:1", history, re.M)
    page = room.json("items", "history", "a1", "--limit", "2")
    assert ([one["code"] for one in page["moves"]], page["after"]) == ([100, 110], 2)
    assert "nobody is asked" in room.run("items", "decide", "a1", "approve", code=1)
    assert "'nothing'" in room.run("items", "show", "nothing", code=3)
    assert room.json("pipelines", "health", "publishing")["statuses"]
    assert re.search(r"^400 published +publication +\d+$", room.run("pipelines", "health", "publishing"), re.M)


def test_a_step_that_was_left_out_and_a_run_that_was_cancelled(room: Shell) -> None:
    """B19, B23: both are in the history, with who and why."""
    document = publishing(name="choosy")
    document["course"][2]["when"] = "item.title != 'News'"
    room.write("choosy.json", document)
    room.run("pipelines", "apply", "choosy.json", "--yes")
    assert re.search(
        r"^112 fetched +200 pending_enrichment +skip$", room.run("pipelines", "moves", "choosy", "--all"), re.M
    )
    room.run("items", "enter", "choosy", "-", "--id", "c1", stdin='{"title": "News"}')
    reaches(room, "c1", "pending_review")
    room.run("jobs", "cancel", "c1:1", "--reason", "stop it")
    text = room.run("items", "show", "c1")
    assert f"Cancelled by {ME}: stop it" in text
    assert re.search(r"^score +skipped +only if item.title != 'News'$", text, re.M)
    history = room.run("items", "history", "c1")
    assert re.search(r"^\d+ +112 fetched +skipped score .* its condition is false$", history, re.M)
    assert re.search(rf"^\d+ +300 pending_review +500 failed .* {ME} +cancelled: stop it$", history, re.M)


def test_held_items_single_steps_and_many_at_once(room: Shell) -> None:
    lines = "\n".join(json.dumps({"itemId": f"h{n}", "payload": {"title": "score"}}) for n in range(3))
    assert room.run("items", "enter", "publishing", "-", "--many", "--hold", stdin=lines) == "h0\nh1\nh2\n"
    assert "h0 (was there before)" in room.run("items", "enter", "publishing", "-", "--many", "--hold", stdin=lines)
    assert len(room.json("items", "ls", "publishing", "--held")["items"]) == 3
    assert room.run("pipelines", "process", "publishing", "--most", "2") == "begun: 2 items\n"
    for item_id in ("h0", "h1"):
        assert reaches(room, item_id, "failed")["lastError"]["message"] == "score is down"
    room.run("items", "restart", "h2", "fetch", "--only")
    assert reaches(room, "h2", "fetched")["sentence"].startswith("Rests at fetched")
    filtered = ("items", "bulk", "publishing", "restart", "--status", "failed", "--at", "score")
    tried = room.run(*filtered, "--dry-run")
    assert re.search(r"^h0 +500 failed +possible$", tried, re.M)
    assert tried.endswith("would be done: 2 of 2\n")
    assert "confirm with --yes" in room.run(*filtered, code=2)
    assert "score, summarize of it is not done" in room.run(*filtered[:-1], "tag", "--dry-run", code=1)
    done = room.json(*filtered, "--reason", "again", "--yes")
    assert {one["itemId"]: one["outcome"] for one in done["items"]} == {"h0": "done", "h1": "done"}
    for item_id in ("h0", "h1"):
        assert reaches(room, item_id, "failed")["run"] == 2
    assert room.run("pipelines", "process", "publishing", "--status", "failed", "--most", "2") == "begun: 2 items\n"
    for item_id in ("h0", "h1"):
        assert reaches(room, item_id, "failed")["run"] == 3
    assert room.run("pipelines", "process", "publishing", "--retrying") == "begun: 0 items\n"
    room.run("items", "restart", "h0", "score", "--payload", '{"title": "Fine"}')
    reaches(room, "h0", "pending_review")
    assert "confirm with --yes" in room.run("items", "roll-back", "h0", code=2)
    assert room.run("items", "roll-back", "h0", "--yes", "--reason", "no").startswith("h0 is 500 failed")
    room.run("pipelines", "apply", room.write("publishing.json", publishing(description="New")), "--yes")
    newest = room.json("pipelines", "show", "publishing")["version"]
    assert "can go on" in room.run("items", "migrate", "h2", str(newest), "--dry-run")
    assert room.run("items", "migrate", "h2", str(newest)).endswith(f"of version {newest}\n")
    for bad in (
        ("items", "ls", "publishing", "--status", "nowhere"),
        ("pipelines", "process", "publishing", "--status", "failed", "--retrying"),
        ("items", "bulk", "publishing", "explode"),
        ("items", "bulk", "publishing", "decide", "--dry-run"),
        ("items", "restart", "h2", "nowhere"),
        ("items", "show", "a:b"),
        ("items", "enter", "publishing", "-", "--id", "not:ok"),
    ):
        assert room.run(*bad, code=2, stdin="{}").startswith("error: ")
