"""The hub: nothing is lost, nothing comes twice, and nobody who is slow costs more than a buffer."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from ostinato import Ostinato, errors
from ostinato.api.live import hub, messages
from tests.engine import support
from tests.engine.support import job, task

EVERYTHING = messages.Wanted()
ONE = job(task("a"))


@pytest.fixture
async def app(url: str) -> AsyncIterator[Ostinato]:
    async with support.opened(url) as made:
        yield made


@pytest.fixture
async def live(app: Ostinato) -> AsyncIterator[hub.Hub]:
    made = hub.Hub(app.engine)
    yield made
    await made.close()


async def read(subscription: hub.Subscription, count: int) -> list[messages.StreamEvent]:
    found: list[messages.StreamEvent] = []
    async with asyncio.timeout(support.PATIENCE), contextlib.aclosing(aiter(subscription)) as stream:
        async for message in stream:
            found.append(message.event)
            if len(found) == count:
                break
    return found


async def at_the_tail(live: hub.Hub, stream: AsyncGenerator[messages.Message]) -> asyncio.Future[messages.Message]:
    """The next message of somebody who has read all that there was."""
    waiting = asyncio.ensure_future(anext(stream))
    async with asyncio.timeout(support.PATIENCE):
        while not live.tails:
            await asyncio.sleep(0.005)
    return waiting


def keys(found: list[messages.StreamEvent]) -> list[tuple[str, int]]:
    return [(event.job_id, event.seq) for event in found]


async def everything(app: Ostinato) -> list[tuple[str, int]]:
    return [(item.event.job_id, item.event.seq) for item in await app.events(most=100_000)]


async def test_from_now_on(app: Ostinato, live: hub.Hub) -> None:
    await (await app.submit(ONE)).result()
    async with await live.subscribe("default", EVERYTHING) as subscription:
        made = await app.submit(ONE)
        found = await read(subscription, 5)
        assert {event.job_id for event in found} == {made.job_id}
        assert [event.seq for event in found] == [1, 2, 3, 4, 5]
        assert found[0].type == "Job Created"


async def test_a_tail_runs_while_somebody_follows(app: Ostinato, live: hub.Hub) -> None:
    async with await live.subscribe("default", EVERYTHING) as one, await live.subscribe("default", EVERYTHING) as two:
        for _ in range(2):
            await (await app.submit(ONE)).result()
            assert keys(await read(one, 5)) == keys(await read(two, 5))
            await asyncio.gather(*[_wait_a_little(subscription) for subscription in (one, two)])
            assert live.tails == 1
    assert live.tails == 0
    await live.close()
    assert not app.engine.bell.heard


async def _wait_a_little(subscription: hub.Subscription) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            raise AssertionError(await anext(aiter(subscription)))


async def test_going_on_from_any_cursor_while_jobs_run_loses_nothing_and_repeats_nothing(
    app: Ostinato, live: hub.Hub
) -> None:
    running = asyncio.create_task(_submit_many(app, 150))
    found: list[messages.StreamEvent] = []
    cursor = "0.0.0"
    while not running.done() or len(found) < 150 * 5:
        async with await live.subscribe("default", EVERYTHING, cursor) as subscription:
            part = await read(subscription, min(37, 150 * 5 - len(found)))
        cursor = part[-1].cursor
        found += part
    await running
    assert keys(found) == await everything(app)


async def _submit_many(app: Ostinato, count: int) -> None:
    for batch in range(0, count, 10):
        made = await app.submit_many([ONE] * min(10, count - batch))
        await asyncio.gather(*[job.result() for job in made])


async def test_what_one_wants(app: Ostinato, live: hub.Hub) -> None:
    two = job(task("a"), task("b", "join", "a")) | {"name": "order"}
    first, second = await app.submit(two), await app.submit(ONE)
    await asyncio.gather(first.result(), second.result())

    async def types(count: int, **wanted: object) -> list[str]:
        asked = messages.Wanted(**wanted)  # pyright: ignore[reportArgumentType]
        async with await live.subscribe("default", asked, "0.0.0") as subscription:
            found = await read(subscription, count)
            assert {event.job_id for event in found} == {first.job_id}
            await app.publish_status(first.job_id, "checked")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    async for message in subscription:
                        found.append(message.event)
            return [event.type for event in found]

    of_b = ["Task Pending", "Task Processing", "Task Completed"]
    assert len(await types(8, job_id=first.job_id)) == 9
    assert len(await types(8, job_name="order")) == 10  # and the status of before
    assert await types(3, job_id=first.job_id, task_id="b") == of_b
    assert await types(3, job_id=first.job_id, function="join") == of_b
    ends = frozenset({"Job Completed"})
    assert await types(1, job_id=first.job_id, types=ends) == ["Job Completed"]
    with pytest.raises(errors.InvalidInput, match="no events of the type 'Job Vanished'"):
        messages.Wanted(types=frozenset({"Job Vanished"}))


async def test_functions_are_told_apart_as_it_happens(app: Ostinato, live: hub.Hub) -> None:
    """Two who follow all jobs from now on, and a third who joins them: each gets what is about its function."""
    asked = [messages.Wanted(function="join"), messages.Wanted()]
    joins, all_of_it = [await live.subscribe("default", wanted) for wanted in asked]
    async with joins, all_of_it:
        reading = asyncio.gather(read(joins, 9), read(all_of_it, 24))
        async with asyncio.timeout(support.PATIENCE):
            while not live.tails:
                await asyncio.sleep(0.005)
        for number in range(3):
            made = await app.submit(job(task("a"), task("b", "join", "a"), name=f"order-{number}"))
            await made.result()
        found, _ = await reading
        assert {(event.job_name, event.task_id) for event in found} == {(f"order-{n}", "b") for n in range(3)}
        nobody = messages.Wanted(function="never-heard-of")
        async with await live.subscribe("default", nobody, "0.0.0") as third:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await read(third, 1)


async def test_a_job_of_another_tenant_is_not_there(app: Ostinato, live: hub.Hub) -> None:
    made = await app.submit(ONE)
    with pytest.raises(errors.JobNotFound):
        await live.subscribe("other", messages.Wanted(job_id=made.job_id))
    async with await live.subscribe("other", EVERYTHING, "0.0.0") as subscription:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await anext(aiter(subscription))


async def test_a_bad_cursor(app: Ostinato, live: hub.Hub) -> None:
    with pytest.raises(errors.InvalidInput, match="not a cursor"):
        await live.subscribe("default", EVERYTHING, "yesterday")
    assert live._followers == {}  # pyright: ignore[reportPrivateUsage]


async def test_a_stalled_follower_is_ended_with_its_cursor_while_others_go_on(
    app: Ostinato, live: hub.Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "MOST_MESSAGES", 100)
    async with (
        await live.subscribe("default", EVERYTHING) as stalled,
        await live.subscribe("default", EVERYTHING) as reader,
    ):
        stream = aiter(stalled)
        waiting = await at_the_tail(live, stream)
        running = asyncio.create_task(_submit_many(app, 40))
        first = await waiting
        assert len(await read(reader, 200)) == 200
        await running
        assert isinstance(stalled.ended, errors.SlowReader)
        assert (len(stalled.waiting), stalled.waiting_bytes) == (0, 0)
        with pytest.raises(errors.SlowReader) as ended:
            await anext(stream)
        assert ended.value.details["cursor"] == first.event.cursor
    async with await live.subscribe("default", EVERYTHING, first.event.cursor) as again:
        assert len(await read(again, 199)) == 199


async def test_the_buffer_is_bounded_by_bytes_too(app: Ostinato, live: hub.Hub) -> None:
    made = await app.submit(ONE)
    await made.result()
    async with await live.subscribe("default", EVERYTHING) as stalled:
        waiting = await at_the_tail(live, aiter(stalled))
        await app.publish_status(made.job_id, "first")
        await waiting
        most = 0
        for _ in range(hub.MOST_BYTES // 4096 + 50):
            await app.publish_status(made.job_id, "more", "x" * 4096)
            most = max(most, stalled.waiting_bytes)
        assert hub.MOST_BYTES / 2 < most <= hub.MOST_BYTES
        assert isinstance(stalled.ended, errors.SlowReader)


async def test_the_hub_stops(app: Ostinato, live: hub.Hub) -> None:
    async with await live.subscribe("default", EVERYTHING) as subscription:
        waiting = asyncio.create_task(read(subscription, 1))
        await asyncio.sleep(0.05)
        await live.close()
        with pytest.raises(errors.ServerStopping) as ended:
            await waiting
        assert ended.value.details["cursor"] == subscription.cursor
    with pytest.raises(errors.ServerStopping):
        await live.subscribe("default", EVERYTHING)


async def test_too_many_followers(app: Ostinato, live: hub.Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MOST_FOLLOWERS", 1)
    async with await live.subscribe("default", EVERYTHING):
        with pytest.raises(errors.TooManyRequests):
            await live.subscribe("default", EVERYTHING)
        async with await live.subscribe("other", EVERYTHING):
            pass


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_news_come_at_once(url: str, where: str) -> None:
    """Not a measurement, which is for the bench: but nobody waits for the next poll, wherever the commit was made."""
    async with support.opened(url, poll_seconds=2.0) as app, support.opened(url, work=False) as other:
        live = hub.Hub(app.engine)
        told = app if where == "here" else other
        made = await told.submit(ONE)
        await made.result()
        took: list[float] = []
        async with await live.subscribe("default", messages.Wanted(types=messages.STATUSES)) as subscription:
            stream = aiter(subscription)
            await told.publish_status(made.job_id, "ready")
            await anext(stream)
            await asyncio.sleep(2.0 if where == "elsewhere" else 0)  # until the watcher knows that somebody listens
            for _ in range(20):
                await asyncio.sleep(0.06)
                await told.publish_status(made.job_id, "again")
                start = time.monotonic()
                await anext(stream)
                took.append(time.monotonic() - start)
        await live.close()
        assert statistics.median(took) < 0.5, took  # by polls it would be more than a second
