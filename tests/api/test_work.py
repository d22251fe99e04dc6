"""The worker protocol: leases over HTTP, and what happens to those who do not hold one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from ostinato import audit
from ostinato.api import access, desk, server
from ostinato.api.http import work
from ostinato.engine import engine
from tests.api import support
from tests.api.support import Site, ended, problem, submitted
from tests.engine.support import PATIENCE, job, reaches, soon, sql, task, told, until

Lease = dict[str, Any]


@pytest.fixture
async def site(url: str) -> AsyncIterator[Site]:
    """A server that runs nothing itself."""
    async with support.opened(url, engine={"work": False}) as made:
        yield made


class Hand:
    """A worker as simple as can be: one that holds what it claims until it is told what to do with it."""

    def __init__(self, client: httpx2.AsyncClient, worker_id: str) -> None:
        self.client = client
        self.worker_id = worker_id

    async def say(self, verb: str, lease: Lease | None = None, **fields: Any) -> httpx2.Response:
        held = {} if lease is None else {name: lease[name] for name in ("jobId", "taskId", "attempt", "token")}
        return await self.client.post(f"/v1/work/{verb}", json={"workerId": self.worker_id} | held | fields)

    async def claim(self, **fields: Any) -> list[Lease]:
        answer = await self.say("claim", **({"waitSeconds": 2 * PATIENCE} | fields))
        assert answer.status_code == 200, answer.text
        return answer.json()["leases"]

    async def take(self) -> Lease:
        (lease,) = await self.claim()
        return lease

    async def done(self, verb: str, lease: Lease, **fields: Any) -> Any:
        answer = await self.say(verb, lease, **fields)
        assert answer.is_success, answer.text
        return answer.json()


async def hired(site: Site, *functions: Any, tenant: str = "default", key: str | None = None, **fields: Any) -> Hand:
    key = key or await site.key("tasks:work", tenant=tenant)
    client = site.client(key)
    known = [{"name": f} if isinstance(f, str) else f for f in functions or ("echo",)]
    answer = await client.post("/v1/work/register", json={"functions": known} | fields)
    assert answer.status_code == 201, answer.text
    return Hand(client, answer.json()["workerId"])


async def test_a_task_from_claim_to_result(site: Site) -> None:
    hand, admin = await hired(site), await site.admin()
    document = job(task("a", input={"n": 1}), task("b", after="a"), correlationId="order-7", requestId="r-1")
    job_id = await submitted(admin, document)
    lease = await hand.take()
    assert (lease["taskId"], lease["attempt"], lease["input"]) == ("a", 1, {"n": 1})
    assert (lease["correlationId"], lease["requestId"], lease["idempotencyKey"]) == ("order-7", "r-1", f"{job_id}:a")
    assert await hand.done("complete", lease, output={"n": 2}) | {"recorded": True}
    second = await hand.take()
    assert second["dependencies"] == 1
    assert (await hand.done("outputs", second))["outputs"] == {"a": {"n": 2}}
    await hand.done("complete", second, output=[None, "ü", 1.5])
    assert (await ended(admin, job_id))["state"] == "completed"
    assert (await (await site.home.job(job_id)).outputs())["b"] == [None, "ü", 1.5]
    left = await hand.say("leave", done=[lease["token"], second["token"]])
    assert left.json() == {"forgotten": True}
    assert (await admin.get("/v1/workers")).json()["workers"] == []


async def test_a_stale_token_changes_nothing(site: Site) -> None:
    hand, admin = await hired(site), await site.admin()
    job_id = await submitted(admin)
    lease = await hand.take()
    await hand.done("release", lease)
    again = await hand.take()
    assert again["attempt"] == lease["attempt"]  # an attempt that was handed back does not count
    before = (await admin.get(f"/v1/jobs/{job_id}/events")).json()
    said: dict[str, dict[str, Any]] = {
        "complete": {"output": 1},
        "fail": {"message": "no"},
        "release": {},
        "suspend": {"kind": "sleep", "key": "sleep", "seconds": 1},
        "finish": {"status": "over"},
        "step": {"key": "one", "output": 1},
        "steps": {},
        "outputs": {},
        "payload": {"digest": "00"},
        "add-tasks": {"key": "add_tasks", "tasks": [task("b")]},
    }
    for verb, fields in said.items():
        for stale in (lease, again | {"attempt": 7}, again | {"taskId": "z"}, again | {"token": "other.x.y"}):
            if verb in ("steps", "outputs", "payload", "add-tasks") and stale["attempt"] == 7:
                continue  # reading asks for the token alone
            problem(await hand.say(verb, stale, **fields), 409, "lease_lost")
    assert (await admin.get(f"/v1/jobs/{job_id}/events")).json() == before
    assert (await hand.done("complete", again))["recorded"]
    problem(await hand.say("complete", again), 409, "lease_lost")


async def test_many_reports_are_answered_one_by_one(site: Site) -> None:
    hand, admin = await hired(site), await site.admin()
    job_id = await submitted(admin, job(*[task(f"t{n}") for n in range(20)]))
    leases = await hand.claim(limit=20)
    assert len(leases) == 20
    await hand.done("complete", leases[0])
    bodies = [
        {"workerId": hand.worker_id, "output": n}
        | {name: lease[name] for name in ("jobId", "taskId", "attempt", "token")}
        for n, lease in enumerate(leases)
    ]
    answer = await hand.client.post("/v1/work/complete", json=bodies)
    outcomes = answer.json()["outcomes"]
    assert [outcome["recorded"] for outcome in outcomes] == [False] + [True] * 19
    assert outcomes[0]["code"] == "lease_lost"
    assert (await ended(admin, job_id))["state"] == "completed"


async def test_a_worker_belongs_to_its_key_and_its_tenant(site: Site) -> None:
    hand, admin = await hired(site), await site.admin()
    await submitted(admin)
    lease = await hand.take()
    colleague = Hand(site.client(await site.key("tasks:work")), hand.worker_id)
    stranger = Hand(site.client(await site.key("tasks:work", tenant="other")), hand.worker_id)
    for verb, about in (("claim", None), ("heartbeat", None), ("leave", None), ("complete", lease), ("steps", lease)):
        problem(await colleague.say(verb, about), 403, "forbidden")
        problem(await stranger.say(verb, about), 404, "worker_not_found")
    theirs = {"functions": [{"name": "echo"}], "workerId": hand.worker_id}
    problem(await colleague.client.post("/v1/work/register", json=theirs), 403, "forbidden")
    assert (await stranger.client.post("/v1/work/register", json=theirs)).status_code == 201  # ids are per tenant
    problem(await stranger.say("complete", lease), 409, "lease_lost")
    other = await hired(site)
    problem(await other.say("complete", lease), 409, "lease_lost")
    assert (await hand.done("complete", lease))["recorded"]


async def test_a_worker_with_a_database_cannot_be_spoken_for(url: str) -> None:
    async with support.opened(url) as site:
        (worker,) = await site.home.engine.store.workers("default")
        hand = Hand(site.client(await site.key("tasks:work")), worker["workerId"])
        problem(await hand.say("claim"), 403, "forbidden")


# --- waiting for tasks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tenant", ["default", "acme"])
async def test_a_claim_waits_and_wakes_at_once(url: str, tenant: str) -> None:
    """Nobody looks by the clock before the patience of this test is over: who wakes was woken."""
    async with support.opened(url, engine={"work": False, "poll_seconds": 10 * PATIENCE}) as site:
        hand, admin = await hired(site, tenant=tenant), await site.admin(tenant)
        for _ in range(3):
            waiting = asyncio.create_task(hand.take())
            await until(lambda: waits(site, tenant))
            await submitted(admin)
            assert (await soon(waiting))["taskId"] == "a"
        # What wakes by time wakes the claim too.
        waiting = asyncio.create_task(hand.take())
        await until(lambda: waits(site, tenant))
        await submitted(admin, job(task("nap", "echo")))
        lease = await soon(waiting)
        started = time.monotonic()
        await hand.done("suspend", lease, kind="sleep", key="sleep", seconds=0.3)
        again = await soon(hand.take())
        assert time.monotonic() - started >= 0.3
        assert (again["attempt"], again["reentered"], again["fresh"]) == (1, True, False)
        assert (await hand.done("steps", again))["steps"] == {"sleep": None}


async def engine_of(site: Site, tenant: str = "default") -> engine.Engine:
    """Whoever works for the tenant in the server."""
    return (await site.server.tenants.client(tenant)).engine


async def waits(site: Site, tenant: str = "default") -> bool:
    return (await engine_of(site, tenant)).polls.waiting == 1


async def test_who_is_declared_dead_while_it_waits_gets_nothing_and_costs_no_attempt(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "REMEMBERED_SECONDS", 0.0)
    lost, admin = await hired(site), await site.admin()
    waiting = asyncio.create_task(lost.say("claim", waitSeconds=5))
    await until(lambda: waits(site))
    await sql(site.home.url, "DELETE FROM worker WHERE worker_id = $1", lost.worker_id)
    await submitted(admin)
    problem(await soon(waiting), 404, "worker_not_found")
    again = await soon((await hired(site)).take())
    assert (again["taskId"], again["attempt"]) == ("a", 1)
    assert not (await audit.audit(site.home.engine.store)).problems


async def test_many_that_wait_cost_one_look(site: Site) -> None:
    hands = [await hired(site) for _ in range(5)]
    polls = [asyncio.create_task(hand.claim()) for hand in hands]
    running = await engine_of(site)
    await until(lambda: _is(running.polls.waiting == 5))
    looks = 0
    execute = running.store.execute

    async def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return await execute(*args)

    running.store.execute = counted  # pyright: ignore[reportAttributeAccessIssue]
    running.committer.want_claim()
    await asyncio.sleep(0.02)
    assert looks <= 2  # ours, and that of the watcher
    await submitted(await site.admin(), job(task("a"), task("b")))
    done, left = set[asyncio.Task[list[Lease]]](), set(polls)
    async with asyncio.timeout(PATIENCE):
        while len(done) < 2:
            more, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            done |= more
    assert sum(len(poll.result()) for poll in done) == 2
    assert len(left) == 3
    assert {poll.result()[0]["taskId"] for poll in done} == {"a", "b"}
    for poll in left:
        poll.cancel()


async def _is(value: bool) -> bool:
    return value


async def test_only_what_was_asked_for_is_given(site: Site) -> None:
    hand, admin = await hired(site, "echo", "join", queues=["default", "night"]), await site.admin()
    await submitted(admin, job(task("a"), task("b", "join"), task("c", "echo", queue="night"), task("d", "other")))
    assert [lease["taskId"] for lease in await hand.claim(functions=["join"], limit=9)] == ["b"]
    assert [lease["taskId"] for lease in await hand.claim(queues=["night", "day"], limit=9)] == ["c"]
    assert await hand.claim(functions=["other"], limit=9, waitSeconds=0) == []
    assert [lease["taskId"] for lease in await hand.claim(limit=9)] == ["a"]
    assert await hand.claim(limit=9, waitSeconds=0.05) == []


@pytest.fixture
async def listening(site: Site) -> AsyncIterator[tuple[Site, server.Listener]]:
    site.server.options = site.server.options.__class__(port=0, requests_per_second=10_000.0)
    listener = server.Listener(site.server)
    await listener.start()
    yield site, listener
    await listener.stop()


@contextlib.asynccontextmanager
async def over_network(hand: Hand, listener: server.Listener) -> AsyncIterator[Hand]:
    headers = {"Authorization": hand.client.headers["Authorization"]}
    async with httpx2.AsyncClient(base_url=listener.address, headers=headers) as client:
        yield Hand(client, hand.worker_id)


async def test_who_hangs_up_holds_nothing(listening: tuple[Site, server.Listener]) -> None:
    site, listener = listening
    polls = (await engine_of(site)).polls
    async with over_network(await hired(site), listener) as hand:
        poll = asyncio.create_task(hand.claim(waitSeconds=20))
        await until(lambda: _is(polls.waiting == 1))
        poll.cancel()
        await until(lambda: _is(polls.waiting == 0))
    made = await site.home.submit(support.ONE)
    await asyncio.sleep(0.1)
    assert "Task Processing" not in await told(made)


async def test_a_stop_answers_who_waits(listening: tuple[Site, server.Listener]) -> None:
    site, listener = listening
    async with over_network(await hired(site), listener) as hand:
        poll = asyncio.create_task(hand.claim(waitSeconds=20))
        await until(lambda: waits(site))
        await soon(listener.stop())
        assert await soon(poll) == []


async def test_a_claim_that_cannot_be_told_leaves_nothing_behind(
    site: Site, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stops in the moment in which the tasks were claimed."""
    hand = await hired(site)
    running = await engine_of(site)
    deliver = running.polls.deliver

    def deliver_and_stop(leases: list[Any], more: bool = False) -> None:
        deliver(leases, more)
        if leases:
            site.server.stop_waiting()

    monkeypatch.setattr(running.polls, "deliver", deliver_and_stop)
    poll = asyncio.create_task(hand.claim(waitSeconds=20, limit=2))
    await until(lambda: waits(site))
    made = await site.home.submit(job(task("a"), task("b")))
    assert await soon(poll) == []
    await until(lambda: _is(running.committer.idle))
    assert (await told(made)).count("Task Released") == 2
    assert {(t.state, t.attempt) for t in await made.tasks()} == {("pending", 0)}
    assert await sql(url, "SELECT count(*) FROM lease") == [(0,)]


