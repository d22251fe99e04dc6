"""A fresh, fully durable database for every measurement."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import asyncpg

from devtools.postgres import PostgresServer, create_database, drop_database

BACKENDS = ("sqlite", "postgres")
FreshDatabase = Callable[[], AbstractContextManager[str]]


@contextmanager
def databases(backend: str, scratch: Path) -> Iterator[FreshDatabase]:
    """What makes a database of this backend: a context manager with its URL, which removes it afterwards."""
    with ExitStack() as stack:
        if backend == "sqlite":
            yield lambda: _sqlite(scratch)
            return
        server = os.environ.get("OSTINATO_TEST_POSTGRES") or stack.enter_context(PostgresServer()).url()
        asyncio.run(_require_durability(server))
        yield lambda: _postgres(server)


@contextmanager
def _sqlite(scratch: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=scratch) as folder:
        yield f"sqlite:///{Path(folder).resolve() / 'bench.db'}"


@contextmanager
def _postgres(server: str) -> Iterator[str]:
    url = create_database(server)
    try:
        yield url
    finally:
        drop_database(url, server)


async def _require_durability(server: str) -> None:
    connection = await asyncpg.connect(server)
    try:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            if (value := await connection.fetchval(f"SHOW {setting}")) != "on":
                raise SystemExit(f"bench: the PostgreSQL server has {setting} = {value}; it must be on to measure")
    finally:
        await connection.close()
