"""Jobs found by state, name, tag, correlation id, request id and time: newest first, page by page."""

import datetime
import random
from collections.abc import Sequence
from typing import Any

import pytest

from ostinato import Ostinato, errors, testing, views
from tests.engine import support
from tests.engine.support import job, task


def ids(found: Sequence[views.JobView]) -> list[str]:
    return [view.job_id for view in found]


async def test_jobs_are_found_by_tag(url: str) -> None:
    async with support.opened(url) as app:
        for name, tags in {"both": {"team": "a", "env": "live"}, "one": {"team": "b"}, "none": {}}.items():
            await (await app.submit(job(task("a"), jobId=name, tags=tags))).result(support.PATIENCE)
        assert ids(await app.jobs(tag="team")) == ["one", "both"]
        assert ids(await app.jobs(tag="team=a")) == ["both"]
        assert ids(await app.jobs(tag="env=")) == []
        assert ids(await app.jobs(tag="team", state="completed", name="test")) == ["one", "both"]
        assert ids(await app.jobs(tag="team", state="running")) == []
        assert ids(await app.jobs(tag="team=a", name="other")) == []


async def test_the_longest_tags_are_found(url: str) -> None:
    """An index entry has its limits; the longest tag in the widest script stays below them."""
    async with support.opened(url) as app:
        key, value = "".join(chr(0x20000 + n) for n in range(128)), "".join(chr(0x20000 + n * 7) for n in range(256))
        made = await app.submit(job(task("a"), jobId="j" * 128, tags={key: value, "empty": ""}))
        assert ids(await app.jobs(tag=f"{key}={value}")) == [made.job_id]
        assert ids(await app.jobs(tag="empty=")) == [made.job_id]
        await made.result(support.PATIENCE)


async def test_a_correlation_id_is_the_producers_or_the_jobs_own(url: str) -> None:
    async with support.opened(url) as app:
        first = await app.submit(job(task("a"), jobId="order"))
        second = await app.submit(job(task("a"), jobId="other", correlationId="order", requestId="r"))
        await first.result(support.PATIENCE)
        await second.result(support.PATIENCE)
        assert ids(await app.jobs(correlation_id="order")) == ["other", "order"]
        assert ids(await app.jobs(correlation_id="order", request_id="r")) == ["other"]
        page = await app.jobs(correlation_id="order", most=1)
        assert ids(page) == ["other"]
        assert ids(await app.jobs(correlation_id="order", most=1, cursor=page.cursor)) == ["order"]
        assert ids(await app.jobs(correlation_id="other")) == []


async def test_any_filters_find_what_a_naive_look_finds(url: str) -> None:
    """All combinations of filters, in pages of any size, with jobs of the same moment among them."""
    chance = random.Random(7)
    app = support.make(url)
    async with testing.open(app) as kit:
        for n in range(60):
            fields: dict[str, Any] = {"name": chance.choice(["report", "import"])}
            fields |= {"tags": chance.choice([{}, {"team": "a"}, {"team": "b", "env": "live"}])}
            fields |= chance.choice([{}, {"requestId": "r1"}]) | chance.choice([{}, {"correlationId": "job-7"}])
            queue = chance.choice(["default", "default", "nobody-listens"])
            await app.submit(job(task("a", chance.choice(["echo", "break"]), queue=queue), jobId=f"job-{n}", **fields))
            kit.clock.advance(chance.choice([0, 1]))
        await kit.run_until_idle()
        everything = await app.jobs(most=500)
        assert len(everything) == 60
        assert {view.state for view in everything} == {"running", "completed", "failed"}
        for _ in range(150):
            wanted = random_filters(chance, [view.created_at for view in everything])
            expected = [view for view in everything if matches(view, **wanted)]
            assert await in_pages(app, chance.randint(1, 20), **wanted) == expected, wanted


def random_filters(chance: random.Random, times: list[datetime.datetime]) -> dict[str, Any]:
    choices: dict[str, list[Any]] = {
        "state": ["running", "completed", ["failed", "running"], ["completed", "failed"], "cancelled"],
        "name": ["report", "import", "nothing"],
        "tag": ["team", "team=a", "team=b", "env=live", "env=x"],
        "request_id": ["r1", "r2"],
        "correlation_id": ["job-7", "job-8"],
        "created_from": times,
        "created_until": times,
    }
    chosen = [name for name in choices if chance.random() < 0.3]
    return {name: chance.choice(choices[name]) for name in chosen}


def matches(view: views.JobView, **wanted: Any) -> bool:
    states = wanted.get("state", view.state)
    key, _, value = wanted.get("tag", "").partition("=")
    return (
        view.state in ([states] if isinstance(states, str) else states)
        and view.name == wanted.get("name", view.name)
        and (not key or (key in view.tags and (not value or view.tags[key] == value)))
        and view.request_id == wanted.get("request_id", view.request_id)
        and view.correlation_id == wanted.get("correlation_id", view.correlation_id)
        and view.created_at >= wanted.get("created_from", view.created_at)
        and (view.created_at < wanted["created_until"] if "created_until" in wanted else True)
    )


async def in_pages(app: Ostinato, size: int, **wanted: Any) -> list[views.JobView]:
    found: list[views.JobView] = []
    cursor = None
    while True:
        page = await app.jobs(most=size, cursor=cursor, **wanted)
        assert len(page) <= size
        found += page
        cursor = page.cursor
        if cursor is None:
            return found


async def test_a_cursor_belongs_to_the_tenant_that_uses_it(url: str) -> None:
    async with support.opened(url) as app, support.opened(url, tenant="other") as other:
        for _ in range(3):
            await app.submit(job(task("a"), tags={"team": "a"}))
        page = await app.jobs(most=1)
        assert page.cursor is not None
        assert await other.jobs(cursor=page.cursor) == []
        assert await other.jobs(tag="team") == []


async def test_odd_filters_are_refused(url: str) -> None:
    async with support.opened(url) as app:
        for wanted in ({"state": "happy"}, {"most": 501}, {"cursor": "oops"}, {"tag": ""}):
            with pytest.raises(errors.InvalidInput):
                await app.jobs(**wanted)  # type: ignore[arg-type]


async def test_jobs_without_tags_write_none(url: str) -> None:
    async with support.opened(url) as app:
        await support.run(app, task("a"))
        await support.run(app, task("a"), tags={"team": "a", "env": "live"})
        assert await support.count(url, "job_tag") == 2


async def test_dependencies_are_those_of_the_job_and_its_tenant(url: str) -> None:
    async with (
        support.opened(url, work=False, check_functions=False) as app,
        support.opened(url, tenant="other", work=False, check_functions=False) as other,
    ):
        made = await app.submit(job(task("a"), task("b", after="a"), task("c", after="a b"), jobId="same"))
        await app.submit(job(task("x"), task("b", after="x"), task("c", after="x")))
        await other.submit(job(task("y"), task("b", after="y"), task("c", after="y"), jobId="same"))
        assert await made.dependencies(["a", "b", "c"]) == {"b": ["a"], "c": ["a", "b"]}
        assert await made.dependencies(["c"]) == {"c": ["a", "b"]}
