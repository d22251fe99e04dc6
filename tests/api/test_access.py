"""Who gets in, and how far: every route, without a key, with too little a key, and with somebody else's ids."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

import ostinato
from ostinato import errors
from ostinato.api import access, routing, server
from ostinato.core import scopes
from tests.api import support, test_server
from tests.api.support import Site, problem
from tests.engine.support import job, task

HELD = {"workerId": "some-worker", "jobId": "{jobId}", "taskId": "{taskId}", "attempt": 1, "token": "some-worker.a.b"}
RULE = {"pattern": {"source": ["shop"]}, "targets": [{"signal": {"jobId": "some-job", "name": "go"}}]}
EVENT = {"source": "shop", "detail-type": "Sold"}
AGENT = {"kind": "function", "function": "echo", "outputSchema": {"type": "object", "properties": {"value": {}}}}
PLAYBOOK = {"domain": "d", "type": "query", "agents": ["a"]}
PIPELINE: dict[str, Any] = {
    "statuses": [
        {"code": code, "name": name} for code, name in enumerate(("new", "to", "doing", "done", "failed", "dead"), 1)
    ],
    "course": [{"status": "new"}, {"step": "work", "function": "echo", "statuses": ["to", "doing", "done"]}],
    "failed": "failed",
    "deadLetter": "dead",
}
BODIES: dict[str, Any] = {
    "/v1/jobs": support.ONE,
    "/v1/plans": support.ONE,
    "/v1/jobs/{jobId}/tasks": {"tasks": [task("b")]},
    "/v1/jobs/{jobId}/status": {"status": "fine"},
    "PUT /v1/jobs/{jobId}/budget": {"budget": 1},
    "/v1/jobs/{jobId}/tasks/{taskId}/fail": {"message": "lost"},
    "PUT /v1/gates/{name}": {"members": ["a"]},
    "/v1/gates/{name}/rollback": {"version": 1},
    "/v1/gates/{name}/{key}/arrivals": {"member": "a"},
    "/v1/gates/{name}/{key}/open": {"reason": "hurry"},
    "/v1/gates/{name}/{key}/freeze": {"members": []},
    "PUT /v1/rules/{name}": RULE,
    "/v1/rules/{name}/rollback": {"version": 1},
    "/v1/rules/match": EVENT,
    "/v1/rules/check": RULE,
    "PUT /v1/agents/{name}": AGENT,
    "PUT /v1/graphs/{name}": {"edges": [{"from": "a", "to": "b"}]},
    "PUT /v1/playbooks/{name}": PLAYBOOK,
    **{f"/v1/{kind}s/{{name}}/rollback": {"version": 1} for kind in ("agent", "graph", "playbook")},
    "PUT /v1/pipelines/{name}": PIPELINE,
    "/v1/pipelines/{name}/rollback": {"version": 1},
    "PUT /v1/pipelines/{name}/retry/{step}": {},
    "POST /v1/pipelines/{name}/items": {"itemId": "fresh", "hold": True},
    "/v1/pipelines/{name}/process": {},
    "/v1/pipelines/{name}/bulk": {"action": "restart", "dryRun": False},
    "/v1/items/{itemId}/restart": {},
    "/v1/items/{itemId}/decision": {"decision": "approve"},
    "/v1/items/{itemId}/move": {"status": "new"},
    "/v1/items/{itemId}/roll-back": {},
    "/v1/items/{itemId}/migrate": {"version": 1},
    "/process-queue": {"pipeline": "go"},
    "/enrich-item": {"itemId": "{itemId}"},
    "/enrich-single-step": {"itemId": "{itemId}", "step": "work"},
    "/ingest": {"domain_id": "d", "data": {}},
    "/query": {"domain_id": "d", "data": {}},
    "/v1/events": EVENT,
    "/v1/approvals/{jobId}/{taskId}/decision": {"decision": "approve"},
    "/v1/dead-letters/redrive": {"letters": [{"jobId": "{jobId}", "taskId": "{taskId}"}]},
    "/v1/index/definitions": {"stateMachineArn": "arn", "tags": {}},
    "/v1/work/register": {"functions": [{"name": "nobody-submits-this"}]},
    **{f"/v1/work/{verb}": {"workerId": "some-worker"} for verb in ("claim", "heartbeat", "leave")},
    **{f"/v1/work/{verb}": HELD for verb in ("complete", "fail", "release", "steps", "outputs")},
    "/v1/work/finish": HELD | {"status": "done"},
    "/v1/work/suspend": HELD | {"kind": "sleep", "key": "sleep", "seconds": 1},
    "/v1/work/step": HELD | {"key": "one"},
    "/v1/work/payload": HELD | {"digest": "00"},
    "/v1/work/add-tasks": HELD | {"key": "add_tasks", "tasks": [task("b")]},
}
ITEM = "some-item"
QUERIES = {"/v1/events/stream": "?cursor=none"}
"""A stream does not end by itself: one that is refused does."""


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look up keys each time, so that a test need not wait."""
    monkeypatch.setattr(access, "REMEMBERED_SECONDS", 0.0)


