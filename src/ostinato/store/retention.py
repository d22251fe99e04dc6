"""What is kept for how long. Nothing is removed unless a tenant, or a job, has a period for it."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import NamedTuple

from ostinato.core import tallies as core_tallies
from ostinato.store import database, executions, tallies
from ostinato.store.database import fetch

TABLES = (
    "blob", "signal", "step", "timer", "dead_letter", "edge", "event_page", "job_tag", "gate_key",
    "approval", "usage", "task", "job",
)  # fmt: skip
LOOKED_AT = 1000
"""Jobs that are looked at in one read."""
FIRST = (-1, "")


class Kept(NamedTuple):
    """For how many seconds a tenant keeps finished jobs, and after that their keys; None is for ever."""

    jobs: int | None = None
    keys: int | None = None


Place = tuple[int, str]


class Old(NamedTuple):
    """Jobs that can be removed, with how many tasks they have, and where to look on; None if nothing is left."""

    jobs: list[tuple[str, int]]
    place: Place | None


class Retention:
    db: database.Database

    async def retention(self, tenant: str) -> Kept:
        def script() -> database.Script[Kept]:
            found = yield fetch("read_retention", tenant=tenant)
            return Kept(*found[0]) if found else Kept()

        return await self.db.read(script, snapshot=False)

    async def set_retention(self, tenant: str, kept: Kept) -> None:
        def script() -> database.Script[None]:
            yield fetch("set_retention", tenant=tenant, jobs=kept.jobs, keys=kept.keys)

        await self.db.write(script)

    async def old_jobs(self, tenant: str, state: str, before: int, place: Place = FIRST, most: int = LOOKED_AT) -> Old:
        """Jobs that ended in a state before a moment and are kept as long as the tenant says."""
        between = {"before": before, "at": place[0], "job_id": place[1], "most": most}

        def script() -> database.Script[Old]:
            return _old((yield fetch("old_jobs", tenant=tenant, state=state, **between)), most)

        return await self.db.read(script, snapshot=False)

    async def periods(self, tenant: str) -> list[int]:
        """The periods, in seconds, that jobs of a tenant have of their own."""

        def script() -> database.Script[list[int]]:
            found: list[int] = []
            while True:
                after = found[-1] if found else -1
                following = (yield fetch("next_period", tenant=tenant, after=after))[0][0]
                if following is None:
                    return found
                found.append(following)

        return await self.db.read(script)

    async def old_jobs_of_period(self, tenant: str, period: int, place: Place = FIRST, most: int = LOOKED_AT) -> Old:
        """Jobs that have such a period of their own and ended longer ago."""

        def script() -> database.Script[Old]:
            before = self.db.now() - period * 1_000_000
            between = {"before": before, "at": place[0], "job_id": place[1], "most": most}
            return _old((yield fetch("old_jobs_of_period", tenant=tenant, period=period, **between)), most)

        return await self.db.read(script, snapshot=False)

    async def remove_jobs(self, tenant: str, job_ids: Sequence[str], before: int | None) -> int:
        """Remove those of the given jobs that still can be: one that was resumed meanwhile is not finished any more.

        `before` is for jobs without a period of their own; None keeps them. Of keys enough stays to know a repetition.
        """

        def script() -> database.Script[int]:
            now = self.db.now()
            locked = yield fetch("lock_old", tenant=tenant, job_ids=list(job_ids), now=now, before=before)
            chosen = [row[0] for row in locked]
            if not chosen:
                return 0
            yield fetch("insert_removed_key", tenant=tenant, job_ids=chosen, now=now)
            for table in TABLES:
                yield fetch(f"prune_{table}", tenant=tenant, job_ids=chosen)
            yield from _count_items_off(tenant, (yield fetch("prune_item", tenant=tenant, job_ids=chosen)))
            return len(chosen)

        return await self.db.write(script)

    async def prune_outside(self, tenant: str, before: int, most: int) -> int:
        """Remove executions elsewhere of which nothing was heard since a moment, and items that were given up before it
        and never run: so many of each at most."""

        def script() -> database.Script[int]:
            outside = yield from executions.prune(tenant, before, most)
            items = yield fetch("prune_unrun_item", tenant=tenant, before=before, most=most)
            yield from _count_items_off(tenant, items)
            return outside + len(items)

        return await self.db.write(script)

    async def prune_events(self, tenant: str, before: int, most: int) -> int:
        """Remove what others told before a moment; their ids stay."""

        def script() -> database.Script[int]:
            told = yield fetch("prune_outside_event", tenant=tenant, before=before, most=most)
            now = self.db.now()
            yield database.Run([("insert_removed_event", [(tenant, source, name, now) for source, name in told])])
            return len(told)

        return await self.db.write(script)

    async def prune_keys(self, tenant: str, before: int, most: int) -> int:
        """Forget the keys of jobs, and the ids of events, that were removed before a moment."""

        def script() -> database.Script[int]:
            keys = yield fetch("prune_removed_key", tenant=tenant, before=before, most=most)
            told = yield fetch("prune_removed_event", tenant=tenant, before=before, most=most)
            return len(keys) + len(told)

        return await self.db.write(script)


def _old(found: list[database.Row], most: int) -> Old:
    place = (found[-1][1], found[-1][0]) if len(found) == most else None
    return Old([(job_id, tasks) for job_id, _, tasks, removable in found if removable], place)


def _count_items_off(tenant: str, items: list[database.Row]) -> database.Script[None]:
    gone = collections.Counter(f"{pipeline}/{status}" for pipeline, status in items)
    fewer = {(core_tallies.ITEMS.name, key, 0): (-count, 0) for key, count in gone.items()}
    yield database.Run([("add_tally", tallies.rows_of(tenant, fewer, ""))])
