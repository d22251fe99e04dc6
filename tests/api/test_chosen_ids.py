"""The id of the job of a playbook may be chosen by whoever sends the data."""

from __future__ import annotations

from tests.api.support import Site, problem

SCHEMA = {"type": "object", "properties": {"value": {"type": "string"}}}


async def test_a2_the_id_of_the_job_is_chosen_over_http_and_graphql(site: Site) -> None:
    """A2: the same request again finds the job, another one is refused."""
    client = await site.admin()
    agent = {"kind": "function", "function": "echo", "outputSchema": SCHEMA}
    assert (await client.put("/v1/agents/a", json=agent)).status_code == 200
    playbook = {"domain": "d", "type": "ingestion", "agents": ["a"]}
    assert (await client.put("/v1/playbooks/p", json=playbook)).status_code == 200
    body = {"domain_id": "d", "data": {"n": 1}, "job_id": "report-1"}
    assert (await client.post("/ingest", json=body)).json()["job_id"] == "report-1"
    assert (await client.post("/ingest", json=body)).json()["job_id"] == "report-1"
    problem(await client.post("/ingest", json=body | {"data": 2}), 409, "idempotency_conflict")
    problem(await client.post("/ingest", json=body | {"job_id": "a b"}), 422, "invalid_input")
    query = 'mutation { ingest(domainId: "d", data: 1, jobId: "report-2") { jobId } }'
    answer = (await client.post("/graphql", json={"query": query})).json()
    assert answer["data"]["ingest"] == {"jobId": "report-2"}
