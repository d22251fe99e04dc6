"""A crash before and after every commit of what gates and rules do: each of them fires, once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ostinato import EngineOptions, Ostinato, Retry, errors, testing
from tests.engine.support import CRASH_EVERY

Scenario = Callable[[testing.Kit], Coroutine[Any, Any, None]]


def build(url: str) -> Ostinato:
    app = Ostinato(url, options=EngineOptions(lease_seconds=10))

    @app.function(retry=Retry(max_attempts=6, base_delay=5))
    async def echo(**given: Any) -> Any:
        return given

    return app


def starting(**given: Any) -> dict[str, Any]:
    """`at` is another one after a crash: what is started may say when it was."""
    given["at"] = "{% $millis() %}"
    return {"job": {"name": "next", "tasks": [{"taskId": "t", "name": "echo", "input": given}]}}


async def started(app: Ostinato, name: str = "next") -> list[dict[str, Any]]:
    """What the jobs of this name were given; all of them have completed."""
    found: list[dict[str, Any]] = []
    for view in await app.jobs(name=name):
        given = (await (await app.job(view.job_id)).result(5))["t"]
        found.append({key: value for key, value in given.items() if key != "at"})
    return found


async def opened_once(app: Ostinato, gate: str, key: str) -> str:
    """Who opened it, as its history tells, once."""
    job_id = await app.engine.store.gate_job(app.tenant, gate, key)
    events = await (await app.job(job_id)).events(most=1000)
    [mark] = [event for event in events if event.type == "Gate Opened"]
    return mark.properties["by"]


async def later(kit: testing.Kit) -> None:
    """After a crash, targets are tried again in a while."""
    for _ in range(4):
        await kit.advance(30)


async def gate(kit: testing.Kit) -> None:
    """From the first arrival to what was triggered."""
    app = kit.app
    await app.gates.define(
        {
            "name": "phase",
            "members": ["a", "b", "c"],
            "aggregate": {"n": {"how": "sum"}},
            "trigger": [starting(n="{% aggregate.n %}"), starting(n=-1)],
        }
    )
    for n, member in enumerate(("a", "b", "c"), 1):
        await app.gate("phase").arrive("k", member, {"n": n}, correlation_id="c-1")
    await later(kit)
    assert sorted(await started(app), key=lambda given: given["n"]) == [{"n": -1}, {"n": 6}]
    assert {view.correlation_id for view in await app.jobs(name="next")} == {"c-1"}
    assert await opened_once(app, "phase", "k") == "c"


async def own_event(kit: testing.Kit) -> None:
    """A job that ends starts another one, and reports to a gate that starts a third."""
    app = kit.app
    pattern = {"source": ["ostinato"], "detail-type": ["Job Completed"], "detail": {"jobName": ["first"]}}
    report = {"gate": {"name": "phase", "key": "k", "member": "a", "data": {"n": 7}}}
    total = {"n": {"how": "sum"}}
    trigger = [starting(n="{% aggregate.n %}")]
    await app.gates.define({"name": "phase", "members": ["a"], "aggregate": total, "trigger": trigger})
    await app.rules.define({"name": "r", "pattern": pattern, "targets": [starting(of="{% detail.jobId %}"), report]})
    job = await app.submit(
        {"name": "first", "idempotencyKey": "once", "tasks": [{"taskId": "t", "name": "echo", "input": {"n": 1}}]}
    )
    await later(kit)
    assert sorted(await started(app), key=str) == [{"n": 7}, {"of": job.job_id}]
    assert len(await app.jobs(name="rule:r")) == 1
    assert await opened_once(app, "phase", "k") == "a"


async def outside_event(kit: testing.Kit) -> None:
    """It is sent again by whoever was not told that it has arrived."""
    app = kit.app
    await app.rules.define({"name": "r", "pattern": {"source": ["shop"]}, "targets": [starting(n="{% detail.n %}")]})
    event = {"id": "1", "source": "shop", "detail-type": "Order", "detail": {"n": 5}}
    await app.post_events([event, event | {"id": "2", "detail": {"n": 6}}])
    await later(kit)
    await app.post_events(event)
    await later(kit)
    assert sorted(await started(app), key=str) == [{"n": 5}, {"n": 6}]


async def deadline(kit: testing.Kit) -> None:
    """Its time runs out, and it opens with who is there; another one closes."""
    app = kit.app
    for name, then in (("partial", "partial"), ("fail", "fail")):
        await app.gates.define(
            {
                "name": name,
                "members": ["a", "b"],
                "deadline": 3600,
                "onDeadline": then,
                "aggregate": {"n": {"how": "sum"}},
                "trigger": [starting(n="{% aggregate.n %}")],
            }
        )
        await app.gate(name).arrive("k", "a", {"n": 1})
    await kit.advance(100)
    await kit.advance(4000)
    await later(kit)
    assert await opened_once(app, "partial", "k") == "deadline"
    assert (await app.gate("partial").arrive("k", "b", {"n": 9})).outcome == "late"
    assert (await app.gate("fail").status("k")).status == "expired"
    assert await started(app) == [{"n": 1}]


async def reset(kit: testing.Kit) -> None:
    """Whoever resets a gate does so once, and says by the history whether it was done."""
    app = kit.app
    await app.gates.define({"name": "phase", "members": ["a", "b"], "trigger": [starting()]})
    for view in await app.jobs(name="gate:phase"):
        if view.state == "cancelled":
            break
    else:
        await app.gate("phase").arrive("k", "a")
        await app.gate("phase").reset("k")
    for member in ("a", "b"):
        await app.gate("phase").arrive("k", member)
    await later(kit)
    assert await started(app) == [{}]
    assert len(await app.jobs(name="gate:phase")) == 2


async def by_hand(kit: testing.Kit) -> None:
    app = kit.app
    await app.gates.define({"name": "phase", "members": "dynamic", "late": "trigger", "trigger": [starting()]})
    await app.gate("phase").freeze("k", ["a", "b"])
    await app.gate("phase").arrive("k", "a")
    with contextlib.suppress(errors.NotPossible):  # it was opened before the crash
        await app.gate("phase").open("k", reason="hurry", actor="ann")
    await app.gate("phase").arrive("k", "b")
    await later(kit)
    assert await started(app) == [{}, {}], "one when it opened, one for who was late"
    assert await opened_once(app, "phase", "k") == "ann"


SCENARIOS = [own_event, deadline, gate, outside_event, reset, by_hand]
ON_POSTGRES = SCENARIOS if "OSTINATO_CRASH_ALL" in os.environ else SCENARIOS[:1]
"""A new database for each crash takes a while: all of them when there is time."""


def named(scenario: Scenario) -> str:
    return scenario.__name__


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
@pytest.mark.timeout(120)
async def test_crash_everywhere_on_sqlite(scenario: Scenario) -> None:
    assert await testing.crash_everywhere(build, scenario) >= 10


@pytest.mark.parametrize("scenario", ON_POSTGRES, ids=named)
@pytest.mark.timeout(300)
async def test_crash_everywhere_on_postgres(new_postgres_url: Callable[[], str], scenario: Scenario) -> None:
    crashes = await testing.crash_everywhere(build, scenario, fresh_url=new_postgres_url, every=CRASH_EVERY)
    assert crashes >= 10 // CRASH_EVERY
