"""Removes what is older than it is to be kept: a little at a time, and no longer at work than at rest."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Iterator

from ostinato.core import states
from ostinato.store import retention, store

BATCH_SECONDS = 0.008
"""What a transaction may take: for so long nobody else writes to an SQLite file."""
FEWEST = 100
MOST = 2000
"""Rows of what is removed (a job, and each of its tasks) that go in one transaction. A larger job goes alone."""
REST_SECONDS = 0.001

Look = Callable[[retention.Place], Awaitable[retention.Old]]


async def prune(target: store.Store, tenant: str, older_than: float | None = None) -> int:
    """Remove what a tenant has kept long enough; how many jobs, executions elsewhere and items there were.

    `older_than` seconds take the place of the retention of the tenant. Jobs with a period of their own go by that.
    """
    return await _Pruning(target, tenant).run(older_than)


class _Pruning:
    def __init__(self, target: store.Store, tenant: str) -> None:
        self._store = target
        self._tenant = tenant
        self._rows = FEWEST

    async def run(self, older_than: float | None) -> int:
        target, tenant = self._store, self._tenant
        kept = await target.retention(tenant)
        seconds = kept.jobs if older_than is None else older_than
        before = None if seconds is None else target.db.now() - int(seconds * 1e6)
        removed = 0
        if before is not None:
            for state in sorted(states.JOB_ENDED):
                removed += await self._jobs(functools.partial(target.old_jobs, tenant, state, before), before)
            removed += await self._all(functools.partial(target.prune_outside, tenant, before))
            await self._all(functools.partial(target.prune_events, tenant, before))
        for period in await target.periods(tenant):
            removed += await self._jobs(functools.partial(target.old_jobs_of_period, tenant, period), before)
        if kept.keys is not None:
            at = target.db.now() - kept.keys * 1_000_000
            await self._all(functools.partial(target.prune_keys, tenant, at))
        await self._tallies(kept)
        return removed

    async def _jobs(self, look: Look, before: int | None) -> int:
        removed = 0
        place: retention.Place | None = retention.FIRST
        while place is not None:
            old = await look(place)
            rest = iter(old.jobs)
            while batch := self._batch(rest):
                removed += await self._paced(self._store.remove_jobs(self._tenant, batch, before))
            place = old.place
        return removed

    def _batch(self, jobs: Iterator[tuple[str, int]]) -> list[str]:
        """The first of the jobs, with about as many tasks together as go in one transaction."""
        chosen: list[str] = []
        rows = 0
        for job_id, tasks in jobs:
            chosen.append(job_id)
            rows += 1 + tasks
            if rows >= self._rows:
                break
        return chosen

    async def _all(self, prune_some: Callable[[int], Awaitable[int]]) -> int:
        removed = 0
        while found := await self._paced(prune_some(self._rows)):
            removed += found
        return removed

    async def _tallies(self, kept: retention.Kept) -> None:
        while await self._paced(self._store.fold_tallies(self._tenant)):
            pass
        if kept.jobs is not None:
            await self._all(functools.partial(self._store.prune_tallies, self._tenant, kept.jobs))

    async def _paced(self, work: Awaitable[int]) -> int:
        """Others have their turn after each transaction. How much the next one does depends on how long it took, and
        that includes what it waited for others."""
        began = time.monotonic()
        done = await work
        took = time.monotonic() - began
        if took > BATCH_SECONDS:
            self._rows = max(self._rows // 2, FEWEST)
        elif took < BATCH_SECONDS / 2:
            self._rows = min(self._rows * 2, MOST)
        await asyncio.sleep(max(took, REST_SECONDS))
        return done
