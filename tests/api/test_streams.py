"""Streams through a real server: sockets, server-sent events and GraphQL subscriptions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx2
import pytest
import websockets
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from ostinato.api import routing, server
from ostinato.api.graphql import sockets
from ostinato.api.http import stream
from ostinato.api.live import changes, hub, streams
from tests.api import support
from tests.api.support import Site
from tests.engine.support import PATIENCE, job, task, until

TRANSPORT = Subprotocol("graphql-transport-ws")
ONE = support.ONE


class Live:
    """A server on a real port."""

    def __init__(self, site: Site, address: str) -> None:
        self.site = site
        self.home = site.home
        self.address = address

    def headers(self, key: str | None) -> dict[str, str]:
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def socket(self, key: str | None = None, path: str = "/v1/stream", **options: Any) -> connect:
        address = self.address.replace("http", "ws") + path
        return connect(address, additional_headers=self.headers(key), close_timeout=0.2, **options)

    @contextlib.asynccontextmanager
    async def following(self, key: str | None = None, **asked: Any) -> AsyncGenerator[ClientConnection]:
        async with self.socket(key) as opened:
            await opened.send(json.dumps(asked))
            assert "ready" in await receive(opened)
            yield opened

    @contextlib.asynccontextmanager
    async def graphql(self, key: str | None, **payload: Any) -> AsyncGenerator[ClientConnection]:
        async with self.socket(key, "/graphql", subprotocols=[TRANSPORT]) as opened:
            await opened.send(json.dumps({"type": "connection_init", "payload": payload}))
            assert await receive(opened) == {"type": "connection_ack"}
            yield opened


@pytest.fixture
async def live(url: str) -> AsyncIterator[Live]:
    async with support.opened(url, port=0) as site:
        listener = server.Listener(site.server)
        await listener.start()
        yield Live(site, listener.address)
        await listener.stop()


async def receive(opened: ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        return json.loads(await opened.recv())


async def subscribe(opened: ClientConnection, query: str, name: str = "1", **variables: Any) -> None:
    payload = {"query": query, "variables": variables}
    await opened.send(json.dumps({"type": "subscribe", "id": name, "payload": payload}))


async def closed(opened: ClientConnection) -> tuple[int, str]:
    """How the server ends it, after whatever else it says."""
    with contextlib.suppress(websockets.ConnectionClosed):
        async with asyncio.timeout(PATIENCE):
            while True:
                await opened.recv()
    return opened.close_code or 0, opened.close_reason or ""


async def run_jobs(live: Live, count: int) -> None:
    for _ in range(count // 10):
        made = await live.home.submit_many([ONE] * 10)
        await asyncio.gather(*[one.result() for one in made])


async def all_events(live: Live) -> list[tuple[str, int]]:
    return [(item.event.job_id, item.event.seq) for item in await live.home.events(most=100_000)]


# --- sockets -------------------------------------------------------------------------------------------------------


async def test_a_socket_resumes_under_load_and_loses_nothing(live: Live) -> None:
    key = await live.site.key("jobs:read")
    running = asyncio.create_task(run_jobs(live, 100))
    found: list[tuple[str, int]] = []
    cursor = "0.0.0"
    while len(found) < 500:
        async with live.following(key, cursor=cursor) as opened:
            for _ in range(min(61, 500 - len(found))):
                event = (await receive(opened))["event"]
                found.append((event["jobId"], event["seq"]))
                cursor = event["cursor"]
    await running
    assert found == await all_events(live)


async def test_a_socket_brings_its_key_in_the_first_message(live: Live) -> None:
    key = await live.site.key("jobs:read", tenant="other")
    wrong = await live.site.key("tasks:work")
    for asked, code in (({}, 4401), ({"key": "ost_x_y"}, 4401), ({"key": wrong}, 4403)):
        async with live.socket() as opened:
            await opened.send(json.dumps(asked))
            assert (await closed(opened))[0] == code
    async with live.socket() as opened:
        await opened.send(json.dumps({"key": key}))
        assert "ready" in await receive(opened)


@pytest.mark.parametrize("sent", ["no", "[]", '{"jobid": "x"}', '{"types": ["Nothing"]}', '{"cursor": "x"}', "[" * 100])
async def test_what_a_socket_does_not_take(live: Live, sent: str) -> None:
    async with live.socket() as opened:
        await opened.send(sent)
        told = (await receive(opened))["closed"]
        assert told["detail"]
        code, reason = await closed(opened)
        assert code in (4400, 4422)
        assert reason == told["code"]


async def test_no_socket_does_anything_without_a_key(live: Live) -> None:
    await live.site.key()
    walked = [route for group in server.ROUTES for route in group.declared if routing.WEBSOCKET in route.methods]
    assert {route.path for route in walked} >= {"/v1/stream", "/graphql"}
    for route in walked:
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with live.socket("ost_x_y", route.path, subprotocols=[TRANSPORT]):
                pass
        assert refused.value.response.status_code == 401
        if not route.late:
            with pytest.raises(websockets.InvalidStatus):
                async with live.socket(None, route.path):
                    pass


async def test_a_socket_that_says_nothing(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "FIRST_MESSAGE_SECONDS", 0.05)
    async with live.socket() as opened:
        assert (await closed(opened))[0] == 4400


async def test_revocation_reaches_open_streams(live: Live) -> None:
    key, other = await live.site.key("jobs:read"), await live.site.key("jobs:read")
    address = f"{live.address}/v1/events/stream"
    async with (
        live.following(key) as plain,
        live.graphql(key) as graph,
        live.following(other) as stays,
        httpx2.AsyncClient(headers=live.headers(key)) as client,
        client.stream("GET", address, timeout=PATIENCE) as answer,
    ):
        await live.home.engine.store.revoke_key("default", key.split("_")[1])
        start = time.monotonic()
        told = await receive(plain)
        assert told["closed"]["code"] == "unauthenticated"
        assert (await closed(plain))[0] == 4401
        assert (await closed(graph))[0] == 4401
        lines = [line async for line in answer.aiter_lines()]
        assert "event: closed" in lines
        assert time.monotonic() - start < 5
        await live.home.submit(ONE)
        assert "event" in await receive(stays)


async def test_a_stalled_socket_is_cut_off_while_others_go_on(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "GRACE_SECONDS", 0.2)
    followers = live.site.server.hub._followers  # pyright: ignore[reportPrivateUsage]
    made = await live.home.submit(ONE)
    await made.result()
    async with live.socket(sock=narrow(live), compression=None) as stalled, live.following() as reader:
        await stalled.send("{}")
        await receive(stalled)
        stalled.transport.pause_reading()
        most = sent = 0
        while len(followers["default"]) == 2 and sent < 4_000:
            batch = [live.home.publish_status(made.job_id, str(sent + i), "x" * 4000) for i in range(20)]
            await asyncio.gather(*batch)
            sent += 20
            for _ in batch:
                assert "event" in await receive(reader)
            most = max([most, *(follower.waiting_bytes for follower in followers["default"])])
        await until(lambda: _alone(live), "the stalled one to be cut off")
        assert 0 < most <= hub.MOST_BYTES
        await live.home.publish_status(made.job_id, "last")
        assert (await receive(reader))["event"]["properties"]["status"] == "last"


def narrow(live: Live) -> socket.socket:
    """A connection that holds little of what nobody reads."""
    made = socket.create_connection(("127.0.0.1", int(live.address.rpartition(":")[2])))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return made


async def _alone(live: Live) -> bool:
    return len(live.site.server.hub._followers.get("default", ())) == 1  # pyright: ignore[reportPrivateUsage]


# --- server-sent events --------------------------------------------------------------------------------------------


async def events_of(answer: httpx2.Response, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            found.append(json.loads(line[6:]))
            if len(found) == count:
                break
    return found


async def test_server_sent_events_resume(live: Live) -> None:
    key = await live.site.key("jobs:read")
    made = await live.home.submit(ONE)
    await made.result()
    async with httpx2.AsyncClient(headers=live.headers(key), base_url=live.address, timeout=PATIENCE) as client:
        async with client.stream("GET", f"/v1/jobs/{made.job_id}/stream?cursor=0.0.0") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            first = await events_of(answer, 2)
        headers = {"Last-Event-ID": first[-1]["cursor"]}
        async with client.stream("GET", f"/v1/jobs/{made.job_id}/stream", headers=headers) as answer:
            rest = await events_of(answer, 3)
        assert [event["seq"] for event in first + rest] == [1, 2, 3, 4, 5]
        async with client.stream("GET", "/v1/events/stream?types=Job%20Completed&cursor=0.0.0") as answer:
            assert (await events_of(answer, 1))[0]["type"] == "Job Completed"
        for path in ("/v1/events/stream", f"/v1/jobs/{made.job_id}/stream"):
            async with client.stream("GET", f"{path}?function=echo&cursor=0.0.0") as answer:
                assert [event["taskId"] for event in await events_of(answer, 3)] == ["a"] * 3
        assert (await client.get("/v1/events/stream?types=Nothing")).status_code == 422
        assert (await client.get("/v1/jobs/never-was/stream")).status_code == 404
    await until(lambda: _nobody(live), "all to have left")


async def _nobody(live: Live) -> bool:
    return not live.site.server.hub._followers  # pyright: ignore[reportPrivateUsage]


async def test_heartbeats(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.02)
    async with (
        httpx2.AsyncClient(base_url=live.address, timeout=PATIENCE) as client,
        client.stream("GET", "/v1/events/stream") as answer,
    ):
        lines = aiter(answer.aiter_lines())
        assert [await anext(lines) for _ in range(4)] == [": still here", "", ": still here", ""]


async def test_a_stop_ends_streams_at_once_and_says_where_to_go_on(url: str) -> None:
    async with support.opened(url, port=0) as site:
        listener = server.Listener(site.server)
        await listener.start()
        live = Live(site, listener.address)
        async with live.following() as opened:
            start = time.monotonic()
            stopping = asyncio.create_task(listener.stop())
            told = (await receive(opened))["closed"]
            assert told["code"] == "server_stopping"
            assert told["cursor"]
            await stopping
            assert time.monotonic() - start < 5


# --- GraphQL -------------------------------------------------------------------------------------------------------

STATUS = """subscription($id: ID!, $cursor: String) {
  jobStatus(jobId: $id, cursor: $cursor) { jobId status message timestamp cursor } }"""


async def test_a_status_reaches_those_who_follow_the_job(live: Live) -> None:
    key = await live.site.key("jobs:read", "jobs:write")
    made = await live.home.submit(job(task("a", "nobody-has-this")))
    async with live.graphql(None, authorization=f"Bearer {key}") as opened:
        await subscribe(opened, STATUS, id=made.job_id, cursor="0.0.0")
        first = (await receive(opened))["payload"]["data"]["jobStatus"]
        assert (first["status"], first["message"]) == ("running", None)
        publish = """mutation($id: ID!) { publishStatus(input: {
          jobId: $id, status: "validating", message: "almost", timestamp: "2026-01-31T12:00:00Z"}) { status } }"""
        await subscribe(opened, publish, "2", id=made.job_id)
        found = [await receive(opened) for _ in range(3)]
        (told,) = [message["payload"]["data"] for message in found if message["id"] == "1"]
        shown = told["jobStatus"]
        assert shown["cursor"]
        assert shown == {
            "jobId": made.job_id,
            "status": "validating",
            "message": "almost",
            "timestamp": "2026-01-31T12:00:00Z",
            "cursor": shown["cursor"],
        }
        await made.cancel("enough")
        ended = (await receive(opened))["payload"]["data"]["jobStatus"]
        assert (ended["status"], ended["message"]) == ("cancelled", "enough")
        await opened.send(json.dumps({"type": "complete", "id": "1"}))
    async with live.graphql(key) as opened:
        await subscribe(opened, STATUS, id=made.job_id, cursor=first["cursor"])
        assert (await receive(opened))["payload"]["data"]["jobStatus"]["status"] == "validating"
    await until(lambda: _nobody(live), "all to have left")


async def test_what_no_event_tells_of_is_heard_of_by_its_own_tenant(live: Live) -> None:
    key = await live.site.key("jobs:read")
    other = await live.site.key("jobs:read", tenant="globex")
    rule = {"name": "sold", "pattern": {"source": ["shop"]}, "targets": [{"signal": {"jobId": "j", "name": "go"}}]}
    async with live.graphql(key) as opened, live.graphql(other) as elsewhere:
        for socket in (opened, elsewhere):
            await subscribe(socket, "subscription { changes }")
            assert (await receive(socket))["payload"]["data"] == {"changes": 0}
        for count, change in enumerate((live.home.rules.define(rule), live.site.key("jobs:read")), 1):
            await change
            assert (await receive(opened))["payload"]["data"] == {"changes": count}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2 * changes.LOOK_SECONDS):
                await elsewhere.recv()


async def test_events_over_graphql(live: Live) -> None:
    key = await live.site.key("jobs:read")
    async with live.graphql(key) as opened:
        query = 'subscription($f: EventFilter) { events(filter: $f, cursor: "0.0.0") { type jobName taskId cursor } }'
        await subscribe(opened, query, f={"types": ["Task Completed"], "taskId": "a"})
        await live.home.submit(ONE)
        found = (await receive(opened))["payload"]["data"]["events"]
        assert (found["type"], found["taskId"]) == ("Task Completed", "a")


async def test_a_function_is_followed_over_sockets(live: Live) -> None:
    key = await live.site.key("jobs:read")
    async with live.following(key, function="join") as plain, live.graphql(key) as graphql:
        query = 'subscription($f: EventFilter) { events(filter: $f, cursor: "0.0.0") { type taskId } }'
        await subscribe(graphql, query, f={"function": "join"})
        await live.home.submit(job(task("a"), task("b", "join", "a")))
        for _ in range(3):
            assert (await receive(plain))["event"]["taskId"] == "b"
            assert (await receive(graphql))["payload"]["data"]["events"]["taskId"] == "b"


async def test_what_subscriptions_refuse(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await live.home.submit(ONE)
    stranger, worker = await live.site.key(tenant="other"), await live.site.key("tasks:work")
    for key, code in ((stranger, "job_not_found"), (worker, "forbidden")):
        async with live.graphql(key) as opened:
            await subscribe(opened, STATUS, id=made.job_id)
            told = await receive(opened)
            assert told["type"] == "error"
            assert told["payload"][0]["extensions"]["code"] == code
    monkeypatch.setattr(sockets, "MOST_OPERATIONS", 2)
    async with live.graphql(await live.site.key("jobs:read")) as opened:
        for number in range(3):
            await subscribe(opened, STATUS, str(number), id=made.job_id)
        told = await receive(opened)
        assert (told["type"], told["id"]) == ("error", "2")
        assert told["payload"][0]["extensions"]["code"] == "too_many_requests"


async def test_a_socket_without_a_key_asks_nothing_more_after_the_first_key(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "CHECK_SECONDS", 60.0)
    made = await live.home.submit(ONE)
    async with live.graphql(None) as opened:
        await live.site.key()
        await subscribe(opened, STATUS, id=made.job_id)
        told = await receive(opened)
        assert (told["type"], told["payload"][0]["extensions"]["code"]) == ("error", "unauthenticated")


async def test_only_the_new_protocol_and_nothing_before_the_key(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.site.server.access, "_open_as", None)
    for offered in (["graphql-ws"], []):
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with live.socket(None, "/graphql", subprotocols=[Subprotocol(name) for name in offered] or None):
                pass
        assert refused.value.response.status_code == 400
    for sent, code in (
        ({"type": "subscribe", "id": "1", "payload": {"query": "{ __typename }"}}, 4401),
        ({"type": "connection_init"}, 4403),
        ({"type": "connection_init", "payload": {"authorization": "Bearer ost_x_y"}}, 4403),
        ("no message", 4400),
    ):
        async with live.socket(None, "/graphql", subprotocols=[TRANSPORT]) as opened:
            await opened.send(json.dumps(sent))
            assert (await closed(opened))[0] == code


async def test_a_stalled_graphql_socket_is_dropped(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "STALLED_SECONDS", 0.2)
    followers = live.site.server.hub._followers  # pyright: ignore[reportPrivateUsage]
    made = await live.home.submit(ONE)
    await made.result()
    options = {"subprotocols": [TRANSPORT], "sock": narrow(live), "compression": None}
    async with live.socket(None, "/graphql", **options) as opened:
        await opened.send('{"type": "connection_init"}')
        await receive(opened)
        await subscribe(opened, STATUS, id=made.job_id)
        await until(lambda: _alone(live), "the subscription")
        opened.transport.pause_reading()
        for number in range(0, 4_000, 20):
            batch = [live.home.publish_status(made.job_id, str(number), "x" * 4000) for _ in range(20)]
            await asyncio.gather(*batch)
            assert all(one.waiting_bytes <= hub.MOST_BYTES for one in followers.get("default", ()))
            if not followers:
                break
        await until(lambda: _nobody(live), "the stalled one to be dropped")


async def test_a_graphql_socket_that_says_nothing(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "INIT_SECONDS", 0.05)
    async with live.socket(None, "/graphql", subprotocols=[TRANSPORT]) as opened:
        assert (await closed(opened))[0] == 4408
