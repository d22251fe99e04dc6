"""From a URL to a database."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable

from ostinato import encryption, errors
from ostinato.store import database

DEFAULT_URL = "sqlite:///ostinato.db"


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
        try:
            _ = urllib.parse.urlsplit(url).port
        except ValueError:
            raise errors.InvalidUrl("the port in the URL is not a number from 0 to 65535") from None
        from ostinato.store import postgres

        return postgres.PostgresDatabase(url, clock=clock)
    if separator and scheme == "sqlite" and rest == "/:memory:":
        raise errors.InvalidUrl("a database in memory does not outlast its connection: name a file, sqlite:///file.db")
    if separator and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from ostinato.store import sqlite

        return sqlite.SqliteDatabase(os.path.expanduser(rest[1:]), clock=clock)
    raise _not_understood(repr(url))


def _not_understood(url: str) -> errors.InvalidUrl:
    shown = url if "@" not in url else "'…'"
    return errors.InvalidUrl(
        f"the URL {shown} is not understood: use sqlite:///file.db, sqlite:////absolute/file.db or "
        "postgresql://user@host/database"
    )


def default_url() -> str:
    return os.environ.get("OSTINATO_URL") or DEFAULT_URL
