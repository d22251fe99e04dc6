"""What the gates start: the analytics of a date, and the precomputation for the players and teams that changed.

Nothing here knows of gates. That the analytics report to the second one is said by a rule, in `rules/`.
"""

from __future__ import annotations

import asyncio
import os

from ostinato import Context, EngineOptions, Ostinato

app = Ostinato(os.environ.get("OSTINATO_URL", "sqlite:///nba-phases.db"), options=EngineOptions(lease_seconds=3))

CHANGED = {
    "PlayerGameSummaryProcessor": ["lebron-james", "stephen-curry"],
    "TeamDefenseGameSummaryProcessor": ["LAL", "GSW"],
    "TeamOffenseGameSummaryProcessor": ["GSW", "BOS"],
    "UpcomingPlayerGameContextProcessor": ["stephen-curry", "jayson-tatum"],
    "UpcomingTeamGameContextProcessor": [],
}
"""Stands for what each of the analytics would find out."""


@app.function("phase3_analytics")
async def phase3_analytics(ctx: Context, game_date: str, record_count: int) -> dict[str, object]:
    """One of the five, by the id of its task."""
    await asyncio.sleep(0.3)
    changed = CHANGED[ctx.task_id]
    return {
        "game_date": game_date,
        "status": "success",
        "record_count": record_count // 5,
        "entities_changed": changed,
        "is_incremental": True,
    }


@app.function("phase4_precompute")
async def phase4_precompute(
    ctx: Context, game_date: str, entities_changed: dict[str, list[str]], correlation_id: str
) -> dict[str, object]:
    """Only what has changed is computed again."""
    await asyncio.sleep(0.3)
    return {
        "game_date": game_date,
        "entities_changed": entities_changed,
        "correlation_id": correlation_id,
        "features": 12 * sum(len(names) for names in entities_changed.values()),
    }
