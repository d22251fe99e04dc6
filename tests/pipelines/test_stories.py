"""The user stories of seed 001, one after the other, as an operator or a reviewer would tell them."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import errors, testing
from ostinato.core import item_filters
from ostinato.core.retry import Retry
from tests.pipelines.support import Newsroom, publishing, step
from tests.pipelines.test_items import check, enter, passed, status


async def attempts(kit: testing.Kit, step: str, item_id: str = "a1") -> list[tuple[str, int]]:
    """What the job of the newest run tells of a step: each attempt and how it went."""
    item, _ = await kit.app.pipelines.item(item_id)
    told = await (await kit.app.job(item.job_id or "")).events(task_id=step)
    wanted = ("Task Processing", "Task Retry Scheduled", "Task Completed", "Task Failed")
    return [(event.type, event.attempt or 0) for event in told if event.type in wanted]


async def test_us_1_a_failing_model_is_asked_again_later_and_later(url: str) -> None:
    """US-1 (B10, B14, B15): as an operator I want LLM failures to retry with exponential backoff, so that temporary
    outages do not cause permanent failures."""
    room = Newsroom(url)
    room.fail("summarize", 3)
    room.fail("tag")
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing())
        policies = await kit.app.pipelines.retry_policies("publishing")
        assert {(one.max_attempts, one.base_delay, one.multiplier) for one in policies.values()} == {(4, 60.0, 2.0)}
        await kit.app.pipelines.set_retry("publishing", "tag", Retry(max_attempts=2, base_delay=5), actor="olga")

        await enter(kit)
        waits = [60, 120, 240]
        for wait in waits:
            item, _ = await kit.app.pipelines.item("a1")
            assert (item.status, item.attempt) == (210, 1 + waits.index(wait))
            await kit.advance(wait - 1)
            assert (await status(kit), room.calls["summarize"]) == (210, 1 + waits.index(wait))
            await kit.advance(1)
        assert [how for how, _ in await attempts(kit, "summarize")].count("Task Retry Scheduled") == 3
        assert await attempts(kit, "summarize") == [
            ("Task Processing", 1),
            ("Task Retry Scheduled", 1),
            ("Task Processing", 2),
            ("Task Retry Scheduled", 2),
            ("Task Processing", 3),
            ("Task Retry Scheduled", 3),
            ("Task Processing", 4),
            ("Task Completed", 4),
        ]

        await kit.advance(5)  # and then the tagger is down for good, by a policy of its own
        assert (await status(kit), room.calls["tag"]) == (599, 2)
        (letter,) = await kit.app.dead_letters()
        assert (letter.task_id, letter.error["type"], letter.error["message"]) == (
            "tag",
            "ConnectionError",
            "tag is down",
        )
        assert (await kit.app.pipelines.history("a1"))[-1].reason == "tag: ConnectionError"

        await kit.app.pipelines.set_retry("publishing", "tag", None)
        assert (await kit.app.pipelines.retry_policies("publishing"))["tag"].max_attempts == 4
        await check(kit)


async def test_us_2_a_step_that_is_done_is_not_done_twice(url: str) -> None:
    """US-2 (B12, B13, B16, X7): as an operator I want steps to be idempotent, so that retries do no work twice.

    The key of a step is stable, so that a resume finds the result; each attempt has the key of the seed as well.
    """
    room = Newsroom(url)
    keys: list[tuple[str, str]] = []

    @room.app.step("ask")
    async def ask(ctx: Any, item_id: str) -> str:
        keys.append((ctx.idempotency_key, f"{item_id}:{ctx.task_id}:{ctx.attempt}"))
        answer = await ctx.step("llm", lambda: f"answer {len(keys)}")
        if ctx.attempt == 1:
            raise ConnectionError("after the model was paid")
        return answer

    course = publishing()["course"]
    course[4] = course[4] | {"function": "ask"}
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing(course=course))
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        await kit.advance(60)
        assert len({key for key, _ in keys}) == 1
        assert [attempt for _, attempt in keys] == ["a1:summarize:1", "a1:summarize:2"]
        item, _ = await kit.app.pipelines.item("a1")
        assert (await kit.app.pipelines.results(item))["summarize"] == "answer 1"  # the model was asked once

        again = await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        assert not again.created
        await kit.app.pipelines.restart("a1", "tag")
        await kit.run_until_idle()
        assert len(keys) == 2
        assert (await kit.app.pipelines.results((await kit.app.pipelines.item("a1"))[0]))["summarize"] == "answer 1"
        await check(kit)


async def test_us_3_failed_items_are_tried_again_by_themselves(url: str) -> None:
    """US-3 (B13, B17, X8): as an operator I want failed items to retry after a delay, so that I need not do it."""
    room = Newsroom(url)
    room.fail("fetch")
    async with testing.open(room.app) as kit:
        await enter(kit)
        queue = await kit.app.pipelines.list(item_filters.ItemFilter("publishing", retrying=True))
        assert [(one.item_id, one.retry_at) for one in queue] == [
            ("a1", kit.clock() + 60_000_000)
        ]  # "Retry scheduled for"
        item = queue[0]
        assert (item.failures, item.error_type, item.step, item.attempt) == (1, "ConnectionError", "fetch", 1)
        shown = await kit.app.pipelines.view("a1")
        assert shown.retry_at is not None
        due = shown.retry_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        assert shown.sentence == f"Retry scheduled for {due}: fetch failed with ConnectionError"
    async with testing.open(Newsroom(url).app, kit.clock) as kit:  # the timer is in the database, not in a process
        await kit.advance(60)
        assert (await status(kit), (await kit.app.pipelines.item("a1"))[0].retry_at) == (300, None)
        await check(kit)
    dead = Newsroom(url)
    dead.fail("fetch")
    async with testing.open(dead.app, kit.clock) as kit:
        await enter(kit, "a2")
        for delay in (60, 120, 240):
            await kit.advance(delay)
        assert await status(kit, "a2") == 599
        assert [letter.job_id for letter in await kit.app.dead_letters()] == ["a2:1"]
        await kit.advance(30 * 86_400)
        assert dead.calls["fetch"] == 4
        await check(kit)


async def test_b23_an_item_waits_for_days_where_others_give_up_after_one(url: str) -> None:
    """B23: "revisit when we need durable timers of more than 24 hours"."""
    room = Newsroom(url)
    room.fail("fetch", 1)
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing())
        patient = Retry(max_attempts=2, base_delay=9 * 86_400, max_delay=30 * 86_400)
        await kit.app.pipelines.set_retry("publishing", "fetch", patient)
        await enter(kit)
        await kit.advance(9 * 86_400 - 1)
        assert await status(kit) == 110
    async with testing.open(Newsroom(url).app, kit.clock) as kit:  # in another process, days later
        await kit.advance(1)
        assert await status(kit) == 300
        await check(kit)


async def test_us_4_an_item_goes_on_from_the_step_that_failed(url: str) -> None:
    """US-4 (B10, B18, B22): as an operator I want partial failures to be recoverable, so that nothing gets stuck."""
    room = Newsroom(url)
    room.fail("tag", terminal=True)
    async with testing.open(room.app) as kit:
        await enter(kit)
        item, payload = await kit.app.pipelines.item("a1")
        assert (item.status, item.step, payload) == (500, "tag", {"title": "News"})
        assert sorted(await kit.app.pipelines.results(item)) == ["fetch", "score", "summarize", "thumbnail"]
        room.recover("tag")
        await kit.app.pipelines.restart("a1", actor="olga", reason="resume")  # from the step that it has got to
        await kit.run_until_idle()
        assert await status(kit) == 300
        assert room.calls == {"fetch": 1, "score": 1, "summarize": 1, "tag": 2, "thumbnail": 1}
        moves = await kit.app.pipelines.history("a1")
        resumed = next(move for move in moves if move.run == 2)
        assert (resumed.from_code, resumed.to_code) == (500, 220)
        assert ("olga", "resume") in [(move.moved_by, move.reason) for move in moves]
        await check(kit)


async def test_us_5_who_approved_what_is_written_down(url: str) -> None:
    """US-5 (B11, B19): as a reviewer I want my decision to be tracked, so that there is a clear audit trail."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        for item_id, decision in (("a1", "approve"), ("a2", "reject")):
            await enter(kit, item_id, actor="sam")
            await kit.app.pipelines.decide(item_id, decision, actor="rita", notes=f"I {decision} it")
            await kit.run_until_idle()
        for item_id, code, word in (("a1", 400, "approve"), ("a2", 540, "reject")):
            item, _ = await kit.app.pipelines.item(item_id)
            assert (item.status, item.submitted_by, item.reviewed_by) == (code, "sam", "rita")
            assert item.reviewed_at == kit.clock()
            last = (await kit.app.pipelines.history(item_id))[-1]
            assert (last.from_code, last.to_code, last.at) == (300, code, kit.clock())
            assert (last.moved_by, last.reason) == ("rita", f"I {word} it")
        noted = [(entry.actor, entry.action) for entry in await kit.app.audit_log()]
        assert noted.count(("rita", "items.decide")) == 2
        await check(kit)


