"""`index rebuild`: from events, while the system runs, and the result is equal."""

import asyncio
from typing import Any

from ostinato import Ostinato, audit, indexing, reindexing
from ostinato.core import executions
from tests.engine import support as engine_support
from tests.engine.support import job, opened, sql, task
from tests.index import support
from tests.index.support import AGENT, MACHINE, arn, change


async def dump(url: str, *, times: bool = True) -> list[Any]:
    """All that the index shows; `times` is with when it was indexed."""
    indexed = ", indexed_at" if times else ""
    statements = (
        "SELECT tenant, job_id, name, state, correlation_id, CAST(tags AS {bytes}), created_at, finished_at FROM job "
        "ORDER BY 1, 2",
        "SELECT tenant, job_id, key, value, created_at FROM job_tag ORDER BY 1, 2, 3",
        "SELECT tenant, execution_arn, state_machine_arn, agent_name, execution_name, status, start_at, stop_at, "
        f"correlation_id{indexed} FROM execution ORDER BY 1, 2",
        "SELECT tenant, execution_arn, key, value, start_at FROM execution_tag ORDER BY 1, 2, 3",
    )
    kind = "BLOB" if url.startswith("sqlite") else "bytea"
    return [await sql(url, statement.replace("{bytes}", kind)) for statement in statements]


async def fill(app: Ostinato) -> None:
    """Jobs of every end, one that runs, and outside executions with their events recorded."""
    gate = engine_support.Gate(app)
    good = await app.submit(job(task("a"), jobId="good", name="report", tags={"team": "a"}, correlationId="order"))
    bad = await app.submit(job(task("a", "break"), jobId="bad", name="report"))
    await app.submit(job(task("a", "gate"), jobId="running", name="report", tags={"team": "b"}))
    resumed = await app.submit(job(task("a", "break"), jobId="resumed", name="report"))
    await good.result(engine_support.PATIENCE)
    for made in (bad, resumed):
        await engine_support.failure(made)
    await resumed.resume()
    await engine_support.failure(resumed)
    await engine_support.soon(gate.started.wait())
    for n in range(20):
        await deliver(app, change(name=f"e{n}", start=n), f"start-{n}")
        if n % 5:
            status = executions.STATUSES[n % 5]
            await deliver(app, change(status, name=f"e{n}", start=n, stop=n + 9, correlationId="c"), f"end-{n}")


async def deliver(app: Ostinato, event: dict[str, Any], event_id: str) -> None:
    await app.post_events(event | {"id": event_id})


async def test_a_rebuild_of_what_is_right_changes_nothing(url: str) -> None:
    async with opened(url, shutdown_seconds=0) as app:
        await fill(app)
        before = await dump(url)
        seen: list[tuple[int, int]] = []
        done = await app.rebuild_index(lambda now: seen.append((now.jobs, now.events)))
        assert await dump(url) == before
        assert (done.jobs, done.total_jobs, done.mended, done.problems) == (4, 4, 0, [])
        assert (done.events, done.total_events, done.skipped) == (36, 36, 0)
        assert seen[-1] == (4, 36)
        assert seen == sorted(seen)


PLANTED = (
    "UPDATE job SET name = 'wrong', correlation_id = 'wrong', created_at = 7 WHERE job_id = 'good'",
    "UPDATE job SET finished_at = NULL WHERE job_id = 'bad'",
    "UPDATE job SET state = 'cancelled' WHERE job_id = 'resumed'",
    "UPDATE job SET finished_at = 5 WHERE job_id = 'running'",
    "UPDATE job_tag SET value = 'wrong', created_at = 5 WHERE job_id = 'good'",
    "DELETE FROM job_tag WHERE job_id = 'running'",
    "INSERT INTO job_tag (tenant, job_id, key, value, created_at) VALUES ('default', 'bad', 'wrong', 'x', 1)",
    "UPDATE execution SET status = 'SUCCEEDED', stop_at = 99 WHERE execution_name = 'e1'",
    "UPDATE execution SET status = 'ABORTED', stop_at = 999999999999 WHERE execution_name = 'e5'",
    "UPDATE execution SET agent_name = 'wrong', start_at = 5 WHERE execution_name = 'e2'",
    "UPDATE execution SET correlation_id = 'zzz', state_machine_arn = 'zzz' WHERE execution_name = 'e3'",
    "DELETE FROM execution WHERE execution_name = 'e4'",
    "DELETE FROM execution_tag WHERE execution_arn LIKE '%e6'",
    "UPDATE execution_tag SET value = 'zzz' WHERE execution_arn LIKE '%e7'",
    "INSERT INTO execution_tag (tenant, execution_arn, key, value, start_at) VALUES ('default', '{arn}', 'x', 'x', 1)",
)


