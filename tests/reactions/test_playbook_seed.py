"""What the seed of the playbooks asks for, item by item, where it takes a running engine to see it."""

from __future__ import annotations

import asyncio
import collections
import functools
import time
from typing import Any

import pytest

from ostinato import TerminalError, errors, testing
from ostinato.playbooks import definition, job
from ostinato.playbooks import statuses as names
from ostinato.reactions import definitions, stages
from ostinato.store import definitions as stored
from tests.engine import support
from tests.engine.support import PATIENCE
from tests.reactions.test_playbooks import TEXT, agent, define, register, sound, statuses

STAGES = ("load", "load_graph", "plan", "aggregate", "validate", "synthesize", "save")


def breaking(monkeypatch: pytest.MonkeyPatch, stage: str) -> list[str]:
    """Let a stage fail for good as long as the list says so."""
    broken, done = ["broken"], getattr(stages.Stages, stage)

    @functools.wraps(done)
    async def run(*given: Any, **named: Any) -> Any:
        if broken:
            raise TerminalError(f"{stage} is broken")
        return await done(*given, **named)

    monkeypatch.setattr(stages.Stages, stage, run)
    return broken


async def test_a2_a16_a17_from_the_start_to_the_end(url: str) -> None:
    """The start knows job, tenant, type and data, and adds the time and the ARN; the end knows job and status."""
    app = support.make(url)
    register(app, "a")
    async with app:
        await define(app, agent("a"), save={"enabled": True})
        made = await app.ingest("d", {"text": "hello"})
        saved = (await made.result(PATIENCE))["$save"]
        info = await made.info()
        assert (info.tags["type"], info.tags["domain"], info.tags["playbook"]) == ("ingestion", "d", "p")

        async def execution() -> Any:
            found = await app.executions(tag="type=ingestion")
            return next((one for one in found if one.status == "SUCCEEDED"), None)

        indexed = await support.until(execution, "the index")
        assert indexed.execution_arn == f"arn:ostinato:states:local:{app.tenant}:execution:playbook%3Ap:{made.job_id}"
        assert abs((indexed.start_date - info.created_at).total_seconds()) < 1
        assert saved["status"] == "saved"
        assert (await app.results.get(saved["incident_id"])).job_id == made.job_id
        assert (info.state, (await statuses(made))[-1]) == ("completed", "complete")


async def test_a10_a_parent_is_waited_for_without_polling_and_without_a_slot(url: str) -> None:
    """The seed polls every 5 s for at most 5 minutes. Here the end of the parent is the start of the child."""
    app = support.make(url, concurrency=1)
    seen: list[str] = []

    @app.agent("agent-A")
    async def parent() -> dict[str, str]:
        (found,) = await app.jobs(tag="playbook=p")
        seen.append((await support.standing(await app.job(found.job_id)))["B"])
        return {"value": "A"}

    register(app, "B")
    async with app:
        await define(app, agent("A"), agent("B", "A"))
        made = await app.ingest("d", None)
        await made.result(PATIENCE)
        first, second = [view for view in await made.tasks() if view.task_id in "AB"]
    assert seen == ["blocked"]
    assert first.finished_at is not None
    assert second.started_at is not None
    assert 0 <= (second.started_at - first.finished_at).total_seconds() < 1


