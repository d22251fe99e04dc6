"""People in pipelines: several of them, in time or too late, with a text of their own; also inside of a group."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import errors, testing
from ostinato.reactions import bulk, item_views
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import check, passed, status


def reviewed(**asked: Any) -> dict[str, Any]:
    document = publishing()
    document["course"][7] |= asked
    return document


async def enter(kit: testing.Kit, document: dict[str, Any]) -> None:
    await kit.app.pipelines.define(document)
    await kit.app.pipelines.enter("publishing", {"title": "News"}, item_id="a1", actor="sam")
    await kit.run_until_idle()


async def test_two_of_three_publish_and_see_what_was_edited(url: str) -> None:
    """A quorum of 2 of 3 after a parallel group, an edited payload, and nobody who approves their own."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit, reviewed(quorum=2, approvers=["rita", "rolf", "sam"], notSubmitter=True))
        with pytest.raises(errors.NotAnApprover):
            await kit.app.pipelines.decide("a1", "approve", actor="sam")
        with pytest.raises(errors.NotAnApprover):
            await kit.app.pipelines.decide("a1", "re-enrich", actor="eve")
        first = await kit.app.pipelines.decide("a1", "approve", actor="rita", payload={"title": "Better news"})
        assert (first.state, first.approvals, first.quorum) == ("waiting", 1, 2)
        item, payload = await kit.app.pipelines.item("a1")
        assert (item.status, item.reviewed_by, payload) == (300, "rita", {"title": "Better news"})
        again = await kit.app.pipelines.decide("a1", "approve", actor="rita")
        assert (again.again, await status(kit)) == (True, 300)
        (asked,) = await kit.app.approvals.list()
        assert asked.payload == {"title": "Better news"}
        await kit.app.pipelines.decide("a1", "approve", actor="rolf", notes="fine")
        await kit.run_until_idle()
        item, payload = await kit.app.pipelines.item("a1")
        assert (item.status, item.reviewed_by, payload) == (400, "rolf", {"title": "Better news"})
        await check(kit)


@pytest.mark.parametrize(("then", "code"), [("reject", 540), ("approve", 400), ("fail", 500)])
async def test_a_review_that_nobody_makes_in_time_ends_as_it_says(url: str, then: str, code: int) -> None:
    room = Newsroom(url)
    asked = {"deadline": 86_400, "onDeadline": then, "escalate": {"after": 3600, "to": ["boss"]}, "approvers": ["rita"]}
    async with testing.open(room.app) as kit:
        await enter(kit, reviewed(**asked))
        with pytest.raises(errors.NotAnApprover):
            await kit.app.pipelines.decide("a1", "approve", actor="boss")
        await kit.advance(3600)
        assert await status(kit) == 300
        await kit.advance(86_400)
        assert await status(kit) == code
        assert room.undone == (["tag", "summarize"] if then == "reject" else [])
        await check(kit)


async def test_a_step_of_a_group_asks_a_person_while_the_other_goes_on(url: str) -> None:
    """An approval inside of a parallel group: the picture is there, the tags wait, and the item stays where it may."""
    room = Newsroom(url)

    @room.app.step("tag-with-care")
    async def tag(ctx: Any, item: Any) -> dict[str, Any]:
        decision = await ctx.approve("Are these tags right?", {"tags": ["news"]}, quorum=2, allow_edit=True)
        more = await ctx.approve("More of them?", decisions=["approve", "reject", "a-few"])
        return {"by": "tag", "tags": decision.payload["tags"], "more": more.decision}

    document = publishing()
    document["course"][5]["together"][0] |= {"function": "tag-with-care"}
    async with testing.open(room.app) as kit:
        await enter(kit, document)
        assert (room.calls["thumbnail"], await status(kit)) == (1, 220)
        (asked,) = await kit.app.approvals.list()
        assert (asked.job_id, asked.task_id) == ("a1:1", "tag")
        await kit.app.approvals.decide("a1:1", "tag", "approve", actor="rita", payload={"tags": ["city"]})
        await kit.run_until_idle()
        assert await status(kit) == 220
        await kit.app.approvals.decide("a1:1", "tag", "approve", actor="rolf")
        await kit.run_until_idle()
        await kit.app.approvals.decide("a1:1", "tag", "a-few", actor="rolf")
        await kit.run_until_idle()
        assert (await passed(kit))[-8:] == [220, 221, 222, 230, 231, 232, 240, 300]
        item, payload = await kit.app.pipelines.item("a1")
        tagged = (await kit.app.pipelines.results(item))["tag"]
        assert (tagged["tags"], tagged["more"]) == (["city"], "a-few")
        assert (payload, item.reviewed_by) == ({"title": "News"}, None)  # it was not about the item
        await check(kit)


