"""Several workers on one database: who runs what, how much at once, and in which order."""

import asyncio
import collections
import contextlib
import contextvars
import itertools
import sys
import threading
import time
from typing import Any

import pytest

from ostinato import EngineOptions, Ostinato, Retry, errors, functions
from ostinato.core import commands, rows
from ostinato.engine import committer, pulse, worker
from ostinato.reactions import own
from ostinato.store import database, fleet, store
from tests.engine import support
from tests.engine.support import job, run, task


def recorder(app: Ostinato, ran: list[tuple[str, str]], who: str, name: str = "note", pause: float = 0.0) -> None:
    @app.function(name)
    async def note(ctx: Any) -> None:
        ran.append((who, ctx.task_id))
        await asyncio.sleep(pause)


async def test_x10_workers_share_the_work_and_each_task_runs_once(url: str) -> None:
    ran: list[tuple[str, str]] = []
    async with contextlib.AsyncExitStack() as stack:
        apps = [support.make(url, concurrency=4) for _ in range(3)]
        for n, app in enumerate(apps):
            recorder(app, ran, f"w{n}", pause=0.01)
            await stack.enter_async_context(app)
        ids = [f"t{n}" for n in range(150)]
        await run(apps[0], *[task(i, "note") for i in ids])
    assert sorted(task_id for _, task_id in ran) == sorted(ids)
    assert {who for who, _ in ran} == {"w0", "w1", "w2"}


async def test_a_worker_takes_only_functions_that_it_has(url: str) -> None:
    ran: list[tuple[str, str]] = []
    one, other = support.bare(url), support.bare(url)
    recorder(one, ran, "one", "red")
    recorder(other, ran, "other", "blue")
    async with one, other:
        tasks = [task(f"{colour}{n}", colour) for n in range(10) for colour in ("red", "blue")]
        await run(one, *tasks)
    assert {(who, i.rstrip("0123456789")) for who, i in ran} == {("one", "red"), ("other", "blue")}


async def test_a_worker_serves_only_its_queues(url: str) -> None:
    ran: list[tuple[str, str]] = []
    plain, special = support.bare(url), support.bare(url, queues=("gpu", "big"))
    recorder(plain, ran, "plain")
    recorder(special, ran, "special")
    async with plain, special:
        await run(plain, task("a", "note"), task("b", "note", queue="gpu"), task("c", "note", queue="big"))
    assert sorted(ran) == [("plain", "a"), ("special", "b"), ("special", "c")]


