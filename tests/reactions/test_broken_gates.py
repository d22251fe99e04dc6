"""A gate whose reports cannot be put together says so, and goes on when its definition was corrected."""

from __future__ import annotations

from typing import Any

from ostinato import Ostinato
from tests.engine import support
from tests.engine.support import PATIENCE, until
from tests.reactions.support import sound, started


def definition(expression: str, job: str) -> dict[str, Any]:
    return {
        "name": "j",
        "members": ["k"],
        "aggregate": {"x": {"how": "jsonata", "expression": expression}},
        "trigger": [
            {"job": {"name": job, "tasks": [{"taskId": "t", "name": "echo", "input": {"x": "{% aggregate.x %}"}}]}}
        ],
    }


async def broken(app: Ostinato) -> Any:
    await app.gates.define(definition("$number(members.k.data.n)", "former"))
    await app.gate("j").arrive("day", "k", {"n": "many"})

    async def failed() -> Any:
        found = await app.gate("j").status("day")
        return found if found.status == "failed" else None

    return await until(failed, "the gate has failed")


async def test_e13_a_failed_aggregate_is_in_the_status(url: str) -> None:
    """E13: the gate says what is wrong, and is among the dead letters."""
    async with support.opened(url) as app:
        found = await broken(app)
        assert found.error["type"] == "ExpressionFailed"
        assert found.error["message"] in found.sentence
        assert f"resume job {found.job_id}" in found.sentence
        assert found.ended_at is not None
        [letter] = await app.dead_letters()
        assert (letter.job_id, letter.task_id) == (found.job_id, "$open")
        [listed] = await app.gate("j").keys()
        assert not listed.opened
        await sound(app)


async def test_e13_a_corrected_aggregate_is_used_by_a_resume(url: str) -> None:
    """E13: nothing need be reported again, and the targets are those of now."""
    async with support.opened(url) as app:
        found = await broken(app)
        await app.gates.define(definition("members.k.data.n", "corrected"))
        await (await app.job(found.job_id)).resume(actor="ann")
        [job] = await until(lambda: started(app, "corrected"), "the trigger")
        assert await (await app.job(job.job_id)).result(PATIENCE) == {"t": {"x": "many"}}
        status = await app.gate("j").status("day")
        assert (status.status, status.error, status.opened_by) == ("open", None, "k")
        assert not await started(app, "former")
        await sound(app)


async def test_e13_a_redriven_dead_letter_does_the_same(url: str) -> None:
    """E13: what cannot be put together by the corrected definition either, says so again."""
    async with support.opened(url) as app:
        found = await broken(app)
        await app.gates.define(definition("$error('no luck')", "corrected"))
        await app.redrive([(found.job_id, "$open")], actor="ann")

        async def again() -> bool:
            now = await app.gate("j").status("day")
            return now.error is not None and now.error != found.error and now.status == "failed"

        await until(again, "the new error")


async def test_e13_why_a_target_failed_is_in_the_status(url: str) -> None:
    """E13: the error of a trigger is beside it."""
    async with support.opened(url) as app:
        gate = definition("1", "next") | {"trigger": [{"signal": {"jobId": "nowhere", "name": "go"}}]}
        await app.gates.define(gate)
        await app.gate("j").arrive("day", "k", {})

        async def failed() -> Any:
            [target] = (await app.gate("j").status("day")).triggered
            return target if target["state"] == "failed" else None

        target = await until(failed, "the target has failed")
        assert "nowhere" in target["error"]["message"]
        assert (await app.gate("j").status("day")).status == "open"
