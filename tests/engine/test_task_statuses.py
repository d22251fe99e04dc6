"""A task may say what its job tells of itself when it starts and completes: in order, and without one commit more."""

from __future__ import annotations

import pytest

from ostinato import Context, Job, Retry, TerminalError, audit, errors
from tests.engine import support
from tests.engine.support import PATIENCE, job, task


async def said(made: Job) -> list[str]:
    found = await made.events()
    return [event.properties["status"] for event in found if event.type == "Status Published"]


async def test_what_a_job_says_as_its_tasks_go_on(url: str) -> None:
    app = support.make(url, default_retry=Retry(max_attempts=2, base_delay=0.01))

    @app.function("moody")
    async def moody(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ConnectionError("once more")

    @app.function("lost")
    async def lost() -> None:
        raise TerminalError("never")

    async with app:
        made = await app.submit(
            job(
                task("a", "moody", statuses={"started": "invoking_a", "completed": "agent_complete_a"}),
                task("b", "lost", "a", statuses={"started": "invoking_b", "completed": "agent_complete_b"}),
            )
        )
        await support.failure(made)
        assert await said(made) == ["invoking_a", "invoking_a", "agent_complete_a", "invoking_b"]
        assert not (await audit.audit(app.engine.store)).problems
        plain = await app.submit(job(task("a")))
        await plain.result(PATIENCE)
        assert await said(plain) == []


@pytest.mark.parametrize("status", ["", "x" * 201])
async def test_what_cannot_be_said(url: str, status: str) -> None:
    async with support.opened(url) as app:
        with pytest.raises(errors.InvalidInput, match="status"):
            await app.submit(job(task("a", statuses={"started": status})))
