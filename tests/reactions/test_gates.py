"""Gates, as people use them: whoever comes last opens it, once, and everybody can see why it has not opened yet."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato import Ostinato, errors, testing
from ostinato.core import commands
from ostinato.engine import maintenance
from tests.engine import support
from tests.engine.support import PATIENCE, until
from tests.reactions.support import quiet, sound, started

ECHO = {
    "tasks": [{"taskId": "t", "name": "echo", "input": {"got": "{% aggregate %}", "key": "{% key %}"}}],
    "name": "next",
}


def definition(*members: str, **fields: Any) -> dict[str, Any]:
    return {"name": "phase", "members": list(members) or ["a", "b", "c"], "trigger": [{"job": ECHO}]} | fields


async def opened(app: Ostinato, key: str, gate: str = "phase") -> Any:
    """Wait until everything that the gate triggers has happened."""

    async def done() -> Any:
        status = await app.gate(gate).status(key)
        return status if status.triggered and all(t["state"] == "completed" for t in status.triggered) else None

    return await until(done, "the trigger")


async def test_e8_e9_the_last_one_opens_it_once(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition(aggregate={"n": {"how": "sum"}}))
        gate = app.gate("phase")
        first = await gate.arrive("2025-11-29", "a", {"n": 1}, correlation_id="c-1")
        assert (first.outcome, first.opened) == ("arrived", False)
        waiting = await gate.status("2025-11-29")
        assert (waiting.status, waiting.completed_count, waiting.expected_count) == ("waiting", 1, 3)
        assert waiting.missing == ["b", "c"]
        assert waiting.sentence.startswith("Completed: 1/3; missing: b, c since ")
        assert (await gate.arrive("2025-11-29", "a", {"n": 100})).outcome == "duplicate"
        await gate.arrive("2025-11-29", "b", {"n": 2}, correlation_id="c-2")
        last = await gate.arrive("2025-11-29", "c", {"n": 3}, correlation_id="c-1")
        assert (last.outcome, last.opened) == ("arrived", True)
        status = await opened(app, "2025-11-29")
        assert (status.status, status.opened_by, status.missing) == ("open", "c", [])
        assert status.correlation_ids == ["c-1", "c-2"]
        [job] = await started(app)
        assert job.correlation_id == "c-1"
        made = await app.job(job.job_id)
        assert await made.result(PATIENCE) == {"t": {"got": {"n": 6}, "key": "2025-11-29"}}
        assert status.triggered[0]["result"] == {"jobId": job.job_id, "created": True}
        assert (await gate.arrive("2025-11-29", "c")).outcome == "duplicate"
        await sound(app)


async def test_what_is_not_expected_is_refused(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition("alpha", "beta", required=["status"]))
        gate = app.gate("phase")
        with pytest.raises(errors.UnknownMember, match="alpha"):
            await gate.arrive("k", "alpa", {"status": "success"})
        with pytest.raises(errors.MissingField, match="status"):
            await gate.arrive("k", "alpha", {})
        with pytest.raises(errors.GateKeyNotFound):
            await gate.status("k")
        with pytest.raises(errors.DefinitionNotFound):
            await app.gate("none").arrive("k", "alpha")


@pytest.mark.parametrize("count", [21])
async def test_e7_all_at_the_same_instant(url: str, count: int) -> None:
    members = [f"m{n}" for n in range(count)]
    async with support.opened(url) as app:
        await app.gates.define(definition(*members))
        answers = await asyncio.gather(*[app.gate("phase").arrive("k", name) for name in members])
        assert sum(answer.opened for answer in answers) == 1
        await opened(app, "k")
        assert len(await started(app)) == 1
        await sound(app)


async def test_a_failed_report(url: str) -> None:
    async with support.opened(url) as app:
        for policy in ("wait", "partial", "fail"):
            await app.gates.define(definition("a", "b", name=policy, onFailure=policy))
        for policy, state in (("wait", "waiting"), ("partial", "waiting"), ("fail", "failed")):
            gate = app.gate(policy)
            await gate.arrive("k", "a", {"status": "success"})
            answer = await gate.arrive("k", "b", {"status": "error"})
            assert answer.outcome == "failed"
            assert answer.opened == (policy == "partial")
            status = await gate.status("k")
            assert status.status == ("open" if policy == "partial" else state)
            assert [arrival.member for arrival in status.failed] == ["b"]
        assert (await app.gate("wait").arrive("k", "b", {"status": "success"})).opened
        assert (await app.gate("fail").arrive("k", "b", {"status": "success"})).outcome == "duplicate"
        await opened(app, "k", "wait")
        await opened(app, "k", "partial")
        assert len(await started(app)) == 2
        await sound(app)


async def test_opened_by_hand(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition())
        gate = app.gate("phase")
        await gate.arrive("k", "a")
        assert await gate.open("k", reason="b and c are down", actor="ann") == ["b", "c"]
        status = await opened(app, "k")
        assert (status.status, status.opened_by, status.reason) == ("open", "ann", "b and c are down")
        with pytest.raises(errors.NotPossible, match="open already"):
            await gate.open("k", reason="again", actor="ann")
        late = await gate.arrive("k", "b")
        assert (late.outcome, late.opened) == ("late", False)
        assert [arrival.member for arrival in (await gate.status("k")).late] == ["b"]
        entries = [e for e in await app.audit_log() if e.action == "gates.open"]
        assert [(e.actor, e.target, e.details) for e in reversed(entries)] == [
            ("ann", "phase/k", {"reason": "b and c are down"}),
            ("ann", "phase/k", {"reason": "again"}),
        ]
        await sound(app)


async def test_late_reports(url: str) -> None:
    async with support.opened(url) as app:
        for policy in ("ignore", "refuse", "trigger"):
            await app.gates.define(definition("a", "b", name=policy, late=policy, aggregate={"n": {"how": "sum"}}))
            await app.gate(policy).arrive("k", "a", {"n": 1})
            await app.gate(policy).open("k", reason="hurry", actor="ann")
            await opened(app, "k", policy)
        assert (await app.gate("ignore").arrive("k", "b", {"n": 2})).outcome == "late"
        with pytest.raises(errors.GateClosed, match="too late"):
            await app.gate("refuse").arrive("k", "b", {"n": 2})
        assert [a.member for a in (await app.gate("refuse").status("k")).late] == ["b"]
        before = len(await started(app))
        for _ in range(2):
            assert (await app.gate("trigger").arrive("k", "b", {"n": 2})).outcome == "late"
        await until(lambda: _reaches(app, before + 1), "what the late report triggers")
        newest = await app.job((await started(app))[0].job_id)
        assert await newest.result(PATIENCE) == {"t": {"got": {"n": 2}, "key": "k"}}
        await asyncio.sleep(0.2)
        assert len(await started(app)) == before + 1
        await sound(app)


async def _reaches(app: Ostinato, count: int) -> bool:
    return len(await started(app)) >= count


@pytest.mark.parametrize(("then", "state", "jobs"), [("fail", "expired", 0), ("partial", "open", 1)])
async def test_the_deadline(url: str, then: str, state: str, jobs: int) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition("a", "b", deadline=0.3, onDeadline=then))
        gate = app.gate("phase")
        await gate.arrive("k", "a")
        await until(lambda: _is(app, "k", state), state)
        assert (await gate.arrive("k", "b")).outcome == "late"
        if jobs:
            assert (await opened(app, "k")).opened_by == "deadline"
        assert len(await started(app)) == jobs
        await app.gates.define(definition("a", "b", deadline=3600, onDeadline=then))
        made = await app.job((await gate.arrive("in time", "a")).job_id)
        await gate.arrive("in time", "b")
        assert (await opened(app, "in time")).opened_by == "b"
        assert (await support.standing(made))["$deadline"] == "skipped"
        assert not await app.engine.execute(commands.ExpireGate("phase", "in time"))
        assert (await gate.status("in time")).opened_by == "b"
        await sound(app)


async def _is(app: Ostinato, key: str, state: str) -> bool:
    return (await app.gate("phase").status(key)).status == state


async def test_a_reset_begins_anew(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition("a", "b"))
        gate = app.gate("phase")
        await gate.arrive("k", "a")
        old = await gate.reset("k", reason="wrong data", actor="ann")
        assert (await (await app.job(old)).info()).state == "cancelled"
        with pytest.raises(errors.GateKeyNotFound):
            await gate.status("k")
        for member in ("b", "a"):
            answer = await gate.arrive("k", member)
        assert answer.opened
        assert answer.job_id != old
        await opened(app, "k")
        assert len(await started(app)) == 1
        await gate.reset("k")
        await gate.arrive("k", "a")
        assert (await gate.status("k")).status == "waiting"
        await sound(app)


async def test_members_given_at_run_time(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition(members="dynamic", aggregate={"n": {"how": "list"}}))
        gate = app.gate("phase")
        with pytest.raises(errors.GateNotFrozen, match="freeze"):
            await gate.arrive("k", "x", {"n": 1})
        assert (await gate.freeze("k", ["x", "y"])).created
        assert not (await gate.freeze("k", ["y", "x"])).created
        with pytest.raises(errors.GateFrozen):
            await gate.freeze("k", ["x", "z"])
        with pytest.raises(errors.UnknownMember):
            await gate.arrive("k", "z")
        await gate.arrive("k", "x", {"n": 1})
        assert (await gate.status("k")).missing == ["y"]
        assert (await gate.arrive("k", "y", {"n": 2})).opened
        await opened(app, "k")
        await gate.freeze("nobody", [])
        assert (await opened(app, "nobody")).expected_count == 0
        assert len(await started(app)) == 2
        await sound(app)


async def test_a_new_version_leaves_keys_that_have_begun_alone(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition("a", "b"))
        await app.gate("phase").arrive("old", "a")
        assert await app.gates.define(definition("a", "b", "c")) == 2
        assert await app.gates.define(definition("a", "b", "c")) == 2
        assert (await app.gate("phase").arrive("old", "b")).opened
        await app.gate("phase").arrive("new", "a")
        assert not (await app.gate("phase").arrive("new", "b")).opened
        with pytest.raises(errors.UnknownMember):
            await app.gate("phase").arrive("old", "c")
        assert (await app.gate("phase").status("old")).expected_count == 2


async def test_e14_a_gate_forgets_after_its_own_time(url: str) -> None:
    async with support.opened(url, work=True, prune_every_seconds=0.1) as app:
        await app.gates.define(definition("a", name="short", retention=0.2))
        await app.gates.define(definition("a", name="long"))
        for name in ("short", "long"):
            await app.gate(name).arrive("k", "a")
            await opened(app, "k", name)
        await until(lambda: _forgotten(app, "short"), "the short memory")
        assert (await app.gate("short").arrive("k", "a")).opened
        assert (await app.gate("long").status("k")).status == "open"


async def test_e14_a_longer_memory_than_the_tenants_holds_and_the_gate_fires_once(url: str) -> None:
    """E14: whoever prunes, by hand or in the background; and of a gate that is kept shorter, `prune` knows too."""
    day = 86_400
    async with testing.open(support.make(url)) as kit:
        app = kit.app
        await app.gates.define(definition("a", name="long", retention=365 * day))
        await app.gates.define(definition("a", name="short", retention=day))
        await app.gates.define(definition("a", name="plain"))
        await app.set_retention(jobs=30 * day)
        for name in ("long", "short", "plain"):
            assert (await app.gate(name).arrive("k", "a")).opened
        await kit.run_until_idle()
        kit.clock.advance(2 * day)
        await app.prune()
        assert [await _forgotten(app, name) for name in ("long", "short", "plain")] == [False, True, False]
        kit.clock.advance(31 * day)
        await maintenance.Pruner(app.engine.store, 1).run_once()
        await app.prune(older_than=0)
        assert [await _forgotten(app, name) for name in ("long", "short", "plain")] == [False, True, True]
        assert (await app.gate("long").arrive("k", "a")).outcome == "duplicate"
        kit.clock.advance(365 * day)
        await app.prune()
        assert await _forgotten(app, "long")
        assert await app.jobs() == []


async def test_e14_a_key_keeps_the_memory_of_the_version_that_it_began_with(url: str) -> None:
    """E14: also when the gate gets another `retention`, and when it is taken away."""
    async with testing.open(support.make(url)) as kit:
        app = kit.app
        await app.set_retention(jobs=10)
        await app.gates.define(definition("a", retention=1000))
        await app.gate("phase").arrive("first", "a")
        await app.gates.define(definition("a", retention=50))
        await app.gate("phase").arrive("second", "a")
        await kit.run_until_idle()
        await app.gates.remove("phase")
        kit.clock.advance(100)
        await app.prune()
        await app.gates.define(definition("a", retention=50))
        assert [found.key for found in await app.gate("phase").keys()] == ["first"]
        kit.clock.advance(1000)
        await app.prune()
        assert await app.gate("phase").keys() == []


async def _forgotten(app: Ostinato, gate: str) -> bool:
    try:
        await app.gate(gate).status("k")
    except errors.NotFound:
        return True
    return False


# --- at the same time -----------------------------------------------------------------------------------------------


async def test_reports_and_resets_in_one_transaction(url: str) -> None:
    """Whoever does things at the same instant shares a commit: each is done in turn all the same."""
    async with support.opened(url) as app:
        await app.gates.define(definition("a", "b"))
        gate = app.gate("phase")
        await gate.arrive("k", "a")
        _, again = await asyncio.gather(gate.reset("k"), gate.arrive("k", "b"))
        assert again.outcome == "arrived"
        assert (await gate.status("k")).missing == ["a"]
        await asyncio.gather(gate.arrive("l", "a"), gate.reset("l"))
        with pytest.raises(errors.GateKeyNotFound):
            await gate.status("l")
        await asyncio.gather(gate.arrive("m", "a"), gate.reset("m"), gate.arrive("m", "b"), gate.reset("m"))
        assert [answer.opened for answer in await asyncio.gather(gate.arrive("m", "a"), gate.arrive("m", "b"))] == [
            False,
            True,
        ]
        await opened(app, "m")
        assert len(await started(app)) == 1
        await sound(app)


async def test_a_report_is_not_too_late_for_a_gate_that_is_being_reset(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody resets the key while a report is on its way, between two reads of its transaction."""
    async with support.opened(postgres_url) as app, support.opened(postgres_url) as other:
        await app.gates.define(definition("a", "b"))
        old = (await app.gate("phase").arrive("k", "a")).job_id
        fetch = app.engine.db._fetch
        resets = iter([other.gate("phase").reset("k")])

        async def slowly(connection: Any, name: str, args: dict[str, Any]) -> Any:
            found = await fetch(connection, name, args)
            if name == "load_gate_keys":
                for reset in resets:
                    await reset
            return found

        monkeypatch.setattr(app.engine.db, "_fetch", slowly)
        answer = await app.gate("phase").arrive("k", "b")
        assert answer.outcome == "arrived"
        assert answer.job_id != old
        await sound(app)


