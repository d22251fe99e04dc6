"""The pipeline of seed 001, and an application that runs it with functions that count how often they are called."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from ostinato import EngineOptions, Ostinato, errors

STATUSES = {
    "discovery": {
        100: "discovered", 110: "to_fetch", 111: "fetching", 112: "fetched", 120: "to_score", 121: "scoring",
        122: "scored",
    },
    "enrichment": {
        200: "pending_enrichment", 210: "to_summarize", 211: "summarizing", 212: "summarized", 220: "to_tag",
        221: "tagging", 222: "tagged", 230: "to_thumbnail", 231: "thumbnailing", 232: "thumbnailed", 240: "enriched",
    },
    "review": {300: "pending_review", 310: "in_review", 320: "editing"},
    "publication": {400: "published", 410: "updated"},
    "terminal": {
        500: "failed", 510: "unreachable", 520: "duplicate", 530: "irrelevant", 540: "rejected", 599: "dead_letter",
    },
}  # fmt: skip
CODES = {code: name for phase in STATUSES.values() for code, name in phase.items()}


def step(name: str, to: int, **more: Any) -> dict[str, Any]:
    return {"step": name, "function": name, "statuses": [CODES[to], CODES[to + 1], CODES[to + 2]], **more}


def publishing(**changes: Any) -> dict[str, Any]:
    """Discovery → publish, with all 29 statuses."""
    return {
        "name": "publishing",
        "statuses": [
            {"code": code, "name": name, "phase": phase}
            for phase, statuses in STATUSES.items()
            for code, name in statuses.items()
        ],
        "course": [
            {"status": "discovered"},
            step("fetch", 110, ends=["unreachable", "duplicate"]),
            step("score", 120, ends=["irrelevant"]),
            {"status": "pending_enrichment"},
            step("summarize", 210, undo="forget"),
            {"together": [step("tag", 220, undo="forget"), step("thumbnail", 230, optional=True)]},
            {"status": "enriched"},
            {
                "review": "review", "waiting": "pending_review", "taken": "in_review", "editing": "editing",
                "reject": "rejected", "again": {"re-enrich": "pending_enrichment"},
            },
            {"status": "published"},
        ],
        "failed": "failed",
        "deadLetter": "dead_letter",
        "moves": [{"from": "published", "to": "updated"}],
    } | changes  # fmt: skip


class Newsroom:
    """The six agents as functions that count their calls, and can be told to fail."""

    STEPS = ("fetch", "score", "summarize", "tag", "thumbnail")

    def __init__(self, url: str = "", app: Ostinato | None = None, **options: Any) -> None:
        self.calls: collections.Counter[str] = collections.Counter()
        self.undone: list[str] = []
        self.failing: dict[str, Callable[[int], BaseException | None]] = {}
        self.ending: dict[str, str] = {}
        self.app = app or Ostinato(url, options=EngineOptions(**({"prune_every_seconds": None} | options)))
        for name in self.STEPS:
            self._add(name)

        @self.app.step("forget")
        async def forget(ctx: Any, item_id: str, output: Any) -> None:
            self.undone.append(output["by"])

    def _add(self, name: str) -> None:
        @self.app.step(name)
        async def work(ctx: Any, item: Any, results: dict[str, Any]) -> dict[str, Any]:
            self.calls[name] += 1
            if name in self.failing:
                error = self.failing[name](ctx.attempt)
                if error is not None:
                    raise error
            if name in self.ending:
                await ctx.finish(self.ending[name], reason="so it is")
            return {"by": name, "title": item["title"], "saw": sorted(results)}

    def fail(self, name: str, times: int = 1000, *, terminal: bool = False) -> None:
        kind = errors.TerminalError if terminal else ConnectionError
        self.failing[name] = lambda attempt: kind(f"{name} is down") if attempt <= times else None

    def recover(self, name: str) -> None:
        self.failing.pop(name, None)
