"""What a gate, a rule, a playbook or an item starts belongs to the trace and the correlation of what started it."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Ostinato, errors, tracing
from tests.engine import support
from tests.engine.support import until
from tests.engine.test_tracing import PARENT
from tests.pipelines.support import publishing
from tests.reactions.support import quiet, sound, started

NEXT = {"name": "next", "tasks": [{"taskId": "t", "name": "echo"}]}
SCHEMA = {"type": "object", "properties": {"value": {"type": "string"}}}
GATE = {"name": "g", "key": "{% 'k' %}", "member": "a"}


ONE = {"name": "one", "kind": "function", "function": "echo", "outputSchema": SCHEMA}


def rule(target: dict[str, Any]) -> dict[str, Any]:
    return {"name": "r", "pattern": {"source": ["nba"]}, "targets": [target]}


def event(**detail: Any) -> dict[str, Any]:
    return {"source": "nba", "detail-type": "x", "detail": detail}


async def the_job(app: Ostinato, name: str = "next") -> Any:
    [found] = await until(lambda: started(app, name), name)
    return found


@pytest.mark.parametrize("spelling", ["correlation_id", "correlationId"])
@pytest.mark.parametrize("template", [None, "{% detail.correlation_id %}", "{% detail.correlationId %}"])
async def test_e10_a_job_of_a_rule_keeps_the_correlation_id(
    sqlite_url: str, spelling: str, template: str | None
) -> None:
    """E10: in both spellings, and if the target names the other one."""
    async with support.opened(sqlite_url) as app:
        await app.rules.define(rule({"job": NEXT | ({} if template is None else {"correlationId": template})}))
        await app.post_events(event(**{spelling: "c-1"}))
        assert (await the_job(app)).correlation_id == "c-1"
        assert (await the_job(app, "rule:r")).correlation_id == "c-1"


async def test_e10_an_event_without_a_correlation_id_is_no_dead_letter(url: str) -> None:
    """E10: a target that asks for one gets that of the rule's own job."""
    async with support.opened(url) as app:
        await app.gates.define({"name": "g", "members": ["a"], "trigger": [{"job": NEXT | {"name": "last"}}]})
        targets = [
            {"job": NEXT | {"correlationId": "{% detail.correlation_id %}"}},
            {"gate": GATE | {"correlationId": "{% detail.correlation_id %}"}},
        ]
        await app.rules.define(rule({}) | {"targets": targets})
        await app.post_events(event())
        own = (await the_job(app, "rule:r")).correlation_id
        assert (await the_job(app)).correlation_id == own
        assert (await the_job(app, "gate:g")).correlation_id == own
        assert (await the_job(app, "last")).correlation_id == own
        await quiet(app)
        assert not await app.dead_letters()
        await sound(app)


@pytest.mark.parametrize("wrong", [7, "", "a b"])
@pytest.mark.parametrize("spelling", ["correlation_id", "correlationId"])
async def test_e10_a_wrong_correlation_id_is_refused_alike(sqlite_url: str, spelling: str, wrong: Any) -> None:
    """E10: in a report to a gate as in an event for rules, with the field."""
    async with support.opened(sqlite_url) as app:
        await app.gates.define({"name": "g", "members": ["a"]})
        with pytest.raises(errors.InvalidInput) as of_gate:
            await app.gate("g").arrive("k", "a", {spelling: wrong})
        assert of_gate.value.details["field"] == f"data.{spelling}"
        _, refused = await app.post_events([event(), event(**{spelling: wrong})])
        assert (refused.outcome, refused.field) == ("refused", f"events[1].detail.{spelling}")
        cloud = {"specversion": "1.0", "id": "1", "source": "nba", "type": "x", "data": {spelling: wrong}}
        with pytest.raises(errors.InvalidInput) as of_cloud:
            await app.post_events(cloud)
        assert of_cloud.value.details["field"] == f"events[0].data.{spelling}"


@pytest.mark.parametrize("target", [{"job": NEXT}, {"gate": GATE}])
async def test_e10_a_template_that_comes_to_a_wrong_one_is_a_dead_letter(
    sqlite_url: str, target: dict[str, Any]
) -> None:
    """E10: of a job as of a report; it is not left out without a word."""
    async with support.opened(sqlite_url) as app:
        await app.gates.define({"name": "g", "members": ["a"]})
        [(kind, fields)] = target.items()
        await app.rules.define(rule({kind: fields | {"correlationId": "{% '' %}"}}))
        await app.post_events(event(correlation_id="c-1"))
        [letter] = await until(app.dead_letters, "the dead letter")
        assert "correlationId" in letter.error["message"]


async def test_what_follows_belongs_to_the_trace_of_the_request(url: str) -> None:
    """E10: rule, gate, playbook and item, also where nobody records spans."""
    async with support.opened(url, check_functions=False) as app:
        await app.gates.define({"name": "g", "members": ["a"], "trigger": [{"job": NEXT | {"name": "last"}}]})
        await app.rules.define(rule({"job": NEXT}) | {"targets": [{"job": NEXT}, {"gate": GATE}]})
        await app.playbooks.define_agent(ONE)
        await app.playbooks.define({"name": "p", "domain": "d", "type": "ingestion", "agents": ["one"]})
        await app.pipelines.define(publishing())
        with tracing.incoming(PARENT):
            await app.post_events(event())
            await app.playbooks.start("ingestion", "d", {})
            await app.pipelines.enter("publishing", {}, item_id="i-1")
        for name in ("rule:r", "next", "gate:g", "last", "playbook:p", "pipeline:publishing"):
            found = await the_job(app, name)
            row = await app.engine.store.job(app.tenant, found.job_id)
            assert row.trace_parent == PARENT, name


async def test_what_a_function_starts_belongs_to_its_correlation(url: str) -> None:
    """E10: an event, a report and a playbook that a function sends on its way."""
    app = support.make(url)

    @app.function("teller")
    async def teller() -> None:
        await app.post_events(event())
        await app.gate("g").arrive("k", "a")
        await app.playbooks.start("ingestion", "d", {})

    async with app:
        await app.gates.define({"name": "g", "members": ["a"], "trigger": [{"job": NEXT | {"name": "last"}}]})
        await app.rules.define(rule({"job": NEXT}))
        await app.playbooks.define_agent(ONE)
        await app.playbooks.define({"name": "p", "domain": "d", "type": "ingestion", "agents": ["one"]})
        await support.run(app, support.task("a", "teller"), correlationId="c-9")
        for name in ("rule:r", "next", "gate:g", "last", "playbook:p"):
            assert (await the_job(app, name)).correlation_id == "c-9", name