# --- late, again ----------------------------------------------------------------------------------------------------


async def test_late_reports_trigger_once_for_each_round(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition("a", "b", "c", late="trigger", trigger=[]))
        gate, key = app.gate("phase"), "k" * 256
        late = 0
        for _ in range(2):
            await gate.arrive(key, "a")
            await gate.open(key, reason="hurry", actor="ann")
            for member in ("b", "c", "b"):
                assert (await gate.arrive(key, member)).outcome == "late"
            late += 2
            # Another version has other targets: what was triggered stays triggered, and nobody is refused for it.
            await app.gates.define(definition("a", "b", "c", late="trigger", trigger=[{"job": ECHO}] * late))
            assert (await gate.arrive(key, "c")).outcome == "late"
            await quiet(app)
            assert len(await started(app, "gate:phase")) == late + late // 2
            await gate.reset(key)
        await sound(app)


async def test_late_reports_where_members_are_given_at_run_time(url: str) -> None:
    async with support.opened(url) as app:
        by_kind = {"n": {"how": "by-kind"}}
        await app.gates.define(definition(members="dynamic", late="trigger", aggregate=by_kind))
        gate = app.gate("phase")
        await gate.freeze("k", [{"name": "x", "kind": "one"}, {"name": "y", "kind": "two"}])
        await gate.arrive("k", "x", {"n": [1]})
        await gate.open("k", reason="hurry", actor="ann")
        await opened(app, "k")
        assert (await gate.arrive("k", "y", {"n": [2]})).outcome == "late"
        await quiet(app)
        newest, first = await started(app)
        assert (await (await app.job(first.job_id)).outputs())["t"]["got"] == {"n": {"one": [1], "two": []}}
        assert (await (await app.job(newest.job_id)).outputs())["t"]["got"] == {"n": {"one": [], "two": [2]}}
        await sound(app)


