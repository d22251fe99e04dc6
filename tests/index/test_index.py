"""C1, C3, C4, C5 and X9 on both databases: what is reported is indexed by its tags, once, and never goes back."""

import asyncio
import itertools
import random
from typing import Any

import pytest

from ostinato import EngineOptions, Ostinato, errors, testing
from ostinato.core import executions
from tests.engine import support as engine_support
from tests.engine.support import PATIENCE, job, opened, sql, task
from tests.index.support import AGENT, MACHINE, arn, change


async def rows(url: str, *, times: bool = True) -> list[tuple[Any, ...]]:
    """The whole index of outside executions."""
    indexed = ", indexed_at" if times else ""
    found = await sql(
        url,
        "SELECT tenant, execution_arn, state_machine_arn, agent_name, execution_name, status, start_at, stop_at, "
        f"correlation_id{indexed} FROM execution ORDER BY tenant, execution_arn",
    )
    return found + await sql(url, "SELECT * FROM execution_tag ORDER BY tenant, execution_arn, key")


async def test_c4_the_record_of_the_example_and_its_update(url: str) -> None:
    async with opened(url) as app:
        assert (await app.index.report([change()])).indexed == 1
        started = await app.execution(arn())
        assert (started.agent_name, started.execution_name, started.status) == ("my-agent", "abc123", "RUNNING")
        assert started.state_machine_arn == MACHINE
        assert started.start_date.isoformat() == "2009-02-13T23:31:30+00:00"
        assert (started.stop_date, started.duration_seconds) == (None, None)
        await app.index.report([change("SUCCEEDED", stop=1234567900000)])
        ended = await app.execution(arn())
        assert (ended.status, ended.duration_seconds) == ("SUCCEEDED", 10)
        assert ended.stop_date is not None
        assert ended.stop_date.isoformat() == "2009-02-13T23:31:40+00:00"
        assert ended.indexed_at > started.indexed_at
        assert ended.start_date == started.start_date
        assert ended.tags == AGENT
        await app.index.report([change(), change("SUCCEEDED", stop=1234567900000)])
        assert await app.execution(arn()) == ended, "nothing new changes nothing, not even when it was indexed"
        assert len(await app.executions()) == 1


async def test_c5_own_jobs_are_indexed_by_their_own_events(url: str) -> None:
    """C1 too: a new job is in the index with nothing to set up."""
    async with opened(url) as app:
        gate = engine_support.Gate(app)
        made = {
            "good": await app.submit(job(task("a"), jobId="good", name="report", tags={"team": "a"})),
            "bad": await app.submit(job(task("a", "break"), jobId="bad", name="report", correlationId="order-1")),
            "late": await app.submit(job(task("a", "gate"), jobId="late", name="report", deadline=0.2)),
            "stopped": await app.submit(job(task("a", "gate"), jobId="stopped", name="report")),
        }
        await made["good"].result(engine_support.PATIENCE)
        for name in ("bad", "late"):
            await engine_support.failure(made[name])
        await engine_support.soon(gate.started.wait())
        running = await app.execution("arn:ostinato:states:local:default:execution:report:stopped")
        assert (running.status, running.stop_date) == ("RUNNING", None)
        assert running.indexed_at == (await made["stopped"].events())[-1].at
        await made["stopped"].cancel()
        found = {one.execution_name: one for one in await app.executions(agent_name="report")}
        assert {name: one.status for name, one in found.items()} == {
            "good": "SUCCEEDED",
            "bad": "FAILED",
            "late": "TIMED_OUT",
            "stopped": "ABORTED",
        }
        good, info = found["good"], await made["good"].info()
        assert good.execution_arn == "arn:ostinato:states:local:default:execution:report:good"
        assert good.state_machine_arn == "arn:ostinato:states:local:default:stateMachine:report"
        assert (good.start_date, good.stop_date) == (info.created_at, info.finished_at)
        assert good.indexed_at == info.finished_at
        assert good.tags == {"team": "a"}
        assert found["bad"].correlation_id == "order-1"
        assert await app.execution(good.execution_arn) == good


async def test_an_execution_that_is_not_there_is_said_so(url: str) -> None:
    async with opened(url) as app:
        await app.submit(job(task("a"), jobId="j", name="report"))
        for missing in (
            arn(),
            "arn:ostinato:states:local:default:execution:report:other",
            "arn:ostinato:states:local:default:execution:other:j",
            "j",
        ):
            with pytest.raises(errors.ExecutionNotFound):
                await app.execution(missing)


# --- C3: tags decide ---------------------------------------------------------------------------------------------


