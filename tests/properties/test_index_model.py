"""The execution index against a list that is looked through from its beginning to its end, on both databases."""

from __future__ import annotations

import asyncio
import collections
import datetime
import itertools
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ostinato import EngineOptions, Ostinato, testing
from ostinato.api import tenants
from ostinato.core import executions as core
from ostinato.core import filters
from ostinato.store import executions
from tests.engine.support import job, task
from tests.index.support import AGENT, arn, change

EXAMPLES = int(os.environ.get("OSTINATO_EXAMPLES", "40"))
TAGS = st.sampled_from([{}, {"team": "a"}, {"team": "b", "env": "live"}])
CORRELATION = st.sampled_from([{}, {"correlationId": "order-1"}, {"correlationId": "order-2"}])
AGENTS = ["report", "import"]


class Job(NamedTuple):
    """A job, which is perhaps cancelled at once, and how many milliseconds pass after it."""

    name: str
    tags: dict[str, str]
    more: dict[str, str]
    cancelled: bool
    pause: int


class Report(NamedTuple):
    """What is reported of one of a few executions. All reports of one name the same agent."""

    number: int
    status: str
    start: int
    stop: int
    tags: dict[str, str]
    more: dict[str, str]


JOBS = st.builds(Job, st.sampled_from(AGENTS), TAGS, CORRELATION, st.booleans(), st.integers(0, 2))
REPORTS = st.builds(
    Report, st.integers(0, 7), st.sampled_from(core.STATUSES), st.integers(0, 4), st.integers(5, 7), TAGS, CORRELATION
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "agent_name": st.sampled_from([*AGENTS, "nobody"]),
        "status": st.lists(st.sampled_from(core.STATUSES), min_size=1, max_size=3, unique=True),
        "tag": st.sampled_from(["team", "team=a", "env=live", "Type=Agent", "env=x"]),
        "correlation_id": st.sampled_from(["order-1", "order-2", "job-0"]),
        "started_from": st.integers(0, 5),
        "started_until": st.integers(0, 5),
    },
)


class Row(NamedTuple):
    """What is compared, beginning with the place in the list."""

    start: int
    kind: int
    name: str
    agent: str
    status: str
    stop: int | None
    tags: dict[str, str]
    correlation: str


def of_reports(number: int, reports: list[Report]) -> Row:
    """All that was ever reported of an execution, seen at once: the best of each."""
    ends = [one for one in reports if one.status != "RUNNING"]
    last = max(ends, key=lambda one: (one.stop, core.STATUSES.index(one.status)), default=None)
    tags = dict(AGENT)
    for one in reports:
        tags |= {key: max(value, tags.get(key, "")) for key, value in one.tags.items()}
    return Row(
        min(one.start for one in reports),
        filters.OUTSIDE,
        f"e{number}",
        AGENTS[number % 2],
        last.status if last else "RUNNING",
        last.stop if last else None,
        tags,
        max((one.more.get("correlationId", "") for one in reports), default=""),
    )


def wanted_by(row: Row, given: dict[str, Any]) -> bool:
    key, _, value = given.get("tag", "").partition("=")
    return (
        row.agent == given.get("agent_name", row.agent)
        and row.status in given.get("status", [row.status])
        and (not key or (key in row.tags and value in ("", row.tags[key])))
        and row.correlation == given.get("correlation_id", row.correlation)
        and given.get("started_from", 0) <= row.start < given.get("started_until", 1000)
    )


