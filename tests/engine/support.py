"""Short ways to say what the engine tests say often."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import apsw
import asyncpg

from ostinato import EngineOptions, Job, Ostinato, Retry, TerminalError, errors

PATIENCE = 10.0
"""Seconds after which a test gives up on something that should happen at once."""
CRASH_EVERY = 1 if "OSTINATO_CRASH_ALL" in os.environ else 3
"""Which crashes of long scenarios are tried on PostgreSQL, where a new database takes a while; on SQLite it is all."""


def make(url: str, *, tenant: str = "default", **options: Any) -> Ostinato:
    """An application that looks often, gives up soon and tries once, with a few plain functions."""
    settings = {
        "poll_seconds": 0.05,
        "lease_seconds": 5,
        "shutdown_seconds": 2,
        "default_retry": Retry(max_attempts=1),
        "prune_every_seconds": None,
    }
    app = Ostinato(url, tenant=tenant, options=EngineOptions(**(settings | options)))

    @app.function("echo")
    async def echo(**given: Any) -> Any:
        return given

    @app.function("join")
    async def join(ctx: Any) -> Any:
        return dict(ctx.dependency_outputs)

    @app.function("break")
    async def break_(message: str = "broken") -> None:
        raise TerminalError(message)

    return app


def bare(url: str, **options: Any) -> Ostinato:
    """Like `make`, without any function."""
    app = make(url, **options)
    app.functions.clear()
    return app


@contextlib.asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Ostinato]:
    async with make(url, **options) as app:
        yield app


def task(task_id: str, name: str = "echo", after: str | list[str] = "", **fields: Any) -> dict[str, Any]:
    """A task; `after` are ids, in a list or parted by spaces."""
    return {"taskId": task_id, "name": name, "dependsOn": after.split() if isinstance(after, str) else after} | fields


def job(*tasks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": "test", "tasks": list(tasks)} | fields


async def run(app: Ostinato, *tasks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Submit a job and wait for its outputs."""
    return await (await app.submit(job(*tasks, **fields))).result(PATIENCE)


async def failure(made: Job) -> errors.JobFailed:
    """Wait for a job that is expected not to complete."""
    try:
        outputs = await made.result(PATIENCE)
    except errors.JobFailed as error:
        return error
    raise AssertionError(f"the job completed: {outputs}")


async def until(condition: Callable[[], Awaitable[Any]], what: str = "it") -> Any:
    """Wait for something that only the database can tell."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await condition()):
            await asyncio.sleep(0.005)
    return found


async def standing(made: Job) -> dict[str, str]:
    return {view.task_id: view.state for view in await made.tasks()}


async def reaches(made: Job, task_id: str, state: str) -> None:
    async def there() -> bool:
        return (await standing(made)).get(task_id) == state

    await until(there, f"{task_id} {state}")


async def told(made: Job, **filters: Any) -> list[str]:
    """The types of a job's events, in order."""
    return [event.type for event in await made.events(**filters)]


async def soon(awaitable: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(awaitable, PATIENCE)


class Gate:
    """A function that says when it has started, and ends when it is let."""

    def __init__(self, app: Ostinato, name: str = "gate", **settings: Any) -> None:
        self.started = asyncio.Event()
        self.opened = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.runs = 0
        self.running = 0
        self.most = 0
        self.context: Any = None
        app.function(name, **settings)(self._run)

    async def _run(self, ctx: Any, **given: Any) -> dict[str, Any]:
        self.runs += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.context = ctx
        self.started.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        finally:
            self.running -= 1
        return given


class Flaky:
    """A function that fails as often as it is told to, and counts its calls."""

    def __init__(self, app: Ostinato, name: str = "flaky", failures: int = 1, **settings: Any) -> None:
        self.left = failures
        self.calls: list[tuple[str, int]] = []
        app.function(name, **settings)(self._run)

    async def _run(self, ctx: Any, **given: Any) -> dict[str, Any]:
        self.calls.append((ctx.task_id, ctx.attempt))
        if self.left > 0:
            self.left -= 1
            raise ValueError(f"attempt {ctx.attempt} went wrong")
        return given


async def sql(url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement past the engine, as an administrator might. Parameters are $1, $2, …"""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.set_busy_timeout(5000)
        try:
            return connection.execute(statement, {str(n + 1): value for n, value in enumerate(values)}).fetchall()
        finally:
            connection.close()
    link = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await link.fetch(statement, *values)]
    finally:
        await link.close()


async def tables_of_jobs(url: str) -> list[str]:
    """Every table that keeps something of jobs."""
    if url.startswith("sqlite"):
        found = await sql(
            url,
            "SELECT m.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c ON c.name = 'job_id' "
            "WHERE m.type = 'table' ORDER BY 1",
        )
    else:
        found = await sql(
            url,
            "SELECT table_name::text FROM information_schema.columns "
            "WHERE column_name = 'job_id' AND table_schema = current_schema() ORDER BY 1",
        )
    return [row[0] for row in found]


async def count(url: str, table: str) -> int:
    """How many rows there are of anybody's: nobody's is the place that the feed of an SQLite file has got to."""
    return (await sql(url, f"SELECT count(*) FROM {table} WHERE tenant <> ''"))[0][0]