async def test_us_f1_tag_and_thumbnail_run_at_the_same_time(url: str) -> None:
    """US-F1 (B21, B22): as an operator I want tag and thumbnail in parallel, so that enrichment completes faster."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        job = await kit.app.job("a1:1")
        began = {e.task_id: e.seq for e in await job.events() if e.type == "Task Processing"}
        done = {e.task_id: e.seq for e in await job.events() if e.type == "Task Completed"}
        assert max(began["tag"], began["thumbnail"]) < min(done["tag"], done["thumbnail"])
        assert (await passed(kit))[11:17] == [220, 221, 222, 230, 231, 232]


async def test_us_f2_a_new_version_is_for_new_items_until_others_are_moved_to_it(url: str) -> None:
    """US-F2 (B21, B22, B23): as an operator I want workflow changes to be versioned, so that I can roll back."""
    room = Newsroom(url)
    second = publishing()
    second["statuses"].insert(7, {"code": 150, "name": "to_check"})
    second["statuses"] += [{"code": 151, "name": "checking"}, {"code": 152, "name": "checked"}]
    check_ = step("tag", 220) | {"step": "check", "statuses": ["to_check", "checking", "checked"]}
    second["course"].insert(6, check_)
    async with testing.open(room.app) as kit:
        pipelines = kit.app.pipelines
        await enter(kit, "old")
        await enter(kit, "older", hold=True)
        assert await pipelines.define(second) == 2
        await pipelines.enter("publishing", {"title": "News"}, item_id="new")
        await kit.run_until_idle()
        assert (150 in await passed(kit, "new"), 150 in await passed(kit, "old")) == (True, False)
        assert [(await pipelines.item(one))[0].version for one in ("old", "older", "new")] == [1, 1, 2]
        await pipelines.decide("old", "approve", actor="rita")  # goes on as it began, without being migrated
        await kit.run_until_idle()
        assert await status(kit, "old") == 400

        preview = await pipelines.migrate("older", 2, dry_run=True)
        assert (preview.status, (await pipelines.item("older"))[0].version) == (100, 1)
        await pipelines.migrate("older", 2, actor="olga")
        await pipelines.process("publishing")
        await kit.run_until_idle()
        assert 150 in await passed(kit, "older")

        room.fail("tag", terminal=True)
        await pipelines.enter("publishing", {"title": "News"}, item_id="stuck")
        await kit.run_until_idle()
        with pytest.raises(errors.DefinitionNotFound, match="version 9"):
            await pipelines.migrate("stuck", 9)
        rolled_back = await pipelines.shelf.roll_back("publishing", 1, actor="olga")  # one command
        assert rolled_back.version == 3
        room.recover("tag")
        await pipelines.migrate("stuck", 3, actor="olga")
        await pipelines.restart("stuck")
        await pipelines.enter("publishing", {"title": "News"}, item_id="newest")
        await kit.run_until_idle()
        for one in ("stuck", "newest"):
            item, _ = await pipelines.item(one)
            assert (item.version, item.status, 150 in await passed(kit, one)) == (3, 300, False)
        with pytest.raises(errors.NotPossible, match="which version 3 does not have"):
            await move_to_check(kit)
        await check(kit)


async def test_an_item_that_rests_is_migrated_without_being_begun(url: str) -> None:
    """It stays where it is, and whoever lets it go on does so in the new version."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        pipelines = kit.app.pipelines
        await enter(kit, hold=True)
        for name in ("fetch", "score"):
            await pipelines.restart("a1", name, only=True)
            await kit.run_until_idle()
        assert await pipelines.define(publishing(description="New")) == 2
        assert (await pipelines.migrate("a1", 2, dry_run=True)).status == 122
        await pipelines.migrate("a1", 2, actor="olga")
        await kit.run_until_idle()
        found = await pipelines.view("a1")
        assert (found.version, found.code, found.run) == (2, 122, 2)
        assert found.sentence == "Rests at scored: begin it again to go on"
        await pipelines.restart("a1")
        await kit.run_until_idle()
        assert (await status(kit), room.calls) == (300, dict.fromkeys(Newsroom.STEPS, 1))
        await check(kit)


