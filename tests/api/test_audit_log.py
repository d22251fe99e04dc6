"""Whatever is changed over HTTP is in the audit log, with the key that changed it."""

from __future__ import annotations

import asyncio

import pytest

from ostinato import views
from ostinato.api import audited, routing
from ostinato.api.graphql import schema
from tests.api import test_access
from tests.api.support import ONE, Site, problem, submitted
from tests.api.test_graphql import literal
from tests.engine.support import job, task

UNCHANGING = ("GET", "HEAD", "OPTIONS", routing.WEBSOCKET)
IDLE = job(task("a", "nobody-has-this"), task("b", "nobody-has-this"))


async def test_what_a_key_did_is_in_the_log(site: Site) -> None:
    key = await site.key("jobs:read", "jobs:write")
    client, admin = site.client(key), await site.admin()
    job_id = await submitted(client, IDLE)
    await client.post(f"/v1/jobs/{job_id}/tasks", json={"tasks": [task("c", "nobody-has-this")]})
    await client.post(f"/v1/jobs/{job_id}/signals/go", json={"payload": "not for the log"})
    await client.post(f"/v1/jobs/{job_id}/tasks/a/skip", json={"reason": "done by hand"})
    await client.post(f"/v1/jobs/{job_id}/cancel", json={}, headers={"X-Request-Id": "req-7"})
    await client.post(f"/v1/jobs/{job_id}/resume", json={"dryRun": True})
    await client.post(f"/v1/jobs/{job_id}/resume", json={})
    await client.post("/v1/dead-letters/redrive", json={"all": True})
    answer = (await admin.get("/v1/audit-log")).json()
    assert [(e["action"], e["target"]) for e in reversed(answer["entries"])] == [
        ("jobs.submit", job_id),
        ("jobs.addTasks", job_id),
        ("jobs.signal", job_id),
        ("tasks.skip", f"{job_id}/a"),
        ("jobs.cancel", job_id),
        ("jobs.resume", job_id),
        ("deadLetters.redrive", ""),
    ]
    key_id = key.split("_")[1]
    assert {e["actor"] for e in answer["entries"]} == {f"key:{key_id}"}
    assert [e["requestId"] for e in answer["entries"] if e["action"] == "jobs.cancel"] == ["req-7"]
    assert "not for the log" not in str(answer)
    assert answer["nextBefore"] is None
    assert (await site.home.verify_audit_log()).problem is None


# --- nothing is forgotten ------------------------------------------------------------------------------------------


def changing() -> list[str]:
    """Every route that may change something, as `METHOD path`."""
    return [f"{method} {r.path}" for r in test_access.routes() for method in r.methods if method not in UNCHANGING]


def mutations() -> list[str]:
    kind = schema.build().mutation_type
    assert kind is not None
    return list(kind.fields)


def test_every_way_to_change_something_is_recorded_or_says_why_not() -> None:
    assert sorted([*audited.ROUTES, *audited.NOT_RECORDED]) == sorted(changing())
    assert sorted(audited.MUTATIONS) == sorted(mutations())


@pytest.mark.parametrize("name", [*audited.ROUTES, *audited.NOT_RECORDED])
async def test_a_route_records_its_action_even_if_it_is_refused(site: Site, name: str) -> None:
    admin = await site.admin()
    (route,) = [r for r in test_access.routes() for method in r.methods if f"{method} {r.path}" == name]
    made = await site.home.submit(IDLE)
    if route.path == "/v1/work/leave":
        worker = {"workerId": "some-worker", "functions": [{"name": "print"}]}
        await admin.post("/v1/work/register", json=worker)
    before = len(await site.home.audit_log())
    answer = await test_access.ask(admin, route, made.job_id)
    after = await site.home.audit_log()
    new = after[: len(after) - before]
    assert [entry.action for entry in new if entry.refuses is None] == (
        [audited.ROUTES[name]] if name in audited.ROUTES else []
    )
    check_outcomes(new, answer.json()["code"] if new and answer.status_code >= 400 else None)


