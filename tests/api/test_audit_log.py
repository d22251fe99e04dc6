"""Whatever is changed over HTTP is in the audit log, with the key that changed it."""

from __future__ import annotations

import asyncio

from tests.api.support import ONE, Site, problem, submitted
from tests.engine.support import job, task

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
