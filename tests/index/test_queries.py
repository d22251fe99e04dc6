"""C6: executions by agent, status, tag, correlation id and time, in any combination, both ways, page by page."""

import collections
import copy
import datetime
import random
from typing import Any

import pytest

from ostinato import Ostinato, errors, testing, views
from ostinato.core import executions as core
from ostinato.core import filters
from ostinato.store import database, executions
from tests.engine import support as engine_support
from tests.engine.support import job, opened, task
from tests.index.support import AGENT, change


async def fill(app: Ostinato, kit: testing.Kit, chance: random.Random, count: int) -> list[views.ExecutionView]:
    """Own and outside executions, some of the same moment, of every status."""
    for n in range(count):
        fields: dict[str, Any] = {"name": chance.choice(["report", "import", "seldom"])}
        fields |= {"tags": chance.choice([{}, {"team": "a"}, {"team": "b", "env": "live"}])}
        fields |= chance.choice([{}, {"correlationId": "order-7"}])
        queue = chance.choice(["default", "default", "nobody-listens"])
        await app.submit(job(task("a", chance.choice(["echo", "break"]), queue=queue), jobId=f"job-{n}", **fields))
        status = chance.choice(core.STATUSES)
        at = kit.clock() // 1000
        await app.index.report(
            [
                change(
                    status,
                    name=f"out-{n}",
                    machine=chance.choice(["report-prod", "import-dev", "other"]),
                    start=at,
                    stop=None if status == "RUNNING" else at + 5,
                    tags=AGENT | chance.choice([{}, {"team": "a"}, {"team": "b"}]),
                    **chance.choice([{}, {"correlationId": "order-7"}, {"correlationId": f"order-{n}"}]),
                )
            ]
        )
        kit.clock.advance(chance.choice([0, 0.001, 1, 40_000]))
    await kit.run_until_idle()
    return await app.executions(most=500)


