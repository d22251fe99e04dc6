"""The issue's §4: bad input gets a typed error with a sentence that says what to do, and changes nothing."""

import asyncio
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from ostinato import Job, Ostinato, errors
from ostinato.core import cursors
from ostinato.store import migrate
from tests.engine import support
from tests.engine.support import job, task


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


BAD = {
    "unknown function": (job(task("a", "ecko")), errors.UnknownFunction, "did you mean 'echo'"),
    "cycle": (job(task("a", after="b"), task("b", after="a")), errors.CycleFound, "circle: "),
    "self-dependency": (job(task("a", after="a")), errors.CycleFound, "depends on itself"),
    "unknown task id": (job(task("a", after="b")), errors.UnknownDependency, "'b'"),
    "duplicate task id": (job(task("a"), task("a")), errors.DuplicateTask, "its own taskId"),
    "no tasks": (job(), errors.InvalidGraph, "at least one task"),
    "empty id": (job(task("")), errors.InvalidId, "taskId"),
    "odd id": (job(task("a b")), errors.InvalidId, "use 1 to 128 letters"),
    "id with a lone surrogate": (job(task("\ud800")), errors.InvalidId, "taskId"),
    "very long id and an odd name": (
        job(task("x" * 1_000_000, "odd\nname")),
        errors.InvalidId,
        "... is not a valid id",
    ),
    "odd name": (job(task("a", "odd\nname")), errors.InvalidId, "name of task 'a'"),
    "odd job id": (job(task("a"), jobId="a/b"), errors.InvalidId, "jobId"),
    "empty key": (job(task("a"), idempotencyKey=""), errors.InvalidId, "idempotencyKey"),
    "non-JSON input": (job(task("a", input={"x": object()})), errors.InvalidPayload, "input of task 'a'"),
    "NaN": (job(task("a", input={"x": float("nan")})), errors.InvalidPayload, "NaN or infinity"),
    "lone surrogate": (job(task("a", input={"x": "\ud800"})), errors.InvalidPayload, "surrogate"),
    "escaped lone surrogate": (
        r'{"name":"test","tasks":[{"taskId":"a","name":"echo","input":{"x":"\ud800"}}]}',
        errors.InvalidPayload,
        "the job has text with a lone surrogate",
    ),
    "oversize": (job(task("a", input={"x": "x" * 100_000})), errors.PayloadTooLarge, "pass a reference"),
    "deep": (job(task("a", input=nested(100_000))), errors.InvalidPayload, "flatten it"),
    "deep JSON": ('{"tasks":' + "[" * 100_000 + "]" * 100_000 + "}", errors.InvalidPayload, "flatten it"),
    "1e400": ('{"tasks":[{"taskId":"a","name":"echo","input":{"x":1e400}}]}', errors.InvalidPayload, "not valid JSON"),
    "not JSON": ("{", errors.InvalidPayload, "not valid JSON"),
    "bytes that are no text": (b"\xff\xfe", errors.InvalidPayload, "not valid JSON"),
    "negative delay": (job(task("a", retry={"baseDelay": -1})), errors.InvalidInput, "baseDelay"),
    "negative timeout": (job(task("a", timeout=-1)), errors.InvalidInput, "timeout"),
    "negative deadline": (job(task("a"), deadline=-1), errors.InvalidInput, "deadline"),
    "too many attempts": (job(task("a", retry={"maxAttempts": 2**70})), errors.InvalidInput, "maxAttempts"),
    "too long a delay": (job(task("a", retry={"baseDelay": 1e300, "maxDelay": 1e300})), errors.InvalidInput, "Delay"),
    "wrong type": (job(task("a", input=[1])), errors.InvalidInput, "input"),
    "an object without keys": (job(task("a", input=range(3))), errors.InvalidInput, "JSON does not know"),
    "tags without keys": (job(task("a"), tags=range(3)), errors.InvalidInput, "JSON does not know"),
    "a priority of too many digits": (job(task("a", priority=10**5000)), errors.InvalidInput, "a very large number"),
    "a concurrency of too many digits": (
        job(task("a"), maxConcurrency=10**5000),
        errors.InvalidInput,
        "maxConcurrency",
    ),
    "attempts of too many digits": (
        job(task("a", retry={"maxAttempts": 10**5000})),
        errors.InvalidInput,
        "maxAttempts",
    ),
    "a quorum of too many digits": (
        job(task("a", approval={"title": "t", "quorum": 10**5000})),
        errors.InvalidInput,
        "quorum must be 1 to",
    ),
    "an unknown field with a long name": (job(task("a", **{"x" * 1_000_000: 1})), errors.InvalidInput, "unknown field"),
    "a long word where only some are taken": (
        job(task("a", onDependencyFailure="x" * 1_000_000)),
        errors.InvalidInput,
        "- at `$.tasks[0].onDependencyFailure`",
    ),
    "unknown field": (job(task("a", colour="red")), errors.InvalidInput, "colour"),
    "no document": (None, errors.InvalidInput, "job"),
    "a list": ([job(task("a"))], errors.InvalidInput, "job"),
    "a number": (7, errors.InvalidInput, "job"),
    "a dependency with a very long id": (
        job(task("a", after="x" * 1_000_000)),
        errors.UnknownDependency,
        "which is not a task of this job",
    ),
    "too many tasks": (job(*[task(f"t{n}") for n in range(11)]), errors.InvalidGraph, "11 tasks"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_job_is_refused_and_changes_nothing(url: str, name: str) -> None:
    document, kind, said = BAD[name]
    async with support.opened(url, max_payload_bytes=50_000, max_tasks=10) as app:
        with pytest.raises(kind) as caught:
            await app.submit(document)
        assert isinstance(caught.value, errors.OstinatoError)
        assert said in str(caught.value)
        assert len(str(caught.value)) + len(repr(caught.value.details)) < 1_000
        for table in ("job", "task", "event_page", "blob", "timer"):
            assert await support.count(url, table) == 0
        assert await support.run(app, task("ok")) == {"ok": {}}, "and the engine goes on"


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (job(task("a"), priority="high"), "priority"),
        (job(task("a"), task("b", retry={"maxAttempts": "9"})), "tasks[1].retry.maxAttempts"),
        (job(task("a", input=[1])), "tasks[0].input"),
        (job(task("a"), colour="red"), "job"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
async def test_an_error_says_in_which_field(sqlite_url: str, document: Any, field: str) -> None:
    async with support.opened(sqlite_url) as app:
        with pytest.raises(errors.InvalidInput) as caught:
            await app.submit(document)
        assert caught.value.details["field"] == field


async def test_of_many_jobs_the_bad_one_is_named(url: str) -> None:
    async with support.opened(url) as app:
        for bad, kind in (
            (job(task("a", input=[1])), errors.InvalidInput),
            (job(task("a", after="a")), errors.CycleFound),
            (job(task("a", "ecko")), errors.UnknownFunction),
            ("{", errors.InvalidPayload),
        ):
            with pytest.raises(kind, match=r"^jobs\[2\]: ") as caught:
                await app.submit_many([job(task("a")), job(task("b")), bad])
            assert str(caught.value.details.get("field", "jobs[2].")).startswith("jobs[2].")
        assert await app.jobs() == []


async def test_a_task_that_is_added_depends_on_what_can_be_named(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "wait", external=True)))
        with pytest.raises(errors.UnknownDependency) as caught:
            await made.add_tasks([task("b", after="x" * 1_000_000)])
        assert len(str(caught.value)) + len(repr(caught.value.details)) < 1_000


@pytest.mark.parametrize("document", [None, 7, [1]], ids=str)
async def test_a_bad_document_with_overrides_is_refused_too(url: str, document: Any) -> None:
    async with support.opened(url) as app:
        with pytest.raises(errors.InvalidInput):
            await app.submit(document, request_id="r")


async def test_a_bad_job_among_good_ones_at_the_same_time(url: str) -> None:
    async with support.opened(url) as app:
        good = [app.submit(job(task("a"))) for _ in range(5)]
        bad = [app.submit(job(task("a"), idempotencyKey="k", priority=n)) for n in range(3)]
        answers = await asyncio.gather(*good, *bad, return_exceptions=True)
        assert [type(a).__name__ for a in answers[:5]] == ["Job"] * 5
        assert sorted(type(a).__name__ for a in answers[5:]) == ["IdempotencyConflict"] * 2 + ["Job"]


async def test_functions_of_other_workers_are_known(url: str) -> None:
    other = support.bare(url)
    gate = support.Gate(other)
    gate.opened.set()
    async with support.opened(url, work=False) as producer:
        with pytest.raises(errors.UnknownFunction, match="start a worker that has it"):
            await producer.submit(job(task("a", "gate")))
        async with other:
            made = await producer.submit(job(task("a", "gate")))
            await made.result(support.PATIENCE)


async def test_the_check_of_functions_can_be_turned_off(url: str) -> None:
    async with support.opened(url, work=False, check_functions=False) as producer:
        made = await producer.submit(job(task("a", "later")))
        assert await support.standing(made) == {"a": "pending"}


@pytest.mark.parametrize("tenant", ["", "a b", "x" * 129, None, 1])
def test_odd_tenants_are_refused(url: str, tenant: Any) -> None:
    with pytest.raises(errors.InvalidId, match="tenant"):
        Ostinato(url, tenant=tenant)


@pytest.mark.parametrize("state", ["zz", "running", "", 5, ["failed"]], ids=str)
async def test_states_that_no_task_can_be_in_are_refused(url: str, state: Any) -> None:
    async with support.opened(url, work=False) as app:
        made = await app.submit(job(task("a")))
        with pytest.raises(errors.InvalidInput, match="state must be one of blocked, pending, processing"):
            await made.tasks(state=state)
        assert [found.task_id for found in await made.tasks(state="pending")] == ["a"]
        assert await made.tasks(state="failed") == []


async def test_of_a_job_that_is_not_there_nothing_is_read(url: str) -> None:
    async with support.opened(url) as app:
        gone = Job(app, "gone")
        for asked in (gone.tasks(), gone.tasks(state="failed"), gone.outputs(), gone.dependencies(["a"])):
            with pytest.raises(errors.JobNotFound, match="there is no job 'gone'"):
                await asked
        made = await app.submit(job(task("a")))
        await made.result(support.PATIENCE)
        assert await made.tasks(after=0) == await made.tasks(state="failed") == []
        assert await made.dependencies(["a"]) == await made.dependencies([]) == {}


@pytest.mark.parametrize(
    "job_id", [5, None, ["a"], b"a", "a\0b", "\ud800", 10**5000], ids=lambda given: type(given).__name__
)
async def test_a_job_has_an_id_that_is_a_text(sqlite_url: str, job_id: Any) -> None:
    async with support.opened(sqlite_url, work=False) as app:
        with pytest.raises(errors.InvalidInput, match="job_id must be a text"):
            Job(app, job_id)


@pytest.mark.parametrize("place", [[1, "a\0b"], [1, "a\0b", "c"], [1, 0, "a\0b"], [1, "a", "b", "c\0"]], ids=ascii)
async def test_a_cursor_holds_what_every_database_knows(url: str, place: list[Any]) -> None:
    cursor = cursors.write(tuple(place))
    async with support.opened(url, work=False) as app:
        for asked in (app.jobs, app.dead_letters, app.executions, app.approvals.list, app.results.list):
            with pytest.raises(errors.InvalidInput, match="not a cursor of this list"):
                await asked(cursor=cursor)


@pytest.mark.parametrize("name", [5, None, "nobody", "a\0b", "\ud800", ["a"], (1, 2)], ids=ascii)
@pytest.mark.parametrize("how", ["plain", "async"])
async def test_what_a_task_does_not_depend_on_has_no_output(url: str, name: Any, how: str) -> None:
    app = support.make(url)

    @app.function("plain")
    def plain(ctx: Any) -> Any:
        try:
            return ctx.dependency_outputs[name]
        except KeyError:
            return [name in ctx.dependency_outputs, "a" in ctx.dependency_outputs]

    @app.function("async")
    async def load(ctx: Any) -> Any:
        try:
            return await ctx.dependency_outputs.load("a", name)
        except KeyError:
            return [name in ctx.dependency_outputs, "a" in ctx.dependency_outputs]

    async with app:
        assert (await support.run(app, task("a"), task("b", how, "a")))["b"] == [False, True]


async def test_what_is_not_there_is_not_repeated_at_length(url: str) -> None:
    long = "x" * 1_000_000
    async with support.opened(url, work=False) as app:
        made, gone = await app.submit(job(task("a"))), Job(app, long)
        asked = [app.job(long), gone.info(), gone.cancel(), gone.resume(), gone.why("a"), gone.task("a"), gone.events()]
        asked += [made.task(long), made.why(long), made.retry_task(long), made.cancel_task(long), gone.result(1)]
        asked += [app.execution(long), app.signal(long, "ok"), made.resume(inputs={long: {}})]
        for one in asked:
            with pytest.raises((errors.NotFound, errors.NotPossible)) as caught:
                await one
            assert len(repr((str(caught.value), caught.value.details))) < 500, str(caught.value)[:300]


async def test_an_id_that_could_be_one_is_named_in_full(url: str) -> None:
    async with support.opened(url, work=False) as app:
        with pytest.raises(errors.JobNotFound) as caught:
            await app.job("x" * 128)
        assert str(caught.value) == f"there is no job {'x' * 128!r}"
        assert caught.value.details == {"jobId": "x" * 128}


@pytest.mark.parametrize("after", [10**40, -(10**40)])
async def test_places_beyond_what_a_database_can_count_to_are_refused(url: str, after: int) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a")))
        for asked in (made.events(after=after), made.tasks(after=after)):
            with pytest.raises(errors.InvalidInput):
                await asked


@pytest.mark.parametrize("cursor", [5, ["1.0.1"], b"1.0.1", "9" * 100_000], ids=lambda given: repr(given)[:20])
async def test_cursors_that_are_no_text_are_refused(url: str, cursor: Any) -> None:
    async with support.opened(url) as app:
        for asked in (app.events(cursor=cursor), app.jobs(cursor=cursor), app.dead_letters(cursor=cursor)):
            with pytest.raises(errors.InvalidInput, match="cursor") as caught:
                await asked
            assert len(caught.value.message) < 200


@pytest.mark.parametrize("inputs", [[1], "a", {"a": [1]}, {"a": None}], ids=str)
async def test_new_inputs_that_are_no_objects_are_refused(url: str, inputs: Any) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break")))
        await support.failure(made)
        with pytest.raises(errors.InvalidInput, match="object"):
            await made.resume(inputs=inputs)
        assert await support.standing(made) == {"a": "failed"}


async def test_calls_from_another_event_loop_are_refused(url: str) -> None:
    """Nothing ever woke who waited for the answer."""
    app = support.make(url)

    @app.function("elsewhere")
    async def elsewhere(ctx: Any) -> None:
        await asyncio.to_thread(lambda: asyncio.run(ctx.step("one", lambda: 1)))

    async with app:
        error = await support.failure(await app.submit(job(task("a", "elsewhere"))))
        assert "open in another event loop" in error.failed["a"]["message"]
        with pytest.raises(errors.NotPossible, match="run_coroutine_threadsafe"):
            await asyncio.to_thread(lambda: asyncio.run(app.signal("gone", "ok")))
        assert await support.run(app, task("ok")) == {"ok": {}}, "and the engine goes on"


# --- the database --------------------------------------------------------------------------------------------------


async def test_a_missing_schema_is_said_to_be_missing(empty_url: str) -> None:
    app = support.make(empty_url)
    with pytest.raises(errors.DatabaseError, match=r"migrat|no database") as caught:
        await app.start(migrate=False)
    assert isinstance(caught.value, errors.SchemaMissing | errors.DatabaseUnavailable)
    async with app:
        pass
    await app.start(migrate=False)
    await app.stop()


async def test_a_schema_that_is_too_new_is_left_alone(url: str) -> None:
    async with support.opened(url):
        pass
    newest = migrate.migrations("sqlite")[-1].number
    if url.startswith("sqlite"):
        await support.sql(url, f"PRAGMA user_version={newest + 1}")
    else:
        await support.sql(url, "INSERT INTO ostinato_schema VALUES ($1)", newest + 1)
    with pytest.raises(errors.SchemaTooNew, match="upgrade"):
        await support.make(url).start()


async def test_an_unreachable_server() -> None:
    with pytest.raises(errors.DatabaseUnavailable, match="check the URL"):
        await support.make("postgresql://nobody@127.0.0.1:1/nothing").start()


async def test_a_database_that_is_not_there(postgres_url: str) -> None:
    base, _, rest = postgres_url.partition("?")
    missing = base.rsplit("/", 1)[0] + "/no_such_database" + (f"?{rest}" if rest else "")
    with pytest.raises(errors.DatabaseUnavailable, match="no_such_database"):
        await support.make(missing).start()


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(errors.DatabaseUnavailable, match="create it"):
        await support.make(f"sqlite:///{tmp_path}/no/where/test.db").start()


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "test.db").write_text("this is a poem, not a database\n" * 100)
    with pytest.raises(errors.DatabaseUnavailable, match="not a SQLite database"):
        await support.make(f"sqlite:///{tmp_path}/test.db").start()