async def test_one_key_cannot_take_all_the_room_to_wait(url: str) -> None:
    async with support.opened(url, engine={"work": False}, max_waiting_claims=2) as site:
        hand, other = await hired(site), await hired(site)
        polls = [asyncio.create_task(hand.claim(waitSeconds=20)) for _ in range(2)]
        running = await engine_of(site)
        await until(lambda: _is(running.polls.waiting == 2))
        refused = await hand.say("claim", waitSeconds=20)
        problem(refused, 429, "too_many_requests")
        assert int(refused.headers["retry-after"]) >= 1
        assert await hand.claim(waitSeconds=0) == []  # this one does not wait
        assert await other.claim(waitSeconds=0.05) == []  # nor is another key kept out
        await site.home.submit(job(task("a"), task("b")))
        assert [len(found) for found in await asyncio.gather(*polls)] == [1, 1]
        assert await hand.claim(waitSeconds=0.05) == []


async def test_a_revoked_key_waits_no_longer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "REMEMBERED_SECONDS", 0.0)
    monkeypatch.setattr("ostinato.api.http.work.CHECK_SECONDS", 0.05)
    key = await site.key("tasks:work")
    hand = await hired(site, key=key)
    poll = asyncio.create_task(hand.claim(waitSeconds=20))
    await until(lambda: waits(site))
    await site.home.engine.store.revoke_key("default", key.split("_")[1])
    assert await soon(poll) == []
    made = await site.home.submit(support.ONE)
    problem(await hand.say("claim"), 401, "unauthenticated")
    assert "Task Processing" not in await told(made)


