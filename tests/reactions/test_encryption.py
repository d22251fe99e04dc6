"""Gates and rules with encryption at rest: everything works, and nothing that was reported can be read."""

from __future__ import annotations

from typing import Any

from ostinato import Keyring, Ostinato, rotation
from tests.engine import support
from tests.engine.support import PATIENCE, job, run, task
from tests.engine.test_encryption import MARKER, ONE, TWO, stored
from tests.reactions.support import quiet, sound, started

RULE = {
    "name": "orders",
    "pattern": {"detail": {"said": [{"prefix": "marker"}]}},
    "targets": [
        {"job": {"name": "next", "tasks": [{"taskId": "t", "name": "echo", "input": {"said": "{% detail.said %}"}}]}},
        {"gate": {"name": "phase", "key": "k", "member": "a", "data": {"said": "{% detail.said %}"}}},
        {"signal": {"jobId": "{% detail.job %}", "name": "go", "payload": "{% detail.said %}"}},
    ],
}
OWN = {
    "name": "own",
    "pattern": {
        "detail-type": ["Task Completed"],
        "detail": {"jobName": ["test"], "output": {"said": [{"suffix": MARKER[-4:]}]}},
    },
    "targets": [
        {
            "job": {
                "name": "own",
                "tasks": [{"taskId": "t", "name": "echo", "input": {"said": "{% detail.output.said %}"}}],
            }
        }
    ],
}
GATE = {
    "name": "phase",
    "members": ["a", "b", "c"],
    "onFailure": "wait",
    "late": "trigger",
    "aggregate": {"said": {"how": "list"}},
    "trigger": [
        {
            "job": {
                "name": "opened",
                "tasks": [{"taskId": "t", "name": "echo", "input": {"said": "{% aggregate.said %}"}}],
            }
        }
    ],
}


def make(url: str, **keys: bytes) -> Ostinato:
    app = support.make(url)
    app.keyring = Keyring(keys)

    @app.function
    async def waiter(ctx: Any) -> Any:
        return await ctx.wait_for("go")

    return app


async def everything(app: Ostinato) -> None:
    """Something of each kind that gates and rules keep."""
    await app.gates.define(GATE)
    await app.rules.define(RULE)
    await app.rules.define(OWN)
    waiting = await app.submit(job(task("w", "waiter"), name="waits"))
    event = {"id": "1", "source": "shop", "detail-type": "Order", "detail": {"said": MARKER, "job": waiting.job_id}}
    assert [r.outcome for r in await app.post_events([event, event])] == ["recorded", "duplicate"]
    await run(app, task("x", input={"said": MARKER}))
    assert await waiting.result(PATIENCE) == {"w": MARKER}
    gate = app.gate("phase")
    assert (await gate.arrive("k", "b", {"said": MARKER, "status": "error"})).outcome == "failed"
    assert (await gate.arrive("k", "b", {"said": MARKER})).outcome == "arrived"

    async def reported() -> bool:
        return (await gate.status("k")).missing == ["c"]

    await support.until(reported, "the report of the rule")
    await gate.open("k", reason="hurry", actor="ann")
    assert (await gate.arrive("k", "c", {"said": MARKER})).outcome == "late"
    await quiet(app)
    assert [len(await started(app, name)) for name in ("next", "own", "opened")] == [1, 1, 2]
    given = [(await (await app.job(view.job_id)).outputs())["t"]["said"] for view in await started(app, "opened")]
    assert sorted(given, key=len) == [{"c": MARKER}, {"a": MARKER, "b": MARKER}]
    assert [arrival.member for arrival in (await gate.status("k")).late] == ["c"]
    assert await app.dead_letters() == []
    await sound(app)


async def test_nothing_readable_is_stored(url: str) -> None:
    async with make(url, one=ONE) as app:
        await everything(app)
        assert MARKER.encode() not in await stored(url)
        status = await app.encryption_status()
        assert "outside" in {view.kind for view in status}
        assert {view.key_id for view in status} == {"one"}
        [kept] = await app.engine.store.outside_events("default")
        assert MARKER.encode() in kept.data


async def test_rotation(url: str) -> None:
    async with make(url, one=ONE) as app:
        await everything(app)
    told: list[tuple[str, str, int]] = []
    async with make(url, two=TWO, one=ONE) as app:
        await rotation.rotate(app.engine.store, app.keys_at_hand(), progress=lambda *batch: told.append(batch))
        assert "outside_event" in {table for _, table, _ in told}
        assert {view.key_id for view in await app.encryption_status()} == {"two"}
    async with make(url, two=TWO) as app:  # the old key can go
        [kept] = await app.engine.store.outside_events("default")
        assert MARKER.encode() in kept.data
        assert (await app.gate("phase").status("k")).status == "open"
        await sound(app)