def routes() -> list[routing.Declared]:
    return [declared for group in server.ROUTES for declared in group.declared]


def guarded() -> list[routing.Declared]:
    """All but the public ones, and but sockets, which tests of their own walk over."""
    return [route for route in routes() if route.scope != routing.PUBLIC and routing.WEBSOCKET not in route.methods]


async def ask(client: Any, route: routing.Declared, job_id: str = "some-job", task_id: str = "a") -> Any:
    def fill(value: Any) -> Any:
        if isinstance(value, str):
            value = value.replace("{jobId}", job_id).replace("{taskId}", task_id)
            value = value.replace("{itemId}", ITEM).replace("{step}", "work")
            return value.replace("{name}", "go").replace("{key}", "2025-11-29")
        if isinstance(value, dict):
            return {name: fill(item) for name, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list) else value

    given = BODIES.get(f"{route.methods[0]} {route.path}", BODIES.get(route.path))
    body = {} if given is None else {"json": fill(given)}
    path = fill(route.path) + QUERIES.get(route.path, "")
    return await client.request(route.methods[0], path, **body)


# --- open mode ----------------------------------------------------------------------------------------------------


async def test_without_keys_this_machine_may_do_everything(site: Site) -> None:
    client = site.client()
    job_id = await support.submitted(client)
    assert (await client.get(f"/v1/jobs/{job_id}")).status_code == 200
    assert (await site.home.job(job_id)).job_id == job_id  # the tenant is that of the server itself


async def test_without_keys_nobody_else_gets_in(site: Site) -> None:
    for address in ("10.0.0.1", "203.0.113.7", "::ffff:10.0.0.1"):
        problem(await site.client(address=address).get("/v1/jobs"), 401, "unauthenticated")


async def test_the_first_key_closes_the_open_door_for_good_and_at_once(site: Site) -> None:
    """Not even for the seconds for which keys are remembered."""
    client = site.client()
    assert (await client.get("/v1/jobs")).status_code == 200
    made = await client.post(
        "/graphql", json={"query": 'mutation { createKey(name: "k", scopes: ["admin"]) { text } }'}
    )
    key = made.json()["data"]["createKey"]["text"]
    problem(await client.put("/v1/agents/evil", json=AGENT), 401, "unauthenticated")
    assert (await site.client(key).get("/v1/jobs")).status_code == 200
    await site.home.engine.store.revoke_key("default", key.split("_")[1])
    problem(await client.get("/v1/jobs"), 401, "unauthenticated")


async def test_the_first_key_of_another_process_closes_the_open_door_at_once(site: Site, url: str) -> None:
    assert (await site.client().get("/v1/jobs")).status_code == 200
    await asyncio.to_thread(test_server.run, url, "keys", "create", "--scopes", "jobs:read")
    problem(await site.client().get("/v1/jobs"), 401, "unauthenticated")


