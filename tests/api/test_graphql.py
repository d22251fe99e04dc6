"""GraphQL: the same answers, refusals and limits as over HTTP."""

from __future__ import annotations

import json
from typing import Any, cast

import httpx2
import pytest
from graphql import GraphQLObjectType

from ostinato.api import access, routing
from ostinato.api.graphql import permissions, schema
from ostinato.core import scopes
from tests.api import support
from tests.api.support import Site
from tests.api.test_access import PIPELINE
from tests.engine.support import job, task


async def post(client: httpx2.AsyncClient, query: str, **variables: Any) -> dict[str, Any]:
    answer = await client.post("/graphql", json={"query": query, "variables": variables})
    assert answer.status_code in (200, 400), answer.text
    return answer.json()


async def ask(client: httpx2.AsyncClient, query: str, **variables: Any) -> Any:
    found = await post(client, query, **variables)
    assert "errors" not in found, found
    return found["data"]


async def refused(client: httpx2.AsyncClient, query: str, **variables: Any) -> dict[str, Any]:
    found = await post(client, query, **variables)
    (error,) = found["errors"]
    return error


SUBMIT = "mutation($job: JobInput!) { submit(job: $job) { jobId created } }"


async def test_a_job_from_its_submission_to_its_end(site: Site) -> None:
    client = await site.admin()
    made = await ask(client, SUBMIT, job=job(task("a"), task("b", "echo", "a")) | {"tags": {"shop": "main"}})
    job_id = made["submit"]["jobId"]
    assert made["submit"]["created"]
    await support.ended(client, job_id)
    found = await ask(
        client,
        """query($id: ID!) {
          job(jobId: $id) {
            state name tags totalTasks createdAt
            tasks(first: 1) { nodes { taskId state detail { output attempts { outcome } steps { key } }
                                      why { code details } }
                              pageInfo { hasNextPage endCursor } }
            events(first: 3) { nodes { type seq } pageInfo { hasNextPage endCursor } }
          }
          task(jobId: $id, taskId: "b") { state detail { dependsOn } }
          missing: job(jobId: "never-was") { name }
        }""",
        id=job_id,
    )
    shown = found["job"]
    assert (shown["state"], shown["tags"], shown["totalTasks"]) == ("completed", {"shop": "main"}, 2)
    assert shown["createdAt"].endswith("Z")
    (node,) = shown["tasks"]["nodes"]
    assert node["taskId"] == "a"
    assert node["detail"]["attempts"] == [{"outcome": "completed"}]
    assert node["why"]["code"] == "ended"
    assert node["why"]["details"]["at"].endswith("Z")
    assert shown["tasks"]["pageInfo"] == {"hasNextPage": True, "endCursor": "0"}
    assert [event["seq"] for event in shown["events"]["nodes"]] == [1, 2, 3]
    assert shown["events"]["pageInfo"]["endCursor"] == "3"
    assert found["task"] == {"state": "completed", "detail": {"dependsOn": ["a"]}}
    assert found["missing"] is None


async def test_pages_and_filters(site: Site) -> None:
    client = await site.admin()
    ids = [await support.submitted(client, support.ONE | {"name": f"n{i % 2}"}) for i in range(5)]
    query = """query($after: String, $filter: JobFilter) {
      jobs(first: 2, after: $after, filter: $filter) { nodes { jobId } pageInfo { hasNextPage endCursor } } }"""
    seen: list[str] = []
    after = None
    while True:
        found = (await ask(client, query, after=after))["jobs"]
        seen += [node["jobId"] for node in found["nodes"]]
        after = found["pageInfo"]["endCursor"]
        if not found["pageInfo"]["hasNextPage"]:
            break
    assert seen == ids[::-1]
    found = await ask(client, query, filter={"name": "n1", "createdFrom": "2020-01-01T00:00:00Z"})
    assert [node["jobId"] for node in found["jobs"]["nodes"]] == [ids[3], ids[1]]
    error = await refused(client, query, filter={"createdFrom": "yesterday"})
    assert "2026-01-31T12:00:00Z" in error["message"]