def check_outcomes(entries: list[views.AuditEntryView], error: str | None) -> None:
    """B8: a refused order is in the log as refused, with why."""
    assert {entry.outcome for entry in entries} <= {"accepted" if error is None else "refused"}
    orders = [entry.seq for entry in entries if entry.refuses is None]
    told = [(entry.refuses, entry.details) for entry in entries if entry.refuses is not None]
    assert told == ([] if error is None else [(seq, {"error": error}) for seq in orders])


MUTATIONS = """
mutation submit { submit(job: {name: "m", tasks: [{taskId: "a", name: "nobody-has-this"}]}) { jobId } }
mutation submitMany { submitMany(jobs: [{tasks: [{taskId: "a", name: "nobody-has-this"}]}]) { jobId } }
mutation addTasks { addTasks(jobId: "idle", tasks: [{taskId: "c", name: "nobody-has-this"}]) }
mutation resume { resume(jobId: "idle") { rerun } }
mutation cancel { cancel(jobId: "idle") }
mutation signal { signal(jobId: "idle", name: "go") }
mutation publishStatus { publishStatus(input: {jobId: "idle", status: "fine"}) { status } }
mutation retry { retry(jobId: "idle", taskId: "a") }
mutation skip { skip(jobId: "idle", taskId: "a") }
mutation cancelTask { cancelTask(jobId: "idle", taskId: "a") }
mutation redrive { redrive(input: {all: true}) { count } }
mutation decide { decide(jobId: "idle", taskId: "a", decision: "approve") { state } }
mutation completeTask { completeTask(jobId: "idle", taskId: "a") }
mutation failTask { failTask(jobId: "idle", taskId: "a", message: "lost") }
mutation defineGate { defineGate(definition: {name: "go", members: ["a"]}) { version } }
mutation removeGate { removeGate(name: "go") }
mutation arrive { arrive(gate: "go", key: "k", member: "a") { outcome } }
mutation openGate { openGate(gate: "go", key: "k", reason: "hurry") }
mutation resetGate { resetGate(gate: "go", key: "k") }
mutation freezeGate { freezeGate(gate: "go", key: "k", members: []) { created } }
mutation defineRule { defineRule(definition: {name: "r", pattern: {a: [1]}, targets: [{job: {tasks: "{%t%}"}}]}) {name}}
mutation removeRule { removeRule(name: "go") }
mutation rollBackGate { rollBackGate(name: "go", version: 1) { version } }
mutation rollBackRule { rollBackRule(name: "go", version: 1) { version } }
mutation defineAgent { defineAgent(definition: {name: "a", kind: "function", function: "f", outputSchema: S}) { name } }
mutation removeAgent { removeAgent(name: "go") }
mutation rollBackAgent { rollBackAgent(name: "go", version: 1) { version } }
mutation defineGraph { defineGraph(definition: {name: "g", edges: [{from: "a", to: "b"}]}) { version } }
mutation removeGraph { removeGraph(name: "go") }
mutation rollBackGraph { rollBackGraph(name: "go", version: 1) { version } }
mutation definePlaybook { definePlaybook(definition: {name: "p", domain: "d", type: "query", agents: ["a"]}) { name } }
mutation removePlaybook { removePlaybook(name: "go") }
mutation rollBackPlaybook { rollBackPlaybook(name: "go", version: 1) { version } }
mutation definePipeline { definePipeline(definition: P) { version } }
mutation removePipeline { removePipeline(name: "go") }
mutation rollBackPipeline { rollBackPipeline(name: "go", version: 1) { version } }
mutation setJobBudget { setJobBudget(jobId: "j", budget: 1) { jobId } }
mutation setBudget { setBudget(day: 1) { day } }
mutation setRetention { setRetention(jobs: 1) { jobs } }
mutation setRetryPolicy { setRetryPolicy(pipeline: "go", step: "work", retry: {}) { changed } }
mutation resetRetryPolicy { resetRetryPolicy(pipeline: "go", step: "work") { changed } }
mutation enterItems { enterItems(pipeline: "go", items: [{}]) { created } }
mutation processItems { processItems(pipeline: "go") { itemId } }
mutation restartItem { restartItem(itemId: "i") { run } }
mutation decideItem { decideItem(itemId: "i", decision: "approve") { state } }
mutation moveItem { moveItem(itemId: "i", status: "new") { status } }
mutation rollBackItem { rollBackItem(itemId: "i") { status } }
mutation migrateItem { migrateItem(itemId: "i", version: 1) { version } }
mutation bulkItems { bulkItems(pipeline: "go", input: {action: "restart", dryRun: false}) { matched } }
mutation ingest { ingest(domainId: "d", data: 1) { jobId } }
mutation query { query(domainId: "d", data: 1) { jobId } }
mutation postEvents { postEvents(events: {specversion: "1.0", source: "shop", id: "1", type: "Sold"}) { id } }
mutation createKey { createKey(name: "night", scopes: ["jobs:read"]) { text } }
mutation revokeKey { revokeKey(keyId: "0123456789abcdef") }
""".replace("outputSchema: S", 'outputSchema: {type: "object", properties: {value: {}}}').replace(
    "definition: P", f"definition: {literal(test_access.PIPELINE | {'name': 'p'})}"
)


