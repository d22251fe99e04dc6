"""The server as a process, and its sockets: what only a real network shows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import websockets
from starlette.websockets import WebSocket

from devtools import programs
from ostinato.api import calls, routing, server
from ostinato.core import scopes
from tests.api import support
from tests.api.support import Site

ROOT = Path(__file__).parents[2]


def environment(url: str) -> dict[str, str]:
    return os.environ | {"OSTINATO_URL": url, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def start(url: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ostinato.cli.main", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment(url), text=True, stdout=pipe, stderr=pipe)


def run(url: str, *arguments: str, code: int = 0) -> str:
    done = programs.run_command(arguments, cwd=Path.cwd(), env=environment(url))
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout or done.stderr


@contextlib.contextmanager
def serving(url: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server as people start it, and its address. Nobody reads its log, so it should not say much."""
    process = start(url, "server", "--port", "0", "--log-level", "warning", *arguments)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+:\d+", line)
        assert found, line or process.communicate()
        yield process, found[0]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_it_serves_and_stops_when_told(empty_url: str) -> None:
    with serving(empty_url) as (process, address):
        assert httpx2.get(f"{address}/readyz").json() == {"status": "ready"}
        made = httpx2.post(f"{address}/v1/plans", json=support.ONE)
        assert made.json()["levels"] == [["a"]]
        process.send_signal(signal.SIGTERM)
        printed, complained = process.communicate(timeout=20)
        assert process.returncode == 0, complained
        assert "stopped" in printed
        assert "no key exists" in complained


def test_it_fires_timers_and_a_worker_elsewhere_runs_what_it_takes(url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from ostinato import Ostinato\n"
        "app = Ostinato()\n"
        "@app.function\n"
        "async def nap(ctx):\n"
        "    await ctx.sleep(0.2)\n"
        "    return 'slept'\n"
    )
    with serving(url) as (_, address):
        worker = start(url, "worker", f"{tmp_path}/shop.py:app")
        assert worker.stdout is not None
        assert worker.stdout.readline().startswith("ready")
        try:
            document = {"tasks": [{"taskId": "a", "name": "nap"}]}
            job_id = httpx2.post(f"{address}/v1/jobs", json=document).json()["jobId"]
            for _ in range(200):
                detail = httpx2.get(f"{address}/v1/jobs/{job_id}/tasks/a").json()
                if detail["task"]["state"] == "completed":
                    break
            assert detail["output"] == "slept"
        finally:
            worker.terminate()
            worker.communicate(timeout=30)


def test_it_lets_nobody_in_by_accident(empty_url: str) -> None:
    said = run(empty_url, "server", "--host", "0.0.0.0", "--port", "0", code=78)
    assert "ostinato keys create" in said
    said = run(empty_url, "server", "--host", "0.0.0.0", "--port", "0", "--json", code=78)
    assert json.loads(said)["error"]["code"] == "unsafe_bind"
    key = run(empty_url, "keys", "create", "--scopes", "jobs:read", "--name", "reader", "--expires", "30d").split()[0]
    with serving(empty_url, "--host", "0.0.0.0") as (_, address):
        reached = address.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(f"{reached}/v1/jobs").status_code == 401
        headers = {"Authorization": f"Bearer {key}"}
        assert httpx2.get(f"{reached}/v1/jobs", headers=headers).status_code == 200
        assert httpx2.post(f"{reached}/v1/jobs", json=support.ONE, headers=headers).status_code == 403


