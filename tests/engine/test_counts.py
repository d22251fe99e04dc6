"""How many tasks of a job are in which state, in the words of the glossary."""

from __future__ import annotations

import asyncio

from ostinato import audit
from ostinato.core import states
from tests.engine import support
from tests.engine.support import job, task


async def test_d12_a_job_counts_the_states_of_its_tasks(url: str) -> None:
    """D12: each count is of a state that a task can be in, also where a failure is told of."""
    app = support.make(url, concurrency=2)
    begun, leave = asyncio.Event(), asyncio.Event()

    @app.function("hold")
    async def hold() -> None:
        begun.set()
        await leave.wait()

    @app.function("fall")
    async def fall() -> None:
        await begun.wait()
        raise ValueError("no")

    async with app:
        made = await app.submit(
            job(
                task("asked", "review", approval={"title": "May it go on?"}),
                task("later", delay=3600),
                task("held", "hold"),
                task("fails", "fall"),
                task("queued", queue="elsewhere"),
                task("after", after="held"),
                task("skipped", after="fails", onDependencyFailure="skip"),
            )
        )
        await support.reaches(made, "fails", states.FAILED)
        await support.reaches(made, "asked", states.WAITING)
        info = await made.info()
        assert info.task_statuses == {
            "blocked": 1, "pending": 1, "processing": 1, "waiting": 2, "failed": 1, "skipped": 1,
        }  # fmt: skip
        (told,) = [event for event in await made.events() if event.type == "Job Failure Detected"]
        assert set(told.properties["taskStatuses"]) <= states.TASK_MOVES.keys()
        assert sum(told.properties["taskStatuses"].values()) == info.total_tasks
        assert (await audit.audit(app.engine.store)).problems == []
        leave.set()
        await made.cancel()
        assert not states.TASK_ACTIVE & (await made.info()).task_statuses.keys()
        assert (await audit.audit(app.engine.store)).problems == []
