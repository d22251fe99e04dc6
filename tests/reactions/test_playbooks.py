"""Playbooks from data to answer: agents by readiness, failures as marks in the answer, statuses in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato import Context, Job, Ostinato, TerminalError, audit, errors
from tests.engine import support
from tests.engine.support import PATIENCE

TEXT = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}


def agent(name: str, *parents: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "function",
        "function": f"agent-{name}",
        "outputSchema": TEXT,
        "retry": {"maxAttempts": 1},
        "dependencyParents": list(parents),
    } | fields


async def define(app: Ostinato, *agents: dict[str, Any], **fields: Any) -> None:
    for item in agents:
        await app.playbooks.define_agent(item)
    names = [item["name"] for item in agents]
    save = {"save": {"enabled": False}}
    await app.playbooks.define({"name": "p", "domain": "d", "type": "ingestion", "agents": names} | save | fields)


def register(app: Ostinato, name: str, seconds: float = 0.0) -> list[Any]:
    calls: list[Any] = []

    @app.agent(f"agent-{name}")
    async def run(raw_data: Any, parent_output: Any) -> dict[str, Any]:
        calls.append((raw_data, parent_output))
        await asyncio.sleep(seconds)
        return {"value": name, "evidence": [raw_data]}

    return calls


async def statuses(made: Job) -> list[str]:
    return [event.properties["status"] for event in await made.events() if event.type == "Status Published"]


async def sound(app: Ostinato) -> None:
    assert not (await audit.audit(app.engine.store)).problems


async def test_a7_the_example_of_the_seed(url: str) -> None:
    app = support.make(url)
    calls = {name: register(app, name) for name in "ABCDE"}
    async with app:
        await define(app, agent("A"), agent("B"), agent("C", "A"), agent("D", "B"), agent("E", "C"))
        assert (await app.playbooks.plan("p")).levels == [["A", "B"], ["C", "D"], ["E"]]
        made = await app.ingest("d", {"text": "hello"})
        outputs = await made.result(PATIENCE)
        answer = outputs["$synthesize"]
        assert answer["synthesized"] == {name: {"value": name} for name in "ABCDE"}
        assert answer["evidence"]["A"] == [{"text": "hello"}]
        assert (answer["failed"], answer["skipped"]) == ([], [])
        assert calls["A"] == [({"text": "hello"}, None)]
        assert calls["E"] == [({"text": "hello"}, {"C": {"value": "C", "evidence": [{"text": "hello"}]}})]
        assert outputs["$validate"] == {"valid": True, "errors": []}
        told = await statuses(made)
        assert told[0] == "loading_agents"
        assert told[-3:] == ["validating", "synthesizing", "complete"]
        assert told.index("agent_complete_A") < told.index("invoking_C") < told.index("agent_complete_C")
        await sound(app)


async def test_x4_d_does_not_wait_for_a(url: str) -> None:
    app = support.make(url)
    order: list[str] = []
    gate = asyncio.Event()

    @app.agent("agent-A")
    async def slow() -> dict[str, str]:
        await gate.wait()
        order.append("A")
        return {"value": "A"}

    @app.agent("agent-B")
    async def quick() -> dict[str, str]:
        return {"value": "B"}

    @app.agent("agent-D")
    async def dependant() -> dict[str, str]:
        order.append("D")
        gate.set()
        return {"value": "D"}

    async with app:
        await define(app, agent("A"), agent("B"), agent("D", "B"))
        await (await app.ingest("d", None)).result(PATIENCE)
    assert order == ["D", "A"]


async def test_a25_partial_success(url: str) -> None:
    app = support.make(url)
    register(app, "good")
    register(app, "child")
    register(app, "orphan")

    @app.agent("agent-bad")
    async def bad() -> None:
        raise TerminalError("no idea")

    @app.agent("agent-slow")
    async def slow() -> None:
        await asyncio.sleep(60)

    @app.agent("agent-wrong")
    async def wrong() -> dict[str, int]:
        return {"value": 7}

    async with app:
        await define(
            app,
            agent("good"),
            agent("bad"),
            agent("slow", timeout=0.2),
            agent("wrong"),
            agent("child", "bad"),
            agent("orphan", "bad", onParentFailure="run"),
        )
        made = await app.ingest("d", {"n": 1})
        outputs = await made.result(PATIENCE)
        answer = outputs["$synthesize"]
        assert set(answer["synthesized"]) == {"good", "orphan"}
        failed = {item["agent"]: item["error"] for item in answer["failed"]}
        assert set(failed) == {"bad", "slow", "wrong"}
        assert failed["bad"]["message"] == "no idea"
        assert failed["slow"]["type"] == "TaskTimeout"
        assert "value" in failed["wrong"]["message"]
        assert [item["agent"] for item in answer["skipped"]] == ["child"]
        assert outputs["$validate"]["valid"] is False
        assert (await made.info()).state == "completed"
        assert await app.dead_letters() == []  # A26 is for executions that failed: this one has its answer
        await sound(app)


def unreliable(app: Ostinato, *names: str) -> dict[str, Any]:
    """Agents that fail, or answer with whatever is put in place of the error of each."""
    says: dict[str, Any] = {name: TerminalError(f"{name} is down") for name in names}

    @app.agent("agent-any")
    async def any_(ctx: Context) -> Any:
        if isinstance(says[ctx.task_id], Exception):
            raise says[ctx.task_id]
        return says[ctx.task_id]

    return says


@pytest.mark.parametrize("again", ["resume", "redrive"])
async def test_a26_a_job_none_of_whose_agents_answered_fails_and_goes_on_from_there(url: str, again: str) -> None:
    """A25 is for some of them: an answer of nobody is none, and is not saved."""
    app = support.make(url)
    says = unreliable(app, "first", "second")
    calls = register(app, "child")
    async with app:
        agents = [agent(name, function="agent-any") for name in says]
        await define(app, *agents, agent("child", "first"), save={"text": "{% raw_data.text %}"})
        made = await app.ingest("d", {"text": "hello"})
        error = await support.failure(made)
        assert set(error.failed) == {"$aggregate"}
        for told in ("none of the 3 agents", "'first': first is down", "'second': second is down", "'child'"):
            assert told in str(error)
        assert (await statuses(made))[-1] == "error"
        assert (await made.info()).state == "failed"
        assert not await app.results.search("hello")
        [letter] = await app.dead_letters()
        assert (letter.task_id, letter.error["type"]) == ("$aggregate", "NoAnswer")
        says["first"] = {"value": "there"}
        if again == "resume":
            assert (await made.resume(dry_run=True)).rerun == ["first", "second", "$aggregate"]
            await made.resume()
        else:
            await app.redrive([(letter.job_id, letter.task_id)])
        answer = (await made.result(PATIENCE))["$synthesize"]
        assert answer["synthesized"] == {"first": {"value": "there"}, "child": {"value": "child"}}
        assert [item["agent"] for item in answer["failed"]] == ["second"]
        assert len(calls) == 1
        assert len(await app.results.search("hello")) == 1
        assert await app.dead_letters() == []
        await sound(app)


async def test_answers_that_nobody_can_use_are_no_answer(url: str) -> None:
    app = support.make(url)
    says = unreliable(app, "number", "list", "broken")
    says |= {"number": {"value": 7}, "list": [1]}
    async with app:
        await define(app, *[agent(name, function="agent-any") for name in says])
        error = await support.failure(await app.ingest("d", {}))
        assert "'list': an agent must answer with an object" in str(error)
        assert "'number': value: " in str(error)
        assert "'broken': broken is down" in str(error)


async def test_a_job_without_agents_that_somebody_skipped_goes_on(url: str) -> None:
    """Who skips them all wants it so."""
    app = support.make(url)
    unreliable(app, "only")
    async with app:
        await define(app, agent("only", function="agent-any"))
        made = await app.ingest("d", {})
        await support.failure(made)
        await made.skip_task("only")
        await made.resume()
        answer = (await made.result(PATIENCE))["$synthesize"]
        assert (answer["synthesized"], answer["skipped"]) == ({}, [{"agent": "only"}])


async def test_what_failed_is_not_asked_again_once_the_answers_are_put_together(url: str) -> None:
    app = support.make(url)
    says = unreliable(app, "one", "other", "failing")
    says |= {"one": {"value": "a"}, "other": {"value": "b"}}
    register(app, "child")
    async with app:
        agents = [agent(name, function="agent-any") for name in says]
        await define(app, *agents, agent("child", "failing"), synthesis={"how": "flat", "conflict": "error"})
        made = await app.ingest("d", {})
        assert "different values" in str(await support.failure(made))
        assert (await made.resume(dry_run=True)).rerun == ["$synthesize"]


async def test_a8_at_most_so_many_at_a_time(url: str) -> None:
    app = support.make(url, concurrency=30)
    running = most = 0

    @app.agent("agent-any")
    async def any_(ctx: Context) -> dict[str, str]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return {"value": ctx.task_id}

    async with app:
        agents = [agent(f"a{n}", function="agent-any") for n in range(12)]
        await define(app, *agents, maxConcurrency=3)
        await (await app.ingest("d", None)).result(PATIENCE)
    assert most == 3


async def test_a_job_pins_its_versions(url: str) -> None:
    app = support.make(url)
    started, go = asyncio.Event(), asyncio.Event()

    @app.agent("agent-first")
    async def first() -> dict[str, str]:
        started.set()
        await go.wait()
        return {"value": "x"}

    @app.agent("agent-second")
    async def second(text: str) -> dict[str, str]:
        return {"value": text}

    async with app:
        said = {"text": "{% raw_data.word & '!' %}"}
        await define(app, agent("first"), agent("second", "first", input=said))
        made = await app.ingest("d", {"word": "old"})
        await support.soon(started.wait())
        await app.playbooks.define_agent(agent("second", "first", input={"text": "new"}))
        await app.playbooks.agents.remove("first")
        go.set()
        assert (await made.result(PATIENCE))["$synthesize"]["synthesized"]["second"] == {"value": "old!"}


async def test_what_cannot_be_started(url: str) -> None:
    async with support.opened(url) as app:
        with pytest.raises(errors.DefinitionNotFound, match="domain 'd'"):
            await app.ingest("d", {})
        with pytest.raises(errors.DefinitionNotFound, match="no playbook 'nope'") as missing:
            await app.ingest("d", {}, playbook="nope")
        assert missing.value.details["field"] == "playbook"
        await app.playbooks.define({"name": "p", "domain": "d", "type": "query", "agents": ["nobody"]})
        with pytest.raises(errors.DefinitionNotFound):
            await app.ingest("d", {})
        with pytest.raises(errors.UnknownAgent, match="nobody"):
            await app.playbooks.plan("p")
        made = await app.query("d", {})
        error = await support.failure(made)
        assert "nobody" in str(error)
        assert (await statuses(made))[-1] == "error"
        await app.playbooks.define_agent(agent("nobody", function="echo"))
