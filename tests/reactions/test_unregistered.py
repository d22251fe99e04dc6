"""What the engine itself starts may need functions that no worker has registered yet: it waits for them."""

from __future__ import annotations

from typing import Any

from ostinato import Ostinato
from tests.engine import support
from tests.engine.support import PATIENCE, until
from tests.reactions.support import sound, started

LATER: dict[str, Any] = {"job": {"name": "next", "tasks": [{"taskId": "t", "name": "phase3"}]}}


def later(app: Ostinato) -> None:
    @app.function("phase3")
    async def phase3() -> str:
        return "done"


async def waiting(app: Ostinato) -> Any:
    """The job that was started, once its trigger has fired."""
    [found] = await until(lambda: started(app), "the trigger")
    made = await app.job(found.job_id)
    why = await made.why("t")
    assert (why.code, why.details["function"]) == ("no_worker", "phase3"), why
    return made


async def test_e9_the_trigger_of_a_gate_waits_for_its_function(url: str) -> None:
    """E9: server, reports and then the worker is an ordinary morning."""
    async with support.opened(url) as app:
        await app.gates.define({"name": "p2", "members": ["A"], "trigger": [LATER]})
        await app.gate("p2").arrive("k", "A")
        made = await waiting(app)
        assert (await app.engine.store.depth(app.tenant))["deadLetters"] == 0
        [queue] = (await app.engine.store.waiting(app.tenant)).queues
        assert (queue.name, queue.ready, queue.served) == ("phase3", 1, False)
    worker = support.make(url)
    later(worker)
    async with worker:
        job = await worker.job(made.job_id)
        assert await job.result(PATIENCE) == {"t": "done"}
        [triggered] = (await worker.gate("p2").status("k")).triggered
        assert (triggered["state"], triggered["result"]["created"]) == ("completed", True)
        await sound(worker)


async def test_e9_the_target_of_a_rule_waits_for_its_function(url: str) -> None:
    """E9: the same for rules; what waits for a wrong name is told, and can be taken away."""
    async with support.opened(url) as app:
        await app.rules.define({"name": "r", "pattern": {"source": ["shop"]}, "targets": [LATER]})
        await app.post_events({"source": "shop", "detail-type": "x", "id": "1"})
        made = await waiting(app)
        assert await made.cancel("misspelt", actor="ann") == "cancelled"
        assert (await app.engine.store.waiting(app.tenant)).queues == []
        await sound(app)


async def test_e9_a_misspelt_function_is_repaired_in_the_job_that_waits(url: str) -> None:
    """E9: the right task is added, and the wrong one skipped."""
    app = support.make(url)
    later(app)
    async with app:
        wrong = {"job": {"name": "next", "tasks": [{"taskId": "t", "name": "phse3"}]}}
        await app.gates.define({"name": "p2", "members": ["A"], "trigger": [wrong]})
        await app.gate("p2").arrive("k", "A")
        [found] = await until(lambda: started(app), "the trigger")
        made = await app.job(found.job_id)
        why = await made.why("t")
        assert "no live worker has registered function 'phse3': did you mean 'phase3'?" in why.sentence
        await made.add_tasks([{"taskId": "right", "name": "phase3"}])
        await made.skip_task("t", "misspelt", actor="ann")
        assert (await made.result(PATIENCE))["right"] == "done"
        await sound(app)


async def test_e9_an_agent_of_a_playbook_waits_for_its_function(url: str) -> None:
    """E9: data that comes in before the worker is answered when it is there."""
    schema = {"type": "object", "properties": {"value": {"type": "string"}}}
    async with support.opened(url) as app:
        agent = {"name": "one", "kind": "function", "function": "phase3", "outputSchema": schema}
        await app.playbooks.define_agent(agent)
        save = {"save": {"enabled": False}}
        await app.playbooks.define({"name": "p", "domain": "d", "type": "ingestion", "agents": ["one"]} | save)
        begun = await app.playbooks.start("ingestion", "d", {})
        made = await app.job(begun.job_id)

        async def stands() -> bool:
            return (await support.standing(made)).get("one") == "pending"

        await until(stands, "the agent")
        assert (await made.why("one")).code == "no_worker"
    worker = support.make(url)

    @worker.agent("phase3")
    async def phase3(**given: Any) -> dict[str, str]:
        return {"value": "done"}

    async with worker:
        await (await worker.job(begun.job_id)).result(PATIENCE)
