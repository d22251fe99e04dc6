"""Every article of the feed through the pipeline, up to the person who decides; moves are shown as they are made.

python main.py                # discover, enrich, and say what waits for a review
python main.py --ask          # then ask about each of them: approve, reject, enrich again, or leave it
python main.py --diagram      # the pipeline, as README.md shows it

Stop it wherever you like, also with `kill -9`, and run it again: it goes on where it was, and nothing is done twice.
Each article is one item, by the id that it has in the feed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import steps
from app import app

from ostinato.core import courses, events, item_filters
from ostinato.pipelines import definition, diagram

REVIEW = 300
ANSWERS = {"a": "approve", "r": "reject", "e": "re-enrich"}
REVIEWER = "the editor"


def course() -> courses.Course:
    return courses.Course(definition.read(steps.read_yaml("pipeline.yaml")), 1)


async def follow(since: str, wanted: set[str]) -> None:
    """Print the moves of items as they are committed, until all that are wanted are over or wait for a person."""
    names, at_work = course().names, set(wanted)
    if not at_work:
        return
    async for one in app.tail(cursor=since):
        if one.event.type == events.ITEM_MOVED:
            move = json.loads(one.event.data)
            show(names, move)
            if move["code"] >= REVIEW:
                at_work.discard(move["item"])
            if not at_work:
                return


def show(names: dict[int, str], move: dict[str, Any]) -> None:
    why = f"  ({move['reason']})" if move.get("reason") else ""
    print(f"{move['item']:<28} {' → '.join(str(code) for code in move['path'])} {names[move['code']]}{why}", flush=True)


async def run() -> None:
    """Discover, and wait until every article is over or waits for a person; also those that an earlier run has left."""
    since = await app.newest_cursor()
    created = set(await steps.discover(app))
    print(f"discovered: {len(created)} new articles", flush=True)
    found = await app.pipelines.list(item_filters.ItemFilter(steps.PIPELINE), most=200)
    under_way = {item.item_id for item in found if item.status < REVIEW}
    if under_way - created:
        print(f"under way: {len(under_way - created)} articles of an earlier run", flush=True)
    await follow(since, under_way)


async def waiting() -> list[str]:
    page = await app.pipelines.list(item_filters.ItemFilter(steps.PIPELINE, status=REVIEW))
    return [item.item_id for item in page]


async def taken_back() -> None:
    """Wait until what was rejected has left nothing behind."""
    for undo in await app.jobs(name=f"undo:{steps.PIPELINE}", state="running"):
        await (await app.job(undo.job_id)).result()


async def ask_about_all() -> None:
    """One after the other, until there is nobody left to answer (Ctrl-D)."""
    try:
        for item_id in await waiting():
            await ask(item_id)
    except EOFError:
        print()


async def ask(item_id: str) -> None:
    item, payload = await app.pipelines.item(item_id)
    results = await app.pipelines.results(item)
    tags = ", ".join(results["tag"]["tags"])
    print(f"\n{payload['title']} [{results['score']['score']}; {tags}]\n  {results['summarize']['summary']}")
    answer = await asyncio.to_thread(input, "approve, reject, enrich again, leave (a/r/e/l)? ")
    if answer in ANSWERS:
        notes = await asyncio.to_thread(input, "why? ")
        since = await app.newest_cursor()
        await app.pipelines.decide(item_id, ANSWERS[answer], actor=REVIEWER, notes=notes or None)
        await follow(since, {item_id})


async def report() -> None:
    names = course().names
    counts: dict[int, int] = {}
    for item in await app.pipelines.list(item_filters.ItemFilter(steps.PIPELINE), most=200):
        counts[item.status] = counts.get(item.status, 0) + 1
    for code, count in sorted(counts.items()):
        print(f"{count:>4}  {code} {names[code]}")


async def main(asks: bool) -> None:
    async with app:
        await run()
        if asks:
            await ask_about_all()
        await taken_back()
        await report()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ask", action="store_true", help="review what waits, here")
    parser.add_argument("--diagram", action="store_true", help="draw the pipeline")
    chosen = parser.parse_args()
    if chosen.diagram:
        print(f"```mermaid\n{diagram.mermaid(course())}```\n\n{diagram.table(course())}")
    else:
        asyncio.run(main(chosen.ask))
