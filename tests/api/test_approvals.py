"""Approvals over HTTP and GraphQL: who decides is who the key says, and the answers are the same."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.api.support import Site, ended, problem, submitted
from tests.api.test_graphql import ask, refused
from tests.engine.support import job, task, until

DECIDE = "approvals:decide"


def asking(task_id: str = "ok", after: str = "", **asked: Any) -> dict[str, Any]:
    return task(task_id, "review", after, approval={"title": "Publish it?"} | asked, input={"text": "draft"})


async def reviewer(site: Site, name: str, *scopes: str, tenant: str = "default") -> tuple[httpx2.AsyncClient, str]:
    made = await site.home.engine.store.create_key(tenant, name, scopes or ("jobs:read", DECIDE))
    return site.client(made.text), f"key:{made.key.key_id}"


async def waits(client: httpx2.AsyncClient, job_id: str, task_id: str = "ok") -> None:
    async def look() -> bool:
        return (await client.get(f"/v1/approvals/{job_id}/{task_id}")).status_code == 200

    await until(look)


async def test_from_the_request_to_the_decision(site: Site) -> None:
    admin = await site.admin()
    ann, ann_id = await reviewer(site, "ann")
    bob, bob_id = await reviewer(site, "bob")
    asked = asking(after="a", quorum=2, allowEdit=True, approvers=["ann", bob_id], notSubmitter=True)
    job_id = await submitted(admin, job(task("a", input={"n": 1}), asked, task("b", "join", "ok")))
    path = f"/v1/approvals/{job_id}/ok"
    await waits(ann, job_id)
    [listed] = (await ann.get("/v1/approvals", params={"approver": "me"})).json()["approvals"]
    shown = (await ann.get(path)).json()
    assert (shown["approval"], shown["outputs"]) == (listed, {"a": {"n": 1}})
    assert (listed["title"], listed["payload"], listed["asked"]) == ("Publish it?", {"text": "draft"}, ["ann", bob_id])
    assert (await admin.get("/v1/approvals", params={"approver": "me"})).json()["approvals"] == []
    problem(await admin.post(f"{path}/decision", json={"decision": "approve"}), 403, "not_an_approver")
    body = {"decision": "approve", "notes": "better so", "payload": {"text": "edited"}, "version": listed["version"]}
    first = (await ann.post(f"{path}/decision", json=body)).json()
    assert first == {"state": "waiting", "again": False, "approvals": 1, "quorum": 2, "taskState": "waiting"}
    problem(await bob.post(f"{path}/decision", json=body), 409, "approval_decided")
    again = (await ann.post(f"{path}/decision", json={"decision": "approve"})).json()
    assert again["again"]
    done = (await bob.post(f"{path}/decision", json={"decision": "approve"})).json()
    assert (done["state"], done["taskState"]) == ("approve", "completed")
    output = (await admin.get(f"/v1/jobs/{job_id}/tasks/ok")).json()["output"]
    assert output["reviewedBy"] == [ann_id, bob_id]
    assert (output["payload"], output["reviewNotes"]) == ({"text": "edited"}, ["better so"])
    page = (await ann.get("/v1/approvals", params={"state": "any", "jobId": job_id})).json()
    assert [one["state"] for one in page["approvals"]] == ["approve"]
    entries = (await admin.get("/v1/audit-log", params={"action": "approvals.decide"})).json()["entries"]
    assert entries[-1]["target"] == f"{job_id}/ok"
    assert [one["outcome"] for one in entries].count("refused") == 4  # two orders, each with the entry that refuses it
    assert len(entries) == 7
    assert {entry["details"].get("decision") for entry in entries} == {"approve", None}  # None: of those that refuse


async def test_what_is_refused(site: Site) -> None:
    admin = await site.admin()
    job_id = await submitted(admin, job(asking(), task("plain")))
    path = f"/v1/approvals/{job_id}/ok/decision"
    reader, _ = await reviewer(site, "reader", "jobs:read", "jobs:write")
    problem(await reader.post(path, json={"decision": "approve"}), 403, "forbidden")
    ann, _ = await reviewer(site, "ann")
    problem(await ann.post(path, json={"decision": "publish"}), 422, "invalid_input")
    problem(await ann.post(path, json={"decision": "approve", "payload": None}), 422, "invalid_input")
    problem(await ann.post(path, json={"decision": "approve", "actor": "eve"}), 422, "invalid_input")
    problem(await ann.get(f"/v1/approvals/{job_id}/plain"), 404, "approval_not_found")
    problem(await ann.post(f"/v1/approvals/{job_id}/none/decision", json={"decision": "x"}), 404, "task_not_found")
    other, _ = await reviewer(site, "ann", tenant="other")
    problem(await other.post(path, json={"decision": "approve"}), 404, "job_not_found")
    problem(await other.get(f"/v1/approvals/{job_id}/ok"), 404, "approval_not_found")
    assert (await other.get("/v1/approvals", params={"state": "any"})).json()["approvals"] == []
    bad = asking(quorum=2, approvers=["ann"])
    found = problem(await admin.post("/v1/jobs", json=job(bad)), 422, "invalid_input")
    assert "approval of task 'ok': quorum is 2 and only 1 may decide" in found["detail"]


async def test_pages(site: Site) -> None:
    admin = await site.admin()
    jobs = [await submitted(admin, job(asking(f"t{n}"))) for n in range(3)]
    first = (await admin.get("/v1/approvals", params={"limit": 2})).json()
    rest = (await admin.get("/v1/approvals", params={"cursor": first["nextCursor"]})).json()
    assert [one["jobId"] for one in first["approvals"] + rest["approvals"]] == jobs
    assert rest["nextCursor"] is None
    found = (await admin.get("/metrics")).text
    assert 'ostinato_approvals_waiting{tenant="default"} 3.0' in found
    assert 'ostinato_approvals_oldest_seconds{tenant="default"}' in found


async def test_over_graphql(site: Site) -> None:
    admin = await site.admin()
    ann, ann_id = await reviewer(site, "ann")
    asked = {"title": "Publish it?", "escalate": {"after": 60, "to": ["boss"]}, "decisions": ["approve", "again"]}
    made = await ask(
        admin,
        "mutation($job: JobInput!) { submit(job: $job) { jobId } }",
        job={"tasks": [{"taskId": "ok", "name": "review", "approval": asked, "input": {"n": 1}}]},
    )
    job_id = made["submit"]["jobId"]
    listed = await ask(
        ann,
        """query($job: ID!) {
          approvals(filter: {approver: "me"}) { nodes { jobId taskId title payload dueAt } pageInfo { hasNextPage } }
          approval(jobId: $job, taskId: "ok") { approval { version decisions made { by } } outputs }
          none: approval(jobId: $job, taskId: "no") { outputs }
        }""",
        job=job_id,
    )
    [node] = listed["approvals"]["nodes"]
    assert (node["jobId"], node["title"], node["payload"]) == (job_id, "Publish it?", {"n": 1})
    assert node["dueAt"] is not None
    assert listed["approval"] == {
        "approval": {"version": 3, "decisions": ["approve", "again"], "made": []},
        "outputs": {},
    }
    assert listed["none"] is None
    decide = """mutation($job: ID!, $what: String!) {
      decide(jobId: $job, taskId: "ok", decision: $what, notes: "thin", version: 3) { state again taskState }
    }"""
    error = await refused(ann, decide, job=job_id, what="reject")
    assert (error["extensions"]["code"], error["extensions"]["field"]) == ("invalid_input", "decision")
    done = await ask(ann, decide, job=job_id, what="again")
    assert done["decide"] == {"state": "again", "again": False, "taskState": "completed"}
    after = await ask(
        ann,
        """query { approvals(filter: {state: "any"}) { nodes { state made { by decision notes edited } } } }""",
    )
    [one] = after["approvals"]["nodes"]
    assert one == {
        "state": "again",
        "made": [{"by": ann_id, "decision": "again", "notes": "thin", "edited": False}],
    }


async def test_to_go_around_an_approval_takes_the_scope_to_decide(site: Site) -> None:
    """S-1: by HTTP and GraphQL, to skip and to cancel, also of the question whether the tenant may spend more."""
    admin = await site.admin()
    worker = site.client(await site.key("jobs:read", "jobs:write"))
    both, both_id = await reviewer(site, "both", "jobs:read", "jobs:write", DECIDE)
    job_id = await submitted(admin, job(asking(), asking("other", approvers=["both"]), task("b", "join", "ok other")))
    await waits(admin, job_id)
    path = f"/v1/jobs/{job_id}/tasks/ok/skip"
    found = problem(await worker.post(path, json={}), 403, "forbidden")
    assert found["scope"] == DECIDE
    for field in ("skip", "cancelTask"):
        mutation = f'mutation {{ {field}(jobId: "{job_id}", taskId: "ok") }}'
        assert (await refused(worker, mutation))["extensions"]["code"] == "forbidden"
    problem(await admin.post(f"/v1/jobs/{job_id}/tasks/other/skip", json={}), 403, "not_an_approver")
    assert (await admin.get(f"/v1/jobs/{job_id}/tasks/b")).json()["task"]["state"] == "blocked"
    assert (await both.post(path, json={"reason": "by phone"})).json() == {"state": "skipped"}
    answer = await ask(both, f'mutation {{ skip(jobId: "{job_id}", taskId: "other") }}')
    assert answer["skip"] == "skipped"
    await ended(admin, job_id)
    approvals = (await admin.get("/v1/approvals", params={"state": "any", "jobId": job_id})).json()["approvals"]
    assert [[made["by"] for made in one["made"]] for one in approvals] == [[both_id], [both_id]]
    entries = (await admin.get("/v1/audit-log", params={"action": "tasks.skip", "actor": both_id})).json()["entries"]
    assert len(entries) == 2
