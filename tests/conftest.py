"""Fixtures for all tests: real databases, both of them, always.

Most tests want a database with the schema in it, and get a copy of one that was migrated once. Those about the making
of a database take `empty_url`, in which there is nothing yet.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from devtools import memory
from devtools import postgres as pg
from ostinato.store import connect

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Run in the background of a script: the programs that tests start would never hear of a Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is compiled stays compiled, for the next run and for the programs that tests start some hundred times.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# How long an example takes to be made up says how busy the machine is.
settings.register_profile("tests", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

if (folder := memory.folder()) is not None:
    os.environ["TMPDIR"] = tempfile.tempdir = folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First those that are given more time than others: at the end, one process would wait for the other's long one."""
    items.sort(key=_patience, reverse=True)


def _patience(item: pytest.Item) -> float:
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark is not None else 0.0


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


# --- databases with nothing in them ------------------------------------------------------------------------------


@pytest.fixture
def empty_postgres_url(postgres: pg.PostgresServer | pg.ForeignServer) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    pg.drop_database(url, postgres.url())


@pytest.fixture
def empty_sqlite_url(tmp_path: Path) -> str:
    """The file does not exist yet."""
    return f"sqlite:///{tmp_path}/test.db"


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest) -> str:
    """A database without a schema, once of each kind."""
    return request.getfixturevalue(f"empty_{request.param}_url")


# --- databases with the schema -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres_template(postgres: pg.PostgresServer | pg.ForeignServer) -> Iterator[str]:
    """The name of a database with the schema, to make copies of."""
    url = postgres.create_database()
    migrate(url)
    yield pg.database_name(url)
    pg.drop_database(url, postgres.url())


@pytest.fixture
def new_postgres_url(
    postgres: pg.PostgresServer | pg.ForeignServer, postgres_template: str
) -> Iterator[Callable[[], str]]:
    """Makes databases with the schema, one after the other: what was made before is gone then."""
    made: list[str] = []

    def drop() -> None:
        while made:
            pg.drop_database(made.pop(), postgres.url())

    def make() -> str:
        drop()
        made.append(postgres.create_database(template=postgres_template))
        return made[0]

    yield make
    drop()


@pytest.fixture
def postgres_url(new_postgres_url: Callable[[], str]) -> str:
    return new_postgres_url()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the schema, to make copies of."""
    made = tmp_path_factory.mktemp("template") / "test.db"
    migrate(f"sqlite:///{made}")
    return made


@pytest.fixture
def sqlite_url(empty_sqlite_url: str, sqlite_template: Path) -> str:
    shutil.copy(sqlite_template, empty_sqlite_url.removeprefix("sqlite:///"))
    return empty_sqlite_url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A database with the schema and no rows, once of each kind."""
    return request.getfixturevalue(f"{request.param}_url")


def migrate(url: str) -> None:
    async def work() -> None:
        database = connect.connect(url)
        await database.open(migrate=True)
        await database.close()

    pg.run_in_thread(work())
