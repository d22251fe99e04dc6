"""A worker does not read again what it has just written. What others did meanwhile counts all the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from typing import Any

import apsw
import pytest

from ostinato import Ostinato, audit, errors
from ostinato.core import commands, graph, ledger, needs, rows
from ostinato.store import database, memory, sqlite, store
from tests.engine import support
from tests.engine.support import task


class Held:
    """A function that waits inside until it is let go."""

    def __init__(self, app: Ostinato) -> None:
        self.entered = asyncio.Event()
        self.let_go = asyncio.Event()

        @app.function("held")
        async def held() -> str:
            self.entered.set()
            await self.let_go.wait()
            return "done"


async def sound(app: Ostinato) -> None:
    assert not (await audit.audit(app.engine.store)).problems


async def test_tasks_that_another_process_added_are_not_forgotten(url: str) -> None:
    app = support.make(url)
    held = Held(app)
    async with app, support.opened(url, work=False, check_functions=False) as other:
        job = await app.submit({"tasks": [task("a", "held"), task("b", after="a")]})
        await asyncio.wait_for(held.entered.wait(), support.PATIENCE)
        await (await other.job(job.job_id)).add_tasks([task("c", after="a"), task("d", after="c")])
        held.let_go.set()
        outputs = await job.result(timeout=support.PATIENCE)
        assert sorted(outputs) == ["a", "b", "c", "d"]
        await sound(app)


async def test_what_another_process_cancelled_stays_cancelled(url: str) -> None:
    app = support.make(url)
    held = Held(app)
    async with app, support.opened(url, work=False, check_functions=False) as other:
        job = await app.submit({"tasks": [task("a", "held"), task("b", after="a")]})
        await asyncio.wait_for(held.entered.wait(), support.PATIENCE)
        assert await (await other.job(job.job_id)).cancel() == "cancelled"
        held.let_go.set()
        with pytest.raises(errors.JobFailed):
            await job.result(timeout=support.PATIENCE)
        assert {t.task_id: t.state for t in await job.tasks()} == {"a": "cancelled", "b": "cancelled"}
        await sound(app)


async def test_a_task_that_another_process_skipped_counts_as_skipped(url: str) -> None:
    app = support.make(url)
    held = Held(app)
    async with app, support.opened(url, work=False, check_functions=False) as other:
        job = await app.submit(
            {"tasks": [task("a", "held"), task("b"), task("c", "break", after="a"), task("d", after="b c")]}
        )
        await asyncio.wait_for(held.entered.wait(), support.PATIENCE)
        await (await other.job(job.job_id)).skip_task("c")
        held.let_go.set()
        assert "d" in await job.result(timeout=support.PATIENCE)
        await sound(app)


async def test_two_workers_share_one_job(url: str) -> None:
    """Each overtakes the other again and again; in the end every task ran once."""
    ran: list[str] = []
    apps = [support.make(url), support.make(url)]
    for app in apps:

        @app.function("note")
        async def note(name: str) -> str:
            ran.append(name)
            await asyncio.sleep(0.002)
            return name

    async with apps[0], apps[1]:
        names = [f"t{n}" for n in range(120)]
        tasks = [task(n, "note", input={"name": n}) for n in names] + [task("join", "join", after=names)]
        job = await apps[0].submit({"tasks": tasks})
        outputs = await job.result(timeout=60)
        assert len(outputs) == 121
        assert sorted(ran) == sorted(names)
        await sound(apps[0])


async def test_a_job_with_the_id_of_one_that_was_pruned_is_another_job(url: str) -> None:
    """It has come as far as the first one was when this process last saw it: only when it began tells them apart."""

    async def run_first_task(app: Ostinato, worker: str) -> rows.Lease:
        claim = commands.Claim(
            worker, f"{worker}/1", {"echo": rows.FunctionPolicy(1, None)}, frozenset({"default"}), slots=1
        )
        spec = graph.read_job({"jobId": "again", "tasks": [task("a")]})
        submit = commands.Submit("again", spec, [b"{}"], None)
        return (await app.engine.store.execute("default", [submit], claim)).leases[0]

    async with support.opened(url, work=False) as app, support.opened(url, work=False) as other:
        old = await run_first_task(app, "one")
        await (await other.job("again")).cancel()
        assert await other.prune(older_than=0) == 1
        new = await run_first_task(other, "two")
        outcome = await app.engine.store.execute("default", [commands.Complete(old, b'"of the first job"')])
        assert isinstance(outcome.answers[0].error, errors.LeaseLost)
        await other.engine.store.execute("default", [commands.Complete(new, b'"of the second job"')])
        assert await (await app.job("again")).outputs() == {"a": "of the second job"}
        await sound(app)


POLICIES = {"echo": rows.FunctionPolicy(1, None)}


def a_claim(token: str, slots: int) -> commands.Claim:
    return commands.Claim("worker", token, POLICIES, frozenset({"default"}), slots=slots)


async def begin(app: Ostinato, *task_ids: str) -> rows.Lease:
    """Enter a job, and claim the first of its tasks: the others are in the queue, and in memory."""
    spec = graph.read_job({"tasks": [task(task_id) for task_id in task_ids]})
    submit = commands.Submit("job", spec, [b"{}"] * len(task_ids), None)
    return (await app.engine.store.execute("default", [submit], a_claim("1", 1))).leases[0]


async def test_what_is_ready_is_claimed_without_being_read_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    enter = store._enter  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(store, "_enter", lambda book, found: (read.extend(found), enter(book, found)))
    async with support.opened(url, work=False) as app:
        first = await begin(app, *[f"t{n}" for n in range(6)])
        done = await app.engine.store.execute("default", [commands.Complete(first, b"1")], a_claim("2", 3))
        assert [lease.task_id for lease in done.leases] == ["t1", "t2", "t3"]
        assert done.more_queued
        assert not read
        await sound(app)


async def test_what_another_process_did_to_ready_tasks_counts(url: str) -> None:
    async with support.opened(url, work=False) as app, support.opened(url, work=False) as other:
        first = await begin(app, "t0", "t1", "t2", "t3")
        theirs = await other.job("job")
        await theirs.cancel_task("t1")
        await theirs.add_tasks([task("t4")])
        done = await app.engine.store.execute("default", [commands.Complete(first, b"1")], a_claim("2", 10))
        assert [lease.task_id for lease in done.leases] == ["t2", "t3", "t4"]
        await sound(app)


async def test_a_task_that_another_process_queued_again_is_claimed(url: str) -> None:
    """This process remembers it as running, in a job of which it knows everything else."""
    async with support.opened(url, work=False) as app, support.opened(url, work=False) as other:
        mine = await begin(app, "t0", "t1")
        more = await app.engine.store.execute("default", [], a_claim("2", 1))
        lost = commands.Expire("job", "t1", "2", rows.Failure("Lost", "gone"))
        retried = commands.Claim("w", "3", {"echo": rows.FunctionPolicy(9, None)}, frozenset({"default"}), slots=1)
        assert [lease.task_id for lease in more.leases] == ["t1"]
        await other.engine.store.execute("default", [lost])
        await (await other.job("job")).retry_task("t1")
        done = await app.engine.store.execute("default", [commands.Complete(mine, b"1")], retried)
        assert [(lease.task_id, lease.attempt) for lease in done.leases] == [("t1", 2)]
        await sound(app)


async def test_the_result_of_a_job_is_not_that_of_one_with_its_id_that_was_pruned(url: str) -> None:
    async with support.opened(url) as app:
        for number in (1, 2):
            job = await app.submit({"jobId": "again", "tasks": [task("a", input={"number": number})]})
            assert await job.result(timeout=support.PATIENCE) == {"a": {"number": number}}
            assert await app.prune(older_than=0) == 1


# --- the memory by itself ------------------------------------------------------------------------------------------


def known_job(job_id: str, tasks: int = 2) -> ledger.Ledger:
    """The ledger of a transaction that entered a job."""
    from tests.unit.test_commands import submit
    from tests.unit.test_commands import task as spec

    book = ledger.Ledger("t", 1)
    submit(book, *[spec(f"t{n}") for n in range(tasks)], job_id=job_id)
    return book


def want(job_id: str, *task_ids: str) -> needs.Needs:
    wanted = needs.Needs()
    for task_id in task_ids:
        wanted.held_task((job_id, task_id))
    return wanted


def recall(kept: memory.Memory, wanted: needs.Needs, *, trust: bool = True, tenant: str = "t") -> memory.Recalled:
    return kept.recall(tenant, wanted, ledger.Ledger(tenant, 2), trust=trust)


def remember(kept: memory.Memory, book: ledger.Ledger) -> None:
    kept.remember("t", book, memory.Recalled({}, [], [], []))


def test_what_was_written_is_recalled_once_and_comes_back_with_the_next_commit() -> None:
    kept = memory.Memory()
    remember(kept, known_job("j"))
    book = ledger.Ledger("t", 2)
    found = kept.recall("t", want("j", "t0"), book, trust=True)
    assert (found.job_ids, found.keys) == ([], [])
    assert book.tasks[("j", "t0")].was == "pending"
    assert recall(kept, want("j", "t0")).job_ids == ["j"], "it is taken out while a transaction works on it"
    kept.remember("t", book, found)
    assert recall(kept, want("j", "t0")).job_ids == []


@pytest.mark.parametrize("how", ["no trust", "another tenant", "read anew", "overtaken"])
def test_memory_is_not_used(how: str) -> None:
    kept = memory.Memory()
    remember(kept, known_job("j"))
    wanted = want("j", "t0")
    arguments: dict[str, Any] = {}
    if how == "no trust":
        arguments = {"trust": False}
    elif how == "another tenant":
        arguments = {"tenant": "other"}
    elif how == "read anew":
        wanted.job("j")
    else:
        kept.distrust()
    found = recall(kept, wanted, **arguments)
    assert (found.job_ids, found.keys) == (["j"], [("j", "t0")])


def test_after_it_was_overtaken_it_remembers_again_after_a_while() -> None:
    kept = memory.Memory()
    kept.distrust()
    for _ in range(memory.DISTRUST):
        recall(kept, want("j", "t0"))
    remember(kept, known_job("j"))
    assert recall(kept, want("j", "t0")).job_ids == []


def test_the_jobs_used_least_lately_are_forgotten_first() -> None:
    kept = memory.Memory(most_tasks=9)
    for job_id in ("one", "two", "three", "four"):
        remember(kept, known_job(job_id))
    assert recall(kept, want("one", "t0")).job_ids == ["one"]
    assert recall(kept, want("four", "t0")).job_ids == []


def test_what_tasks_were_given_counts_too() -> None:
    from tests.unit.test_commands import submit
    from tests.unit.test_commands import task as spec

    kept = memory.Memory(most_tasks=100)
    book = ledger.Ledger("t", 1)
    submit(book, *[spec(f"t{n}", input={"text": "x" * 10_000}) for n in range(9)], job_id="modest")
    remember(kept, book)
    assert recall(kept, want("modest", "t0")).job_ids == []
    book = ledger.Ledger("t", 1)
    submit(book, *[spec(f"t{n}", input={"text": "x" * 10_000}) for n in range(10)], job_id="greedy")
    remember(kept, book)
    assert recall(kept, want("greedy", "t0")).job_ids == ["greedy"]


def test_an_unknown_task_of_a_known_job_is_read() -> None:
    kept = memory.Memory()
    remember(kept, known_job("j"))
    key: rows.TaskKey = ("j", "elsewhere")
    assert recall(kept, want("j", "t0", "elsewhere")).keys == [key]


@pytest.mark.parametrize(
    ("wanted", "little"),
    [
        (want("j", "t0"), True),
        (want("j", "elsewhere"), False),
        (want("other", "t0"), False),
        (needs.Needs(), True),
    ],
    ids=["known", "unknown task", "unknown job", "nothing"],
)
def test_it_knows_what_is_little(wanted: needs.Needs, little: bool) -> None:
    kept = memory.Memory()
    remember(kept, known_job("j"))
    assert kept.knows_it_is_little("t", wanted) is little


def test_a_large_submission_is_not_little() -> None:
    wanted = needs.Needs()
    wanted.new_tasks = memory.SMALL_JOB + 1
    assert not memory.Memory().knows_it_is_little("t", wanted)


@pytest.fixture
def quick_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the disk is like, its commits count as quick after the first of them."""
    monkeypatch.setattr(sqlite, "QUICK_COMMIT", 1.0)


