"""What callers see of items: how they stand, what has become of their steps, and how they came to where they are."""

from __future__ import annotations

import asyncio
import collections
import datetime
import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ostinato import errors, views
from ostinato.core import (
    allowed,
    codec,
    courses,
    documents,
    events,
    filters,
    item_filters,
    items,
    moments,
    rows,
    states,
    tallies,
    usage,
)
from ostinato.core.commands import following
from ostinato.pipelines import run, standing
from ostinato.reactions import shelved
from ostinato.reactions.shelved import check_item_id
from ostinato.store import items as stored

MOST_RUNS = 20
"""The newest runs of an item, which are shown with their attempts."""
LONGEST_STUCK = 1e9
_ATTEMPTS = frozenset({events.TASK_PROCESSING, events.TASK_RELEASED, *events.ATTEMPT_ENDS})


class ItemView(msgspec.Struct, frozen=True, rename="camel"):
    """An item as it stands."""

    item_id: str
    pipeline: str
    version: int
    status: str
    code: int
    phase: str | None
    open: bool
    """It is not over yet."""
    held: bool
    """It was entered, never run, and is not over."""
    sentence: str
    """How it stands, as in `Retry scheduled for 2026-11-16T17:00:00.000Z`."""
    step: str | None
    """What it is at, or waits for."""
    attempt: int
    retry_at: datetime.datetime | None
    failures: int
    """Failed attempts, over all runs."""
    error_type: str | None
    run: int
    job_id: str | None
    """Of its newest run."""
    entered_at: datetime.datetime
    status_at: datetime.datetime
    submitted_by: str | None
    reviewed_by: str | None
    reviewed_at: datetime.datetime | None


class ItemAttempt(msgspec.Struct, frozen=True, rename="camel"):
    """One try of a step; `key` is how history names it: `{item}:{step}:{attempt}`, and in later runs, in which attempts
    begin with 1 again, `{item}:{step}:{run}.{attempt}`."""

    key: str
    run: int
    attempt: int
    outcome: str
    started_at: datetime.datetime
    ended_at: datetime.datetime | None
    error: Any
    worker: str | None
    usage: views.UsageView | None
    """None if it has not said that it used anything up."""


class ItemStep(msgspec.Struct, frozen=True, rename="camel"):
    """A step or a review of an item. `key` is the same for all its attempts, `{item}:{step}`."""

    step: str
    key: str
    function: str | None
    agent: str | None
    """Who does it; nobody in a review."""
    state: str
    """As that of a task; `dead` if all attempts have failed, `rejected` in a review."""
    optional: bool
    when: str | None
    """Its condition: where that was false, the step is `skipped`."""
    attempt: int
    retry_at: datetime.datetime | None
    attempts: list[ItemAttempt]
    """Of the newest runs, the oldest first."""
    seconds: float
    """That these attempts took."""
    usage: views.UsageView
    """What they used up."""


class ItemRun(msgspec.Struct, frozen=True, rename="camel"):
    """One run of an item, which is a job; with `undo` the job that takes back what that run did."""

    run: int
    job_id: str
    undo: bool
    state: str
    created_at: datetime.datetime
    finished_at: datetime.datetime | None
    spent: float
    """What it has cost so far."""


class ItemError(msgspec.Struct, frozen=True, rename="camel"):
    """The last attempt that failed, and why."""

    step: str
    run: int
    attempt: int
    type: str
    message: str
    at: datetime.datetime | None


class ItemDetail(ItemView, frozen=True, rename="camel"):
    """An item with all that there is to tell of it."""

    newest_version: int
    """Of its pipeline: `migrate` lets the item go on in it."""
    payload: Any
    results: dict[str, Any]
    """What its steps have come to so far, by step."""
    last_error: ItemError | None
    steps: list[ItemStep]
    runs: list[ItemRun]
    """The newest first."""
    spent: float
    """What these runs have cost so far."""
    usage: views.UsageView
    """What its steps have used up, in these runs."""
    places: list[str]
    """Where it may begin again: steps, reviews and statuses of its course. None while somebody works on it."""
    by_hand: list[str]
    """The statuses to which people may move it."""


class ItemMove(msgspec.Struct, frozen=True, rename="camel"):
    """One move of an item. One that was made in the database by hand is by `sql`; of older ones no time is known."""

    number: int
    from_code: int
    from_status: str | None
    code: int
    status: str
    at: datetime.datetime | None
    version: int
    run: int
    step: str | None
    attempt: int | None
    key: str | None
    """`{item}:{step}:{attempt}`, in later runs `{item}:{step}:{run}.{attempt}`"""
    moved_by: str | None
    reason: str | None
    how: str | None
    """`cancelled`, `timed_out` or `rolled_back`; or `skipped`, of a step whose condition is false: with that, the item
    stays in its status."""


