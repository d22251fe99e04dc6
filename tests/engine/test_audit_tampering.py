"""What is changed by raw SQL is found by the audit: each change in a job of its own and all of them at once, so that
each is told apart from the others, and nothing else is found."""

from __future__ import annotations

import asyncio
import collections
import itertools
from typing import Any

import pytest

from ostinato import Context, EngineOptions, Ostinato, Retry, audit, testing
from ostinato.core import codec, events, fold
from tests.engine.test_audit import run_sql
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import enter

OF = "tenant = 'default' AND job_id = '{job}'"
TAMPERINGS = {
    "A-1: its row is missing": (
        "DELETE FROM job WHERE " + OF,
        "its row is missing, and there is something of it in job_tag, task, edge, timer, step, signal, event_page",
    ),
    "A-2: a task sleeps longer": (
        "UPDATE timer SET due_at = due_at + 1 WHERE " + OF + " AND task_id = 'sleeps'",
        "its timer is due at",
    ),
    "A-2: a wait ends later": (
        "UPDATE timer SET due_at = due_at + 1 WHERE " + OF + " AND task_id = 'waits'",
        "its timer is due at",
    ),
    "A-2: a wait does not end": (
        "UPDATE timer SET due_at = NULL WHERE " + OF + " AND task_id = 'waits'",
        "its timer is due at",
    ),
    "A-2: it waits for another signal": (
        "UPDATE timer SET name = 'other' WHERE " + OF + " AND task_id = 'waits'",
        "its timer waits for something else",
    ),
    "A-2: a retry comes earlier": (
        "UPDATE timer SET due_at = due_at - 1 WHERE " + OF + " AND task_id = 'fails'",
        "its timer is due at",
    ),
    "A-2: a delay is longer": (
        "UPDATE timer SET due_at = due_at + 1 WHERE " + OF + " AND task_id = 'later'",
        "its timer is due at",
    ),
    "A-2: a wait becomes a sleep": (
        "UPDATE timer SET kind = 'sleep' WHERE " + OF + " AND task_id = 'waits'",
        "its timer is of kind sleep",
    ),
    "A-2: a job may run longer": (
        "UPDATE timer SET due_at = due_at + 1 WHERE " + OF + " AND task_id = ''",
        "the timer of its deadline is due at another time",
    ),
    "A-2: a job may run longer, by its row too": (
        "UPDATE timer SET due_at = due_at + 1 WHERE " + OF + " AND task_id = '';"
        "UPDATE job SET deadline_at = deadline_at + 1 WHERE " + OF,
        "the row and the events disagree about its deadline",
    ),
    "A-3: a signal would come twice": (
        "UPDATE signal SET taken = FALSE WHERE " + OF + " AND signal_id = 'one'",
        "says that signal 'go' (one) was taken by no task",
    ),
    "A-3: a signal would never come": (
        "UPDATE signal SET taken = TRUE WHERE " + OF + " AND signal_id = 'two'",
        "says that signal 'go' (two) was taken by a task",
    ),
    "A-5: somebody else submitted it": (
        "UPDATE job SET submitted_by = 'eve' WHERE " + OF,
        "the row says that submitted_by is 'eve'",
    ),
    "A-5: nobody submitted it": ("UPDATE job SET submitted_by = NULL WHERE " + OF, "submitted_by is None"),
    "A-5: its key would run it again": (
        "UPDATE job SET idempotency_key = NULL WHERE " + OF,
        "the row says that idempotency_key is None",
    ),
    "A-5: another key": ("UPDATE job SET idempotency_key = 'mine' WHERE " + OF, "idempotency_key is 'mine'"),
    "A-5: it is older": ("UPDATE job SET created_at = created_at - 1 WHERE " + OF, "says that created_at is"),
    "A-5: a task ended earlier": (
        "UPDATE task SET finished_at = finished_at - 1 WHERE " + OF + " AND task_id = 'plain'",
        "disagree about when it ended",
    ),
}


