"""Errors say what is wrong, under a stable code, and nothing about the inside."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from ostinato import errors
from ostinato.api import problems, routing
from ostinato.core import scopes, shapes
from tests.api import support
from tests.api.support import Site, problem
from tests.engine.support import job, task


@pytest.fixture
def url(sqlite_url: str) -> str:
    """Errors do not depend on the database, but for those that other tests see on both."""
    return sqlite_url


async def test_a_path_that_is_not_there(site: Site) -> None:
    problem(await site.client().get("/v1/nothing"), 404, "route_not_found")
    problem(await site.client().get("/v1/jobs/"), 404, "route_not_found")


async def test_a_method_that_is_not_there(site: Site) -> None:
    answer = await site.client().delete("/v1/jobs")
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/gates/g", "DELETE, GET, HEAD, PUT"),
        ("DELETE", "/v1/jobs", "GET, HEAD, POST"),
        ("GET", "/v1/plans", "POST"),
        ("OPTIONS", "/v1/jobs/some-job", "GET, HEAD"),
        ("GET", "/graphql", "POST"),
    ],
)
async def test_b5_allow_names_all_methods_of_a_path(site: Site, method: str, path: str, allowed: str) -> None:
    """B5: it named one of them."""
    answer = await site.client().request(method, path)
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


async def test_b5_head_is_get_without_the_body(site: Site) -> None:
    """B5: load balancers ask like this."""
    client = site.client()
    for path, status in (("/healthz", 200), ("/readyz", 200), ("/v1/jobs", 200), ("/v1/jobs/none", 404)):
        asked, told = await client.get(path), await client.head(path)
        assert (told.status_code, told.content) == (status, b"")
        if status == 200:  # a problem has the id of its request
            assert told.headers["content-length"] == asked.headers["content-length"]
    async with asyncio.timeout(5):
        streamed = await client.head("/v1/events/stream")
    assert (streamed.status_code, streamed.content) == (200, b"")
    await site.key()
    assert (await client.head("/v1/jobs")).status_code == 401


async def test_a_job_that_is_not_there(site: Site) -> None:
    assert problem(await site.client().get("/v1/jobs/gone"), 404, "job_not_found")["jobId"] == "gone"


async def test_what_was_sent_is_not_sent_back_at_length(site: Site) -> None:
    long = "x" * 500_000
    for wrong in (job(task("a"), **{long: 1}), job(task("a", onDependencyFailure=long)), job(task("a", **{long: 1}))):
        answer = await site.client().post("/v1/jobs", json=wrong)
        problem(answer, 422, "invalid_input")
        assert len(answer.content) < 2000


async def test_errors_name_their_fields(site: Site) -> None:
    client = site.client()
    found = problem(await client.post("/v1/jobs", json=job(task("a", after="b"))), 422, "unknown_dependency")
    assert (found["taskId"], found["dependency"]) == ("a", "b")
    circle = problem(await client.post("/v1/plans", json=job(task("a", after="b"), task("b", after="a"))), 422, "cycle")
    assert set(circle["cycle"]) == {"a", "b"}
    found = problem(
        await client.post("/v1/jobs", json={"tasks": [{"taskId": 7, "name": "echo"}]}), 422, "invalid_input"
    )
    assert found["field"] == "tasks[0].taskId"
    found = problem(await client.post("/v1/jobs", json=support.ONE | {"tennant": "x"}), 422, "invalid_input")
    assert found["field"] == "tennant"
    found = problem(await client.post("/v1/jobs", json={"tasks": [{"taskId": "a"}]}), 422, "invalid_input")
    assert found["field"] == "tasks[0].name"
    found = problem(await client.get("/v1/jobs?limit=0"), 422, "invalid_input")
    assert found["field"] == "limit"
    found = problem(await client.get("/v1/jobs?cursor=bm9uc2Vuc2U"), 422, "invalid_input")
    assert found["field"] == "cursor"
    found = problem(await client.get("/v1/jobs?colour=red"), 422, "invalid_input")
    assert found["field"] == "colour"
    problem(await client.get("/v1/jobs/-bad-"), 422, "invalid_input")


def patterns(value: Any) -> set[str]:
    """All that stand in a document of OpenAPI."""
    if isinstance(value, dict):
        own = {value["pattern"]} if isinstance(value.get("pattern"), str) else set[str]()
        return own.union(*(patterns(item) for item in value.values()))
    return set[str]().union(*(patterns(item) for item in value)) if isinstance(value, list) else set()


async def test_every_pattern_can_be_said_in_words(site: Site) -> None:
    found = patterns((await site.client().get("/v1/openapi.json")).json())
    assert len(found) > 10
    unknown = shapes.in_words("")
    assert [one for one in sorted(found) if shapes.in_words(one) == unknown] == []
    assert [one for one in sorted(found) if "\\" in shapes.in_words(one)] == []


ANY_TEXT = "it must be a text without NUL"
SOME_ID = "use 1 to 128 letters, digits, _, ., :, ~ or -, starting with a letter or digit"


async def test_a_text_that_is_refused_is_told_in_words_what_it_must_be(site: Site) -> None:
    client = site.client()
    no_controls = "the text is not valid: it must be a text without control characters"
    found = problem(await client.post("/ingest", json={"domain_id": "a\0b", "data": {}}), 422, "invalid_input")
    assert (found["field"], found["detail"]) == ("domain_id", f"domain_id: {no_controls}")
    found = problem(await client.get("/v1/jobs?name=%00"), 422, "invalid_input")
    assert (found["field"], found["detail"]) == ("name", f"name: the text is not valid: {ANY_TEXT}")
    found = problem(await client.get("/v1/jobs/-bad-"), 422, "invalid_input")
    assert found["detail"] == f"jobId: the text is not valid: {SOME_ID}"
    assert found["errors"] == [{"field": "jobId", "message": f"the text is not valid: {SOME_ID}"}]
    query = 'mutation { openGate(gate: "g", key: "k", reason: "a\\u0000b") }'
    [said] = (await client.post("/graphql", json={"query": query})).json()["errors"]
    assert ANY_TEXT in said["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"tasks": NaN}', b'"\\ud800"'])
async def test_what_is_not_json(site: Site, body: bytes) -> None:
    answer = await site.client().post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    problem(answer, 400, "malformed_body")


async def test_what_cannot_be_done_now(site: Site) -> None:
    client = site.client()
    job_id = await support.submitted(client)
    await support.ended(client, job_id)
    problem(await client.post(f"/v1/jobs/{job_id}/resume"), 409, "not_possible")
    problem(await client.post(f"/v1/jobs/{job_id}/tasks", json={"tasks": [task("b")]}), 409, "job_ended")
    assert problem(await client.post(f"/v1/jobs/{job_id}/tasks/a/retry"), 409, "not_possible")["state"] == "completed"


async def test_what_nobody_foresaw_says_nothing_and_is_logged(url: str, caplog: pytest.LogCaptureFixture) -> None:
    made = routing.Routes()

    @made("GET", "/v1/broken", scope=scopes.JOBS_READ)
    async def broken() -> dict[str, str]:
        raise RuntimeError("SELECT secret FROM /etc/passwd")

    async with support.opened(url, more=[made]) as site:
        with caplog.at_level(logging.ERROR, "ostinato"):
            answer = await site.client().get("/v1/broken")
        found = problem(answer, 500, "internal")
        assert "secret" not in answer.text
        assert set(found) == {"type", "title", "status", "code", "detail", "requestId"}
        (record,) = caplog.records
        assert found["requestId"] in record.getMessage()
        assert "secret" in str(record.exc_info)


async def test_trouble_with_the_database_says_nothing_of_it(url: str) -> None:
    made = routing.Routes()

    @made("GET", "/v1/broken", scope=scopes.JOBS_READ)
    async def broken() -> dict[str, str]:
        raise errors.DatabaseUnavailable("connection to 10.1.2.3 failed", path="/var/lib/x.db")

    async with support.opened(url, more=[made]) as site:
        answer = await site.client().get("/v1/broken")
        problem(answer, 503, "database_unavailable")
        assert "10.1.2.3" not in answer.text
        assert "/var" not in answer.text


def test_every_error_has_a_status_and_a_code_of_its_own() -> None:
    found = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.OstinatoError)
    ]
    codes = [kind.code for kind in found]
    assert len(set(codes)) == len(codes)
    assert all(kind.__doc__ for kind in found)
    mapped = {kind.code: problems.status_of(kind.__new__(kind)) for kind in found}
    assert mapped["cycle"] == 422
    assert mapped["lease_lost"] == 409
    assert mapped["task_not_found"] == 404
    assert mapped["payload_too_large"] == 413
    assert mapped["schema_too_new"] == 503


async def test_a_server_is_ready_when_its_database_is(site: Site) -> None:
    client = site.client()
    assert (await client.get("/readyz")).json() == {"status": "ready"}
    await site.home.engine.db.close()
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    assert (await client.get("/readyz")).status_code == 503
