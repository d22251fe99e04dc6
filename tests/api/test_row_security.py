"""The second wall, on PostgreSQL: a mistake in a statement, or in the server, shows nothing of another tenant."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from ostinato import Keyring, errors
from ostinato.api import server, settings
from ostinato.core import filters, result_filters
from ostinato.store import connect, postgres, results
from tests.api import support
from tests.api.support import Site
from tests.engine import support as engine_support
from tests.engine.support import PATIENCE, job, task
from tests.index import support as index_support

TENANTS = ("default", "other")
PIPELINE = {
    "name": "pipeline",
    "statuses": [{"code": n, "name": name} for n, name in enumerate(("new", "asked", "done", "failed", "dead"), 1)],
    "course": [{"status": "new"}, {"review": "review", "waiting": "asked", "reject": "failed"}, {"status": "done"}],
    "failed": "failed",
    "deadLetter": "dead",
}


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


async def fill(url: str, tenant: str) -> None:
    """Something in every table."""
    app = engine_support.make(url, tenant=tenant, spill_bytes=100)

    @app.function("wait")
    async def wait(ctx: Any) -> None:
        await ctx.step("first", lambda: "step")
        await ctx.spend(0.01)
        await ctx.wait_for("go")

    async with app:
        await (await app.submit(job(task("a"), idempotencyKey="old"))).result(PATIENCE)
        await app.post_events({"source": "s", "detail-type": "t", "detail": {}})
        await app.prune(older_than=0)
        await engine_support.failure(await app.submit(job(task("a", "break"))))
        await engine_support.run(app, task("a", input={"large": "x" * 1000}), task("b", after="a"), tags={"k": "v"})
        waiting = await app.submit(job(task("a", "wait")))
        await app.signal(waiting.job_id, "early", "kept")
        await app.submit(job(task("ask", approval={"title": "May I?"})))
        await app.pipelines.define(PIPELINE)
        await app.pipelines.enter("pipeline", item_id="item")
        await app.set_retention(jobs=1000)
        await app.note("somebody", "test", "nothing")
        await app.results.save("saved", {"summary": "a result", "tenant": tenant})
        await app.engine.store.create_key(tenant, "test", ["admin"])
        await app.index.report([index_support.change()])
        await index_support.record(url, index_support.change(), "id", tenant)
        await engine_support.until(lambda: _waits(waiting), "the wait")
    async with engine_support.opened(url, tenant=tenant, work=False, check_functions=False) as idle:
        await idle.submit(job(task("a", "nobody-has-this")))
        await hold(url, tenant, idle.engine.db.now())


async def _waits(job_: Any) -> bool:
    return [item.state for item in await job_.tasks()] == ["waiting"]


async def hold(url: str, tenant: str, now: int) -> None:
    """Rows that a database at rest does not have: a worker, what it holds, and a gate."""
    connection = await asyncpg.connect(url)
    await connection.execute("INSERT INTO worker VALUES ($1, 'w', $2, $2, '{}'::bytea)", tenant, now + 10**12)
    await connection.execute("INSERT INTO lease VALUES ($1, 'w', 't', '[]'::bytea)", tenant)
    await connection.execute("INSERT INTO definition VALUES ($1, 'gate', 'g', 1, '{}'::bytea, 0, NULL)", tenant)
    await connection.execute("INSERT INTO gate_key VALUES ($1, 'g', 'k', 'j')", tenant)
    await connection.close()


async def tables(connection: Any) -> list[str]:
    found = await connection.fetch(
        "SELECT table_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND column_name = 'tenant' ORDER BY table_name"
    )
    return [row[0] for row in found]


@contextlib.asynccontextmanager
async def visiting(url: str) -> AsyncIterator[tuple[Any, list[str]]]:
    """A connection as the server's reads have it, for `default`, beside rows of two tenants; and all tables."""
    for tenant in TENANTS:
        await fill(url, tenant)
    connection = await asyncpg.connect(url, server_settings=postgres.SETTINGS)
    every = await tables(connection)
    for table in every:
        found = await connection.fetch(f"SELECT DISTINCT tenant FROM {table}")
        assert {row[0] for row in found} == set(TENANTS), f"nothing is tested in {table}"
    await connection.execute(f"SET ROLE {postgres.VISITOR}; SET ostinato.tenant = 'default'")
    yield connection, every
    await connection.close()


# --- plain SQL ----------------------------------------------------------------------------------------------------


async def test_plain_sql_sees_one_tenant(url: str) -> None:
    async with visiting(url) as (connection, every):
        assert len(every) > 15
        for table in every:
            if table == "api_key":
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.fetch("SELECT * FROM api_key")
                continue
            found = await connection.fetch(f"SELECT DISTINCT tenant FROM {table}")
            assert [row[0] for row in found] == ["default"], table
            assert await connection.fetch(f"SELECT FROM {table} WHERE tenant = 'other'") == [], table


