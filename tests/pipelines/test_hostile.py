"""Several hands at one item, and hands that do not mean well."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import apsw
import asyncpg
import pytest

from ostinato import audit, errors, testing
from ostinato.core import commands
from ostinato.reactions import bulk, item_actions, item_views
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_budgets import paused, spending
from tests.pipelines.test_items import by_raw_sql, check, enter, status

REFUSED = (apsw.SQLError, apsw.ConstraintError, asyncpg.CheckViolationError)


@pytest.mark.parametrize("via", ["[]", "{}", "null", '[{"to":null}]', '[{"to":400},{"to":121}]'])
async def test_the_database_is_not_fooled_by_what_is_said_to_have_led_to_a_status(url: str, via: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        with pytest.raises(REFUSED, match=r"cannot go from [34]00 to"):
            await by_raw_sql(url, f"UPDATE item SET status = 121, via = '{via}' WHERE item_id = 'a1'")
        assert await status(kit) == 300
        await check(kit)


async def test_an_item_stays_in_its_pipeline_and_keeps_its_history(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.define(publishing(name="other", moves=[{"from": "pending_review", "to": "scoring"}]))
        with pytest.raises(REFUSED):
            await by_raw_sql(url, "UPDATE item SET pipeline = 'other' WHERE item_id = 'a1'")
        with pytest.raises(REFUSED):
            await by_raw_sql(url, "DELETE FROM status_history WHERE item_id = 'a1'")
        await check(kit)


COLUMNS = (
    "tenant, item_id, pipeline, version, {status}, open, job_id, run, steps, step, attempt, retry_at, failures, "
    "entered_at, status_at, digest, payload"
)
AGAIN = f"INTO item ({COLUMNS.format(status='status')}) SELECT {COLUMNS.format(status=100)} FROM item i"
TOLD_OTHERWISE = "SELECT tenant, item_id, number, 7, 8, 9, version, run FROM status_history WHERE number = 1"
HISTORY = "INTO status_history (tenant, item_id, number, from_code, to_code, at, version, run)"


async def test_b7_an_item_and_its_history_are_not_replaced(url: str) -> None:
    """In the ways that a database has to write over a row without an UPDATE of it."""
    room = Newsroom(url)
    room.fail("summarize", 1)
    ways = {
        "sqlite": (
            (f"INSERT OR REPLACE {AGAIN}", "item a1 cannot go from 210 to 100"),
            (f"REPLACE {AGAIN}", "item a1 cannot go from 210 to 100"),
            (f"INSERT OR REPLACE {HISTORY} {TOLD_OTHERWISE}", "append-only"),
            ("UPDATE OR REPLACE item SET status = 121", "item a1 cannot go from 210 to 121"),
            ("UPDATE OR IGNORE item SET status = 121", "item a1 cannot go from 210 to 121"),
        ),
        "postgresql": (
            (
                f"INSERT {AGAIN} ON CONFLICT (tenant, item_id) DO UPDATE SET status = 121",
                "item a1 cannot go from 210 to 121",
            ),
            ("MERGE INTO item i USING (SELECT 1) s ON true WHEN MATCHED THEN UPDATE SET status = 121", "210 to 121"),
            (
                f"INSERT {HISTORY} {TOLD_OTHERWISE} ON CONFLICT (tenant, item_id, number) DO UPDATE SET to_code = 7",
                "append-only",
            ),
            ("TRUNCATE status_history", "append-only"),
            ("TRUNCATE item, status_history", "append-only"),
        ),
    }
    async with testing.open(room.app) as kit:
        await enter(kit)
        before = await kit.app.pipelines.history("a1")
        for sql, told in ways[url.partition(":")[0]]:
            with pytest.raises(REFUSED, match=told):
                await by_raw_sql(url, sql)
        assert await kit.app.pipelines.history("a1") == before
        await kit.advance(60)
        assert await status(kit) == 300
        await check(kit)


async def test_b7_what_is_legal_in_a_version_does_not_change(url: str) -> None:
    """Nobody takes a move away; and if somebody adds one, the audit knows better."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        for sql in (
            "UPDATE state_transition SET to_code = 121 WHERE from_code = 300 AND to_code = 400",
            "DELETE FROM state_transition WHERE to_code = 400",
            "UPDATE pipeline_status SET name = 'lost' WHERE code = 300",
            "DELETE FROM pipeline_status",
        ):
            with pytest.raises(REFUSED, match="a version of a pipeline does not change"):
                await by_raw_sql(url, sql)
        await check(kit)
        await by_raw_sql(url, "INSERT INTO state_transition VALUES ('default', 'publishing', 1, 300, 121)")
        [problem] = (await audit.audit(kit.app.engine.store)).problems
        assert (problem.invariant, problem.message) == (
            "I10",
            "version 1 of pipeline 'publishing' and the database disagree on 300 to 121",
        )
        await by_raw_sql(url, "INSERT INTO state_transition VALUES ('default', 'publishing', 2, 0, 400)")
        assert len((await audit.audit(kit.app.engine.store)).problems) == 2


