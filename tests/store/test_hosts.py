"""What stands between a program and its PostgreSQL: poolers, dead lines, several servers."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import asyncpg
import pytest

from devtools.proxy import Proxy
from ostinato import errors
from ostinato.store import connect, hosts, postgres
from tests.engine import support
from tests.engine.support import job, task

SETTINGS = (*postgres.SETTINGS, "role")


@pytest.mark.parametrize("dropped", [SETTINGS, ("enable_seqscan",)])
async def test_a_pooler_that_drops_settings_is_refused(postgres_url: str, dropped: tuple[str, ...]) -> None:
    """PgBouncer does so, in session mode, with what `ignore_startup_parameters` names."""
    async with Proxy(postgres_url, dropped=dropped) as pooler:
        for migrate in (True, False):
            with pytest.raises(errors.DatabaseForbidden, match=r"a pooler .* ignore_startup_parameters"):
                await connect.connect(pooler.url).open(migrate=migrate)


async def test_a_pooler_that_drops_the_role_shows_no_tenant_anything(postgres_url: str) -> None:
    """The wall is looked at on each connection that is made, and `doctor` asks the same one."""
    async with Proxy(postgres_url, dropped=["role"]) as pooler, support.opened(pooler.url, work=False) as app:
        made = await app.submit(job(task("a")))
        seen = app.engine.store.seen_by("default")
        for _ in range(2):
            with pytest.raises(errors.DatabaseForbidden, match=r"gives a connection the role .* instead of"):
                await seen.job("default", made.job_id)
        with pytest.raises(errors.DatabaseForbidden, match="ostinato_api"):
            await app.engine.db.settings()


async def test_a_pooler_that_begins_to_drop_settings_is_refused_when_it_is_connected_to_again(
    postgres_url: str,
) -> None:
    pooler = Proxy(postgres_url)
    async with pooler, support.opened(pooler.url, work=False) as app:
        await app.submit(job(task("a")))
        assert (await app.engine.db.settings())["row_security"] == "on"
        pooler._dropped = SETTINGS  # pyright: ignore[reportPrivateUsage]
        connection = await asyncpg.connect(postgres_url)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await connection.close()
        with pytest.raises(errors.DatabaseError):
            await app.submit(job(task("b")))
        with pytest.raises(errors.DatabaseForbidden, match="pooler"):
            await app.submit(job(task("c")))
        pooler._dropped = ()  # pyright: ignore[reportPrivateUsage]
        await app.submit(job(task("d")))


PLACES: list[tuple[str, list[dict[str, object]]]] = [
    ("postgresql://u:p@h1:1,h2:2/x", [{"host": "h1", "port": 1}, {"host": "h2", "port": 2}]),
    ("postgresql://h1,h2:2/x", [{"host": "h1"}, {"host": "h2", "port": 2}]),
    ("postgresql://[::1]:1,[::2]/x", [{"host": "::1", "port": 1}, {"host": "::2"}]),
    ("postgresql:///x?host=a,/tmp&port=1,2", [{"host": "a", "port": 1}, {"host": "/tmp", "port": 2}]),
    ("postgresql:///x?host=a,b&port=7", [{"host": "a", "port": 7}, {"host": "b", "port": 7}]),
    ("postgresql://u@h1:1/x", [{}]),
    ("postgresql:///x", [{}]),
]


@pytest.mark.parametrize(("url", "found"), PLACES)
def test_the_servers_of_a_url(url: str, found: list[dict[str, object]]) -> None:
    assert hosts.places(url) == found


async def test_each_server_of_a_url_has_its_own_time(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F-2: one that is silent does not use up the time of the next one, which is asked first from then on."""
    monkeypatch.setattr(hosts, "HOST_SECONDS", 0.3)
    async with Proxy(postgres_url) as dead, Proxy(postgres_url) as alive:
        dead.silent = True
        parts = urlsplit(alive.url)
        url = f"postgresql://{parts.username}@127.0.0.1:{dead.port},127.0.0.1:{alive.port}{parts.path}"
        database = connect.connect(url)
        await database.open(migrate=False)
        await database.settings()
        assert dead.connections == 1
        assert alive.connections > 2
        await database.close()


async def test_a_connection_notices_by_itself_that_the_other_machine_is_gone(postgres_url: str) -> None:
    """F-2: one that only listens would never hear of it."""
    async with Proxy(postgres_url) as proxy:
        connection = await hosts.Hosts(proxy.url).connect(postgres.SETTINGS, 10)
        found = connection._transport.get_extra_info("socket")  # pyright: ignore
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = {name: found.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in hosts.KEEP_ALIVE}
        assert options == hosts.KEEP_ALIVE
        assert options["TCP_KEEPIDLE"] + options["TCP_KEEPINTVL"] * options["TCP_KEEPCNT"] <= 15
        await connection.close()
