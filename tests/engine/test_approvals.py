"""Approvals: tasks that people complete, and places inside functions that wait for people."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from ostinato import Context, Job, Keyring, Ostinato, Retry, SyncContext, encryption, errors, testing
from ostinato.core import commands
from tests.engine import support
from tests.engine.support import PATIENCE, job, reaches, standing, task, told

DRAFT = {"text": "Bridge closed", "tags": ["traffic"]}


def approval(task_id: str = "ok", after: str = "", *, given: Any = None, **asked: Any) -> dict[str, Any]:
    made = {"title": "Publish it?"} | asked
    return task(task_id, "review", after, approval=made, input=DRAFT if given is None else given)


async def decide(made: Job, decision: str = "approve", by: str = "ann", task_id: str = "ok", **more: Any) -> Any:
    return await made._app.approvals.decide(made.job_id, task_id, decision, actor=by, **more)  # pyright: ignore[reportPrivateUsage]


async def inbox(app: Ostinato, **wanted: Any) -> list[tuple[str, str]]:
    return [(one.task_id, one.state) for one in await app.approvals.list(**wanted)]


# --- a task ---------------------------------------------------------------------------------------------------------


async def test_a_person_completes_it(url: str) -> None:
    """B11, B19: who, when and with which words is in the output, in the inbox and in the history."""
    app = support.make(url)
    async with testing.open(app) as kit:
        document = job(task("a", input={"n": 1}), approval(after="a"), task("b", "join", "ok"))
        made = await app.submit(document, actor="key:producer")
        await kit.run_until_idle()
        assert await standing(made) == {"a": "completed", "ok": "waiting", "b": "blocked"}
        [waiting] = await app.approvals.list()
        assert (waiting.title, waiting.payload, waiting.submitted_by) == ("Publish it?", DRAFT, "key:producer")
        shown = await app.approvals.get(made.job_id, "ok")
        assert (shown.approval, shown.outputs) == (waiting, {"a": {"n": 1}})
        await kit.advance(90)
        why = await made.why("ok")
        assert why.code == "approval"
        assert why.sentence == ("It has been waiting for 1 min 30 s for somebody to decide on 'Publish it?'.")
        answer = await decide(made, notes="well done")
        assert (answer.state, answer.again, answer.task_state) == ("approve", False, "completed")
        await kit.run_until_idle()
        output = {
            "decision": "approve",
            "reviewedBy": ["ann"],
            "reviewedAt": "2027-01-15T08:01:30.000Z",
            "reviewNotes": ["well done"],
            "payload": DRAFT,
        }
        assert (await made.outputs())["b"] == {"ok": output}
        assert await inbox(app) == []
        [decided] = await app.approvals.list(state="approve")
        [by_ann] = decided.made
        assert (by_ann.by, by_ann.notes, decided.decided_at) == ("ann", "well done", by_ann.at)
        assert [e for e in await told(made, task_id="ok") if e != "Task Blocked"] == [
            "Task Waiting", "Approval Requested", "Approval Decided", "Task Completed",
        ]  # fmt: skip
        assert (await decide(made, notes="well done")).again, "a request that is sent twice counts once"
        with pytest.raises(errors.ApprovalDecided, match="no longer waiting: it is approved"):
            await decide(made, by="bob")
        await kit.audit()


async def test_a_quorum_with_deciders_at_two_engines(url: str) -> None:
    """Two of three, all at the same moment and each twice: it is decided once, and everybody gets an answer."""
    document = job(
        approval(quorum=2, approvers=["ann", "bob", "cid"]), approval("other", quorum=2), task("b", "join", "ok")
    )
    async with support.opened(url) as app, support.opened(url) as elsewhere:
        made = await app.submit(document)
        await reaches(made, "ok", "waiting")
        there = Job(elsewhere, made.job_id)
        asked = [decide(at, by=by) for by in ("ann", "bob", "cid") for at in (made, there)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, errors.ApprovalDecided)]
        counted = [answer for answer in answers if isinstance(answer, commands.Decided)]
        assert len(refused) + len(counted) == 6
        assert sum(answer.state == "approve" and not answer.again for answer in counted) == 1
        await reaches(made, "b", "completed")
        assert len((await made.outputs())["ok"]["reviewedBy"]) == 2
        assert (await told(made)).count("Approval Decided") == 2
        assert await inbox(app) == [("other", "waiting")]
        await decide(there, by="ann", task_id="other")
        assert (await decide(made, by="ann", task_id="other")).again, "nobody counts twice"
        why = (await made.why("other")).sentence
        assert "1 of 2 have approved" in why
        await decide(there, by="bob", task_id="other")
        assert (await made.result(PATIENCE))["b"]["ok"]["decision"] == "approve"


async def test_who_may_decide(url: str) -> None:
    app = support.make(url)
    async with testing.open(app) as kit:
        asked = approval(approvers=["ann", "sub", "team-lead"], notSubmitter=True)
        made = await app.submit(job(asked, approval("any", notSubmitter=True)), actor="sub")
        with pytest.raises(errors.NotAnApprover, match="'eve' is not asked for 'Publish it\\?': ann, sub, team-lead"):
            await decide(made, by="eve")
        with pytest.raises(errors.NotAnApprover, match="'sub' submitted the job"):
            await decide(made, by="sub")
        assert "(but not sub, who submitted it)" in (await made.why("ok")).sentence
        assert await inbox(app, approver="eve") == [("any", "waiting")]
        assert await inbox(app, approver="sub") == []
        assert await inbox(app, approver="ann") == [("any", "waiting"), ("ok", "waiting")]
        assert await inbox(app, approver="key:7", called="team-lead") == [("any", "waiting"), ("ok", "waiting")]
        assert await inbox(app, approver="team-lea") == [("any", "waiting")], "a part of a name is another name"
        await decide(made, by="key:7", called="team-lead")
        await decide(made, by="eve", task_id="any")
        assert (await made.info()).state == "completed"
        await kit.audit()


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"decision": "publish"}, errors.InvalidInput, "decision must be one of approve, reject, re-enrich"),
        ({"payload": {}}, errors.InvalidInput, "payload must be left out"),
        ({"notes": "x" * 5000}, errors.InvalidInput, "notes must be a text of 0 to 4,096"),
        ({"by": ""}, errors.InvalidInput, "actor must be a text"),
        ({"task_id": "plain"}, errors.ApprovalNotFound, "nobody is asked about task 'plain'"),
        ({"task_id": "nothing"}, errors.TaskNotFound, "no task 'nothing'"),
        ({"key": "approve"}, errors.ApprovalNotFound, "nobody is asked"),
        ({"version": 1}, errors.ApprovalDecided, "has changed since version 1"),
    ],
)
async def test_what_is_refused(sqlite_url: str, given: dict[str, Any], error: type[Exception], match: str) -> None:
    app = support.make(sqlite_url)
    async with testing.open(app) as kit:
        made = await app.submit(job(task("plain"), approval(decisions=["approve", "reject", "re-enrich"])))
        await kit.run_until_idle()
        before = await made.events()
        with pytest.raises(error, match=match):
            await decide(made, **given)
        assert await made.events() == before
        for do in (made.complete_task("ok"), made.fail_task("ok", "no"), made.retry_task("ok")):
            with pytest.raises(errors.NotPossible):
                await do
        with pytest.raises(errors.JobNotFound):
            await decide(Job(app, "nothing"))
        assert await inbox(app) == [("ok", "waiting")]
        await kit.audit()


async def test_an_edited_payload_reaches_those_that_wait_for_it(url: str) -> None:
    """… and whoever approved what was there before has approved something else."""
    app = support.make(url)
    async with testing.open(app) as kit:
        large = {"text": "x" * 100_000}
        made = await app.submit(job(approval(quorum=2, allowEdit=True, given=large), task("b", "join", "ok")))
        [before] = await app.approvals.list()
        assert before.payload == large
        await decide(made, by="ann")
        edited = {"text": "y" * 100_000}
        answer = await decide(made, by="bob", payload=edited, notes="shorter", version=before.version)
        assert (answer.state, answer.approvals) == ("waiting", 1)
        [after] = await app.approvals.list()
        assert (after.payload, after.approvals, [one.edited for one in after.made]) == (edited, 1, [False, True])
        with pytest.raises(errors.ApprovalDecided, match="has changed since version"):
            await decide(made, by="ann", version=before.version)
        assert (await decide(made, by="ann", version=after.version)).state == "approve"
        await kit.run_until_idle()
        result = (await made.outputs())["b"]["ok"]
        assert (result["payload"], result["reviewedBy"]) == (edited, ["bob", "ann"])
        await kit.audit()


async def test_another_decision_ends_it_at_once(url: str) -> None:
    """B11: re-enrich is neither yes nor no."""
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(approval(quorum=3, decisions=["approve", "reject", "re-enrich"])))
        await decide(made)
        await decide(made, "re-enrich", by="bob", notes="too thin")
        output = (await made.outputs())["ok"]
        assert (output["decision"], output["reviewedBy"], output["reviewNotes"]) == ("re-enrich", ["bob"], ["too thin"])
        await kit.audit()


async def test_a_rejected_one_asks_again_when_it_is_redriven(url: str) -> None:
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(approval(quorum=2), task("b", "join", "ok"), task("c", after="ok", optional=True)))
        await decide(made, by="ann")
        assert (await decide(made, "reject", by="bob", notes="not like this")).task_state == "failed"
        assert "Rejected: 'Publish it?' was rejected by bob: not like this" in str(await support.failure(made))
        assert await standing(made) == {"ok": "failed", "b": "blocked", "c": "blocked"}
        [letter] = await app.dead_letters()
        assert letter.error["type"] == "Rejected"
        await app.redrive([(made.job_id, "ok")], actor="ann")
        [again] = await app.approvals.list()
        assert (again.made, again.approvals) == ([], 0)
        await decide(made, by="ann")
        await decide(made, by="bob")
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        await kit.audit()


@pytest.mark.parametrize(("then", "outcome"), [("reject", "Rejected"), ("approve", None), ("fail", "ApprovalExpired")])
async def test_others_are_asked_and_then_the_deadline_comes(url: str, then: str, outcome: str | None) -> None:
    app = support.make(url)
    async with testing.open(app) as kit:
        escalate = {"after": 60, "to": ["boss"]}
        asked = approval(approvers=["ann", "bob"], quorum=2, escalate=escalate, deadline=100, onDeadline=then)
        made = await app.submit(job(asked))
        await decide(made)
        with pytest.raises(errors.NotAnApprover):
            await decide(made, by="boss")
        await kit.advance(59)
        assert (await app.approvals.get(made.job_id, "ok")).approval.asked == ["ann", "bob"]
        assert "others are asked too" in (await made.why("ok")).sentence
        await kit.advance(2)
        assert await inbox(app, approver="boss") == [("ok", "waiting")]
        assert f"it ends by itself ({then})" in (await made.why("ok")).sentence
        await kit.audit()
        await kit.advance(38)
        assert await standing(made) == {"ok": "waiting"}
        await kit.advance(2)
        assert await inbox(app) == []
        if outcome is None:
            result = (await made.outputs())["ok"]
            assert (result["decision"], result["byDeadline"], result["reviewedBy"]) == ("approve", True, ["ann"])
        else:
            assert f"ok: {outcome}: " in str(await support.failure(made))
        assert (await told(made)).count("Approval Escalated") == (await told(made)).count("Approval Expired") == 1
        await kit.audit()


async def test_those_who_are_asked_later_can_decide(url: str) -> None:
    """A clock that jumps over both times asks them first, and still lets nobody decide after the deadline."""
    app = support.make(url)
    async with testing.open(app) as kit:
        late: dict[str, Any] = {"escalate": {"after": 60, "to": ["boss"]}, "approvers": ["ann"]}
        made = await app.submit(job(approval(**late), approval("late", **late, deadline=100)))
        await kit.advance(1000)
        await decide(made, by="boss")
        assert await standing(made) == {"ok": "completed", "late": "failed"}
        assert (await told(made, task_id="late"))[-3:] == ["Approval Escalated", "Approval Expired", "Task Failed"]
        await kit.audit()


async def test_it_leaves_the_inbox_with_its_task(url: str) -> None:
    app = support.make(url)
    asks(app)
    async with testing.open(app) as kit:
        tasks = [approval("ok"), approval("skip"), approval("cancel"), task("inside", "ask")]
        made = await app.submit(job(*tasks))
        timed = await app.submit(job(approval("timed"), deadline=10))
        await kit.run_until_idle()
        assert len(await app.approvals.list()) == 5
        await made.skip_task("skip", actor="ann")
        await made.cancel_task("cancel", actor="ann")
        await made.cancel_task("inside", actor="ann")
        await kit.advance(11)
        assert (await timed.info()).state == "timed_out"
        assert await inbox(app) == [("ok", "waiting")]
        await made.cancel()
        withdrawn = {"ok", "timed"}
        assert sorted(await inbox(app, state="cancelled")) == [("cancel", "cancelled"), ("inside", "cancelled")]
        assert await inbox(app, state="skipped") == [("skip", "skipped")]
        assert {one.task_id for one in await app.approvals.list(state="withdrawn")} == withdrawn
        with pytest.raises(errors.ApprovalDecided, match="withdrawn"):
            await decide(made)
        await kit.audit()
        assert await made.resume(dry_run=True) == await made.resume()
        await kit.run_until_idle()
        assert await inbox(app) == [("cancel", "waiting"), ("inside", "waiting"), ("ok", "waiting")]
        await kit.audit()


async def test_in_parallel_branches(url: str) -> None:
    """Approvals are ordinary nodes: in branches that run at the same time, beside work, and where only one may run."""
    app = support.make(url)
    async with testing.open(app) as kit:
        branches = [
            t for n in range(3) for t in (task(f"a{n}"), approval(f"ok{n}", f"a{n}"), task(f"b{n}", "echo", f"ok{n}"))
        ]
        end = task("end", "join", "b0 b1 b2", onDependencyFailure="run")
        made = await app.submit(job(*branches, task("beside"), end, maxConcurrency=1))
        await kit.run_until_idle()
        assert len(await app.approvals.list(job_id=made.job_id)) == 3
        assert (await standing(made))["beside"] == "completed"
        await decide(made, task_id="ok2")
        await decide(made, "reject", task_id="ok1")
        await kit.run_until_idle()
        assert (await standing(made))["b2"] == "completed"
        await decide(made, task_id="ok0")
        await kit.run_until_idle()
        assert (await standing(made))["end"] == "completed" or (await standing(made))["b1"] == "blocked"
        await kit.audit()


async def test_the_inbox_is_paged_oldest_first_and_forgotten_with_its_jobs(url: str) -> None:
    app = support.make(url)
    async with testing.open(app) as kit:
        made: list[Job] = []
        for n in range(5):
            kit.clock.advance(1)
            made.append(await app.submit(job(approval(f"t{n}"))))
        await decide(made[2], task_id="t2")
        seen: list[str] = []
        cursor = None
        while True:
            page = await app.approvals.list(most=2, cursor=cursor)
            seen += [one.task_id for one in page]
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == ["t0", "t1", "t3", "t4"]
        assert [t for t, _ in await inbox(app, state=None)] == ["t0", "t1", "t2", "t3", "t4"]
        assert await inbox(app, state=None, job_id=made[2].job_id) == [("t2", "approve")]
        waiting = await app.approvals.waiting()
        assert (waiting.number, waiting.oldest_at) == (4, int((testing.START + 1) * 1e6))
        kit.clock.advance(100)
        assert await app.prune(older_than=10) == 1
        assert [t for t, _ in await inbox(app, state=None)] == ["t0", "t1", "t3", "t4"]


async def test_tenants_do_not_see_each_others(url: str) -> None:
    async with support.opened(url, tenant="red") as red, support.opened(url, tenant="blue") as blue:
        made = await red.submit(job(approval(), jobId="same"))
        await blue.submit(job(task("x"), jobId="same"))
        assert await inbox(red) == [("ok", "waiting")]
        assert await inbox(blue) == []
        with pytest.raises(errors.ApprovalNotFound):
            await blue.approvals.get(made.job_id, "ok")
        with pytest.raises(errors.TaskNotFound):
            await decide(Job(blue, made.job_id))
        await decide(made)
        assert (await made.result(PATIENCE))["ok"]["decision"] == "approve"


async def test_payloads_are_encrypted(url: str) -> None:
    """What people see and say is sealed like every payload, and follows when the key changes."""
    old, new = encryption.new_key(), encryption.new_key()
    plain = {"text": "Bridge closed, tell nobody"}
    async with sealed(url, {"one": old}) as app:
        made = await app.submit(job(approval(quorum=2, allowEdit=True, given=plain), task("in", "ask")))
        await reaches(made, "in", "waiting")
        await decide(made, by="ann", notes="keep it in this house", payload={"text": "Bridge: tell nobody"})
        stored = await support.sql(url, "SELECT document, payload FROM approval")
        assert not any(
            b"nobody" in bytes(cell or b"") or b"house" in bytes(cell or b"") for row in stored for cell in row
        )
    async with sealed(url, {"two": new, "one": old}) as app:
        await app.rotate_encryption()
        assert {count.key_id for count in await app.encryption_status()} == {"two"}
    async with sealed(url, {"two": new}) as app:
        [first] = [one for one in await app.approvals.list() if one.task_id == "ok"]
        assert (first.payload, first.made[0].notes) == ({"text": "Bridge: tell nobody"}, "keep it in this house")
        await decide(Job(app, made.job_id), by="bob")
        assert (await Job(app, made.job_id).outputs())["ok"]["payload"] == first.payload
    async with sealed(url, {"three": encryption.new_key()}) as app:
        with pytest.raises(errors.DecryptionFailed):
            await decide(Job(app, made.job_id), task_id="in")
        assert await support.sql(url, "SELECT state FROM task WHERE task_id = 'in'") == [("waiting",)]


@contextlib.asynccontextmanager
async def sealed(url: str, keys: dict[str, bytes]) -> AsyncGenerator[Ostinato]:
    app = support.make(url)
    app.keyring = Keyring(keys)
    asks(app)
    async with app:
        yield app


# --- inside a function --------------------------------------------------


def asks(app: Ostinato, **asked: Any) -> list[str]:
    """Register `ask`, which asks twice: whether to begin, and whether to publish what it has made of its input."""
    entered: list[str] = []

    @app.function("ask", retry=Retry(max_attempts=2, base_delay=1, jitter=0))
    async def ask(ctx: Context, text: str = "draft") -> Any:
        entered.append(ctx.task_id)
        await ctx.approve("Begin?", name="begin")
        made = await ctx.step("make", lambda: text.upper())
        decision = await ctx.approve("Publish it?", {"text": made}, **asked)
        return [decision.decision, decision.by, decision.payload]

    return entered


async def test_a_function_waits_for_people(url: str) -> None:
    app = support.make(url)
    entered = asks(app, allow_edit=True, quorum=2)
    async with testing.open(app) as kit:
        made = await app.submit(job(task("ok", "ask")))
        await kit.run_until_idle()
        [first] = await app.approvals.list()
        assert (first.key, first.title, first.payload) == ("approve:begin", "Begin?", None)
        await decide(made)
        await kit.run_until_idle()
        [second] = await app.approvals.list()
        assert (second.key, second.payload) == ("approve", {"text": "DRAFT"})
        assert (await decide(made, key="approve:begin")).again
        with pytest.raises(errors.ApprovalDecided):  # it was about the first one, which is decided
            await decide(made, by="bob", key="approve:begin")
        await decide(made, payload={"text": "Draft"})
        await decide(made, by="bob")
        await kit.run_until_idle()
        assert await made.outputs() == {"ok": ["approve", ["ann", "bob"], {"text": "Draft"}]}
        assert entered == ["ok"] * 3
        assert [one.state for one in await app.approvals.list(state=None)] == ["approve", "approve"]
        await kit.audit()


async def test_a_function_is_told_of_a_rejection_and_asks_again_when_redriven(url: str) -> None:
    app = support.make(url)
    entered = asks(app)
    async with testing.open(app) as kit:
        made = await app.submit(job(task("ok", "ask")))
        await kit.run_until_idle()
        await decide(made)
        await kit.run_until_idle()
        await decide(made, "reject", notes="no")
        await kit.run_until_idle()
        assert "Rejected: 'Publish it?' was rejected by ann: no" in str(await support.failure(made))
        assert len(entered) == 3, "a rejection is for good"
        await app.redrive([(made.job_id, "ok")])
        await kit.run_until_idle()
        [again] = await app.approvals.list()
        assert (again.key, again.made) == ("approve", [])
        await decide(made)
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        await kit.audit()


async def test_a_rejection_that_is_caught_stands_for_later_attempts(url: str) -> None:
    app = support.make(url)

    @app.function(retry=Retry(max_attempts=3, base_delay=1, jitter=0))
    def careful(ctx: SyncContext) -> str:
        try:
            ctx.approve("Go on?", deadline=10, on_deadline="fail")
        except errors.ApprovalExpired:
            ctx.approve("Really not?")
        except errors.Rejected as rejected:
            if ctx.attempt == 1:
                raise ConnectionError("lost") from None
            return f"{rejected.details['reviewNotes'][0]}, attempt {ctx.attempt}"
        return "went on"

    async with testing.open(app) as kit:
        made = await app.submit(job(task("ok", "careful"), task("late", "careful")))
        await kit.run_until_idle()
        await decide(made, "reject", notes="no")
        await kit.advance(11)
        [left] = await app.approvals.list()
        assert (left.task_id, left.title) == ("late", "Really not?")
        await decide(made, task_id="late")
        await kit.advance(2)
        assert await made.outputs() == {"ok": "no, attempt 2", "late": "went on"}
        await kit.audit()


# --- whatever dies --------------------------------------------------


def build(url: str) -> Ostinato:
    app = support.make(url, lease_seconds=10)

    @app.function(retry=Retry(max_attempts=9))
    async def publish(ctx: Context) -> Any:
        return (await ctx.approve("Now?", deadline=5, on_deadline="approve")).by

    return app


async def decided(kit: testing.Kit) -> Job:
    """People who press the button again when they got no answer."""
    made = await kit.app.submit(job(approval(quorum=2), task("in", "publish", "ok"), idempotencyKey="one"))
    for by in ("ann", "bob"):
        await kit.app.engine.execute(commands.Decide(made.job_id, "ok", "approve", by))
    assert (await made.outputs())["ok"]["reviewedBy"] == ["ann", "bob"]
    assert (await told(made, task_id="ok")).count("Approval Decided") == 2
    return made


async def published(kit: testing.Kit) -> None:
    """The same, and a function for which nobody decides in time."""
    made = await decided(kit)
    await kit.run_until_idle()
    await kit.advance(20)
    assert (await made.outputs())["in"] == []
    happened = await told(made)
    assert [happened.count(f"Approval {what}") for what in ("Requested", "Decided", "Expired")] == [2, 2, 1]
    assert await kit.app.approvals.list() == []


async def test_a_crash_anywhere_changes_nothing() -> None:
    assert await testing.crash_everywhere(build, published) >= 20


ON_POSTGRES = published if "OSTINATO_CRASH_ALL" in os.environ else decided


async def test_a_crash_anywhere_changes_nothing_on_postgres(new_postgres_url: Callable[[], str]) -> None:
    assert await testing.crash_everywhere(build, ON_POSTGRES, fresh_url=new_postgres_url) >= 6