async def test_without_a_tenant_nothing_is_seen(url: str) -> None:
    async with visiting(url) as (connection, every):
        for reset in ("RESET ostinato.tenant", "SET ostinato.tenant = ''"):
            await connection.execute(reset)
            for table in every:
                if table != "api_key":
                    assert await connection.fetch(f"SELECT FROM {table}") == [], table


async def test_nothing_is_written_through_it(url: str) -> None:
    async with visiting(url) as (connection, every):
        for table in every:
            for statement in (
                f"UPDATE {table} SET tenant = 'default'",
                f"DELETE FROM {table}",
                f"INSERT INTO {table} (tenant) VALUES ('other')",
                f"TRUNCATE {table}",
            ):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.execute(statement)


# --- the server ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ours", TENANTS)
async def test_a_wrong_tenant_in_the_server_finds_nothing(url: str, ours: str) -> None:
    """The mistake is made on purpose: the application of one tenant asks for the other's."""
    theirs = next(tenant for tenant in TENANTS if tenant != ours)
    async with support.opened(url, engine={"work": False}) as site:
        job_id = await support.submitted(await site.admin(theirs), job(task("a"), task("b", after="a")))
        client = await site.admin(ours)
        made = await site.server.tenants.client(ours)
        made.tenant = theirs
        assert (await client.get("/v1/jobs")).json()["jobs"] == []
        for path in (f"/v1/jobs/{job_id}", f"/v1/jobs/{job_id}/events", f"/v1/jobs/{job_id}/tasks/a"):
            assert (await client.get(path)).status_code == 404, path
        store = made.engine.store
        assert list(await store.jobs(theirs, filters.JobFilter())) == []
        assert list(await store.executions(theirs, filters.ExecutionFilter())) == []
        assert await store.count_executions(theirs, filters.ExecutionFilter(), "status") == {}
        assert await store.feed(theirs, None) == []
        assert (await store.waiting(theirs)).queues == []
        with pytest.raises(errors.NotFound):
            await store.job(theirs, job_id)
        # Without the wall the same mistake would have shown it.
        assert (await site.home.engine.store.job(theirs, job_id)).job_id == job_id


async def test_a_search_for_another_tenant_finds_nothing(url: str) -> None:
    """The index of words is looked up as its owner does: the wall is in the function that does it."""
    async with support.opened(url, engine={"work": False}) as site:
        for tenant in TENANTS:
            client = await site.server.tenants.client(tenant)
            await client.results.save("job", {"summary": f"the plan of {tenant}"})
        asked = results.Question(["plan"], "hashing-1/256", [1] * 256)
        where = result_filters.ResultFilter()
        for ours, theirs in (TENANTS, TENANTS[::-1]):
            store = (await site.server.tenants.client(ours)).engine.store
            assert len(await store.search_results(ours, asked, where)) == 1
            assert await store.search_results(theirs, asked, where) == []
            assert list(await store.results(theirs, where)) == []
            # Without the wall the same mistake would have shown it.
            assert len(await site.home.engine.store.search_results(theirs, asked, where)) == 1