async def move_to_check(kit: testing.Kit) -> None:
    """An item that waits in a status of version 2."""
    await kit.app.pipelines.restart("new", "check", only=True)
    await kit.run_until_idle()
    assert await status(kit, "new") == 152
    await kit.app.pipelines.migrate("new", 3, dry_run=True)


async def test_us_6_an_operator_sees_at_a_glance_what_fails_and_what_is_stuck(url: str) -> None:
    """US-6 (B20): as an operator I want to see workflow health, so that I quickly find bottlenecks and failures."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        for number in range(3):
            await enter(kit, f"good{number}")
        await kit.app.pipelines.decide("good0", "approve", actor="rita")
        room.fail("tag", terminal=True)
        await enter(kit, "bad")
        room.recover("tag")
        room.fail("fetch", 1)
        await enter(kit, "retried")
        health = await kit.app.pipelines.health("publishing")
        bars = {bar.code: bar.items for bar in health.statuses}
        assert len(bars) == 29
        assert {code: count for code, count in bars.items() if count} == {110: 1, 300: 2, 400: 1, 500: 1}
        steps = {one.step: one for one in health.steps}
        assert (steps["tag"].completed, steps["tag"].failed, steps["tag"].failure_rate) == (3, 1, 0.25)
        assert steps["summarize"].failure_rate == 0
        assert steps["summarize"].average_seconds is not None
        assert (health.retrying, health.reviews_waiting, health.stuck) == (1, 2, [])
        assert health.next_retry_at is not None

        await kit.advance(3601)
        health = await kit.app.pipelines.health("publishing")
        assert (health.stuck_count, health.reviews_waiting) == (0, 3)  # the other was tried again, and went on
        assert sum(hour.items for hour in health.throughput) == 2
        assert health.retrying == 0
