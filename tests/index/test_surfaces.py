"""C6 and C7: the index over HTTP, GraphQL and the command line."""

import asyncio
import datetime
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from tests.api import support
from tests.api.support import Site, problem
from tests.api.test_server import run
from tests.engine import support as engine_support
from tests.engine.support import job, task
from tests.index.support import AGENT, MACHINE, arn, change

OWN = "arn:ostinato:states:local:default:execution:report:own"


@pytest.fixture
async def site(url: str) -> AsyncIterator[Site]:
    """A job that failed, an outside execution that succeeded and one that runs; and those of another tenant."""
    async with support.opened(url) as made:
        client = await made.admin()
        await support.submitted(client, job(task("a", "break"), jobId="own", name="report", correlationId="order-1"))
        await support.ended(client, "own")
        mine = await made.server.tenants.client("default")
        await mine.index.report(
            [
                change("SUCCEEDED", stop=1234567900000, correlationId="order 1/2"),
                change(name="x/y:z", start=1234567891000, tags=AGENT | {"team": "a"}),
            ]
        )
        await (await made.server.tenants.client("other")).index.report([change(name="theirs")])
        yield made


async def names(client: httpx2.AsyncClient, query: str = "") -> list[str]:
    answer = await client.get(f"/v1/executions?{query}")
    assert answer.status_code == 200, answer.text
    return [one["executionName"] for one in answer.json()["executions"]]


async def test_c6_executions_are_found_over_http(site: Site) -> None:
    client = await site.admin()
    for query, found in {
        "": ["own", "x/y:z", "abc123"],
        "order=oldest": ["abc123", "x/y:z", "own"],
        "agentName=my-agent": ["x/y:z", "abc123"],
        "agentName=report&status=FAILED": ["own"],
        "status=FAILED&status=SUCCEEDED": ["own", "abc123"],
        "tag=team": ["x/y:z"],
        "tag=Type=Agent&status=RUNNING": ["x/y:z"],
        "correlationId=order%201/2": ["abc123"],
        "agentName=my-agent&startedFrom=2009-02-13T23:31:31Z&startedUntil=2009-02-14T00:00:00Z": ["x/y:z"],
        "startedUntil=2009-02-13T23:31:30Z": [],
    }.items():
        assert await names(client, query) == found, query


async def test_c6_pages_go_on_from_a_cursor(site: Site) -> None:
    client = await site.admin()
    for order in ("newest", "oldest"):
        whole, seen, cursor = await names(client, f"order={order}"), [], ""
        while True:
            page = (await client.get(f"/v1/executions?order={order}&limit=1{cursor}")).json()
            seen += [one["executionName"] for one in page["executions"]]
            if page["nextCursor"] is None:
                break
            cursor = f"&cursor={page['nextCursor']}"
        assert seen == whole


async def test_c4_one_execution_has_all_fields(site: Site) -> None:
    client = await site.admin()
    found = (await client.get(f"/v1/executions/{arn()}")).json()
    indexed = datetime.datetime.fromisoformat(found.pop("indexedAt"))
    assert indexed.tzinfo is not None
    assert found == {
        "executionArn": arn(),
        "agentName": "my-agent",
        "stateMachineArn": MACHINE,
        "executionName": "abc123",
        "status": "SUCCEEDED",
        "startDate": "2009-02-13T23:31:30Z",
        "stopDate": "2009-02-13T23:31:40Z",
        "durationSeconds": 10,
        "correlationId": "order 1/2",
        "tags": AGENT,
    }
    for one in (await client.get("/v1/executions")).json()["executions"]:
        answer = await client.get(f"/v1/executions/{quote(one['executionArn'], safe='')}")
        assert answer.json() == one
    problem(await client.get(f"/v1/executions/{arn('theirs')}"), 404, "execution_not_found")
    problem(await client.get("/v1/executions/nothing"), 404, "execution_not_found")


async def test_executions_are_counted_over_http(site: Site) -> None:
    client = await site.admin()
    counted = (await client.get("/v1/executions/counts?by=status")).json()
    assert counted == {
        "by": "status",
        "counts": [{"key": "RUNNING", "count": 1}, {"key": "SUCCEEDED", "count": 1}, {"key": "FAILED", "count": 1}],
    }
    days = (await client.get("/v1/executions/counts?by=day&agentName=my-agent")).json()["counts"]
    assert days == [{"key": "2009-02-13", "count": 2}]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=completed", "status"),
        ("order=sideways", "order"),
        ("startedFrom=yesterday", "startedFrom"),
        ("status=RUNNING&status=completed", "status"),
        ("startedFrom=2026-01-01T00:00:00", "startedFrom"),
        ("startedUntil=2026", "startedUntil"),
        ("startedUntil=1234567890.5", "startedUntil"),
        ("agent=x", "agent"),
        ("tag==x", "tag"),
        ("cursor=nonsense", "cursor"),
        ("limit=0", "limit"),
    ],
)
async def test_bad_filters_name_the_field(site: Site, query: str, field: str) -> None:
    client = await site.admin()
    found = problem(await client.get(f"/v1/executions?{query}"), 422, "invalid_input")
    assert found["field"] == field