async def test_the_fleet_the_feed_and_dead_letters(site: Site) -> None:
    client = await site.admin()
    job_id = await support.submitted(client, job(task("a", "break")))
    await support.ended(client, job_id)
    found = await ask(
        client,
        """{ functions { name retry { maxAttempts } } workers { workerId alive queues }
             deadLetterDepth { depth threshold alarm }
             deadLetters { nodes { jobId taskId error attempts } }
             events(first: 2) { nodes { type cursor jobName } pageInfo { endCursor } } }""",
    )
    assert {"name": "echo", "retry": {"maxAttempts": 1}} in found["functions"]
    assert found["workers"][0]["alive"]
    assert found["deadLetterDepth"] == {"depth": 1, "threshold": 10, "alarm": False}
    (letter,) = found["deadLetters"]["nodes"]
    assert (letter["jobId"], letter["taskId"], letter["error"]["message"]) == (job_id, "a", "broken")
    assert found["events"]["nodes"][1]["cursor"] == found["events"]["pageInfo"]["endCursor"]
    redrive = "mutation($input: RedriveInput!) { redrive(input: $input) { dryRun count letters { taskId } } }"
    found = await ask(client, redrive, input={"all": True, "dryRun": True})
    assert found["redrive"] == {"dryRun": True, "count": 1, "letters": [{"taskId": "a"}]}


async def test_orders(site: Site) -> None:
    client = await site.admin()
    job_id = await support.submitted(client, job(task("a", "break"), task("b", "nobody-has-this")))
    await support.support.until(lambda: _failed(client, job_id), "the failure")
    found = await ask(
        client,
        """mutation($id: ID!) {
          addTasks(jobId: $id, tasks: [{taskId: "c", name: "nobody-has-this", input: {x: null}}])
          publishStatus(input: {jobId: $id, status: "validating", message: "two of three"}) { jobId status message }
          signal(jobId: $id, name: "go", payload: {fine: true})
          skip(jobId: $id, taskId: "b", reason: "not needed")
          retry(jobId: $id, taskId: "a", input: {message: "again"})
          cancel(jobId: $id, reason: "enough")
        }""",
        id=job_id,
    )
    assert found["addTasks"] == ["c"]
    assert found["publishStatus"] == {"jobId": job_id, "status": "validating", "message": "two of three"}
    assert found["signal"] is False
    assert found["skip"] == "skipped"
    assert found["cancel"] == "cancelled"
    plan = await ask(client, "mutation($id: ID!) { resume(jobId: $id, dryRun: true) { rerun reused } }", id=job_id)
    assert plan["resume"]["rerun"]
    assert (await client.get(f"/v1/jobs/{job_id}")).json()["state"] == "cancelled"


async def _failed(client: httpx2.AsyncClient, job_id: str) -> bool:
    return bool((await client.get(f"/v1/jobs/{job_id}")).json()["failureDetectedAt"])