async def test_a_queue_that_nobody_serves_waits(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", queue="gpu"), task("b")))
        await support.reaches(made, "b", "completed")
        assert (await support.standing(made))["a"] == "pending"
        async with support.opened(url, queues=("gpu",)):
            await made.result(support.PATIENCE)


async def test_higher_priority_runs_first(url: str) -> None:
    ran: list[tuple[str, str]] = []
    async with support.opened(url, work=False, check_functions=False) as producer:
        low = await producer.submit(job(task("low1", "note"), task("low2", "note", priority=9), priority=-5))
        high = await producer.submit(job(task("high", "note"), priority=5))
        plain = await producer.submit(job(task("plain", "note")))
        worker = support.bare(url, concurrency=1, max_prefetch=0)
        recorder(worker, ran, "w")
        async with worker:
            for made in (low, high, plain):
                await made.result(support.PATIENCE)
    assert [task_id for _, task_id in ran] == ["low2", "high", "plain", "low1"]


async def test_among_equals_the_oldest_runs_first(url: str) -> None:
    ran: list[tuple[str, str]] = []
    async with support.opened(url, work=False, check_functions=False) as producer:
        jobs = [await producer.submit(job(task(f"t{n}", "note"))) for n in range(10)]
        worker = support.bare(url, concurrency=1, max_prefetch=0)
        recorder(worker, ran, "w")
        async with worker:
            for made in jobs:
                await made.result(support.PATIENCE)
    assert [task_id for _, task_id in ran] == [f"t{n}" for n in range(10)]


@pytest.mark.parametrize("limit", [1, 3])
async def test_no_more_functions_run_at_once_than_allowed(url: str, limit: int) -> None:
    app = support.make(url, concurrency=limit)
    running = most = 0

    @app.function
    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    async with app:
        await run(app, *[task(f"t{n}", "count") for n in range(30)])
    assert most == limit


async def test_ten_run_at_once_unless_told_otherwise(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(*[task(f"t{n}", "gate") for n in range(15)]))

        async def ten() -> bool:
            return gate.running == 10

        await support.until(ten)
        gate.opened.set()
        await made.result(support.PATIENCE)
        assert gate.most == 10


async def test_plain_functions_run_in_parallel_threads(url: str) -> None:
    app = support.make(url, concurrency=4)
    together = threading.Barrier(4, timeout=support.PATIENCE)
    threads: set[int] = set()

    @app.function
    def meet() -> None:
        threads.add(threading.get_ident())
        together.wait()

    async with app:
        await run(app, *[task(f"t{n}", "meet") for n in range(4)])
    assert len(threads) == 4


async def test_a_plain_function_that_blocks_does_not_stop_the_others(url: str) -> None:
    app = support.make(url)
    release = threading.Event()

    @app.function
    def block() -> None:
        release.wait(support.PATIENCE)

    async with app:
        made = await app.submit(job(task("a", "block")))
        await support.reaches(made, "a", "processing")
        assert await run(app, task("b")) == {"b": {}}
        release.set()
        await made.result(support.PATIENCE)


async def test_a_plain_function_that_computes_does_not_slow_down_the_others(url: str) -> None:
    """Python lets one thread compute at a time. It would keep each of a thousand small writes waiting for 5 ms."""
    app = support.make(url)
    started, enough = threading.Event(), threading.Event()

    @app.function
    def compute() -> None:
        started.set()
        until = time.monotonic() + support.PATIENCE
        while not enough.is_set() and time.monotonic() < until:
            sum(range(1000))

    @app.function
    async def noop() -> None:
        pass

    async with app:
        computing = await app.submit(job(task("c", "compute")))
        while not started.is_set():
            await asyncio.sleep(0.01)
        began = time.monotonic()
        await run(app, *[task(f"t{n}", "noop") for n in range(1000)])
        took = time.monotonic() - began
        enough.set()
        await computing.result(support.PATIENCE)
    assert took < 3  # 0.2 s on a calm machine, and more than 4 s if each write waited


async def test_a_program_that_has_its_threads_take_turns_more_often_is_left_alone(sqlite_url: str) -> None:
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(0.00001)
        async with support.make(sqlite_url):
            assert sys.getswitchinterval() == pytest.approx(0.00001)
        sys.setswitchinterval(0.005)
        async with support.make(sqlite_url):
            assert sys.getswitchinterval() == pytest.approx(0.0001)
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize(
    ("alone", "calls", "seconds", "most", "ahead"),
    [
        (True, 100, 0.00001, 10_000, 10_000),
        (True, 1, 0.00001, 10_000, 2_500),
        (True, 100, 0.00001, 50, 50),
        (True, 100, 0.001, 10_000, 500),
        (True, 100, 10.0, 10_000, 0),
        (False, 100, 0.00001, 10_000, 2_000),
        (False, 1, 0.00001, 10_000, 250),
        (False, 100, 0.00001, 50, 50),
        (False, 0, 0.0, 10_000, 0),
    ],
)
def test_who_is_alone_claims_more_ahead(alone: bool, calls: int, seconds: float, most: int, ahead: int) -> None:
    pace = worker._Pace()  # pyright: ignore[reportPrivateUsage]
    for _ in range(calls):
        pace.note(seconds)
    assert pace.ahead(EngineOptions(max_prefetch=most), alone=alone) == ahead


async def test_a_worker_knows_whether_it_is_alone(url: str) -> None:
    first, second = support.make(url), support.make(url)

    async def alone() -> bool:
        return first.engine.worker is not None and first.engine.worker.alone

    async def not_alone() -> bool:
        return not await alone()

    async with first:
        assert await alone()
        async with second:
            assert second.engine.worker is not None
            assert not second.engine.worker.alone
            await support.until(not_alone)
        await support.until(alone)


async def test_what_has_run_and_is_not_recorded_yet_counts_as_claimed_ahead(url: str) -> None:
    """Or a worker whose functions are quicker than the database would hold a whole job, and a crash all of it."""
    app = support.bare(url, max_prefetch=3_000)
    held: list[int] = []

    @app.function("quick", retry=AHEAD)
    async def quick() -> None:
        pass

    async with app:
        holder = app.engine.worker
        assert holder is not None
        deliver = holder.deliver

        def counted(leases: list[rows.Lease], more: bool = False, /) -> None:
            deliver(leases, more)
            held.append(sum(holder._unreported.values()))  # pyright: ignore[reportPrivateUsage]

        holder.deliver = counted  # type: ignore[method-assign]
        await run(app, *[task(f"warm{n}", "quick") for n in range(20)])
        await run(app, *[task(f"t{n}", "quick") for n in range(20_000)])
    assert 2_500 < max(held) <= 3_000 + app.options.concurrency + committer.MAX_BATCH


async def test_a_queue_of_what_may_not_be_claimed_ahead_is_not_read_again_and_again(url: str) -> None:
    """Tasks on their last attempt, or that were there when a worker died: a few start, and the rest is left."""
    app = support.bare(url)
    looked: list[int] = []

    @app.function("quick", retry=Retry(max_attempts=1))
    async def quick() -> None:
        pass

    async with app:
        holder = app.engine.worker
        assert holder is not None
        next_claim = holder.next_claim

        def noted() -> commands.Claim | None:
            claim = next_claim()
            if claim is not None:
                looked.append(claim.slots + max(claim.ahead.values(), default=0))
            return claim

        holder.next_claim = noted  # type: ignore[method-assign]
        await run(app, *[task(f"warm{n}", "quick") for n in range(20)])
        await run(app, *[task(f"t{n}", "quick") for n in range(2_000)])
    assert sum(looked) < 50 * 2_000  # it was a thousand for each


async def test_claiming_ahead_does_not_starve_another_worker(url: str) -> None:
    """A worker that has seen only short tasks claims many; when they turn out slow, an idle worker gets its share."""
    ran: list[tuple[str, str]] = []
    greedy, idle = support.make(url, concurrency=1), support.make(url, concurrency=1)
    recorder(greedy, ran, "greedy", pause=0.3)
    recorder(idle, ran, "idle", pause=0.3)
    async with greedy:
        await run(greedy, *[task(f"quick{n}") for n in range(300)])
        made = await greedy.submit(job(*[task(f"slow{n}", "note") for n in range(12)]))

        async def claimed() -> bool:
            return bool(ran)

        await support.until(claimed)
        async with idle:
            await made.result(support.PATIENCE)
    shares = collections.Counter(who for who, _ in ran)
    assert shares["idle"] >= 3
    assert len({task_id for _, task_id in ran}) == len(ran) == 12


async def test_a_worker_that_stops_lets_running_functions_finish(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    await app.start()
    made = await app.submit(job(task("a", "gate")))
    await support.soon(gate.started.wait())
    stopping = asyncio.create_task(app.stop())
    await asyncio.sleep(0)
    gate.opened.set()
    await stopping
    async with support.opened(url, work=False) as later:
        assert await (await later.job(made.job_id)).result(support.PATIENCE) == {"a": {}}


async def test_a_worker_that_stops_hands_back_what_it_cannot_finish(url: str) -> None:
    app = support.make(url, shutdown_seconds=0.05)
    gate = support.Gate(app)
    await app.start()
    made = await app.submit(job(task("a", "gate")))
    await support.soon(gate.started.wait())
    await app.stop()
    assert gate.cancelled.is_set()
    gate.opened.set()
    async with app:
        again = await app.job(made.job_id)
        await again.result(support.PATIENCE)
        detail = await again.task("a")
        assert detail.task.attempt == 1, "handing back is not an attempt"
        assert [a.outcome for a in detail.attempts] == ["completed"]


async def test_a_new_task_is_seen_by_an_idle_worker_in_another_process(url: str) -> None:
    ran: list[tuple[str, str]] = []
    worker = support.bare(url)
    recorder(worker, ran, "w")
    async with worker, support.opened(url, work=False) as producer:
        for n in range(5):
            made = await producer.submit(job(task(f"t{n}", "note")))
            await made.result(support.PATIENCE)
    assert len(ran) == 5


async def test_a_worker_that_was_declared_dead_loses_its_task_which_counts_as_an_attempt(url: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app, support.opened(url) as other:
        made = await app.submit(job(task("a", "gate", retry={"maxAttempts": 9, "baseDelay": 0})))
        await support.soon(gate.started.wait())
        assert app.engine.worker is not None
        worker_id = app.engine.worker.worker_id

        async def taken() -> bool:
            await support.sql(url, "UPDATE worker SET expires_at = 0 WHERE worker_id = $1", worker_id)
            await other.engine.reaper.run_once()
            return "Task Lost" in await support.told(made)

        await support.until(taken)
        await support.soon(gate.cancelled.wait())
        gate.opened.set()
        await made.result(support.PATIENCE)
        *lost, last = [a.outcome for a in (await made.task("a")).attempts]
        assert set(lost) == {"lost"}  # more than one of them, if it was back already when it was declared dead again
        assert last == "completed"


async def test_a_function_that_holds_up_the_event_loop_makes_nobody_look_dead(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the worker that runs it, nor the one that runs the engine's own functions in the same process."""
    app = support.make(url, lease_seconds=2)
    started, end = asyncio.Event(), asyncio.Event()
    real = own.make

    def slow(*args: Any, **settings: Any) -> dict[str, functions.Function]:
        async def wait(**_: Any) -> None:
            started.set()
            await end.wait()

        return {name: functions.Function(name, wait, retry=Retry(), timeout=None) for name in real(*args, **settings)}

    left: list[float] = []

    def look() -> None:
        for _ in range(7):
            time.sleep(0.5)
            expire = asyncio.run(support.sql(url, "SELECT expires_at FROM worker"))
            left.extend(at / 1e6 - time.time() for (at,) in expire)

    @app.function
    async def hold_up() -> None:
        looking = threading.Thread(target=look)
        looking.start()
        looking.join()

    monkeypatch.setattr(own, "make", slow)
    async with app:
        target = {"job": {"tasks": [{"taskId": "t", "name": "echo"}]}}
        await app.rules.define({"name": "r", "pattern": {"source": ["shop"]}, "targets": [target]})
        await app.post_events({"id": "1", "source": "shop", "detail-type": "Order", "detail": {}})
        await support.soon(started.wait())
        assert len(await app.engine.store.workers("default")) == 2
        await run(app, task("a", "hold_up"))
        end.set()
    assert len(left) == 14
    assert min(left) > 0, left


async def test_who_cannot_register_runs_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker claims that nobody knows is taken from it as from the dead."""
    async with support.opened(url) as app:

        async def fail(*_: object) -> None:
            raise errors.DatabaseUnavailable("for a moment")

        monkeypatch.setattr(store.Store, "register_worker", fail)
        with pytest.raises(errors.DatabaseUnavailable):
            await app.engine._engage("default")  # pyright: ignore[reportPrivateUsage]
        assert not app.engine.guests


async def test_a_heartbeat_that_cannot_begin_is_not_waited_for() -> None:
    """Its thread may not get what an event loop needs, where too many files are open."""

    def fail() -> database.Database:
        raise OSError("too many open files")

    with pytest.raises(OSError, match="too many"):
        await support.soon(pulse.Pulse(fail, "default", "worker", 30, lambda: None).start(beating=True))


async def test_a_worker_that_is_back_keeps_what_it_claims(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has just found it dead, while somebody else had done so before, and it has started anew since then."""
    app = support.make(url)
    gate = support.Gate(app)
    async with app, support.opened(url) as other:
        made = await app.submit(job(task("a", "gate", retry={"maxAttempts": 1})))
        await support.soon(gate.started.wait())
        assert app.engine.worker is not None
        worker_id = app.engine.worker.worker_id

        async def found_before() -> list[tuple[str, str]]:
            return [("default", worker_id)]

        monkeypatch.setattr(other.engine.store, "dead_workers", found_before)
        await other.engine.reaper.run_once()
        assert "Task Failed" not in await support.told(made)
        assert worker_id in {known["workerId"] for known in await other.engine.store.workers("default")}
        gate.opened.set()
        await made.result(support.PATIENCE)


@pytest.mark.parametrize(
    ("alive", "looks"),
    [(True, (0.7, 0.7)), (False, (0.7, 0.7)), (False, (1.2,))],
    ids=["alive", "dead", "dead, and the process is held up again"],
)
async def test_who_could_not_be_heard_of_is_given_the_time_to_speak(
    url: str, alive: bool, looks: tuple[float, ...]
) -> None:
    """The database was away for longer than a lease. That is no sign that those who hold one are gone."""
    async with support.opened(url, work=False, maintain=False, check_functions=False, lease_seconds=2) as app:
        store, reaper = app.engine.store, app.engine.reaper
        await store.register_worker("default", "somebody", 2, {}, {})
        made = await app.submit(job(task("a", retry={"maxAttempts": 1})))
        policies = {"echo": rows.FunctionPolicy(1, None)}
        claim = commands.Claim("somebody", "token", policies, frozenset({"default"}), 1)
        assert (await store.execute("default", [], claim)).leases
        await reaper.run_once()
        await asyncio.sleep(2.2)
        await reaper.run_once()
        assert await support.standing(made) == {"a": "processing"}
        if alive:
            assert await store.beat("default", "somebody", 2)
        for seconds in looks:
            await asyncio.sleep(seconds)
            await reaper.run_once()
        assert await support.standing(made) == {"a": "processing" if alive else "failed"}


async def test_a_heartbeat_that_gets_no_answer_is_followed_by_another(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a connection that died without a word it would wait for longer than a lease."""
    monkeypatch.setattr(pulse, "LEAST_SECONDS", 0.1)
    beat, beats = fleet.Fleet.beat, itertools.count()

    async def first_lost(*args: Any) -> bool:
        if next(beats) == 0:
            await asyncio.Event().wait()
        return await beat(*args)

    async with support.opened(url, lease_seconds=2, maintain=False) as app:
        [before] = await app.engine.store.workers("default")
        monkeypatch.setattr(fleet.Fleet, "beat", first_lost)
        await asyncio.sleep(1.9)
        [after] = await app.engine.store.workers("default")
        assert after["expiresAt"] > before["expiresAt"]


async def test_a_process_that_only_submits_runs_nothing(url: str) -> None:
    async with support.opened(url, work=False) as producer, support.opened(url) as worker:
        made = await producer.submit(job(task("a")))
        await made.result(support.PATIENCE)
        [processing] = [e for e in await made.events() if e.type == "Task Processing"]
        assert worker.engine.worker is not None
        assert processing.properties["worker"] == worker.engine.worker.worker_id


async def test_a_result_that_is_there_already_is_not_waited_for(url: str) -> None:
    """The job ended in another process, and that was heard of before anybody asked for its result."""
    async with support.opened(url, work=False, poll_seconds=60) as producer:
        async with support.opened(url) as worker:
            made = await producer.submit(job(task("a")))
            await (await worker.job(made.job_id)).result(support.PATIENCE)
        await asyncio.sleep(0.5)  # all that the worker did in the end was heard of too
        assert await made.result(2) == {"a": {}}


AHEAD = Retry(max_attempts=3)
"""What has another attempt left may be claimed ahead, and is run one after the other."""
trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace", default="nothing")


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "after a while"])
async def test_what_an_attempt_sets_is_unknown_to_the_next_ones(url: str, waits: bool) -> None:
    found: list[str] = []
    app = support.bare(url, concurrency=2)

    @app.function("note", retry=AHEAD)
    async def note(ctx: Any) -> None:
        found.append(trace.get())
        trace.set(ctx.task_id)
        if waits:
            await asyncio.sleep(0)

    outside = trace.set("the program")
    async with app:
        trace.reset(outside)
        await run(app, *[task(f"t{n}", "note") for n in range(60)])
    assert found == ["the program"] * 60


async def test_an_attempt_that_cancels_its_own_task_leaves_the_next_ones_alone(url: str) -> None:
    app = support.bare(url, concurrency=1)

    @app.function("odd", retry=AHEAD)
    async def odd(ctx: Any, n: int) -> int:
        current = asyncio.current_task()
        assert current is not None
        if n % 3 == 0:
            current.cancel()
        elif n % 3 == 1:
            await asyncio.sleep(0)
        return ctx.attempt

    async with app:
        found = await run(app, *[task(f"t{n}", "odd", input={"n": n}) for n in range(30)])
    assert found == {f"t{n}": 1 for n in range(30)}


async def test_attempts_that_wait_in_between_run_side_by_side_with_those_that_do_not(url: str) -> None:
    """The slow ones hold the slots that they have, and nothing of the quick ones is lost between two turns."""
    most = running = 0
    app = support.bare(url, concurrency=5)

    @app.function("mixed", retry=Retry(max_attempts=2, base_delay=0))
    async def mixed(ctx: Any, n: int) -> int:
        nonlocal most, running
        if n % 7 == 0:
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.002)
            running -= 1
        if n % 11 == 0 and ctx.attempt == 1:
            raise ValueError("not yet")
        return n

    async with app:
        found = await run(app, *[task(f"t{n}", "mixed", input={"n": n}) for n in range(300)])
    assert found == {f"t{n}": n for n in range(300)}
    assert 1 < most <= 5


async def test_attempts_that_compute_for_long_let_others_have_a_turn_in_between(url: str) -> None:
    """One for each slot, and not all that were claimed ahead."""
    runs = since_turn = most = 0
    app = support.bare(url, concurrency=2)

    @app.function("compute", retry=AHEAD)
    async def compute() -> None:
        nonlocal runs, since_turn, most
        until = time.perf_counter() + 2 * worker.TURN_SECONDS
        while time.perf_counter() < until:
            pass
        runs += 1
        since_turn += 1
        most = max(most, since_turn)

    async def turns() -> None:
        nonlocal since_turn
        while True:
            since_turn = 0
            await asyncio.sleep(0)

    async with app:
        counting = asyncio.create_task(turns())
        await run(app, *[task(f"t{n}", "compute") for n in range(60)])
        counting.cancel()
    assert runs == 60
    assert most <= 2
