"""Rules over HTTP and GraphQL: saved in versions, tried out without consequences, refused with the field."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api import test_server
from tests.api.support import Site, problem
from tests.api.test_graphql import ask, refused
from tests.engine.support import until
from tests.outgoing import support as web

RULE: dict[str, Any] = {
    "description": "Ship what is sold",
    "pattern": {"source": ["shop"], "detail-type": ["Sold"], "detail": {"price": [{"numeric": [">", 100]}]}},
    "targets": [
        {
            "job": {
                "name": "ship",
                "idempotencyKey": "{% 'ship-' & detail.order %}",
                "tasks": [{"taskId": "t", "name": "echo", "input": {"order": "{% detail.order %}"}}],
            }
        }
    ],
}
SOLD = {"id": "1", "source": "shop", "detail-type": "Sold", "detail": {"price": 120, "order": "A17"}}


async def defined(site: Site, name: str = "ship", **fields: Any) -> httpx2.AsyncClient:
    client = await site.admin()
    answer = await client.put(f"/v1/rules/{name}", json=RULE | fields)
    assert answer.status_code == 200, answer.text
    return client


async def shipped(client: httpx2.AsyncClient, count: int = 1, name: str = "ship") -> list[dict[str, Any]]:
    """The jobs that rules have started, once there are so many."""

    async def look() -> list[dict[str, Any]] | None:
        found = (await client.get(f"/v1/jobs?name={name}")).json()["jobs"]
        return found if len(found) >= count and all(job["state"] == "completed" for job in found) else None

    return await until(look, "the jobs of the rule")


async def test_a_rule_acts_on_what_happens(site: Site) -> None:
    client = await defined(site)
    cheap = SOLD | {"id": "2", "detail": {"price": 1, "order": "B1"}}
    answer = await client.post("/v1/events", json=[SOLD, cheap, SOLD])
    assert [event["outcome"] for event in answer.json()["events"]] == ["recorded", "recorded", "duplicate"]
    (job,) = await shipped(client)
    assert (await client.get(f"/v1/jobs/{job['jobId']}/tasks/t")).json()["output"] == {"order": "A17"}
    fired = (await client.get("/v1/jobs?name=rule:ship")).json()["jobs"]
    assert len(fired) == 1


async def test_a_rule_acts_on_the_engines_own_events(site: Site) -> None:
    pattern = {"source": ["ostinato"], "detail-type": ["Job Completed"], "detail": {"jobName": ["order"]}}
    target = {
        "job": {"name": "after", "tasks": [{"taskId": "t", "name": "echo", "input": {"of": "{% detail.jobId %}"}}]}
    }
    client = await defined(site, "after", pattern=pattern, targets=[target])
    order = {"jobId": "order-1", "name": "order", "tasks": [{"taskId": "a", "name": "echo"}]}
    assert (await client.post("/v1/jobs", json=order)).status_code == 201
    (job,) = await shipped(client, name="after")
    assert (await client.get(f"/v1/jobs/{job['jobId']}/tasks/t")).json()["output"] == {"of": "order-1"}


async def test_definitions_have_versions(site: Site) -> None:
    client = await defined(site)
    assert (await client.put("/v1/rules/ship", json=RULE)).json() == {"name": "ship", "version": 1}
    off = RULE | {"enabled": False}
    assert (await client.put("/v1/rules/ship?expectedVersion=1", json=off)).json()["version"] == 2
    problem(await client.put("/v1/rules/ship?expectedVersion=1", json=RULE), 409, "not_possible")
    (listed,) = (await client.get("/v1/rules")).json()["rules"]
    assert (listed["name"], listed["version"], listed["enabled"]) == ("ship", 2, False)
    assert listed["description"] == "Ship what is sold"
    assert (await client.post("/v1/rules/match", json=SOLD)).json() == {"rules": []}
    assert (await client.post("/v1/rules/ship/rollback", json={"version": 1})).json()["version"] == 3
    assert (await client.post("/v1/rules/match", json=SOLD)).json() == {"rules": ["ship"]}
    assert (await client.get("/v1/rules/ship")).json()["definition"]["pattern"] == RULE["pattern"]
    assert (await client.get("/v1/rules/ship?version=2")).json()["definition"]["enabled"] is False
    assert (await client.delete("/v1/rules/ship")).json() == {"name": "ship"}
    problem(await client.get("/v1/rules/ship"), 404, "definition_not_found")
    problem(await client.post("/v1/rules/ship/rollback", json={"version": 9}), 404, "definition_not_found")
    versions = (await client.get("/v1/rules/ship/versions")).json()["versions"]
    assert [(v["version"], v["removed"]) for v in versions] == [(4, True), (3, False), (2, False), (1, False)]


async def test_trying_out_changes_nothing(site: Site) -> None:
    client = await defined(site)
    await defined(site, "all", pattern={"source": [{"exists": True}]})
    own = {"source": "ostinato", "detail-type": "Job Completed", "detail": {}}
    cloud = {"specversion": "1.0", "id": "1", "source": "shop", "type": "Sold", "data": {"price": 500}}
    entry = {"Source": "shop", "DetailType": "Sold", "Detail": '{"price": 99}'}
    for event, names in ((SOLD, ["all", "ship"]), (own, ["all"]), (cloud, ["all", "ship"]), (entry, ["all"])):
        assert (await client.post("/v1/rules/match", json=event)).json() == {"rules": names}
    found = problem(await client.post("/v1/rules/match", json={"source": "shop"}), 422, "invalid_input")
    assert found["field"] == "event.detail-type"
    checked = await client.post("/v1/rules/check", json=RULE)
    assert checked.json()["definition"]["targets"] == RULE["targets"]
    found = problem(await client.post("/v1/rules/check", json=RULE | {"pattern": {"a": []}}), 422, "invalid_input")
    assert found["field"] == "pattern.a"
    assert (await client.get("/v1/rules")).json()["rules"][0]["name"] == "all"
    assert len((await client.get("/v1/rules")).json()["rules"]) == 2
    assert (await client.get("/v1/jobs")).json()["jobs"] == []
    posted = (await client.post("/v1/events", json=SOLD)).json()["events"]
    assert [event["outcome"] for event in posted] == ["recorded"]  # trying it out did not record it


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"pattern": {"detail": {"price": [{"numeric": [">", "x"]}]}}}, "pattern.detail.price[0].numeric[1]"),
        ({"pattern": {"source": "shop"}}, "pattern.source"),
        ({"pattern": None}, "pattern"),
        ({"targets": []}, "targets"),
        ({"targets": [{}]}, "targets[0]"),
        ({"targets": [{"job": {"tasks": [{"taskId": "t"}]}}]}, "targets[0].job.tasks[0].name"),
        ({"targets": [{"job": {"tasks": [{"taskId": "t", "name": "{% (( %}"}]}}]}, "targets[0].job.tasks[0].name"),
        ({"targets": [{"gate": {"name": "no name", "key": "k", "member": "m"}}]}, "targets[0].gate.name"),
        ({"targets": [{"webhook": {"url": "ftp://example.com"}}]}, "targets[0].webhook.url"),
        ({"name": "other"}, "name"),
        ({"enabled": "yes"}, "enabled"),
    ],
)
async def test_a_bad_definition_names_the_field(site: Site, change: dict[str, Any], field: str) -> None:
    client = await site.admin()
    found = problem(await client.put("/v1/rules/ship", json=RULE | change), 422, "invalid_input")
    assert found["field"] == field
    problem(await client.get("/v1/rules/ship"), 404, "definition_not_found")


async def test_the_same_by_graphql(site: Site) -> None:
    client = await site.admin()
    define = "mutation($d: JSON!, $v: Int) { defineRule(definition: $d, expectedVersion: $v) { name version } }"
    made = await ask(client, define, d=RULE | {"name": "ship"})
    assert made["defineRule"] == {"name": "ship", "version": 1}
    assert (await refused(client, define, d=RULE))["extensions"]["field"] == "name"
    assert (await refused(client, define, d=RULE | {"name": "ship"}, v=7))["extensions"]["code"] == "not_possible"
    found = await ask(
        client,
        """{ rules { name version enabled description } rule(name: "ship", version: 1) { version definition }
             none: rule(name: "none") { version } }""",
    )
    assert found["rules"] == [{"name": "ship", "version": 1, "enabled": True, "description": "Ship what is sold"}]
    assert found["rule"]["definition"]["targets"] == RULE["targets"]
    assert found["none"] is None
    post = "mutation($e: JSON!) { postEvents(events: $e) { id source outcome } }"
    assert (await ask(client, post, e=SOLD))["postEvents"] == [{"id": "1", "source": "shop", "outcome": "recorded"}]
    assert [e["outcome"] for e in (await ask(client, post, e=[SOLD]))["postEvents"]] == ["duplicate"]
    error = await refused(client, post, e=[{"source": "shop"}])
    assert error["extensions"]["field"] == "events[0].detail-type"
    post = "mutation($e: JSON!) { postEvents(events: $e) { outcome code detail field } }"
    _, wrong = (await ask(client, post, e=[SOLD, {"source": "shop"}]))["postEvents"]
    assert (wrong["outcome"], wrong["code"], wrong["field"]) == ("refused", "invalid_input", "events[1].detail-type")
    await shipped(client)
    assert await ask(client, 'mutation { removeRule(name: "ship") }') == {"removeRule": "ship"}
    assert (await refused(client, 'mutation { removeRule(name: "ship") }'))["extensions"]["status"] == 404


async def test_who_may(site: Site) -> None:
    await defined(site)
    reader, author = site.client(await site.key("jobs:read")), site.client(await site.key("config:write"))
    problem(await reader.put("/v1/rules/ship", json=RULE), 403, "forbidden")
    problem(await author.post("/v1/events", json=SOLD), 403, "forbidden")
    assert (await reader.post("/v1/rules/match", json=SOLD)).json() == {"rules": ["ship"]}
    assert (await reader.post("/v1/rules/check", json=RULE)).status_code == 200
    stranger = await site.admin("other")
    assert (await stranger.get("/v1/rules")).json()["rules"] == []
    assert (await stranger.post("/v1/rules/match", json=SOLD)).json() == {"rules": []}
    for method, path, body in (
        ("GET", "/v1/rules/ship", None),
        ("DELETE", "/v1/rules/ship", None),
        ("GET", "/v1/rules/ship/versions", None),
        ("POST", "/v1/rules/ship/rollback", {"version": 1}),
    ):
        answer = await stranger.request(method, path, **({} if body is None else {"json": body}))
        assert answer.status_code == 404, answer.text
    await stranger.post("/v1/events", json=SOLD)
    owner = await site.admin()
    assert (await owner.get("/v1/jobs?name=rule:ship")).json()["jobs"] == []
    assert [e["outcome"] for e in (await owner.post("/v1/events", json=SOLD)).json()["events"]] == ["recorded"]
    await shipped(owner)


# --- webhooks, as the command line allows them ---------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_server_calls_those_whom_it_may_call(
    url: str, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "default.SHOP").write_text("a secret of the shop\n")
    monkeypatch.setenv("OSTINATO_SECRETS_DIR", str(tmp_path))
    flags = ("--webhooks", "--webhook-network", "127.0.0.1/32") if allowed else ()
    async with web.running() as called, httpx2.AsyncClient(timeout=60) as client:
        with test_server.serving(url, *flags) as (_, address):
            rule = {
                "pattern": {"source": ["shop"]},
                "targets": [{"webhook": {"url": called.url, "secret": "secret://SHOP", "body": "{% detail %}"}}],
            }
            assert (await client.put(f"{address}/v1/rules/call", json=rule)).status_code == 200
            assert (await client.post(f"{address}/v1/events", json=SOLD)).status_code == 200

            async def done() -> bool:
                letters = (await client.get(f"{address}/v1/dead-letters")).json()["deadLetters"]
                if letters:
                    assert "--webhooks" in letters[0]["error"]["message"]
                return bool(called.requests) if allowed else bool(letters)

            await until(done, "the call")
            if allowed:
                (request,) = called.requests
                assert request.body == b'{"price":120,"order":"A17"}'
                assert request.headers["webhook-signature"].startswith("v1,")
            else:
                assert called.requests == []


@pytest.mark.parametrize("command", ["server", "worker", "dev"])
def test_a_network_that_is_none_is_told_at_once(sqlite_url: str, command: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from ostinato import Ostinato\napp = Ostinato()\n")
    application = () if command == "server" else (os.fspath(tmp_path / "shop.py"),)
    reload = ("--no-reload",) if command == "dev" else ()
    said = test_server.run(sqlite_url, command, *application, *reload, "--webhook-network", "10.0.0.0/99", code=2)
    assert "10.0.0.0/99" in said
