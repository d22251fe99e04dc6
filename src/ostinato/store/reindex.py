"""What rebuilds the execution index: looking at what events say, and mending the rows that say otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ostinato.core import codec, executions, fold, states
from ostinato.core.executions import Execution, OwnRow
from ostinato.store import database, stream
from ostinato.store import executions as index
from ostinato.store.database import fetch

Tag = tuple[str, str, int]
"""(key, value, created_at)"""


class IndexedJob(NamedTuple):
    """A job as it is found, and as its events say that it should be."""

    row: OwnRow
    tags: list[Tag]
    last_seq: int
    told: OwnRow
    told_tags: list[Tag]

    @property
    def is_right(self) -> bool:
        same_tags = codec.decode(self.row.tags) == codec.decode(self.told.tags)
        return same_tags and self.row._replace(tags=self.told.tags) == self.told and self.tags == self.told_tags

    @property
    def can_be_mended(self) -> bool:
        """The database lets no job go from one state to another in which it cannot come."""
        old, new = self.row.state, self.told.state
        return old == new or new in states.JOB_MOVES[old]


class Replaced(NamedTuple):
    """How many rows did not say what the events say, and which have been written to since the events were read."""

    changed: int
    moved: list[str]


class Reindexing:
    db: database.Database

    async def indexed_job(self, tenant: str, job_id: str) -> IndexedJob | None:
        """None if it is not there any more."""
        return await self.db.read(lambda: _indexed_job(tenant, job_id))

    async def mend_job(self, tenant: str, seen: IndexedJob) -> bool:
        """Let a job be found by what its events say; False if it has moved on meanwhile."""

        def script() -> database.Script[bool]:
            told = seen.told
            done = yield fetch("mend_job", tenant=tenant, last_seq=seen.last_seq, **told._asdict())
            if done:
                yield fetch("drop_job_tags", tenant=tenant, job_id=told.job_id)
                rows = [(tenant, told.job_id, *tag) for tag in seen.told_tags]
                yield database.Run([("insert_job_tag", rows)])
            return bool(done)

        return await self.db.write(script)

    async def index_size(self, tenant: str) -> tuple[int, int]:
        """How many jobs there are, and how many recorded events of others."""

        def script() -> database.Script[tuple[int, int]]:
            jobs = yield fetch("count_own_executions", tenant=tenant)
            events = yield fetch("count_outside_events", tenant=tenant)
            return int(jobs[0][0]), int(events[0][0])

        return await self.db.read(script, long=True)

    async def replace_executions(self, tenant: str, told: Sequence[Execution], since: int) -> Replaced:
        """Let rows say what their events say. One that was written to after `since` may know of more: it is merged."""
        return await self.db.write(lambda: _replace(tenant, self.db.now(), told, since))


def _indexed_job(tenant: str, job_id: str) -> database.Script[IndexedJob | None]:
    found = yield fetch("read_indexed_job", tenant=tenant, job_id=job_id)
    if not found:
        return None
    *row, last_seq = found[0]
    tags: list[Tag] = [
        (key, value, at) for key, value, at in (yield fetch("read_job_tags", tenant=tenant, job_id=job_id))
    ]
    job = fold.fold((yield from stream.stream(tenant, job_id)))
    told = OwnRow(
        job_id, job.name, job.state, job.correlation_id, codec.encode_own(job.tags), job.created_at, job.finished_at
    )
    told_tags = [(key, value, job.created_at) for key, value in sorted(job.tags.items())]
    return IndexedJob(OwnRow(*row), tags, last_seq, told, told_tags)


def _replace(tenant: str, now: int, told: Sequence[Execution], since: int) -> database.Script[Replaced]:
    arns = [one.execution_arn for one in told]
    yield index.lock(arns)
    known = yield from index.load_outside(tenant, arns)
    changed: list[Execution] = []
    moved: list[str] = []
    for one in told:
        row = known.get(one.execution_arn)
        if row is not None and row.indexed_at > since:
            moved.append(one.execution_arn)
            one = executions.merge(row, one)
        if row is None or msgspec.structs.replace(one, indexed_at=row.indexed_at) != row:
            changed.append(one)
    for one in changed:
        yield fetch("drop_execution_tags", tenant=tenant, execution_arn=one.execution_arn)
    yield from index.write(tenant, now, changed)
    return Replaced(len(changed), moved)
