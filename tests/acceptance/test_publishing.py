"""The example of the articles: from the feed to publication, as a program, and as its README says."""

from __future__ import annotations

import itertools
import json
import os
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

from ostinato import EngineOptions, Ostinato, audit, definition_files
from ostinato.core import courses, item_filters
from ostinato.pipelines import definition
from ostinato.store.items import Moved

FOLDER = Path(__file__).parents[2] / "examples" / "publishing"
FEED: list[dict[str, str]] = json.loads((FOLDER / "articles" / "feed.json").read_text())
ENDS = {"lost-and-found": 510, "otters-in-the-mill": 520, "win-a-kitchen": 530, "weather-note": 530}
REVIEWED = "nurses-and-sleep", "otters-in-the-mill-race", "tram-line-seven"


def run(folder: Path, url: str, *arguments: str, said: str = "") -> str:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "main.py"), *arguments],
        cwd=folder,
        env=os.environ | {"OSTINATO_URL": url},
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def answers(folder: Path, url: str) -> str:
    """What the reviewer says, one line after the other: who is asked about first is seen by leaving all."""
    shown = run(folder, url, "--ask", said="l\n" * len(FEED))
    titles = {one["title"]: one["id"] for one in FEED}
    asked = [titles[found] for found in re.findall(r"^(.*) \[\d+; .*\]$", shown, re.M)]
    assert len(asked) == len(FEED) - len(ENDS)
    choice = dict(zip(REVIEWED, ("a\nwell told\n", "r\ntold before\n", "e\nshorter\n"), strict=True))
    return "".join(choice.get(item_id, "l\n") for item_id in asked)


def looking(url: str) -> Ostinato:
    return Ostinato(url, options=EngineOptions(work=False, check_functions=False))


async def history(app: Ostinato, item_id: str) -> list[Moved]:
    return await app.pipelines.history(item_id)


async def test_articles_go_from_the_feed_to_publication(tmp_path: Path, url: str) -> None:
    """B1, B2, B3, B5, B8, B9, B12: agents without memory, inside of an order that does not depend on them.

    Each run reads prompts, taxonomy and feed anew; nothing that is remembered is needed to do it once more.
    """
    shown = run(tmp_path, url)
    assert shown.startswith(f"discovered: {len(FEED)} new articles\n")
    assert "510 unreachable  (there is no lost-and-found.txt)" in shown
    async with looking(url) as app:
        items = {item.item_id: item for item in await app.pipelines.list(item_filters.ItemFilter("publishing"))}
        assert {item_id: item.status for item_id, item in items.items()} == {
            one["id"]: ENDS.get(one["id"], 300) for one in FEED
        }
        await check_results(app, items["tram-line-seven"])
        without = [move.to_code for move in await history(app, "nurses-and-sleep")]
        assert without[-4:] == [230, 231, 240, 300]
    for picture in (tmp_path / "thumbnails").iterdir():
        check_picture(picture.read_bytes())
    assert not (tmp_path / "thumbnails" / "nurses-and-sleep.png").exists()
    assert run(tmp_path, url).startswith("discovered: 0 new articles\n")


async def check_results(app: Ostinato, item: Any) -> None:
    results = await app.pipelines.results(item)
    prompts = {name: result["prompt"] for name, result in results.items() if "prompt" in result}
    prompts["screen"] = results["score"]["screened"]["prompt"]
    assert prompts == {
        "screen": "screener@2",
        "score": "scorer@3",
        "summarize": "summarizer@4",
        "tag": "tagger@1",
        "thumbnail": "thumbnailer@1",
    }
    assert results["tag"]["key"] == "tram-line-seven:tag:1"
    assert results["tag"]["tags"] == ["city"]
    assert set(results["tag"]["evidence"]["city"]) >= {"council", "mayor", "tram"}
    assert results["summarize"]["summary"].startswith("From the first of May, tram line 7 runs until midnight")


