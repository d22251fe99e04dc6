"""Jobs of rules and gates are told apart from those of users, in lists and in counts."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Ostinato, errors
from ostinato.core import filters, graph
from ostinato.store import executions
from tests.engine.support import PATIENCE, job, opened, task
from tests.index.support import change
from tests.index.test_queries import in_pages
from tests.reactions.support import quiet


async def fill(app: Ostinato, count: int) -> list[str]:
    """Jobs of users, and for each of them one of a rule, whose target fails, and one of a gate."""
    await app.rules.define(
        {"name": "r", "pattern": {"source": ["x"]}, "targets": [{"signal": {"jobId": "nobody", "name": "go"}}]}
    )
    await app.gates.define({"name": "g", "members": ["a"]})
    for n in range(count):
        made = await app.submit(job(task("a"), jobId=f"user-{n}", name="rules:user", tags={"t": "1"}))
        await app.post_events({"source": "x", "detail-type": "y", "detail": {}})
        await app.gate("g").arrive(f"k{n}", "a")
        await made.result(PATIENCE)
    await app.index.report([change("FAILED", stop=1234567900000)])
    await quiet(app)
    return [f"user-{n}" for n in reversed(range(count))]


def names(found: list[Any]) -> list[str]:
    return [one.execution_name for one in found]


@pytest.mark.parametrize("examined", [3, executions.EXAMINED])
async def test_executions_are_those_of_users_unless_all_are_wanted(
    url: str, examined: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "EXAMINED", examined)
    async with opened(url) as app:
        users = await fill(app, 7)
        for size in (2, 50):
            assert names(await in_pages(app, size)) == [*users, "abc123"]
            assert names(await in_pages(app, size, order="oldest")) == ["abc123", *users[::-1]]
            assert names(await in_pages(app, size, status="SUCCEEDED")) == users
            everything = await in_pages(app, size, include_engine=True)
            assert len(everything) == 22
            assert {one.agent_name for one in everything} == {"rules:user", "rule:r", "gate:g", "my-agent"}
            assert len(await in_pages(app, size, agent_name="gate:g")) == 7
            assert names(await in_pages(app, size, tag="t=1")) == users
            assert await in_pages(app, size, tag="rule") == []
            assert len(await in_pages(app, size, tag="rule", include_engine=True)) == 7


async def test_counts_are_of_the_same(url: str) -> None:
    async with opened(url) as app:
        users = await fill(app, 4)

        async def counted(**wanted: Any) -> dict[str, int]:
            return {one.key: one.count for one in await app.execution_counts("status", **wanted)}

        assert await counted() == {"SUCCEEDED": 4, "FAILED": 1}
        assert await counted(include_engine=True) == {"SUCCEEDED": 8, "FAILED": 5}
        assert await counted(status="SUCCEEDED") == {"SUCCEEDED": 4}
        assert await counted(tag="rule") == {}
        assert await counted(tag="rule", include_engine=True) == {"FAILED": 4}
        assert await counted(agent_name="rule:r") == {"FAILED": 4}
        assert await counted(correlation_id=users[0]) == {"SUCCEEDED": 1}
        [rule] = await app.jobs(name="rule:r", most=1)
        assert await counted(correlation_id=rule.job_id) == {}


async def test_jobs_are_told_apart_too(url: str) -> None:
    """Lists of jobs have all of them, unless somebody does not want the engine's own."""
    async with opened(url) as app:
        users = await fill(app, 30)
        assert len(await app.jobs(most=500)) == 90
        assert [one.job_id for one in await app.jobs(most=500, include_engine=False)] == users
        found: list[str] = []
        cursor = None
        while True:
            page = await app.jobs(most=7, cursor=cursor, include_engine=False, state="completed")
            assert len(page) <= 7
            found += [one.job_id for one in page]
            if (cursor := page.cursor) is None:
                break
        assert found == users
        assert len(await app.jobs(name="rule:r", include_engine=False, most=500)) == 30
        with pytest.raises(errors.InvalidInput, match="include_engine"):
            await app.jobs(include_engine="no")  # pyright: ignore[reportArgumentType]


def test_the_statements_know_whose_jobs_are_the_engines_own() -> None:
    """They name them: an index could not be gone along with a list that is given."""
    assert graph.OWN_JOBS == ("gate:", "rule:", "budget:")
    assert filters.execution_filter().users_only
    assert not filters.execution_filter(agent_name="rule:r").users_only
