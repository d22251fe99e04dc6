"""Compensation: what the steps of an item did is taken back, the last first, by tasks as durable as any other."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import errors, testing
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import check, status


def undoing() -> dict[str, Any]:
    """Every step says how it is taken back, and the last two run together."""
    document = publishing()
    for number in (1, 2):
        document["course"][number]["undo"] = "forget"
    document["course"][5]["together"][0]["undo"] = "forget-tags"
    document["course"][5]["together"][1]["undo"] = "forget"
    return document


class Forgetful(Newsroom):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.mishaps: list[BaseException] = []

        @self.app.step("forget-tags")
        async def forget(output: Any) -> None:
            if self.mishaps:
                raise self.mishaps.pop(0)
            self.undone.append(output["by"])


async def enter(kit: testing.Kit) -> None:
    await kit.app.pipelines.define(undoing())
    await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
    await kit.run_until_idle()


async def test_b22_all_of_it_in_reverse_order_also_of_a_group(url: str) -> None:
    room = Forgetful(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.roll_back("a1", actor="olga", reason="withdrawn")
        await kit.run_until_idle()
        assert (await status(kit), room.undone) == (500, ["thumbnail", "tag", "summarize", "score", "fetch"])
        assert (await kit.app.pipelines.detail("a1")).results == {}, "nothing of it holds any more"
        with pytest.raises(errors.NotPossible, match="was taken back"):
            await kit.app.pipelines.restart("a1", "tag")
        await kit.app.pipelines.restart("a1", "discovered")
        await kit.run_until_idle()
        assert (await status(kit), set(room.calls.values())) == (300, {2})
        await check(kit)


async def test_what_was_not_done_is_not_taken_back(url: str) -> None:
    room = Forgetful(url)
    room.fail("thumbnail", terminal=True)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.decide("a1", "reject", actor="rita")
        await kit.run_until_idle()
        assert (await status(kit), room.undone) == (540, ["tag", "summarize", "score", "fetch"])
        await check(kit)


async def test_an_undo_is_tried_again_by_the_policy_of_its_step(url: str) -> None:
    room = Forgetful(url)
    room.mishaps = [ConnectionError("not now"), ConnectionError("nor now")]
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.decide("a1", "reject", actor="rita")
        await kit.run_until_idle()
        for wait in (60, 120):
            assert room.undone == ["thumbnail"], "the rest waits for its turn"
            await kit.advance(wait)
        assert room.undone == ["thumbnail", "tag", "summarize", "score", "fetch"]
        await check(kit)


async def test_an_undo_that_cannot_be_done_is_a_dead_letter_and_goes_on_when_redriven(url: str) -> None:
    room = Forgetful(url)
    room.mishaps = [errors.TerminalError("the archive is closed")]
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.decide("a1", "reject", actor="rita")
        await kit.run_until_idle()
        found = await kit.app.pipelines.detail("a1")
        assert (found.status, room.undone) == ("rejected", ["thumbnail"])
        assert [(run.undo, run.state) for run in found.runs] == [(True, "failed"), (False, "failed")]
        [letter] = await kit.app.dead_letters()
        assert (letter.job_id, letter.task_id) == (found.runs[0].job_id, "undo-tag")
        await kit.app.redrive([(letter.job_id, letter.task_id)])
        await kit.run_until_idle()
        assert room.undone == ["thumbnail", "tag", "summarize", "score", "fetch"]
        assert await status(kit) == 540
        await check(kit)
