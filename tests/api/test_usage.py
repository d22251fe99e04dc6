"""Usage and budgets over HTTP, GraphQL and Prometheus: the same answers, for who may and for nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Context
from tests.api import support
from tests.api.support import Site
from tests.api.test_graphql import ask, refused
from tests.engine.support import PATIENCE, job, reaches, task, until


async def spend(site: Site) -> Any:
    """A job that stops at its budget."""
    app = site.home

    async def pay(ctx: Context) -> None:
        await ctx.spend(0.4, 100, 20)

    if "pay" not in app.functions:
        app.function("pay")(pay)
        await app.engine.register()
    tasks = [task("a", "pay"), task("b", "pay", "a"), task("c", "pay", "b")]
    made = await app.submit(job(*tasks, jobId="paid", name="paying", budget=0.8))
    await reaches(made, "c", "waiting")
    return made


async def test_sums_and_budgets_over_http(site: Site) -> None:
    made = await spend(site)
    client = await site.admin()
    shown = (await client.get("/v1/jobs/paid")).json()
    assert (shown["spent"], shown["budget"]) == (0.8, 0.8)
    assert shown["usage"] == {"cost": 0.8, "calls": 2, "inputTokens": 200, "outputTokens": 40}
    detail = (await client.get("/v1/jobs/paid/tasks/a")).json()
    assert detail["attempts"][0]["usage"] == detail["usage"] == {
        "cost": 0.4, "calls": 1, "inputTokens": 100, "outputTokens": 20,
    }  # fmt: skip
    for by, key in (("name", "paying"), ("function", "pay")):
        found = (await client.get("/v1/usage", params={"by": by})).json()
        assert [(row["key"], row["cost"], row["calls"]) for row in found["rows"]] == [(key, 0.8, 2)]
    today = (await client.get("/v1/usage")).json()
    assert (today["rows"][0]["key"], today["by"], today["total"]["outputTokens"]) == (today["to"], "day", 40)
    assert (await client.get("/v1/usage", params={"from": "2000-01-01", "to": "2000-01-31"})).json()["rows"] == []

    raised = await client.put("/v1/jobs/paid/budget", json={"budget": 5})
    assert (raised.json()["budget"], raised.json()["state"]) == (5, "running")
    await made.result(PATIENCE)
    saved = {"day": 10.0, "month": None, "spentToday": 1.2, "spentThisMonth": 1.2}
    answer = await client.put("/v1/budgets", json={"day": 10})
    assert answer.json() | {"spentThisMonth": 1.2} == saved  # unless the month has just begun
    assert (await client.get("/v1/budgets")).json() == answer.json()
    log = (await client.get("/v1/audit-log")).json()["entries"]
    assert {"jobs.setBudget", "budgets.set"} <= {entry["action"] for entry in log}
    metrics = (await client.get("/metrics")).text
    assert 'ostinato_usage_cost_total{function="pay",tenant="default"} 1.2' in metrics.replace(
        "1.2000000000000002", "1.2"
    )
    assert 'ostinato_usage_calls_total{function="pay",tenant="default"} 3.0' in metrics
    assert 'ostinato_usage_tokens_total{direction="out",function="pay",tenant="default"} 60.0' in metrics


async def test_the_same_over_graphql(site: Site) -> None:
    made = await spend(site)
    client = await site.admin()
    found = await ask(
        client,
        '{ job(jobId: "paid") { spent budget usage { cost calls } } '
        'usage(by: "function") { from to rows { key cost inputTokens } total { cost } } budget { day spentToday } '
        'task(jobId: "paid", taskId: "c") { why { code sentence } detail { usage { cost } } } }',
    )
    assert found["job"] == {"spent": 0.8, "budget": 0.8, "usage": {"cost": 0.8, "calls": 2}}
    assert found["usage"]["rows"] == [{"key": "pay", "cost": 0.8, "inputTokens": 200}]
    assert found["budget"] == {"day": None, "spentToday": 0.8}
    assert found["task"]["why"]["code"] == "budget"
    assert (
        await ask(client, '{ usage(by: "day", from: "2000-01-01", to: "2000-01-02") { from to rows { key } } }')
    ) == {"usage": {"from": "2000-01-01", "to": "2000-01-02", "rows": []}}
    assert (await refused(client, '{ usage(from: "yesterday") { by } }'))["extensions"]["code"] == "invalid_input"
    raised = await ask(
        client, 'mutation { setJobBudget(jobId: "paid", budget: 2) { budget } setBudget(month: 7) { month } }'
    )
    assert raised == {"setJobBudget": {"budget": 2}, "setBudget": {"month": 7}}
    await made.result(PATIENCE)


async def test_each_tenant_has_its_own_and_each_key_its_scopes(site: Site) -> None:
    await spend(site)
    other = await site.admin("other")
    assert (await other.get("/v1/usage")).json()["rows"] == []
    assert (await other.get("/v1/budgets")).json()["spentToday"] == 0
    support.problem(await other.put("/v1/jobs/paid/budget", json={"budget": 5}), 404, "job_not_found")
    await other.put("/v1/budgets", json={"day": 0})
    reader = site.client(await site.key("jobs:read"))
    writer = site.client(await site.key("jobs:write", "config:write"))
    assert (await reader.get("/v1/budgets")).json()["day"] is None
    for client, path, body in (
        (reader, "/v1/jobs/paid/budget", {"budget": 5}),
        (reader, "/v1/budgets", {"day": 1}),
        (writer, "/v1/budgets", {"day": 1}),
    ):
        support.problem(await client.put(path, json=body), 403, "forbidden")
    support.problem(await writer.get("/v1/usage"), 403, "forbidden")


@pytest.mark.parametrize("query", ["?by=week", "?from=soon", "?to=2026-02-31"])
async def test_what_is_not_right_is_refused(site: Site, query: str) -> None:
    client = await site.admin()
    support.problem(await client.get(f"/v1/usage{query}"), 422, "invalid_input")
    for body in ({"day": -1}, {"day": "much"}, {"week": 1}, {"month": 1e12}):
        support.problem(await client.put("/v1/budgets", json=body), 422, "invalid_input")


async def test_only_an_admin_raises_the_budget_of_the_tenant_by_deciding(site: Site) -> None:
    """Who may decide on approvals may not by that do what takes an admin."""
    made = await spend(site)
    admin = await site.admin()
    reviewer = site.client(await site.key("jobs:read", "approvals:decide"))
    await admin.put("/v1/budgets", json={"day": 0.5})
    await admin.put("/v1/jobs/paid/budget", json={"budget": None})
    await asks_somebody(admin)
    [asked] = (await reviewer.get("/v1/approvals")).json()["approvals"]
    path = f"/v1/approvals/{asked['jobId']}/{asked['taskId']}/decision"
    for decision in ("approve", "reject"):
        support.problem(await reviewer.post(path, json={"decision": decision}), 403, "forbidden")
    mutation = f'mutation {{ decide(jobId: "{asked["jobId"]}", taskId: "{asked["taskId"]}", decision: "approve") '
    assert (await refused(reviewer, mutation + "{ state } }"))["extensions"]["code"] == "forbidden"
    answer = await admin.post(path, json={"decision": "approve", "payload": {"raiseTo": 9}})
    assert answer.json()["state"] == "approve"
    await made.result(PATIENCE)
    assert (await admin.get("/v1/budgets")).json()["day"] == 9


async def asks_somebody(client: Any) -> None:
    async def look() -> bool:
        return len((await client.get("/v1/approvals")).json()["approvals"]) == 1

    await until(look)


async def test_b11_the_retention_over_http_and_graphql(site: Site) -> None:
    """B11: a setting of the tenant, which takes the scope `admin` to change and is in the audit log."""
    admin, reader, writer = (
        await site.admin(),
        site.client(await site.key("jobs:read")),
        site.client(await site.key("jobs:write")),
    )
    assert (await reader.get("/v1/retention")).json() == {"jobs": None, "keys": None}
    for client in (reader, writer):
        support.problem(await client.put("/v1/retention", json={"jobs": 1}), 403, "forbidden")
    answer = await admin.put("/v1/retention", json={"jobs": 86_400, "keys": 3600.5})
    assert answer.json() == {"jobs": 86_400, "keys": 3601}
    assert (await ask(reader, "{ retention { jobs keys } }"))["retention"] == answer.json()
    for body in ({"jobs": -1}, {"jobs": "x"}, {"jobs": 1, "other": 2}, {"jobs": 1e300}):
        support.problem(await admin.put("/v1/retention", json=body), 422, "invalid_input")
    changed = await ask(admin, "mutation { setRetention(keys: 60) { jobs keys } }")
    assert changed["setRetention"] == {"jobs": None, "keys": 60}
    other = await site.admin(tenant="other")
    assert (await other.get("/v1/retention")).json() == {"jobs": None, "keys": None}
    log = (await admin.get("/v1/audit-log")).json()["entries"]
    assert [entry["details"].get("jobs") for entry in log if entry["action"] == "retention.set"][-1] == 86_400
