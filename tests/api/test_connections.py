"""F-7: connections that say nothing take nothing from anybody else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import websockets

from ostinato import errors
from ostinato.api import connections, server
from tests.api import support
from tests.api.support import Site, problem
from tests.api.test_server import ROOT, environment


@pytest.fixture
def url(sqlite_url: str) -> str:
    """None of this is about the database."""
    return sqlite_url


class Wire:
    """A transport that only remembers that it was closed."""

    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def opened(registry: connections.Connections, client: str) -> Any:
    wire: Any = Wire()
    return registry.opened(wire, client)


def test_f7_the_longest_quiet_connection_makes_room() -> None:
    registry = connections.Connections(10, 10)
    first, *others = [opened(registry, f"10.0.0.{n}") for n in range(10)]
    first.spoke()
    opened(registry, "10.0.0.99")
    assert [one.transport.aborted for one in (first, *others)] == [False, True] + [False] * 8
    assert len(registry) == 10


def test_f7_an_address_makes_room_for_itself_and_takes_nothing_from_others() -> None:
    registry = connections.Connections(100, 10)
    calm = opened(registry, "10.0.0.1")
    loud = [opened(registry, "10.0.0.2") for _ in range(50)]
    assert not calm.transport.aborted
    assert sum(not one.transport.aborted for one in loud) == 10
    for one in loud[-10:-1]:
        one.admit()
    with pytest.raises(errors.ServerFull):
        loud[-1].admit()
    calm.admit()
    for one in (calm, *loud):
        registry.closed(one)
    assert len(registry) == 0


def test_f7_what_was_let_in_is_never_closed_for_a_stranger() -> None:
    registry = connections.Connections(20, 20)
    busy = [opened(registry, "10.0.0.1") for _ in range(18)]
    for one in busy:
        one.admit()
    strangers = [opened(registry, "10.0.0.2") for _ in range(5)]
    assert not any(one.transport.aborted for one in busy)
    assert [one.transport.aborted for one in strangers] == [True] * 3 + [False] * 2
    busy[0].release()
    strangers[-1].admit()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
    ],
)
def test_f7_who_counts_as_one_address(one: str, other: str, same: bool) -> None:
    registry = connections.Connections(100, 10)
    first = opened(registry, one)
    for _ in range(10):
        opened(registry, other)
    assert first.transport.aborted is same


@contextlib.asynccontextmanager
async def listening(url: str, **options: Any) -> AsyncGenerator[tuple[Site, str]]:
    async with support.opened(url, port=0, **options) as site:
        listener = server.Listener(site.server)
        await listener.start()
        try:
            yield site, listener.address
        finally:
            await listener.stop()


async def test_f7_when_all_places_are_taken_health_checks_are_answered(url: str) -> None:
    """Streams, sockets and slow bodies are counted, and each place is free again when its answer is complete."""
    async with listening(url, max_connections_per_address=10) as (site, address), contextlib.AsyncExitStack() as stack:
        headers = {"Authorization": f"Bearer {await site.key()}"}
        host, port = address.removeprefix("http://").split(":")
        head = f"POST /v1/plans HTTP/1.1\r\nHost: {host}\r\nAuthorization: {headers['Authorization']}\r\n"
        slow: list[asyncio.StreamWriter] = []
        for _ in range(3):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{".encode())
            slow.append(writer)
        client = httpx2.AsyncClient(base_url=address, headers=headers)
        await stack.enter_async_context(client)
        streams = [await stack.enter_async_context(client.stream("GET", "/v1/events/stream")) for _ in range(3)]
        sockets = [websockets.connect(f"{address.replace('http', 'ws')}/v1/stream") for _ in range(3)]
        for connecting in sockets:
            stream = await stack.enter_async_context(connecting)
            await stream.send(json.dumps({"key": headers["Authorization"].removeprefix("Bearer ")}))
            assert "ready" in json.loads(await stream.recv())
        full = await client.get("/v1/jobs")
        assert full.headers["retry-after"] == "1"
        problem(full, 503, "server_full")
        assert (await client.get("/healthz")).status_code == 200
        async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(local_address="127.0.0.2")) as elsewhere:
            assert (await elsewhere.get(f"{address}/v1/jobs", headers=headers)).status_code == 200
        await streams[0].aclose()
        async with asyncio.timeout(5):
            while (await client.get("/v1/jobs")).status_code == 503:
                await asyncio.sleep(0.01)  # until the server has seen that the stream was left
        for writer in slow:
            writer.close()


@contextlib.contextmanager
def limited(url: str, soft: int, hard: int) -> Generator[tuple[int, str]]:
    """A server that was started with few descriptors: its process and its address."""
    command = [sys.executable, "-m", "ostinato.cli.main", "server", "--port", "0", "--log-level", "warning"]
    process = subprocess.Popen(
        command,
        env=environment(url),
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
    )
    try:
        assert process.stdout is not None
        yield process.pid, process.stdout.readline().split()[1].rstrip(",")
    finally:
        process.kill()
        process.communicate()


def test_f7_silent_connections_leave_room_for_everybody_else(url: str) -> None:
    with limited(url, soft=64, hard=600) as (pid, address), contextlib.ExitStack() as stack:
        soft_limit = re.search(r"Max open files +(\d+)", Path(f"/proc/{pid}/limits").read_text())
        assert soft_limit is not None
        assert soft_limit[1] == "600"
        host, port = address.removeprefix("http://").split(":")
        for n in range(700):
            stack.enter_context(socket.create_connection((host, int(port)), timeout=5))
            if n % 100 == 99:
                began = time.monotonic()
                assert httpx2.get(f"{address}/healthz", timeout=5).status_code == 200
                assert httpx2.get(f"{address}/v1/jobs", timeout=5).status_code == 200
                assert time.monotonic() - began < 2
