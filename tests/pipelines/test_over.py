"""A run that is over stays over: its job does not bring back what was taken back, rejected or begun again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from ostinato import Job, errors, testing
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import check, enter, status
from tests.pipelines.test_undo import Forgetful, undoing

BRING_BACK: dict[str, Callable[[Job, str], Awaitable[object]]] = {
    "resume": lambda job, _: job.resume(),
    "dry run": lambda job, _: job.resume(dry_run=True),
    "retry": lambda job, task: job.retry_task(task),
    "skip": lambda job, task: job.skip_task(task),
}


async def refused(kit: testing.Kit, job_id: str, task_id: str, match: str, *but: str) -> None:
    """By each of these ways, which change nothing."""
    job = await kit.app.job(job_id)
    item_id = job_id.partition(":")[0]
    before = await kit.app.pipelines.history(item_id), len(await job.events())
    for name, act in BRING_BACK.items():
        if name not in but:
            with pytest.raises(errors.NotPossible, match=match) as raised:
                await act(job, task_id)
            assert raised.value.details["itemId"] == item_id
    await kit.run_until_idle()
    assert (await kit.app.pipelines.history(item_id), len(await job.events())) == before


async def test_d1_what_was_rejected_and_taken_back_is_not_published(url: str) -> None:
    """D1: neither by resuming its run, nor by asking again; it begins again before what was taken back."""
    room = Forgetful(url)
    async with testing.open(room.app) as kit:
        document = undoing()
        document["course"][1]["optional"] = True  # what was taken back is to be done again, even if it may fail
        await kit.app.pipelines.define(document)
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        await kit.app.pipelines.decide("a1", "reject", actor="rita")
        await kit.run_until_idle()
        said = "'a1' is 540 rejected.*restart the item at 'fetch'"
        await refused(kit, "a1:1", "review", said, "skip")
        assert len(room.undone) == 5
        with pytest.raises(errors.NotPossible, match=said):
            await kit.app.redrive([("a1:1", "review")])
        await kit.app.pipelines.restart("a1", "fetch")
        await kit.run_until_idle()
        assert (await status(kit), set(room.calls.values())) == (300, {2})
        await refused(kit, "a1:1", "tag", "has begun another run since.*act on the item")
        await check(kit)


async def test_d1_what_was_rejected_is_not_asked_about_again_though_nothing_was_taken_back(url: str) -> None:
    """D1: to ask again is to restart the item before its review."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        document = publishing()
        for entry in (document["course"][4], document["course"][5]["together"][0]):
            del entry["undo"]
        await kit.app.pipelines.define(document)
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        await kit.app.pipelines.decide("a1", "reject", actor="rita")
        await refused(kit, "a1:1", "review", "'a1' is 540 rejected.*restart the item at 'enriched'", "skip")
        await kit.app.pipelines.restart("a1", "enriched")
        await kit.run_until_idle()
        assert await status(kit) == 300
        await check(kit)


@pytest.mark.parametrize("step", ["fetch", "tag"])
async def test_d2_what_was_rolled_back_stays_so(url: str, step: str) -> None:
    """D2: also if nothing had to be taken back; and to roll it back twice says so once."""
    room = Newsroom(url)
    room.fail(step, 1)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.roll_back("a1", reason="withdrawn")
        await kit.run_until_idle()
        history = await kit.app.pipelines.history("a1")
        at = "summarize" if step == "tag" else step
        await refused(kit, "a1:1", step, f"'a1' was rolled back.*restart the item at '{at}'")
        answer = await kit.app.pipelines.roll_back("a1", reason="withdrawn")
        assert (answer.status, await kit.app.pipelines.history("a1")) == (500, history)
        room.recover(step)
        await kit.app.pipelines.restart("a1", at)
        await kit.run_until_idle()
        assert await status(kit) == 300
        await check(kit)


async def test_d2_what_has_failed_before_it_was_rolled_back_is_not_redriven(url: str) -> None:
    room = Newsroom(url)
    room.fail("fetch", terminal=True)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.roll_back("a1", reason="withdrawn")
        await refused(kit, "a1:1", "fetch", "'a1' was rolled back", "skip")
        with pytest.raises(errors.NotPossible, match="'a1' was rolled back"):
            await kit.app.redrive([("a1:1", "fetch")])
        await check(kit)


async def test_an_optional_step_of_what_is_published_is_run_by_a_restart_alone(url: str) -> None:
    room = Newsroom(url)
    room.fail("thumbnail", terminal=True)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.decide("a1", "approve", actor="rita")
        await kit.run_until_idle()
        job = await kit.app.job("a1:1")
        with pytest.raises(errors.NotPossible, match="'a1' is 400 published"):
            await job.retry_task("thumbnail")
        assert (await job.info()).state == "completed"
        await check(kit)


async def test_d13_why_an_optional_step_failed_is_said_where_the_item_has_left_it(url: str) -> None:
    """D13: not of the step that is begun by the same worker at once."""
    room = Newsroom(url)
    room.fail("summarize", terminal=True)
    async with testing.open(room.app) as kit:
        document = publishing()
        document["course"][4] |= {"optional": True}
        await kit.app.pipelines.define(document)
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        told = [(m.from_code, m.reason) for m in await kit.app.pipelines.moves("a1") if m.reason]
        assert told == [(211, "summarize: TerminalError")]
        await check(kit)
