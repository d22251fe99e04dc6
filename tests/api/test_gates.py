"""Gates over HTTP and GraphQL: the same gates, the same refusals, whoever asks."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from tests.api import support, test_server
from tests.api.support import Site, problem
from tests.api.test_graphql import ask, refused
from tests.api.test_metrics import number
from tests.api.test_metrics import read as read_metrics
from tests.engine.support import until

NEXT = {"name": "next", "tasks": [{"taskId": "t", "name": "echo", "input": {"got": "{% aggregate %}"}}]}
GATE: dict[str, Any] = {
    "description": "All of the day",
    "members": ["a", {"name": "b"}, "c"],
    "aggregate": {"n": {"how": "sum"}},
    "trigger": [{"job": NEXT}],
}
DAY = "/v1/gates/phase/2025-11-29"


async def defined(site: Site, name: str = "phase", **fields: Any) -> httpx2.AsyncClient:
    client = await site.admin()
    answer = await client.put(f"/v1/gates/{name}", json=GATE | fields)
    assert answer.status_code == 200, answer.text
    return client


async def arrive(client: httpx2.AsyncClient, member: str, path: str = DAY, **more: Any) -> dict[str, Any]:
    answer = await client.post(f"{path}/arrivals", json={"member": member, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def triggered(client: httpx2.AsyncClient, path: str = DAY) -> dict[str, Any]:
    """The status, once everything that the gate triggers has happened."""

    async def look() -> dict[str, Any] | None:
        found = (await client.get(path)).json()
        return found if found["triggered"] and all(t["state"] == "completed" for t in found["triggered"]) else None

    return await until(look, "the trigger")


# --- from the definition to the trigger ----------------------------------------------------------------------------


async def test_the_last_one_opens_it_and_everybody_can_see_how_it_stands(site: Site) -> None:
    client = await defined(site)
    problem(await client.get(DAY), 404, "gate_key_not_found")
    first = await arrive(client, "a", data={"n": 1}, correlationId="c-1")
    job_id = first.pop("jobId")
    assert first == {"member": "a", "outcome": "arrived", "opened": False, "completedCount": 1, "expectedCount": 3}
    waiting = (await client.get(DAY)).json()
    assert (waiting["status"], waiting["missing"]) == ("waiting", ["b", "c"])
    assert waiting["sentence"].startswith("Completed: 1/3; missing: b, c since ")
    assert (await arrive(client, "a", data={"n": 5}))["outcome"] == "duplicate"
    await arrive(client, "b", data={"n": 2, "correlation_id": "c-2"})
    last = await arrive(client, "c", data={"n": 3})
    assert (last["opened"], last["completedCount"], last["jobId"]) == (True, 3, job_id)
    status = await triggered(client)
    assert (status["status"], status["openedBy"], status["correlationIds"]) == ("open", "c", ["c-1", "c-2"])
    started = (await client.get("/v1/jobs?name=next")).json()["jobs"]
    assert [job["correlationId"] for job in started] == ["c-1"]
    made = await support.ended(client, started[0]["jobId"])
    assert made["state"] == "completed"
    detail = (await client.get(f"/v1/jobs/{made['jobId']}/tasks/t")).json()
    assert detail["output"] == {"got": {"n": 6}}
    again = await arrive(client, "c")
    assert (again["outcome"], again["completedCount"], again["expectedCount"]) == ("duplicate", 3, 3)


async def test_a_list_is_answered_one_by_one(site: Site) -> None:
    client = await defined(site, required=["n"], late="refuse")
    given = [
        {"member": "a", "data": {"n": 1}},
        {"member": "a", "data": {"n": 1}},
        {"member": "stranger", "data": {"n": 1}},
        {"member": "b"},
        {"member": "b", "data": {"n": "two"}},
        {"member": "b", "data": {"n": 2}, "status": "\x07"},
        {"member": "b", "data": {"n": 2}, "correlationId": "no id"},
        {"member": "b", "data": {"n": 2}},
    ]
    answer = (await client.post(f"{DAY}/arrivals", json=given)).json()
    assert [(o["outcome"], o["code"], o["field"]) for o in answer["outcomes"]] == [
        ("arrived", None, None),
        ("duplicate", None, None),
        (None, "unknown_member", "member"),
        (None, "missing_field", "data.n"),
        (None, "unfit_value", "data.n"),
        (None, "invalid_status", "status"),
        (None, "invalid_id", "correlationId"),
        ("arrived", None, None),
    ]
    assert (answer["completedCount"], answer["expectedCount"]) == (2, 3)
    nothing = (await client.post("/v1/gates/phase/other/arrivals", json=given[2:4])).json()
    assert (nothing["jobId"], nothing["completedCount"], nothing["expectedCount"]) == (None, None, None)
    problem(await client.get("/v1/gates/phase/other"), 404, "gate_key_not_found")
    await client.post(f"{DAY}/open", json={"reason": "hurry"})
    late = await client.post(f"{DAY}/arrivals", json={"member": "c", "data": {"n": 3}})
    problem(late, 409, "gate_closed")
    (refused_one,) = (await client.post(f"{DAY}/arrivals", json=[{"member": "c", "data": {"n": 3}}])).json()["outcomes"]
    assert refused_one["code"] == "gate_closed"
    problem(await client.post("/v1/gates/none/k/arrivals", json=given), 404, "definition_not_found")


async def test_a_large_batch(site: Site) -> None:
    members = [f"m{number}" for number in range(1000)]
    client = await defined(site, members=members)
    batch = [{"member": name, "data": {"n": 1}} for name in members]
    found = problem(await client.post(f"{DAY}/arrivals", json=[*batch, batch[0]]), 422, "invalid_input")
    assert "1000" in found["detail"]
    problem(await client.post(f"{DAY}/arrivals", json=[]), 422, "invalid_input")
    answer = (await client.post(f"{DAY}/arrivals", json=batch)).json()
    assert {o["outcome"] for o in answer["outcomes"]} == {"arrived"}
    assert sum(o["opened"] for o in answer["outcomes"]) == 1
    assert (answer["completedCount"], answer["expectedCount"]) == (1000, 1000)
    again = (await client.post(f"{DAY}/arrivals", json=batch)).json()
    assert {o["outcome"] for o in again["outcomes"]} == {"duplicate"}
    await triggered(client)
    assert len((await client.get("/v1/jobs?name=next")).json()["jobs"]) == 1


@pytest.mark.parametrize("key", ["a/b", "a/arrivals", "/", "%2F", "a b", "Zürich ✓", "x?y#z", "keys/open", "a.b:c"])
async def test_a_key_may_hold_any_character(site: Site, key: str) -> None:
    client = await defined(site)
    path = f"/v1/gates/phase/{quote(key, safe='')}"
    assert (await arrive(client, "a", path))["outcome"] == "arrived"
    assert (await client.get(path)).json()["key"] == key
    assert (await client.get("/v1/gates/phase/keys")).json()["keys"][0]["key"] == key
    assert (await client.post(f"{path}/open", json={"reason": "hurry"})).json() == {"missing": ["b", "c"]}
    assert (await client.post(f"{path}/reset", json={})).status_code == 200
    problem(await client.get(path), 404, "gate_key_not_found")


async def test_what_is_no_key(site: Site) -> None:
    client = await defined(site)
    for key in ("", "%00", "%0A", "%7F", "x" * 257):
        for method, end in (("GET", ""), ("POST", "/arrivals"), ("POST", "/open"), ("POST", "/reset")):
            body = {} if method == "GET" else {"json": {"member": "a"} if end == "/arrivals" else {"reason": "r"}}
            answer = await client.request(method, f"/v1/gates/phase/{key}{end}", **body)
            assert answer.status_code in (404, 422), answer.text
            assert answer.json()["code"] in ("route_not_found", "invalid_input")
        if key and len(key) < 5:
            field = '"\\u0000"' if key == "%00" else f'"{"x" * 257}"'
            error = await refused(client, f'{{ gateStatus(gate: "phase", key: {field}) {{ status }} }}')
            assert error["extensions"]["field"] == "key"


# --- definitions ---------------------------------------------------------------------------------------------------


async def test_definitions_have_versions(site: Site) -> None:
    client = await defined(site)
    assert (await client.put("/v1/gates/phase", json=GATE)).json() == {"name": "phase", "version": 1}
    changed = GATE | {"name": "phase", "description": "Other"}
    assert (await client.put("/v1/gates/phase?expectedVersion=1", json=changed)).json()["version"] == 2
    problem(await client.put("/v1/gates/phase?expectedVersion=1", json=GATE), 409, "not_possible")
    problem(await client.put("/v1/gates/phase?expectedVersion=0", json=GATE), 409, "not_possible")
    assert (await client.put("/v1/gates/fresh?expectedVersion=0", json=GATE)).json()["version"] == 1
    shown = (await client.get("/v1/gates/phase")).json()
    assert (shown["version"], shown["definition"]["description"]) == (2, "Other")
    assert shown["createdBy"].startswith("key:")
    assert (await client.get("/v1/gates/phase?version=1")).json()["definition"]["description"] == "All of the day"
    problem(await client.get("/v1/gates/phase?version=3"), 404, "definition_not_found")
    listed = (await client.get("/v1/gates")).json()["gates"]
    assert [(g["name"], g["version"], g["description"]) for g in listed] == [
        ("fresh", 1, "All of the day"),
        ("phase", 2, "Other"),
    ]
    assert (await client.post("/v1/gates/phase/rollback", json={"version": 1})).json()["version"] == 3
    assert (await client.delete("/v1/gates/phase")).json() == {"name": "phase"}
    problem(await client.get("/v1/gates/phase"), 404, "definition_not_found")
    problem(await client.delete("/v1/gates/phase"), 404, "definition_not_found")
    versions = (await client.get("/v1/gates/phase/versions")).json()["versions"]
    assert [(v["version"], v["removed"]) for v in versions] == [(4, True), (3, False), (2, False), (1, False)]
    problem(await client.post("/v1/gates/phase/rollback", json={"version": 4}), 404, "definition_not_found")
    assert (await client.post("/v1/gates/phase/rollback", json={"version": 2})).json()["version"] == 5
    assert (await client.get("/v1/gates/phase")).json()["definition"]["description"] == "Other"
    problem(await client.get("/v1/gates/none/versions"), 404, "definition_not_found")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"members": []}, "members"),
        ({"members": ["a", "a"]}, "members[1]"),
        ({"members": "everybody"}, "members"),
        ({"name": "other"}, "name"),
        ({"colour": "red"}, "colour"),
        ({"success": {"status": [{"numeric": [">", "x"]}]}}, "success.status[0].numeric[1]"),
        ({"aggregate": {"n": {"how": "guess"}}}, "aggregate.n.how"),
        ({"aggregate": {"n": {"how": "jsonata", "expression": "(("}}}, "aggregate.n.expression"),
        ({"trigger": [{"job": NEXT, "signal": {}}]}, "trigger[0]"),
        ({"trigger": [{"signal": {"jobId": "{% (( %}", "name": "go"}}]}, "trigger[0].signal.jobId"),
        ({"trigger": [{"webhook": {"url": "https://x.example", "secret": "hunter2"}}]}, "trigger[0].webhook.secret"),
        ({"deadline": -1}, "deadline"),
        ({"onFailure": "panic"}, "onFailure"),
    ],
)
async def test_a_bad_definition_names_the_field(site: Site, change: dict[str, Any], field: str) -> None:
    client = await site.admin()
    found = problem(await client.put("/v1/gates/phase", json=GATE | change), 422, "invalid_input")
    assert found["field"] == field
    assert "hunter2" not in str(found)
    if "name" not in change:
        query = "mutation($d: JSON!) { defineGate(definition: $d) { version } }"
        error = await refused(client, query, d=GATE | change | {"name": "phase"})
        assert error["extensions"]["field"] == field
    problem(await client.get("/v1/gates/phase"), 404, "definition_not_found")


async def test_what_is_not_a_definition(site: Site) -> None:
    client = await site.admin()
    json_body = {"Content-Type": "application/json"}
    problem(await client.put("/v1/gates/phase"), 400, "malformed_body")
    problem(await client.put("/v1/gates/phase", content=b"{", headers=json_body), 400, "malformed_body")
    problem(await client.put("/v1/gates/phase", json=[]), 422, "invalid_input")
    problem(await client.put("/v1/gates/-phase", json=GATE), 422, "invalid_input")
    problem(await client.post("/v1/gates/phase/rollback", json={"version": 0}), 422, "invalid_input")
    problem(await client.put("/v1/gates/phase?expectedVersion=-1", json=GATE), 422, "invalid_input")


async def test_two_who_save_at_once_both_get_a_version(site: Site) -> None:
    client = await site.admin()
    given = [GATE | {"description": f"d{number}"} for number in range(10)]
    answers = await asyncio.gather(*[client.put("/v1/gates/phase", json=one) for one in given])
    assert [answer.status_code for answer in answers] == [200] * 10
    assert sorted(answer.json()["version"] for answer in answers) == list(range(1, 11))


# --- by hand, and at run time --------------------------------------------------------------------------------------


async def test_opened_by_hand_and_reset(site: Site) -> None:
    client = await defined(site)
    problem(await client.post(f"{DAY}/open", json={"reason": "hurry"}), 404, "gate_key_not_found")
    problem(await client.post(f"{DAY}/reset", json={}), 404, "gate_key_not_found")
    await arrive(client, "a", data={"n": 1})
    for body in ({}, {"reason": ""}, {"reason": None}, {"reason": "x" * 1025}):
        assert problem(await client.post(f"{DAY}/open", json=body), 422, "invalid_input")
    assert (await client.post(f"{DAY}/open", json={"reason": "c is down"})).json() == {"missing": ["b", "c"]}
    problem(await client.post(f"{DAY}/open", json={"reason": "again"}), 409, "not_possible")
    status = await triggered(client)
    assert (status["reason"], status["completedCount"]) == ("c is down", 1)
    assert status["openedBy"].startswith("key:")
    late = await arrive(client, "b")
    assert (late["outcome"], late["completedCount"], late["expectedCount"]) == ("late", 1, 3)
    old = (await client.post(f"{DAY}/reset", json={"reason": "wrong data"})).json()["jobId"]
    assert old == late["jobId"]
    problem(await client.get(DAY), 404, "gate_key_not_found")
    assert (await arrive(client, "a"))["jobId"] != old
    log = (await client.get("/v1/audit-log")).json()["entries"]
    assert [(e["action"], e["target"]) for e in log if e["action"] in ("gates.open", "gates.reset")][:1] == [
        ("gates.reset", "phase/2025-11-29")
    ]


async def test_members_given_at_run_time(site: Site) -> None:
    client = await defined(site, members="dynamic")
    problem(await client.post(f"{DAY}/arrivals", json={"member": "x"}), 409, "gate_not_frozen")
    body = {"members": ["x", {"name": "y"}], "correlationId": "c-9"}
    assert (await client.post(f"{DAY}/freeze", json=body)).json()["created"]
    assert not (await client.post(f"{DAY}/freeze", json=body)).json()["created"]
    problem(await client.post(f"{DAY}/freeze", json={"members": ["z"]}), 409, "gate_frozen")
    found = problem(await client.post(f"{DAY}/freeze", json={"members": ["z", "z"]}), 422, "invalid_input")
    assert found["field"] == "members[1]"
    assert (await arrive(client, "x"))["expectedCount"] == 2
    assert (await arrive(client, "y"))["opened"]
    assert (await client.get("/v1/jobs?name=next&correlationId=c-9")).status_code == 200
    assert (await client.post("/v1/gates/phase/nobody/freeze", json={"members": []})).json()["created"]
    assert (await triggered(client, "/v1/gates/phase/nobody"))["expectedCount"] == 0
    await defined(site, "fixed")
    found = problem(await client.post("/v1/gates/fixed/k/freeze", json={"members": ["x"]}), 422, "invalid_input")
    assert found["field"] == "members"


async def test_keys_come_in_pages_with_how_they_stand(site: Site) -> None:
    client = await defined(site, onFailure="fail")
    for day in range(1, 8):
        await arrive(client, "a", f"/v1/gates/phase/2025-11-0{day}")
    await client.post("/v1/gates/phase/2025-11-02/open", json={"reason": "hurry"})
    await arrive(client, "b", "/v1/gates/phase/2025-11-03", status="error")
    seen: list[dict[str, Any]] = []
    cursor = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = (await client.get("/v1/gates/phase/keys", params={"limit": 3, **more})).json()
        seen += page["keys"]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert [key["key"] for key in seen] == [f"2025-11-0{day}" for day in range(7, 0, -1)]
    stands = {key["key"][-1]: (key["status"], key["completedCount"], key["expectedCount"]) for key in seen}
    assert stands["1"] == ("waiting", 1, 3)
    assert stands["2"] == ("open", 1, 3)
    assert stands["3"] == ("failed", 1, 3)
    problem(await client.get("/v1/gates/phase/keys?cursor=none"), 422, "invalid_input")
    problem(await client.get("/v1/gates/none/keys"), 404, "definition_not_found")


# --- GraphQL -------------------------------------------------------------------------------------------------------


async def test_the_same_by_graphql(site: Site) -> None:
    client = await site.admin()
    define = "mutation($d: JSON!, $v: Int) { defineGate(definition: $d, expectedVersion: $v) { name version } }"
    made = await ask(client, define, d=GATE | {"name": "phase"}, v=0)
    assert made["defineGate"] == {"name": "phase", "version": 1}
    assert (await refused(client, define, d=GATE | {"name": "phase"}, v=0))["extensions"]["status"] == 409
    arriving = """mutation($member: ID!, $data: JSON) {
      arrive(gate: "phase", key: "a/b", member: $member, data: $data, correlationId: "c-1") {
        outcome opened jobId completedCount expectedCount } }"""
    one = (await ask(client, arriving, member="a", data={"n": 1}))["arrive"]
    assert (one["outcome"], one["opened"], one["completedCount"], one["expectedCount"]) == ("arrived", False, 1, 3)
    error = await refused(client, arriving, member="x", data={})
    assert (error["extensions"]["code"], error["extensions"]["field"]) == ("unknown_member", "member")
    found = await ask(
        client,
        """{ gates { name version description createdAt } gate(name: "phase") { version definition }
             none: gate(name: "none") { version } nobody: gateStatus(gate: "phase", key: "z") { status }
             gateKeys(gate: "phase", first: 1) { nodes { key status completedCount } pageInfo { endCursor } }
             gateStatus(gate: "phase", key: "a/b") {
               status missing sentence arrived { member status success arrivedAt correlationId recordCount } } }""",
    )
    assert found["gates"][0]["description"] == "All of the day"
    assert found["gate"]["definition"]["members"] == [{"name": "a"}, {"name": "b"}, {"name": "c"}]
    assert (found["none"], found["nobody"]) == (None, None)
    (node,) = found["gateKeys"]["nodes"]
    assert node == {"key": "a/b", "status": "waiting", "completedCount": 1}
    assert found["gateKeys"]["pageInfo"]["endCursor"]
    assert found["gateStatus"]["missing"] == ["b", "c"]
    assert found["gateStatus"]["arrived"][0]["correlationId"] == "c-1"
    opened = await ask(client, 'mutation { openGate(gate: "phase", key: "a/b", reason: "hurry") }')
    assert opened == {"openGate": ["b", "c"]}
    error = await refused(client, 'mutation { openGate(gate: "phase", key: "a/b", reason: "") }')
    assert error["extensions"]["field"] == "reason"
    reset = await ask(client, 'mutation { resetGate(gate: "phase", key: "a/b", reason: "wrong") }')
    assert reset == {"resetGate": one["jobId"]}
    await ask(client, define, d=GATE | {"name": "dyn", "members": "dynamic"})
    freeze = 'mutation { freezeGate(gate: "dyn", key: "k", members: ["x", {name: "y"}]) { created } }'
    assert (await ask(client, freeze))["freezeGate"]["created"]
    assert not (await ask(client, freeze))["freezeGate"]["created"]
    assert await ask(client, 'mutation { removeGate(name: "dyn") }') == {"removeGate": "dyn"}
    assert (await refused(client, 'mutation { removeGate(name: "dyn") }'))["extensions"]["status"] == 404
    assert (await refused(client, '{ gate(name: "\\u0000") { version } }'))["extensions"]["field"] == "name"


# --- who may -------------------------------------------------------------------------------------------------------


async def test_a_producer_reports_but_does_not_define(site: Site) -> None:
    await defined(site)
    producer = site.client(await site.key("jobs:write"))
    author = site.client(await site.key("config:write"))
    problem(await producer.put("/v1/gates/phase", json=GATE), 403, "forbidden")
    assert (await arrive(producer, "a"))["outcome"] == "arrived"
    problem(await producer.get(DAY), 403, "forbidden")
    problem(await author.post(f"{DAY}/arrivals", json={"member": "b"}), 403, "forbidden")
    assert (await author.put("/v1/gates/phase", json=GATE)).status_code == 200


async def test_gates_of_other_tenants_are_not_there(site: Site) -> None:
    owner, stranger = await defined(site), await site.admin("other")
    await arrive(owner, "a")
    before = (await owner.get(DAY)).json()
    assert (await stranger.get("/v1/gates")).json()["gates"] == []
    reason = {"reason": "mine"}
    for method, path, body in (
        ("GET", "/v1/gates/phase", None),
        ("DELETE", "/v1/gates/phase", None),
        ("GET", "/v1/gates/phase/versions", None),
        ("POST", "/v1/gates/phase/rollback", {"version": 1}),
        ("GET", "/v1/gates/phase/keys", None),
        ("GET", DAY, None),
        ("POST", f"{DAY}/arrivals", {"member": "b"}),
        ("POST", f"{DAY}/open", reason),
        ("POST", f"{DAY}/reset", reason),
        ("POST", f"{DAY}/freeze", {"members": []}),
    ):
        answer = await stranger.request(method, path, **({} if body is None else {"json": body}))
        assert answer.status_code == 404, f"{method} {path}: {answer.text}"
    own = await stranger.put("/v1/gates/phase", json=GATE | {"members": ["mine"], "trigger": []})
    assert own.json()["version"] == 1
    assert (await arrive(stranger, "mine"))["opened"]
    assert (await owner.get(DAY)).json() == before


# --- several servers -----------------------------------------------------------------------------------------------


async def test_21_at_once_through_two_servers_open_it_once(url: str) -> None:
    members = [f"processor-{number}" for number in range(21)]
    made = test_server.run(url, "keys", "create", "--scopes", "admin", "--json")
    headers = {"Authorization": f"Bearer {json.loads(made)['key']}"}
    flags = ("--requests-per-second", "100000")
    with test_server.serving(url, *flags) as (_, first), test_server.serving(url, *flags) as (_, second):
        async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
            gate = {"members": members, "trigger": [{"signal": {"jobId": "watcher", "name": "{% key %}"}}]}
            idle = {"jobId": "watcher", "tasks": [{"taskId": "a", "name": "x", "external": True}]}
            assert (await client.post(f"{first}/v1/jobs", json=idle)).status_code == 201
            assert (await client.put(f"{first}/v1/gates/phase", json=gate)).status_code == 200

            async def report(key: str, number: int) -> dict[str, Any]:
                address = (first, second)[number % 2]
                body = {"member": members[number % 21]}
                answer = await client.post(f"{address}/v1/gates/phase/{key}/arrivals", json=body)
                assert answer.status_code == 200, answer.text
                return answer.json()

            for key in ("2025-11-29", "2025-11-30"):  # each member at both servers
                answers = await asyncio.gather(*[report(key, number) for number in range(42)])
                assert sum(answer["opened"] for answer in answers) == 1
                assert sorted(answer["outcome"] for answer in answers) == ["arrived"] * 21 + ["duplicate"] * 21
                assert len({answer["jobId"] for answer in answers}) == 1
                for address in (first, second):
                    status = (await client.get(f"{address}/v1/gates/phase/{key}")).json()
                    assert (status["status"], status["completedCount"]) == ("open", 21)

            async def signals() -> bool:
                found = (await client.get(f"{second}/v1/jobs/watcher/events")).json()["events"]
                return len([e for e in found if e["type"] == "Signal Received"]) == 2

            await until(signals, "the signals")


# --- external tasks ------------------------------------------------------------------------------------------------


async def test_external_tasks_end_from_outside(site: Site) -> None:
    client = await site.admin()
    document = {
        "tasks": [
            {"taskId": "a", "name": "approve", "external": True},
            {"taskId": "b", "name": "echo", "dependsOn": ["a"], "input": {"x": 1}},
            {"taskId": "c", "name": "approve", "external": True},
        ]
    }
    job_id = await support.submitted(client, document)
    path = f"/v1/jobs/{job_id}/tasks"
    for _ in range(2):
        done = await client.post(f"{path}/a/complete", json={"output": {"by": "ann"}})
        assert (done.status_code, done.json()) == (200, {"state": "completed"})
    assert (await client.get(f"{path}/a")).json()["output"] == {"by": "ann"}
    problem(await client.post(f"{path}/a/fail", json={"message": "no"}), 409, "not_possible")
    problem(await client.post(f"{path}/none/complete", json={}), 404, "task_not_found")
    problem(await client.post(f"{path}/c/fail", json={}), 422, "invalid_input")
    failed = 'mutation($id: ID!) { failTask(jobId: $id, taskId: "c", message: "lost", errorType: "Lost") }'
    assert await ask(client, failed, id=job_id) == {"failTask": "failed"}
    ended = await support.ended(client, job_id)
    assert ended["state"] == "failed"
    error = (await client.get(f"{path}/c")).json()["task"]["error"]
    assert (error["type"], error["message"]) == ("Lost", "lost")
    problem(await client.post(f"{path}/b/complete", json={}), 409, "not_possible")
    gate = await defined(site)
    member = (await arrive(gate, "a"))["jobId"]
    found = problem(await client.post(f"/v1/jobs/{member}/tasks/b/complete", json={}), 409, "not_possible")
    assert "report to the gate" in found["detail"]
    completed = 'mutation($id: ID!) { completeTask(jobId: $id, taskId: "a", output: 7) }'
    other = await support.submitted(client, {"tasks": document["tasks"][:1]})
    assert await ask(client, completed, id=other) == {"completeTask": "completed"}
    assert (await client.get(f"/v1/jobs/{other}/tasks/a")).json()["output"] == 7


# --- numbers -------------------------------------------------------------------------------------------------------


async def test_what_gates_and_rules_do_is_counted(site: Site) -> None:
    client = await defined(site, members=["a", "b"], trigger=[])
    rule = {"pattern": {"source": ["shop"]}, "targets": [{"job": NEXT | {"tasks": support.ONE["tasks"]}}]}
    await client.put("/v1/rules/shop", json=rule)
    for member in ("a", "a", "b"):
        await arrive(client, member)
    await arrive(client, "a", "/v1/gates/phase/k")
    await client.post("/v1/gates/phase/k/open", json={"reason": "hurry"})
    await defined(site, "dyn", members="dynamic", trigger=[])
    await client.post("/v1/gates/dyn/k/freeze", json={"members": []})
    for _ in range(2):
        await client.post("/v1/events", json={"id": "1", "source": "shop", "detail-type": "Sold"})

    async def fired() -> bool:
        return number(await read_metrics(client), "ostinato_rule_firings_total", state="completed") == 1

    await until(fired, "the rule")
    found = await read_metrics(client)
    assert number(found, "ostinato_gate_arrivals_total", outcome="arrived") == 3
    assert number(found, "ostinato_gate_arrivals_total", outcome="duplicate") == 1
    assert number(found, "ostinato_gates_opened_total") == 3
    assert number(found, "ostinato_outside_events_total", outcome="recorded") == 1
    assert number(found, "ostinato_outside_events_total", outcome="duplicate") == 1


async def test_e13_a_gate_that_could_not_put_its_reports_together_says_why(site: Site) -> None:
    """E13: over HTTP and GraphQL, with the job to resume."""
    client = await defined(site, members=["a"], aggregate={"n": {"how": "jsonata", "expression": "$error('no luck')"}})
    job_id = (await arrive(client, "a"))["jobId"]

    async def failed() -> dict[str, Any] | None:
        found = (await client.get(DAY)).json()
        return found if found["status"] == "failed" else None

    found = await until(failed, "the gate has failed")
    assert (found["jobId"], found["error"]["type"]) == (job_id, "ExpressionFailed")
    assert found["error"]["message"] in found["sentence"]
    query = '{ gateStatus(gate: "phase", key: "2025-11-29") { status jobId error sentence } }'
    answer = (await ask(client, query))["gateStatus"]
    assert answer == {name: found[name] for name in ("status", "jobId", "error", "sentence")}
    [key] = (await client.get("/v1/gates/phase/keys")).json()["keys"]
    assert key["status"] == "failed"
