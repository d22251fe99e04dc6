"""Reading what happened: the stream of one job, and the feed of all jobs of a tenant."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ostinato import errors
from ostinato.core import documents, events, ledger, pages, rows
from ostinato.store import database, reads
from ostinato.store.database import fetch

PAGES_AT_ONCE = 16
PAGE_BYTES = 4 * 1024 * 1024
"""A page of the feed ends early after so much, so that large events do not fill the memory."""
Place = tuple[int, int, int]
"""Where an event stands in the feed: two numbers for its page, and its own in the stream of its job."""


class FeedEvent(NamedTuple):
    """An event in the feed of all jobs, with the cursor to go on after it."""

    cursor: str
    event: events.Event
    job_name: str
    correlation_id: str


class FeedPage(NamedTuple):
    """A stretch of the feed, on one snapshot of the database."""

    events: list[FeedEvent]
    cursor: str
    """Go on from here: after the last event or, if there are no more, after all that there was to see."""
    full: bool
    """There may be more at once."""
    complete: bool
    """Nothing that was committed is held back by an older transaction that may still commit."""


class Stream:
    db: database.Database

    async def events(
        self,
        tenant: str,
        job_id: str,
        *,
        task_id: str | None = None,
        types: Collection[str] | None = None,
        after: int = 0,
        most: int = reads.PAGE,
    ) -> list[events.Event]:
        """What happened to a job, or to one task of it, or what there is of certain types, from a place on."""
        return await self.db.read(lambda: stream(tenant, job_id, task_id, after, most, types))

    async def feed(self, tenant: str, cursor: str | None = None, most: int = reads.PAGE) -> list[FeedEvent]:
        """Events of all jobs in the order of their commits. Going on from the last cursor misses nothing, ever."""
        return (await self.feed_page(tenant, cursor, most)).events

    async def feed_page(
        self, tenant: str, cursor: str | None, most: int = reads.PAGE, *, job_id: str | None = None
    ) -> FeedPage:
        """Events of all jobs, or of one, after a cursor, and the cursor that covers all that was looked at."""
        place = read_cursor(cursor)
        return await self.db.read(lambda: _feed_page(tenant, place, most, job_id))

    async def functions_of(self, tenant: str, found: Sequence[FeedEvent]) -> dict[rows.TaskKey, str]:
        """The functions of the tasks that events are about. Those that were pruned since have none any more."""
        keys = sorted({(item.event.job_id, item.event.task_id) for item in found if item.event.task_id is not None})

        def script() -> database.Script[dict[rows.TaskKey, str]]:
            return {(row[0], row[1]): row[2] for row in (yield fetch("read_task_names", tenant=tenant, keys=keys))}

        return await self.db.read(script, snapshot=False) if keys else {}

    async def feed_end(self) -> str:
        """The cursor after everything that is there now."""

        def script() -> database.Script[str]:
            major, minor, _ = (yield fetch("feed_end"))[0]
            return write_cursor((major, minor, 0))

        return await self.db.read(script)


def stream(
    tenant: str,
    job_id: str,
    task_id: str | None = None,
    after: int = 0,
    most: int | None = None,
    types: Collection[str] | None = None,
    *,
    whole: bool = True,
) -> database.Script[list[events.Event]]:
    """Events of a job; with `whole`, those whose data is in a blob have it."""
    mention = None if task_id is None else pages.mention(task_id)
    result: list[events.Event] = []
    last = after
    while True:
        found = yield fetch("list_pages", tenant=tenant, job_id=job_id, after=last, mention=mention, most=PAGES_AT_ONCE)
        for first, last, at, body in found:  # noqa: B007 -- the next look starts after the last page of this one
            for event in pages.read(job_id, first, at, body):
                if event.seq <= after or (task_id is not None and event.task_id != task_id):
                    continue
                if types is None or event.type in types:
                    result.append((yield from complete(tenant, event)) if whole else event)
                    if len(result) == most:
                        return result
        if len(found) < PAGES_AT_ONCE:
            return result


def _feed_page(tenant: str, place: Place, most: int, job_id: str | None) -> database.Script[FeedPage]:
    major, minor, nothing_late = (yield fetch("feed_end"))[0]
    if place[:2] > (major, minor):
        raise errors.InvalidInput(
            "the cursor is of another database, or of this one before it was restored: begin without one",
            field="cursor",
        )
    found, full = yield from _feed(tenant, place, most, job_id)
    last = read_cursor(found[-1].cursor) if found else place
    end = last if full else max(last, (major, minor, 0))
    return FeedPage(found, write_cursor(end), full, bool(nothing_late))


def _feed(tenant: str, place: Place, most: int, job_id: str | None) -> database.Script[tuple[list[FeedEvent], bool]]:
    """Events, and whether there may be more."""
    result: list[FeedEvent] = []
    size = 0
    seen = place
    about = {"tenant": tenant} if job_id is None else {"tenant": tenant, "job_id": job_id}
    block = "feed" if job_id is None else "feed_of_job"
    while True:
        found = yield fetch(block, major=seen[0], minor=seen[1], most=PAGES_AT_ONCE, **about)
        for major, minor, owner, first, at, body, name, correlation_id in found:
            for event in pages.read(owner, first, at, body):
                here = (major, minor, event.seq)
                if here > seen:
                    event = yield from complete(tenant, event)
                    result.append(FeedEvent(write_cursor(here), event, name, correlation_id))
                    seen = here
                    size += len(event.data)
                    if len(result) == most or size > PAGE_BYTES:
                        return result, True
        if len(found) < PAGES_AT_ONCE:
            return result, False


def complete(tenant: str, event: events.Event) -> database.Script[events.Event]:
    """The event with its data, wherever that is."""
    digest = pages.referred_blob(event.data)
    if digest is not None:
        data = yield from reads.resolve(tenant, event.job_id, ledger.BLOB_MARK + digest)
        return events.Event(event.job_id, event.seq, event.type, event.task_id, event.attempt, event.at, data)
    return event


def write_cursor(place: Place) -> str:
    return f"{place[0]}.{place[1]}.{place[2]}"


def read_cursor(cursor: str | None) -> Place:
    if not cursor:
        return 0, 0, 0
    try:
        major, minor, seq = (int(part) for part in cursor.split("."))
    except (ValueError, AttributeError, TypeError):
        raise errors.InvalidInput(f"{documents.short(cursor)} is not a cursor of this feed", field="cursor") from None
    if not all(0 <= part < 2**63 for part in (major, minor, seq)):
        raise errors.InvalidInput(f"{documents.short(cursor)} is not a cursor of this feed", field="cursor")
    return major, minor, seq
