"""The steps of the pipeline: each gives an agent what it has to know, and says what came of it.

Prompts, taxonomy and feed are read anew each time: nothing is remembered between two runs. A result says under which
key it was made (`item:step:attempt`) and from which version of the prompt.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from ostinato import Context, Ostinato, TerminalError, definition_files
from ostinato.reactions.pipelines import NewItem

try:
    from publishing import agents
except ImportError:  # as a program of its own
    import agents  # type: ignore[no-redef]

FOLDER = Path(__file__).parent
PIPELINE = "publishing"


def read_yaml(name: str) -> dict[str, Any]:
    return definition_files.read((FOLDER / name).read_bytes(), name)[0].document


def articles() -> Path:
    return Path(os.environ.get("PUBLISHING_ARTICLES", FOLDER / "articles"))


def thumbnails() -> Path:
    """Where pictures are written."""
    return Path(os.environ.get("PUBLISHING_THUMBNAILS", "thumbnails"))


def feed() -> list[dict[str, str]]:
    return json.loads((articles() / "feed.json").read_text())


def load(file: str) -> dict[str, str]:
    """The head of an article, and its text."""
    head, _, text = (articles() / file).read_text().partition("\n\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    return {"title": fields["Title"], "picture": fields.get("Picture", "drawn"), "text": text.strip()}


def earlier(number: int) -> dict[str, str]:
    """The articles before this one in the feed, as far as they can be read."""
    found: dict[str, str] = {}
    for entry in feed()[:number]:
        with contextlib.suppress(FileNotFoundError):
            found[entry["id"]] = load(entry["file"])["text"]
    return found


def told(ctx: Context, item_id: str, agent: str, prompt: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    key = f"{item_id}:{ctx.task_id}:{ctx.attempt}"
    return {"key": key, "prompt": f"{agent}@{prompt['version']}", **answer}


async def fetch(ctx: Context, item: dict[str, Any]) -> dict[str, str]:
    try:
        return load(item["file"])
    except FileNotFoundError:
        await ctx.finish("unreachable", f"there is no {item['file']}")


async def score(ctx: Context, item: dict[str, Any], item_id: str, results: dict[str, Any]) -> dict[str, Any]:
    prompts, text = read_yaml("prompts.yaml"), results["fetch"]["text"]

    def screen() -> dict[str, Any]:
        found = agents.screener(prompts["screener"], text, earlier(item["number"]))
        return told(ctx, item_id, "screener", prompts["screener"], found)

    screened = await ctx.step("screen", screen)  # asked once, whatever becomes of the rest
    if screened["duplicate_of"] is not None:
        await ctx.finish("duplicate", screened["evidence"][0], screened)
    found = agents.scorer(prompts["scorer"], text, read_yaml("taxonomy.yaml"))
    scored = told(ctx, item_id, "scorer", prompts["scorer"], found) | {"screened": screened}
    if found["score"] < prompts["scorer"]["least"]:
        await ctx.finish("irrelevant", f"{found['score']} of 100: {', '.join(found['evidence']) or 'nothing'}", scored)
    return scored


async def summarize(ctx: Context, item_id: str, results: dict[str, Any]) -> dict[str, Any]:
    prompt = read_yaml("prompts.yaml")["summarizer"]
    return told(ctx, item_id, "summarizer", prompt, agents.summarizer(prompt, results["fetch"]["text"]))


async def tag(ctx: Context, item_id: str, results: dict[str, Any]) -> dict[str, Any]:
    prompt = read_yaml("prompts.yaml")["tagger"]
    found = agents.tagger(prompt, results["fetch"]["text"], read_yaml("taxonomy.yaml"))
    return told(ctx, item_id, "tagger", prompt, found)


def thumbnail(ctx: Context, item_id: str, results: dict[str, Any]) -> dict[str, Any]:
    article = results["fetch"]
    if article["picture"] == "none":
        raise TerminalError("its author wants no picture")
    prompt = read_yaml("prompts.yaml")["thumbnailer"]
    picture, found = agents.thumbnailer(prompt, article["title"], article["text"], read_yaml("taxonomy.yaml"))
    file = thumbnails() / f"{item_id}.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(".part")
    half.write_bytes(picture)
    half.replace(file)  # it is there, or it is not: a second attempt finds nothing half done
    return told(ctx, item_id, "thumbnailer", prompt, found | {"file": file.name})


def remove_thumbnail(item_id: str, output: dict[str, Any]) -> None:
    """Takes back what the thumbnailer did, when a person rejects the article."""
    (thumbnails() / output["file"]).unlink(missing_ok=True)


async def discover(app: Ostinato, most: int | None = None) -> list[str]:
    """Define the pipeline, and enter what is in the feed. What was entered before stays as it is."""
    await app.pipelines.define(read_yaml("pipeline.yaml"))
    found = agents.discoverer(feed())[:most]
    entered = await app.pipelines.enter_many(PIPELINE, [NewItem(one["payload"], one["id"]) for one in found])
    return [one.item_id for one in entered if one.created]


def register(app: Ostinato) -> None:
    named = {
        "fetch": fetch,
        "score": score,
        "summarize": summarize,
        "tag": tag,
        "thumbnail": thumbnail,
        "remove-thumbnail": remove_thumbnail,
    }
    for name, step in named.items():
        app.step(f"publishing.{name}")(step)

    @app.function("publishing.discover")
    async def discover_articles(most: int | None = None) -> list[str]:
        return await discover(app, most)
