"""Reading what happened: the stream of one job, and the feed of all jobs of a tenant."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from ostinato import errors
from ostinato.core import codec, events, ledger, pages, rows
from ostinato.store import cursors, database, reads
from ostinato.store.database import fetch

PAGES_AT_ONCE = 16
PAGE_BYTES = 4 * 1024 * 1024
"""A page of the feed ends early after so much, so that large events do not fill the memory."""
Place = cursors.Place


class FeedEvent(NamedTuple):
    """An event in the feed of all jobs, with the cursor to go on after it."""

    cursor: str
    event: events.Event
    job_name: str
    correlation_id: str
    place: Place
    """What the cursor stands for. It is for this process alone: it says how much happens in all tenants."""


class FeedPage(NamedTuple):
    """A stretch of the feed, on one snapshot of the database."""

    events: list[FeedEvent]
    cursor: str
    """Go on from here: after the last event."""
    full: bool
    """There may be more at once."""
    complete: bool
    """Nothing that was committed is held back by an older transaction that may still commit."""
    place: Place


class Stream:
    db: database.Database
    feed_cursors: cursors.Cursors

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

        def script() -> database.Script[list[events.Event]]:
            found = yield from stream(tenant, job_id, task_id, after, most, types)
            return (yield from _with_dependencies(tenant, found))

        return await self.db.read(script)

    async def feed(self, tenant: str, cursor: str | None = None, most: int = reads.PAGE) -> list[FeedEvent]:
        """Events of all jobs in the order of their commits. Going on from the last cursor misses nothing, ever."""
        return (await self.feed_page(tenant, await self.place_of(tenant, cursor), most)).events

    async def feed_page(
        self, tenant: str, place: Place, most: int = reads.PAGE, *, job_id: str | None = None
    ) -> FeedPage:
        """Events of all jobs, or of one, after a place, and the last place that was looked at."""
        known = await self.feed_cursors.ready()
        return await self.db.read(lambda: _feed_page(known, tenant, place, most, job_id))

    async def place_of(self, tenant: str, cursor: str | None) -> Place:
        """What a cursor stands for that was handed out to this tenant; without one, the beginning."""
        return (await self.feed_cursors.ready()).read(tenant, cursor)

    async def functions_of(self, tenant: str, found: Sequence[FeedEvent]) -> dict[rows.TaskKey, str]:
        """The functions of the tasks that events are about. Those that were pruned since have none any more."""
        keys = sorted({(item.event.job_id, item.event.task_id) for item in found if item.event.task_id is not None})

        def script() -> database.Script[dict[rows.TaskKey, str]]:
            return {(row[0], row[1]): row[2] for row in (yield fetch("read_task_names", tenant=tenant, keys=keys))}

        return await self.db.read(script, snapshot=False) if keys else {}

    async def feed_end(self, tenant: str) -> Place:
        """The place of the tenant's last event. That of the last event of all would tell of the others."""
        await self.feed_cursors.ready()

        def script() -> database.Script[Place]:
            found = yield fetch("feed_end_of_tenant", tenant=tenant)
            return (found[0][0], found[0][1], found[0][2]) if found else cursors.BEGINNING

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


def _feed_page(
    known: cursors.Cursors, tenant: str, place: Place, most: int, job_id: str | None
) -> database.Script[FeedPage]:
    major, minor, nothing_late = (yield fetch("feed_end"))[0]
    if place[:2] > (major, minor):
        raise errors.InvalidInput(
            "the cursor is of another database, or of this one before it was restored: begin without one",
            field="cursor",
        )
    found, full = yield from _feed(known, tenant, place, most, job_id)
    whole = yield from _with_dependencies(tenant, [one.event for one in found])
    found = [one._replace(event=event) for one, event in zip(found, whole, strict=True)]
    end = found[-1].place if found else place
    return FeedPage(found, known.write(tenant, end), full, bool(nothing_late), end)


def _feed(
    known: cursors.Cursors, tenant: str, place: Place, most: int, job_id: str | None
) -> database.Script[tuple[list[FeedEvent], bool]]:
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
                    result.append(FeedEvent(known.write(tenant, here), event, name, correlation_id, here))
                    seen = here
                    size += len(event.data)
                    if len(result) == most or size > PAGE_BYTES:
                        return result, True
        if len(found) < PAGES_AT_ONCE:
            return result, False


def _with_dependencies(tenant: str, found: list[events.Event]) -> database.Script[list[events.Event]]:
    """Whoever hears that a task is pending hears what it depends on, which never changes: to write it with each event
    would take as much room as the edges of the graph."""
    keys = {(one.job_id, one.task_id) for one in found if one.type == events.TASK_PENDING and one.task_id is not None}
    if not keys:
        return found
    ups: dict[rows.TaskKey, list[str]] = {}
    for job_id, task_id, up in (yield fetch("read_dependencies_of_tasks", tenant=tenant, keys=sorted(keys))):
        ups.setdefault((job_id, task_id), []).append(up)

    def whole(one: events.Event) -> events.Event:
        if one.type != events.TASK_PENDING:
            return one
        told = codec.encode_own({"dependsOn": ups.get((one.job_id, one.task_id or ""), [])})
        return msgspec.structs.replace(one, data=one.data[:-1] + b"," + told[1:])

    return [whole(one) for one in found]


def complete(tenant: str, event: events.Event) -> database.Script[events.Event]:
    """The event with its data, wherever that is."""
    digest = pages.referred_blob(event.data)
    if digest is not None:
        data = yield from reads.resolve(tenant, event.job_id, ledger.BLOB_MARK + digest)
        return events.Event(event.job_id, event.seq, event.type, event.task_id, event.attempt, event.at, data)
    return event
