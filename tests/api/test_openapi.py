"""OpenAPI says what is served, and what is answered is what it says."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from ostinato.api import routing, server
from ostinato.api.http import pages
from tests.api import support
from tests.api.support import Site, ended, submitted
from tests.engine.support import job, task


@pytest.fixture
def url(sqlite_url: str) -> str:
    return sqlite_url


async def read(site: Site) -> dict[str, Any]:
    return (await site.client().get("/v1/openapi.json")).json()


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for item in value.values() for found in references(item)]
    return [found for item in value for found in references(item)] if isinstance(value, list) else []


async def test_every_route_is_described_with_its_scope(site: Site) -> None:
    document = await read(site)
    described = {
        (method.upper(), path): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    # Sockets and pages have no place in OpenAPI, and GraphQL describes itself.
    declared = {
        (d.methods[0], d.path): d
        for group in server.ROUTES
        for d in group.declared
        if routing.WEBSOCKET not in d.methods and d.path != "/graphql"
        if group is not pages.routes
    }
    assert described.keys() == declared.keys()
    for key, operation in described.items():
        scope = declared[key].scope
        assert operation.get("x-required-scope") == (None if scope == routing.PUBLIC else scope)
        assert {"400", "429"} <= operation["responses"].keys()
        assert ("401" in operation["responses"]) == (scope != routing.PUBLIC)
    ids = [operation["operationId"] for operation in described.values()]
    assert len(set(ids)) == len(ids)


async def test_every_reference_leads_somewhere(site: Site) -> None:
    document = await read(site)
    found = references(document)
    assert found
    for reference in found:
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]
    assert "x-type" not in str(document)


async def test_answers_are_as_described(site: Site) -> None:
    document = await read(site)
    client = site.client()
    job_id = await submitted(client, job(task("a"), task("b", "break", "a", retry={"maxAttempts": 1})))
    await ended(client, job_id)
    asked = {
        "/v1/jobs": "/v1/jobs",
        "/v1/jobs/{jobId}": f"/v1/jobs/{job_id}",
        "/v1/jobs/{jobId}/events": f"/v1/jobs/{job_id}/events",
        "/v1/jobs/{jobId}/tasks/{taskId}": f"/v1/jobs/{job_id}/tasks/b",
        "/v1/dead-letters": "/v1/dead-letters",
        "/v1/dead-letters/{jobId}/{taskId}": f"/v1/dead-letters/{job_id}/b",
        "/v1/functions": "/v1/functions",
        "/v1/workers": "/v1/workers",
    }
    for path, address in asked.items():
        answer = await client.get(address)
        assert answer.status_code == 200
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema_rs.validate(schema | {"components": document["components"]}, answer.json())
    missing = await client.get("/v1/jobs/none")
    schema = document["components"]["schemas"]["Problem"]
    jsonschema_rs.validate(schema, missing.json())
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(schema, {})


async def test_a_body_that_may_be_empty_is_not_required(site: Site) -> None:
    paths = (await read(site))["paths"]
    assert paths["/v1/jobs"]["post"]["requestBody"]["required"]
    assert not paths["/v1/jobs/{jobId}/cancel"]["post"]["requestBody"]["required"]
    assert "requestBody" not in paths["/v1/jobs"]["get"]
    assert (await site.client().post("/v1/jobs")).status_code == 400
    job_id = await submitted(site.client(), support.ONE)
    assert (await site.client().post(f"/v1/jobs/{job_id}/cancel")).status_code == 200
