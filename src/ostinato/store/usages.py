"""What attempts, jobs and tenants have used up."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

from ostinato.core import tallies, usage
from ostinato.core.commands import spending
from ostinato.store import database
from ostinato.store.database import fetch

AttemptKey = tuple[str, int]
"""(task id, attempt)"""


class Usages:
    db: database.Database

    async def usage_of_job(self, tenant: str, job_id: str) -> usage.Usage:
        """Nothing, if there is no such job."""

        def script() -> database.Script[usage.Usage]:
            sums = (yield fetch("sum_usage", tenant=tenant, job_id=job_id))[0]
            return usage.Usage(*[int(total or 0) for total in sums])

        return await self.db.read(script, snapshot=False)

    async def usage_of_task(self, tenant: str, job_id: str, task_id: str) -> usage.Usage:
        """Of all its attempts."""
        attempts = await self.db.read(lambda: of_attempts(tenant, job_id, task_id), snapshot=False)
        return functools.reduce(operator.add, attempts.values(), usage.Usage())

    async def usage_of_attempts(self, tenant: str, job_id: str) -> dict[AttemptKey, usage.Usage]:
        """Of those attempts of a job that have used anything up."""
        return await self.db.read(lambda: of_attempts(tenant, job_id), snapshot=False)

    async def usage_by_key(self, tenant: str, prefix: str, since: int, until: int) -> dict[str, usage.Usage]:
        """By what follows in keys that begin so, from a day on and before another (as numbers since 1970)."""
        span = {"tenant": tenant, "since": since, "until": until}
        span |= {"low": prefix, "high": prefix + tallies.LAST_KEY}

        def script() -> database.Script[dict[str, usage.Usage]]:
            calls = yield fetch("sum_tallies_by_key", topic=tallies.USAGE.name, **span)
            tokens = yield fetch("sum_tallies_by_key", topic=tallies.TOKENS.name, **span)
            found = _together({row[0]: row[1:] for row in calls}, {row[0]: row[1:] for row in tokens})
            return {key.removeprefix(prefix): used for key, used in found.items()}

        return await self.db.read(script)

    async def usage_by_day(self, tenant: str, since: int, until: int) -> dict[int, usage.Usage]:
        """Of the tenant, by day."""
        span: dict[str, Any] = {"tenant": tenant, "since": since, "until": until, "keys": [spending.TENANT]}

        def script() -> database.Script[dict[int, usage.Usage]]:
            calls = yield fetch("read_tallies_of_keys", topic=tallies.USAGE.name, **span)
            tokens = yield fetch("read_tallies_of_keys", topic=tallies.TOKENS.name, **span)
            return _together({row[1]: row[2:] for row in calls}, {row[1]: row[2:] for row in tokens})

        return await self.db.read(script)


def of_attempts(tenant: str, job_id: str, task_id: str | None = None) -> database.Script[dict[AttemptKey, usage.Usage]]:
    """Of a job, or of one of its tasks."""
    found = yield fetch("read_usage", tenant=tenant, job_id=job_id, task_id=task_id)
    return {(row[0], row[1]): usage.Usage(*row[2:]) for row in found}


def _together(calls: Mapping[Any, database.Row], tokens: Mapping[Any, database.Row]) -> dict[Any, usage.Usage]:
    """From the two topics that count it."""
    used: dict[Any, usage.Usage] = {}
    for key, (count, cost) in calls.items():
        given, made = tokens.get(key, (0, 0))
        used[key] = usage.Usage(int(count), int(given), int(made), int(cost))
    return used
