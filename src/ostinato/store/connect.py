"""From a URL to a database."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable

from ostinato import encryption, errors
from ostinato.store import database

DEFAULT_URL = "sqlite:///ostinato.db"
LARGEST_PORT = 65535


def connect_sealed(
    url: str, keyring: encryption.Keyring | None, *, clock: Callable[[], int] | None = None
) -> database.Database:
    """A driver for the URL that encrypts payloads, if there is a keyring."""
    plain = connect(url, clock=clock)
    if keyring is None:
        return plain
    from ostinato.store import sealed

    return sealed.SealedDatabase(plain, keyring)


def connect(url: str, *, clock: Callable[[], int] | None = None) -> database.Database:
    """A driver for the URL, not yet opened. Drivers are imported when they are needed."""
    if not isinstance(url, str) or "\0" in url:  # pyright: ignore[reportUnnecessaryIsInstance] - what people write
        raise _not_understood(repr(url))
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        _check_server(url)
        from ostinato.store import postgres

        return postgres.PostgresDatabase(url, clock=clock)
    if separator and scheme == "sqlite" and rest == "/:memory:":
        raise errors.InvalidUrl("a database in memory does not outlast its connection: name a file, sqlite:///file.db")
    if separator and scheme == "sqlite" and "?" in rest:
        raise errors.InvalidUrl("an SQLite file takes no parameters: leave out what stands behind the ? in the URL")
    if separator and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from ostinato.store import sqlite

        return sqlite.SqliteDatabase(os.path.expanduser(rest[1:]), clock=clock)
    raise _not_understood(repr(url))


def _check_server(url: str) -> None:
    """Refuse what the driver would stumble over, by the part of the URL that it stands in."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        raise errors.InvalidUrl(
            "the host in the URL is not valid: an address of IPv6 stands in brackets, as in [::1], and a bracket in a "
            "password is written %5B or %5D"
        ) from None
    if "\0" in urllib.parse.unquote(url):
        raise errors.InvalidUrl("the URL has NUL in it, written as %00: leave it out")
    try:
        given = urllib.parse.parse_qs(parts.query, strict_parsing=True) if parts.query else {}
    except ValueError:
        raise errors.InvalidUrl(
            "what stands behind the ? in the URL is not of the form name=value&name=value"
        ) from None
    ports = [port for value in given.get("port", []) for port in value.split(",")]
    try:
        valid = all(0 <= int(port) <= LARGEST_PORT for port in [*_ports_of_hosts(parts.netloc), *ports])
    except ValueError:
        valid = False
    if not valid:
        raise errors.InvalidUrl(f"the port in the URL is not a number from 0 to {LARGEST_PORT}")


def _ports_of_hosts(netloc: str) -> list[str]:
    """There may be several, each with a port or without: the driver takes the one that can be written to."""
    hosts = netloc.partition("@")[2] if "@" in netloc else netloc
    ports = [host.rpartition("]")[2].partition(":")[2] for host in hosts.split(",")]
    return [urllib.parse.unquote(port) for port in ports if port]


def _not_understood(url: str) -> errors.InvalidUrl:
    shown = url if "@" not in url else "'…'"
    return errors.InvalidUrl(
        f"the URL {shown} is not understood: use sqlite:///file.db, sqlite:////absolute/file.db or "
        "postgresql://user@host/database"
    )


def default_url() -> str:
    return os.environ.get("OSTINATO_URL") or DEFAULT_URL