async def test_moves_that_are_made_at_the_same_time_are_all_in_the_history(url: str) -> None:
    room = Newsroom(url)
    moves = [{"from": "published", "to": "updated"}, {"from": "updated", "to": "duplicate"}]
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing(moves=moves))
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        await kit.app.pipelines.decide("a1", "approve", actor="rita")
        both = [commands.MoveItem("a1", "updated", "rita"), commands.MoveItem("a1", "duplicate", "olga")]
        await kit.app.engine.store.execute(kit.app.tenant, both)
        history = await kit.app.pipelines.history("a1")
        assert [(m.from_code, m.to_code, m.moved_by) for m in history[-2:]] == [
            (400, 410, "rita"),
            (410, 520, "olga"),
        ]
        await check(kit)


async def test_a_change_of_an_item_is_not_written_over_another(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        steps = 'CAST(\'{"fetch":["completed",9,null]}\' AS ' + ("BLOB)" if url.startswith("sqlite") else "bytea)")
        change = f"UPDATE item SET reviewed_at = 7, reviewed_by = 'rita', steps = {steps}"
        moved = await _during(url, change, kit.app.pipelines.move("a1", "pending_review", payload={"title": "B"}))
        assert moved.status == 300
        item, payload = await kit.app.pipelines.item("a1")
        assert (payload, item.reviewed_by, item.standing()["fetch"].attempt) == ({"title": "B"}, "rita", 9)


@pytest.mark.parametrize("code", [540, 500, 400])
async def test_b11_nobody_decides_about_an_item_that_was_put_to_an_end(url: str, code: int) -> None:
    """Who moves an item past its review has decided: neither a person nor the deadline takes it back from there."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        course = publishing()["course"]
        course[7] |= {"deadline": 3600, "onDeadline": "approve"}
        await kit.app.pipelines.define(publishing(course=course))
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        await by_raw_sql(url, f"UPDATE item SET status = {code} WHERE item_id = 'a1'")
        before = await kit.app.pipelines.history("a1")
        for decision in ("approve", "reject", "re-enrich"):
            with pytest.raises(errors.ApprovalDecided, match=f"{code} .*it is over, and nobody is asked about it"):
                await kit.app.pipelines.decide("a1", decision, actor="rita")
        for decision in ("approve", "reject"):
            with pytest.raises(errors.ApprovalDecided, match="cancel job 'a1:1'"):
                await kit.app.approvals.decide("a1:1", "review", decision, actor="rita")
        approving = bulk.Bulk(action="decide", decision="approve")
        preview = await kit.app.pipelines.bulk("publishing", item_views.Wanted(), approving, actor="rita")
        assert [one.error_code for one in preview.items] == ["approval_decided"]
        await kit.advance(3600)
        assert (await status(kit), await kit.app.approvals.list(), room.undone) == (code, [], [])
        assert await kit.app.pipelines.history("a1") == before
        await check(kit)


@pytest.mark.parametrize("code", [540, 500, 400])
async def test_an_item_that_was_put_to_an_end_stays_there_when_its_run_is_cancelled(url: str, code: int) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await by_raw_sql(url, f"UPDATE item SET status = {code} WHERE item_id = 'a1'")
        await (await kit.app.job("a1:1")).cancel()
        assert (await status(kit), await kit.app.approvals.list()) == (code, [])
        await check(kit)


async def test_an_item_that_was_moved_to_an_end_by_hand_is_asked_about_no_more(url: str) -> None:
    room = Newsroom(url)
    moves = [{"from": "pending_review", "to": "duplicate"}, {"from": "to_score", "to": "duplicate"}]
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing(moves=moves))
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        await kit.app.pipelines.move("a1", "duplicate", actor="rita", reason="we had it")
        assert (await status(kit), await kit.app.approvals.list()) == (520, [])
        assert (await (await kit.app.job("a1:1")).info()).state == "cancelled"
        with pytest.raises(errors.ApprovalDecided, match="no longer waiting: it is withdrawn"):
            await kit.app.pipelines.decide("a1", "approve", actor="rolf")
        await kit.app.pipelines.restart("a1", "summarize")
        await kit.run_until_idle()
        assert await status(kit) == 300
        room.fail("score", 1)
        await kit.app.pipelines.enter("publishing", {"title": "Olds"}, item_id="a2")
        await kit.run_until_idle()
        await kit.app.pipelines.move("a2", "duplicate", actor="rita")
        await kit.advance(600)
        assert (await kit.app.pipelines.view("a2")).status == "duplicate"
        assert room.calls["score"] == 2
        await check(kit)


async def test_b11_a_review_is_not_skipped(url: str) -> None:
    """Who may operate jobs would publish what nobody has approved, or somebody has rejected."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        for state in ("waiting", "failed"):
            job = await kit.app.job("a1:1")
            assert {one.task_id: one.state for one in await job.tasks()}["review"] == state
            with pytest.raises(errors.NotPossible, match="the review of item 'a1': decide on the item instead"):
                await job.skip_task("review")
            if state == "waiting":
                await kit.app.pipelines.decide("a1", "reject", actor="rita")
                await kit.run_until_idle()
        assert await status(kit) == 540
        await check(kit)


async def _during(url: str, sql: str, act: Coroutine[Any, Any, Any]) -> Any:
    """What becomes of something that is done while another transaction has changed what it is about."""
    if url.startswith("sqlite:///"):
        return await _during_on_sqlite(url, sql, act)
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute(sql)
            doing = asyncio.create_task(act)
            await asyncio.sleep(0.3)
        return await doing
    finally:
        await connection.close()


async def _during_on_sqlite(url: str, sql: str, act: Coroutine[Any, Any, Any]) -> Any:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(sql)
        doing = asyncio.create_task(act)
        await asyncio.sleep(0.1)
        connection.execute("COMMIT")
        return await doing
    finally:
        connection.close()


@pytest.mark.parametrize("more", [{"raiseTo": 0.5}, {"raiseTo": "much"}, None])
async def test_who_is_asked_for_more_and_gives_too_little_is_asked_again(url: str, more: Any) -> None:
    room = spending(url)
    async with testing.open(room.app) as kit:
        await paused(kit)
        [asked] = await kit.app.approvals.list()
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "approve", actor="rita", payload=more)
        await kit.run_until_idle()
        [again] = await kit.app.approvals.list()
        assert again.job_id != asked.job_id
        await kit.app.approvals.decide(again.job_id, again.task_id, "approve", actor="rita")
        await kit.run_until_idle()
        assert await status(kit) == 300
        await check(kit)