async def test_errors_have_the_codes_of_http_and_nothing_inside(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await site.admin()
    error = await refused(client, 'mutation { cancel(jobId: "never-was") }')
    assert error["extensions"] == {"status": 404, "code": "job_not_found", "jobId": "never-was"}
    error = await refused(client, SUBMIT, job={"tasks": [{"taskId": "a", "name": "echo", "dependsOn": ["a"]}]})
    assert error["extensions"]["status"] == 422
    error = await refused(client, "{ nothing }")
    assert error["extensions"]["code"] == "bad_request"
    error = await refused(client, "{ jobs(first: 501) { nodes { jobId } } }")
    assert error["extensions"]["field"] == "first"

    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("/etc/secret: SELECT")

    monkeypatch.setattr(type(site.home), "dead_letter_depth", broken)
    error = await refused(client, "{ deadLetterDepth { depth } }")
    assert error["extensions"]["code"] == "internal"
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("{ " + "job(jobId: 1) { name } " * 400 + "}", "tokens"),
        ("{ a: " + "b { " * 10 + "c" + " }" * 10 + " }", "nested"),
        ("{ ...f } fragment f on Query { " + "b { " * 10 + "c" + " }" * 10 + " }", "nested"),
        ("{ " + " ".join(f'a{i}: job(jobId: "x") {{ name }}' for i in range(16)) + " }", "aliases"),
        ("{ jobs(first: 500) { nodes { tasks(first: 3) { nodes { name } } } } }", "cost"),
        ("query($n: Int! = 500) { jobs(first: $n) { nodes { tasks(first: $n) { nodes { name } } } } }", "cost"),
        ("{ jobs(first: 200) { nodes { ...t } } } fragment t on Job { tasks { nodes { why { code } } } }", "cost"),
    ],
)
async def test_a_query_that_asks_for_too_much(site: Site, query: str, said: str) -> None:
    found = await post(await site.admin(), query)
    assert "data" not in found or found["data"] is None
    assert any(said in error["message"] for error in found["errors"]), found


async def test_no_batches_and_no_other_methods(site: Site) -> None:
    client = await site.admin()
    answer = await client.post("/graphql", json=[{"query": "{ deadLetterDepth { depth } }"}])
    assert answer.status_code == 400
    assert (await client.get("/graphql?query={__typename}")).status_code in (404, 405)
    found = await post(client, 'subscription { jobStatus(jobId: "x") { status } }')
    assert found["errors"]


async def test_the_schema_is_for_those_who_are_let_in(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "REMEMBERED_SECONDS", 0.0)
    query = "{ __schema { types { name } } }"
    assert (await ask(site.client(), query))["__schema"]["types"]  # no key yet: this machine
    key = await site.key("tasks:work")
    assert (await site.client().post("/graphql", json={"query": query})).status_code == 401
    assert (await ask(site.client(key), query))["__schema"]["types"]


def test_every_field_has_a_scope() -> None:
    made = schema.build()
    for kind, needed in permissions.NEEDED.items():
        assert cast("GraphQLObjectType", made.type_map[kind]).fields.keys() == needed.keys()


