"""One PostgreSQL database for all engine tests of a process, emptied before each: far faster than new ones."""

import asyncio
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import asyncpg
import pytest

from devtools import postgres as pg


@pytest.fixture(scope="session")
def shared_postgres_url(postgres: pg.PostgresServer | pg.ForeignServer) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    pg.drop_database(url, postgres.url())


@pytest.fixture
def postgres_url(postgres: pg.PostgresServer | pg.ForeignServer, shared_postgres_url: str) -> str:
    """An empty PostgreSQL database, with nothing left of the test before, its connections and settings included."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(_empty(postgres.url(), shared_postgres_url))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)  # the test's own event loop may be set on this one
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return shared_postgres_url


async def _empty(server_url: str, url: str) -> None:
    name = urlsplit(url).path[1:]
    server = await asyncpg.connect(server_url)
    await server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
    await server.execute(f'ALTER DATABASE "{name}" RESET ALL')
    await server.close()
    database = await asyncpg.connect(url)
    await database.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await database.close()