def build(url: str) -> Ostinato:
    app = Ostinato(url, options=EngineOptions(prune_every_seconds=None))

    @app.function
    async def plain() -> None:
        pass

    @app.function
    async def sleeps(ctx: Context) -> None:
        await ctx.sleep(500)

    @app.function
    async def waits(ctx: Context) -> None:
        await ctx.wait_for("go")
        await ctx.wait_for("stop", timeout=500)

    @app.function(retry=Retry(max_attempts=2, base_delay=500))
    async def fails() -> None:
        raise ConnectionError("once more")

    return app


def job(job_id: str) -> dict[str, Any]:
    return {
        "jobId": job_id,
        "idempotencyKey": f"key of {job_id}",
        "deadline": 5000,
        "tags": {"of": job_id},
        "tasks": [
            {"taskId": "plain", "name": "plain"},
            {"taskId": "sleeps", "name": "sleeps", "dependsOn": ["plain"]},
            {"taskId": "waits", "name": "waits"},
            {"taskId": "fails", "name": "fails"},
            {"taskId": "later", "name": "plain", "delay": 500},
        ],
    }


async def test_what_is_changed_by_hand_is_found(url: str) -> None:
    """A-1, A-2, A-3, A-5: jobs that are gone, timers, signals, who submitted, keys and times."""
    async with testing.open(build(url)) as kit:
        wanted: dict[str, tuple[str, str]] = {}
        sql: list[str] = []
        for number, (name, (change, says)) in enumerate(TAMPERINGS.items()):
            job_id = f"job-{number:02}"
            await kit.app.submit(job(job_id), actor="ann")
            for signal_id in ("one", "two"):
                await kit.app.signal(job_id, "go", signal_id=signal_id)
            wanted[job_id] = (name, says)
            sql += change.replace("{job}", job_id).split(";")
        await kit.run_until_idle()
        assert not (await audit.audit(kit.app.engine.store)).problems
        for statement in sql:
            await run_sql(url, statement)
        found = collections.defaultdict[str, list[str]](list)
        for problem in (await audit.audit(kit.app.engine.store)).problems:
            found[problem.job_id].append(problem.message)
    for job_id, (name, says) in wanted.items():
        assert len(found[job_id]) == 1, (name, found[job_id])
        assert says in found[job_id][0], name
    assert found.keys() == wanted.keys()


async def test_the_key_of_a_gate_is_missed(url: str) -> None:
    """A-4: with it, what was reported would be forgotten."""
    async with testing.open(build(url)) as kit:
        await kit.app.gates.define(
            {"name": "two", "members": ["a", "b"], "trigger": [{"job": {"tasks": [{"taskId": "t", "name": "plain"}]}}]}
        )
        for key in ("one", "other", "again"):
            await kit.app.gate("two").arrive(key, "a")
        await kit.app.gate("two").reset("again")
        await kit.app.gate("two").arrive("again", "b")
        assert not (await audit.audit(kit.app.engine.store)).problems
        await run_sql(url, "DELETE FROM gate_key WHERE key = 'one'")
        (problem,) = (await audit.audit(kit.app.engine.store)).problems
        assert "the key of a gate" in problem.message
        await run_sql(url, "UPDATE gate_key SET key = 'mine' WHERE key = 'other'")
        assert len((await audit.audit(kit.app.engine.store)).problems) == 2


OF_APPROVALS = (
    'document = CAST(\'{"approval":{"title":"May it?","approvers":["eve"]}}\' AS {bytes})',
    "asked = 'eve'",
    "not_submitter = FALSE",
)


