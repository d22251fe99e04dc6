"""The worker without a database: everything that a function can do works, and whatever goes wrong loses nothing."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ostinato import Context, Ostinato, Retry, audit, errors, views
from ostinato.api import desk, server
from ostinato.reactions import item_views
from ostinato.remote import engine, link
from tests.api import support as api
from tests.engine import support
from tests.engine.support import PATIENCE, Gate, job, reaches, soon, task, told, until
from tests.pipelines.support import Newsroom, publishing
from tests.remote.conftest import Office

UNUSED = "sqlite:////nowhere/none.db"
"""What a remote worker's application says of its database is of no concern: it is never opened."""


def make(**options: Any) -> Ostinato:
    return support.make(UNUSED, **options)


@contextlib.asynccontextmanager
async def working(office: Office, app: Ostinato, **changes: Any) -> AsyncIterator[engine.RemoteEngine]:
    settings = dataclasses.replace(app.options, **changes)
    async with engine.RemoteEngine(app.functions, settings, office.address, office.key) as running:
        yield running


async def test_a_remote_function_waits_for_people(office: Office) -> None:
    app = make()

    @app.function
    async def publish(ctx: Context, text: str) -> Any:
        decision = await ctx.approve("Publish it?", {"text": text}, allow_edit=True, approvers=["ann", "bob"])
        return [decision.decision, decision.by, decision.payload]

    @app.function
    def careful(ctx: Any) -> str:
        try:
            ctx.approve("Go on?", name="first", decisions=["approve", "reject"])
        except errors.Rejected as rejected:
            return str(rejected)
        return "went on"

    async with working(office, app):
        home = office.site.home
        large = "x" * 100_000
        made = await home.submit(job(task("a", "publish", input={"text": large}), task("b", "careful")))
        await reaches(made, "a", "waiting")
        await reaches(made, "b", "waiting")
        assert (await home.approvals.get(made.job_id, "a")).approval.payload == {"text": large}
        assert (await home.approvals.get(made.job_id, "b")).approval.key == "approve:first"
        await home.approvals.decide(made.job_id, "a", "approve", actor="bob", payload=[1])
        await home.approvals.decide(made.job_id, "b", "reject", actor="ann", notes="not now")
        outputs = await made.result(PATIENCE)
        assert outputs == {"a": ["approve", ["bob"], [1]], "b": "'Go on?' was rejected by ann: not now"}


async def test_a_remote_function_that_swallows_a_wait_waits_all_the_same(office: Office) -> None:
    """B2: the worker without a database reports the wait, whatever the function returns."""
    app = make()

    @app.function
    async def gathers(ctx: Context) -> Any:
        answers = await asyncio.gather(ctx.approve("Pay?"), ctx.sleep(0.01), return_exceptions=True)
        return [answer is None or answer.by for answer in answers]

    @app.function
    async def swallows(ctx: Context) -> Any:
        try:
            await ctx.sleep(0.01)
        except BaseException:
            return "swallowed"
        return "rested"

    @app.function
    async def races(ctx: Context) -> Any:
        return await asyncio.wait_for(ctx.wait_for("go"), 60)

    async with working(office, app):
        home = office.site.home
        made = await home.submit(job(task("a", "gathers"), task("b", "swallows")))
        await reaches(made, "a", "waiting")
        await home.approvals.decide(made.job_id, "a", "approve", actor="ann")
        assert await made.result(PATIENCE) == {"a": [["ann"], True], "b": "rested"}
        error = await support.failure(await home.submit(job(task("c", "races"))))
        assert "ctx.wait_for(name, timeout=seconds)" in error.failed["c"]["message"]


async def test_a_remote_step_ends_its_item(office: Office) -> None:
    room = Newsroom(app=make())
    room.ending["score"] = "irrelevant"
    room.ending["fetch"] = "unreachable"
    home = office.site.home
    await home.pipelines.define(publishing())

    async def over(item_id: str) -> item_views.ItemView | None:
        found = await home.pipelines.view(item_id)
        return None if found.open else found

    async with working(office, room.app):
        await home.pipelines.enter("publishing", {"title": "News"}, item_id="a1")
        found = await until(lambda: over("a1"), "the end of the item")
        assert (found.status, room.calls) == ("unreachable", {"fetch": 1})
        room.ending["fetch"] = "rejected"
        await home.pipelines.enter("publishing", {"title": "News"}, item_id="a2")
        found = await until(lambda: over("a2"), "the refusal")  # a step ends its item only where it says it may
        assert (found.status, found.error_type) == ("failed", "not_possible")
        room.ending.pop("fetch")
        await home.pipelines.enter("publishing", {"title": "News"}, item_id="a3")
        assert (await until(lambda: over("a3"), "the end of the item")).code == 530
    assert (await home.pipelines.history("a1"))[-1].reason == "so it is"
    assert (await home.pipelines.detail("a2")).last_error.message.startswith("the outcome could not be recorded: ")
    assert not (await audit.audit(home.engine.store)).problems


