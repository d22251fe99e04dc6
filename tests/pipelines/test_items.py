"""Items move through their pipeline as their steps do, and the database enforces it."""

from __future__ import annotations

import time
from typing import Any

import apsw
import asyncpg
import pytest

from ostinato import audit, errors, testing
from ostinato.core import item_filters
from ostinato.core.retry import Retry
from ostinato.reactions.item_views import Wanted
from tests.pipelines.support import Newsroom, publishing

TO_REVIEW = [100, 110, 111, 112, 120, 121, 122, 200, 210, 211, 212, 220, 221, 222, 230, 231, 232, 240, 300]


async def enter(kit: testing.Kit, item_id: str = "a1", **settings: Any) -> None:
    await kit.app.pipelines.define(publishing())
    await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id=item_id, **settings)
    await kit.run_until_idle()


async def status(kit: testing.Kit, item_id: str = "a1") -> int:
    return (await kit.app.pipelines.item(item_id))[0].status


async def passed(kit: testing.Kit, item_id: str = "a1") -> list[int]:
    return [move.to_code for move in await kit.app.pipelines.history(item_id)]


async def check(kit: testing.Kit) -> None:
    assert not (await audit.audit(kit.app.engine.store, kit.app.tenant)).problems


async def by_raw_sql(url: str, sql: str) -> None:
    if url.startswith("sqlite:///"):
        with apsw.Connection(url.removeprefix("sqlite:///")) as connection:
            connection.execute(sql).fetchall()
        return
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