async def test_a_damaged_file(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    whole = path.read_bytes()
    path.write_bytes(whole[:20_480] + b"Z" * (len(whole) - 20_480))
    app = support.make(sqlite_url)
    with pytest.raises(errors.DatabaseError, match="backup"):
        async with app:
            await app.submit(job(task("a")))


async def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    with pytest.raises(errors.DatabaseError):
        await support.make(f"sqlite:///{tmp_path}").start()


async def test_a_read_only_server(postgres_url: str) -> None:
    async with support.opened(postgres_url):
        pass
    link = await asyncpg.connect(postgres_url)
    name = await link.fetchval("SELECT current_database()")
    await link.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await link.close()
    with pytest.raises((errors.DatabaseReadOnly, errors.DatabaseUnavailable)):
        await support.make(postgres_url).start()


async def test_a_read_only_file(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write to any file, so the connection stands for its permissions."""
    async with support.opened(sqlite_url):
        pass
    real = apsw.Connection
    monkeypatch.setattr(apsw, "Connection", lambda path: real(path, flags=apsw.SQLITE_OPEN_READONLY))
    with pytest.raises(errors.DatabaseReadOnly, match="permissions"):
        await support.make(sqlite_url).start()


async def test_a_database_that_turns_full_says_so_and_recovers(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quota on the pages of the file stands for a disk that is full."""
    real = apsw.Connection

    class Small(real):  # type: ignore[valid-type, misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.execute("PRAGMA max_page_count=200").fetchall()

    async with support.opened(sqlite_url):
        pass
    monkeypatch.setattr(apsw, "Connection", Small)
    async with support.opened(sqlite_url) as app:
        with pytest.raises(errors.DatabaseFull, match="room"):
            await app.submit(job(task("a", input={"text": "x" * 2_000_000})))
        assert await app.jobs() == []
        assert await support.run(app, task("b")) == {"b": {}}


@pytest.mark.parametrize("wanted", [5, "\ud800"], ids=ascii)
async def test_what_a_statement_does_not_take_spoils_no_connection(postgres_url: str, wanted: Any) -> None:
    """Nothing that reads at one point in time could be done on the connection any more, timers for one."""
    async with support.opened(postgres_url, work=False, maintain=False) as app:
        with pytest.raises(errors.InvalidInput):
            await app.engine.store.dependency_outputs("default", ("job", "task"), [wanted])
        assert await app.jobs() == []
        assert await app.jobs() == []


async def test_what_comes_after_a_lost_connection_works(postgres_url: str) -> None:
    async with support.opened(postgres_url) as app:
        await support.run(app, task("a"))
        await support.sql(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )

        async def works() -> bool:
            try:
                return bool(await support.run(app, task("b")))
            except errors.DatabaseUnavailable:
                return False

        await support.until(works)


async def test_an_empty_file_has_no_schema(empty_sqlite_url: str) -> None:
    Path(empty_sqlite_url.removeprefix("sqlite:///")).touch()
    with pytest.raises(errors.SchemaMissing, match="migrat"):
        await support.make(empty_sqlite_url).start(migrate=False)
