"""How a pipeline does: what is where, what fails, what takes long, what is stuck. From counters and indexes only."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

import msgspec

from ostinato.core import courses, histogram, item_filters, moments, tallies
from ostinato.engine import engine
from ostinato.reactions import item_views

DAY_HOURS = 24
STUCK_SECONDS = 3600.0
MOST_STUCK = 50


class StatusCount(msgspec.Struct, frozen=True, rename="camel"):
    code: int
    name: str
    phase: str | None
    items: int


class StepHealth(msgspec.Struct, frozen=True, rename="camel"):
    """Attempts at a step in the last 24 hours. Times are of those that were completed, and the 95th percentile is
    right to within a quarter."""

    step: str
    completed: int
    failed: int
    failure_rate: float | None
    average_seconds: float | None
    p95_seconds: float | None


class StuckItem(msgspec.Struct, frozen=True, rename="camel"):
    item_id: str
    status: str
    since: datetime.datetime
    why: str


class Hour(msgspec.Struct, frozen=True, rename="camel"):
    """How many items were over in one hour."""

    begins_at: datetime.datetime
    items: int


class Health(msgspec.Struct, frozen=True, rename="camel"):
    pipeline: str
    version: int
    items: int
    """That are not over yet."""
    statuses: list[StatusCount]
    steps: list[StepHealth]
    stuck: list[StuckItem]
    """In their status for longer than an hour though they are not over, held back or in a review: the 50 longest."""
    stuck_count: int
    """How many there are; a list of items with the filter `stuck` has all of them."""
    retrying: int
    next_retry_at: datetime.datetime | None
    throughput: list[Hour]
    reviews_waiting: int
    oldest_review_at: datetime.datetime | None


async def of_pipeline(
    running: engine.Engine,
    course: courses.Course,
    counts: item_views.Counts,
    stuck: Sequence[item_views.ItemView],
    stuck_count: int,
) -> Health:
    store, tenant, name = running.store, running.tenant, course.pipeline.name
    now = store.db.now()
    hour = tallies.STEPS.bucket(now)
    prefix, since = f"{name}/", hour - DAY_HOURS + 1
    retrying = await store.sum_tallies_by_key(tenant, tallies.ITEMS_RETRYING, prefix=name)
    attempts = await store.sum_tallies_by_key(tenant, tallies.STEPS, prefix=prefix, since=since)
    times = await store.sum_tallies_by_key(tenant, tallies.STEP_TIMES, prefix=prefix, since=since)
    ended = await store.sum_tallies_by_bucket(tenant, tallies.ITEMS_ENDED, prefix=prefix, since=since)
    due = await store.items(tenant, item_filters.ItemFilter(name, retrying=True), most=1)
    in_status, former, reviews = counts
    oldest = await _oldest(running, name, reviews)
    return Health(
        name,
        course.version,
        sum(count for code, count in in_status.items() if code in former.get(code, course).open),
        [
            StatusCount(status.code, status.name, status.phase, in_status.get(status.code, 0))
            for status in (*course.pipeline.statuses, *_only_formerly(former))
        ],
        [_step(step, prefix, attempts, times) for step in course.steps],
        [StuckItem(item.item_id, item.status, item.status_at, item.sentence) for item in stuck],
        stuck_count,
        retrying.get(name, (0, 0))[0],
        moments.moment(due[0].retry_at) if due and due[0].retry_at is not None else None,
        [
            Hour(moments.moment(tallies.ITEMS_ENDED.begins(one)), ended.get(one, (0, 0))[0])
            for one in range(since, hour + 1)
        ],
        sum(in_status.get(code, 0) for code in reviews),
        None if oldest is None else moments.moment(oldest),
    )


def _only_formerly(former: Mapping[int, courses.Course]) -> list[courses.Status]:
    return [one for code in sorted(former) for one in former[code].pipeline.statuses if one.code == code]


async def _oldest(running: engine.Engine, pipeline: str, codes: Sequence[int]) -> int | None:
    found: list[int] = []
    for code in codes:
        wanted = item_filters.ItemFilter(pipeline, status=code)
        found += [item.status_at for item in await running.store.items(running.tenant, wanted, most=1)]
    return min(found, default=None)


def _step(
    step: str, prefix: str, attempts: Mapping[str, tuple[int, int]], times: Mapping[str, tuple[int, int]]
) -> StepHealth:
    completed, took = attempts.get(f"{prefix}{step}/completed", (0, 0))
    failed = sum(attempts.get(f"{prefix}{step}/{how}", (0, 0))[0] for how in ("failed", "lost"))
    of_step = f"{prefix}{step}/"
    bins = {int(key.removeprefix(of_step)): count for key, (count, _) in times.items() if key.startswith(of_step)}
    return StepHealth(
        step,
        completed,
        failed,
        failed / (completed + failed) if completed + failed else None,
        took / completed / 1e6 if completed else None,
        histogram.quantile(bins, 0.95),
    )
