"""Reading what happened: the stream of one job, and the feed of all jobs of a tenant."""

from __future__ import annotations

from typing import NamedTuple

from ostinato import errors
from ostinato.core import events, ledger, pages
from ostinato.store import database, reads
from ostinato.store.database import fetch

PAGES_AT_ONCE = 16


class FeedEvent(NamedTuple):
    """An event in the feed of all jobs, with the cursor to go on after it."""

    cursor: str
    event: events.Event
    job_name: str
    correlation_id: str


class Stream:
    db: database.Database

    async def events(
        self, tenant: str, job_id: str, *, task_id: str | None = None, after: int = 0, most: int = reads.PAGE
    ) -> list[events.Event]:
        """What happened to a job, or to one task of it, from a place on."""
        return await self.db.read(lambda: stream(tenant, job_id, task_id, after, most))

    async def feed(self, tenant: str, cursor: str | None = None, most: int = reads.PAGE) -> list[FeedEvent]:
        """Events of all jobs in the order of their commits. Going on from the last cursor misses nothing, ever."""
        place = read_cursor(cursor)
        return await self.db.read(lambda: _feed(tenant, place, most))

    async def feed_end(self) -> str:
        """The cursor after everything that is there now."""

        def script() -> database.Script[str]:
            found = yield fetch("feed_end")
            return f"{found[0][0]}.{found[0][1]}.0"

        return await self.db.read(script)


def stream(
    tenant: str, job_id: str, task_id: str | None = None, after: int = 0, most: int | None = None
) -> database.Script[list[events.Event]]:
    mention = None if task_id is None else pages.mention(task_id)
    result: list[events.Event] = []
    last = after
    while True:
        found = yield fetch("list_pages", tenant=tenant, job_id=job_id, after=last, mention=mention, most=PAGES_AT_ONCE)
        for first, last, at, body in found:  # noqa: B007 -- the next look starts after the last page of this one
            for event in pages.read(job_id, first, at, body):
                if event.seq > after and (task_id is None or event.task_id == task_id):
                    result.append((yield from _whole(tenant, event)))
                    if len(result) == most:
                        return result
        if len(found) < PAGES_AT_ONCE:
            return result


def _feed(tenant: str, place: tuple[int, int, int], most: int) -> database.Script[list[FeedEvent]]:
    result: list[FeedEvent] = []
    seen = place
    while True:
        found = yield fetch("feed", tenant=tenant, major=seen[0], minor=seen[1], most=PAGES_AT_ONCE)
        for major, minor, job_id, first, at, body, name, correlation_id in found:
            for event in pages.read(job_id, first, at, body):
                here = (major, minor, event.seq)
                if here > seen:
                    event = yield from _whole(tenant, event)
                    result.append(FeedEvent(f"{major}.{minor}.{event.seq}", event, name, correlation_id))
                    seen = here
                    if len(result) == most:
                        return result
        if len(found) < PAGES_AT_ONCE:
            return result


def _whole(tenant: str, event: events.Event) -> database.Script[events.Event]:
    digest = pages.referred_blob(event.data)
    if digest is not None:
        data = yield from reads.resolve(tenant, event.job_id, ledger.BLOB_MARK + digest)
        return events.Event(event.job_id, event.seq, event.type, event.task_id, event.attempt, event.at, data)
    return event


def read_cursor(cursor: str | None) -> tuple[int, int, int]:
    if not cursor:
        return 0, 0, 0
    try:
        major, minor, seq = (int(part) for part in cursor.split("."))
    except ValueError:
        raise errors.InvalidInput(f"{cursor!r} is not a cursor of this feed", field="cursor") from None
    if not all(0 <= part < 2**63 for part in (major, minor, seq)):
        raise errors.InvalidInput(f"{cursor!r} is not a cursor of this feed", field="cursor")
    return major, minor, seq