async def test_a_server_for_others_is_never_open(url: str) -> None:
    async with support.opened(url, host="0.0.0.0") as site:
        problem(await site.client().get("/v1/jobs"), 401, "unauthenticated")
        with pytest.raises(errors.UnsafeBind, match="keys create"):
            await server.check_bind(site.home, "0.0.0.0")
        await server.check_bind(site.home, "127.0.0.1")
        await site.key()
        await server.check_bind(site.home, "0.0.0.0")


# --- keys ---------------------------------------------------------------------------------------------------------


async def test_what_is_not_a_working_key_opens_nothing(site: Site) -> None:
    good = await site.key()
    _, key_id, secret = good.split("_")
    tried = ["", "ost", good[:-1], good + "0", f"ost_{key_id}_", f"ost_{'0' * 16}_{secret}", f"xyz_{key_id}_{secret}"]
    for text in tried:
        found = await site.client(text).get("/v1/jobs")
        problem(found, 401, "unauthenticated")
        assert found.headers["www-authenticate"] == "Bearer"
    for header in (f"Basic {good}", good, "Bearer", "Bearer \x01"):
        problem(await site.client(**{"Authorization": header}).get("/v1/jobs"), 401, "unauthenticated")
    assert (await site.client(**{"Authorization": f"bearer {good}"}).get("/v1/jobs")).status_code == 200


async def test_an_expired_key_opens_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    short = await site.key(expires_in=60)
    assert (await site.client(short).get("/v1/jobs")).status_code == 200
    database = site.home.engine.store.db
    later = database.now() + 61_000_000
    monkeypatch.setattr(database, "now", lambda: later)  # at once, while the key is still remembered
    problem(await site.client(short).get("/v1/jobs"), 401, "unauthenticated")


async def test_a_revoked_key_stops_within_five_seconds(site: Site) -> None:
    key = await site.key()
    client = site.client(key)
    assert (await client.get("/v1/jobs")).status_code == 200
    principal = await site.server.access.authenticate(key, "10.0.0.1")
    assert await site.server.access.still_valid(principal)
    await site.home.engine.store.revoke_key("default", key.split("_")[1])
    start = time.monotonic()
    while (await client.get("/v1/jobs")).status_code == 200:
        assert time.monotonic() - start < 5
        await asyncio.sleep(0.1)
    assert not await site.server.access.still_valid(principal)


async def test_use_is_noted(site: Site) -> None:
    key = await site.key()
    await site.client(key).get("/v1/jobs")
    await site.server.access.close()
    (found,) = await site.home.engine.store.keys("default")
    assert found.last_used_at is not None


async def test_history_names_the_key(site: Site) -> None:
    key = await site.key()
    client = site.client(key)
    job_id = await support.submitted(client, job(task("a", "nobody-has-this")))
    await client.post(f"/v1/jobs/{job_id}/cancel", json={"reason": "enough"})
    events = (await client.get(f"/v1/jobs/{job_id}/events")).json()["events"]
    actors = {event["type"]: event["properties"].get("actor") for event in events}
    assert actors["Job Created"] == actors["Job Cancelled"] == f"key:{key.split('_')[1]}"


# --- the walk over all routes --------------------------------------------------------------------------------------


def test_only_health_and_the_pages_are_public() -> None:
    assert {route.path for route in routes() if route.scope == routing.PUBLIC} == {
        "/",
        "/healthz",
        "/readyz",
        "/ui",
        "/ui/{path:path}",
    }
    assert len(guarded()) > 15


async def test_every_route_needs_a_key(site: Site) -> None:
    await site.key()
    client = site.client()
    for route in guarded():
        problem(await ask(client, route), 401, "unauthenticated")
    for path in (
        "/index.html",
        "/docs",
        "/openapi.json",
        "/v1",
        "/healthz/",
        "/v1/jobs/healthz",
        "/healthz/../v1/jobs",
        "http://localhost//healthz",
    ):
        problem(await client.get(path), 401, "unauthenticated")
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert (await client.request(method, "/healthz")).status_code == 401
        assert (await client.request(method, "/v1/nothing")).status_code == 401


