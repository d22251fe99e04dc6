"""The log: gap-free per job, read by job, by task and by application, and a feed that skips nothing."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ostinato import Ostinato, audit, errors
from ostinato.core import codec
from ostinato.store.stream import FeedEvent
from tests.engine import support
from tests.engine.support import PATIENCE, job, run, task


async def everything(app: Ostinato, most: int = 1000) -> list[FeedEvent]:
    found: list[FeedEvent] = []
    while page := await app.events(cursor=found[-1].cursor if found else None, most=most):
        found += page
    return found


async def test_d3_d6_the_log_of_a_job(url: str) -> None:
    """D3: one event table with the seed's names. D6: Job Created first, then Task Pending for each root."""
    async with support.opened(url) as app:
        made = await app.submit(job(task("a"), task("b", "join", "a")))
        await made.result(support.PATIENCE)
        assert [(e.type, e.task_id) for e in await made.events()] == [
            ("Job Created", None),
            ("Task Pending", "a"),
            ("Task Processing", "a"),
            ("Task Completed", "a"),
            ("Task Pending", "b"),
            ("Task Processing", "b"),
            ("Task Completed", "b"),
            ("Job Completed", None),
        ]


async def test_d4_job_created_has_the_whole_request(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", input={"x": 1}), task("b", "join", "a"), requestId="req-789"))
        await made.result(support.PATIENCE)
        created = (await made.events())[0].properties
        assert created["jobId"] == made.job_id
        assert created["requestId"] == "req-789"
        assert created["totalTasks"] == 2
        assert [(t["taskId"], t["name"], t.get("dependsOn", [])) for t in created["tasks"]] == [
            ("a", "echo", []),
            ("b", "join", ["a"]),
        ]
        assert created["tasks"][0]["input"] == {"x": 1}


async def test_d5_task_completed_carries_the_output(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", input={"x": 1})))
        await made.result(support.PATIENCE)
        [event] = [e for e in await made.events() if e.type == "Task Completed"]
        assert (event.job_id, event.task_id, event.attempt) == (made.job_id, "a", 1)
        assert event.properties == {"output": {"x": 1}}


async def test_d13_job_completed_carries_the_counts(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a"), task("b")))
        await made.result(support.PATIENCE)
        end = (await made.events())[-1]
        assert (end.type, end.properties) == ("Job Completed", {"totalTasks": 2, "taskStatuses": {"completed": 2}})


async def test_sequence_numbers_have_no_gaps(url: str) -> None:
    app = support.make(url)
    support.Flaky(app, failures=20, retry=None)
    async with app, support.opened(url):
        jobs = await app.submit_many(
            [
                job(*[task(f"t{n}", "flaky", retry={"maxAttempts": 30, "baseDelay": 0}) for n in range(10)])
                for _ in range(5)
            ]
        )
        for made in jobs:
            await made.result(support.PATIENCE)
            seqs = [event.seq for event in await made.events()]
            assert seqs == list(range(1, len(seqs) + 1))


async def test_d9_d15_the_status_of_a_task_is_its_latest_event(url: str) -> None:
    states = {"Task Completed": "completed", "Task Failed": "failed", "Task Pending": "pending"}
    async with support.opened(url) as app:
        made = await app.submit(job(task("a"), task("b", "break")))
        await support.failure(made)
        for task_id, state in (await support.standing(made)).items():
            last = (await made.events(task_id=task_id))[-1]
            assert states[last.type] == state


async def test_d15_events_by_task_and_in_pages(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a"), task("b", "join", "a")))
        await made.result(support.PATIENCE)
        by_task = await made.events(task_id="b")
        assert [e.type for e in by_task] == ["Task Pending", "Task Processing", "Task Completed"]
        first = await made.events(most=3)
        rest = await made.events(after=first[-1].seq)
        assert [e.seq for e in first + rest] == list(range(1, 9))


async def test_d15_events_of_the_application_in_order(url: str) -> None:
    async with support.opened(url) as app:
        ids = [(await app.submit(job(task("a")))).job_id for _ in range(10)]
        for job_id in ids:
            await (await app.job(job_id)).result(support.PATIENCE)
        feed = await everything(app)
        assert [item.event.job_id for item in feed if item.event.type == "Job Created"] == ids
        assert [item.event.at for item in feed] == sorted(item.event.at for item in feed)
        assert {item.job_name for item in feed} == {"test"}


@pytest.mark.parametrize("plain", [False, True])
async def test_the_correlation_id_is_in_the_jobs_that_a_function_submits(url: str, plain: bool) -> None:
    app = support.make(url)

    async def enter() -> list[str]:
        one = await app.submit(job(task("x"), idempotencyKey="k"))
        own = await app.submit(job(task("x"), correlationId="own"))
        return [one.job_id, own.job_id]

    @app.function
    async def parent() -> list[str]:
        return await enter()

    @app.function("plain")
    def plain_parent() -> list[str]:
        return asyncio.run_coroutine_threadsafe(enter(), loop).result()

    loop = asyncio.get_running_loop()
    async with app:
        made = await app.submit(job(task("a", "plain" if plain else "parent"), correlationId="order-7"))
        jobs = [await app.job(job_id) for job_id in (await made.result(support.PATIENCE))["a"]]
        assert [(await one.info()).correlation_id for one in jobs] == ["order-7", "own"]
        again = await app.submit(job(task("x"), idempotencyKey="k"))
        assert (again.job_id, again.created) == (jobs[0].job_id, False), "whose child it is is no part of the request"


async def test_the_correlation_id_is_in_every_event(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a"), task("b", "join", "a"), correlationId="order-7"))
        await made.result(support.PATIENCE)
        assert {e.correlation_id for e in await made.events()} == {"order-7"}
        assert {item.correlation_id for item in await app.events()} == {"order-7"}
        assert [view.job_id for view in await app.jobs(correlation_id="order-7")] == [made.job_id]
        lone = await app.submit(job(task("a")))
        await lone.result(support.PATIENCE)
        assert {e.correlation_id for e in await lone.events()} == {lone.job_id}, (
            "a job of its own starts its own thread"
        )


async def test_the_feed_goes_on_after_any_cursor(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, *[task(f"t{n}") for n in range(5)])
        feed = await everything(app)
        assert [i.event for i in await everything(app, most=1)] == [i.event for i in feed]
        for n, item in enumerate(feed):
            rest = await app.events(cursor=item.cursor)
            assert [i.cursor for i in rest] == [i.cursor for i in feed[n + 1 :]]


@pytest.mark.parametrize(
    "cursor", ["x", "1", "1.2", "1.2.3.4", "-1.0.0", "1.-1.0", "1.0.-1", f"{2**64}.0.0", "1.5e3.0"]
)
async def test_a_cursor_that_is_none_is_refused(url: str, cursor: str) -> None:
    async with support.opened(url) as app:
        with pytest.raises(errors.InvalidInput, match="cursor"):
            await app.events(cursor=cursor)


async def test_tail_starts_with_what_happens_from_now_on(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("old"))
        tail = app.tail()
        following = asyncio.ensure_future(anext(tail))
        await asyncio.sleep(0.1)
        made = await app.submit(job(task("new")))
        item = await support.soon(following)
        assert (item.event.job_id, item.event.type) == (made.job_id, "Job Created")
        await made.result(support.PATIENCE)
        await tail.aclose()  # type: ignore[attr-defined]


async def test_what_follows_the_newest_cursor_happens_from_now_on(url: str) -> None:
    async with support.opened(url) as app:
        assert await app.events(cursor=await app.newest_cursor()) == []
        await support.run(app, task("a"))
        newest = await app.newest_cursor()
        assert await app.events(cursor=newest) == []
        made = await app.submit(job(task("b")))
        assert {one.event.job_id for one in await app.events(cursor=newest)} == {made.job_id}


async def test_the_feed_goes_on_when_all_of_it_was_pruned(url: str) -> None:
    """A place in the feed is never given twice, or who reads on from there would miss what came after it."""
    async with support.opened(url) as app:
        last: FeedEvent | None = None
        for _ in range(3):
            await run(app, task("a"), task("b", after="a"))
            seen = await app.events(cursor=last.cursor if last else None)
            assert [item.event.type for item in seen][-1] == "Job Completed"
            assert last is None or last.place < seen[0].place
            last = seen[-1]
            assert await app.prune(older_than=0) == 1
            assert await app.events(cursor=last.cursor) == []
        assert await app.events() == []


async def test_tail_resumes_from_a_cursor(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
        feed = await everything(app)
        tail: AsyncIterator[FeedEvent] = app.tail(cursor=feed[2].cursor)
        seen = [await support.soon(anext(tail)) for _ in range(len(feed) - 3)]
        assert [i.event for i in seen] == [i.event for i in feed[3:]]
        await tail.aclose()  # type: ignore[attr-defined]


async def test_the_feed_skips_nothing_while_many_write(url: str) -> None:
    """Three processes' worth of writers commit while one tails: every event is seen once, in its job's order."""
    writers = [support.make(url) for _ in range(3)]
    jobs = 45
    seen: dict[str, list[int]] = {}

    async def follow(reader: Ostinato) -> None:
        ended = 0
        async for item in reader.tail(cursor=""):
            seen.setdefault(item.event.job_id, []).append(item.event.seq)
            ended += item.event.type == "Job Completed"
            if ended == jobs:
                return

    async def write(app: Ostinato) -> None:
        for _ in range(jobs // len(writers)):
            await run(app, task("a"), task("b"), task("c", "join", "a b"))

    async with writers[0], writers[1], writers[2], support.opened(url, work=False) as reader:
        following = asyncio.create_task(follow(reader))
        await asyncio.gather(*[write(app) for app in writers])
        await support.soon(following)
        assert len(seen) == jobs
        for job_id, seqs in seen.items():
            assert seqs == [e.seq for e in await (await reader.job(job_id)).events()]


async def test_events_cannot_be_changed(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
    with pytest.raises(Exception, match="append-only"):
        await support.sql(url, "UPDATE event_page SET at = 0")


async def test_x10_one_event_for_each_move_and_one_dispatch_for_each_task(url: str) -> None:
    """X10: however many engines look at one database, a ready task is dispatched once."""
    async with support.opened(url) as app, support.opened(url), support.opened(url):
        ids = [f"t{n}" for n in range(60)]
        made = await app.submit(job(*[task(i) for i in ids], task("end", "join", ids)))
        await made.result(support.PATIENCE)
        started = [e.task_id for e in await made.events() if e.type == "Task Processing"]
        released = [e.task_id for e in await made.events() if e.type == "Task Released"]
        assert sorted(started) == sorted([*ids, "end", *released])
        pending = [e.task_id for e in await made.events() if e.type == "Task Pending"]
        assert sorted(pending) == sorted([*ids, "end"])


async def test_d16_the_full_audit_trail_rebuilds_the_rows(url: str) -> None:
    """D16: the state of every task is the fold of its events."""
    from ostinato.core import events

    app = support.make(url)
    support.Flaky(app, failures=2)

    @app.function
    async def nap(ctx: Any) -> None:
        await ctx.sleep(0.01)

    async with app:
        tasks = [
            task("a", "flaky", retry={"maxAttempts": 3, "baseDelay": 0.01}),
            task("b", "nap"),
            task("c", "break", "a"),
            task("d", after="c", onDependencyFailure="skip"),
            task("e", after="c"),
        ]
        made = await app.submit(job(*tasks))
        await support.failure(made)
        folded = {t["taskId"]: "blocked" for t in tasks}
        for event in await made.events():
            if event.task_id is not None and event.type in events.TASK_STATE_AFTER:
                folded[event.task_id] = events.TASK_STATE_AFTER[event.type]
        assert folded == await support.standing(made)


async def test_a_pending_task_is_told_with_what_it_depends_on(url: str) -> None:
    """D5: in the stream of the job and in the feed, also of tasks that were added."""
    async with support.opened(url) as app:
        made = await app.submit(job(task("a"), task("b"), task("c", "echo", "a b"), task("open", external=True)))
        await made.add_tasks([task("d", "echo", "c")])
        await made.complete_task("open")
        await made.result(PATIENCE)
        told = {e.task_id: e.properties["dependsOn"] for e in await made.events() if e.type == "Task Pending"}
        assert told == {"a": [], "b": [], "c": ["a", "b"], "d": ["c"]}
        feed = [one.event for one in await app.events() if one.event.type == "Task Pending"]
        assert {one.task_id: codec.decode(one.data)["dependsOn"] for one in feed} == told
        assert not (await audit.audit(app.engine.store)).problems
