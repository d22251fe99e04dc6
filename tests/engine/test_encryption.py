"""Encryption at rest through the whole engine: nothing readable is stored, and nothing but the right key opens it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ostinato import Keyring, Ostinato, Retry, audit, errors, rotation, testing
from ostinato.store import queries, sealed
from ostinato.store import rotation as walks
from tests.engine import support
from tests.engine.support import job, run, task

ONE, TWO = bytes(range(32)), bytes(range(1, 33))
RING = {"one": ONE}
MARKER = "marker-4111"
LARGE = MARKER * 10_000


@contextlib.asynccontextmanager
async def opened(
    url: str, keys: dict[str, bytes] | None, *, accept_plain: bool = True, **options: Any
) -> AsyncIterator[Ostinato]:
    app = support.make(url, **options)
    app.keyring = None if keys is None else Keyring(keys, accept_plain=accept_plain)

    @app.function
    async def careful(ctx: Any, said: str) -> str:
        first = await ctx.step("first", lambda: said + " first")
        heard = await ctx.wait_for("go")
        await ctx.add_tasks([task("added", input={"said": said + " added"})])
        return f"{first} {heard}"

    @app.function(retry=Retry(max_attempts=2, base_delay=0.01))
    async def clumsy(said: str) -> None:
        raise ValueError(said)

    async with app:
        yield app


async def everything(app: Ostinato) -> tuple[str, str]:
    """A job with a payload of each kind, and one that failed."""
    made = await app.submit(
        job(
            task("a", "careful", input={"said": MARKER}),
            task("b", input={"said": LARGE}),
            task("c", "join", "a b"),
        )
    )
    await app.signal(made.job_id, "go", MARKER + " signal")
    await app.signal(made.job_id, "unheard", LARGE)
    outputs = await made.result(support.PATIENCE)
    assert outputs["a"] == f"{MARKER} first {MARKER} signal"
    assert outputs["c"]["b"] == {"said": LARGE}
    failed = await app.submit(job(task("x", "clumsy", input={"said": MARKER})))
    await support.failure(failed)
    return made.job_id, failed.job_id


async def stored(url: str) -> bytes:
    """All that the database holds: the bytes of the files, or every row of every table."""
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        return b"".join(file.read_bytes() for file in path.parent.glob(path.name + "*"))
    names = await support.sql(url, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
    parts: list[bytes] = []
    for (name,) in names:
        for row in await support.sql(url, f'SELECT * FROM "{name}"'):
            parts += [cell if isinstance(cell, bytes) else str(cell).encode() for cell in row]
    return b"\n".join(parts)


async def test_without_keys_everything_can_be_read(url: str) -> None:
    async with opened(url, None) as app:
        await everything(app)
        assert await audit_problems(app) == []
    assert MARKER.encode() in await stored(url), "the search finds what is there"


async def test_nothing_readable_is_stored(url: str) -> None:
    async with opened(url, RING) as app:
        made, failed = await everything(app)
        assert MARKER.encode() not in await stored(url)
        assert await audit_problems(app) == []
        assert {view.key_id for view in await app.encryption_status()} == {"one"}
        kinds = {view.kind for view in await app.encryption_status()}
        assert kinds == {"input", "output", "error", "step", "signal", "blob", "events"}
    async with opened(url, RING, work=False) as app:  # and read again by another process
        handle = await app.job(made)
        assert (await handle.task("a")).steps[0].output == f"{MARKER} first"
        assert (await handle.task("b")).input == {"said": LARGE}
        assert (await handle.events())[0].properties["tasks"][0]["input"] == {"said": MARKER}
        assert (await app.dead_letters())[0].error["message"] == MARKER
        assert (await (await app.job(failed)).tasks())[0].error["message"] == MARKER
        assert any(event.event.type == "Job Completed" for event in await app.events())
    assert MARKER.encode() not in await stored(url)


async def audit_problems(app: Ostinato) -> list[audit.Problem]:
    return (await audit.audit(app.engine.store)).problems


async def test_equal_large_payloads_do_not_look_equal(url: str) -> None:
    async with opened(url, RING) as app:
        for _ in range(2):
            await run(app, task("a", input={"said": LARGE}), task("b", input={"said": LARGE}))
        blobs = await support.sql(url, "SELECT digest, data FROM blob")
        assert len({digest for digest, _ in blobs}) == len({bytes(data) for _, data in blobs}) == len(blobs) >= 8


async def test_what_was_stored_before_stays_readable(url: str) -> None:
    async with opened(url, None) as app:
        made, _ = await everything(app)
    async with opened(url, RING) as app:
        assert (await (await app.job(made)).outputs())["b"] == {"said": LARGE}
        assert await run(app, task("a", input={"n": 1})) == {"a": {"n": 1}}
        assert {view.key_id for view in await app.encryption_status()} == {None, "one"}
        assert await audit_problems(app) == []


async def test_rotation_encrypts_everything_with_the_first_key(url: str) -> None:
    async with opened(url, None) as app:
        await everything(app)
    async with opened(url, RING) as app:
        made, _ = await everything(app)
    told: list[tuple[str, str, int]] = []
    async with opened(url, {"two": TWO, "one": ONE}, work=False) as app:
        count = await rotation.rotate(app.engine.store, app.keys_at_hand(), progress=lambda *batch: told.append(batch))
        assert {table for _, table, _ in told} == {"task", "step", "signal", "blob", "event_page"}
        assert count == sum(rows for _, _, rows in told)
        assert {view.key_id for view in await app.encryption_status()} == {"two"}
        assert await app.rotate_encryption() == 0
    async with opened(url, {"two": TWO}) as app:  # the old key can go
        assert (await (await app.job(made)).outputs())["b"] == {"said": LARGE}
        assert await audit_problems(app) == []
        letters = await app.dead_letters()
        assert (await app.redrive([(letters[0].job_id, letters[0].task_id)])).count == 1
    if url.startswith("postgres"):  # a file keeps old pages until it is vacuumed
        assert MARKER.encode() not in await stored(url)


async def test_rotation_goes_by_batches(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "WALKS", tuple(walk._replace(batch=2) for walk in walks.WALKS))
    async with opened(url, RING) as app:
        await run(app, *[task(f"t{n}", input={"n": n}) for n in range(7)])
    told: list[int] = []
    async with opened(url, {"two": TWO, "one": ONE}, work=False) as app:
        await rotation.rotate(
            app.engine.store, app.keys_at_hand(), "default", lambda tenant, table, rows: told.append(rows)
        )
        assert max(told) == 2
        assert {view.key_id for view in await app.encryption_status()} == {"two"}


async def test_rotation_beside_workers_loses_nothing(url: str) -> None:
    async with opened(url, RING, work=False) as app:
        waiting = [await app.submit(job(*[task(f"t{n}", input={"n": n}) for n in range(20)])) for _ in range(10)]
    async with opened(url, {"two": TWO, "one": ONE}) as app:
        async with asyncio.TaskGroup() as group:
            rotating = group.create_task(app.rotate_encryption())
            for made in waiting:
                group.create_task((await app.job(made.job_id)).result(support.PATIENCE))
        assert rotating.result() > 0
        await app.rotate_encryption()  # what was being written meanwhile
        assert {view.key_id for view in await app.encryption_status()} == {"two"}
        assert await audit_problems(app) == []
    async with opened(url, {"two": TWO}, work=False) as app:
        for made in waiting:
            assert await (await app.job(made.job_id)).outputs() == {f"t{n}": {"n": n} for n in range(20)}


async def test_where_nothing_plain_is_accepted_nothing_plain_is_run_or_read(url: str) -> None:
    async with opened(url, None, work=False) as app:
        made = await app.submit(job(task("a", input={"said": MARKER})))
    app = support.make(url)
    app.keyring = Keyring(RING, accept_plain=False)
    async with app:
        await support.until(lambda: failed(app, made.job_id))
        ((_, _, error),) = await app.engine.store.failures("default", made.job_id)
        assert error["type"] == "DecryptionFailed"
        assert "not encrypted" in error["message"]
        with pytest.raises(errors.DecryptionFailed, match="not encrypted"):
            await (await app.job(made.job_id)).task("a")


async def test_where_nothing_plain_is_accepted_a_job_runs_as_anywhere(url: str) -> None:
    """Also when it is submitted, claimed and finished without having been read from the database in between."""
    async with opened(url, RING, accept_plain=False) as app:
        outputs = await run(app, task("a", input={"n": 1}), task("b", "join", "a"))
        assert outputs == {"a": {"n": 1}, "b": {"a": {"n": 1}}}


async def test_the_events_of_one_task_are_found(url: str) -> None:
    async with opened(url, RING) as app:
        made = await app.submit(job(task("a"), task("b", "join", "a")))
        await made.result(timeout=support.PATIENCE)
        told = [event.type for event in await made.events(task_id="b")]
        assert told == ["Task Pending", "Task Processing", "Task Completed"]


async def test_rotation_needs_keys(url: str) -> None:
    async with opened(url, None) as app:
        with pytest.raises(errors.NotPossible, match="OSTINATO_ENCRYPTION_KEYS"):
            await app.rotate_encryption()


async def test_events_can_be_sealed_anew_and_nothing_else(url: str) -> None:
    async with opened(url, RING) as app:
        await run(app, task("a"))
    for change in ("body = tenant_bytes", "last_seq = last_seq + 1", "at = 1"):
        value = "CAST('x' AS BLOB)" if url.startswith("sqlite") else "'x'::bytea"
        with pytest.raises(Exception, match="append-only"):
            await support.sql(url, f"UPDATE event_page SET {change.replace('tenant_bytes', value)} WHERE first_seq = 1")


SWAPS = {
    "another job": "UPDATE task SET output = (SELECT output FROM task WHERE job_id = 'two' AND task_id = 'a') "
    "WHERE job_id = 'one' AND task_id = 'a'",
    "another task": "UPDATE task SET output = (SELECT output FROM task WHERE job_id = 'one' AND task_id = 'b') "
    "WHERE job_id = 'one' AND task_id = 'a'",
    "another kind": "UPDATE task SET output = input WHERE job_id = 'one' AND task_id = 'a'",
    "other bytes": "UPDATE task SET output = output || output WHERE job_id = 'one' AND task_id = 'a'",
}


@pytest.mark.parametrize("how", SWAPS)
async def test_a_payload_opens_in_its_own_place_only(url: str, how: str) -> None:
    async with opened(url, RING) as app:
        for name in ("one", "two"):
            tasks = [task(i, input={"said": MARKER}) for i in "ab"]
            assert await run(app, *tasks, jobId=name)
        statement = SWAPS[how]
        if url.startswith("sqlite"):
            statement = statement.replace("output || output", "CAST(output || output AS BLOB)")
        await support.sql(url, statement)
        with pytest.raises(errors.DecryptionFailed, match="'one'") as caught:
            await (await app.job("one")).outputs()
        assert MARKER not in str(caught.value)
        assert (await (await app.job("two")).outputs())["a"] == {"said": MARKER}
        assert [(p.invariant, p.job_id) for p in await audit_problems(app)] == [("I4", "one")]


@pytest.mark.parametrize("keys", [None, {"one": TWO}, {"two": TWO}])
async def test_a_worker_without_the_key_fails_that_task_and_goes_on(url: str, keys: dict[str, bytes] | None) -> None:
    async with opened(url, RING, work=False) as app:
        made = await app.submit(job(task("a", input={"said": MARKER})))
    async with opened(url, keys) as app:
        await support.until(lambda: failed(app, made.job_id))
        ((_, _, error),) = await app.engine.store.failures("default", made.job_id)
        assert error["type"] == "DecryptionFailed"
        assert "'one'" in error["message"]
        assert await run(app, task("b", input={"n": 1})) == {"b": {"n": 1}}
    assert MARKER.encode() not in await stored(url)


async def failed(app: Ostinato, job_id: str) -> bool:
    return (await (await app.job(job_id)).info()).state == "failed"


async def test_a_signal_that_cannot_be_opened_fails_who_waits_for_it(url: str) -> None:
    async with opened(url, RING) as app:
        gate = support.Gate(app)
        made = await app.submit(job(task("first", "gate"), task("a", "careful", "first", input={"said": ""})))
        await app.signal(made.job_id, "go", MARKER)
        await support.soon(gate.started.wait())
        await support.sql(url, "UPDATE signal SET payload = (SELECT min(body) FROM event_page)")
        gate.opened.set()
        error = (await support.failure(made)).failed["a"]
        assert error["type"] == "DecryptionFailed"
        assert "'one'" in error["message"]
        assert await run(app, task("b", input={"n": 1})) == {"b": {"n": 1}}


async def test_the_test_kit_sees_every_commit(url: str) -> None:
    app = support.make(url)
    app.keyring = Keyring(RING)
    commits: list[str] = []
    async with testing.open(app) as kit:
        app.engine.db.before_commit = lambda: commits.append("before")
        app.engine.db.after_commit = lambda: commits.append("after")
        await kit.app.submit(job(task("a")))
        assert commits == ["before", "after"]
        await kit.run_until_idle()
        await kit.audit()


def test_the_tables_of_payloads_speak_of_statements_that_exist() -> None:
    names = queries.blocks("sqlite").keys()
    assert sealed.WRITES.keys() | sealed.READS.keys() <= names


async def test_events_that_nobody_here_can_open_say_which_key_is_missing(url: str) -> None:
    """Also to who has no key at all, and may not even know that there is one."""
    async with opened(url, RING) as app:
        made, _ = await everything(app)
    async with opened(url, None, work=False) as app:
        for asked in ((await app.job(made)).events(), app.events()):
            with pytest.raises(errors.DecryptionFailed, match="'one'"):
                await asked
        problems = (await audit.audit(app.engine.store)).problems
        assert problems
        assert all("'one'" in problem.message for problem in problems)
