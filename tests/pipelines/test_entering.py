"""Items are entered all together or not at all, and kept as long as they should be."""

from __future__ import annotations

import pytest

from ostinato import Ostinato, errors, testing
from ostinato.core import item_filters
from ostinato.reactions import pipelines as reactions
from ostinato.reactions.pipelines import NewItem
from tests.engine.support import job, task
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import check, enter, status


async def entered(kit: testing.Kit) -> list[str]:
    found = await kit.app.pipelines.list(item_filters.ItemFilter("publishing"), most=100)
    return sorted(item.item_id for item in found)


@pytest.mark.parametrize("at_once", [500, 2])
@pytest.mark.parametrize("wrong", ["a1", "new-1"])
async def test_a_list_with_an_item_that_is_another_changes_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch, wrong: str, at_once: int
) -> None:
    """Whether it was entered before, or is in the list twice."""
    monkeypatch.setattr(reactions, "AT_ONCE", at_once)
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        new = [NewItem({"title": "News"}, f"new-{number}") for number in range(5)]
        with pytest.raises(errors.IdempotencyConflict, match=wrong):
            await kit.app.pipelines.enter_many("publishing", [*new, NewItem({"title": "Other"}, wrong)])
        assert await entered(kit) == ["a1"]
        same = [*new, NewItem({"title": "News"}, "a1"), new[0]]
        answers = await kit.app.pipelines.enter_many("publishing", same)
        assert [one.created for one in answers] == [True] * 5 + [False, False]
        await kit.run_until_idle()
        await check(kit)


async def test_who_enters_an_item_is_told_the_status_that_it_begins_in(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing())
        for hold in (False, True):
            new = [NewItem({"title": "News"}, f"{number}-{hold}", hold) for number in (1, 2, 1)]
            made = await kit.app.pipelines.enter_many("publishing", new)
            assert [(one.status, one.created) for one in made] == [(100, True), (100, True), (100, False)]


async def test_who_is_overtaken_between_two_batches_is_told_what_was_entered(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reactions, "AT_ONCE", 2)
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)

        async def nothing_is_known(*_: object) -> None:
            """As it was before somebody else entered it."""

        monkeypatch.setattr(reactions.Pipelines, "_check_new", nothing_is_known)
        new = [NewItem({"title": "News"}, f"new-{number}") for number in range(4)]
        with pytest.raises(errors.IdempotencyConflict) as refused:
            await kit.app.pipelines.enter_many("publishing", [*new[:3], NewItem({"title": "Other"}, "a1"), new[3]])
        assert refused.value.details["entered"] == ["new-0", "new-1"]
        assert await entered(kit) == ["a1", "new-0", "new-1"]


async def test_a_job_with_the_id_of_a_run_blocks_no_item(url: str) -> None:
    """S-10: the run then has an id that nobody can choose: it is begun again, decided on and undone with it."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        pipelines = kit.app.pipelines
        await pipelines.define(publishing())
        for job_id in ("a7:1", "a7:2", "a8:1"):
            await kit.app.submit(job(task("a", "fetch"), jobId=job_id))
        assert (await pipelines.enter("publishing", {"title": "News"}, item_id="a7")).job_id == "a7~1"
        await pipelines.enter("publishing", {"title": "News"}, item_id="a8", hold=True)
        assert (await pipelines.restart("a8")).job_id == "a8~1"
        await kit.run_until_idle()
        assert (await pipelines.restart("a7", "fetch", actor="rita")).job_id == "a7~2"
        await kit.run_until_idle()
        assert (await pipelines.view("a7")).job_id == "a7~2"
        await pipelines.decide("a7", "approve", actor="rita")
        await pipelines.roll_back("a8", actor="rita")
        await kit.run_until_idle()
        assert (await status(kit, "a7"), await status(kit, "a8")) == (400, 500)
        assert sorted(room.undone) == ["summarize", "tag"]
        await kit.audit()
        for job_id in ("a7~3", "a7:1.undo-40", "a7~1.budget-12"):
            with pytest.raises(errors.InvalidId, match="the engine makes up itself"):
                await kit.app.submit(job(task("a", "fetch"), jobId=job_id))
        key = "late:019a9d2e-0000-7000-8000-000000000000:a"
        with pytest.raises(errors.InvalidId, match="late reports"):
            await kit.app.submit(job(task("a", "fetch"), idempotencyKey=key))


async def test_a_held_item_that_was_given_up_is_not_processed_and_goes_in_time(url: str) -> None:
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await kit.app.pipelines.define(publishing())
        for item_id in ("kept", "gone"):
            await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id=item_id, hold=True)
        await kit.app.pipelines.roll_back("gone", actor="olga")
        assert [
            item.item_id for item in await kit.app.pipelines.list(item_filters.ItemFilter("publishing", held=True))
        ] == ["kept"]
        assert not (await kit.app.pipelines.view("gone")).held
        await kit.app.set_retention(jobs=30 * 86_400)
        await kit.advance(20 * 86_400)
        await kit.app.prune()
        assert await status(kit, "gone") == 500
        await kit.advance(20 * 86_400)
        await kit.app.prune()
        with pytest.raises(errors.ItemNotFound):
            await kit.app.pipelines.item("gone")
        assert await status(kit, "kept") == 100
        counts = {one.name: one.items for one in (await kit.app.pipelines.health("publishing")).statuses if one.items}
        assert counts == {"discovered": 1}
        await check(kit)
        assert [one.item_id for one in await kit.app.pipelines.process("publishing")] == ["kept"]


async def test_an_item_goes_with_its_last_run_and_takes_no_other_along(url: str) -> None:
    """Neither another item of the tenant, nor one of the same id, whose run has the same id, of another tenant."""
    clock = testing.Clock()
    room = Newsroom(url)
    other = Newsroom(app=Ostinato(url, tenant="other"))
    async with testing.open(room.app, clock) as kit, testing.open(other.app, clock) as elsewhere:
        for one in (kit, elsewhere):
            await one.app.pipelines.define(publishing())
            for item_id in ("gone", "later"):
                await one.app.pipelines.enter("publishing", {"title": "News"}, item_id=item_id)
            await one.run_until_idle()
        gone = (await kit.app.pipelines.view("gone")).job_id
        assert gone == (await elsewhere.app.pipelines.view("gone")).job_id
        await kit.app.pipelines.decide("gone", "approve", actor="rita")
        await kit.run_until_idle()
        clock.advance(10)
        assert await kit.app.prune(older_than=1) == 1
        with pytest.raises(errors.ItemNotFound):
            await kit.app.pipelines.item("gone")
        assert [await status(kit, "later"), await status(elsewhere, "gone")] == [300, 300]
