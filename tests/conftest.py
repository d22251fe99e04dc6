"""Fixtures for all tests: real databases, both of them, always."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools import postgres as pg

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Run in the background of a script: the programs that tests start would never hear of a Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[pg.PostgresServer | pg.ForeignServer]:
    """The PostgreSQL of this test process: `OSTINATO_TEST_POSTGRES` if set, else one of our own."""
    url = os.environ.get("OSTINATO_TEST_POSTGRES")
    if url:
        yield pg.ForeignServer(url)
        return
    with pg.PostgresServer(fsync=False) as server:
        yield server


@pytest.fixture
def postgres_url(postgres: pg.PostgresServer | pg.ForeignServer) -> Iterator[str]:
    """A fresh PostgreSQL database."""
    url = postgres.create_database()
    yield url
    pg.drop_database(url, postgres.url())


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A fresh SQLite database; the file does not exist yet."""
    return f"sqlite:///{tmp_path}/test.db"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A fresh database, once of each kind."""
    return request.getfixturevalue(f"{request.param}_url")