async def test_a_short_transaction_keeps_out_of_one_that_nobody_waits_for_any_more(
    sqlite_url: str, quick_commits: None
) -> None:
    """Whoever asked for a transaction was cancelled. It goes on all the same, and nothing may get into it."""
    done: list[str] = []

    def script(name: str, seconds: float) -> Generator[Any, Any, None]:
        yield database.Run([("insert_blob", [("default", "job", name.encode(), b"{}")])])
        time.sleep(seconds)
        done.append(name)

    async with support.opened(sqlite_url, work=False, maintain=False, poll_seconds=60) as app:
        db = app.engine.db
        await db.write(lambda: script("quick", 0), brief=True)
        done.clear()
        asking = asyncio.create_task(db.write(lambda: script("slow", 0.3)))
        await asyncio.sleep(0.05)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await db.write(lambda: script("brief", 0), brief=True)
        assert done == ["slow", "brief"]


async def test_only_a_commit_that_writes_says_how_quick_commits_are(sqlite_url: str, quick_commits: None) -> None:
    """Until one has, nothing is done on the event loop, which a slow disk would hold up."""

    def script(writes: list[Any]) -> Generator[Any, Any, None]:
        yield database.Run(writes)

    async with support.opened(sqlite_url, work=False, maintain=False, poll_seconds=60) as app:
        db = app.engine.db
        assert isinstance(db, sqlite.SqliteDatabase)
        said: list[bool] = []
        for writes in ([], [("insert_blob", [("default", "job", b"1", b"{}")])], []):
            await db.write(lambda writes=writes: script(writes))
            said.append(db._commits_are_quick)  # pyright: ignore[reportPrivateUsage]
    assert said == [False, True, True]


async def test_a_short_transaction_waits_for_nobody_on_the_loop(sqlite_url: str, quick_commits: None) -> None:
    """Another process holds the write lock: the loop goes on, and so does the job when the lock is free."""
    async with support.opened(sqlite_url) as app:
        await (await app.submit({"tasks": [task("a")]})).result(timeout=support.PATIENCE)
        other = apsw.Connection(sqlite_url.removeprefix("sqlite:///"))
        other.execute("BEGIN IMMEDIATE")
        submitting = asyncio.create_task(app.submit({"tasks": [task("a")]}))
        for _ in range(10):  # the loop is not held up
            began = time.monotonic()
            await asyncio.sleep(0.01)
            assert time.monotonic() - began < sqlite.BUSY_SECONDS / 2
        assert not submitting.done()
        other.execute("ROLLBACK")
        other.close()
        await (await submitting).result(timeout=support.PATIENCE)
        await sound(app)
