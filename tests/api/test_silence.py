"""F-1, F-2: a database that is silent, or full: requests are answered in time, and work goes on by itself."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx2
import pytest

from devtools.proxy import Proxy
from ostinato import errors
from ostinato.api import answers
from ostinato.store import hosts, postgres
from tests.api import support
from tests.engine import support as engine_support
from tests.engine.support import job, task


def test_a_dead_connection_is_found_within_15_seconds() -> None:
    """F-2: by the end of a statement, and another one is made."""
    assert postgres.STATEMENT_SECONDS + hosts.HOST_SECONDS <= 15
    assert answers.READY_SECONDS < 2


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "STATEMENT_SECONDS", 0.8)
    monkeypatch.setattr(postgres, "QUEUE_SECONDS", 0.8)
    monkeypatch.setattr(postgres, "AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(hosts, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(answers, "ANSWER_SECONDS", 1.5)
    monkeypatch.setattr(answers, "READY_SECONDS", 0.5)


@pytest.mark.usefixtures("hurried")
async def test_every_request_has_an_answer_while_the_database_is_silent(postgres_url: str) -> None:
    """F-2: nothing passes, nothing closes; 503 with a code, sooner for who asks whether the server can work."""
    async with Proxy(postgres_url) as line, support.opened(line.url) as site:
        client = await site.admin()
        made = await support.submitted(client, job(task("a")))
        line.silent = True
        began = time.monotonic()

        async def ask(method: str, path: str, within: float) -> None:
            answer = await client.request(method, path, json=support.ONE if method == "POST" else None)
            assert answer.json()["code"] in ("database_unavailable", "database_away"), answer.text
            support.problem(answer, 503, answer.json()["code"])
            assert time.monotonic() - began < within + 1

        await asyncio.gather(
            ask("GET", "/readyz", answers.READY_SECONDS),
            *[ask("GET", f"/v1/jobs/{made}", answers.ANSWER_SECONDS) for _ in range(12)],
            *[ask("POST", "/v1/jobs", answers.ANSWER_SECONDS) for _ in range(3)],
            ask("GET", "/v1/executions", answers.ANSWER_SECONDS),
        )
        assert (await client.get("/healthz")).status_code == 200
        line.silent = False
        await _works_again(client)


@pytest.mark.usefixtures("hurried")
async def test_connections_that_have_died_are_replaced(postgres_url: str) -> None:
    """F-2: as after a firewall has forgotten them. What was acknowledged is there, and the worker goes on."""
    async with Proxy(postgres_url) as line, support.opened(line.url) as site:
        client = await site.admin()
        made = await support.submitted(client, job(task("a")))
        await support.ended(client, made)
        line.forget()
        await _works_again(client)
        assert (await client.get(f"/v1/jobs/{made}")).json()["state"] == "completed"


async def _works_again(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(15):
        while (answer := await client.post("/v1/jobs", json=job(task("b")))).status_code != 201:
            assert answer.json()["code"] in ("database_unavailable", "database_away"), answer.text
            support.problem(answer, 503, answer.json()["code"])
        found = answer.json()["jobId"]
        while (answer := await client.get(f"/v1/jobs/{found}")).status_code != 200 or answer.json()[
            "state"
        ] != "completed":
            await asyncio.sleep(0.05)


async def test_a_full_disk_refuses_at_once_and_takes_what_comes_when_there_is_room(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-1: who comes during the pause after a refusal does not wait for its end."""
    monkeypatch.setattr("ostinato.engine.committer.LONGEST_PAUSE", 60.0)
    async with support.opened(sqlite_url, engine={"work": False}) as site:
        client = await site.admin()
        database: Any = site.home.engine.db
        connection = database._writer.connection
        pages = connection.pragma("page_count")
        connection.pragma("max_page_count", pages)
        large = job(task("a", input={"text": "x" * 100_000}))
        for _ in range(12):
            began = time.monotonic()
            support.problem(await client.post("/v1/jobs", json=large), 503, "database_full")
            assert time.monotonic() - began < 1
        connection.pragma("max_page_count", pages * 1000)
        began = time.monotonic()
        await support.submitted(client, large)
        assert time.monotonic() - began < 1


async def test_who_comes_during_the_pause_after_a_refusal_does_not_wait_for_its_end(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-1: on both databases, also when reports of a worker are what was refused."""
    monkeypatch.setattr("ostinato.engine.committer.LONGEST_PAUSE", 60.0)
    async with engine_support.opened(url) as app:
        refusing = True
        tried = asyncio.Semaphore(0)
        execute: Any = app.engine.store.execute

        async def refuse(*args: Any, **kwargs: Any) -> Any:
            tried.release()
            if refusing:
                raise errors.DatabaseFull
            return await execute(*args, **kwargs)

        monkeypatch.setattr(app.engine.store, "execute", refuse)
        app.engine.committer.want_claim()
        for _ in range(6):  # by now it pauses for seconds
            await tried.acquire()
        refusing = False
        async with asyncio.timeout(1):
            await app.submit(job(task("a")))
