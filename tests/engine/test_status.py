"""Statuses that jobs publish: events like any other, that never get in the way of the job."""

from __future__ import annotations

import datetime
import logging
import time
from typing import Any

import pytest

from ostinato import Ostinato, audit, errors
from tests.engine import support
from tests.engine.support import job, task


async def published(app: Ostinato, job_id: str) -> list[dict[str, Any]]:
    found = await (await app.job(job_id)).events()
    return [event.properties for event in found if event.type == "Status Published"]


async def clean(app: Ostinato) -> None:
    report = await audit.audit(app.engine.store)
    assert report.jobs
    assert not report.problems


async def test_a_function_publishes_in_order(url: str) -> None:
    app = support.make(url)

    @app.function("agent")
    async def agent(ctx: Any) -> str:
        await ctx.publish("loading_agents")
        await ctx.publish("x" * 201)
        await ctx.publish("invoking_writer", "the first of two")
        return "done"

    @app.function("plain")
    def plain(ctx: Any) -> None:
        ctx.publish("complete")

    async with app:
        made = await app.submit(job(task("a", "agent"), task("b", "plain", "a")))
        assert (await made.result())["a"] == "done"
        told = await made.events()
        assert [(e.task_id, e.attempt, e.properties) for e in told if e.type == "Status Published"] == [
            ("a", 1, {"status": "loading_agents"}),
            ("a", 1, {"status": "invoking_writer", "message": "the first of two"}),
            ("b", 1, {"status": "complete"}),
        ]
        kinds = [e.type for e in told if e.task_id == "a"]
        assert kinds.index("Status Published") < kinds.index("Task Completed")
        await clean(app)


async def test_others_publish_too_even_after_the_end(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a")))
        await made.result()
        at = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
        await app.publish_status(made.job_id, "archived", timestamp=at, actor="somebody")
        assert await published(app, made.job_id) == [
            {"status": "archived", "timestamp": "2026-01-31T12:00:00+00:00", "actor": "somebody"}
        ]
        assert (await made.info()).state == "completed"
        await clean(app)


async def test_a_job_that_is_not_there(url: str) -> None:
    async with support.opened(url) as app:
        with pytest.raises(errors.JobNotFound):
            await app.publish_status("never-was", "complete")


async def test_an_attempt_that_lost_its_task_says_nothing_and_is_not_stopped(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = support.make(url)
    went_on: list[bool] = []

    @app.function("late")
    def late(ctx: Any) -> None:
        while not ctx.cancelled:
            time.sleep(0.01)
        ctx.publish("too late")
        went_on.append(True)

    async with app:
        made = await app.submit(job(task("a", "late")))
        await support.until(lambda: _processing(made), "the start")
        with caplog.at_level(logging.WARNING, "ostinato.task"):
            await made.cancel()
            await support.until(lambda: _true(went_on), "the end")
        assert "was not published" in caplog.text
        assert await published(app, made.job_id) == []
        await clean(app)


class Unsayable:
    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "status", [Unsayable(), 10**5000, ["x" * 100_000], 7, None, "x" * 201], ids=lambda g: type(g).__name__
)
async def test_what_is_no_status_is_not_published_and_fails_nothing(
    sqlite_url: str, status: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app = support.make(sqlite_url)

    @app.function("say")
    async def say(ctx: Any) -> None:
        await ctx.publish(status)

    async with app:
        assert await support.run(app, task("a", "say")) == {"a": None}
    [line] = [record.getMessage() for record in caplog.records if "was not published" in record.getMessage()]
    assert len(line) < 300


async def _processing(made: Any) -> bool:
    return (await made.tasks())[0].state == "processing"


async def _true(found: list[bool]) -> bool:
    return bool(found)


@pytest.mark.parametrize(
    ("status", "message", "field"),
    [("", None, "status"), ("x" * 201, None, "status"), ("ok", "x" * 4097, "message"), ("\ud800", None, "status")],
)
async def test_what_cannot_be_published(sqlite_url: str, status: str, message: str | None, field: str) -> None:
    async with support.opened(sqlite_url) as app:
        made = await app.submit(job(task("a")))
        with pytest.raises(errors.InvalidInput) as refused:
            await app.publish_status(made.job_id, status, message)
        assert refused.value.details["field"] == field


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_secret_is_not_published(url: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTINATO_SECRET_TOKEN", "hunter2-hunter2")
    app = support.make(url)

    @app.function("async")
    async def talk(ctx: Any, token: str) -> None:
        await ctx.publish("calling", f"with {token}")

    @app.function("plain")
    def talk_plainly(ctx: Any, token: str) -> None:
        ctx.publish("calling", f"with {token}")

    async with app:
        made = await app.submit(job(task("a", kind, input={"token": "secret://TOKEN"})))
        await made.result()
        (told,) = await published(app, made.job_id)
        assert told["status"] == "calling"
        assert "hunter2" not in str(told)