async def test_c3_only_what_has_both_tags_is_indexed(url: str) -> None:
    async with opened(url) as app:
        told = await app.index.report(
            [
                change(name="agent", machine="a"),
                change(name="typed", machine="b", tags={"Type": "Agent"}),
                change(name="other", machine="c", tags={"Type": "Other", "Application": "StepFunctionsAgent"}),
                change(name="unknown", machine="d", tags=None),
                change(name="more", machine="e", tags=AGENT | {"Team": "x"}),
            ]
        )
        assert told.indexed == 2
        assert {(one.execution_arn.rpartition(":")[2], one.code) for one in told.skipped} == {
            ("typed", "not_tagged"),
            ("other", "not_tagged"),
            ("unknown", "tags_unknown"),
        }
        assert all(one.reason for one in told.skipped)
        assert {one.execution_name for one in await app.executions()} == {"agent", "more"}


async def test_c3_what_is_required_can_be_chosen(url: str) -> None:
    async with opened(url, index_tags={"Team": "x"}, index_stages=("blue",)) as app:
        told = await app.index.report([change(machine="a-blue", tags={"Team": "x"}), change(name="agent")])
        assert (told.indexed, len(told.skipped)) == (1, 1)
        assert [one.agent_name for one in await app.executions()] == ["a"]