async def test_words_are_found_only_by_who_may_read_the_table(url: str) -> None:
    await fill(url, "default")
    find = "SELECT * FROM ostinato_find_words('default', 'result', NULL, 0, 4611686018427387904, '{}', '{}', 10)"
    connection = await asyncpg.connect(url)
    assert len(await connection.fetch(find)) == 1
    await connection.execute(
        "DO $$ BEGIN CREATE ROLE ostinato_stranger LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    await connection.execute("GRANT USAGE ON SCHEMA public TO ostinato_stranger")
    await connection.close()
    parts = urlsplit(url)
    strange = urlunsplit(parts._replace(netloc=f"ostinato_stranger@{parts.netloc.rpartition('@')[2]}"))
    stranger = await asyncpg.connect(strange)
    assert await stranger.fetch(find) == []
    await stranger.close()


async def test_words_are_found_as_whom_the_statement_runs(url: str) -> None:
    """Whether the role was taken on or connected as, and whatever whoever took it on may do without it."""
    for tenant in TENANTS:
        await fill(url, tenant)
    find = "SELECT * FROM ostinato_find_words($1, 'result', NULL, 0, 4611686018427387904, '{}', '{}', 10)"
    connection = await asyncpg.connect(url)
    await connection.execute(
        "DO $$ BEGIN CREATE ROLE ostinato_stranger LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    await connection.execute("GRANT USAGE ON SCHEMA public TO ostinato_stranger")
    for become in (f"SET ROLE {postgres.VISITOR}", f"SET SESSION AUTHORIZATION {postgres.VISITOR}"):
        await connection.execute(f"{become}; SET ostinato.tenant = 'default'")
        assert len(await connection.fetch(find, "default")) == 1, become
        assert await connection.fetch(find, "other") == [], become
        await connection.execute("RESET SESSION AUTHORIZATION; RESET ROLE; RESET ostinato.tenant")
    await connection.execute("SET ROLE ostinato_stranger")
    assert await connection.fetch(find, "default") == []
    await connection.close()


async def test_without_pgvector_likeness_is_found_all_the_same(url: str) -> None:
    """Whoever owns the tables but not the database may not make extensions; somebody else may do it later."""
    plain = await plain_user(url)
    async with engine_support.opened(plain, work=False) as app:
        await app.results.save("one", {"summary": "flooded street"})
        await app.results.save("two", {"summary": "noisy neighbours"})
        assert await _kind_of_vectors(url) == "real[]"
        before = await app.results.search("streets flooded")
        assert [(hit.job_id, hit.ranks) for hit in before] == [("one", {"text": 1, "vector": 1})]
    connection = await asyncpg.connect(url)
    assert await connection.fetchval("SELECT ostinato_use_pgvector()")
    await connection.close()
    assert await _kind_of_vectors(url) == "vector"
    async with engine_support.opened(plain, work=False) as app:
        assert await app.results.search("streets flooded") == before
        await app.results.save("three", {"summary": "another flooded street"})
        assert len(await app.results.search("streets flooded")) == 2


async def _kind_of_vectors(url: str) -> str:
    connection = await asyncpg.connect(url)
    kind = await connection.fetchval(
        "SELECT format_type(atttypid, NULL) FROM pg_attribute "
        "WHERE attrelid = 'result_vector'::regclass AND attname = 'embedding'"
    )
    await connection.close()
    return kind


async def test_each_tenant_sees_its_own_in_turn(url: str) -> None:
    async with support.opened(url) as site:
        clients = {tenant: await site.admin(tenant) for tenant in TENANTS}
        ids = {tenant: await support.submitted(client) for tenant, client in clients.items()}
        for _ in range(3):
            for tenant, client in clients.items():
                found = (await client.get("/v1/jobs")).json()["jobs"]
                assert [item["jobId"] for item in found] == [ids[tenant]]


async def test_the_worker_of_the_home_tenant_hears_at_once(url: str) -> None:
    """It is the same process, though not the same engine that takes the order: no poll is needed."""
    async with support.opened(url, engine={"poll_seconds": 30.0}) as site:
        client = site.client()
        job_id = await support.submitted(client)
        assert (await support.ended(client, job_id))["state"] == "completed"


async def test_a_lost_connection_comes_back_behind_the_wall(site: Site) -> None:
    client = await site.admin()
    await support.submitted(client)
    database: Any = site.home.engine.db
    await client.get("/v1/jobs")
    database._connections["visitor"].terminate()
    assert len((await client.get("/v1/jobs")).json()["jobs"]) == 1
    assert await database._connections["visitor"].fetchval("SELECT current_user") == postgres.VISITOR


async def test_encrypted_payloads_are_read_through_it(url: str) -> None:
    home = engine_support.make(url)
    home.keyring = Keyring({"k": bytes(range(32))})
    async with home, server.Server(home, settings.ServerOptions()) as running:
        site = Site(running, home)
        client = await site.admin()
        job_id = await support.submitted(client, job(task("a", input={"word": "open"})))
        await support.ended(client, job_id)
        assert (await client.get(f"/v1/jobs/{job_id}/tasks/a")).json()["input"] == {"word": "open"}
        made = await site.server.tenants.client("default")
        with pytest.raises(errors.NotFound):
            await made.engine.store.seen_by("other").job("default", job_id)


async def test_without_the_right_to_the_role_it_says_so_and_goes_on(url: str, caplog: pytest.LogCaptureFixture) -> None:
    plain = await plain_user(url)
    async with support.opened(plain) as site:
        client = await site.admin()
        with caplog.at_level(logging.WARNING, "ostinato"):
            await support.submitted(client)
            assert len((await client.get("/v1/jobs")).json()["jobs"]) == 1
        assert "row-level security is not in use" in caplog.text
        assert (await site.home.engine.db.settings())["row_security"] == "off"


async def test_doctor_knows_that_it_is_in_use(url: str) -> None:
    database = connect.connect(url)
    await database.open(migrate=True)
    assert (await database.settings())["row_security"] == "on"
    await database.close()


async def plain_user(url: str) -> str:
    """A URL of the same database, as somebody who may not make roles and owns what is in it."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "DO $$ BEGIN CREATE ROLE ostinato_plain LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION ostinato_plain")
    await connection.close()
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"ostinato_plain@{parts.netloc.rpartition('@')[2]}"))
