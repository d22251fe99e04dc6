"""Rebuilding the execution index from events, while the system runs.

An own execution is a job: its events are folded anew, and what the index shows of its row is compared and mended. An
execution from outside is what its recorded events say together: the row is replaced if it says something else. Both
are done a batch at a time, and neither undoes what is reported meanwhile. An execution of which no event was recorded
is left as it is.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from ostinato import indexing
from ostinato.core import arguments, codec, executions

AT_ONCE = 500
FOLDED = 200_000
"""Events that are held together in memory. Of more, those of a part of the executions at a time."""
PASSES = 5
"""How often to look again at what moves on while it is looked at."""


class Rebuilt(msgspec.Struct, rename="camel"):
    """How far a rebuild is, or what it did."""

    jobs: int = 0
    total_jobs: int = 0
    events: int = 0
    total_events: int = 0
    mended: int = 0
    """Rows that did not say what the events say."""
    skipped: int = 0
    """Status changes that are not indexed, or that cannot be read."""
    problems: list[str] = msgspec.field(default_factory=lambda: list[str]())
    """What could not be mended."""


Progress = Callable[[Rebuilt], None]


async def rebuild(indexer: indexing.Indexer, progress: Progress | None = None) -> Rebuilt:
    if progress is not None and not callable(progress):
        raise arguments.invalid("progress", "a function that takes how far it is, or None", progress)
    done = Rebuilt()
    tell = progress or _say_nothing
    done.total_jobs, done.total_events = await indexer.store.index_size(indexer.tenant)
    await _rebuild_own(indexer, done, tell)
    await _rebuild_outside(indexer, done, tell)
    return done


def _say_nothing(_: Rebuilt) -> None:
    pass


# --- own executions --------------------------------------------------------------------------------------------


async def _rebuild_own(indexer: indexing.Indexer, done: Rebuilt, tell: Progress) -> None:
    after = ""
    while job_ids := await indexer.store.job_ids(indexer.tenant, after, AT_ONCE):
        for job_id in job_ids:
            await _rebuild_job(indexer, job_id, done)
        after = job_ids[-1]
        done.jobs += len(job_ids)
        tell(done)


async def _rebuild_job(indexer: indexing.Indexer, job_id: str, done: Rebuilt) -> None:
    for _ in range(PASSES):
        seen = await indexer.store.indexed_job(indexer.tenant, job_id)
        if seen is None or seen.is_right:
            return
        if not seen.can_be_mended:
            done.problems.append(
                f"job {job_id!r} is {seen.row.state} and its events say {seen.told.state}: the database allows no such "
                "move. See what `ostinato audit` says of it"
            )
            return
        if await indexer.store.mend_job(indexer.tenant, seen):
            done.mended += 1
            return


# --- outside executions ----------------------------------------------------------------------------------------


async def _rebuild_outside(indexer: indexing.Indexer, done: Rebuilt, tell: Progress) -> None:
    parts = max(1, -(-done.total_events // FOLDED))
    for part in range(parts):

        def wanted(arn: str, part: int = part) -> bool:
            return zlib.crc32(arn.encode()) % parts == part

        moved = await _rebuild_some(indexer, wanted, done, tell, part)
        for _ in range(PASSES):
            if not moved:
                break
            moved = await _rebuild_some(indexer, set(moved).__contains__, done, tell)


async def _rebuild_some(
    indexer: indexing.Indexer, wanted: Callable[[str], bool], done: Rebuilt, tell: Progress, part: int | None = None
) -> list[str]:
    """Those that were written to meanwhile. Only the first look at an event counts it."""
    since = indexer.store.db.now()
    folded: dict[str, executions.Execution] = {}
    async for events in _recorded(indexer):
        changes = [event for event in events if executions.is_status_change(event)]
        reported = [one for one in map(indexer.read_recorded, changes) if one is not None]
        mine = [one for one in reported if wanted(one.execution.execution_arn)]
        taken, skipped = await indexer.select(mine, folded)
        written = [executions.status_change(event["detail"]) for event in events if indexing.is_written(event)]
        chosen = [one.execution for one in map(indexer.read_recorded, written) if one is not None]
        for one in (*taken, *(one for one in chosen if wanted(one.execution_arn))):
            old = folded.get(one.execution_arn)
            folded[one.execution_arn] = one if old is None else executions.merge(old, one)
        if part is not None:
            done.skipped += len(skipped)
        if part == 0:
            done.events += len(events)
            done.skipped += len(changes) - len(reported)
            tell(done)
    moved: list[str] = []
    told = list(folded.values())
    for start in range(0, len(told), AT_ONCE):
        answer = await indexer.store.replace_executions(indexer.tenant, told[start : start + AT_ONCE], since)
        done.mended += answer.changed
        moved += answer.moved
        tell(done)
    return moved


async def _recorded(indexer: indexing.Indexer) -> AsyncIterator[list[Any]]:
    """All events of others, in the order in which they came: those of the meantime come last."""
    last = None
    while page := await indexer.store.outside_events(indexer.tenant, last, AT_ONCE):
        yield [codec.decode(one.data) for one in page]
        last = page[-1]