@pytest.mark.parametrize("examined", [3, executions.EXAMINED])
async def test_c6_any_filters_find_what_a_naive_look_finds(
    url: str, examined: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few rows examined for a page too: pages become short, and the list stays the same."""
    monkeypatch.setattr(executions, "EXAMINED", examined)
    chance = random.Random(11)
    app = engine_support.make(url)
    async with testing.open(app) as kit:
        everything = await fill(app, kit, chance, 60)
        assert len(everything) == 120
        assert {view.status for view in everything} == set(core.STATUSES)
        assert [view.start_date for view in everything] == sorted((v.start_date for v in everything), reverse=True)
        for _ in range(120):
            wanted = random_filters(chance, [view.start_date for view in everything])
            expected = [view for view in everything if matches(view, **wanted)]
            size = chance.randint(1, 30)
            assert await in_pages(app, size, **wanted) == expected, wanted
            assert await in_pages(app, size, order="oldest", **wanted) == expected[::-1], wanted
            for by, key in (("status", lambda v: v.status), ("day", lambda v: v.start_date.date().isoformat())):
                counted = {one.key: one.count for one in await app.execution_counts(by, **wanted)}
                assert counted == collections.Counter(map(key, expected)), (by, wanted)
                if by == "day":
                    assert list(counted) == sorted(counted)


def random_filters(chance: random.Random, times: list[datetime.datetime]) -> dict[str, Any]:
    choices: dict[str, list[Any]] = {
        "status": ["RUNNING", "SUCCEEDED", ["FAILED", "ABORTED"], ["SUCCEEDED", "FAILED"], "TIMED_OUT"],
        "agent_name": ["report", "import", "seldom", "nothing"],
        "tag": ["team", "team=a", "team=b", "env=live", "Type=Agent", "env=x"],
        "correlation_id": ["order-7", "order-8", "job-7"],
        "started_from": times,
        "started_until": times,
    }
    chosen = [name for name in choices if chance.random() < 0.35]
    return {name: chance.choice(choices[name]) for name in chosen}


def matches(view: views.ExecutionView, **wanted: Any) -> bool:
    statuses = wanted.get("status", view.status)
    key, _, value = wanted.get("tag", "").partition("=")
    return (
        view.status in ([statuses] if isinstance(statuses, str) else statuses)
        and view.agent_name == wanted.get("agent_name", view.agent_name)
        and (not key or (key in view.tags and (not value or view.tags[key] == value)))
        and view.correlation_id == wanted.get("correlation_id", view.correlation_id)
        and view.start_date >= wanted.get("started_from", view.start_date)
        and (view.start_date < wanted["started_until"] if "started_until" in wanted else True)
    )


async def in_pages(app: Ostinato, size: int, **wanted: Any) -> list[views.ExecutionView]:
    found: list[views.ExecutionView] = []
    cursor = None
    while True:
        page = await app.executions(most=size, cursor=cursor, **wanted)
        assert len(page) <= size
        found += page
        if page.cursor is None:
            return found
        assert page.cursor != cursor, "it does not stand still"
        cursor = page.cursor


async def test_a_page_is_bounded_where_no_index_serves_all_filters(url: str) -> None:
    """A tag and an agent that each have many executions, and never the same: a page looks at some of them."""
    count = 2 * executions.EXAMINED + 100
    async with opened(url) as app:
        for name, tags in (("tagged", AGENT | {"team": "a"}), ("other", AGENT)):
            many = [change(name=f"{n}", machine=name, start=n, tags=tags) for n in range(count)]
            for start in range(0, count, 500):
                await app.index.report(many[start : start + 500])
        pages, cursor = 0, None
        while pages == 0 or cursor is not None:
            page = await app.executions(agent_name="other", tag="team=a", cursor=cursor)
            assert page == []
            cursor = page.cursor
            pages += 1
        assert pages == 3
        page = await app.executions(agent_name="other", tag="Type=Agent", status="RUNNING")
        assert len(page) == 50, "what is on all of them is no reason to look further"
        few = {"started_until": datetime.datetime(1970, 1, 1, 0, 0, 0, 150_000, tzinfo=datetime.UTC)}
        page = await app.executions(agent_name="other", tag="team=a", **few)
        assert (list(page), page.cursor) == ([], None), "in this range the tag is on few"


@pytest.mark.parametrize("order", ["newest", "oldest"])
async def test_c8_the_filter_that_selects_most_leads(url: str, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a tag and a status either may be on all executions and the other on few: the page is full both times."""
    monkeypatch.setattr(executions, "EXAMINED", 15)
    count = 200
    async with opened(url) as app:
        for n in range(count):
            tags = {"on": "all"} | ({"on-few": "x"} if n % 10 == 5 else {})
            own = job(task("a", "echo", queue="nobody-listens"), jobId=f"job-{n}", name="own", tags=tags)
            handle = await app.submit(own)
            if n % 10 == 1:
                await handle.cancel()
        events = [
            change(
                "FAILED" if n % 10 == 1 else "SUCCEEDED",
                name=f"{n}",
                machine="outside",
                start=n,
                stop=count,
                tags=AGENT | {"on": "all"} | ({"on-few": "x"} if n % 10 == 5 else {}),
            )
            for n in range(count)
        ]
        await app.index.report(events)
        for wanted in (
            {"tag": "on-few", "status": ["RUNNING", "SUCCEEDED"]},
            {"tag": "on-few=x", "status": ["RUNNING", "SUCCEEDED"]},
            {"tag": "on=all", "status": ["FAILED", "ABORTED"]},
            {"tag": "on", "status": ["FAILED", "ABORTED"]},
            {"tag": "on-few=x", "agent_name": "own"},
            {"tag": "on-few=x", "agent_name": "outside"},
            {"agent_name": "own", "status": "ABORTED"},
            {"agent_name": "own", "status": ["ABORTED", "FAILED"], "tag": "on=all"},
        ):
            page = await app.executions(most=12, order=order, **wanted)  # pyright: ignore[reportArgumentType]
            assert len(page) == 12, wanted


async def test_bad_filters_name_the_field(url: str) -> None:
    async with opened(url) as app:
        naive = datetime.datetime(2026, 1, 1)
        for field, wanted in (
            ("status", {"status": "completed"}),
            ("status", {"status": ["RUNNING", "running"]}),
            ("order", {"order": "sideways"}),
            ("tag", {"tag": "=x"}),
            ("started_from", {"started_from": naive}),
            ("started_until", {"started_until": naive}),
            ("agent", {"agent": "x"}),
            ("cursor", {"cursor": "nonsense"}),
            ("most", {"most": 0}),
            ("most", {"most": 501}),
        ):
            with pytest.raises(errors.InvalidInput) as caught:
                await app.executions(**wanted)  # pyright: ignore[reportArgumentType]
            assert caught.value.details["field"] == field
        jobs = await app.jobs(most=1)
        assert jobs.cursor is None
        with pytest.raises(errors.InvalidInput) as caught:
            await app.execution_counts("week")
        assert caught.value.details["field"] == "by"


class Counted:
    """A database that counts what a script asks for and gets."""

    def __init__(self, inner: database.Database) -> None:
        self._inner = inner
        self.statements = 0
        self.rows = 0

    async def read(self, script: Any, **options: Any) -> Any:
        return await self._inner.read(lambda: self._counted(script()), **options)

    def _counted(self, script: Any) -> Any:
        answer: Any = None
        while True:
            try:
                request = script.send(answer)
            except StopIteration as stop:
                return stop.value
            answer = yield request
            self.statements += 1
            self.rows += len(answer)


@pytest.mark.parametrize(
    "wanted", [{}, {"agent_name": "agent-7"}, {"status": "RUNNING"}, {"agent_name": "agent-7", "status": "RUNNING"}]
)
async def test_c8_a_page_costs_the_same_however_many_agents_and_executions_there_are(url: str, wanted: Any) -> None:
    """C10: no machine is listed, and nothing is fetched that is not on the page (and the one that follows it)."""
    async with opened(url) as app:
        asked = copy.copy(app.engine.store)
        costs: list[tuple[int, int]] = []
        for agents, first in ((10, 0), (100, 2000)):
            events = [
                change(name=f"{agents}-{n}", machine=f"agent-{n % agents}", start=first + n) for n in range(agents * 12)
            ]
            for start in range(0, len(events), 500):
                await app.index.report(events[start : start + 500])
            counted = Counted(app.engine.db)
            asked.db = counted  # pyright: ignore[reportAttributeAccessIssue]
            page = await asked.executions("default", filters.execution_filter(**wanted), most=10)
            assert len(page) == 10
            costs.append((counted.statements, counted.rows))
        assert costs[0] == costs[1]
        assert costs[0][1] == 11 + 11 + 2 * 10, "keys, rows and tags"


@pytest.mark.parametrize(
    "wanted", [{"agent_name": "agent-0"}, {"status": "RUNNING"}, {"status": ["FAILED", "ABORTED"]}]
)
async def test_c8_filters_that_never_meet_cost_the_same_however_many_executions_there_are(
    url: str, wanted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tag that is on many, on none of which there is what else is wanted: the page ends when enough was looked at."""
    monkeypatch.setattr(executions, "EXAMINED", 20)
    async with opened(url) as app:
        asked = copy.copy(app.engine.store)
        costs: list[tuple[int, int]] = []
        for agents, first in ((5, 0), (50, 1000)):
            events = [
                change(
                    "SUCCEEDED" if n % 2 else ("RUNNING", "FAILED", "ABORTED")[n // 2 % 3],
                    name=f"{agents}-{n}",
                    machine=f"agent-{n % 2 * (n % agents)}",
                    start=first + n,
                    tags=AGENT | ({"team": "a"} if n % 2 and n % agents else {}),
                )
                for n in range(agents * 30)
            ]
            for start in range(0, len(events), 500):
                await app.index.report(events[start : start + 500])
            counted = Counted(app.engine.db)
            asked.db = counted  # pyright: ignore[reportAttributeAccessIssue]
            page = await asked.executions("default", filters.execution_filter(tag="team=a", **wanted), most=10)
            assert list(page) == []
            assert page.cursor is not None
            costs.append((counted.statements, counted.rows))
        looks = len(wanted["status"]) if isinstance(wanted.get("status"), list) else 1
        assert costs[0] == costs[1]
        assert costs[0][1] == (1 + looks) * 21, "the first keys of the tag, and of what else is wanted"