def literal(value: Any) -> str:
    """A value as GraphQL writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {literal(item)}" for name, item in value.items()) + "}"
    return "[" + ", ".join(map(literal, value)) + "]" if isinstance(value, list) else json.dumps(value)


ARGUMENTS = {
    "queues": "{ ready }",
    "waiting": "{ tasks }",
    "functionNumbers": '(since: "2026-01-01T00:00:00Z") { name }',
    "keys": "{ keyId }",
    "job": '(jobId: "x") { name }',
    "jobs": "{ nodes { name } }",
    "task": '(jobId: "x", taskId: "a") { name }',
    "events": "{ nodes { type } }",
    "functions": "{ name }",
    "workers": "{ host }",
    "deadLetters": "{ nodes { name } }",
    "deadLetterDepth": "{ depth }",
    "approvals": "{ nodes { title } }",
    "approval": '(jobId: "x", taskId: "a") { outputs }',
    "decide": '(jobId: "x", taskId: "a", decision: "approve") { state }',
    "executions": "{ nodes { agentName } }",
    "execution": '(arn: "arn:ostinato:states:local:default:execution:test:x") { agentName }',
    "executionCounts": '(by: "status") { count }',
    "results": "{ nodes { resultId } }",
    "result": '(resultId: "none") { resultId }',
    "search": '(q: "anything") { resultId }',
    "usage": "{ total { cost } }",
    "budget": "{ day }",
    "setJobBudget": '(jobId: "x", budget: 1) { budget }',
    "setBudget": "(day: 1000000) { day }",
    "retention": "{ jobs keys }",
    "setRetention": "(jobs: 1000000) { jobs }",
    "plan": '(job: {tasks: [{taskId: "a", name: "echo"}]}) { levels }',
    "submit": '(job: {tasks: [{taskId: "a", name: "echo"}]}) { jobId }',
    "submitMany": '(jobs: [{tasks: [{taskId: "a", name: "echo"}]}]) { jobId }',
    "addTasks": '(jobId: "x", tasks: [{taskId: "a", name: "echo"}])',
    "resume": '(jobId: "x") { rerun }',
    "cancel": '(jobId: "x")',
    "signal": '(jobId: "x", name: "go")',
    "retry": '(jobId: "x", taskId: "a")',
    "skip": '(jobId: "x", taskId: "a")',
    "cancelTask": '(jobId: "x", taskId: "a")',
    "createKey": '(name: "new", scopes: ["jobs:read"]) { text }',
    "revokeKey": '(keyId: "x")',
    "redrive": '(input: {letters: [{jobId: "x", taskId: "a"}]}) { count }',
    "publishStatus": '(input: {jobId: "x", status: "fine"}) { status }',
    "completeTask": '(jobId: "x", taskId: "a")',
    "failTask": '(jobId: "x", taskId: "a", message: "lost")',
    "gates": "{ name }",
    "gate": '(name: "x") { version }',
    "gateStatus": '(gate: "x", key: "k") { status }',
    "gateKeys": '(gate: "none") { nodes { key } }',
    "rules": "{ name }",
    "rule": '(name: "x") { version }',
    "defineGate": '(definition: {name: "y", members: ["a"]}) { version }',
    "removeGate": '(name: "x")',
    "arrive": '(gate: "x", key: "k", member: "a") { outcome }',
    "openGate": '(gate: "x", key: "k", reason: "hurry")',
    "resetGate": '(gate: "x", key: "k")',
    "freezeGate": '(gate: "x", key: "k", members: []) { jobId }',
    "defineRule": '(definition: {name: "y", pattern: {a: [1]}, targets: [{job: {tasks: "{% t %}"}}]}) { version }',
    "removeRule": '(name: "x")',
    "gateVersions": '(name: "x") { version }',
    "ruleVersions": '(name: "x") { version }',
    "rollBackGate": '(name: "x", version: 1) { version }',
    "rollBackRule": '(name: "x", version: 1) { version }',
    "agents": "{ name kind }",
    "agent": '(name: "x") { version }',
    "agentVersions": '(name: "x") { version }',
    "graphs": "{ name }",
    "graph": '(name: "x") { version }',
    "graphVersions": '(name: "x") { version }',
    "playbooks": "{ name agents }",
    "playbook": '(name: "x") { version }',
    "playbookVersions": '(name: "x") { version }',
    "playbookPlan": '(name: "x") { levels }',
    "defineAgent": """(definition: {name: "y", kind: "function", function: "echo",
      outputSchema: {type: "object", properties: {value: {}}}}) { version }""",
    "removeAgent": '(name: "x")',
    "rollBackAgent": '(name: "x", version: 1) { version }',
    "defineGraph": '(definition: {name: "y", edges: [{from: "a", to: "b"}]}) { version }',
    "removeGraph": '(name: "x")',
    "rollBackGraph": '(name: "x", version: 1) { version }',
    "definePlaybook": '(definition: {name: "y", domain: "e", type: "query", agents: ["y"]}) { version }',
    "removePlaybook": '(name: "x")',
    "rollBackPlaybook": '(name: "x", version: 1) { version }',
    "pipelines": "{ name steps }",
    "pipeline": '(name: "x") { version }',
    "pipelineVersions": '(name: "x") { version }',
    "pipelineMoves": '(name: "x") { mermaid }',
    "pipelineHealth": '(name: "x") { items }',
    "retryPolicies": '(pipeline: "x") { step }',
    "items": '(pipeline: "x") { nodes { itemId } }',
    "item": '(itemId: "x") { status }',
    "definePipeline": f"(definition: {literal(PIPELINE | {'name': 'y'})}) {{ version }}",
    "removePipeline": '(name: "x")',
    "rollBackPipeline": '(name: "x", version: 1) { version }',
    "setRetryPolicy": '(pipeline: "x", step: "work", retry: {}) { changed }',
    "resetRetryPolicy": '(pipeline: "x", step: "work") { changed }',
    "enterItems": '(pipeline: "x", items: [{itemId: "y"}]) { created }',
    "processItems": '(pipeline: "x") { itemId }',
    "restartItem": '(itemId: "x") { run }',
    "decideItem": '(itemId: "x", decision: "approve") { state }',
    "moveItem": '(itemId: "x", status: "new") { status }',
    "rollBackItem": '(itemId: "x") { status }',
    "migrateItem": '(itemId: "x", version: 1) { version }',
    "bulkItems": '(pipeline: "x", input: {action: "restart", dryRun: false}) { matched }',
    "ingest": '(domainId: "x", data: 1) { jobId }',
    "query": '(domainId: "x", data: 1) { jobId }',
    "postEvents": '(events: {specversion: "1.0", id: "1", source: "shop", type: "Sold"}) { outcome }',
}


@pytest.mark.parametrize("kind", ["Query", "Mutation"])
async def test_every_field_needs_its_scope_and_sees_nothing_of_others(site: Site, kind: str) -> None:
    owner = await site.admin()
    await support.submitted(owner, job(task("a", "nobody-has-this")) | {"jobId": "x"})
    await owner.put("/v1/gates/x", json={"members": ["a", "b"]})
    await owner.post("/v1/gates/x/k/arrivals", json={"member": "a"})
    await owner.put(
        "/v1/rules/x", json={"pattern": {"source": ["shop"]}, "targets": [{"signal": {"jobId": "j", "name": "go"}}]}
    )
    agent = {"kind": "function", "function": "echo", "outputSchema": {"type": "object", "properties": {"value": {}}}}
    await owner.put("/v1/agents/x", json=agent)
    await owner.put("/v1/graphs/x", json={"edges": [{"from": "x", "to": "y"}]})
    for kind_, name in (("ingestion", "x"), ("query", "z")):
        await owner.put(f"/v1/playbooks/{name}", json={"domain": "x", "type": kind_, "agents": ["x"]})
    await owner.put("/v1/pipelines/x", json=PIPELINE)
    await owner.post("/v1/pipelines/x/items", json={"itemId": "x", "hold": True})
    looks = (
        "/v1/items/x",
        "/v1/jobs",
        "/v1/jobs/x/events",
        "/v1/gates/x/k",
        *(
            f"/v1/{what}"
            for what in ("gates/x", "rules/x", "agents/x", "graphs/x", "playbooks/x", "playbooks/z", "pipelines/x")
        ),
    )
    before = [(await owner.get(path)).json() for path in looks]
    stranger = await site.admin("other")
    needed = {field: scope for field, scope in permissions.NEEDED[kind].items() if scope != routing.ANY}
    assert permissions.NEEDED[kind].keys() - needed.keys() <= {"viewer"}
    for field, scope in needed.items():
        query = f"{kind.lower()} {{ {field}{ARGUMENTS[field]} }}"
        others = [name for name in scopes.SCOPES if name not in (scope, scopes.ADMIN)]
        error = await refused(site.client(await site.key(*others)), query)
        assert error["extensions"] == {"scope": scope, "status": 403, "code": "forbidden"}, query
        found = await post(stranger, query)
        if '"x"' in query:
            if kind == "Query":
                assert found["data"][field] is None
            else:
                assert found["errors"][0]["extensions"]["status"] == 404, found
    assert [(await owner.get(path)).json() for path in looks] == before


async def test_what_operators_look_at(site: Site) -> None:
    client = await site.admin()
    job_id = await support.submitted(
        client,
        job(task("a"), task("b", "break", "a"), task("c", "echo", "b a"), task("d", "nobody-has-this"), name="night"),
    )
    await support.support.until(lambda: _failed(client, job_id), "the failure")
    found = await ask(
        client,
        """query($id: ID!) {
          viewer { tenant keyId name scopes }
          job(jobId: $id) { tasks(first: 3) { nodes { taskId dependsOn } } }
          task(jobId: $id, taskId: "c") { dependsOn }
          executions { nodes { jobId job { name } } }
          hours: executionCounts(by: "hour") { key count }
          queues { queue name ready oldestReadyAt }
          functionNumbers(since: "2026-01-01T00:00:00Z") { name completed failed retried seconds }
        }""",
        id=job_id,
    )
    assert (found["viewer"]["tenant"], found["viewer"]["scopes"]) == ("default", ["admin"])
    assert [node["dependsOn"] for node in found["job"]["tasks"]["nodes"]] == [[], ["a"], ["a", "b"]]
    assert found["task"] == {"dependsOn": ["a", "b"]}
    assert found["executions"]["nodes"] == [{"jobId": job_id, "job": {"name": "night"}}]
    (hour,) = found["hours"]
    assert hour["count"] == 1
    assert hour["key"].endswith(":00:00Z")
    (queue,) = found["queues"]
    assert (queue["queue"], queue["name"], queue["ready"]) == ("default", "nobody-has-this", 1)
    broken, echo = found["functionNumbers"]
    assert (broken["name"], broken["completed"], broken["failed"], broken["retried"]) == ("break", 0, 1, 0)
    assert (echo["name"], echo["completed"], echo["failed"]) == ("echo", 1, 0)
    assert 0 <= echo["seconds"] < 5
    assert (await ask(client, 'mutation($id: ID!) { cancelTask(jobId: $id, taskId: "d") }', id=job_id))[
        "cancelTask"
    ] == "cancelled"


async def test_what_waits_is_told_by_kind(site: Site) -> None:
    client = await site.admin()
    await support.submitted(
        client, job(task("a", external=True), task("b", "echo", delay=3600), task("c", external=True))
    )
    found = (await ask(client, "{ waiting { kind tasks nextDueAt } }"))["waiting"]
    assert [(one["kind"], one["tasks"], one["nextDueAt"] is None) for one in found] == [
        ("delay", 1, False),
        ("external", 2, True),
    ]


async def test_keys_are_made_and_revoked_by_admins_of_the_tenant(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "REMEMBERED_SECONDS", 0.0)
    admin = await site.admin()
    query = (
        'mutation($s: [String!]!) { createKey(name: "night", scopes: $s, expiresIn: 60) { text key { keyId state } } }'
    )
    made = (await ask(admin, query, s=["jobs:read"]))["createKey"]
    reader = site.client(made["text"])
    assert (await ask(reader, "{ viewer { name scopes keyId } }"))["viewer"] == {
        "name": "night",
        "scopes": ["jobs:read"],
        "keyId": made["key"]["keyId"],
    }
    assert (await refused(reader, "{ keys { name } }"))["extensions"]["code"] == "forbidden"
    revoke = "mutation($id: ID!) { revokeKey(keyId: $id) }"
    stranger = await site.admin("other")
    assert (await refused(stranger, revoke, id=made["key"]["keyId"]))["extensions"]["status"] == 404
    await ask(admin, revoke, id=made["key"]["keyId"])
    assert (await reader.post("/graphql", json={"query": "{ viewer { name } }"})).status_code == 401
    listed = (await ask(admin, "{ keys { name state scopes createdAt expiresAt revokedAt } }"))["keys"]
    assert [(one["name"], one["state"]) for one in listed] == [("night", "revoked"), ("test", "works")]
    assert made["text"] not in str(listed)
    assert (await refused(admin, query, s=["everything"]))["extensions"]["field"] == "scopes"