async def test_all_that_a_context_can_do(office: Office) -> None:
    app = make(default_retry=Retry(max_attempts=3, base_delay=0.01))
    calls: collections.Counter[str] = collections.Counter()

    @app.function
    async def everything(ctx: Context, text: str) -> dict[str, Any]:
        calls["entered"] += 1

        async def pay() -> str:
            calls["paid"] += 1
            return ctx.idempotency_key

        paid = await ctx.step("pay", pay)
        await ctx.sleep(0.05)
        added = await ctx.add_tasks([{"taskId": "new", "name": "echo", "input": {"n": 1}}])
        heard = await ctx.wait_for("go")
        with contextlib.suppress(errors.SignalTimeout):
            await ctx.wait_for("never", timeout=0.05)
        await ctx.heartbeat()
        await asyncio.gather(ctx.spend(0.01), ctx.spend(0.02, 10, 5, model="small"))
        ctx.log.info("all is well")
        if ctx.attempt == 1:
            raise ConnectionError("once more")
        return {"paid": paid, "added": added, "heard": len(heard), "size": len(text), "tenant": ctx.tenant}

    @app.function
    def blocking(ctx: Any) -> Any:
        one = ctx.step("one", lambda: 1)
        ctx.sleep(0.01)
        ctx.heartbeat()
        ctx.spend(0.1)
        return [one, ctx.dependency_outputs["everything"]["size"], ctx.correlation_id]

    async with working(office, app):
        large = "x" * 100_000
        document = job(
            task("everything", "everything", input={"text": large}),
            task("blocking", "blocking", "everything"),
            correlationId="order-7",
        )
        made = await office.site.home.submit(document)
        await reaches(made, "everything", "waiting")
        await made.signal("go", large)
        outputs = await made.result(PATIENCE)
    assert outputs["everything"] == {
        "paid": f"{made.job_id}:everything", "added": ["new"], "heard": 100_000, "size": 100_000, "tenant": "default",
    }  # fmt: skip
    assert outputs["blocking"] == [1, 100_000, "order-7"]
    assert outputs["new"] == {"n": 1}
    assert calls["paid"] == 1
    assert calls["entered"] > 4
    assert (await made.task("everything")).task.attempt == 2
    assert (await made.usage(), (await made.info()).spent) == (views.UsageView(0.16, 5, 20, 10), 0.16)
    assert not (await audit.audit(office.site.home.engine.store)).problems
    assert await office.site.home.engine.store.workers("default") == []  # it has left


async def test_a_cancelled_task_is_told_to_its_function(office: Office) -> None:
    app = make()
    gate = Gate(app)
    async with working(office, app):
        made = await office.site.home.submit(job(task("a", "gate")))
        await soon(gate.started.wait())
        await made.cancel("enough")
        await soon(gate.cancelled.wait())
        assert gate.context.cancelled
    assert (await made.info()).state == "cancelled"


async def test_a_stop_lets_functions_finish_or_hands_them_back(office: Office) -> None:
    quick, slow = make(), make(shutdown_seconds=0.1)
    ending, endless = Gate(quick, "ending"), Gate(slow, "endless")
    async with working(office, quick):
        finishing = await office.site.home.submit(job(task("a", "ending")))
        await soon(ending.started.wait())
        asyncio.get_running_loop().call_later(0.1, ending.opened.set)
    assert (await finishing.task("a")).task.state == "completed"
    async with working(office, slow):
        left = await office.site.home.submit(job(*[task(f"t{n}", "endless") for n in range(30)]))
        await soon(endless.started.wait())
    states = {view.task_id: (view.state, view.attempt) for view in await left.tasks()}
    assert set(states.values()) == {("pending", 0)}  # handed back: the attempts do not count
    assert await office.site.home.engine.store.workers("default") == []
    again = make()
    Gate(again, "endless").opened.set()
    async with working(office, again):
        assert len(await left.result(PATIENCE)) == 30


