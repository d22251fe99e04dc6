"""The agents of the incidents, as functions of an application: `ostinato dev examples/incidents/app.py`.

Those that read a report are plain functions. Those that answer questions get what was saved before: all of it, by its
fields, to count; or the few reports that are most like the question, by `ctx.search`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import agents
from agents import Output

from ostinato import Context, Ostinato

DOMAIN = "incidents"
ASKED = ("incidents.count", "incidents.where", "incidents.changes")
RELATED = 5

app = Ostinato(os.environ.get("OSTINATO_URL", "sqlite:///incidents.db"))


async def saved() -> list[dict[str, Any]]:
    """Every incident that was read so far, with what the agents found out about it."""
    incidents: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = await app.results.list(domain=DOMAIN, cursor=cursor, most=500)
        incidents += map(incident, page)
        cursor = page.cursor
        if cursor is None:
            return incidents


def incident(found: Any) -> dict[str, Any]:
    return {"incident_id": found.result_id, "fields": found.document["synthesized"]}


def over_saved(function: Callable[..., Output]) -> Callable[..., Any]:
    async def answer(raw_data: dict[str, Any]) -> Output:
        return function({**raw_data, "incidents": await saved()})

    return answer


async def related(ctx: Context, raw_data: dict[str, Any]) -> Output:
    hits = await ctx.search(raw_data["question"], domain=DOMAIN, most=RELATED)
    return agents.related({**raw_data, "found": [incident(hit) for hit in hits]})


for name, function in agents.FUNCTIONS.items():
    app.agent(name)(over_saved(function) if name in ASKED else related if name == "incidents.related" else function)