@pytest.mark.parametrize("stage", STAGES)
async def test_a18_x2_whichever_stage_fails_the_error_is_told_and_the_rest_is_done_later(
    url: str, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """A26 too: it is a dead letter, and run again from where it stopped, without asking an agent a second time."""
    broken = breaking(monkeypatch, stage)
    app = support.make(url)
    calls = register(app, "a")
    async with app:
        await define(app, agent("a"), save={"enabled": True})
        made = await app.ingest("d", {"n": 1})
        error = await support.failure(made)
        assert f"{stage} is broken" in str(error)
        assert (await statuses(made))[-1] == "error"
        (letter,) = await app.dead_letters()
        assert (letter.job_id, letter.task_id) == (made.job_id, f"${stage.replace('_', '-')}")
        broken.clear()
        await app.redrive([(letter.job_id, letter.task_id)])
        outputs = await made.result(PATIENCE)
        assert outputs["$synthesize"]["synthesized"] == {"a": {"value": "a"}}
        assert (await statuses(made))[-1] == "complete"
        assert len(calls) == 1
        assert await app.dead_letters() == []
        await sound(app)


async def test_a18_a19_a_job_that_runs_out_of_time_ends_in_an_error(url: str) -> None:
    app = support.make(url)

    @app.agent("agent-slow")
    async def slow() -> None:
        await asyncio.sleep(60)

    async with app:
        await define(app, agent("slow"))
        made = await app.ingest("d", None)
        info = await made.info()
        assert info.deadline_at is not None
        assert (info.deadline_at - info.created_at).total_seconds() == 15 * 60
        await made.cancel()
        await define(app, agent("slow"), deadline=0.5)
        late = await app.ingest("d", None)
        with pytest.raises(errors.JobFailed):
            await late.result(PATIENCE)
        assert (await late.info()).state == "timed_out"
        assert (await statuses(late))[-1] == "error"


async def test_a26_what_ran_out_of_time_goes_on_where_it_stopped(url: str) -> None:
    """Without asking anybody again who has answered, and with all the time that it needs."""
    app = support.make(url)
    calls = register(app, "first")
    asked: list[str] = []

    @app.agent("agent-slow")
    async def slow() -> dict[str, str]:
        asked.append("slow")
        if len(asked) == 1:
            await asyncio.sleep(60)
        return {"value": "at last"}

    async with app:
        await define(app, agent("first"), agent("slow", "first"), deadline=0.5)
        made = await app.ingest("d", None)
        with pytest.raises(errors.JobTimedOut):
            await made.result(PATIENCE)
        assert (await made.resume()).rerun[0] == "slow"
        answer = (await made.result(PATIENCE))["$synthesize"]
        assert answer["synthesized"] == {"first": {"value": "first"}, "slow": {"value": "at last"}}
        assert (len(calls), len(asked)) == (1, 2)
        assert (await statuses(made))[-1] == "complete"
        await sound(app)


async def test_a18_a_job_that_ends_before_it_was_planned_ends_in_an_error(url: str) -> None:
    async with support.opened(url, work=False) as app:
        await define(app, agent("a"))
        made = await app.ingest("d", None)
        await made.cancel()
        assert await statuses(made) == ["error"]


async def test_a20_a28_reads_are_tried_twice_more_after_2_and_3_seconds(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the stage that reads, which is an ordinary task: 2 s, then 1.5 times that."""
    read, failing = stored.Definitions.definition, ["playbook", "playbook"]

    async def shaky(self: Any, tenant: str, kind: str, name: str, version: int | None = None) -> Any:
        if kind in failing:
            failing.remove(kind)
            raise errors.DatabaseError("throttled")
        return await read(self, tenant, kind, name, version)

    monkeypatch.setattr(stored.Definitions, "definition", shaky)
    app = support.make(url)
    register(app, "a")
    async with testing.open(app) as kit:
        await define(app, agent("a"))
        made = await app.ingest("d", None)
        await kit.run_until_idle()
        for seconds, attempt in ((1.9, 1), (0.2, 2), (2.8, 2), (0.3, 3)):
            await kit.advance(seconds)
            assert len((await made.task(job.LOAD)).attempts) == attempt
        assert (await made.info()).state == "completed"
        failing += ["playbook"] * 3
        await app.playbooks.define(_playbook("p", "a") | {"description": "One that nobody has read yet"})
        lost = await app.ingest("d", None)
        for _ in range(4):
            await kit.advance(4)
        assert (await lost.info()).state == "failed"
        assert (await statuses(lost))[-1] == "error"


def _playbook(name: str, *agents: str) -> dict[str, Any]:
    return {
        "name": name,
        "domain": "d",
        "type": "ingestion",
        "agents": list(agents),
        "save": {"enabled": False},
    }


async def test_a24_nobody_who_listens_can_hold_a_job_up(url: str) -> None:
    """One never reads, one goes away in the middle: what is told is durable, and telling it is no call to anybody."""
    app = support.make(url)
    register(app, "a")
    async with app:
        await define(app, agent("a"))
        deaf, leaving = app.tail(), app.tail()
        waiting = [asyncio.create_task(anext(deaf)), asyncio.create_task(anext(leaving))]
        await asyncio.sleep(0)
        made = await app.ingest("d", None)
        await asyncio.gather(*waiting)
        await leaving.aclose()
        await made.result(PATIENCE)
        assert (await statuses(made))[-1] == "complete"
        await deaf.aclose()


async def test_a26_many_failed_executions_are_an_alarm_and_are_all_run_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = breaking(monkeypatch, "synthesize")
    app = support.make(url)
    calls = register(app, "a")
    async with app:
        await define(app, agent("a"))
        made = [await app.ingest("d", number) for number in range(11)]
        for one in made[:10]:
            await support.failure(one)
        await support.failure(made[10])
        depth = await app.dead_letter_depth()
        assert (depth.depth, depth.threshold, depth.alarm) == (11, 10, True)
        broken.clear()
        assert (await app.redrive_matching(name="ostinato.playbook.synthesize")).count == 11
        await asyncio.gather(*[one.result(PATIENCE) for one in made])
        assert not (await app.dead_letter_depth()).alarm
        assert len(calls) == 11


async def test_a27_x1_a_level_runs_at_the_same_time_and_nobody_before_a_parent(url: str) -> None:
    """Ten agents are at work at once, so that all take as long as one; the next level is not among them."""
    app = support.make(url, concurrency=20)
    together, done = asyncio.Barrier(10), list[str]()

    @app.agent("agent-any")
    async def run(agent_id: str) -> dict[str, str]:
        if agent_id != "last":
            await together.wait()  # one by one, or with one less, this would never end
        done.append(agent_id)
        return {"value": agent_id}

    async with app:
        level = [f"a{number}" for number in range(10)]
        await define(
            app, *[agent(name, function="agent-any") for name in level], agent("last", *level, function="agent-any")
        )
        await (await app.ingest("d", None)).result(PATIENCE)
    assert sorted(done[:10]) == sorted(level)
    assert done[10:] == ["last"]  # each was called as itself, and a level is no agent


async def test_a28_definitions_are_read_once_and_a_change_is_heard_by_every_server(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers on one database. Nothing is read again for five minutes, unless somebody changes something."""
    reads: collections.Counter[tuple[str, str]] = collections.Counter()
    read = stored.Definitions.definition

    async def counting(self: Any, tenant: str, kind: str, name: str, version: int | None = None) -> Any:
        reads[kind, name] += 1
        return await read(self, tenant, kind, name, version)

    app, other = support.make(url), support.make(url, work=False, maintain=False)
    register(app, "a")
    register(app, "b")
    async with app, other:
        await app.playbooks.define_graph({"name": "g", "edges": [{"from": "a", "to": "b"}]})
        await define(app, agent("a"), agent("b"), graph="g")
        monkeypatch.setattr(stored.Definitions, "definition", counting)
        await (await app.ingest("d", 1)).result(PATIENCE)
        assert reads == {("playbook", "p"): 1, ("graph", "g"): 1, ("agent", "a"): 1, ("agent", "b"): 1}
        await asyncio.gather(*[(await app.ingest("d", n)).result(PATIENCE) for n in range(5)])
        assert reads.total() == 4
        await other.playbooks.define_agent(agent("b", outputSchema=TEXT | {"description": "another"}))

        made = await app.ingest("d", 2)
        await made.result(PATIENCE)
        assert (await made.task(job.LOAD)).output["agents"] == {"a": 1, "b": 2}
        await other.playbooks.define(_playbook("p", "a"))

        async def heard() -> bool:
            return (await app.playbooks.shelf.get("p")).version == 2

        began = time.monotonic()
        await support.until(heard, "the change of the playbook")
        assert time.monotonic() - began < definitions.CHECKED_SECONDS + 2


async def test_a28_what_is_remembered_is_read_again_after_its_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if nobody has told of a change."""
    async with support.opened(url) as app:
        shelf = app.playbooks.agents
        assert definitions.REMEMBERED_SECONDS == 5 * 60
        await app.playbooks.define_agent(agent("a"))
        first = await shelf.get("a")
        assert await shelf.get("a") is first
        monkeypatch.setattr(definitions, "REMEMBERED_SECONDS", 0.0)
        assert await shelf.get("a") is not first


async def test_a28_what_was_changed_while_it_was_read_is_not_remembered(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, at, go = stored.Definitions.definition, asyncio.Event(), asyncio.Event()

    async def slow(*given: Any) -> Any:
        found = await read(*given)
        at.set()
        await go.wait()
        return found

    async with support.opened(url) as app:
        shelf = app.playbooks.agents
        await app.playbooks.define_agent(agent("a"))
        monkeypatch.setattr(stored.Definitions, "definition", slow)
        reading = asyncio.create_task(shelf.get("a"))
        await support.soon(at.wait())
        await app.playbooks.define_agent(agent("a", description="newer"))
        go.set()
        assert (await reading).version == 1
        assert (await shelf.get("a")).version == 2


def test_a23_a29_the_numbers_and_the_names_of_the_state_machine() -> None:
    """Of the document itself: what its eleven states say about time, retries, concurrency and status."""
    book = definition.read_playbook(_playbook("p", "a"))
    one = definition.read_agent(agent("a", retry={}))
    seconds = [getattr(book.stages, name).timeout for name in ("load", "load_graph", "plan", "agent", "save")]
    assert seconds == [5, 5, 10, 300, 30]
    assert book.max_concurrency == 10
    assert [job.STAGE_RETRY.delay(n) for n in (1, 2)] == [2, 3]
    assert job.STAGE_RETRY.max_attempts == 1 + 2
    assert [one.retry.delay(n) for n in (1, 2, 3)] == [2, 4, 8]
    assert one.retry.max_attempts == 1 + 3
    said = [names.LOADING, names.invoking("x"), names.agent_complete("x"), names.VALIDATING, names.SYNTHESIZING]
    assert [*said, names.COMPLETE, names.ERROR] == [
        "loading_agents",
        "invoking_x",
        "agent_complete_x",
        "validating",
        "synthesizing",
        "complete",
        "error",
    ]


async def test_x6_an_agent_is_tried_again_after_any_error_not_only_a_timeout(url: str) -> None:
    app = support.make(url)
    tries: list[int] = []

    @app.agent("agent-shaky")
    async def shaky(ctx: Any) -> dict[str, str]:
        tries.append(ctx.attempt)
        if ctx.attempt == 1:
            raise ConnectionError("no answer")
        return {"value": "well"}

    async with app:
        await define(app, agent("shaky", retry={"maxAttempts": 2, "baseDelay": 0.01}))
        outputs = await (await app.ingest("d", None)).result(PATIENCE)
    assert (tries, outputs["$synthesize"]["failed"]) == ([1, 2], [])