@pytest.mark.parametrize("name", audited.MUTATIONS)
async def test_a_mutation_records_its_action_even_if_it_is_refused(site: Site, name: str) -> None:
    await site.home.submit(IDLE | {"jobId": "idle"})
    admin = await site.admin()
    (query,) = [line for line in MUTATIONS.splitlines() if line.startswith(f"mutation {name} ")]
    answer = (await admin.post("/graphql", json={"query": query})).json()
    entries = await site.home.audit_log()
    assert [entry.action for entry in entries if entry.refuses is None] == [audited.MUTATIONS[name]]
    check_outcomes(entries, answer["errors"][0]["extensions"]["code"] if "errors" in answer else None)


async def test_who_registered_a_worker_is_in_the_log(site: Site) -> None:
    key = await site.key("tasks:work")
    functions = [{"name": f"{number:03}" + "\x01" * 197} for number in range(80)]  # as long as they can be
    body = {"functions": functions, "host": "\x01" * 255, "queues": [f"{number:0128}" for number in range(100)]}
    answer = await site.client(key).post("/v1/work/register", json=body)
    assert answer.status_code == 201, answer.text
    (entry,) = await site.home.audit_log()
    assert (entry.actor, entry.target) == (f"key:{key.split('_')[1]}", answer.json()["workerId"])
    assert entry.details["functions"] == [functions[0]["name"]]
    assert entry.details["functionCount"] == 80
    assert entry.details["queues"] == [f"{number:0128}" for number in range(15)]


async def test_the_log_comes_in_pages_and_only_to_admins(site: Site) -> None:
    admin = await site.admin()
    for _ in range(3):
        await submitted(admin, ONE)
    first = (await admin.get("/v1/audit-log?limit=2")).json()
    rest = (await admin.get(f"/v1/audit-log?limit=2&before={first['nextBefore']}")).json()
    assert [len(first["entries"]), len(rest["entries"])] == [2, 1]
    reader = site.client(await site.key("jobs:read", "jobs:write", "config:write"))
    problem(await reader.get("/v1/audit-log"), 403, "forbidden")
    other = await site.admin("other")
    assert (await other.get("/v1/audit-log")).json()["entries"] == []


async def test_many_at_once_make_one_chain(site: Site) -> None:
    admin = await site.admin()
    await asyncio.gather(*[submitted(admin, IDLE) for _ in range(40)])
    verdict = await site.home.verify_audit_log()
    assert (verdict.entries, verdict.problem) == (40, None)