# --- what people do to the job of a gate ------------------------------------------------------------------------------


async def test_the_job_of_a_gate_is_the_engines(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition("a", "b"))
        answer = await app.gate("phase").arrive("k", "a")
        made = await app.job(answer.job_id)
        for task_id in ("b", "$open"):
            with pytest.raises(errors.NotPossible, match="open the gate"):
                await made.skip_task(task_id)
        with pytest.raises(errors.NotPossible, match="engine's own"):
            await made.add_tasks([{"taskId": "c", "name": "member", "external": True}])
        for command in (
            commands.CompleteTask(made.job_id, "b", b"1"),
            commands.FailTask(made.job_id, "b", commands.make_failure("No", "no")),
        ):
            with pytest.raises(errors.NotPossible, match="report to the gate"):
                await app.engine.execute(command)
        assert (await app.gate("phase").arrive("k", "b")).opened
        await opened(app, "k")
        await sound(app)


@pytest.mark.parametrize("anew", [False, True], ids=["gone", "begun-anew"])
async def test_the_job_of_a_gate_that_was_reset_cannot_be_taken_up_again(url: str, anew: bool) -> None:
    """Nobody would ever report to it: it would wait for ever."""
    async with support.opened(url) as app:
        await app.gates.define(definition("a", "b"))
        gate = app.gate("phase")
        await gate.arrive("k", "a")
        made = await app.job(await gate.reset("k", reason="wrong data", actor="ann"))
        if anew:
            await gate.arrive("k", "b")
        for dry_run in (True, False):
            with pytest.raises(errors.NotPossible, match=r"gate 'phase' was reset for key 'k'.*report to the gate"):
                await made.resume(dry_run=dry_run)
        with pytest.raises(errors.NotPossible, match="was reset"):
            await made.retry_task("b")
        assert (await made.info()).state == "cancelled"
        assert (await gate.arrive("k", "a")).opened is anew
        await sound(app)


