"""Many processes report to many gates at once, in any order and more than once, and are killed while they do: each gate
opens once, with what all have reported, and starts one job.

`OSTINATO_STORM_KEYS=1000 OSTINATO_STORM_KILLS=30` for the long version.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx2
import pytest

from ostinato import EngineOptions, Ostinato, audit
from tests.acceptance import stormy

KILLS = int(os.environ.get("OSTINATO_STORM_KILLS", "6"))
PATIENCE = 60 + stormy.KEYS
ROOT = Path(__file__).parents[2]


class Storm:
    """A process for each share, and always somebody who goes on where another was killed."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._born = 0
        self._processes = [self._spawn(share) for share in range(stormy.SHARES)]

    def _spawn(self, share: int) -> subprocess.Popen[bytes]:
        self._born += 1
        place = [self._url, str(self._folder), str(share), str(self._born)]
        command = [sys.executable, "-m", "tests.acceptance.stormy", *place]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)

    def kill(self, share: int) -> None:
        self._processes[share].send_signal(signal.SIGKILL)
        self._processes[share].wait()
        self._processes[share] = self._spawn(share)

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    @property
    def reported(self) -> int:
        paths = [self._folder / f"share-{share}" for share in range(stormy.SHARES)]
        return sum(path.stat().st_size for path in paths if path.exists())

    @property
    def over(self) -> bool:
        assert all(process.poll() is None for process in self._processes), "a process has ended by itself"
        return all((self._folder / f"done-{share}").exists() for share in range(stormy.SHARES))


@pytest.mark.timeout(3 * PATIENCE)
async def test_each_gate_opens_once(url: str, tmp_path: Path) -> None:
    """X12, E: the arrival, the count, the opened mark and the trigger are one transaction."""
    options = EngineOptions(work=False, maintain=False, poll_seconds=0.1, check_functions=False)
    async with Ostinato(url, options=options) as watcher:
        await watcher.gates.define(stormy.GATE)
        storm = Storm(url, tmp_path)
        try:
            await blow(storm)
            await settled(watcher)
        finally:
            storm.end()
        await check_jobs(watcher)
        await check_gates(watcher)
        report = await audit.audit(watcher.engine.store)
        assert not report.problems, report.problems[:5]
        assert report.jobs == 2 * stormy.KEYS
    check_told(told for share in range(stormy.SHARES) for told in stormy.acknowledged(tmp_path, share))


