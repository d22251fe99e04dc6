"""Several servers on one database are equals."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2

from tests.api import test_server
from tests.api.support import ONE
from tests.engine import support

AT_ONCE = 200
FLAGS = ("--requests-per-second", "100000")


async def prepared(url: str, **gate: Any) -> dict[str, str]:
    """A key for both servers, and perhaps a gate; the functions are known, because a worker was there before."""
    async with support.opened(url) as app:
        if gate:
            await app.gates.define(gate)
    key = json.loads(test_server.run(url, "keys", "create", "--scopes", "jobs:read,jobs:write", "--json"))["key"]
    return {"Authorization": f"Bearer {key}"}


async def test_two_servers_take_the_same_key_at_once_and_make_one_job(url: str) -> None:
    headers = await prepared(url)
    with test_server.serving(url, *FLAGS) as (_, first), test_server.serving(url, *FLAGS) as (_, second):
        async with httpx2.AsyncClient(headers=headers, timeout=60) as client:

            async def submit(number: int) -> tuple[int, str]:
                answer = await client.post(
                    f"{(first, second)[number % 2]}/v1/jobs", json=ONE, headers={"Idempotency-Key": "once"}
                )
                return answer.status_code, answer.json()["jobId"]

            answers = await asyncio.gather(*[submit(number) for number in range(AT_ONCE)])
            assert len({job_id for _, job_id in answers}) == 1
            assert sorted(status for status, _ in answers) == [200] * (AT_ONCE - 1) + [201]
            for address in (first, second):
                assert len((await client.get(f"{address}/v1/jobs")).json()["jobs"]) == 1


async def test_either_server_goes_on_with_what_the_other_began(url: str) -> None:
    headers = await prepared(url)
    with test_server.serving(url, *FLAGS) as (_, first), test_server.serving(url, *FLAGS) as (_, second):
        async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
            job_id = (await client.post(f"{first}/v1/jobs", json=ONE)).json()["jobId"]
            added = {"tasks": [support.task("b", after="a")]}
            assert (await client.post(f"{second}/v1/jobs/{job_id}/tasks", json=added)).status_code == 201
            assert (await client.post(f"{first}/v1/jobs/{job_id}/cancel", json={})).json() == {"state": "cancelled"}
            shown = (await client.get(f"{second}/v1/jobs/{job_id}")).json()
            assert (shown["state"], len(shown["tasks"])) == ("cancelled", 2)


async def test_e7_21_members_report_through_two_servers_at_once_and_the_gate_opens_once(url: str) -> None:
    """Each through both: one of the two hears that it arrived, and one of all that it opened the gate."""
    members = [f"processor-{number}" for number in range(21)]
    following = {"name": "next", "tasks": [support.task("a", input={"n": "{% aggregate.n %}"})]}
    headers = await prepared(
        url, name="phase", members=members, aggregate={"n": {"how": "sum"}}, trigger=[{"job": following}]
    )
    with test_server.serving(url, *FLAGS) as (_, first), test_server.serving(url, *FLAGS) as (_, second):
        async with httpx2.AsyncClient(headers=headers, timeout=60) as client:

            async def report(address: str, key: str, number: int) -> dict[str, Any]:
                said = {"member": members[number], "data": {"n": number}, "correlationId": f"{key}-c"}
                answer = await client.post(f"{address}/v1/gates/phase/{key}/arrivals", json=said)
                assert answer.status_code == 200, answer.text
                return answer.json()

            for key in ("2025-11-29", "2025-11-30"):
                told = await asyncio.gather(*[report(a, key, n) for n in range(21) for a in (first, second)])
                assert sorted(one["member"] for one in told if one["outcome"] == "arrived") == sorted(members)
                assert sum(one["outcome"] == "duplicate" for one in told) == 21
                assert sum(one["opened"] for one in told) == 1
            async with asyncio.timeout(30):
                while len(jobs := (await client.get(f"{first}/v1/jobs?name=next")).json()["jobs"]) < 2:
                    await asyncio.sleep(0.05)
            assert {one["correlationId"] for one in jobs} == {"2025-11-29-c", "2025-11-30-c"}
            for one in jobs:
                given = await client.get(f"{second}/v1/jobs/{one['jobId']}/tasks/a")
                assert given.json()["input"] == {"n": sum(range(21))}