async def test_a_lost_answer_is_taken_back(site: Site) -> None:
    hand = await hired(site)
    made = await site.home.submit(job(task("a", retry={"maxAttempts": 3})))
    (lost,) = await hand.claim(claimId="first")
    assert (await hand.say("heartbeat", claims=["second"])).json() == {"lost": []}
    assert (await hand.say("heartbeat", claims=["first"])).json() == {"lost": []}
    again = await hand.take()
    assert again["attempt"] == 2  # nobody knows whether the first one ran
    problem(await hand.say("complete", lost), 409, "lease_lost")
    await hand.done("complete", again)
    await made.result(PATIENCE)
    assert "Task Lost" in await told(made)


async def test_claims_that_were_reported_are_forgotten(site: Site, url: str) -> None:
    hand = await hired(site)
    await site.home.submit(job(task("a"), task("b"), task("c")))
    first, second = await hand.take(), await hand.take()
    await hand.done("complete", first)
    await hand.done("complete", second)
    assert len(await sql(url, "SELECT token FROM lease")) == 2
    third = (await hand.claim(done=[first["token"], "somebody-else.x.y"]))[0]
    await hand.say("heartbeat", done=[second["token"]])
    assert await sql(url, "SELECT token FROM lease") == [(third["token"],)]


# --- reports -------------------------------------------------------------------------------------------------------