async def test_wrong_rows_are_mended_from_events(url: str) -> None:
    async with opened(url, shutdown_seconds=0) as app:
        await fill(app)
        before = await dump(url, times=False)
        for statement in PLANTED:
            await sql(url, statement.replace("{arn}", arn("e8")))
        planted = await dump(url, times=False)
        assert all(was != now for was, now in zip(before, planted, strict=True))
        done = await app.rebuild_index()
        assert await dump(url, times=False) == before
        assert (done.mended, done.problems) == (4 + 8, [])
        assert (await app.rebuild_index()).mended == 0
        assert (await audit.audit(app.engine.store)).problems == []


async def test_a_move_that_the_database_refuses_is_reported(url: str) -> None:
    async with opened(url, shutdown_seconds=0) as app:
        await fill(app)
        await sql(url, "UPDATE job SET state = 'completed' WHERE job_id = 'running'")
        done = await app.rebuild_index()
        assert done.mended == 0
        assert ["'running'" in problem for problem in done.problems] == [True]


async def test_a_rebuild_takes_in_what_was_skipped_before_its_tags_were_known(url: str) -> None:
    async with opened(url, shutdown_seconds=0) as app:
        for n, event in enumerate([change("FAILED", stop=1234567900000, tags=None), change(tags=None)]):
            await deliver(app, event, f"id-{n}")
        assert await app.executions() == []
        assert (await app.rebuild_index()).skipped == 2
        await app.index.tag(MACHINE, AGENT)
        done = await app.rebuild_index()
        assert (done.mended, done.skipped) == (1, 0)
        assert [one.status for one in await app.executions()] == ["FAILED"]


async def test_what_has_no_recorded_events_stays(url: str) -> None:
    async with opened(url, shutdown_seconds=0) as app:
        told = executions.read_event(change("ABORTED", stop=1234567900000)).execution
        await app.engine.store.index_executions(app.tenant, [told])
        await support.record(url, change() | {"detail-type": "Other"}, "other")
        await support.record(url, change("PENDING"), "unreadable")
        before = await dump(url)
        done = await app.rebuild_index()
        assert (done.mended, done.events, done.skipped) == (0, 2, 1)
        assert await dump(url) == before


async def forget_outside(url: str) -> None:
    await sql(url, "DELETE FROM execution")
    await sql(url, "DELETE FROM execution_tag")


async def test_what_was_reported_in_python_is_rebuilt(url: str) -> None:
    async with opened(url, shutdown_seconds=0) as app:
        ended = change("FAILED", stop=1234567900000, correlationId="order")
        await app.index.report([change(), ended, change(name="other"), change(name="unknown", machine="x", tags=None)])
        await app.index.report([ended])
        before = await dump(url, times=False)
        assert len(before[2]) == 2
        assert (await app.rebuild_index()).mended == 0
        await forget_outside(url)
        done = await app.rebuild_index()
        assert (done.events, done.mended, done.skipped) == (4, 2, 1)
        assert await dump(url, times=False) == before


async def test_what_a_rule_has_written_is_rebuilt(url: str) -> None:
    """Whatever its tags, and no rule acts on it again: this one would for ever."""
    detail = {"executionArn": "run:7", "stateMachineArn": "nightly-prod", "status": "FAILED", "startDate": 1000}
    pattern = {"source": ["acme", "ostinato"], "detail-type": ["Ended", indexing.WRITTEN]}
    rule = {"name": "all", "pattern": pattern, "targets": [{"index": detail}]}
    async with opened(url) as app:
        await app.rules.define(rule)
        await app.post_events({"source": "acme", "detail-type": "Ended", "id": "1", "detail": {}})

        async def written() -> bool:
            return bool(await app.executions(agent_name="nightly")) and not await app.jobs(state="running", most=1)

        await engine_support.until(written, "the execution")
        await app.rules.remove("all")
        before = await dump(url, times=False)
        assert (await app.rebuild_index()).mended == 0
        await forget_outside(url)
        assert (await app.rebuild_index()).mended == 1
        assert await dump(url, times=False) == before