async def test_two_steps_of_a_group_ask_people_each_with_its_own_rules(url: str) -> None:
    """Quorum, edited payload, "not the submitter", escalation and deadline, all inside of one parallel group."""
    room = Newsroom(url)

    @room.app.step("tag-with-care")
    async def tag(ctx: Any) -> dict[str, Any]:
        decision = await ctx.approve(
            "Are these tags right?",
            {"tags": ["news"]},
            quorum=2,
            approvers=["rita", "sam"],
            not_submitter=True,
            allow_edit=True,
            escalate={"after": 600, "to": ["boss"]},
            deadline=7200,
        )
        return {"by": "tag", "tags": decision.payload["tags"], "reviewed": decision.by}

    @room.app.step("thumbnail-with-care")
    async def thumbnail(ctx: Any) -> None:
        await ctx.approve("Is this picture right?", deadline=300, on_deadline="reject")

    document = publishing()
    document["course"][5]["together"][0] |= {"function": "tag-with-care"}
    document["course"][5]["together"][1] |= {"function": "thumbnail-with-care"}
    async with testing.open(room.app) as kit:
        await enter(kit, document)

        async def approve(actor: str, **more: Any) -> Any:
            decided = await kit.app.approvals.decide("a1:1", "tag", "approve", actor=actor, **more)
            await kit.run_until_idle()
            return decided

        assert {one.task_id for one in await kit.app.approvals.list()} == {"tag", "thumbnail"}
        for stranger in ("sam", "boss", "eve"):
            with pytest.raises(errors.NotAnApprover):
                await approve(stranger)
        assert (await approve("rita")).approvals == 1
        await kit.advance(300)
        assert [one.task_id for one in await kit.app.approvals.list()] == ["tag"], (
            "nobody looked at the picture in time"
        )
        await kit.advance(300)
        edited = await approve("boss", payload={"tags": ["city"]}, notes="not news")
        assert (edited.state, edited.approvals) == ("waiting", 1), "what rita approved was something else"
        assert await status(kit) == 220
        await approve("rita", notes="right")
        assert (await passed(kit))[-7:] == [220, 221, 222, 230, 231, 240, 300]
        item, _ = await kit.app.pipelines.item("a1")
        tagged = (await kit.app.pipelines.results(item))["tag"]
        assert (tagged["tags"], sorted(tagged["reviewed"])) == (["city"], ["boss", "rita"])
        made = (await kit.app.approvals.get("a1:1", "tag")).approval.made
        assert [(one.by, one.notes) for one in made][1:] == [("boss", "not news"), ("rita", "right")]
        await check(kit)


async def test_a_group_is_rejected_by_the_person_in_it(url: str) -> None:
    """Then the step has failed for good, and so has its item."""
    room = Newsroom(url)

    @room.app.step("tag-with-care")
    async def tag(ctx: Any) -> None:
        await ctx.approve("Are these tags right?", {}, deadline=60, on_deadline="reject")

    document = publishing()
    document["course"][5]["together"][0] |= {"function": "tag-with-care"}
    async with testing.open(room.app) as kit:
        await enter(kit, document)
        await kit.advance(60)
        item, _ = await kit.app.pipelines.item("a1")
        assert (item.status, item.step, item.error_type) == (500, "tag", "Rejected")
        await kit.app.pipelines.restart("a1", "tag")
        await kit.run_until_idle()
        assert (await status(kit), len(await kit.app.approvals.list()), room.calls["thumbnail"]) == (220, 1, 1)
        await check(kit)


async def test_an_approval_is_for_what_was_approved(url: str) -> None:
    """Whoever may begin items again cannot publish something else with an old approval."""
    room = Newsroom(url)
    room.app.step("publish")(lambda item: {"by": item["title"]})
    course = publishing()["course"]
    names = {110: "to_publish", 111: "publishing", 112: "was_published"}
    statuses = [*publishing()["statuses"], *({"code": 340 + code, "name": name} for code, name in names.items())]
    last = {"step": "publish", "function": "publish", "statuses": list(names.values())}
    async with testing.open(room.app) as kit:
        pipelines = kit.app.pipelines
        await pipelines.define(publishing(statuses=statuses, course=[*course[:-1], last, course[-1]]))
        await pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        await kit.run_until_idle()
        await pipelines.decide("a1", "approve", actor="rita", payload={"title": "Better"})
        await kit.run_until_idle()
        item, _ = await pipelines.item("a1")
        assert (item.status, (await pipelines.results(item))["publish"]) == (400, {"by": "Better"})
        await pipelines.restart("a1", "publish")
        await kit.run_until_idle()
        with pytest.raises(errors.NotPossible, match="is not what was approved in 'review' any more"):
            await pipelines.restart("a1", "publish", payload={"title": "Lies"})
        await pipelines.move("a1", "updated", payload={"title": "Lies"})
        with pytest.raises(errors.NotPossible, match="is not what was approved in 'review' any more"):
            await pipelines.restart("a1", "publish")


