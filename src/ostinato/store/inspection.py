"""A quick look for damage in a database: how much was looked at in the time that there was, and what was found."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import asyncpg

MOST_NAMED = 5


class Damage(msgspec.Struct, frozen=True, rename="camel"):
    """What was found, and what `looked` at; not all of it if the time was over before."""

    found: list[str]
    looked: str
    complete: bool


class _TimeIsOver(Exception):
    pass


def of_file(path: str, seconds: float) -> Damage:
    """Look at an SQLite file table by table, each with its indexes, the small ones first. (It is opened by the SQLite
    that has it open already: another copy of the library would drop the locks of this one by closing it.)"""
    import apsw  # nobody else needs it here

    until = time.monotonic() + seconds
    found: list[str] = []
    done = 0
    tables: list[str] = []

    def go_on() -> bool:
        if time.monotonic() >= until:
            raise _TimeIsOver
        return False

    connection: Any = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_progress_handler(go_on, 1000)
        tables = _tables(connection)
        for table in tables:
            go_on()
            said = [row[0] for row in connection.execute(f"PRAGMA quick_check({_quoted(table)})")]
            found += [f"{table}: {line}" for line in said if line != "ok"]
            done += 1
    except _TimeIsOver:
        pass
    except (apsw.CorruptError, apsw.NotADBError) as error:
        found.append(f"{tables[done]}: {error}" if done < len(tables) else str(error))
    finally:
        connection.close()
    whole = done == len(tables) > 0
    looked = f"{done} of {len(tables)} tables" + ("" if whole or found else f" in {seconds:g} s")
    return Damage(found[:MOST_NAMED], looked, whole)


def _tables(connection: Any) -> list[str]:
    """Those that hold much come last: events, payloads, tasks."""
    large = ("job", "task", "edge", "step", "result", "blob", "event_page")
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return sorted(names, key=lambda name: large.index(name) if name in large else -1)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


async def of_server(connection: asyncpg.Connection[Any]) -> Damage:
    """PostgreSQL finds damaged pages itself as it reads them, where checksums are on, and counts them."""
    checksums = await connection.fetchval("SELECT current_setting('data_checksums')") == "on"
    if not checksums:
        return Damage([], "nothing: data checksums are off, so use pg_amcheck", False)
    failures = await connection.fetchval(
        "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()"
    )
    found = [f"{failures:,} pages had a wrong checksum when they were read"] if failures else []
    return Damage(found, "the checksums of all pages that were read since the statistics were reset", True)