async def test_c3_what_is_required_can_be_chosen_in_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a server, and for a rebuild on the command line, which no program has made."""
    monkeypatch.setenv("OSTINATO_INDEX_TAGS", "Team=x, Owner=a=b")
    monkeypatch.setenv("OSTINATO_INDEX_STAGES", "blue, green")
    async with opened(url) as app:
        tags = {"Team": "x", "Owner": "a=b"}
        told = await app.index.report([change(machine="a-green", tags=tags), change(name="agent")])
        assert (told.indexed, len(told.skipped)) == (1, 1)
        assert [one.agent_name for one in await app.executions()] == ["a"]
    for bad in ("Team", "=x", "Team=x,,"):
        monkeypatch.setenv("OSTINATO_INDEX_TAGS", bad)
        with pytest.raises(errors.InvalidInput, match="KEY=VALUE") as caught:
            EngineOptions()
        assert caught.value.details["field"] == "OSTINATO_INDEX_TAGS"


async def test_c1_a_new_definition_needs_no_more_than_its_tags(url: str) -> None:
    async with opened(url) as app:
        silent = change("SUCCEEDED", stop=1234567900000, tags=None)
        assert (await app.index.report([silent])).indexed == 0
        await app.index.tag(MACHINE, AGENT)
        assert (await app.index.report([silent])).indexed == 1
        assert (await app.execution(arn())).tags == AGENT
    async with opened(url) as app:
        assert (await app.index.report([change(name="next", tags=None)])).indexed == 1, "it is remembered for good"
        await app.index.tag(MACHINE, {})
        assert (await app.index.report([change(name="last", tags=None)])).indexed == 0


async def test_c1_what_another_process_says_of_a_definition_counts_at_once(url: str) -> None:
    """What is skipped is missing until somebody rebuilds the index: nobody skips by what was known once."""
    async with opened(url) as app, opened(url) as other:
        assert (await app.index.report([change(name="unknown", tags=None)])).indexed == 0
        await other.index.tag(MACHINE, {"Type": "Other"})
        told = await app.index.report([change(name="other", tags=None)])
        assert [one.code for one in told.skipped] == ["not_tagged"]
        await other.index.tag(MACHINE, AGENT)
        assert (await app.index.report([change(name="agent", tags=None)])).indexed == 1


async def test_an_event_teaches_the_tags_of_its_definition_but_does_not_overrule(url: str) -> None:
    async with opened(url) as app:
        await app.index.report([change(name="first")])
        assert (await app.index.report([change(name="second", tags=None)])).indexed == 1
        await app.index.tag(MACHINE, {"Type": "Other"})
        assert (await app.index.report([change(name="third")])).indexed == 1, "its own tags count for itself"
        assert (await app.index.report([change(name="fourth", tags=None)])).indexed == 0


async def test_x9_tags_are_asked_for_once_for_each_definition(url: str) -> None:
    asked: list[str] = []

    async def source(definition: str) -> dict[str, str] | None:
        asked.append(definition)
        await asyncio.sleep(0.01)
        return AGENT if "my-agent" in definition else {} if "plain" in definition else None

    async with opened(url, index_tag_source=source) as app:
        batches = [
            [change(name=f"{n}-{m}", machine=machine, tags=None) for m in range(20)]
            for n, machine in enumerate(["my-agent-prod", "plain", "my-agent-prod", "nobody-knows"] * 3)
        ]
        told = await asyncio.gather(*map(app.index.report, batches))
        assert sum(one.indexed for one in told) == 6 * 20
        assert sorted(asked) == sorted({event["detail"]["stateMachineArn"] for batch in batches for event in batch})
    async with opened(url, index_tag_source=source) as app:
        await app.index.report([change(tags=None), change(machine="plain", tags=None)])
        assert len(asked) == 3, "what was told is kept in the database"


@pytest.mark.parametrize("said", [True, False])
async def test_c3_an_execution_hears_of_its_end_though_its_definition_lost_its_tags(url: str, said: bool) -> None:
    """C3: what has got into the index stays there, and so does its end; also in a rebuild."""
    async with opened(url) as app:
        await app.index.tag(MACHINE, AGENT)
        assert (await app.index.report([change(tags=None)])).indexed == 1
        await app.index.tag(MACHINE, {"Type": "Other"})
        ended = change("SUCCEEDED", stop=1234567900000, tags={"Type": "Other"} if said else None)
        answer = await app.index.report([ended, change(name="new", tags=None)])
        assert (answer.indexed, [one.code for one in answer.skipped]) == (1, ["not_tagged"])
        [found] = await app.executions()
        assert (found.status, found.tags) == ("SUCCEEDED", AGENT)
        assert (await app.rebuild_index()).mended == 0
        assert await app.executions() == [found]


async def test_c3_one_batch_may_tell_of_both(url: str) -> None:
    """C3: the start by which it gets in, and the end of a definition whose tags are others by then."""
    async with opened(url) as app:
        other = {"Type": "Other"}
        await app.index.report(
            [change("FAILED", stop=1234567900000, tags=other), change(), change(name="x", tags=other)]
        )
        [found] = await app.executions()
        assert (found.status, found.tags) == ("FAILED", AGENT)


async def test_of_a_batch_what_is_wrong_is_refused_by_itself(url: str) -> None:
    async with opened(url) as app:
        reports = [change(name="good", tags=None), change("PENDING_REDRIVE"), change(correlationId="c-1", tags=None), 5]
        answer = await app.index.report([*reports, change(name="x", tags=None, correlationId="any text/at all")])
        assert (answer.indexed, len(answer.skipped)) == (0, 3)
        assert [(one.position, one.field) for one in answer.refused] == [
            (1, "events[1].detail.status"),
            (3, "events[3]"),
        ]
        assert "PENDING_REDRIVE" in answer.refused[0].reason
        with pytest.raises(errors.InvalidInput) as caught:
            await app.index.report([change("PENDING_REDRIVE")])
        assert caught.value.details["field"] == "detail.status"
        for bad in ("", "x" * 600):
            with pytest.raises(errors.InvalidInput) as caught:
                await app.index.tag(bad, AGENT)
            assert caught.value.details["field"] == "stateMachineArn"
        with pytest.raises(errors.InvalidInput) as caught:
            await app.index.tag(MACHINE, {"a=b": "c"})
        assert caught.value.details["field"] == "tags"
        assert await rows(url) == []


# --- X9: never back ----------------------------------------------------------------------------------------------


async def test_x9_all_permutations_with_duplicates_give_the_same_row(url: str) -> None:
    """Each order on an execution of its own, one delivery at a time; all rows must be equal."""
    life = [("RUNNING", None), ("FAILED", 1234567900000), ("SUCCEEDED", 1234567990000)]
    orders = [order for length in (3, 4) for order in itertools.product(life, repeat=length) if set(order) == set(life)]
    assert len(orders) == 6 + 36
    async with opened(url) as app:
        for step in range(4):
            batch = [
                change(order[step][0], name=f"e{n}", stop=order[step][1])
                for n, order in enumerate(orders)
                if step < len(order)
            ]
            await app.index.report(batch)
        found = await app.executions(most=100)
        assert len(found) == len(orders)
        assert {(one.status, one.duration_seconds) for one in found} == {("SUCCEEDED", 100)}


async def test_x9_one_batch_may_hold_a_life_in_any_order(url: str) -> None:
    async with opened(url) as app:
        ended = change("ABORTED", stop=1234567890500)
        await app.index.report([ended, change(), ended, change(), change(correlationId="order-1")])
        one = await app.execution(arn())
        assert (one.status, one.duration_seconds, one.correlation_id) == ("ABORTED", 0.5, "order-1")


async def test_x9_concurrent_writers_lose_nothing(url: str) -> None:
    """Several processes, as far as the database can tell, deliver the same lives at once, shuffled and doubled."""
    chance = random.Random(3)
    ends = {f"e{n}": chance.choice(executions.STATUSES) for n in range(30)}
    events = [change(name=name) for name in ends]
    events += [
        change(status, name=name, stop=1234567900000 + n)
        for name, status in ends.items()
        if status != "RUNNING"
        for n in range(3)
    ]
    apps = [engine_support.make(url, work=False) for _ in range(4)]
    for app in apps:
        await app.start()

    async def deliver(app: Ostinato) -> None:
        mine = events * 2
        random.Random(id(app)).shuffle(mine)
        for start in range(0, len(mine), 7):
            await app.index.report(mine[start : start + 7])

    await asyncio.gather(*map(deliver, apps))
    found = {one.execution_name: one for one in await apps[0].executions(most=500)}
    for app in apps:
        await app.stop()
    assert {name: one.status for name, one in found.items()} == ends
    stops = {one.duration_seconds for one in found.values() if one.status != "RUNNING"}
    assert stops == {10.002}


async def test_two_tenants_never_see_each_other(url: str) -> None:
    async with opened(url, tenant="one") as one, opened(url, tenant="two") as two:
        await one.index.report([change(), change(name="mine", correlationId="c")])
        await two.index.report([change("SUCCEEDED", stop=1234567900000)])
        await (await one.submit(job(task("a"), jobId="j", name="report"))).result(engine_support.PATIENCE)
        assert [x.execution_name for x in await two.executions()] == ["abc123"]
        assert (await one.execution(arn())).status == "RUNNING"
        assert (await two.execution(arn())).status == "SUCCEEDED"
        for wanted in ({"correlation_id": "c"}, {"agent_name": "report"}, {"status": "RUNNING"}):
            assert await two.executions(**wanted) == []
        assert len(await two.executions(tag="Type=Agent")) == 1
        assert [(c.key, c.count) for c in await two.execution_counts("status")] == [("SUCCEEDED", 1)]
        with pytest.raises(errors.ExecutionNotFound):
            await two.execution("arn:ostinato:states:local:one:execution:report:j")
        assert (await two.index.report([change(name="other", machine="x", tags=None)])).indexed == 0


async def test_c9_outside_executions_are_kept_as_long_as_jobs_from_when_they_were_reported(url: str) -> None:
    """C9: those that never ended and those without a stopDate go too; history that was just imported stays."""
    app = engine_support.make(url)
    async with testing.open(app) as kit:
        now = kit.clock() // 1000
        await app.set_retention(jobs=100)
        no_stop = change("FAILED", name="no stop", start=now - 200_000)
        no_stop["detail"].pop("stopDate", None)
        await app.index.report([
            change("FAILED", name="long ago", start=now - 200_000, stop=now - 150_000),
            change(name="running", start=now - 200_000),
            no_stop,
        ])  # fmt: skip
        assert await app.prune() == 0, "what stopped long ago was reported just now"
        kit.clock.advance(60)
        await app.index.report([change("SUCCEEDED", name="running", start=now - 200_000, stop=now)])
        await app.index.report([change(name="new", start=now)])
        kit.clock.advance(60)
        assert await app.prune() == 2
        assert {one.execution_name for one in await app.executions()} == {"running", "new"}
        assert await sql(url, "SELECT count(*) FROM execution_tag") == [(4,)]
        kit.clock.advance(1000)
        assert await app.prune() == 2
        assert await sql(url, "SELECT count(*) FROM execution_tag") == [(0,)]


async def test_c9_what_the_seed_pays_for_each_event_is_one_row_for_each_execution_here(url: str) -> None:
    """Two events for each execution, in one request: one row each, with two tags, and no service that sends a bill."""
    names = [f"run-{number}" for number in range(500)]
    events = [change(name=name) for name in names]
    events += [change("SUCCEEDED", name=name, stop=1234567900000) for name in names]
    async with opened(url) as app:
        assert (await app.index.report(events)).indexed == 1000
        found = await rows(url)
        assert len(found) == 500 + 2 * 500


async def test_nobody_outside_tells_of_an_own_execution(url: str) -> None:
    """There would be two rows of one ARN, and the one that is shown by it is that of the job."""
    async with opened(url) as app:
        made = await app.submit({"name": "own", "tasks": [{"taskId": "a", "name": "echo"}]})
        await made.result(PATIENCE)
        [own] = await app.executions()
        told = change("FAILED", executionArn=own.execution_arn, stop=1234567899000)
        [_, refused] = await app.post_events([change(tags=None), told])
        assert refused.field == "events[1].detail.executionArn"
        with pytest.raises(errors.InvalidInput, match="own execution"):
            await app.index.report([told])
        assert [one.status for one in await app.executions()] == ["SUCCEEDED"]
        assert (await app.execution(own.execution_arn)).status == "SUCCEEDED"


async def test_the_time_of_the_index_does_not_go_back_on_a_resume(url: str) -> None:
    """C5: whoever polls by it sees the resume."""
    app = engine_support.make(url)
    async with testing.open(app) as kit:
        made = await app.submit(job(task("a", approval={"title": "Go?"}), jobId="again", name="report"))
        await app.approvals.decide("again", "a", "reject", actor="ann")
        [failed] = await app.executions(agent_name="report", status="FAILED")
        await kit.advance(60)
        await made.resume()
        [running] = await app.executions(agent_name="report", status="RUNNING")
        assert failed.indexed_at < running.indexed_at == (await made.events())[-1].at
        await kit.audit()