async def test_what_may_not_be_edited_is_not_edited_by_who_begins_it_again(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        course = publishing()["course"]
        course[7] = course[7] | {"allowEdit": False}
        await kit.app.pipelines.define(publishing(course=course))
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        for decision in ("approve", "re-enrich"):
            with pytest.raises(errors.InvalidInput, match="does not allow to edit"):
                await kit.app.pipelines.decide("a1", decision, actor="rita", payload={"title": "B"})


async def test_who_was_overtaken_does_not_begin_again_what_was_approved(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.decide("a1", "approve", actor="rita")
        late = item_actions.Restart("pending_enrichment", reviewed=True)  # after it was looked whether anybody is asked
        with pytest.raises(errors.ApprovalDecided, match="400 published: nobody is asked about it any more"):
            await kit.app.pipelines._begin_again("a1", late, "olga")  # pyright: ignore[reportPrivateUsage]
        assert await status(kit) == 400


async def test_an_item_that_may_not_cost_more_is_given_up_when_what_works_on_it_is_done(url: str) -> None:
    room = spending(url)

    @room.app.step("tag-dearly")
    async def tag(ctx: Any) -> None:
        await ctx.spend(cost=2)
        raise ConnectionError

    async with testing.open(room.app) as kit:
        course = publishing()["course"]
        dear, elsewhere = course[5]["together"]
        together = [dear | {"function": "tag-dearly"}, elsewhere | {"queue": "elsewhere"}]
        course[5] = {"together": together}
        await kit.app.pipelines.define(publishing(course=course, budget=1.0))
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        await kit.advance(60)
        [asked] = await kit.app.approvals.list()
        await kit.app.approvals.decide(asked.job_id, asked.task_id, "reject", actor="rita")
        for _ in range(5):
            await kit.advance(60)
        assert await status(kit) == 220
        await (await kit.app.job("a1:1")).skip_task("thumbnail", "nobody has time")
        await kit.advance(600)
        assert await status(kit) == 500
        assert not await kit.app.dead_letters()
        await check(kit)


async def test_a_job_that_says_it_is_about_an_item_is_none_of_its_runs(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        task = {"taskId": "a", "name": "forget", "delay": 3600}
        await kit.app.submit({"jobId": "mine", "tasks": [task], "tags": {"item": "a1", "undo": "all of it"}})
        assert [one.job_id for one in (await kit.app.pipelines.detail("a1")).runs] == ["a1:1"]


@pytest.mark.parametrize("reason", ["a\0b", "x" * 5000, "\ud800"])
async def test_a_reason_that_cannot_be_kept_is_refused_whatever_is_done_with_the_item(url: str, reason: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        pipelines = kit.app.pipelines
        acts = (
            lambda: pipelines.move("a1", "in_review", reason=reason),
            lambda: pipelines.restart("a1", "fetch", reason=reason),
            lambda: pipelines.roll_back("a1", reason=reason),
        )
        for act in acts:
            with pytest.raises(errors.InvalidInput, match="reason"):
                await act()
        assert (await status(kit), (await pipelines.view("a1")).run) == (300, 1)


@pytest.mark.parametrize(
    ("said", "field"),
    [({"reason": "a\0b"}, "reason"), ({"status": 5}, "status"), ({"status": "x" * 1_000_000}, "status")],
    ids=["reason", "no text", "too long"],
)
async def test_a_step_that_says_what_cannot_be_kept_fails_and_says_so(
    url: str, said: dict[str, Any], field: str
) -> None:
    room = Newsroom(url)

    @room.app.step("babble")
    async def babble(ctx: Any) -> None:
        await ctx.finish(**({"status": "unreachable"} | said))

    async with testing.open(room.app) as kit:
        course = publishing()["course"]
        course[1] |= {"function": "babble"}
        await kit.app.pipelines.define(publishing(course=course))
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        found = await kit.app.pipelines.detail("a1")
        assert found.last_error is not None
        assert (found.last_error.type, field in found.last_error.message) == ("InvalidInput", True)
