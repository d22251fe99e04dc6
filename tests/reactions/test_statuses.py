"""What those who follow a job are told: when a status was published, why it is an error, which agent has failed."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from ostinato import Job, TerminalError, errors
from tests.engine import support
from tests.engine.support import PATIENCE, job, task
from tests.reactions.test_playbooks import agent, define, register, sound


async def messages(made: Job) -> list[tuple[str, str | None]]:
    found = [event.properties for event in await made.events() if event.type == "Status Published"]
    return [(told["status"], told.get("message")) for told in found]


async def test_a22_the_answer_has_the_time_that_followers_see(url: str) -> None:
    """A22: also if no time was given."""
    async with support.opened(url, work=False) as app:
        made = await app.submit(job(task("a")))
        at = await app.publish_status(made.job_id, "fine")
        [event] = [event for event in await made.events() if event.type == "Status Published"]
        assert at == event.at
        given = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
        assert await app.publish_status(made.job_id, "fine", timestamp=given) == given


async def test_x2_an_error_carries_its_reason(url: str) -> None:
    """X2: of the stage that failed; and an agent that failed for good is told, once for all its attempts."""
    app = support.make(url)

    @app.agent("agent-boom")
    async def boom() -> Any:
        raise TerminalError("no such town")

    async with app:
        await define(app, agent("boom"))
        made = await app.ingest("d", None)
        with pytest.raises(errors.JobFailed):
            await made.result(PATIENCE)
        told = await messages(made)
        assert ("agent_failed_boom", "no such town") in told
        status, message = told[-1]
        assert status == "error"
        assert message
        await app.playbooks.define({"name": "bad", "domain": "bad", "type": "ingestion", "agents": ["ghost"]})
        lost = await app.ingest("bad", None)
        with pytest.raises(errors.JobFailed):
            await lost.result(PATIENCE)
        [*_, (status, message)] = await messages(lost)
        assert status == "error"
        assert message is not None
        assert "'ghost'" in message
        await sound(app)


async def test_x2_an_agent_that_is_tried_again_has_not_failed_yet(url: str) -> None:
    """X2: what is published is its end, not each attempt."""
    app = support.make(url)
    tries: list[int] = []

    @app.agent("agent-shaky")
    async def shaky() -> Any:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("once")
        return {"value": "fine"}

    async with app:
        await define(app, agent("shaky", retry={"maxAttempts": 2, "baseDelay": 0}))
        made = await app.ingest("d", None)
        await made.result(PATIENCE)
        assert [status for status, _ in await messages(made) if "shaky" in status] == [
            "invoking_shaky",
            "invoking_shaky",
            "agent_complete_shaky",
        ]


async def test_x2_a_cancel_and_a_deadline_say_so(url: str) -> None:
    """X2: with the reason that was given."""
    app = support.make(url)
    register(app, "slow", 60)
    async with app:
        await define(app, agent("slow"))
        made = await app.ingest("d", None)
        await support.reaches(made, "slow", "processing")
        await made.cancel("the town has moved", actor="ann")
        assert (await messages(made))[-1] == ("error", "job cancelled: the town has moved")
        again = await app.ingest("d", None)
        await support.reaches(again, "slow", "processing")
        await again.cancel()
        assert (await messages(again))[-1] == ("error", "job cancelled")
        await define(app, agent("slow"), deadline=0.3)
        late = await app.ingest("d", None)
        with pytest.raises(errors.JobTimedOut):
            await late.result(PATIENCE)
        assert (await messages(late))[-1] == ("error", "the deadline has passed")


async def test_x2_a_reason_is_as_long_as_a_message_may_be(url: str) -> None:
    """X2: a status that a task says when it fails, in any job."""
    async with support.opened(url) as app:
        said = task("a", "break", input={"message": "x" * 10_000}, statuses={"failed": "error"})
        made = await app.submit(job(said))
        await support.failure(made)
        assert (await messages(made))[-1] == ("error", "x" * 4096)