async def test_an_item_passes_all_its_statuses_up_to_the_review(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        assert await passed(kit) == TO_REVIEW
        assert room.calls == dict.fromkeys(Newsroom.STEPS, 1)
        item, payload = await kit.app.pipelines.item("a1")
        assert (item.status, item.run, item.open, item.step, payload) == (300, 1, True, "review", {"title": "News"})
        results = await kit.app.pipelines.results(item)
        assert results["tag"]["saw"] == ["fetch", "score", "summarize"]
        await check(kit)


async def test_an_item_entered_twice_is_one_item(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        again = await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        assert (again.created, again.status) == (False, 300)
        with pytest.raises(errors.IdempotencyConflict, match="a1"):
            await kit.app.pipelines.enter("publishing", {"title": "Other"}, item_id="a1")


async def test_b15_retries_wait_60_120_and_240_seconds_and_are_seen(url: str) -> None:
    """B13, B14, B15, B17 (US-1, US-3): the item goes back to `to_summarize` and says when it is tried again."""
    room = Newsroom(url)
    room.fail("summarize", 3)
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing())
        await kit.app.pipelines.set_retry("publishing", "summarize", Retry(max_attempts=4, base_delay=60))
        await enter(kit)
        for delay in (60, 120, 240):
            item, _ = await kit.app.pipelines.item("a1")
            assert (item.status, item.error_type) == (210, "ConnectionError")
            assert item.retry_at == kit.clock() + delay * 1_000_000
            await kit.advance(delay)
        assert (await status(kit), room.calls["summarize"]) == (300, 4)
        item, _ = await kit.app.pipelines.item("a1")
        assert (item.retry_at, item.failures) == (None, 3)
        attempts = [m.attempt for m in await kit.app.pipelines.history("a1") if m.to_code == 211]
        assert attempts == [1, 2, 3, 4]
        await check(kit)


async def test_x8_exhausted_retries_end_in_599_and_what_no_retry_can_help_in_500(url: str) -> None:
    room = Newsroom(url)
    room.fail("tag")
    async with testing.open(room.app) as kit:
        await enter(kit)
        for delay in (60, 120, 240):
            assert await status(kit) == 220
            await kit.advance(delay)
        assert (await status(kit), room.calls["tag"]) == (599, 4)
        history = await kit.app.pipelines.history("a1")
        assert history[-1].reason == "tag: ConnectionError"
        room.fail("tag", terminal=True)
        await enter(kit, "a2")
        assert await status(kit, "a2") == 500
        assert room.calls["tag"] == 5
        await check(kit)


async def test_b18_resume_from_a_step_calls_nothing_before_it_again(url: str) -> None:
    """B18 (US-4): partial results stay, `resume from step X` re-runs X and what follows."""
    room = Newsroom(url)
    room.fail("tag", terminal=True)
    async with testing.open(room.app) as kit:
        await enter(kit)
        assert await status(kit) == 500
        room.recover("tag")
        await kit.app.pipelines.restart("a1", "tag", actor="olga", reason="the model is back")
        await kit.run_until_idle()
        assert await status(kit) == 300
        assert room.calls == {"fetch": 1, "score": 1, "summarize": 1, "tag": 2, "thumbnail": 1}
        item, _ = await kit.app.pipelines.item("a1")
        assert (item.run, sorted(await kit.app.pipelines.results(item))) == (2, sorted(Newsroom.STEPS))
        moved = next(m for m in await kit.app.pipelines.history("a1") if m.run == 2)
        assert (moved.from_code, moved.to_code) == (500, 220)
        assert not await kit.app.dead_letters()
        await kit.app.pipelines.restart("a1", "summarize")
        await kit.run_until_idle()
        assert room.calls == {"fetch": 1, "score": 1, "summarize": 2, "tag": 3, "thumbnail": 2}
        await check(kit)


async def test_a_dead_letter_that_is_redriven_takes_its_item_along(url: str) -> None:
    room = Newsroom(url)
    room.fail("fetch", terminal=True)
    async with testing.open(room.app) as kit:
        await enter(kit)
        assert await status(kit) == 500
        room.recover("fetch")
        await kit.app.redrive([("a1:1", "fetch")])
        await kit.run_until_idle()
        assert await passed(kit) == [100, 110, 111, 500, *TO_REVIEW[1:]]
        await check(kit)


async def test_b10_an_optional_step_fails_without_failing_the_item(url: str) -> None:
    room = Newsroom(url)
    room.fail("thumbnail", terminal=True)
    async with testing.open(room.app) as kit:
        await enter(kit)
        assert (await passed(kit))[-4:] == [230, 231, 240, 300]
        assert not await kit.app.dead_letters(), "its item has gone on: nobody need do anything about it"
        found = await kit.app.pipelines.detail("a1")
        assert [(one.step, one.state) for one in found.steps if one.state == "failed"] == [("thumbnail", "failed")]
        assert found.last_error is not None
        assert (found.last_error.message, found.failures) == ("thumbnail is down", 1)
        failing = {one.step: one.failed for one in (await kit.app.pipelines.health("publishing")).steps if one.failed}
        assert failing == {"thumbnail": 1}
        room.recover("thumbnail")
        await kit.app.pipelines.restart("a1", "thumbnail", only=True)
        await kit.run_until_idle()
        assert (await passed(kit))[-3:] == [230, 231, 232]
        await check(kit)


async def test_b21_steps_that_run_together_keep_their_statuses_legal(url: str) -> None:
    """B21 (US-F1): the thumbnail is there long before the tags; the item passes its statuses in order."""
    room = Newsroom(url)
    room.fail("tag", 1)
    async with testing.open(room.app) as kit:
        await enter(kit)
        assert (await status(kit), room.calls["thumbnail"]) == (220, 1)
        await kit.advance(60)
        assert (await passed(kit))[11:] == [220, 221, 220, 221, 222, 230, 231, 232, 240, 300]
        await check(kit)


async def test_a_step_ends_its_item_where_it_says_it_may(url: str) -> None:
    """B8: 510, 520 and 530 are reached by the steps that find it out."""
    room = Newsroom(url)
    room.ending["score"] = "irrelevant"
    async with testing.open(room.app) as kit:
        await enter(kit)
        item, _ = await kit.app.pipelines.item("a1")
        assert (item.status, item.open, room.calls["summarize"]) == (530, False, 0)
        assert (await kit.app.pipelines.history("a1"))[-1].reason == "so it is"
        assert (await (await kit.app.job("a1:1")).info()).state == "completed"
        room.ending["score"] = "rejected"
        await enter(kit, "a2")
        assert await status(kit, "a2") == 500
        await check(kit)


async def test_held_items_are_processed_when_somebody_says_so(url: str) -> None:
    """B4: Process Queue."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        for number in range(5):
            await enter(kit, f"a{number}", hold=True)
        assert not room.calls
        assert len(await kit.app.pipelines.process("publishing", 3)) == 3
        await kit.run_until_idle()
        assert room.calls["fetch"] == 3
        held = await kit.app.pipelines.list(item_filters.ItemFilter("publishing", held=True))
        assert len(held) == 2
        await check(kit)


async def test_a_single_step_is_run_and_nothing_after_it(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit, hold=True)
        await kit.app.pipelines.restart("a1", "fetch", only=True)
        await kit.run_until_idle()
        assert await passed(kit) == [100, 110, 111, 112]
        await kit.app.pipelines.restart("a1", "score", only=True)
        await kit.run_until_idle()
        assert (await passed(kit))[4:] == [120, 121, 122]
        assert room.calls == {"fetch": 1, "score": 1}
        with pytest.raises(errors.NotPossible, match="summarize"):
            await kit.app.pipelines.restart("a1", "tag")
        await kit.app.pipelines.restart("a1", "pending_enrichment")
        await kit.run_until_idle()
        assert await status(kit) == 300
        assert set(room.calls.values()) == {1}
        await check(kit)


@pytest.mark.parametrize("how", ["restart", "enrich", "process"])
async def test_an_item_that_rests_goes_on_where_it_has_got_to(url: str, how: str) -> None:
    """Also if a status, or a review, is what comes next; and nothing is done that was done before."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:

        async def go_on() -> None:
            if how == "process":
                await kit.app.pipelines.process("publishing", 1, Wanted(status=await status(kit)))
            else:
                await getattr(kit.app.pipelines, how)("a1")
            await kit.run_until_idle()

        await enter(kit, hold=True)
        for name in ("fetch", "score"):
            await kit.app.pipelines.restart("a1", name, only=True)
            await kit.run_until_idle()
        assert await status(kit) == 122
        await go_on()
        assert (await passed(kit))[6:] == [122, *TO_REVIEW[7:]]
        await kit.app.pipelines.restart("a1", "thumbnail", only=True)
        await kit.run_until_idle()
        await go_on()
        assert (await passed(kit))[19:] == [230, 231, 232, 240, 300]
        await (await kit.app.job((await kit.app.pipelines.view("a1")).job_id or "")).cancel()
        await go_on()
        assert (await passed(kit))[24:] == [500, 240, 300]
        assert room.calls == {**dict.fromkeys(Newsroom.STEPS, 1), "thumbnail": 2}
        assert len(await kit.app.approvals.list()) == 1
        await check(kit)


@pytest.mark.parametrize("name", ["tag", "thumbnail"])
async def test_a_single_step_of_a_group_is_run_and_nothing_after_it(url: str, name: str) -> None:
    """What runs beside it is done, and is kept; nobody is asked again before somebody lets it go on."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.restart("a1", name, only=True)
        await kit.run_until_idle()
        assert (await status(kit), room.calls) == (232, {**dict.fromkeys(Newsroom.STEPS, 1), name: 2})
        assert not await kit.app.approvals.list()
        found = await kit.app.pipelines.detail("a1")
        assert found.sentence == "Rests at thumbnailed: begin it again to go on"
        await kit.app.pipelines.restart("a1")
        await kit.run_until_idle()
        assert (await status(kit), len(await kit.app.approvals.list())) == (300, 1)
        assert room.calls[name] == 2
        await check(kit)


async def test_cancelling_the_run_of_an_item_fails_it_and_it_can_begin_again(url: str) -> None:
    room = Newsroom(url)
    room.fail("summarize", 1)
    async with testing.open(room.app) as kit:
        await enter(kit)
        job = await kit.app.job("a1:1")
        await job.cancel()
        assert (await passed(kit))[-2:] == [210, 500]
        assert (await kit.app.pipelines.view("a1")).sentence == "Cancelled"
        await job.resume()
        await kit.run_until_idle()
        assert await status(kit) == 300
        await check(kit)


async def test_b19_who_cancels_the_run_of_an_item_and_why_is_in_its_history(url: str) -> None:
    """B7, B19: though a step has failed before, the item has not failed in it."""
    room = Newsroom(url)
    room.fail("summarize", 1)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await (await kit.app.job("a1:1")).cancel("stop it", actor="ops")
        last = (await kit.app.pipelines.moves("a1"))[-1]
        assert (last.from_code, last.code, last.moved_by, last.reason, last.how) == (
            210, 500, "ops", "stop it", "cancelled",
        )  # fmt: skip
        sentence = "Cancelled by ops: stop it"
        assert (await kit.app.pipelines.view("a1")).sentence == sentence
        assert [one.sentence for one in await kit.app.pipelines.views("publishing")] == [sentence]
        [event] = [e for e in await (await kit.app.job("a1:1")).events() if e.type == "Item Moved"][-1:]
        assert (event.properties["actor"], event.properties["how"]) == ("ops", "cancelled")
        await enter(kit, "a2")
        await (await kit.app.job("a2:1")).cancel_task("summarize", reason="not this one", actor="ops")
        assert (await kit.app.pipelines.view("a2")).sentence == "Cancelled by ops: not this one"
        await check(kit)


@pytest.mark.parametrize("failed", [True, False])
async def test_b19_who_rolls_an_item_back_and_why_is_in_its_history(url: str, failed: bool) -> None:
    """B7, B19: also of one that has failed already, which moves nowhere."""
    room = Newsroom(url)
    if failed:
        room.fail("tag", terminal=True)
    async with testing.open(room.app) as kit:
        await enter(kit)
        before = len(await passed(kit))
        await kit.app.pipelines.roll_back("a1", actor="olga", reason="withdrawn")
        await kit.run_until_idle()
        moves = await kit.app.pipelines.moves("a1")
        assert len(moves) == before + 1
        assert (moves[-1].from_code, moves[-1].code) == (500 if failed else 300, 500)
        assert (moves[-1].moved_by, moves[-1].reason, moves[-1].how) == ("olga", "withdrawn", "rolled_back")
        assert (await kit.app.pipelines.view("a1")).sentence == "Rolled back by olga: withdrawn"
        assert room.undone
        await kit.app.pipelines.restart("a1", "discovered")
        room.recover("tag")
        await kit.run_until_idle()
        assert await status(kit) == 300
        await check(kit)


async def test_b16_the_key_of_a_try_is_unique_over_all_runs(url: str) -> None:
    """B16: a new run counts from 1 again, so its number is in the key; the key of the step stays."""
    room = Newsroom(url)
    room.fail("tag", terminal=True)
    async with testing.open(room.app) as kit:
        await enter(kit)
        room.recover("tag")
        await kit.app.pipelines.restart("a1", "tag")
        await kit.run_until_idle()
        tag = next(one for one in (await kit.app.pipelines.detail("a1")).steps if one.step == "tag")
        assert (tag.key, [one.key for one in tag.attempts]) == ("a1:tag", ["a1:tag:1", "a1:tag:2.1"])
        keys = [move.key for move in await kit.app.pipelines.moves("a1") if move.status == "tagging"]
        assert keys == ["a1:tag:1", "a1:tag:2.1"]


async def test_b7_raw_sql_cannot_make_an_illegal_move(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        with pytest.raises((apsw.SQLError, asyncpg.CheckViolationError), match="item a1 cannot go from 300 to 121"):
            await by_raw_sql(url, "UPDATE item SET status = 121 WHERE item_id = 'a1'")
        with pytest.raises((apsw.SQLError, asyncpg.CheckViolationError), match="cannot go from 300 to 7"):
            await by_raw_sql(url, "UPDATE item SET status = 7 WHERE item_id = 'a1'")
        before = time.time_ns() // 1000
        await by_raw_sql(url, "UPDATE item SET status = 310 WHERE item_id = 'a1'")
        last = (await kit.app.pipelines.history("a1"))[-1]
        assert (last.from_code, last.to_code, last.moved_by) == (300, 310, "sql")
        assert last.at is not None
        assert abs(last.at - before) < 60_000_000, "by the clock of the database"
        with pytest.raises((apsw.ConstraintError, asyncpg.CheckViolationError), match="append-only"):
            await by_raw_sql(url, "UPDATE status_history SET to_code = 400")


async def test_people_take_and_edit_an_item_and_move_it_only_as_they_may(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.move("a1", "in_review", actor="rita")
        await kit.app.pipelines.move("a1", "editing", actor="rita", payload={"title": "Better news"})
        item, payload = await kit.app.pipelines.item("a1")
        assert (item.status, payload) == (320, {"title": "Better news"})
        with pytest.raises(errors.IllegalMove, match="320 editing: nobody moves it to 400 published"):
            await kit.app.pipelines.move("a1", "published", actor="rita")
        with pytest.raises(errors.InvalidInput, match="no status 'nowhere'"):
            await kit.app.pipelines.move("a1", "nowhere")
        await check(kit)


async def test_b11_approval_publishes_and_says_who_did_it(url: str) -> None:
    """B11, B19 (US-5): `reviewed_by`, `reviewed_at` and the notes are in the item and its history."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        asked = await kit.app.approvals.list()
        assert [(one.job_id, one.task_id, one.payload) for one in asked] == [("a1:1", "review", {"title": "News"})]
        await kit.app.pipelines.move("a1", "in_review", actor="rita")
        await kit.app.pipelines.decide("a1", "approve", actor="rita", notes="good", payload={"title": "Better"})
        await kit.run_until_idle()
        item, payload = await kit.app.pipelines.item("a1")
        assert (item.status, item.open, item.reviewed_by, payload) == (400, False, "rita", {"title": "Better"})
        last = (await kit.app.pipelines.history("a1"))[-1]
        assert (last.from_code, last.to_code, last.moved_by, last.reason) == (310, 400, "rita", "good")
        await kit.app.pipelines.move("a1", "updated", actor="rita")
        assert await status(kit) == 410
        with pytest.raises(errors.NotPossible, match="410 updated: nobody is asked"):
            await kit.app.pipelines.decide("a1", "approve", actor="rita")
        await check(kit)


async def test_b22_a_rejected_item_takes_back_what_its_steps_did_the_last_first(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.approvals.decide("a1:1", "review", "reject", actor="rita", notes="dull")
        await kit.run_until_idle()
        item, _ = await kit.app.pipelines.item("a1")
        assert (item.status, item.failures, room.undone) == (540, 0, ["tag", "summarize"])
        last = (await kit.app.pipelines.history("a1"))[-1]
        assert (last.to_code, last.moved_by, last.reason) == (540, "rita", "dull")
        await check(kit)


async def test_re_enrich_begins_again_at_the_status_that_the_review_names(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.approvals.decide("a1:1", "review", "re-enrich", actor="rita", notes="once more")
        await kit.run_until_idle()
        assert (await passed(kit))[18:] == [300, 200, *TO_REVIEW[8:]]
        assert room.calls == {"fetch": 1, "score": 1, "summarize": 2, "tag": 2, "thumbnail": 2}
        item, _ = await kit.app.pipelines.item("a1")
        assert (item.run, item.reviewed_by) == (2, "rita")
        assert [one.job_id for one in await kit.app.approvals.list()] == ["a1:2"]
        await kit.app.pipelines.decide("a1", "approve", actor="rita")
        await kit.app.pipelines.restart("a1", "pending_enrichment", actor="rita")
        await kit.run_until_idle()
        assert (await status(kit), room.calls["tag"]) == (300, 3)
        await check(kit)


async def test_rolling_back_gives_an_item_up(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.roll_back("a1", actor="olga", reason="withdrawn by its author")
        await kit.run_until_idle()
        assert (await status(kit), room.undone) == (500, ["tag", "summarize"])
        assert not await kit.app.approvals.list()
        await check(kit)


async def test_what_a_dead_letter_did_is_taken_back(url: str) -> None:
    room = Newsroom(url)
    room.fail("tag")
    async with testing.open(room.app) as kit:
        await enter(kit)
        for delay in (60, 120, 240):
            await kit.advance(delay)
        await kit.app.pipelines.roll_back("a1", actor="olga")
        await kit.run_until_idle()
        assert (await status(kit), room.undone) == (599, ["summarize"])
        assert not await kit.app.dead_letters()
        await check(kit)


async def test_an_agent_of_the_tenant_does_a_step_in_the_version_of_then(url: str) -> None:
    room = Newsroom(url)

    @room.app.agent("tell")
    async def tell(agent_id: str, raw_data: Any, parent_output: Any) -> dict[str, Any]:
        return {"by": agent_id, "title": raw_data["title"], "saw": sorted(parent_output)}

    schema = {"type": "object", "properties": {"by": {"type": "string"}}}
    course = publishing()["course"]
    course[4] = course[4] | {"agent": "narrator"}
    del course[4]["function"]
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing(course=course))
        with pytest.raises(errors.DefinitionNotFound, match="narrator"):
            await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.app.playbooks.define_agent(
            {"name": "narrator", "kind": "function", "function": "tell", "outputSchema": schema}
        )
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        item, _ = await kit.app.pipelines.item("a1")
        results = await kit.app.pipelines.results(item)
        assert (item.status, results["summarize"]) == (
            300,
            {"by": "summarize", "title": "News", "saw": ["fetch", "score"]},
        )
        await check(kit)


async def test_an_agent_that_is_saved_in_this_process_is_in_use_at_once(url: str) -> None:
    """B21: pipelines and playbooks remember definitions by themselves, and each hears of what the other saves."""
    room = Newsroom(url)
    for name in ("tell", "sing"):
        room.app.agent(name)(lambda agent_id, name=name: {"by": name})
    course = publishing()["course"]
    course[4] = course[4] | {"agent": "narrator"}
    del course[4]["function"]
    agent = {
        "name": "narrator",
        "kind": "function",
        "outputSchema": {"type": "object", "properties": {"by": {"type": "string"}}},
    }
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing(course=course))
        for name in ("tell", "sing", "tell"):
            version = await kit.app.playbooks.define_agent(agent | {"function": name})
            await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id=f"a{version}")
            await kit.run_until_idle()
            assert (await kit.app.pipelines.detail(f"a{version}")).results["summarize"] == {"by": name}


async def test_any_function_can_be_a_step_whatever_it_is_called(url: str) -> None:
    room = Newsroom(url)
    room.app.step("lambda")(lambda item: item["title"])
    course = publishing()["course"]
    course[1] |= {"function": "lambda"}
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing(course=course))
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        assert (await kit.app.pipelines.results((await kit.app.pipelines.item("a1"))[0]))["fetch"] == "News"