async def test_an_event_with_the_id_of_another_does_not_count(url: str) -> None:
    async with opened(url, shutdown_seconds=0) as app:
        await deliver(app, change(), "same")
        ended = change("FAILED", stop=1234567900000) | {"id": "same"}
        [answer] = await app.post_events(ended)
        assert (answer.outcome, answer.indexed) == ("duplicate", True)
        assert (await app.index.report([ended])).indexed == 1
        assert [one.status for one in await app.executions()] == ["RUNNING"], "as it was told first"
        assert (await app.rebuild_index()).mended == 0


async def test_of_very_many_events_a_part_is_folded_at_a_time(url: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(reindexing, "FOLDED", 7)
    async with opened(url, shutdown_seconds=0) as app:
        await fill(app)
        before = await dump(url, times=False)
        await sql(url, "DELETE FROM execution")
        for n in range(9):
            await support.record(url, change(name=f"untagged-{n}", machine="x", tags={}), f"untagged-{n}")
        done = await app.rebuild_index()
        assert (done.events, done.mended, done.skipped) == (45, 20, 9)
        assert await dump(url, times=False) == before


async def test_a_rebuild_is_right_while_jobs_run_and_reports_arrive(url: str) -> None:
    """Nothing that happens meanwhile is undone, and what was wrong before is right in the end."""
    async with opened(url, shutdown_seconds=0) as app:
        await fill(app)
        for statement in PLANTED:
            await sql(url, statement.replace("{arn}", arn("e8")))
        stop = asyncio.Event()

        async def work() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                made = await app.submit(job(task("a", "break" if n % 3 else "echo"), name="busy", tags={"n": str(n)}))
                await deliver(app, change(name=f"new-{n}", start=n), f"new-{n}-a")
                late = change("SUCCEEDED", name=f"e{n % 20}", start=n % 20, stop=10_000 + n)
                await deliver(app, late, f"late-{n}")
                if n % 2:
                    await made.cancel()

        busy = [asyncio.create_task(work())]
        for _ in range(3):
            await app.rebuild_index()
        stop.set()
        await asyncio.gather(*busy)

        async def idle() -> bool:
            return not await app.jobs(state="running", name="busy", most=1)

        await engine_support.until(idle)
        done = await app.rebuild_index()
        after = await dump(url)
        assert done.problems == []
        assert await naive(url) == {row[1]: (row[5], row[6], row[7], row[8]) for row in after[2]}
        assert (await app.rebuild_index()).mended == 0
        assert await dump(url) == after
        assert (await audit.audit(app.engine.store)).problems == []


async def naive(url: str) -> dict[str, Any]:
    """(status, start, stop, correlation id) of all executions, from all recorded events at once."""
    from ostinato.core import codec

    lives: dict[str, list[dict[str, Any]]] = {}
    for (data,) in await sql(url, "SELECT data FROM outside_event"):
        detail = codec.decode(bytes(data))["detail"]
        lives.setdefault(detail["executionArn"], []).append(detail)
    found: dict[str, Any] = {}
    for name, life in lives.items():
        ends = [
            (detail["stopDate"], executions.STATUSES.index(detail["status"])) for detail in life if detail["stopDate"]
        ]
        stop, status = max(ends) if ends else (None, 0)
        correlation = "c" if any(detail.get("correlationId") for detail in life) else None
        start = min(detail["startDate"] for detail in life) * 1000
        found[name] = (executions.STATUSES[status], start, None if stop is None else stop * 1000, correlation)
    return found


async def test_two_tenants_are_rebuilt_apart(url: str) -> None:
    async with opened(url, tenant="one") as one, opened(url, tenant="two") as two:
        for app in (one, two):
            await deliver(app, change(), "same-id")
        await sql(url, "DELETE FROM execution")
        assert (await one.rebuild_index()).mended == 1
        assert len(await one.executions()) == 1
        assert await two.executions() == []
