"""Jobs, tasks and dead letters over HTTP, on both databases."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato import Ostinato
from tests.api import support
from tests.api.support import ONE, Site, ended, problem, submitted
from tests.engine.support import Flaky, Gate, job, soon, task, until

IDLE = job(task("a", "nobody-has-this"))
"""A job that stays where it is."""


async def test_a_job_runs_to_its_end(site: Site) -> None:
    client = site.client()
    job_id = await submitted(client, job(task("a", input={"x": 1}), task("b", "join", "a"), tags={"team": "x"}))
    found = await ended(client, job_id)
    assert (found["jobId"], found["state"], found["tags"]) == (job_id, "completed", {"team": "x"})
    assert [(t["taskId"], t["state"]) for t in found["tasks"]] == [("a", "completed"), ("b", "completed")]
    assert found["nextTask"] is None
    detail = (await client.get(f"/v1/jobs/{job_id}/tasks/b")).json()
    assert detail["output"] == {"a": {"x": 1}}
    assert detail["dependsOn"] == ["a"]
    assert [attempt["outcome"] for attempt in detail["attempts"]] == ["completed"]


async def test_tasks_come_in_pages(site: Site) -> None:
    client = site.client()
    job_id = await submitted(client, job(*[task(f"t{n}", "nobody-has-this") for n in range(5)]))
    first = (await client.get(f"/v1/jobs/{job_id}?tasksLimit=3")).json()
    assert [t["taskId"] for t in first["tasks"]] == ["t0", "t1", "t2"]
    rest = (await client.get(f"/v1/jobs/{job_id}?tasksAfter={first['nextTask']}")).json()
    assert [t["taskId"] for t in rest["tasks"]] == ["t3", "t4"]
    assert (await client.get(f"/v1/jobs/{job_id}?tasksLimit=0")).json()["tasks"] == []


async def test_tasks_are_listed_by_state(site: Site) -> None:
    """B6: what failed is found whatever the size of the job."""
    client = site.client()
    job_id = await submitted(client, job(*[task(f"t{n}", "nobody-has-this") for n in range(5)]))
    await client.post(f"/v1/jobs/{job_id}/tasks/t4/skip", json={})
    found = (await client.get(f"/v1/jobs/{job_id}?tasksState=skipped&tasksLimit=3")).json()
    assert ([t["taskId"] for t in found["tasks"]], found["nextTask"]) == (["t4"], None)
    more = (await client.get(f"/v1/jobs/{job_id}?tasksState=pending&tasksLimit=3&tasksAfter=1")).json()
    assert [t["taskId"] for t in more["tasks"]] == ["t2", "t3"]
    answer = await client.get(f"/v1/jobs/{job_id}?tasksState=done")
    assert (answer.status_code, answer.json()["field"]) == (422, "tasksState")


async def test_an_idempotency_key_finds_the_job_of_before(site: Site) -> None:
    client = site.client()
    first = await client.post("/v1/jobs", json=ONE, headers={"Idempotency-Key": "k"})
    again = await client.post("/v1/jobs", json=ONE, headers={"Idempotency-Key": "k"})
    by_field = await client.post("/v1/jobs", json=ONE | {"idempotencyKey": "k"})
    assert (first.status_code, again.status_code, by_field.status_code) == (201, 200, 200)
    assert first.json()["jobId"] == again.json()["jobId"] == by_field.json()["jobId"]
    assert (first.json()["created"], again.json()["created"]) == (True, False)
    other = await client.post("/v1/jobs", json=IDLE, headers={"Idempotency-Key": "k"})
    problem(other, 409, "idempotency_conflict")
    twice = await client.post("/v1/jobs", json=ONE | {"idempotencyKey": "x"}, headers={"Idempotency-Key": "k"})
    problem(twice, 422, "invalid_input")
    batch = await client.post("/v1/jobs", json=[ONE], headers={"Idempotency-Key": "k"})
    problem(batch, 422, "invalid_input")


async def test_many_at_once_with_one_idempotency_key_make_one_job(site: Site) -> None:
    client = site.client()
    document = IDLE | {"idempotencyKey": "once"}
    answers = await asyncio.gather(*[client.post("/v1/jobs", json=document) for _ in range(50)])
    assert len({answer.json()["jobId"] for answer in answers}) == 1
    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [201]


async def test_two_servers_are_one(url: str) -> None:
    document = IDLE | {"idempotencyKey": "once"}
    async with support.opened(url) as one, support.opened(url) as two:
        clients = [one.client(), two.client()]
        answers = await asyncio.gather(*[clients[n % 2].post("/v1/jobs", json=document) for n in range(200)])
        assert len({answer.json()["jobId"] for answer in answers}) == 1
        assert sorted(answer.status_code for answer in answers) == [200] * 199 + [201]
        assert len((await two.client().get("/v1/jobs")).json()["jobs"]) == 1


async def test_a_batch_is_checked_before_any_is_entered(site: Site) -> None:
    client = site.client()
    problem(await client.post("/v1/jobs", json=[IDLE, job(task("a", after="b"))]), 422, "unknown_dependency")
    assert (await client.get("/v1/jobs")).json()["jobs"] == []
    answer = await client.post("/v1/jobs", json=[IDLE | {"jobId": "one"}, IDLE | {"jobId": "two"}])
    assert answer.status_code == 201
    assert [made["jobId"] for made in answer.json()["jobs"]] == ["one", "two"]
    problem(await client.post("/v1/jobs", json=[]), 422, "invalid_input")
    again = await client.post("/v1/jobs", json=[IDLE | {"jobId": "one"}])
    assert again.status_code == 200


async def test_a_list_goes_by_cursor(site: Site) -> None:
    client = site.client()
    for n in range(5):
        await submitted(client, IDLE | {"jobId": f"job-{n}", "name": "even" if n % 2 == 0 else "odd"})
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = (await client.get("/v1/jobs", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [found["jobId"] for found in page["jobs"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == ["job-4", "job-3", "job-2", "job-1", "job-0"]
    odd = (await client.get("/v1/jobs?name=odd")).json()["jobs"]
    assert [found["jobId"] for found in odd] == ["job-3", "job-1"]


async def test_a_list_is_filtered(site: Site) -> None:
    client = site.client()
    await submitted(client, IDLE | {"jobId": "one", "correlationId": "c", "requestId": "r"})
    await submitted(client, IDLE | {"jobId": "two"})
    await client.post("/v1/jobs/two/cancel")

    async def ids(**query: str) -> list[str]:
        return [found["jobId"] for found in (await client.get("/v1/jobs", params=query)).json()["jobs"]]

    assert await ids(state="running") == ["one"]
    assert await ids(state="cancelled") == ["two"]
    assert await ids(correlationId="c") == ["one"]
    assert await ids(requestId="r") == ["one"]
    assert await ids(correlationId="other") == []
    for query in ({"state": "flying"}, {"name": "a\0b"}, {"name": ""}):
        problem(await client.get("/v1/jobs", params=query), 422, "invalid_input")


async def test_events_go_on_after_a_number(site: Site) -> None:
    client = site.client()
    job_id = await submitted(client)
    await ended(client, job_id)
    everything = (await client.get(f"/v1/jobs/{job_id}/events")).json()
    types = [event["type"] for event in everything["events"]]
    assert (types[0], types[-1]) == ("Job Created", "Job Completed")
    first = (await client.get(f"/v1/jobs/{job_id}/events?limit=2")).json()
    rest = (await client.get(f"/v1/jobs/{job_id}/events?after={first['nextAfter']}")).json()
    assert first["events"] + rest["events"] == everything["events"]
    end = (await client.get(f"/v1/jobs/{job_id}/events?after={rest['nextAfter']}")).json()
    assert end == {"events": [], "nextAfter": rest["nextAfter"]}
    of_task = (await client.get(f"/v1/jobs/{job_id}/events?taskId=a")).json()["events"]
    assert {event["taskId"] for event in of_task} == {"a"}


async def test_a_job_grows(site: Site) -> None:
    gate = Gate(site.home)
    client = site.client()
    job_id = await submitted(client, job(task("a", "gate")))
    answer = await client.post(f"/v1/jobs/{job_id}/tasks", json={"tasks": [task("b", after="a")]})
    assert (answer.status_code, answer.json()) == (201, {"taskIds": ["b"]})
    problem(await client.post(f"/v1/jobs/{job_id}/tasks", json={"tasks": [task("b")]}), 422, "duplicate_task")
    gate.opened.set()
    assert (await ended(client, job_id))["totalTasks"] == 2


async def test_cancel_says_who_won(site: Site) -> None:
    client = site.client()
    job_id = await submitted(client, IDLE)
    assert (await client.post(f"/v1/jobs/{job_id}/cancel")).json() == {"state": "cancelled"}
    done = await submitted(client)
    await ended(client, done)
    assert (await client.post(f"/v1/jobs/{done}/cancel", json={"reason": "late"})).json() == {"state": "completed"}


async def test_resume_shows_what_it_would_do_and_does_it(site: Site) -> None:
    Flaky(site.home, failures=1)
    client = site.client()
    job_id = await submitted(client, job(task("a"), task("b", "flaky", "a"), task("c", after="b")))
    assert (await ended(client, job_id))["state"] == "failed"
    would = await client.post(f"/v1/jobs/{job_id}/resume", json={"dryRun": True})
    assert would.json() == {"rerun": ["b"], "reused": ["a"], "waiting": ["c"], "undone": [], "undoneBy": []}
    assert (await client.get(f"/v1/jobs/{job_id}")).json()["state"] == "failed"
    assert (await client.post(f"/v1/jobs/{job_id}/resume")).json() == would.json()
    assert (await ended(client, job_id))["state"] == "completed"


async def test_a_signal_arrives_once(site: Site) -> None:
    @site.home.function("ask")
    async def ask(ctx: Any) -> Any:
        return await ctx.wait_for("answer")

    client = site.client()
    job_id = await submitted(client, job(task("a", "ask"), task("b", "ask", "a")))
    sent = {"payload": {"yes": True}, "signalId": "s1"}
    for _ in range(2):
        assert (await client.post(f"/v1/jobs/{job_id}/signals/answer", json=sent)).status_code == 200
    await client.post(f"/v1/jobs/{job_id}/signals/answer", json={"payload": 2})
    assert (await ended(client, job_id))["state"] == "completed"
    outputs = [(await client.get(f"/v1/jobs/{job_id}/tasks/{name}")).json()["output"] for name in "ab"]
    assert outputs == [{"yes": True}, 2]
    problem(await client.post(f"/v1/jobs/{job_id}/signals/answer"), 409, "job_ended")


async def test_a_task_is_retried_with_another_input(site: Site) -> None:
    @site.home.function("divide")
    async def divide(by: int) -> float:
        return 1 / by

    client = site.client()
    job_id = await submitted(client, job(task("a", "divide", input={"by": 0})))
    assert (await ended(client, job_id))["state"] == "failed"
    answer = await client.post(f"/v1/jobs/{job_id}/tasks/a/retry", json={"input": {"by": 2}})
    assert answer.status_code == 200
    assert answer.json().keys() == {"state"}  # a key that only writes learns nothing of what was written
    assert (await ended(client, job_id))["state"] == "completed"
    assert (await client.get(f"/v1/jobs/{job_id}/tasks/a")).json()["output"] == 0.5
    problem(await client.post(f"/v1/jobs/{job_id}/tasks/zzz/retry"), 404, "task_not_found")


async def test_a_task_is_skipped(site: Site) -> None:
    client = site.client()
    job_id = await submitted(client, job(task("a", "nobody-has-this"), task("b", after="a")))
    answer = await client.post(f"/v1/jobs/{job_id}/tasks/a/skip", json={"reason": "not today"})
    assert answer.json() == {"state": "skipped"}
    assert (await ended(client, job_id))["state"] == "completed"


async def test_a_plan_runs_nothing(site: Site) -> None:
    client = site.client()
    document = job(task("a", timeout=100), task("b", after="a"), task("c", after="a"), deadline=10)
    found = (await client.post("/v1/plans", json=document)).json()
    assert found["levels"] == [["a"], ["b", "c"]]
    assert found["criticalPath"][0] == "a"
    assert "deadline" in found["warnings"][0]
    assert (await client.get("/v1/jobs")).json()["jobs"] == []


async def test_a_plan_knows_the_functions_of_workers(url: str) -> None:
    async with support.opened(url) as site:
        worker = Ostinato(url, tenant="other")
        worker.function("slow", timeout=60)(lambda: None)
        async with worker:
            client = await site.admin("other")
            found = (await client.post("/v1/plans", json=job(task("a", "slow"), deadline=10))).json()
            assert "deadline" in found["warnings"][0]
            (function,) = (await client.get("/v1/functions")).json()["functions"]
            assert (function["name"], function["timeout"], function["retry"]["maxAttempts"]) == ("slow", 60, 3)
            (running,) = (await client.get("/v1/workers")).json()["workers"]
            assert running["alive"]
            assert running["queues"] == ["default"]


async def test_a_guest_hears_of_the_end_of_its_jobs(url: str) -> None:
    async with support.opened(url) as site:
        worker = Ostinato(url, tenant="other")
        worker.function("one")(lambda: 1)
        async with worker:
            client = await site.server.tenants.client("other")
            made = await client.submit(job(task("a", "one")))
            assert await soon(made.result()) == {"a": 1}


async def test_clients_that_nobody_uses_make_room(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from ostinato.api import tenants

    kept = tenants.Tenants(site.home, most=2)
    for name in ("one", "two", "three"):
        await kept.client(name)
    assert len(site.home.engine.guests) == 3  # all of them may still be in use
    monkeypatch.setattr(tenants, "UNUSED_SECONDS", 0.0)
    last = await kept.client("four")

    async def made_room() -> bool:
        return len(site.home.engine.guests) == 2

    await until(made_room, "room")
    await last.submit(IDLE)
    await (await kept.client("one")).submit(IDLE)
    await kept.close()
    assert site.home.engine.guests == set()


async def test_jobs_are_found_by_what_is_known_of_them(site: Site) -> None:
    client = site.client()
    red = await submitted(client, job(task("a"), name="paint", tags={"colour": "red"}, correlationId="c-1"))
    blue = await submitted(client, IDLE | {"name": "paint", "tags": {"colour": "blue"}, "requestId": "r-1"})
    await ended(client, red)

    async def ids(**query: Any) -> list[str]:
        answer = await client.get("/v1/jobs", params=query)
        assert answer.status_code == 200, answer.text
        return [found["jobId"] for found in answer.json()["jobs"]]

    assert await ids(name="paint") == [blue, red]
    assert await ids(name="paint", state="completed") == [red]
    assert await ids(state=["completed", "running"]) == [blue, red]
    assert await ids(tag="colour") == [blue, red]
    assert await ids(tag="colour=red") == [red]
    assert await ids(correlationId="c-1") == [red]
    assert await ids(requestId="r-1") == [blue]
    assert await ids(createdFrom="2100-01-01T00:00:00Z") == []
    assert await ids(createdUntil="2100-01-01T00:00:00Z") == [blue, red]
    for bad in (
        {"createdFrom": "2100-01-01T00:00:00"},
        {"state": "odd"},
        {"tag": "="},
        {"cursor": "x"},
        {"limit": "501"},
    ):
        problem(await client.get("/v1/jobs", params=bad), 422, "invalid_input")


async def test_why_a_task_is_not_running(site: Site) -> None:
    client = site.client()
    job_id = await submitted(client, job(task("a", "nobody-has-this"), task("b", after="a")))
    first = (await client.get(f"/v1/jobs/{job_id}/tasks/a/why")).json()
    assert first["code"] == "no_worker"
    assert "nobody-has-this" in first["sentence"]
    second = (await client.get(f"/v1/jobs/{job_id}/tasks/b/why")).json()
    assert second["code"] == "dependency"
    assert "'a'" in second["sentence"]
    problem(await client.get(f"/v1/jobs/{job_id}/tasks/zzz/why"), 404, "task_not_found")


# --- dead letters --------------------------------------------------------------------------------------------------


async def test_dead_letters_are_listed_shown_and_redriven(site: Site) -> None:
    flaky = Flaky(site.home, failures=3)
    client = site.client()
    ids = [await submitted(client, job(task("a", "flaky", input={"n": n}))) for n in range(3)]
    for job_id in ids:
        await ended(client, job_id)
    page = (await client.get("/v1/dead-letters?limit=2")).json()
    rest = (await client.get("/v1/dead-letters", params={"cursor": page["nextCursor"]})).json()
    assert {letter["jobId"] for letter in page["deadLetters"] + rest["deadLetters"]} == set(ids)
    assert rest["nextCursor"] is None
    shown = (await client.get(f"/v1/dead-letters/{ids[0]}/a")).json()
    assert shown["deadLetter"]["input"] == {"n": 0}
    assert shown["deadLetter"]["error"]["type"] == "ValueError"
    assert len(shown["detail"]["attempts"]) == 1

    would = (await client.post("/v1/dead-letters/redrive", json={"name": "flaky", "dryRun": True})).json()
    assert (len(would["letters"]), would["count"], would["dryRun"]) == (3, 3, True)
    depth = (await client.get("/v1/dead-letters/depth")).json()
    assert depth == {"depth": 3, "threshold": 10, "alarm": False}
    found = (await client.get("/v1/dead-letters", params={"errorType": "KeyError"})).json()
    assert found["deadLetters"] == []
    one = {"letters": [{"jobId": ids[0], "taskId": "a"}]}
    assert (await client.post("/v1/dead-letters/redrive", json=one)).json()["count"] == 1
    assert (await ended(client, ids[0]))["state"] == "completed"
    problem(await client.get(f"/v1/dead-letters/{ids[0]}/a"), 404, "not_found")
    assert (await client.post("/v1/dead-letters/redrive", json={"all": True})).json()["count"] == 2
    for job_id in ids:
        assert (await ended(client, job_id))["state"] == "completed"
    assert (await client.get("/v1/dead-letters")).json()["deadLetters"] == []
    assert len(flaky.calls) == 6


@pytest.mark.parametrize("body", [{}, {"letters": [], "all": True}, {"dryRun": True}, {"name": "a\0"}])
async def test_a_redrive_must_say_what(site: Site, body: dict[str, Any]) -> None:
    problem(await site.client().post("/v1/dead-letters/redrive", json=body), 422, "invalid_input")


async def test_a22_a_published_status_is_answered_with_its_time(site: Site) -> None:
    """A22: over HTTP and GraphQL, with the time that followers see."""
    client = site.client()
    job_id = await submitted(client, job(task("a")))
    answer = (await client.post(f"/v1/jobs/{job_id}/status", json={"status": "fine"})).json()
    query = 'mutation($id: ID!) { publishStatus(input: {jobId: $id, status: "fine"}) { timestamp } }'
    body = {"query": query, "variables": {"id": job_id}}
    told = (await client.post("/graphql", json=body)).json()["data"]["publishStatus"]
    events = (await client.get(f"/v1/jobs/{job_id}/events")).json()["events"]
    at = [event["at"] for event in events if event["type"] == "Status Published"]
    assert [answer["timestamp"], told["timestamp"]] == at


async def test_a_plan_says_what_was_compensated(site: Site) -> None:
    """B7: over HTTP and GraphQL."""
    client = await site.admin()
    tasks = [
        task("ship", "break"),
        task("refund", "break", "ship", onDependencyFailure="run", compensates=True),
        task("done", "break", "refund", onDependencyFailure="run", compensates=True),
    ]
    job_id = await submitted(client, job(*tasks))
    await ended(client, job_id)
    plan = (await client.post(f"/v1/jobs/{job_id}/resume", json={"dryRun": True})).json()
    assert plan == {
        "rerun": ["done"], "reused": [], "waiting": [], "undone": ["ship", "refund"], "undoneBy": ["done", "refund"],
    }  # fmt: skip
    query = f'mutation {{ resume(jobId: "{job_id}", dryRun: true) {{ rerun undone undoneBy }} }}'
    answer = (await client.post("/graphql", json={"query": query})).json()["data"]["resume"]
    assert answer == {"rerun": ["done"], "undone": ["ship", "refund"], "undoneBy": ["done", "refund"]}
    refusal = problem(await client.post(f"/v1/jobs/{job_id}/tasks/ship/retry", json={}), 409, "not_possible")
    assert refusal["compensatedBy"] == ["refund"]