async def test_failures_follow_the_policy(site: Site) -> None:
    slow = {"name": "slow", "retry": {"maxAttempts": 3, "baseDelay": 50.0}}
    quick = {"name": "quick", "retry": {"maxAttempts": 2, "baseDelay": 0.0}}
    hand = await hired(site, slow, quick)
    own = {"maxAttempts": 2, "baseDelay": 70.0}
    tasks = [task("a", "slow"), task("b", "slow", retry=own), task("c", "slow"), task("d", "slow"), task("e", "quick")]
    made = await site.home.submit(job(*tasks))
    leases = {lease["taskId"]: lease for lease in await hand.claim(limit=9)}
    assert [leases[name]["maxAttempts"] for name in "abe"] == [3, 2, 2]
    await hand.done("fail", leases["a"], errorType="ValueError", message="no", traceback="line 1")
    await hand.done("fail", leases["b"])
    await hand.done("fail", leases["c"], retryAfter=90)
    await hand.done("fail", leases["d"], retryable=False, message="never")
    await hand.done("fail", leases["e"])
    events = await made.events()
    delays = {e.task_id: e.properties["delay"] for e in events if e.type == "Task Retry Scheduled"}
    assert delays == {"a": 50.0, "b": 70.0, "c": 90.0, "e": 0.0}
    assert (await made.task("d")).task.state == "failed"
    error = (await made.task("a")).task.error
    assert (error["type"], error["message"], error["traceback"]) == ("ValueError", "no", "line 1")
    last = await hand.take()
    assert (last["taskId"], last["attempt"]) == ("e", 2)
    await hand.done("fail", last)
    await reaches(made, "e", "failed")


