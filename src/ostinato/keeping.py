"""For how long a tenant keeps what has ended: a setting in the database, so that no two processes can disagree."""

from __future__ import annotations

import math

from ostinato import views
from ostinato.core import graph
from ostinato.engine import engine
from ostinato.store import retention as periods


async def retention(running: engine.Engine) -> views.RetentionView:
    kept = await running.store.retention(running.tenant)
    return views.RetentionView(kept.jobs, kept.keys)


async def set_retention(running: engine.Engine, jobs: float | None, keys: float | None) -> views.RetentionView:
    """Both at once."""
    kept = check_retention(jobs, keys)
    await running.store.set_retention(running.tenant, kept)
    return views.RetentionView(kept.jobs, kept.keys)


def check_retention(jobs: float | None, keys: float | None) -> periods.Kept:
    """Whole seconds, none of them too few."""
    return periods.Kept(_seconds(jobs, "jobs"), _seconds(keys, "keys"))


def _seconds(value: float | None, field: str) -> int | None:
    return None if value is None else math.ceil(graph.check_seconds(value, field))
