"""B23: a step with a condition is done only where that is true; the history says where it was not."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import errors, testing
from ostinato.core import commands
from ostinato.reactions import steps
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import TO_REVIEW, check, passed, status

SKIPPED = [code for code in TO_REVIEW if code not in (220, 221, 222)]


def conditional(when: str = "item.tags", step: int = 5, **changes: Any) -> dict[str, Any]:
    """The tags are made only if the item says so."""
    document = publishing(**changes)
    target = document["course"][step]
    (target["together"][0] if "together" in target else target)["when"] = when
    return document


async def enter(kit: testing.Kit, item_id: str = "a1", *, tags: Any = False, **document: Any) -> None:
    await kit.app.pipelines.define(conditional(**document))
    await kit.app.pipelines.enter("publishing", {"title": "News", "tags": tags}, item_id=item_id)
    await kit.run_until_idle()


async def test_b23_a_step_whose_condition_is_false_is_left_out_and_the_history_says_so(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        assert await status(kit) == 300
        assert room.calls == {name: 1 for name in Newsroom.STEPS if name != "tag"}
        moves = await kit.app.pipelines.moves("a1")
        [skipped] = [move for move in moves if move.how == "skipped"]
        assert (skipped.step, skipped.from_code, skipped.code, skipped.reason, skipped.key) == (
            "tag",
            skipped.code,
            skipped.code,
            "its condition is false",
            None,
        )
        assert [move.code for move in moves if move.how is None] == SKIPPED
        detail = await kit.app.pipelines.detail("a1")
        tag = next(one for one in detail.steps if one.step == "tag")
        assert (tag.state, tag.when, tag.attempts, "tag" in detail.results) == ("skipped", "item.tags", [], False)
        events = await (await kit.app.job("a1:1")).events()
        assert ["tag"] in [event.properties.get("skipped") for event in events]
        await enter(kit, "a2", tags=True)
        assert (await passed(kit, "a2"), room.calls["tag"]) == (TO_REVIEW, 1)
        await check(kit)


async def test_b23_a_condition_sees_the_results_before_it(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit, when="$count(results.fetch.saw) > 0", step=2)
        assert [code for code in await passed(kit) if code in (112, 120, 200)] == [112, 112, 200]
        assert (await kit.app.pipelines.detail("a1")).results["summarize"]["saw"] == ["fetch", "score"], "it is null"
        await kit.app.pipelines.define(
            conditional(when="results.fetch.by = 'fetch' and $not($exists(results.score))", step=2)
        )
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a2")
        await kit.run_until_idle()
        assert (await passed(kit, "a2"), room.calls["score"]) == (TO_REVIEW, 1)
        await check(kit)


async def test_b23_what_was_left_out_is_not_taken_back(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.pipelines.decide("a1", "reject", actor="rita")
        await kit.run_until_idle()
        assert (await status(kit), room.undone) == (540, ["summarize"])
        await check(kit)


@pytest.mark.parametrize("optional", [False, True])
async def test_b23_a_condition_that_cannot_be_evaluated_fails_the_item_by_name(url: str, optional: bool) -> None:
    """Also that of an optional step: nobody knows whether it was to be done."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        document = conditional(when="item.colour")
        document["course"][5]["together"][0]["optional"] = optional
        await kit.app.pipelines.define(document)
        await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        detail = await kit.app.pipelines.detail("a1")
        assert (detail.status, detail.sentence) == ("failed", "Failed in tag: ConditionFailed")
        assert detail.last_error is not None
        assert detail.last_error.step == "tag"
        assert detail.last_error.message.startswith("the condition of step 'tag' gives nothing, not true or false")
        [letter] = await kit.app.dead_letters()
        assert (letter.task_id, room.calls["tag"]) == ("$when-tag", 0)
        await kit.app.pipelines.restart("a1", "tag", payload={"title": "News", "colour": True})
        await kit.run_until_idle()
        assert (await status(kit), room.calls["tag"]) == (300, 1)
        await check(kit)


async def test_b23_a_new_run_keeps_what_was_left_out_and_asks_again_where_it_begins(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit, step=2)
        assert (await status(kit), room.calls["score"]) == (300, 0)
        await kit.app.pipelines.restart("a1", "summarize")
        await kit.run_until_idle()
        detail = await kit.app.pipelines.detail("a1")
        assert (detail.code, {one.step: one.state for one in detail.steps}["score"]) == (300, "skipped")
        assert len([m for m in await kit.app.pipelines.moves("a1") if m.how == "skipped"]) == 1, (
            "it was not asked again"
        )
        await kit.app.pipelines.restart("a1", "score")
        await kit.run_until_idle()
        codes = [move.code for move in await kit.app.pipelines.moves("a1") if move.run == 3]
        assert codes[:3] == [120, 120, 200]
        await kit.app.pipelines.restart("a1", "score", payload={"title": "News", "tags": True})
        await kit.run_until_idle()
        assert (await status(kit), room.calls["score"]) == (300, 1)
        await check(kit)


async def test_b23_a_condition_is_refused_by_its_field_where_it_makes_no_sense(url: str) -> None:
    async with testing.open(Newsroom(url).app) as kit:
        with pytest.raises(errors.InvalidInput) as refused:
            await kit.app.pipelines.define(conditional("item.("))
        assert refused.value.details["field"] == "course[5].together[0].when"
        document = conditional()
        del document["course"][6:]
        document["course"][5:] = [document["course"][5]["together"][0]]
        document["moves"] = []
        with pytest.raises(errors.InvalidInput, match="go on without the step"):
            await kit.app.pipelines.define(document)
        await kit.app.pipelines.define(conditional())
        moves = await kit.app.pipelines.legal_moves("publishing")
        assert {(move.from_code, move.code) for move in moves.moves if move.kind == "skip"} == {(212, 230), (220, 230)}


async def test_b23_cancelled_while_a_condition_is_evaluated_it_goes_nowhere_but_to_failed(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        room.fail("fetch", 1)
        await kit.app.pipelines.define(conditional(step=2))
        await kit.app.pipelines.enter("publishing", {"title": "News", "tags": True}, item_id="a1")
        await kit.run_until_idle()
        await (await kit.app.job("a1:1")).cancel()
        assert (await passed(kit))[-2:] == [110, 500]
        await (await kit.app.job("a1:1")).resume()
        await kit.run_until_idle()
        assert (await status(kit), room.calls["score"]) == (300, 1)
        await check(kit)


async def test_b23_a_condition_is_evaluated_once_whatever_happens_after_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is recorded before the step is left out: a try that begins again does not ask again."""
    room, mishaps = Newsroom(url), [ConnectionError("not now")]
    asked: list[str] = []
    evaluate, omit = steps._holds, commands.OmitStep.apply  # pyright: ignore[reportPrivateUsage]

    def counting(*given: Any) -> bool:
        asked.append(given[0])
        return evaluate(*given)

    def failing(self: commands.OmitStep, book: Any) -> None:
        if mishaps:
            raise mishaps.pop()
        omit(self, book)

    monkeypatch.setattr(steps, "_holds", counting)
    monkeypatch.setattr(commands.OmitStep, "apply", failing)
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.advance(60)
        assert (await status(kit), asked, mishaps) == (300, ["tag"], [])
        await check(kit)