async def test_waiting_for_a_signal(site: Site) -> None:
    hand = await hired(site)
    made = await site.home.submit(support.ONE)
    lease = await hand.take()
    problem(await hand.say("suspend", lease, kind="wait", key="wait:go"), 422, "invalid_input")
    problem(await hand.say("suspend", lease, kind="sleep", key="sleep"), 422, "invalid_input")
    await hand.done("suspend", lease, kind="wait", key="wait:go", name="go")
    await reaches(made, "a", "waiting")
    await made.signal("go", {"yes": True})
    again = await hand.take()
    assert (await hand.done("steps", again))["steps"] == {"wait:go": {"value": {"yes": True}}}


async def test_steps_and_growth(site: Site) -> None:
    hand = await hired(site)
    made = await site.home.submit(support.ONE)
    lease = await hand.take()
    await hand.done("step", lease, key="one", output={"paid": 17})
    new = [task("b", after="a"), task("c", input={"n": 1})]
    assert await hand.done("add-tasks", lease, key="add_tasks", tasks=new) == {"taskIds": ["b", "c"]}
    assert (await hand.say("add-tasks", lease, key="again", tasks=[task("b")])).status_code == 422
    assert (await hand.done("steps", lease))["steps"] == {"one": {"paid": 17}, "add_tasks": ["b", "c"]}
    assert (await hand.take())["input"] == {"n": 1}
    assert len(await made.tasks()) == 3


async def test_large_inputs_do_not_come_all_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "ANSWER_BYTES", 50_000)
    hand = await hired(site)
    text = "x" * 60_000
    await site.home.submit(job(task("a", input={"text": text}), task("b", input={"text": text + "b"}), task("c")))
    first, second, third = await hand.claim(limit=3)
    assert (first["input"], first["inputDigest"]) == ({"text": text}, None)
    assert second["input"] is None
    assert third["input"] == {}
    found = await hand.done("payload", second, digest=second["inputDigest"])
    assert found["payload"] == {"text": text + "b"}
    problem(await hand.say("payload", second, digest="00"), 404, "not_found")


async def test_outputs_that_are_too_large_are_refused(url: str) -> None:
    async with support.opened(url, engine={"work": False, "max_payload_bytes": 100}) as site:
        hand = await hired(site)
        await site.home.submit(support.ONE)
        lease = await hand.take()
        problem(await hand.say("complete", lease, output="x" * 200), 413, "payload_too_large")
        problem(await hand.say("step", lease, key="one", output="x" * 200), 413, "payload_too_large")
        await hand.done("complete", lease, output="x")


# --- staying alive -------------------------------------------------------------------------------------------------


async def test_a_heartbeat_says_what_was_cancelled(site: Site) -> None:
    hand = await hired(site)
    first, second = await site.home.submit(support.ONE), await site.home.submit(support.ONE)
    leases = await hand.claim(limit=2)
    tasks = [{name: lease[name] for name in ("jobId", "taskId", "token")} for lease in leases]
    assert (await hand.say("heartbeat", tasks=tasks)).json() == {"lost": []}
    await first.cancel("enough")
    lost = (await hand.say("heartbeat", tasks=tasks)).json()["lost"]
    assert [item["jobId"] for item in lost] == [first.job_id]
    problem(await hand.say("complete", next(lse for lse in leases if lse["jobId"] == first.job_id)), 409, "lease_lost")
    await hand.done("complete", next(lease for lease in leases if lease["jobId"] == second.job_id))
    await second.result(PATIENCE)