async def test_who_may_decide_is_what_the_events_say(url: str) -> None:
    """Whoever changes it in the row would let others decide than those who were asked."""
    asks = {"title": "May it?", "approvers": ["ann", "bob"], "quorum": 2, "notSubmitter": True}
    async with testing.open(build(url)) as kit:
        for number in range(len(OF_APPROVALS)):
            await kit.app.submit(
                {"jobId": f"asks-{number}", "tasks": [{"taskId": "t", "name": "ask", "approval": asks}]}
            )
        await kit.run_until_idle()
        assert not (await audit.audit(kit.app.engine.store)).problems
        for number, change in enumerate(OF_APPROVALS):
            change = change.replace("{bytes}", "BLOB" if url.startswith("sqlite") else "bytea")
            await run_sql(url, f"UPDATE approval SET {change} WHERE job_id = 'asks-{number}'")
        found = (await audit.audit(kit.app.engine.store)).problems
        assert [(one.job_id, "who may decide" in one.message) for one in found] == [
            (f"asks-{number}", True) for number in range(len(OF_APPROVALS))
        ]


OF_ITEMS = {
    "what it was given": (
        "UPDATE item SET payload = CAST('{\"title\":\"Fake\"}' AS {bytes}) WHERE item_id = 'a1'",
        ["what item 'a1' was given is not what was recorded"],
    ),
    "who reviewed it": (
        "UPDATE item SET reviewed_by = 'mallory' WHERE item_id = 'a1'",
        ["item 'a1' says that 'mallory' reviewed it, and its history 'rita'"],
    ),
    "that nobody reviewed it": (
        "UPDATE item SET reviewed_by = NULL WHERE item_id = 'a1'",
        ["item 'a1' says that None reviewed it, and its history 'rita'"],
    ),
    "that it is there": (
        "DELETE FROM item WHERE item_id = 'a1'",
        ["0 items are in publishing/400, and 1 are counted", "item 'a1' is gone"],
    ),
}


@pytest.mark.parametrize("changed", OF_ITEMS)
async def test_what_is_changed_of_an_item_is_found(url: str, changed: str) -> None:
    """A-4 and defect 12: what an item was given, who reviewed it, and that it is there at all."""
    sql, says = OF_ITEMS[changed]
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.run_until_idle()
        await kit.app.pipelines.decide("a1", "approve", actor="rita", payload={"title": "Edited"})
        await kit.run_until_idle()
        assert not (await audit.audit(kit.app.engine.store)).problems
        await run_sql(url, sql)
        found = [problem.message for problem in (await audit.audit(kit.app.engine.store)).problems]
    assert len(found) == len(says), found
    assert all(any(wanted in message for message in found) for wanted in says), found


