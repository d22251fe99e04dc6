"""PostgreSQL roles that may not do all that Ostinato does: told what to grant, and nothing is changed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

import asyncpg
import pytest

from devtools import postgres as pg
from ostinato import errors
from ostinato.store import connect
from tests.engine import support
from tests.engine.support import job, task

TABLES = "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'"


@pytest.fixture
def role(postgres: pg.PostgresServer | pg.ForeignServer) -> Iterator[str]:
    name = f"app_{uuid.uuid4().hex[:12]}"
    pg.run_in_thread(execute(postgres.url(), f"CREATE ROLE {name} LOGIN PASSWORD 'secret'"))
    yield name
    pg.run_in_thread(execute(postgres.url(), f"DROP ROLE {name}"))


@pytest.fixture
def without_schema(role: str, empty_postgres_url: str) -> Iterator[str]:
    """An empty database, as that role."""
    yield as_role(empty_postgres_url, role)
    pg.run_in_thread(execute(empty_postgres_url, f"DROP OWNED BY {role}"))


@pytest.fixture
def with_schema(role: str, postgres_url: str) -> Iterator[str]:
    """A database whose tables are somebody else's."""
    yield as_role(postgres_url, role)
    pg.run_in_thread(execute(postgres_url, f"DROP OWNED BY {role}"))


async def execute(url: str, statement: str) -> None:
    link = await asyncpg.connect(url)
    await link.execute(statement)
    await link.close()


def as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{role}:secret@{parts.netloc.rpartition('@')[2]}").geturl()


async def opened(url: str, *, migrate: bool) -> None:
    database = connect.connect(url)
    try:
        await database.open(migrate=migrate)
    finally:
        await database.close()


async def test_who_may_not_create_the_schema_is_told_what_to_grant(
    empty_postgres_url: str, without_schema: str, role: str
) -> None:
    with pytest.raises(errors.DatabaseForbidden, match=f"GRANT USAGE, CREATE ON SCHEMA public TO {role}"):
        await opened(without_schema, migrate=True)
    assert await support.sql(empty_postgres_url, TABLES) == []
    await execute(empty_postgres_url, f"GRANT USAGE, CREATE ON SCHEMA public TO {role}")
    await opened(without_schema, migrate=True)


async def test_who_may_not_even_look_into_the_schema_is_told_the_same(
    empty_postgres_url: str, without_schema: str, role: str
) -> None:
    await execute(empty_postgres_url, "REVOKE ALL ON SCHEMA public FROM public")
    with pytest.raises(errors.DatabaseForbidden, match=f"GRANT USAGE, CREATE ON SCHEMA public TO {role}"):
        await opened(without_schema, migrate=True)
    assert await support.sql(empty_postgres_url, TABLES) == []


async def test_who_may_not_connect_is_told_what_to_grant(
    empty_postgres_url: str, without_schema: str, role: str
) -> None:
    await execute(empty_postgres_url, f'REVOKE ALL ON DATABASE "{pg.database_name(empty_postgres_url)}" FROM public')
    with pytest.raises(errors.DatabaseForbidden, match="GRANT CONNECT ON DATABASE"):
        await opened(without_schema, migrate=True)


async def test_who_may_not_read_the_tables_is_told_what_to_grant(with_schema: str, role: str) -> None:
    for migrate in (True, False):
        with pytest.raises(errors.DatabaseForbidden, match="permission denied for table") as caught:
            await opened(with_schema, migrate=migrate)
        assert f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}" in str(caught.value)


async def test_who_may_only_read_cannot_work(postgres_url: str, with_schema: str, role: str) -> None:
    await execute(postgres_url, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    with pytest.raises(errors.DatabaseForbidden, match="GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"):
        async with support.make(with_schema):
            pass
    async with support.opened(with_schema, work=False, maintain=False, check_functions=False) as app:
        assert await app.jobs() == []
        with pytest.raises(errors.DatabaseForbidden):
            await app.submit(job(task("a")))
        with pytest.raises(errors.DatabaseForbidden):
            await app.prune()
    assert await support.count(postgres_url, "job") == await support.count(postgres_url, "worker") == 0


async def test_what_is_asked_for_is_enough_to_work(postgres_url: str, with_schema: str, role: str) -> None:
    await execute(postgres_url, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
    async with support.opened(with_schema) as app:
        assert await support.run(app, task("a")) == {"a": {}}
        await app.prune()


async def test_who_does_not_own_the_tables_cannot_upgrade_them(postgres_url: str, with_schema: str, role: str) -> None:
    await execute(postgres_url, "DELETE FROM ostinato_schema WHERE version > 1")
    await execute(postgres_url, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
    await execute(postgres_url, f"GRANT CREATE ON SCHEMA public TO {role}")
    await execute(postgres_url, "DROP TABLE api_key")
    with pytest.raises(errors.DatabaseForbidden, match="as the owner of its tables"):
        await opened(with_schema, migrate=True)
    assert await support.sql(postgres_url, "SELECT max(version) FROM ostinato_schema") == [(1,)]


@pytest.mark.parametrize(
    "theirs",
    [
        "TABLE job (x int)",
        "TABLE gate_key (x int)",
        "VIEW task AS SELECT 1",
        "TYPE job AS (x int)",
        "FUNCTION ostinato_refuse() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "TABLE ostinato_schema (x int)",
        "TABLE ostinato_schema (version text)",
    ],
)
async def test_a_database_of_another_program_is_refused_and_left_alone(empty_postgres_url: str, theirs: str) -> None:
    await execute(empty_postgres_url, f"CREATE {theirs}")
    before = await support.sql(empty_postgres_url, TABLES)
    with pytest.raises(errors.DatabaseError, match="another program: choose an empty one"):
        await opened(empty_postgres_url, migrate=True)
    assert await support.sql(empty_postgres_url, TABLES) == before
