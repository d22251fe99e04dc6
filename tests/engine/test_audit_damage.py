"""What of a job cannot be read is one problem of that job, and stops nothing: all others are looked at as well."""

from __future__ import annotations

import apsw
import asyncpg
import pytest

from ostinato import Context, Keyring, Ostinato, Retry, TerminalError, audit, testing
from tests.engine.test_audit import run_sql

LARGE = 40_000
OF_ONE = "WHERE job_id = 'one'"
INPUT = f"SELECT substr(input, 2) FROM task {OF_ONE} AND task_id = 'f'"
OUTPUT = f"SELECT substr(output, 2) FROM task {OF_ONE} AND task_id = 'f'"
STEP = f"SELECT substr(output, 2) FROM step {OF_ONE}"
SIGNAL = f"SELECT substr(payload, 2) FROM signal {OF_ONE}"
LOST = {
    f"digest IN ({INPUT})": ("f", "the input of task 'f'"),
    f"digest IN ({OUTPUT})": ("f", "the output of task 'f'"),
    f"digest IN ({STEP})": ("f", "the result of step 'large' of task 'f'"),
    f"digest IN ({SIGNAL})": (None, "the payload of signal 'go'"),
    f"digest NOT IN ({INPUT} UNION {OUTPUT} UNION {STEP} UNION {SIGNAL})": (None, "the data of event 1 (Job Created)"),
    "digest IS NOT NULL": (None, "the data of event 1 (Job Created), the input of task 'f', the output of task 'f'"),
}
DAMAGE = {
    "event_page SET body = CAST('[[' AS {bytes})": (None, "its events cannot be read: "),
    "event_page SET body = CAST('[[1, 2]]' AS {bytes})": (None, "its events cannot be read: "),
    """event_page SET body = CAST('[["Job Created",null,null,{}]]' AS {bytes})""": (None, "KeyError: 'name'"),
    """event_page SET body = CAST('[["Job Created",null,null,"?"]]' AS {bytes})""": (None, "its events cannot be read"),
    "task SET input = CAST('{' AS {bytes})": (None, "the input of task 'f' cannot be read: "),
    "task SET output = CAST('{' AS {bytes})": ("f", "its row cannot be read: "),
    "task SET error = CAST('{' AS {bytes})": ("bad", "its row cannot be read: "),
    "job SET tags = CAST('{' AS {bytes})": (None, "its row cannot be read: "),
    "approval SET document = CAST('{' AS {bytes})": (None, "what people were asked cannot be read: "),
}
UNGUARDED = {
    "sqlite": "DROP TRIGGER event_page_immutable",
    "postgresql": "ALTER TABLE event_page DISABLE TRIGGER event_page_immutable",
}


def build(url: str) -> Ostinato:
    app = Ostinato(url)

    @app.function
    async def f(ctx: Context, given: str = "") -> str:
        await ctx.step("large", lambda: "s" * LARGE)
        return "o" * LARGE

    @app.function(retry=Retry(max_attempts=1))
    async def bad() -> None:
        raise TerminalError("not like this")

    return app


async def two_jobs(kit: testing.Kit) -> None:
    tasks = [
        {"taskId": "f", "name": "f", "input": {"given": "i" * LARGE}},
        {"taskId": "bad", "name": "bad"},
        {"taskId": "ask", "name": "people", "approval": {"title": "May it?"}},
    ]
    for job_id in ("one", "two"):
        await kit.app.submit({"jobId": job_id, "tags": {"of": job_id}, "tasks": tasks})
        await kit.app.signal(job_id, "go", "p" * LARGE)
    await kit.run_until_idle()


async def check(url: str, sql: str, task_id: str | None, says: str) -> None:
    """What is planted in the first job is one problem, and what is planted in the second one is found as well."""
    async with testing.open(build(url)) as kit:
        await two_jobs(kit)
        await run_sql(url, f"{sql}; UPDATE job SET blocked = blocked + 1 WHERE job_id = 'two'")
        # (That a trigger had to go for it is a problem as well.)
        first, second = [one for one in (await audit.audit(kit.app.engine.store)).problems if one.job_id]
    assert (first.invariant, first.job_id, first.task_id) == ("I4", "one", task_id)
    assert says in first.message
    assert (second.invariant, second.job_id) == ("I8", "two")


@pytest.mark.parametrize("which", LOST)
async def test_a_large_payload_that_is_gone_is_named(url: str, which: str) -> None:
    await check(url, f"DELETE FROM blob {OF_ONE} AND {which}", *LOST[which])


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_stops_nothing(url: str, damage: str) -> None:
    unguarded = UNGUARDED[url.partition(":")[0]]
    await check(url, f"{unguarded}; UPDATE {damage} {OF_ONE}", *DAMAGE[damage])


async def test_a_large_payload_that_is_gone_is_named_where_all_are_encrypted(url: str) -> None:
    app = build(url)
    app.keyring = Keyring({"one": b"1" * 32})
    async with testing.open(app) as kit:
        await two_jobs(kit)
        await kit.audit()
        await run_sql(url, f"DELETE FROM blob {OF_ONE}")
        (problem,) = (await audit.audit(kit.app.engine.store)).problems
    assert (problem.invariant, problem.job_id) == ("I4", "one")
    for what in (
        "the data of event 1",
        "the input of task 'f'",
        "the output of task 'f'",
        "the result of step 'large'",
    ):
        assert what in problem.message


async def test_trouble_of_the_database_is_no_problem_of_a_job(url: str) -> None:
    async with testing.open(build(url)) as kit:
        await two_jobs(kit)
        await run_sql(url, "DROP TABLE edge")
        with pytest.raises((apsw.SQLError, asyncpg.UndefinedTableError)):
            await audit.audit(kit.app.engine.store)