class Servers:
    """Server processes, and senders who go on until somebody has answered them."""

    def __init__(self, url: str, new_port: Callable[[], int]) -> None:
        self._url = url
        self._ports = [new_port() for _ in range(stormy.SHARES)]
        self._processes = [self._spawn(port) for port in self._ports]
        self.answers: list[tuple[stormy.Arrival, str, bool]] = []

    def _spawn(self, port: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.acceptance.stormy_server", self._url, str(port)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)

    def kill(self, number: int) -> None:
        self._processes[number].send_signal(signal.SIGKILL)
        self._processes[number].wait()
        self._processes[number] = self._spawn(self._ports[number])

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    async def report(self, client: httpx2.AsyncClient, arrival: stormy.Arrival, draw: random.Random) -> None:
        said = {"member": arrival.member, "data": arrival.data, "correlationId": arrival.correlation_id}
        while True:
            port = draw.choice(self._ports)
            try:
                answer = await client.post(f"http://127.0.0.1:{port}/v1/gates/storm/{arrival.key}/arrivals", json=said)
            except httpx2.TransportError:  # it was killed: perhaps the report has arrived, perhaps not
                await asyncio.sleep(0.05)
                continue
            if answer.status_code == 503:  # so says a server that is too busy: try again
                await asyncio.sleep(0.05)
                continue
            assert answer.status_code == 200, answer.text
            told = answer.json()
            self.answers.append((arrival, told["outcome"], told["opened"]))
            return


@pytest.mark.timeout(3 * PATIENCE)
async def test_each_gate_opens_once_through_servers_that_are_killed(url: str, new_port: Callable[[], int]) -> None:
    """X12, E7, E8: the senders are outside, and say again what nobody has acknowledged, to whoever is there."""
    options = EngineOptions(work=False, maintain=False, poll_seconds=0.1, check_functions=False)
    async with Ostinato(url, options=options) as watcher:
        await watcher.gates.define(stormy.GATE)
        servers = Servers(url, new_port)
        try:
            async with asyncio.timeout(PATIENCE):
                await send_all(servers)
            await settled(watcher)
        finally:
            servers.end()
        await check_jobs(watcher)
        await check_gates(watcher)
        report = await audit.audit(watcher.engine.store)
        assert not report.problems, report.problems[:5]
        assert report.jobs == 2 * stormy.KEYS
    check_told(servers.answers)


async def send_all(servers: Servers) -> None:
    """What all shares have to report, some of it twice; a server is killed whenever a part of it is acknowledged."""
    draw = random.Random(13)
    shares = [stormy.share_of(number) for number in range(stormy.SHARES)]
    queue = [arrival for together in itertools.zip_longest(*shares) for arrival in together if arrival is not None]
    queue = [arrival for arrival in queue for _ in range(2 if draw.random() < 0.2 else 1)]
    kills = [len(queue) * (kill + 1) // (KILLS + 1) for kill in range(KILLS)]
    left = iter(queue)
    async with httpx2.AsyncClient(timeout=30, limits=httpx2.Limits(max_connections=stormy.AT_ONCE)) as client:

        async def sender() -> None:
            for arrival in left:
                await servers.report(client, arrival, draw)
                if kills and len(servers.answers) >= kills[0]:
                    kills.pop(0)
                    servers.kill(draw.randrange(stormy.SHARES))

        await asyncio.gather(*[sender() for _ in range(stormy.AT_ONCE)])
    assert not kills


async def blow(storm: Storm) -> None:
    """Kill, again and again, whenever a part of what there is to report has been reported."""
    draw = random.Random(11)
    until = time.monotonic() + PATIENCE
    whole = sum(len(f"{a.key} {a.member} arrived False\n") for n in range(stormy.SHARES) for a in stormy.share_of(n))
    for kill in range(KILLS):
        while storm.reported < (kill + 1) / (KILLS + 1) * whole and not storm.over:
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        storm.kill(draw.randrange(stormy.SHARES))
    while not storm.over:
        assert time.monotonic() < until
        await asyncio.sleep(0.05)


async def settled(app: Ostinato) -> None:
    """Every job that there is has ended, those of the gates and those that they have started."""
    async with asyncio.timeout(PATIENCE):
        while await app.jobs(state="running", most=1):
            await asyncio.sleep(0.1)


async def check_jobs(app: Ostinato) -> None:
    """One job for each key, with the right data and correlation id, and no other."""
    found: dict[str, str] = {}
    cursor: str | None = None
    while True:
        page = await app.jobs(name="next", most=100, cursor=cursor)
        for view in page:
            given = (await (await app.job(view.job_id)).outputs())["t"]
            key = given["key"]
            assert key not in found, f"{key} has started {found[key]} and {view.job_id}"
            found[key] = view.job_id
            assert given == stormy.expected(key)
            assert view.correlation_id == given["ids"][0]
        cursor = page.cursor
        if cursor is None:
            break
    assert found.keys() == set(stormy.keys())


async def check_gates(app: Ostinato) -> None:
    """The history of each gate says once that it opened, and once of each member that it came."""
    opened: collections.Counter[str] = collections.Counter()
    arrived: collections.Counter[tuple[str, str | None]] = collections.Counter()
    cursor: str | None = None
    while page := await app.events(cursor=cursor):
        for item in page:
            if item.event.type == "Gate Opened":
                opened[item.event.job_id] += 1
            elif item.event.type == "Task Completed" and item.event.task_id in stormy.MEMBERS:
                arrived[(item.event.job_id, item.event.task_id)] += 1
        cursor = page[-1].cursor
    assert len(opened) == stormy.KEYS
    assert set(opened.values()) == {1}
    assert len(arrived) == stormy.KEYS * len(stormy.MEMBERS)
    assert set(arrived.values()) == {1}


def check_told(answers: Iterable[tuple[stormy.Arrival, str, bool]]) -> None:
    """What the senders were told agrees: no report was taken twice, and no gate was opened by two of them."""
    taken: collections.Counter[stormy.Arrival] = collections.Counter()
    opened: collections.Counter[str] = collections.Counter()
    for arrival, outcome, by_this in answers:
        assert outcome in ("arrived", "duplicate")
        taken[arrival] += outcome == "arrived"
        opened[arrival.key] += by_this
    assert len(taken) == stormy.KEYS * len(stormy.MEMBERS)
    assert max(taken.values()) == 1
    assert max(opened.values()) == 1