async def test_bad_counts_name_the_field(site: Site) -> None:
    found = problem(await (await site.admin()).get("/v1/executions/counts?by=week"), 422, "invalid_input")
    assert found["field"] == "by"


async def test_c3_a_definition_is_tagged_over_http(site: Site) -> None:
    client = site.client(await site.key("config:write"))
    body: dict[str, Any] = {"stateMachineArn": MACHINE + "-2", "tags": AGENT}
    assert (await client.put("/v1/index/definitions", json=body)).json() == body
    mine = await site.server.tenants.client("default")
    silent = change(name="silent", tags=None, stateMachineArn=MACHINE + "-2")
    assert (await mine.index.report([silent])).indexed == 1
    for bad, field in (
        ({"tags": {}}, "stateMachineArn"),
        (body | {"stateMachineArn": ""}, "stateMachineArn"),
        (body | {"tags": {"a": 1}}, "tags"),
        (body | {"tags": {"a=b": "c"}}, "tags"),
        (body | {"extra": 1}, "extra"),
    ):
        found = problem(await client.put("/v1/index/definitions", json=bad), 422, "invalid_input")
        assert found["field"] == field
    reader = site.client(await site.key("jobs:read"))
    problem(await reader.put("/v1/index/definitions", json=body), 403, "forbidden")
    problem(await client.get("/v1/executions"), 403, "forbidden")
    entry = (await mine.audit_log(action="index.tag"))[0]
    assert (entry.target, entry.details) == (MACHINE + "-2", {"tags": AGENT})


# --- GraphQL -------------------------------------------------------------------------------------------------------


async def ask(client: httpx2.AsyncClient, query: str, **variables: Any) -> Any:
    answer = (await client.post("/graphql", json={"query": query, "variables": variables})).json()
    return answer["errors"] if "errors" in answer else answer["data"]


async def test_c7_the_index_is_served_by_graphql(site: Site) -> None:
    client = await site.admin()
    listing = """query($filter: ExecutionFilter, $first: Int! = 50, $after: String, $order: String! = "newest") {
        executions(filter: $filter, first: $first, after: $after, order: $order) {
            nodes { executionArn agentName executionName status startDate stopDate durationSeconds tags indexedAt }
            pageInfo { hasNextPage endCursor } } }"""
    first = (await ask(client, listing, first=2))["executions"]
    assert [node["executionName"] for node in first["nodes"]] == ["own", "x/y:z"]
    assert first["pageInfo"]["hasNextPage"]
    rest = (await ask(client, listing, after=first["pageInfo"]["endCursor"]))["executions"]
    assert [(node["executionName"], node["durationSeconds"]) for node in rest["nodes"]] == [("abc123", 10)]
    assert rest["nodes"][0]["startDate"] == "2009-02-13T23:31:30Z"
    wanted = {"agentName": "my-agent", "startedUntil": "2009-02-13T23:31:31Z", "status": ["SUCCEEDED", "RUNNING"]}
    found = (await ask(client, listing, filter=wanted, order="oldest"))["executions"]["nodes"]
    assert [node["executionName"] for node in found] == ["abc123"]
    one = "query($arn: ID!) { execution(arn: $arn) { status correlationId stateMachineArn } }"
    assert (await ask(client, one, arn=OWN))["execution"]["status"] == "FAILED"
    assert (await ask(client, one, arn=arn("theirs")))["execution"] is None
    counted = await ask(client, '{ executionCounts(by: "day", filter: {agentName: "my-agent"}) { key count } }')
    assert counted == {"executionCounts": [{"key": "2009-02-13", "count": 2}]}
    for filter_, order, field in (({"status": ["done"]}, "newest", "status"), ({}, "sideways", "order")):
        errors = await ask(client, listing, filter=filter_, order=order)
        assert errors[0]["extensions"]["field"] == field


# --- the command line ----------------------------------------------------------------------------------------------


async def fill(url: str) -> None:
    async with engine_support.opened(url) as app:
        await engine_support.failure(await app.submit(job(task("a", "break"), jobId="own", name="report")))
        events = [change("SUCCEEDED", stop=1234567900000), change(name="silent", tags=None, machine="other")]
        await app.index.report(events)