async def test_a_payload_of_another_kind_is_a_problem_like_others(sqlite_url: str) -> None:
    """SQLite keeps a text where bytes should be; PostgreSQL does not take it."""
    room = Newsroom(sqlite_url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.run_until_idle()
        await run_sql(sqlite_url, "UPDATE item SET payload = '{}' WHERE item_id = 'a1'")
        (found,) = (await audit.audit(kit.app.engine.store)).problems
        assert found.message == "what item 'a1' was given is not stored as it should be"


OF_RESULTS = {
    "what was saved": ("UPDATE result SET document = CAST('{}' AS {bytes}) WHERE job_id = 'one'", "is not what was"),
    "which words it has": ("UPDATE result SET text = CAST('0' AS {bytes}) WHERE job_id = 'one'", "is not what was"),
    "of which job it is": ("UPDATE result SET job_id = 'other' WHERE job_id = 'one'", "is not what was saved"),
    "what it is found by": ("UPDATE result_field SET value = 'flood' WHERE value = 'fire'", "is found by something"),
    "what it is about": (
        "DELETE FROM result_vector WHERE number = (SELECT min(number) FROM result)",
        "is found by something else",
    ),
    "that it is there": ("DELETE FROM result WHERE job_id = 'one'", "1 results are saved, and 2 are counted"),
}


@pytest.mark.parametrize("changed", OF_RESULTS)
async def test_what_is_changed_of_a_result_is_found(url: str, changed: str) -> None:
    """A-4: a saved result, its fields and its vector."""
    sql, says = OF_RESULTS[changed]
    async with testing.open(build(url)) as kit:
        await kit.app.results.save("one", {"summary": "A fire", "category": "fire"}, domain="incidents")
        for job_id in ("two", "three"):
            await kit.app.results.save(job_id, {"summary": "Gone"})
        await kit.app.results.delete((await kit.app.results.list())[0].result_id)
        assert not (await audit.audit(kit.app.engine.store)).problems
        await run_sql(url, sql)
        (problem,) = (await audit.audit(kit.app.engine.store)).problems
    assert says in problem.message


async def test_guards_that_are_gone_are_missed(url: str) -> None:
    """A-6: without its triggers the database takes illegal moves and changed events without a word."""
    async with testing.open(build(url)) as kit:
        assert not (await audit.audit(kit.app.engine.store)).problems
        await run_sql(url, "DROP TRIGGER task_move" + ("" if url.startswith("sqlite") else " ON task"))
        found = [problem.message for problem in (await audit.audit(kit.app.engine.store)).problems]
        assert found == ["the trigger task_move is missing"]
        if url.startswith("sqlite"):
            await run_sql(url, "DROP TRIGGER job_move")
            await run_sql(url, "CREATE TRIGGER job_move AFTER UPDATE ON job BEGIN SELECT 1; END")
        else:
            await run_sql(url, "ALTER TABLE job DISABLE TRIGGER job_move")
        found = [problem.message for problem in (await audit.audit(kit.app.engine.store)).problems]
        assert [message.split(" is ")[0] for message in found] == ["the trigger job_move", "the trigger task_move"]


def test_what_earlier_versions_did_not_tell_is_not_known() -> None:
    """A-5: events without a key and without a deadline contradict nothing."""
    data: dict[str, Any] = {"name": "old", "correlationId": "one", "tags": {}, "tasks": []}
    told = [
        events.Event("one", 1, events.JOB_CREATED, None, None, 0, codec.encode(data)),
        events.Event("one", 2, events.JOB_FAILED, None, None, 0, b"{}"),
        events.Event("one", 3, events.JOB_RESUMED, None, None, 0, b"{}"),
    ]
    job = fold.fold(told)
    assert "idempotency_key" not in job.asked
    assert job.deadline_at == fold.UNKNOWN


async def test_beside_work_and_retention_nothing_is_found(url: str) -> None:
    """A-1 to A-5: what others do meanwhile is no contradiction, nor is what retention removes."""
    room = Newsroom(url, work=True)
    app = room.app

    @app.function
    async def plain() -> None:
        pass

    @app.function
    async def waits(ctx: Context) -> None:
        await ctx.wait_for("go", timeout=60)
        await ctx.sleep(0.01)

    async def work() -> None:
        for number in itertools.count():
            job = await app.submit({
                "idempotencyKey": f"key-{number}",
                "deadline": 60,
                "tasks": [{"taskId": "waits", "name": "waits"}, {"taskId": "then", "name": "plain", "delay": 0.01}],
            })  # fmt: skip
            await job.signal("go")
            await app.pipelines.enter("publishing", {"title": "News"}, item_id=f"item-{number}")
            await app.gate("two").arrive(f"key-{number}", "a")
            await app.gate("two").arrive(f"key-{number}", "b")
            await app.prune(older_than=0)

    async with app:
        await app.pipelines.define(publishing(course=publishing()["course"][:3]))
        await app.gates.define(
            {"name": "two", "members": ["a", "b"], "trigger": [{"job": {"tasks": [{"taskId": "t", "name": "plain"}]}}]}
        )
        working = asyncio.create_task(work())
        try:
            checked = 0
            while checked < 50:
                report = await audit.audit(app.engine.store)
                assert not report.problems
                checked += report.jobs
                assert not working.done()
        finally:
            working.cancel()
            await asyncio.wait([working])