async def test_a_worker_that_was_declared_dead_starts_anew(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "REMEMBERED_SECONDS", 0.0)
    monkeypatch.setattr(engine, "CHECK_SECONDS", 0.05)
    app = make(default_retry=Retry(max_attempts=3))
    gate = Gate(app)
    async with working(office, app, lease_seconds=60.0) as running:
        made = await office.site.home.submit(job(task("a", "gate")))
        await soon(gate.started.wait())
        await silence(office, running.worker.worker_id)
        await until(lambda: _is(gate.runs == 2), "the second run")
        gate.opened.set()
        assert await made.result(PATIENCE) == {"a": {}}
    assert "Task Lost" in await told(made)
    assert not (await audit.audit(office.site.home.engine.store)).problems


async def test_an_attempt_that_does_not_end_leaves_the_next_one_alone(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both run on one worker, and each speaks for itself alone: the first has lost the task, the second holds it."""
    monkeypatch.setattr(desk, "REMEMBERED_SECONDS", 0.0)
    monkeypatch.setattr(engine, "CHECK_SECONDS", 0.05)
    app = make(default_retry=Retry(max_attempts=3))
    started, end = asyncio.Event(), asyncio.Event()

    @app.function
    async def stubborn(ctx: Context) -> list[Any]:
        if ctx.attempt == 1:
            started.set()
            while not end.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await end.wait()
        step = await ctx.step("s", lambda: ctx.attempt)
        return [ctx.attempt, step]

    async with working(office, app, lease_seconds=60.0) as running:
        made = await office.site.home.submit(job(task("a", "stubborn")))
        await soon(started.wait())
        await silence(office, running.worker.worker_id)
        try:
            assert await made.result(PATIENCE) == {"a": [2, 2]}
        finally:
            end.set()
    assert not (await audit.audit(office.site.home.engine.store)).problems


async def silence(office: Office, worker_id: str) -> None:
    """Let the lease of a worker run out, as a long silence would."""
    url = office.site.home.url
    await support.sql(url, "UPDATE worker SET expires_at = 1 WHERE worker_id = $1", worker_id)


async def _is(value: bool) -> bool:
    return value


async def test_what_does_not_fit_fails_the_task_and_says_why(office: Office) -> None:
    app = make()

    @app.function
    async def large() -> str:
        return "x" * 2_000_000

    @app.function
    async def deep() -> Any:
        value: Any = 1
        for _ in range(100):
            value = [value]
        return value

    async with working(office, app):
        made = await office.site.home.submit(job(task("large", "large"), task("deep", "deep"), task("fine")))
        failed = (await support.failure(made)).failed
    assert failed["large"]["type"] == "PayloadTooLarge"
    assert "1,044,480" in failed["large"]["message"]
    assert "nested deeper" in failed["deep"]["message"]
    assert (await made.outputs()) == {"fine": {}}


async def test_a_server_that_is_away_for_a_while(url: str) -> None:
    """Steps, reports and claims wait for it; nothing is run twice."""
    app = make(default_retry=Retry(max_attempts=1))
    runs: collections.Counter[str] = collections.Counter()
    away = asyncio.Event()

    @app.function
    async def across(ctx: Context, n: int) -> int:
        runs[ctx.task_id] += 1
        await away.wait()
        return await ctx.step("after", lambda: n)

    async with api.opened(url, port=0, engine={"work": False}) as site:
        listener = server.Listener(site.server)
        await listener.start()
        key = await site.key("tasks:work")
        port = int(listener.address.rpartition(":")[2])
        async with engine.RemoteEngine(app.functions, app.options, listener.address, key):
            made = await site.home.submit(job(*[task(f"t{n}", "across", input={"n": n}) for n in range(5)]))
            await until(lambda: _is(len(runs) == 5))
            await listener.stop()
            away.set()
            await asyncio.sleep(0.5)
            later = await site.home.submit(job(task("late")))
            again = server.Server(site.home, dataclasses.replace(site.server.options, port=port))
            async with again:
                listener = server.Listener(again)
                await listener.start()
                assert await made.result(PATIENCE) == {f"t{n}": n for n in range(5)}
                assert await later.result(PATIENCE)
                await listener.stop()
    assert set(runs.values()) == {1}


def _sharing(ran: collections.Counter[int], number: int) -> Any:
    async def share() -> None:
        ran[number] += 1
        await asyncio.sleep(0.02)

    return share


async def test_twenty_workers_share_a_job(office: Office) -> None:
    ran: collections.Counter[int] = collections.Counter()
    async with contextlib.AsyncExitStack() as stack:
        for number in range(20):
            app = make(concurrency=2)

            app.function("share")(_sharing(ran, number))
            await stack.enter_async_context(working(office, app))
        made = await office.site.home.submit(job(*[task(f"t{n}", "share") for n in range(400)]))
        await made.result(30)
    assert sum(ran.values()) == 400
    assert len(ran) == 20
    assert max(ran.values()) < 80  # an even share is 20


async def test_a_limit_on_requests_slows_and_loses_nothing(url: str) -> None:
    async with api.opened(url, port=0, engine={"work": False}, requests_per_second=20.0) as site:
        listener = server.Listener(site.server)
        await listener.start()
        app, key = make(), await site.key("tasks:work")
        async with engine.RemoteEngine(app.functions, app.options, listener.address, key):
            jobs = [
                await site.home.submit(job(task("a"), task("b", after="a"), task("c", after="b"))) for _ in range(30)
            ]
            for made in jobs:
                await made.result(PATIENCE)
        await listener.stop()


async def test_a_blocked_event_loop_is_busy_not_dead(url: str, tmp_path: Any) -> None:
    """The heartbeat has a thread of its own. The worker runs in another thread, or it would block the server too."""
    async with api.opened(url, port=0, engine={"work": False}) as site:
        listener = server.Listener(site.server)
        await listener.start()
        app, key = make(lease_seconds=0.6), await site.key("tasks:work")
        runs: list[int] = []

        @app.function
        async def block(ctx: Context) -> int:
            runs.append(ctx.attempt)
            time.sleep(2.0)
            return ctx.attempt

        @app.function
        async def pick(ctx: Context) -> Any:
            outputs = getattr(ctx, "dependency_" + "outputs")  # read on demand: this blocks the loop as well
            return [outputs["t7"]["n"], len(outputs), sum(1 for _ in outputs)]

        stop = threading.Event()

        async def main() -> None:
            async with engine.RemoteEngine(app.functions, app.options, listener.address, key):
                while not stop.is_set():
                    await asyncio.sleep(0.02)

        thread = threading.Thread(target=lambda: asyncio.run(main()))
        thread.start()
        try:
            made = await site.home.submit(job(task("a", "block")))
            assert await made.result(PATIENCE) == {"a": 1}
            names = [f"t{n}" for n in range(80)]
            tasks = [task(name, input={"n": name}) for name in names]
            made = await site.home.submit(job(*tasks, task("pick", "pick", names)))
            assert (await made.result(PATIENCE))["pick"] == ["t7", 80, 80]
        finally:
            stop.set()
            while thread.is_alive():
                await asyncio.sleep(0.02)
        await listener.stop()
    assert runs == [1]


async def test_a_server_that_refuses(office: Office) -> None:
    app = make()
    reader = await office.site.key("jobs:read")
    for key, refused in (
        (None, errors.Unauthenticated),
        ("ost_a_b", errors.Unauthenticated),
        (reader, errors.Forbidden),
    ):
        with pytest.raises(refused):
            await engine.RemoteEngine(app.functions, app.options, office.address, key).start()
    for address in ("ftp://host", "host:8080", "http://", "http://user:secret@host"):
        with pytest.raises(errors.InvalidInput) as raised:
            link.Link(address, None)
        assert "secret" not in str(raised.value)


async def test_a_worker_that_runs_ahead_of_its_reports_goes_on_when_they_are_recorded(office: Office) -> None:
    app = make(max_prefetch=2_000)

    @app.function(retry=Retry(max_attempts=3))
    async def quick() -> None:
        pass

    async with working(office, app) as running:
        calls = running._reporter._link  # pyright: ignore[reportPrivateUsage]
        call = calls.call

        async def slowly(path: str, *args: Any, **more: Any) -> Any:
            if "complete" in path:
                await asyncio.sleep(0.2)
            return await call(path, *args, **more)

        calls.call = slowly  # type: ignore[method-assign]
        home = office.site.home
        await (await home.submit(job(*[task(f"warm{n}", "quick") for n in range(40)]))).result(PATIENCE)
        made = await home.submit(job(*[task(f"t{n}", "quick") for n in range(6_000)]))
        assert len(await made.result(PATIENCE)) == 6_000