def test_the_command_line_finds_counts_tags_and_rebuilds(url: str) -> None:
    asyncio.run(fill(url))
    listed = json.loads(run(url, "executions", "ls", "--json"))
    assert [one["executionName"] for one in listed["executions"]] == ["own", "abc123"]
    page = json.loads(run(url, "executions", "ls", "--oldest", "--limit", "1", "--json"))
    assert [one["executionName"] for one in page["executions"]] == ["abc123"]
    page = json.loads(run(url, "executions", "ls", "--oldest", "--cursor", page["cursor"], "--json"))
    assert [one["executionName"] for one in page["executions"]] == ["own"]
    wanted = ["--agent", "my-agent", "--status", "SUCCEEDED", "--tag", "Type=Agent", "--since", "2009-02-13"]
    text = run(url, "executions", "ls", *wanted, "--until", "2009-02-14")
    assert re.search(r"^my-agent +abc123 +SUCCEEDED .* 10 s +arn:aws", text, re.MULTILINE)
    assert "report" not in text
    assert run(url, "executions", "ls", "--correlation-id", "nothing") == "no executions\n"
    assert "FAILED" in run(url, "executions", "show", OWN)
    assert json.loads(run(url, "executions", "show", arn(), "--json"))["execution"]["durationSeconds"] == 10
    assert re.search(r"^FAILED +1$", run(url, "executions", "counts"), re.MULTILINE)
    counted = json.loads(run(url, "executions", "counts", "--by", "day", "--agent", "my-agent", "--json"))
    assert counted == {"by": "day", "counts": [{"key": "2009-02-13", "count": 1}]}
    other = "arn:aws:states:us-west-2:123:stateMachine:other"
    tagged = run(url, "index", "tag", other, "Type=Agent", "Application=StepFunctionsAgent")
    assert tagged == f"{other}: Type=Agent, Application=StepFunctionsAgent\n"
    done = json.loads(run(url, "index", "rebuild", "--json"))
    assert (done["jobs"], done["events"], done["mended"], done["problems"]) == (1, 2, 1, [])
    assert "silent" in run(url, "executions", "ls")
    assert "1 jobs and 2 events looked at: 0 mended" in run(url, "index", "rebuild")


def test_the_command_line_goes_on_until_it_has_what_was_asked_for(url: str) -> None:
    """An agent and a tag that seldom meet: a page looks at some of them, a list at all."""

    async def fill_much() -> None:
        async with engine_support.opened(url) as app:
            for machine, tags in (("agent", AGENT), ("other", AGENT | {"team": "a"})):
                await app.index.report(
                    [change(name=f"{n}", machine=machine, start=n, tags=tags) for n in range(1, 250)]
                )
            await app.index.report([change(name="both", machine="agent", start=0, tags=AGENT | {"team": "a"})])

    asyncio.run(fill_much())
    listed = json.loads(run(url, "executions", "ls", "--agent", "agent", "--tag", "team=a", "--json"))
    assert [one["executionName"] for one in listed["executions"]] == ["both"]
    assert listed["cursor"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["executions", "show", "arn:x"], 3, "there is no execution 'arn:x'"),
        (["executions", "ls", "--status", "done"], 2, "status must be one of RUNNING"),
        (["executions", "ls", "--since", "then"], 2, "--since 'then' is not a time"),
        (["executions", "counts", "--by", "week"], 2, "by must be one of status, day"),
        (["index", "tag", "arn:x", "Agent"], 2, "must be of the form KEY=VALUE"),
    ],
)
def test_the_command_line_says_what_is_wrong(sqlite_url: str, arguments: list[str], code: int, sentence: str) -> None:
    assert sentence in run(sqlite_url, *arguments, code=code)


async def test_the_engines_own_jobs_are_found_if_wanted(site: Site) -> None:
    """Over HTTP and GraphQL alike, in lists and in counts."""
    client = await site.admin()
    await client.put("/v1/gates/g", json={"members": ["a"]})
    answer = await client.post("/v1/gates/g/k/arrivals", json={"member": "a"})
    gate = answer.json()["jobId"]
    await support.ended(client, gate)
    assert gate not in await names(client)
    assert gate in await names(client, "includeEngine=true")
    assert await names(client, "agentName=gate:g") == [gate]
    listed = (await client.get("/v1/jobs")).json()["jobs"]
    assert [one["jobId"] for one in listed] == [gate, "own"]
    listed = (await client.get("/v1/jobs?includeEngine=false")).json()["jobs"]
    assert [one["jobId"] for one in listed] == ["own"]
    query = """{ some: executionCounts(by: "status") { count }
        all: executionCounts(by: "status", filter: {includeEngine: true}) { count }
        jobs(filter: {includeEngine: false}) { nodes { jobId } }
        executions(first: 9, filter: {includeEngine: true}) { nodes { executionName } } }"""
    data = (await client.post("/graphql", json={"query": query})).json()["data"]
    assert sum(one["count"] for one in data["all"]) == sum(one["count"] for one in data["some"]) + 1
    assert [one["jobId"] for one in data["jobs"]["nodes"]] == ["own"]
    assert gate in [one["executionName"] for one in data["executions"]["nodes"]]
