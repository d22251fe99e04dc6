"""Connections to PostgreSQL: to which of several servers, how long that is tried, and whether they are as asked for.

The driver gives all servers of a URL one time limit together, which the first one uses up if it is silent. Here each
has its own, and the one that answered last is asked first.
"""

from __future__ import annotations

import contextlib
import re
import socket
import urllib.parse
from collections.abc import Mapping
from typing import Any

import asyncpg
from asyncpg.connect_utils import SessionAttribute
from asyncpg.exceptions import ClientConfigurationError, TargetServerAttributeNotMatched

from ostinato import errors

CONNECT_SECONDS = 10.0
HOST_SECONDS = 2.0
"""Of several servers, each gets so long: another one may be the primary by now."""
KEEP_ALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}
"""A machine that is gone is noticed after about 10 seconds, also by a connection that only listens."""
PROOF = "enable_seqscan"
"""A setting that nobody has by accident as we ask for it."""
_ELSEWHERE = (OSError, TimeoutError, asyncpg.CannotConnectNowError, TargetServerAttributeNotMatched)
"""Another server may do."""
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::(.*))?")


class Hosts:
    def __init__(self, url: str) -> None:
        self._url = url
        self._places: list[dict[str, Any]] | None = None
        """Each as the driver takes it; the one that answered last comes first."""

    async def connect(self, settings: Mapping[str, str], statement_seconds: float) -> asyncpg.Connection[Any]:
        """A connection to the server that can be written to. It has the settings and the role, or is refused."""
        if self._places is None:
            self._places = places(self._url)
        seconds = CONNECT_SECONDS if len(self._places) == 1 else HOST_SECONDS
        failures: list[Exception] = []
        for place in list(self._places):
            try:
                connection = await self._try(place, settings, seconds, statement_seconds)
            except _ELSEWHERE as error:
                failures.append(error)
                continue
            self._places.remove(place)
            self._places.insert(0, place)
            return connection
        silent = [failure for failure in failures if not isinstance(failure, TargetServerAttributeNotMatched)]
        raise (silent or failures)[0]

    async def _try(
        self, place: dict[str, Any], settings: Mapping[str, str], seconds: float, statement_seconds: float
    ) -> asyncpg.Connection[Any]:
        try:
            connection: asyncpg.Connection[Any] = await asyncpg.connect(
                self._url,
                **place,
                server_settings=dict(settings),
                timeout=seconds,
                command_timeout=statement_seconds,
                target_session_attrs=SessionAttribute.read_write,
            )
        except (ClientConfigurationError, asyncpg.UndefinedObjectError) as error:
            raise errors.InvalidUrl(f"a parameter in the URL is not valid: {error}") from None
        except UnicodeError as error:
            raise errors.InvalidUrl(f"the host in the URL is not valid: {error}") from None
        except asyncpg.ProtocolViolationError as error:
            raise errors.DatabaseForbidden(_dropped(f"refuses what a connection asks for ({error})")) from None
        try:
            _keep_alive(connection)
            await _check(connection, settings, seconds)
        except BaseException:
            connection.terminate()
            raise
        return connection


async def _check(connection: asyncpg.Connection[Any], settings: Mapping[str, str], seconds: float) -> None:
    """A pooler may have kept to itself what was asked for, and row-level security would be off without a word."""
    [(user, found)] = await connection.fetch("SELECT current_user, current_setting($1)", PROOF, timeout=seconds)
    role = settings.get("role")
    if role is not None and user != role:
        raise errors.DatabaseForbidden(_dropped(f"gives a connection the role {user} instead of {role}"))
    if found != settings[PROOF]:
        raise errors.DatabaseForbidden(_dropped(f"drops the settings of a connection ({PROOF} is {found})"))


def _dropped(what: str) -> str:
    return (
        f"a pooler between Ostinato and PostgreSQL {what}, so tenants would not be kept apart: give the address of "
        "PostgreSQL itself in the URL (PgBouncer does this with ignore_startup_parameters)"
    )


def _keep_alive(connection: asyncpg.Connection[Any]) -> None:
    found: Any = connection._transport.get_extra_info("socket")  # pyright: ignore
    if found is None or found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        with contextlib.suppress(OSError, AttributeError):  # not every system knows every one of them
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def places(url: str) -> list[dict[str, Any]]:
    """The servers that a URL names. A single one is left to the driver, as it stands there or in the environment."""
    parts = urllib.parse.urlsplit(url)
    query = urllib.parse.parse_qs(parts.query)
    netloc = parts.netloc.partition("@")[2] if "@" in parts.netloc else parts.netloc
    named = netloc or ",".join(query.get("host", [])[-1:])
    if "," not in named:
        return [{}]
    ports = query.get("port", [""])[-1].split(",")
    found: list[dict[str, Any]] = []
    for number, name in enumerate(named.split(",")):
        match = _HOST.fullmatch(name)
        host, port = match.groups() if match else (name, None)
        port = port or (ports[number] if len(ports) > number else ports[0])
        place: dict[str, Any] = {"host": urllib.parse.unquote(host.strip("[]"))}
        found.append(place | ({"port": int(urllib.parse.unquote(port))} if port else {}))
    return found
