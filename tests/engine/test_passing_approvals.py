"""S-1: no way around what people are asked without the right to decide it. S-2: who `notSubmitter` leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Context, errors, testing
from ostinato.core import scopes
from tests.engine import support
from tests.engine.support import job, standing, task, told
from tests.engine.test_approvals import approval, decide

WRITES = frozenset({scopes.JOBS_READ, scopes.JOBS_WRITE})
DECIDES = WRITES | {scopes.APPROVALS_DECIDE}


async def test_to_skip_or_cancel_an_approval_takes_the_right_to_decide_it(url: str) -> None:
    """S-1: of a task that is an approval, in each state; and of one whose function asks."""
    app = support.make(url)

    @app.function("ask")
    async def ask(ctx: Context) -> None:
        await ctx.approve("Pay?", approvers=["bob"])

    async with testing.open(app) as kit:
        asked = approval(approvers=["bob"], after="a")
        made = await app.submit(job(task("a"), asked, task("inside", "ask"), task("pay", "echo", "ok inside")))
        ways = (made.skip_task, made.cancel_task)

        async def refused(*task_ids: str) -> None:
            for way in ways:
                for task_id in task_ids:
                    with pytest.raises(errors.Forbidden, match="approvals:decide"):
                        await way(task_id, actor="bob", scopes=WRITES)
                    with pytest.raises(errors.NotAnApprover):
                        await way(task_id, actor="ann", scopes=DECIDES)
                    with pytest.raises(errors.InvalidInput, match="`actor`"):
                        await way(task_id)

        await refused("ok")
        await kit.run_until_idle()
        await refused("ok", "inside")
        assert await standing(made) == {"a": "completed", "ok": "waiting", "inside": "waiting", "pay": "blocked"}
        await made.cancel(actor="ann")
        ways = (made.skip_task,)
        await refused("ok", "inside")
        await made.resume()
        await kit.run_until_idle()
        ways = (made.skip_task, made.cancel_task)
        await refused("ok", "inside")
        for task_id in ("ok", "inside"):
            assert await made.skip_task(task_id, "said by phone", actor="key:7", called="bob", scopes=DECIDES)
            assert (await told(made, task_id=task_id))[-2:] == ["Approval Decided", "Task Skipped"]
            [event] = [e for e in await made.events(task_id=task_id) if e.type == "Approval Decided"]
            assert (event.properties["decision"], event.properties["by"]) == ("skipped", "key:7")
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        for one in await app.approvals.list(state="skipped"):
            assert [(x.by, x.decision, x.notes) for x in one.made] == [("key:7", "skipped", "said by phone")]
        await kit.audit()


async def test_a_rejection_is_not_skipped_by_others(url: str) -> None:
    """S-1: what was rejected, or not decided in time, stays so for those who may not decide it."""
    app = support.make(url)
    async with testing.open(app) as kit:
        tasks = [approval(approvers=["bob"]), approval("late", approvers=["bob"], deadline=5, onDeadline="fail")]
        made = await app.submit(job(*tasks, task("pay", "echo", "ok late")))
        await decide(made, "reject", by="bob")
        await kit.advance(6)
        assert await standing(made) == {"ok": "failed", "late": "failed", "pay": "blocked"}
        for task_id in ("ok", "late"):
            with pytest.raises(errors.NotAnApprover):
                await made.skip_task(task_id, actor="ann")
        await made.skip_task("late", actor="bob")
        with pytest.raises(errors.NotAnApprover):
            await made.skip_task("ok", actor="ann")
        await kit.audit()


async def test_one_of_a_quorum_cannot_skip(url: str) -> None:
    """S-1: who skips counts as one of those who must approve."""
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(approval(quorum=2), task("pay", "echo", "ok")))
        await decide(made, by="ann")
        with pytest.raises(errors.NotPossible, match="one person cannot skip"):
            await made.skip_task("ok", actor="ann")
        await made.skip_task("ok", actor="bob")
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        await kit.audit()


async def test_what_stands_between_an_approval_and_others_is_not_skipped_by_others(url: str) -> None:
    """S-1: a task behind it is skipped, or cancelled where others run all the same, by those who may decide."""
    app = support.make(url)
    async with testing.open(app) as kit:
        tasks = [approval(approvers=["bob"]), task("a", "echo", "ok"), task("b", "echo", "a"), task("pay", "echo", "b")]
        cleaning = task("clean", "echo", "b", onDependencyFailure="run")
        made = await app.submit(job(*tasks, cleaning, task("last", "echo", "a")))
        await kit.run_until_idle()
        for task_id in ("a", "b"):
            with pytest.raises(errors.Forbidden):
                await made.skip_task(task_id, actor="bob", scopes=WRITES)
        with pytest.raises(errors.Forbidden):
            await made.cancel_task("b", actor="bob", scopes=WRITES)
        assert await made.cancel_task("last", actor="ann", scopes=WRITES) == "cancelled"
        await made.skip_task("b", actor="bob", scopes=DECIDES)
        await kit.run_until_idle()
        assert (await standing(made))["pay"] == "completed"
        await kit.audit()


async def test_there_is_no_other_way_around_an_approval(url: str) -> None:
    """S-1: retry, complete, fail, signals, more tasks, cancel with resume, resume with another input."""
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(approval(), task("pay", "echo", "ok")))
        await kit.run_until_idle()
        with pytest.raises(errors.NotPossible):
            await made.retry_task("ok", actor="eve")
        with pytest.raises(errors.NotPossible):
            await made.retry_task("pay", actor="eve")
        with pytest.raises(errors.NotPossible):
            await made.complete_task("ok", {}, actor="eve")
        with pytest.raises(errors.NotPossible):
            await made.fail_task("ok", "no", actor="eve")
        await made.signal("ok")
        await made.signal("approval")
        await made.add_tasks([task("more", "echo", "ok")], actor="eve")
        await made.cancel_task("pay", actor="eve")
        await made.retry_task("pay", actor="eve")
        await made.cancel(actor="eve")
        await made.retry_task("pay", actor="eve")
        assert await standing(made) == {"ok": "cancelled", "pay": "blocked", "more": "cancelled"}
        await made.resume(inputs={"pay": {"n": 2}} if (await standing(made))["pay"] == "cancelled" else None)
        await kit.run_until_idle()
        assert await standing(made) == {"ok": "waiting", "pay": "blocked", "more": "blocked"}
        await kit.audit()


async def test_who_adds_an_approval_or_what_it_guards_may_not_decide(url: str) -> None:
    """S-2: nor skip it; with a name for whoever did so."""
    app = support.make(url)

    @app.function("ask")
    async def ask(ctx: Context) -> None:
        await ctx.approve("Pay?", not_submitter=True)

    async def left_out(made: Any, task_id: str, *people: str) -> None:
        for who in people:
            with pytest.raises(errors.NotAnApprover):
                await decide(made, by=who, task_id=task_id)
            with pytest.raises(errors.NotAnApprover):
                await made.skip_task(task_id, actor=who)

    async with testing.open(app) as kit:
        first = approval("first", notSubmitter=True)
        made = await app.submit(job(first, task("a", "echo", "first"), task("open", external=True)), actor="sam")
        await made.add_tasks([approval("second", notSubmitter=True)], actor="eve")
        await made.add_tasks([task("b", "echo", "a")], actor="tom")
        await made.add_tasks([task("asks", "ask"), task("c", "echo", "asks")], actor="joe")
        await made.add_tasks([task("beside")], actor="ann")
        await kit.run_until_idle()
        await left_out(made, "first", "sam", "tom")
        await left_out(made, "second", "sam", "eve")
        await left_out(made, "asks", "sam", "joe")
        for task_id in ("first", "second", "asks"):
            await decide(made, by="ann", task_id=task_id)
        await kit.run_until_idle()
        await kit.audit()


async def test_what_is_refused_in_python_is_in_the_log_as_refused(url: str) -> None:
    """B8: with the code of the error; what is done for nobody by name is in no log."""
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(approval(approvers=["bob"])))
        await kit.run_until_idle()
        with pytest.raises(errors.NotAnApprover):
            await decide(made, by="eve")
        with pytest.raises(errors.NotAnApprover):
            await made.skip_task("ok", actor="eve")
        await decide(made, by="bob")
        entries = [(e.actor, e.action, e.outcome, e.refuses, e.details.get("error")) for e in await app.audit_log()]
        assert entries == [
            ("bob", "approvals.decide", "accepted", None, None),
            ("eve", "tasks.skip", "refused", 3, "not_an_approver"),
            ("eve", "tasks.skip", "refused", None, None),
            ("eve", "approvals.decide", "refused", 1, "not_an_approver"),
            ("eve", "approvals.decide", "refused", None, None),
        ]
        assert (await app.verify_audit_log()).problem is None


@pytest.mark.parametrize("how", ["cancel", "deadline"])
async def test_what_runs_in_any_case_is_not_retried_behind_an_open_approval(url: str, how: str) -> None:
    """D10: not after a cancel or a deadline of the job either; with `resume`, people are asked again first."""
    app = support.make(url)

    @app.function("ask")
    async def ask(ctx: Context) -> None:
        await ctx.approve("Pay?")

    pays = [task("pay", "echo", "ok", onDependencyFailure="run"), task("buy", "echo", "in", onDependencyFailure="run")]
    between = task("between", "echo", "ok", onDependencyFailure="skip", optional=True)
    async with testing.open(app) as kit:
        spec = job(approval(), task("in", "ask"), between, *pays, task("end", "echo", "between"))
        made = await app.submit(spec | {"deadline": 5})
        await kit.run_until_idle()
        await (made.cancel(actor="sub") if how == "cancel" else kit.advance(6))
        assert set((await standing(made)).values()) == {"cancelled"}
        for task_id in ("pay", "buy"):
            with pytest.raises(errors.NotPossible, match="have not decided"):
                await made.retry_task(task_id, actor="sub")
        await made.retry_task("between", actor="sub")
        with pytest.raises(errors.NotPossible, match="have not decided"):
            await made.retry_task("end", actor="sub")
        await made.cancel(actor="sub")
        await made.resume(deadline=100)
        await kit.run_until_idle()
        assert await standing(made) == {
            "ok": "waiting", "in": "waiting", "between": "blocked", "pay": "blocked", "buy": "blocked", "end": "blocked"
        }  # fmt: skip
        await made.cancel(actor="sub")
        await made.skip_task("ok", actor="boss", scopes=DECIDES)
        await made.retry_task("pay", actor="sub")
        await kit.run_until_idle()
        assert (await standing(made))["pay"] == "completed"
        await kit.audit()


async def test_a_rejection_does_not_stop_what_runs_in_any_case_from_being_retried(url: str) -> None:
    """D10: people have decided, and what runs all the same has run."""
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(
            job(approval(), task("clean", "echo", "ok", onDependencyFailure="run"), task("z", "echo", "clean"))
        )
        await made.cancel_task("clean", actor="ann")
        await decide(made, "reject", by="bob")
        await made.retry_task("clean", actor="ann")
        await kit.run_until_idle()
        assert (await standing(made))["clean"] == "completed"
        await kit.audit()


async def test_what_some_have_approved_does_not_grow_or_change(url: str) -> None:
    """D12: a quorum approves one and the same: tasks and inputs behind it are as the first of them has seen them."""
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(approval(quorum=2), task("a", "echo", "ok"), task("pay", "echo", "a"), task("x")))
        await kit.run_until_idle()
        await made.add_tasks([task("early", "echo", "pay")], actor="sub")
        await made.cancel_task("pay", actor="sub")
        await made.retry_task("pay", input={"n": 2}, actor="sub")
        await decide(made, by="ann")
        for behind in ("ok", "a", "early"):
            with pytest.raises(errors.NotPossible, match="1 of 2 people have approved"):
                await made.add_tasks([task("late", "echo", behind)], actor="sub")
        await made.cancel_task("pay", actor="sub")
        with pytest.raises(errors.NotPossible, match="1 of 2 people have approved"):
            await made.retry_task("pay", input={"n": 3}, actor="sub")
        with pytest.raises(errors.NotPossible, match="1 of 2 people have approved"):
            await made.resume(inputs={"pay": {"n": 3}}, actor="sub")
        await made.retry_task("pay", actor="sub")
        await made.add_tasks([task("beside", "echo", "x"), task("alone")], actor="sub")
        await decide(made, by="bob")
        await made.add_tasks([task("after", "echo", "ok")], actor="sub")
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        await kit.audit()


async def test_who_changes_the_input_of_what_is_guarded_may_not_decide(url: str) -> None:
    """D6: nor who gives the approval itself another payload, which all others see."""
    app = support.make(url)
    async with testing.open(app) as kit:
        first = approval(notSubmitter=True) | {"input": {"cents": 100}}
        pay = task("pay", "echo", "ok", retry={"maxAttempts": 2})
        made = await app.submit(job(first, pay, task("end", "echo", "pay")), actor="sub")
        await made.add_tasks([task("more", "echo", "end")], actor="tom")
        await kit.run_until_idle()
        await made.cancel(actor="boss")
        await made.resume(inputs={"pay": {"cents": 999}, "more": {"n": 1}}, actor="boss")
        await kit.run_until_idle()
        await made.cancel_task("end", actor="eve")
        await made.retry_task("end", input={"n": 2}, actor="eve")
        for who in ("sub", "tom", "boss", "eve"):
            with pytest.raises(errors.NotAnApprover):
                await decide(made, by=who)
            with pytest.raises(errors.NotAnApprover):
                await made.skip_task("ok", actor=who)
        await decide(made, "reject", by="joe")
        await made.retry_task("ok", input={"cents": 7}, actor="joe")
        await kit.run_until_idle()
        [asked] = await app.approvals.list()
        assert asked.payload == {"cents": 7}
        with pytest.raises(errors.NotAnApprover, match="gave its input"):
            await decide(made, by="joe")
        await decide(made, by="ann")
        await kit.run_until_idle()
        assert (await made.info()).state == "completed"
        await kit.audit()


async def test_what_a_function_asked_about_is_not_run_with_another_input(url: str) -> None:
    """The recorded answer would be taken for one to the new input."""
    app = support.make(url)

    @app.function("pay")
    async def pay(ctx: Context, amount: int) -> int:
        await ctx.approve("Pay?", {"amount": amount}, approvers=["bob"])
        await ctx.sleep(60)
        return amount

    async with testing.open(app) as kit:
        made = await app.submit(job(task("p", "pay", input={"amount": 1})))
        await kit.run_until_idle()
        await app.approvals.decide(made.job_id, "p", "approve", actor="bob")
        await kit.run_until_idle()
        await made.cancel()
        for way in (
            lambda given: made.retry_task("p", input=given),
            lambda given: made.resume(inputs={"p": given}),
        ):
            with pytest.raises(errors.NotPossible, match="have approved 'Pay\\?' in task 'p'"):
                await way({"amount": 1_000_000})
        await made.resume()
        await kit.run_until_idle()
        await kit.advance(61)
        await kit.run_until_idle()
        assert await made.result(support.PATIENCE) == {"p": 1}


async def test_the_last_task_behind_an_approval_is_skipped_without_the_right(url: str) -> None:
    """D13: nothing comes after it that people have to decide first."""
    app = support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(approval(approvers=["bob"]), task("a", "echo", "ok"), task("last", "echo", "a")))
        await kit.run_until_idle()
        with pytest.raises(errors.Forbidden):
            await made.skip_task("a", actor="ann", scopes=WRITES)
        assert await made.skip_task("last", actor="ann", scopes=WRITES) == "skipped"
        assert await standing(made) == {"ok": "waiting", "a": "blocked", "last": "skipped"}
        await kit.audit()
