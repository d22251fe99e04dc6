"""Saved results over HTTP and GraphQL: the same answers, for who may read and for nobody else."""

from __future__ import annotations

import pytest

from tests.api import support
from tests.api.conftest import site
from tests.api.support import Site
from tests.api.test_graphql import ask, refused

__all__ = ["site"]


async def save(site: Site, tenant: str = "default") -> list[str]:
    client = await site.server.tenants.client(tenant)
    return [
        (await client.results.save(f"job-{n}", {"summary": text, "severity": n}, domain=domain)).result_id
        for n, (text, domain) in enumerate(
            [("a burst water main", "incidents"), ("a noisy neighbour", "incidents"), ("water bill", "finance")]
        )
    ]


async def test_listed_shown_and_searched(site: Site) -> None:
    first, second, third = await save(site)
    client = await site.admin()
    page = (await client.get("/v1/results", params={"limit": 2})).json()
    assert [item["resultId"] for item in page["results"]] == [third, second]
    rest = (await client.get("/v1/results", params={"cursor": page["nextCursor"]})).json()
    assert [item["resultId"] for item in rest["results"]] == [first]
    assert rest["nextCursor"] is None
    shown = (await client.get(f"/v1/results/{first}")).json()
    assert shown["document"] == {"summary": "a burst water main", "severity": 0}
    assert shown["text"] == "a burst water main"
    hits = (await client.get("/v1/results/search", params={"q": "water main burst"})).json()["hits"]
    assert [hit["resultId"] for hit in hits] == [first, third]
    assert hits[0]["ranks"] == {"text": 1, "vector": 1}
    assert hits[0]["snippet"] == "a burst water main"
    support.problem(await client.get("/v1/results/none"), 404, "result_not_found")


async def test_filtered(site: Site) -> None:
    first, second, third = await save(site)
    client = await site.admin()

    async def found(**params: object) -> list[str]:
        searched = await client.get("/v1/results/search", params={"q": "water neighbour"} | params)
        listed = await client.get("/v1/results", params=params)
        ids = sorted(hit["resultId"] for hit in searched.json()["hits"])
        assert ids == sorted(item["resultId"] for item in listed.json()["results"])
        return ids

    assert await found() == sorted([first, second, third])
    assert await found(domain="finance") == [third]
    assert await found(field="severity=1") == [second]
    assert await found(field=["severity=1", "summary=other"]) == []
    assert await found(field=["severity=1", "severity=1"]) == [second]
    assert await found(field=["severity=1", "severity=2"]) == []
    assert await found(since="2100-01-01T00:00:00Z") == []
    assert len(await found(until="2100-01-01T00:00:00Z", since="2000-01-01T00:00:00Z")) == 3


@pytest.mark.parametrize(
    "query",
    ["?limit=0", "?field=x", "?field==x", "?since=yesterday", "?domain=", "?cursor=x"],
)
async def test_what_is_not_right_is_refused(site: Site, query: str) -> None:
    client = await site.admin()
    told = support.problem(await client.get(f"/v1/results{query}"), 422, "invalid_input")
    assert told["field"] == query[1:].partition("=")[0]


async def test_a_search_needs_a_question_and_takes_any(site: Site) -> None:
    await save(site)
    client = await site.admin()
    support.problem(await client.get("/v1/results/search"), 422, "invalid_input")
    support.problem(await client.get("/v1/results/search", params={"q": "x" * 5000}), 422, "invalid_input")
    for hostile in ('"', "') OR 1=1 --", "a:* & !b |", "\0", "", "NEAR(", "💥"):
        answer = await client.get("/v1/results/search", params={"q": hostile})
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"hits": []}


async def test_each_tenant_has_its_own(site: Site) -> None:
    [first, *_] = await save(site)
    other = await site.admin("other")
    assert (await other.get("/v1/results")).json()["results"] == []
    assert (await other.get("/v1/results/search", params={"q": "water"})).json()["hits"] == []
    support.problem(await other.get(f"/v1/results/{first}"), 404, "result_not_found")
    writer = site.client(await site.key("jobs:write"))
    support.problem(await writer.get("/v1/results"), 403, "forbidden")


async def test_over_graphql(site: Site) -> None:
    first, second, third = await save(site)
    client = await site.admin()
    found = await ask(
        client,
        """query($id: ID!) {
          search(q: "burst main", first: 1) { resultId score ranks snippet document createdAt }
          inFinance: search(q: "water", filter: {domain: "finance"}) { resultId }
          severe: results(filter: {fields: {severity: 1}}) { nodes { resultId } }
          results(first: 2) { nodes { resultId domain jobId } pageInfo { hasNextPage endCursor } }
          result(resultId: $id) { document text kind }
          none: result(resultId: "none") { text }
        }""",
        id=second,
    )
    assert found["search"][0]["resultId"] == first
    assert found["search"][0]["ranks"] == {"text": 1, "vector": 1}
    assert [hit["resultId"] for hit in found["inFinance"]] == [third]
    assert [node["resultId"] for node in found["severe"]["nodes"]] == [second]
    assert [node["resultId"] for node in found["results"]["nodes"]] == [third, second]
    assert found["result"]["document"] == {"summary": "a noisy neighbour", "severity": 1}
    assert found["none"] is None
    more = await ask(
        client,
        "query($after: String) { results(after: $after) { nodes { resultId } pageInfo { hasNextPage } } }",
        after=found["results"]["pageInfo"]["endCursor"],
    )
    assert more["results"] == {"nodes": [{"resultId": first}], "pageInfo": {"hasNextPage": False}}
    wrong = await refused(client, '{ search(q: "x", filter: {fields: [1]}) { resultId } }')
    assert wrong["extensions"]["code"] == "invalid_input"