def test_a_port_that_is_taken(sqlite_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = run(sqlite_url, "server", "--port", str(taken.getsockname()[1]), code=1)
    assert "cannot listen on 127.0.0.1" in said


def test_keys_on_the_command_line(url: str) -> None:
    made = json.loads(run(url, "keys", "create", "--scopes", "admin", "--tenant", "acme", "--json"))
    assert made["key"].startswith(f"ost_{made['keyId']}_")
    (listed,) = json.loads(run(url, "keys", "ls", "--tenant", "acme", "--json"))["keys"]
    assert "key" not in listed
    assert made["key"].split("_")[2] not in run(url, "keys", "ls", "--tenant", "acme")
    assert (listed["state"], listed["scopes"], listed["expiresAt"]) == ("works", ["admin"], None)
    run(url, "keys", "revoke", made["keyId"], code=3)
    run(url, "keys", "revoke", made["keyId"], "--tenant", "acme")
    (listed,) = json.loads(run(url, "keys", "ls", "--tenant", "acme", "--json"))["keys"]
    assert listed["state"] == "revoked"
    for bad in (["--scopes", "jobs:fly"], ["--scopes", "admin", "--expires", "soon"], ["--scopes", ","]):
        run(url, "keys", "create", *bad, code=2)


# --- sockets --------------------------------------------------------------------------------------------------------


def sockets() -> routing.Routes:
    made = routing.Routes()

    @made.websocket("/v1/echo", scope=scopes.JOBS_READ)
    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        principal = calls.principal_of(socket)
        await socket.send_json({"tenant": principal.tenant, "mine": (await calls.client_of(socket)).tenant})
        await socket.close()

    @made.websocket("/v1/late", scope=scopes.JOBS_READ, late=True)
    async def late(socket: WebSocket) -> None:
        await socket.accept()
        principal = await calls.access_of(socket).authenticate(await socket.receive_text(), None)
        principal.require(scopes.JOBS_READ)
        await socket.send_json({"tenant": principal.tenant})
        await socket.close()

    return made


@pytest.fixture
async def listening(url: str) -> AsyncIterator[tuple[Site, str]]:
    async with support.opened(url, more=[sockets()], port=0) as site:
        listener = server.Listener(site.server)
        await listener.start()
        yield site, listener.address.replace("http", "ws")
        await listener.stop()


async def refused(address: str, **headers: str) -> int:
    with pytest.raises(websockets.InvalidStatus) as raised:
        async with websockets.connect(address, additional_headers=headers):
            pass
    response = raised.value.response
    assert response.headers["content-type"] == "application/problem+json"
    assert json.loads(response.body)["status"] == response.status_code
    return response.status_code


async def heard(address: str, *messages: str, **headers: str) -> Any:
    async with websockets.connect(address, additional_headers=headers) as socket:
        for message in messages:
            await socket.send(message)
        return json.loads(await asyncio.wait_for(socket.recv(), 5))


async def test_sockets_pass_the_same_guard(listening: tuple[Site, str]) -> None:
    site, address = listening
    reader, other = await site.key("jobs:read", tenant="acme"), await site.key("jobs:write")
    assert await refused(f"{address}/v1/echo") == 401
    assert await refused(f"{address}/v1/nothing") == 401
    assert await refused(f"{address}/v1/echo", Authorization="Bearer ost_a_b") == 401
    assert await refused(f"{address}/v1/echo", Authorization=f"Bearer {other}") == 403
    found = await heard(f"{address}/v1/echo", Authorization=f"Bearer {reader}")
    assert found == {"tenant": "acme", "mine": "acme"}


async def test_a_refused_handshake_is_no_error_in_the_log(
    listening: tuple[Site, str], caplog: pytest.LogCaptureFixture
) -> None:
    """S-8: strangers could fill the log, and set off alarms."""
    site, address = listening
    await site.key()
    with caplog.at_level("WARNING"):
        assert await refused(f"{address}/v1/echo") == 401
        assert await refused(f"{address}/v1/echo", Origin="http://evil.example") == 403
        assert await refused(f"{address}/v1/nothing", Authorization="Bearer ost_a_b") == 401
        await site.server.hub.close()  # and nothing is left to be said later
    assert [record.message for record in caplog.records] == []


async def test_sockets_of_other_pages_are_refused(listening: tuple[Site, str]) -> None:
    site, address = listening
    key = {"Authorization": f"Bearer {await site.key()}"}
    assert await refused(f"{address}/v1/echo", Origin="http://evil.example", **key) == 403
    assert await heard(f"{address}/v1/echo", Origin=address.replace("ws", "http"), **key)


async def test_a_socket_may_bring_its_key_late(listening: tuple[Site, str]) -> None:
    site, address = listening
    assert await heard(f"{address}/v1/late", await site.key("jobs:read", tenant="acme")) == {"tenant": "acme"}
    with pytest.raises(websockets.ConnectionClosed):
        await heard(f"{address}/v1/late", "ost_a_b")
    assert await refused(f"{address}/v1/late", Authorization="Bearer ost_a_b") == 401