async def test_every_route_needs_its_scope(site: Site) -> None:
    for route in guarded():
        if route.scope == routing.ANY:
            continue
        others = [scope for scope in scopes.SCOPES if scope not in (route.scope, scopes.ADMIN)]
        refused = problem(await ask(site.client(await site.key(*others)), route), 403, "forbidden")
        assert refused["scope"] == route.scope
        assert (await ask(site.client(await site.key(route.scope)), route)).status_code not in (401, 403)


async def test_every_id_of_another_tenant_is_not_there(site: Site) -> None:
    owner, stranger = await site.admin("default"), await site.admin("other")
    failing = await support.submitted(owner, job(task("a", "break")))
    await support.ended(owner, failing)
    before = (await owner.get(f"/v1/jobs/{failing}/events")).json()
    await owner.put("/v1/pipelines/items", json=PIPELINE)
    await owner.post("/v1/pipelines/items/items", json={"itemId": ITEM, "payload": "secret", "hold": True})
    item = (await owner.get(f"/v1/items/{ITEM}")).json()
    tried = 0
    for route in guarded():
        if "{itemId}" in route.path or "{itemId}" in str(BODIES.get(route.path)):
            problem(await ask(stranger, route), 404, "item_not_found")
            tried += 1
        if "{jobId}" in route.path or "{jobId}" in str(BODIES.get(route.path)):
            found = await ask(stranger, route, failing)
            assert found.status_code == 404, f"{route.methods} {route.path}: {found.text}"
            same = await ask(stranger, route, "never-was")
            assert same.status_code == 404
            assert same.json()["code"] == found.json()["code"]
            tried += 1
    assert tried > 16
    assert (await owner.get(f"/v1/jobs/{failing}/events")).json() == before
    assert (await owner.get(f"/v1/items/{ITEM}")).json() == item
    problem(await stranger.get("/v1/pipelines/items/items"), 404, "definition_not_found")
    for path, name in (("/v1/jobs", "jobs"), ("/v1/dead-letters", "deadLetters"), ("/v1/workers", "workers")):
        assert (await stranger.get(path)).json()[name] == []
        assert (await owner.get(path)).json()[name]


CLASSES = {name for module in (ostinato, errors) for name in dir(module) if name[0].isupper() and len(name) > 3}
PYTHON = re.compile(
    rf"\b(?:{'|'.join(sorted(CLASSES | {'JobSpec', 'TaskSpec', 'NoneType', 'None', 'True', 'False', 'Struct'}))}|"
    r"ServerOptions|Keyring|msgspec|pydantic|asyncio|Python|dicts?|app\.\w+|ctx\.\w+|\w+Error)\b"
)
PLAIN = {"Function", "Approval", "Retry", "Tool", "Price", "Usage", "Event", "Graph", "Task", "Gate", "Rule", "Worker"}
"""Words of the glossary that are also names of classes."""
WRONG: tuple[Any, ...] = ({}, [], 5, None, "x", {"unknown": 1}, {"tasks": 7, "name": [], "members": 1, "pattern": 1})