async def test_what_a_gate_triggered_is_run_again_after_its_reset(url: str) -> None:
    async with support.opened(url) as app:
        wrong = {"job": {"name": "next", "tasks": [{"taskId": "t", "name": "echo", "input": {"n": "{% nothing %}"}}]}}
        await app.gates.define(definition("a", trigger=[wrong]))
        await app.gate("phase").arrive("k", "a")
        await until(lambda: app.dead_letters(), "the dead letter")
        made = await app.job(await app.gate("phase").reset("k"))
        await app.gates.define(definition("a"))
        assert (await made.resume()).rerun == ["$trigger-1"]
        await made.result(PATIENCE)
        assert len(await started(app)) == 1
        await sound(app)


@pytest.mark.parametrize("ended", ["cancelled", "expired"])
async def test_a_gate_that_closed_without_a_reset_is_taken_up_again(url: str, ended: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition("a", "b"))
        gate = app.gate("phase")
        made = await app.job((await gate.arrive("k", "a")).job_id)
        if ended == "cancelled":
            await made.cancel()
        else:
            await app.engine.execute(commands.ExpireGate("phase", "k"))
        assert (await made.resume()).reused == ["a"]
        assert (await gate.arrive("k", "b")).opened
        await opened(app, "k")
        await sound(app)