def check_picture(data: bytes) -> None:
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    size = struct.unpack(">I", data[33:37])[0]
    assert len(zlib.decompress(data[41 : 41 + size])) == height * (1 + 3 * width)


async def test_a_person_publishes_rejects_and_wants_it_done_again(tmp_path: Path, url: str) -> None:
    """B11, B19: by the person, with what they said; and what is rejected leaves nothing behind."""
    run(tmp_path, url)
    assert (tmp_path / "thumbnails" / "otters-in-the-mill-race.png").exists()
    run(tmp_path, url, "--ask", said=answers(tmp_path, url))
    async with looking(url) as app:
        last = {item_id: (await history(app, item_id))[-1] for item_id in REVIEWED[:2]}
        assert [(last[one].to_code, last[one].moved_by, last[one].reason) for one in REVIEWED[:2]] == [
            (400, "the editor", "well told"),
            (540, "the editor", "told before"),
        ]
        again = [move.to_code for move in await history(app, "tram-line-seven") if move.run == 2]
        assert (again[0], again[-1], 111 in again) == (200, 300, False)
        assert not (await audit.audit(app.engine.store)).problems
    assert not (tmp_path / "thumbnails" / "otters-in-the-mill-race.png").exists()


async def test_an_editor_who_goes_away_leaves_the_rest_for_later(tmp_path: Path, url: str) -> None:
    run(tmp_path, url)
    shown = run(tmp_path, url, "--ask", said="l\na\n")  # and then Ctrl-D, in the midst of a decision
    assert re.search(rf"^ +{len(FEED) - len(ENDS)} +300 pending_review$", shown, re.M)


async def test_who_is_killed_goes_on_where_they_were(tmp_path: Path, url: str) -> None:
    """As the README says: nothing that was done is done again."""
    command = [sys.executable, str(FOLDER / "main.py")]
    environment = os.environ | {"OSTINATO_URL": url}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        next(line for line in program.stdout if "211 summarizing" in line)
        program.kill()
    shown = run(tmp_path, url)
    assert shown.startswith("discovered: 0 new articles\n")
    async with looking(url) as app:
        items = await app.pipelines.list(item_filters.ItemFilter("publishing"))
        assert {item.item_id: item.status for item in items} == {one["id"]: ENDS.get(one["id"], 300) for one in FEED}
        for item in items:
            told = await (await app.job(f"{item.item_id}:1")).events()
            done = [event.task_id for event in told if event.type == "Task Completed"]
            assert len({*done}) == len(done)
        assert not (await audit.audit(app.engine.store)).problems


def test_the_readme_shows_the_pipeline_as_it_is(tmp_path: Path) -> None:
    """B8, B8a, B9: all 29 statuses and every legal move. If this fails, run `main.py --diagram`."""
    drawn = run(tmp_path, "sqlite:///unused.db", "--diagram")
    assert (FOLDER / "README.md").read_text().endswith(drawn)
    statuses = re.findall(r'^ +state "\d+ \w+" as s\d+$', drawn, re.M)
    assert len(statuses) == 29
    shown = {
        (int(cells[0].split()[0]), int(after))
        for cells in re.findall(r"^\| (\d+ \w+) \| (.*) \| (.*) \| (.*) \|$", drawn, re.M)
        for part in cells[1:]
        for after in part.replace("–", "").split(", ")
        if after
    }
    assert shown == {move for move in seeded().moves if move[0] != courses.NOWHERE}
    chain = [100, 110, 111, 112, 120, 121, 122, 200, 210, 211, 212, 220, 221, 222, 230, 231, 232, 240, 300]
    assert {*itertools.pairwise(chain), (300, 310), (310, 320), (320, 400), (400, 410)} <= shown
    assert {(300, 400), (300, 540), (300, 200), (400, 200)} <= shown


def seeded() -> courses.Course:
    found = definition_files.read((FOLDER / "pipeline.yaml").read_bytes(), "pipeline.yaml")
    return courses.Course(definition.read(found[0].document), 1)