async def test_b9_errors_name_nothing_of_python(url: str) -> None:
    """B9: whoever speaks HTTP was told to use `EngineOptions(check_functions=False)`."""
    said: dict[str, str] = {}

    def collect(about: str, answer: Any) -> None:
        document = answer.json() if answer.content and "json" in answer.headers.get("content-type", "") else {}
        found = document.get("errors", [document] if "code" in document else []) if isinstance(document, dict) else []
        for told in found:
            for field in ("title", "detail", "message"):
                if text := told.get(field):
                    said[text] = about

    async with support.opened(url, engine={"check_functions": True}) as site:
        client = await site.admin()
        for route in guarded():
            collect(f"{route.methods[0]} {route.path}", await ask(client, route))
            path = route.path.replace("{", "").replace("}", "")
            for body in WRONG if route.methods[0] != "GET" else ():
                collect(f"{route.methods[0]} {path} {body}", await client.request(route.methods[0], path, json=body))
            collect(f"{path}?limit", await client.request(route.methods[0], f"{path}?limit=x&cursor=x&createdFrom=x"))
        unknown = job(task("a", "ecko"))
        collect("an unknown function", await client.post("/v1/jobs", json=unknown))
        submit = "mutation($job: JobInput!) { submit(job: $job) { jobId } }"
        for query, variables in (
            (submit, {"job": unknown}),
            (submit, {"job": {"tasks": []}}),
            (submit, {"job": {"tasks": 5}}),
            ('{ jobs(after: "x") { nodes { jobId } } }', {}),
            ('{ executionCounts(by: "week") { key } }', {}),
            ('mutation { cancel(jobId: "") }', {}),
            ('mutation { createKey(name: "", scopes: ["fly"]) { text } }', {}),
            ("{ nothing }", {}),
        ):
            collect(query, await client.post("/graphql", json={"query": query, "variables": variables}))
    assert len(said) > 60
    assert any("start a worker" in text for text in said)
    named = {text: about for text, about in said.items() if set(PYTHON.findall(text)) - PLAIN}
    assert named == {}


async def test_tenants_may_use_the_same_ids(site: Site) -> None:
    one, two = await site.admin("default"), await site.admin("other")
    document = support.ONE | {"jobId": "same", "idempotencyKey": "same"}
    for client in (one, two):
        assert (await client.post("/v1/jobs", json=document)).status_code == 201
    assert (await support.ended(one, "same"))["state"] == "completed"
    assert (await two.get("/v1/jobs/same")).json()["state"] == "running"  # its worker is yet to come


# --- how routes are made -------------------------------------------------------------------------------------------


def test_a_route_without_a_scope_cannot_be_made() -> None:
    made = routing.Routes()
    with pytest.raises(TypeError, match="scope"):
        made("GET", "/v1/free")  # pyright: ignore[reportCallIssue]
    for scope in ("", "jobs", "jobs:fly"):
        with pytest.raises(ValueError, match="scope"):
            made("GET", "/v1/free", scope=scope)
        with pytest.raises(ValueError, match="scope"):
            made.websocket("/v1/free", scope=scope)
    assert made.declared == []


async def test_a_public_route_must_be_on_the_list(site: Site) -> None:
    made = routing.Routes()

    @made("GET", "/v1/free", scope=routing.PUBLIC)
    async def free() -> dict[str, str]:
        return {}

    with pytest.raises(ValueError, match="public"):
        server.Server(site.home, site.server.options, [made])


async def test_a_whole_application_passes_the_same_guard(url: str) -> None:
    async def hello(scope: Any, receive: Any, send: Any) -> None:
        body = f"{scope['state']['principal'].tenant} {scope['state']['route'].name}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    made = routing.Routes()
    made.asgi("whole", "/v1/whole", hello, methods=("POST", routing.WEBSOCKET), scope=scopes.CONFIG_WRITE)

    @made("GET", "/v1/text", scope=scopes.JOBS_READ)
    async def text() -> PlainTextResponse:
        return PlainTextResponse("hello")

    async with support.opened(url, more=[made]) as site:
        reader, writer = site.client(await site.key("jobs:read")), site.client(await site.key("config:write"))
        problem(await site.client().post("/v1/whole"), 401, "unauthenticated")
        problem(await reader.post("/v1/whole"), 403, "forbidden")
        problem(await writer.get("/v1/whole"), 405, "method_not_allowed")
        problem(await reader.post("/v1/whole/below"), 404, "route_not_found")
        assert (await writer.post("/v1/whole")).text == "default whole"
        assert (await reader.get("/v1/text")).text == "hello"
        described = (await reader.get("/v1/openapi.json")).json()["paths"]
        assert described["/v1/text"]["get"]["responses"]["200"]["content"].keys() == {"text/plain"}


async def test_everything_that_is_served_is_in_the_table(site: Site) -> None:
    assert [route for route, _ in site.server.table.routes] == list(site.server.app.router.routes)