async def test_a_silent_worker_loses_what_it_holds(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "REMEMBERED_SECONDS", 0.0)
    silent, other = await hired(site, leaseSeconds=0.5), await hired(site, leaseSeconds=60)
    made = await site.home.submit(job(task("a", retry={"maxAttempts": 2})))
    lease = await silent.take()
    taken_over = await soon(other.take())
    assert taken_over["attempt"] == 2
    problem(await silent.say("heartbeat"), 404, "worker_not_found")
    problem(await silent.say("complete", lease), 404, "worker_not_found")
    again = {"functions": [{"name": "echo"}], "workerId": silent.worker_id}
    assert (await silent.client.post("/v1/work/register", json=again)).status_code == 201
    problem(await silent.say("complete", lease), 409, "lease_lost")
    await other.done("complete", taken_over)
    await made.result(PATIENCE)
    assert not (await audit.audit(site.home.engine.store)).problems


async def test_heartbeats_keep_a_lease(site: Site) -> None:
    hand = await hired(site, leaseSeconds=2.0)
    await site.home.submit(support.ONE)
    lease = await hand.take()
    started = time.monotonic()
    while time.monotonic() - started < 2.5:
        await asyncio.sleep(0.1)
        assert (await hand.say("heartbeat")).status_code == 200
    await hand.done("complete", lease)


async def test_servers_are_equals(site: Site, url: str) -> None:
    """Claimed from one server, reported to another; and work that comes in at one wakes who waits at the other."""
    async with support.opened(url, engine={"work": False, "poll_seconds": 10 * PATIENCE}) as second:
        key = await site.key("tasks:work")
        here = await hired(site, key=key)
        there = Hand(second.client(key), here.worker_id)
        poll = asyncio.create_task(there.take())
        await until(lambda: waits(second))
        made = await site.home.submit(support.ONE)
        lease = await soon(poll)
        await here.done("step", lease, key="one", output=1)
        assert (await there.done("steps", lease))["steps"] == {"one": 1}
        await here.done("complete", lease, output="done")
        assert await made.result(PATIENCE) == {"a": "done"}
        problem(await there.say("complete", lease), 409, "lease_lost")
        assert (await there.say("leave", done=[lease["token"]])).json() == {"forgotten": True}


ODD: list[Any] = [
    None, [], {}, "x", 1, {"workerId": 1}, {"workerId": ""}, {"workerId": "a/b"}, {"workerId": "w", "what": 1},
    {"workerId": "w\u0000"}, {"functions": []}, {"functions": [{"name": ""}]}, {"functions": [{"name": "\u0000"}]},
    {"functions": [{"name": "f", "retry": {"maxAttempts": 0}}]}, {"functions": [{"name": "f", "timeout": -1}]},
    {"functions": [{"name": "f"}], "leaseSeconds": 0}, {"functions": [{"name": "f"}], "queues": []},
    {"workerId": "w", "waitSeconds": 31}, {"workerId": "w", "waitSeconds": -1}, {"workerId": "w", "limit": -1},
    {"workerId": "w", "limit": 10**30}, {"workerId": "w", "ahead": {"f": -1}}, {"workerId": "w", "done": ["\n"]},
    [{"workerId": "w"}], [[]], [None],
]  # fmt: skip


async def test_nothing_that_is_sent_breaks_it(site: Site) -> None:
    client = site.client(await site.key("tasks:work"))
    for route in work.routes.declared:
        for body in ODD:
            answer = await client.post(route.path, json=body)
            assert answer.status_code in (400, 404, 422), f"{route.path} {body}: {answer.text}"


async def test_the_engines_own_work_is_not_for_others(site: Site) -> None:
    """What gates and rules do is done by the engine itself, whatever a worker says it can."""
    client = site.client(await site.key("tasks:work"))
    for body in (
        {"functions": [{"name": "ostinato.fire"}]},
        {"functions": [{"name": "f"}], "queues": ["default", "ostinato.system"]},
    ):
        assert (
            "engine's own" in problem(await client.post("/v1/work/register", json=body), 422, "invalid_input")["detail"]
        )
