"""What was found by looking for ways to hurt the server: each of these was one."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from ostinato.api import protocol, server
from ostinato.api.graphql import bounds
from ostinato.store import cursors, keys
from tests.api import support
from tests.api.support import Site, problem, submitted
from tests.engine.support import job, task, until


@pytest.mark.parametrize(
    "text",
    ["", "ost", "ost__", "ost_a_b", f"ost_{'a' * 16}_{'b' * 63}", f"ost_{'a' * 250_000}_x",
     f"OST_{'a' * 16}_{'b' * 64}", f"ost_{'a' * 16}_{'b' * 64}\n"],
)  # fmt: skip
def test_what_does_not_look_like_a_key_is_not_looked_up(text: str) -> None:
    assert keys.split(text) is None


async def test_strange_keys_leave_nothing_behind(site: Site) -> None:
    await site.key()
    for n in range(50):
        problem(await site.client(f"ost_{n}{'a' * 5000}_x").get("/v1/jobs"), 401, "unauthenticated")
    assert len(site.server.access._made_up) == 0  # pyright: ignore[reportPrivateUsage]


async def ask(client: Any, query: str) -> Any:
    return (await client.post("/graphql", json={"query": query, "operationName": "A"})).json()


async def test_a_second_operation_cannot_hide_the_cost_of_the_first(site: Site) -> None:
    one = "query A($n: Int! = 500) { jobs(first: $n) { nodes { tasks(first: $n) { nodes { taskId } } } } }"
    two = one + " query B($n: Int! = 1) { jobs(first: $n) { nodes { jobId } } }"
    for query in (one, two):
        assert "errors" in await ask(await site.admin(), query)


async def test_a_query_of_many_fields_is_refused_at_once(site: Site) -> None:
    client = await site.admin()
    began = time.thread_time()
    found = await ask(client, "query A {" + " deadLetterDepth { depth }" * 400 + "}")
    assert time.thread_time() - began < 0.5
    assert found["errors"][0]["extensions"]["code"] == bounds.QueryTooLarge.code


@pytest.mark.parametrize("value", [b'"\\ud800"', b"NaN", b"-Infinity", b'"\xff"'])
async def test_what_is_no_json_is_refused_by_graphql_as_elsewhere(site: Site, value: bytes) -> None:
    """A lone surrogate came as far as the answer, and ended there as an internal error."""
    client = await site.admin()
    query = b'{"query": "query($by: UsageBy!, $day: Date) { usage(by: $by, from: $day) { by } }", "variables": '
    body = query + b'{"by": "DAY", "day": ' + value + b"}}"
    answer = await client.post("/graphql", content=body, headers={"content-type": "application/json"})
    said = "the body has text with a lone surrogate" if b"ud800" in value else "the body is not valid JSON"
    assert (answer.status_code, said in answer.text) == (400, True), answer.text


async def test_a_cursor_from_the_future_is_now(site: Site) -> None:
    from ostinato.api.live import messages

    known = await cursors.Cursors(site.home.engine.db).ready()
    future = known.write("default", (2**63 - 1, 0, 0))
    async with await site.server.hub.subscribe("default", messages.Wanted(), future) as follower:
        await submitted(site.client())
        async for message in follower:
            assert message.event.type == "Job Created"
            break


async def test_a_list_of_large_dead_letters_ends_early(site: Site) -> None:
    client = site.client()
    large = "x" * 300_000
    for n in range(25):
        await submitted(client, job(task("a", "break", input={"n": n, "message": large})))

    async def all_failed() -> bool:
        return (await client.get("/v1/dead-letters/depth")).json()["depth"] == 25

    await until(all_failed, "the failures")
    seen: list[int] = []
    query: dict[str, Any] = {"limit": 25}
    while True:
        answer = await client.get("/v1/dead-letters", params=query)
        assert len(answer.content) < 8 * 1024 * 1024
        page = answer.json()
        seen += [letter["input"]["n"] for letter in page["deadLetters"]]
        if page["nextCursor"] is None:
            break
        query["cursor"] = page["nextCursor"]
    assert sorted(seen) == list(range(25))
    assert len(seen) == 25


async def test_a_token_is_of_one_worker_only(site: Site) -> None:
    """Whoever registers an id that starts like another's token cannot use it."""
    mine, other = site.client(await site.key("tasks:work")), site.client(await site.key("tasks:work"))
    body = {"functions": [{"name": "nobody-has-this"}]}
    await mine.post("/v1/work/register", json=body | {"workerId": "wa"})
    await submitted(await site.admin(), job(task("a", "nobody-has-this")))
    (lease,) = (await mine.post("/v1/work/claim", json={"workerId": "wa", "limit": 1})).json()["leases"]
    claim_id = lease["token"].split("/")[1]
    for forged in (f"wa.{claim_id}", f"wa-{claim_id}"):
        await other.post("/v1/work/register", json=body | {"workerId": forged})
        report = {"workerId": forged, "output": 1} | {k: lease[k] for k in ("jobId", "taskId", "attempt", "token")}
        assert (await other.post("/v1/work/complete", json=report)).status_code in (404, 409)


@pytest.mark.parametrize("worker_id", ["w\n", "w\0", "w/x", ""])
async def test_ids_are_whole(site: Site, worker_id: str) -> None:
    client = site.client(await site.key("tasks:work"))
    body = {"functions": [{"name": "f"}], "workerId": worker_id}
    problem(await client.post("/v1/work/register", json=body), 422, "invalid_input")


async def test_what_came_through_a_proxy_is_not_from_this_machine(site: Site) -> None:
    assert (await site.client().get("/v1/jobs")).status_code == 200
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        problem(await site.client(**{name: "127.0.0.1"}).get("/v1/jobs"), 401, "unauthenticated")


@pytest.mark.parametrize("origin", ["httpx://localhost", "http-evil://localhost", "//localhost"])
async def test_an_origin_has_a_scheme_of_the_web(site: Site, origin: str) -> None:
    answer = await site.client(Origin=origin).post("/v1/plans", json=support.ONE)
    assert answer.status_code == 403


async def test_a_head_that_never_ends_is_cut_off(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.3)
    async with support.opened(url, port=0) as site:
        listener = server.Listener(site.server)
        await listener.start()
        port = int(listener.address.rpartition(":")[2])
        for sent in (b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert await asyncio.wait_for(closed(reader), 5)
            writer.close()
        monkeypatch.setattr(protocol, "HEADER_SECONDS", 30)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 300_000)
        assert await asyncio.wait_for(closed(reader), 5)
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):  # and one that behaves is answered as often as it asks
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            await reader.readexactly(15)
        writer.close()
        await listener.stop()


async def closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True