async def test_who_was_missing_when_a_gate_opened_stays_late(url: str) -> None:
    async with support.opened(url) as app:
        wrong = {"job": {"name": "next", "tasks": [{"taskId": "t", "name": "echo", "input": {"n": "{% nothing %}"}}]}}
        await app.gates.define(definition("a", "b", trigger=[wrong]))
        gate = app.gate("phase")
        made = await app.job((await gate.arrive("k", "a")).job_id)
        await gate.open("k", reason="b is down", actor="ann")
        await until(lambda: app.dead_letters(), "the dead letter")
        with pytest.raises(errors.NotPossible, match="opened without 'b'"):
            await made.retry_task("b")
        assert (await gate.arrive("k", "b")).outcome == "late"
        await sound(app)


async def test_a_gate_is_opened_without_a_member_that_was_cancelled(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition())
        gate = app.gate("phase")
        made = await app.job((await gate.arrive("k", "a")).job_id)
        await made.cancel_task("b")
        assert await gate.open("k", reason="b is no more", actor="ann") == ["b", "c"]
        assert (await opened(app, "k")).opened_by == "ann"
        assert len(await started(app)) == 1
        await sound(app)


async def test_what_was_removed_long_ago_begins_anew(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(definition("a"))
        first = await app.gate("phase").arrive("k", "a")
        await quiet(app)
        assert await app.prune(older_than=0) == 2
        second = await app.gate("phase").arrive("k", "a")
        assert (second.outcome, second.opened) == ("arrived", True)
        assert second.job_id != first.job_id
        await quiet(app)
        await sound(app)


async def test_a_target_that_was_wrong_is_run_again_corrected(url: str) -> None:
    async with support.opened(url) as app:
        wrong = {"job": {"name": "next", "tasks": [{"taskId": "t", "name": "echo", "input": {"n": "{% nothing %}"}}]}}
        await app.gates.define(definition("a", trigger=[wrong]))
        await app.gate("phase").arrive("k", "a")
        letters = await until(lambda: app.dead_letters(), "the dead letter")
        assert "job.tasks[0].input.n" in letters[0].error["message"]
        made = await app.job(letters[0].job_id)
        with pytest.raises(errors.NotPossible, match="correct the rule or gate"):
            await made.retry_task(letters[0].task_id, input={"target": {"job": ECHO}})
        await app.gates.define(definition("a"))
        await app.redrive([(letters[0].job_id, letters[0].task_id)])
        await opened(app, "k")
        assert len(await started(app)) == 1
        await sound(app)


async def test_e15_a_day_of_reports_opens_every_key_once(url: str) -> None:
    """Some 100 reports a day for one phase and 15 for the next: each key opens once, for a few events a report."""
    members = [f"m{number}" for number in range(21)]
    async with support.opened(url, work=False) as app:
        await app.gates.define(definition(*members, trigger=[]))
        await app.gates.define(definition("a", "b", "c", "d", "e", trigger=[], name="next"))
        before = app.engine.events_written
        for key in range(5):
            await asyncio.gather(*[app.gate("phase").arrive(f"day-{key}", member, {}) for member in members])
            if key < 3:
                await asyncio.gather(*[app.gate("next").arrive(f"day-{key}", member, {}) for member in "abcde"])
        for gate, keys, expected in (("phase", 5, 21), ("next", 3, 5)):
            for key in range(keys):
                status = await app.gate(gate).status(f"day-{key}")
                assert (status.completed_count, status.opened_by is not None) == (expected, True)
        assert app.engine.events_written - before < 8 * (5 * 21 + 3 * 5)
