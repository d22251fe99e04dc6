"""Items of pipelines, as they are listed and looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ostinato import errors
from ostinato.core import courses, cursors, filters, item_filters, items
from ostinato.store import courses as course_cache
from ostinato.store import database, definitions
from ostinato.store.database import fetch

MOST_MOVES = 1000


class Moved(NamedTuple):
    """One move of an item. Of moves by hand in the database, older ones have no time."""

    number: int
    from_code: int
    to_code: int
    at: int | None
    version: int
    run: int
    step: str | None
    attempt: int | None
    moved_by: str | None
    reason: str | None
    how: str | None
    """What it was, where that was no step of the course: `skipped`, `cancelled`, `timed_out`, `rolled_back`."""


class Items:
    db: database.Database
    courses: course_cache.CourseCache

    async def item(self, tenant: str, item_id: str) -> tuple[items.Item, bytes]:
        """An item, and what is to be done with it."""

        def script() -> database.Script[tuple[items.Item, bytes]]:
            found = yield fetch("read_item", tenant=tenant, item_id=item_id)
            if not found:
                raise errors.ItemNotFound(f"there is no item {item_id!r}", itemId=item_id)
            *row, payload = found[0]
            return items.read(tuple(row)), payload

        return await self.db.read(script, snapshot=False)

    async def items_by_id(self, tenant: str, item_ids: Sequence[str]) -> dict[str, items.Item]:
        """Those of these items that there are."""

        def script() -> database.Script[dict[str, items.Item]]:
            found = yield fetch("load_items_by_id", tenant=tenant, item_ids=sorted(set(item_ids)))
            return {item.item_id: item for item in map(items.read, found)}

        return await self.db.read(script, snapshot=False)

    async def item_of_job(self, tenant: str, job_id: str) -> str | None:
        """The item that a job is the newest run of."""

        def script() -> database.Script[str | None]:
            found = yield fetch("load_items", tenant=tenant, job_ids=[job_id])
            return found[0][0] if found else None

        return await self.db.read(script, snapshot=False)

    async def items(
        self, tenant: str, wanted: item_filters.ItemFilter, *, cursor: str | None = None, most: int = 50
    ) -> filters.Page[items.Item]:
        place = wanted.place(cursor)
        filters.check_most(most)

        def script() -> database.Script[filters.Page[items.Item]]:
            found = yield fetch(
                _look(wanted),
                tenant=tenant,
                pipeline=wanted.pipeline,
                at=place[0],
                item_id=place[1],
                most=most + 1,
                status=wanted.status,
                before=wanted.stuck_since,
                reviews=_listed(wanted.reviews),
            )
            keys = [(at, item_id) for at, item_id in found]
            after = cursors.write(keys[most - 1]) if len(keys) > most else None
            order = {item_id: index for index, (_, item_id) in enumerate(keys[:most])}
            rows = yield fetch("load_items_by_id", tenant=tenant, item_ids=list(order))
            return filters.Page(sorted(map(items.read, rows), key=lambda item: order[item.item_id]), after)

        return await self.db.read(script)

    async def last_moves(self, tenant: str, item_ids: Sequence[str]) -> dict[str, tuple[str | None, ...]]:
        """What moved each of these items last, by whom, and why."""

        def script() -> database.Script[dict[str, tuple[str | None, ...]]]:
            found = yield fetch("read_last_moves", tenant=tenant, item_ids=list(item_ids))
            return {row[0]: tuple(row[1:]) for row in found}

        return await self.db.read(script, snapshot=False)

    async def count_stuck_items(self, tenant: str, wanted: item_filters.ItemFilter) -> int:
        def script() -> database.Script[int]:
            found = yield fetch(
                "count_items_stuck",
                tenant=tenant,
                pipeline=wanted.pipeline,
                before=wanted.stuck_since,
                reviews=_listed(wanted.reviews),
            )
            return found[0][0]

        return await self.db.read(script, snapshot=False)

    async def history(self, tenant: str, item_id: str, *, after: int = 0, most: int = MOST_MOVES) -> list[Moved]:
        """How an item came to where it is."""

        def script() -> database.Script[list[Moved]]:
            found = yield fetch("list_history", tenant=tenant, item_id=item_id, after=after, most=most)
            return [Moved(*row) for row in found]

        return await self.db.read(script, snapshot=False)

    async def course(self, tenant: str, name: str, version: int) -> courses.Course:
        """A pipeline in one version, ready to be followed."""
        return await self.db.read(lambda: self.courses.course(tenant, name, version), snapshot=False)


def _listed(codes: Sequence[int]) -> str:
    return f"|{'|'.join(str(code) for code in codes)}|"


def _look(wanted: item_filters.ItemFilter) -> str:
    if wanted.held:
        return "find_items_held"
    if wanted.retrying:
        return "find_items_retrying"
    if wanted.stuck_since is not None:
        return "find_items_stuck"
    return "find_items" if wanted.status is None else "find_items_by_status"


def moves_of(tenant: str, pipeline: courses.Pipeline) -> Callable[[definitions.Definition], database.Script[None]]:
    """What the database has to know of a version of a pipeline, to be written when it is saved."""

    def script(saved: definitions.Definition) -> database.Script[None]:
        course = courses.Course(pipeline, saved.version)
        about = (tenant, pipeline.name, saved.version)
        statuses: list[tuple[Any, ...]] = [
            (*about, status.code, status.name, status.phase, position)
            for position, status in enumerate(pipeline.statuses)
        ]
        moves: list[tuple[Any, ...]] = [(*about, *move) for move in sorted(course.moves)]
        yield database.Run([("insert_pipeline_status", statuses), ("insert_state_transition", moves)])

    return script