class Index:
    """The index of a tenant of its own, as it is asked."""

    def __init__(self, app: Ostinato, kit: testing.Kit) -> None:
        self.app = app
        self._kit = kit
        self._first = kit.clock()
        self._rows: list[Row] = []
        self._reports: dict[int, list[Report]] = collections.defaultdict(list)

    async def do(self, steps: list[Job | list[Report]]) -> None:
        for step in steps:
            await (self._submit(step) if isinstance(step, Job) else self._report(step))

    async def _submit(self, given: Job) -> None:
        name = f"job-{len(self._rows)}"
        made = await self.app.submit(
            job(task("a", "echo"), jobId=name, name=given.name, tags=given.tags, **given.more)  # pyright: ignore[reportArgumentType]
        )
        at = self._since(self._kit.clock())
        if given.cancelled:
            await made.cancel()
        status, stop = ("ABORTED", at) if given.cancelled else ("RUNNING", None)
        correlation = given.more.get("correlationId", name)
        self._rows.append(Row(at, filters.OWN, name, given.name, status, stop, given.tags, correlation))
        self._kit.clock.advance(given.pause / 1000)

    async def _report(self, given: list[Report]) -> None:
        first = self._first // 1000
        events = [
            change(
                one.status,
                name=f"e{one.number}",
                machine=f"{AGENTS[one.number % 2]}-prod",
                start=first + one.start,
                stop=None if one.status == "RUNNING" else first + one.stop,
                tags=AGENT | one.tags,
                **one.more,
            )
            for one in given
        ]
        assert (await self.app.index.report(events)).indexed == len(events)
        for one in given:
            self._reports[one.number].append(one)

    def _since(self, micros: int) -> int:
        return (micros - self._first) // 1000

    def _moment(self, millis: int) -> datetime.datetime:
        return datetime.datetime.fromtimestamp((self._first + millis * 1000) / 1e6, datetime.UTC)

    async def check(self, given: dict[str, Any], order: str, size: int) -> None:
        reported = [of_reports(number, reports) for number, reports in self._reports.items()]
        rows = sorted([*self._rows, *reported], key=lambda row: self._place(row), reverse=order == "newest")
        expected = [row for row in rows if wanted_by(row, given)]
        times = {name: self._moment(given[name]) for name in ("started_from", "started_until") if name in given}
        asked = given | times
        assert await self._listed(order, size, asked) == expected
        counts = {one.key: one.count for one in await self.app.execution_counts("status", **asked)}
        assert counts == collections.Counter(row.status for row in expected)

    def _place(self, row: Row) -> tuple[int, int, str]:
        outside = arn(row.name, f"{row.agent}-prod")
        return row.start, row.kind, outside if row.kind == filters.OUTSIDE else row.name

    async def _listed(self, order: str, size: int, asked: dict[str, Any]) -> list[Row]:
        found: list[Row] = []
        cursor: str | None = None
        while True:
            page = await self.app.executions(order=order, most=size, cursor=cursor, **asked)  # pyright: ignore[reportArgumentType]
            assert len(page) <= size
            for one in page:
                own = one.execution_arn.startswith("arn:ostinato:")
                start, stop = (
                    None if at is None else round((at - self._moment(0)) / datetime.timedelta(milliseconds=1))
                    for at in (one.start_date, one.stop_date)
                )
                assert start is not None
                kind = filters.OWN if own else filters.OUTSIDE
                correlation = one.correlation_id or ""
                found.append(
                    Row(start, kind, one.execution_name, one.agent_name, one.status, stop, one.tags, correlation)
                )
            if page.cursor is None:
                return found
            cursor = page.cursor


@pytest.fixture
def on_loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.timeout(300)
def test_x9_c6_the_index_shows_what_a_list_of_everything_shows(
    url: str, on_loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs and reports in any order and number; any filters, pages of any size, few executions checked for each."""
    home = Ostinato(url, options=EngineOptions(work=False, maintain=False, check_functions=False))
    opening = testing.open(home)
    kit = on_loop.run(opening.__aenter__())
    guests = tenants.Tenants(home)
    numbers = itertools.count()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.lists(JOBS | st.lists(REPORTS, min_size=1, max_size=6), min_size=1, max_size=12),
        st.lists(st.tuples(FILTERS, st.sampled_from(filters.ORDERS), st.integers(1, 6)), min_size=4, max_size=8),
        st.sampled_from([1, 3, 20]),
    )
    def run(steps: list[Job | list[Report]], asked: list[tuple[dict[str, Any], str, int]], examined: int) -> None:
        monkeypatch.setattr(executions, "EXAMINED", examined)

        async def example() -> None:
            index = Index(await guests.client(f"t{next(numbers)}"), kit)
            await index.do(steps)
            for wanted, order, size in asked:
                await index.check(wanted, order, size)

        on_loop.run(example())

    try:
        run()
    finally:
        on_loop.run(guests.close())
        on_loop.run(opening.__aexit__(None, None, None))