class Wanted(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Which items of a pipeline: one of these, or all. A status is given by its name or its code."""

    status: str | int | None = None
    stuck: float | None = None
    """Not over, and in their status for more than this many seconds; but neither held back nor in a review."""
    retrying: bool = False
    held: bool = False


class Counts(NamedTuple):
    by_code: dict[int, int]
    former: dict[int, courses.Course]
    """The newest of the versions before this one that has them, for statuses that it has no longer but items do."""
    reviews: tuple[int, ...]
    """Statuses in which items wait for people."""


_Attempts = collections.defaultdict[str, list[ItemAttempt]]
_Used = collections.defaultdict[str, usage.Usage]
"""By step."""


class Looking(shelved.Shelved):
    """Items, looked at."""

    async def item(self, item_id: str) -> tuple[items.Item, Any]:
        """An item as it stands, and what is to be done with it."""
        item, payload = await self._engine.store.item(self._tenant, check_item_id(item_id))
        return item, codec.decode(payload)

    async def view(self, item_id: str) -> ItemView:
        item, _ = await self._engine.store.item(self._tenant, check_item_id(item_id))
        return (await self._shown([item]))[0]

    async def detail(self, item_id: str) -> ItemDetail:
        """An item with its payload, the results of its steps, its attempts and its runs."""
        item, payload = await self.item(item_id)
        course = await self.course(item.pipeline, item.version)
        found = await self._engine.store.jobs(
            self._tenant, filters.JobFilter(tag=(run.ITEM, item_id)), most=2 * MOST_RUNS
        )
        runs = [one for job in found if (one := _run(job)) is not None]
        attempts, used = await self._attempts(item_id, [one for one in runs if not one.undo][:MOST_RUNS])
        results = await self.results(item)
        return ItemDetail(
            **msgspec.structs.asdict((await self._shown([item]))[0]),
            newest_version=await self._newest_version(item),
            payload=payload,
            results={name: results[name] for name in course.steps if name in results},
            last_error=_last_error(attempts),
            steps=[
                _step(course, item, stop, attempts[stop.name], used[stop.name])
                for stop in course.stops
                if stop.kind != "status"
            ],
            runs=runs,
            spent=usage.money(sum(job.spent for job in found if _run(job) is not None)),
            usage=views.usage_view(functools.reduce(operator.add, used.values(), usage.Usage())),
            places=allowed.places(course, item, list(results)),
            by_hand=allowed.moves_by_hand(course, item),
        )

    async def list(
        self, wanted: item_filters.ItemFilter, *, cursor: str | None = None, most: int = 50
    ) -> filters.Page[items.Item]:
        return await self._engine.store.items(self._tenant, wanted, cursor=cursor, most=most)

    async def views(
        self, pipeline: str, wanted: Wanted | None = None, *, cursor: str | None = None, most: int = 50
    ) -> filters.Page[ItemView]:
        """Items of a pipeline, newest first; those in one status, stuck or retried, longest first."""
        wanted = Wanted() if wanted is None else wanted
        found = await self.list(await self.filter(pipeline, wanted), cursor=cursor, most=most)
        return filters.Page(await self._shown(found), found.cursor)

    async def filter(self, pipeline: str, wanted: Wanted) -> item_filters.ItemFilter:
        if not isinstance(wanted, Wanted):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.InvalidInput(f"wanted must be a Wanted, not {documents.short(wanted)}", field="wanted")
        course = await self.course(pipeline)
        status = None if wanted.status is None else _code(course, wanted.status)
        if wanted.stuck is None:
            return item_filters.ItemFilter(pipeline, status, None, wanted.retrying, wanted.held)
        documents.check_seconds(wanted.stuck, "stuck", LONGEST_STUCK)
        since = self._engine.db.now() - int(wanted.stuck * 1e6)
        reviews = (await self.counts(course)).reviews
        return item_filters.ItemFilter(pipeline, status, since, wanted.retrying, wanted.held, reviews)

    async def counts(self, course: courses.Course) -> Counts:
        """How many items of a pipeline are in which status, also in those that only an earlier version has."""
        prefix = f"{course.pipeline.name}/"
        found = await self._engine.store.sum_tallies_by_key(self._tenant, tallies.ITEMS, prefix=prefix)
        by_code = {int(key.removeprefix(prefix)): count for key, (count, _) in found.items()}
        missing = {code for code, count in by_code.items() if count} - {*course.names}
        former: dict[int, courses.Course] = {}
        for version in range(course.version - 1, 0, -1):
            if len(former) == len(missing):
                break
            older = await self._engine.store.course(self._tenant, course.pipeline.name, version)
            former |= {code: older for code in missing - former.keys() if code in older.names}
        reviews = (*course.looked_at, *(code for code, older in former.items() if code in older.looked_at))
        return Counts(by_code, former, reviews)

    async def history(self, item_id: str) -> list[stored.Moved]:
        """Every move of an item: from where to where, when, by whom, and why."""
        return await self._engine.store.history(self._tenant, check_item_id(item_id))

    async def moves(self, item_id: str, *, after: int = 0, most: int = 100) -> filters.Page[ItemMove]:
        """The moves of an item with the names of their statuses, in order; `after` is the number of the last one
        seen."""
        item, _ = await self.item(item_id)
        if not isinstance(after, int) or abs(after) >= 2**31:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.InvalidInput(
                f"after must be the number of a move, not {documents.short(after)}", field="after"
            )
        found = await self._engine.store.history(self._tenant, item_id, after=after, most=filters.check_most(most))
        named = {version: await self.course(item.pipeline, version) for version in {moved.version for moved in found}}
        shown = [_move(item_id, named[moved.version], moved) for moved in found]
        return filters.Page(shown, str(found[-1].number) if len(found) == most else None)

    async def results(self, item: items.Item) -> dict[str, Any]:
        """What the steps of its newest run came to so far, without those that were taken back."""
        found = {} if item.job_id is None else await self._engine.store.outputs(self._tenant, item.job_id)
        return {
            name: output
            for name, output in found.items()
            if not item.is_(courses.UNDONE, name) and not run.is_condition(name)
        }

    async def _shown(self, found: Sequence[items.Item]) -> list[ItemView]:
        versions = {(item.pipeline, item.version) for item in found}
        named = {version: await self.course(*version) for version in versions}
        known = [(named[(item.pipeline, item.version)], item) for item in found]
        keys = {
            item.item_id: (item.job_id or "", item.step or "")
            for course, item in known
            if standing.waits_inside(course, item)
        }
        asked = await self._engine.store.tasks_asked_about(self._tenant, [*keys.values()]) if keys else ()
        failed = [item.item_id for course, item in known if item.status == course.failed or item.status == course.dead]
        last = await self._engine.store.last_moves(self._tenant, failed) if failed else {}
        return [
            _item_view(course, item, asked=keys.get(item.item_id) in asked, last=last.get(item.item_id, _NO_MOVE))
            for course, item in known
        ]

    async def _newest_version(self, item: items.Item) -> int:
        try:
            return (await self.shelf.get(item.pipeline)).version
        except errors.DefinitionNotFound:
            return item.version  # the pipeline was taken away; what is under way goes on

    async def _attempts(self, item_id: str, runs: list[ItemRun]) -> tuple[_Attempts, _Used]:
        """The tries of each step, the oldest first, and what they used up."""
        store, tenant = self._engine.store, self._tenant
        streams = await asyncio.gather(*[store.events(tenant, one.job_id, types=_ATTEMPTS) for one in runs[::-1]])
        spent = await asyncio.gather(*[store.usage_of_attempts(tenant, one.job_id) for one in runs[::-1]])
        found: _Attempts = collections.defaultdict(list)
        used: _Used = collections.defaultdict(usage.Usage)
        for one, stream, costs in zip(runs[::-1], streams, spent, strict=True):
            for (step, _), cost in costs.items():
                used[step] += cost
            by_task = sorted(stream, key=lambda event: event.task_id or "")
            for step, told in itertools.groupby(by_task, key=lambda event: event.task_id or ""):
                found[step] += [
                    _attempt(item_id, step, one.run, view, costs.get((step, view.attempt)))
                    for view in views.attempts([*told])
                ]
        return found, used


_NO_MOVE: tuple[str | None, ...] = (None, None, None)


def _item_view(
    course: courses.Course, item: items.Item, *, asked: bool, last: Sequence[str | None] = _NO_MOVE
) -> ItemView:
    status = next((one for one in course.pipeline.statuses if one.code == item.status), None)
    return ItemView(
        item_id=item.item_id,
        pipeline=item.pipeline,
        version=item.version,
        status=str(item.status) if status is None else status.name,
        code=item.status,
        phase=None if status is None else status.phase,
        open=bool(item.open),
        held=item.run == 0 and bool(item.open),
        sentence=standing.sentence(course, item, asked=asked, last=last),
        step=item.step,
        attempt=item.attempt,
        retry_at=views.moment(item.retry_at),
        failures=item.failures,
        error_type=item.error_type,
        run=item.run,
        job_id=item.job_id,
        entered_at=moments.moment(item.entered_at),
        status_at=moments.moment(item.status_at),
        submitted_by=item.submitted_by,
        reviewed_by=item.reviewed_by,
        reviewed_at=views.moment(item.reviewed_at),
    )


def _code(course: courses.Course, given: str | int) -> int:
    text = str(given)
    if text.isdecimal() and len(text) <= 9:
        code = int(text)
        if code in course.names or isinstance(given, int):
            return code
    if text not in course.codes:
        raise errors.InvalidInput(
            f"pipeline {course.pipeline.name!r} has no status {documents.short(text)}: "
            f"{documents.nearest(text, course.codes)}its statuses are {documents.listed(course.codes, 40)}",
            field="status",
        )
    return course.codes[text]


def _run(job: rows.Job) -> ItemRun | None:
    """None for a job in which people are asked whether the item may cost more, and for others that bear its tag:
    anybody may say so of theirs, but these names are the engine's own."""
    undo = job.name.startswith(following.JOB)
    if not undo and not job.name.startswith(courses.JOB):
        return None
    tags: dict[str, str] = codec.decode(job.tags)
    number = int(tags["undo"] if undo else job.job_id.rpartition(":")[2])
    created, finished = moments.moment(job.created_at), views.moment(job.finished_at)
    return ItemRun(number, job.job_id, undo, job.state, created, finished, usage.money(job.spent))


def _attempt(item_id: str, step: str, number: int, view: views.AttemptView, used: usage.Usage | None) -> ItemAttempt:
    return ItemAttempt(
        _key(item_id, step, number, view.attempt),
        number,
        view.attempt,
        view.outcome,
        view.started_at,
        view.ended_at,
        view.error,
        view.worker,
        None if used is None else views.usage_view(used),
    )


def _last_error(attempts: dict[str, list[ItemAttempt]]) -> ItemError | None:
    failed = [(one.ended_at or one.started_at, step, one) for step, tries in attempts.items() for one in tries]
    failed = [found for found in failed if found[2].error is not None]
    if not failed:
        return None
    at, step, one = max(failed, key=lambda found: (found[2].run, found[0]))
    error: dict[str, Any] = one.error
    step = step.removeprefix(courses.CONDITION)
    return ItemError(step, one.run, one.attempt, str(error.get("type", "")), str(error.get("message", "")), at)


def _step(
    course: courses.Course, item: items.Item, stop: courses.Stop, attempts: list[ItemAttempt], used: usage.Usage
) -> ItemStep:
    known = item.standing().get(stop.name)
    step = course.steps.get(stop.name)
    state = "blocked" if known is None else "completed" if isinstance(known.state, int) else known.state
    state = states.SKIPPED if state == courses.OMITTED else state
    return ItemStep(
        stop.name,
        f"{item.item_id}:{stop.name}",
        None if step is None else step.function,
        None if step is None else step.agent,
        state,
        stop.optional,
        None if step is None else step.when,
        0 if known is None else known.attempt,
        None if known is None else views.moment(known.retry_at),
        attempts,
        sum((one.ended_at - one.started_at).total_seconds() for one in attempts if one.ended_at is not None),
        views.usage_view(used),
    )


def _key(item_id: str, step: str, number: int, attempt: int) -> str:
    return f"{item_id}:{step}:{attempt}" if number <= 1 else f"{item_id}:{step}:{number}.{attempt}"


def _move(item_id: str, course: courses.Course, moved: stored.Moved) -> ItemMove:
    tried = moved.step is not None and moved.attempt is not None
    key = _key(item_id, moved.step or "", moved.run, moved.attempt or 0) if tried else None
    return ItemMove(
        moved.number,
        moved.from_code,
        course.names.get(moved.from_code),
        moved.to_code,
        course.names.get(moved.to_code, str(moved.to_code)),
        views.moment(moved.at),
        moved.version,
        moved.run,
        moved.step,
        moved.attempt,
        key,
        moved.moved_by,
        moved.reason,
        moved.how,
    )