@pytest.mark.parametrize("door", ["item", "inbox"])
async def test_what_is_no_object_is_seen_and_edited_as_it_is(url: str, door: str) -> None:
    room = Newsroom(url)
    seen: list[Any] = []

    @room.app.step("publish")
    async def publish(ctx: Any, item: Any) -> None:
        seen.append(item)

    async with testing.open(room.app) as kit:
        course = [
            {"status": "discovered"},
            {"review": "review", "waiting": "pending_review", "reject": "rejected"},
            {"step": "publish", "function": "publish", "statuses": ["to_tag", "tagging", "tagged"]},
        ]
        await kit.app.pipelines.define(publishing(course=course, moves=[]))
        await kit.app.pipelines.enter("publishing", ["draft"], item_id="a1")
        await kit.run_until_idle()
        [asked] = await kit.app.approvals.list()
        assert asked.payload == ["draft"]
        if door == "item":
            await kit.app.pipelines.decide("a1", "approve", actor="rita", payload=["edited"])
        else:
            about = (asked.job_id, asked.task_id)
            await kit.app.approvals.decide(*about, "approve", actor="rita", payload=["edited"])
        await kit.run_until_idle()
        found = await kit.app.pipelines.detail("a1")
        assert (found.status, found.payload, seen) == ("tagged", ["edited"], [["edited"]])
        assert (await (await kit.app.job("a1:1")).task("review")).input == ["draft"]
        await check(kit)


async def test_no_way_around_a_review_without_the_right_to_decide(url: str) -> None:
    """S-1: skip, cancel, a move by hand that the pipeline declares, a restart behind it, the step behind it."""
    room = Newsroom(url)
    moves = [{"from": "pending_review", "to": "published"}, {"from": "pending_review", "to": "duplicate"}]
    writes, decides = frozenset({"jobs:write"}), frozenset({"jobs:write", "approvals:decide"})
    async with testing.open(room.app) as kit:
        await enter(kit, reviewed(approvers=["rita"], notSubmitter=True) | {"moves": moves})
        pipelines, run = kit.app.pipelines, await kit.app.job("a1:1")
        for to in ("published", "duplicate"):
            with pytest.raises(errors.Forbidden, match="approvals:decide"):
                await pipelines.move("a1", to, actor="rita", scopes=writes)
            with pytest.raises(errors.NotAnApprover):
                await pipelines.move("a1", to, actor="sam", scopes=decides)
        what = bulk.Bulk(action="move", status="published")
        done = await pipelines.bulk(
            "publishing", item_views.Wanted(), what, dry_run=False, actor="rita", called=None, scopes=writes
        )
        assert [one.error_code for one in done.items] == ["forbidden"]
        with pytest.raises(errors.NotPossible, match="decide on the item"):
            await run.skip_task("review", actor="rita")
        with pytest.raises(errors.Forbidden):
            await run.cancel_task("review", actor="rita", scopes=writes)
        with pytest.raises(errors.NotPossible):
            await pipelines.restart("a1", "published", actor="rita")
        assert await status(kit) == 300
        await pipelines.move("a1", "in_review", actor="sam", scopes=writes)
        await pipelines.move("a1", "pending_review", actor="sam", scopes=writes)
        await pipelines.move("a1", "duplicate", actor="rita", scopes=decides)
        assert await status(kit) == 520
        await check(kit)


async def test_what_is_reviewed_is_replaced_only_by_those_who_may_decide(url: str) -> None:
    """Whoever approves it has seen something else."""
    room = Newsroom(url)
    writes, decides = frozenset({"jobs:write"}), frozenset({"jobs:write", "approvals:decide"})
    async with testing.open(room.app) as kit:
        await enter(kit, reviewed(approvers=["rita", "rolf"], quorum=2))
        pipelines, lies = kit.app.pipelines, {"title": "Lies"}
        with pytest.raises(errors.Forbidden, match="approvals:decide"):
            await pipelines.move("a1", "in_review", actor="eve", scopes=writes, payload=lies)
        with pytest.raises(errors.NotAnApprover):
            await pipelines.move("a1", "in_review", actor="eve", scopes=decides, payload=lies)
        await pipelines.move("a1", "in_review", actor="rita", scopes=decides, payload={"title": "Better news"})
        await pipelines.decide("a1", "approve", actor="rolf")
        with pytest.raises(errors.NotPossible, match="1 of 2 people have approved"):
            await pipelines.move("a1", "editing", actor="rita", scopes=decides, payload=lies)
        assert (await pipelines.item("a1"))[1] == {"title": "Better news"}


async def test_a_new_run_remembers_the_people_whose_payload_it_is(url: str) -> None:
    """D6: with `notSubmitter`, a run that another person begins is not approved by them either."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        pipelines = kit.app.pipelines

        async def left_out(*people: str) -> None:
            await kit.run_until_idle()
            assert await status(kit) == 300
            for who in people:
                with pytest.raises(errors.NotAnApprover):
                    await pipelines.decide("a1", "approve", actor=who)

        await enter(kit, reviewed(notSubmitter=True))
        await left_out("sam")
        await pipelines.restart("a1", "tag", actor="eve")
        await left_out("sam", "eve")
        await pipelines.restart("a1", "tag", payload={"title": "Other"}, actor="tom")
        await left_out("sam", "tom")
        await pipelines.restart("a1", "tag", actor="ann")
        await left_out("sam", "tom", "ann")
        await pipelines.restart("a1", "tag", actor="ann")
        await left_out("sam", "tom", "ann")
        await pipelines.decide("a1", "approve", actor="eve")
        await kit.run_until_idle()
        assert await status(kit) == 400
        await check(kit)
