"""Forward-only, numbered migrations; the same numbers and names in both dialects."""

from __future__ import annotations

import functools
from importlib import resources
from typing import NamedTuple

from ostinato import errors


class Migration(NamedTuple):
    number: int
    name: str
    sql: str


@functools.cache
def migrations(dialect: str) -> tuple[Migration, ...]:
    folder = resources.files("ostinato.store") / "sql" / "migrations" / dialect
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple(Migration(int(f.name[:4]), f.name[5:-4], f.read_text()) for f in files)


def pending(dialect: str, version: int, *, migrate: bool) -> list[Migration]:
    """What is still to be run on a database at `version`; raises where this installation must not touch it."""
    known = migrations(dialect)
    newest = known[-1].number
    if version > newest:
        raise errors.SchemaTooNew(
            f"the database has schema {version} and this Ostinato knows {newest}: upgrade this installation",
            version=version,
        )
    todo = [m for m in known if m.number > version]
    if todo and not migrate:
        raise errors.SchemaMissing(
            f"the database has schema {version} and this Ostinato needs {newest}: open it once with migrations on "
            "(`ostinato doctor --migrate`)",
            version=version,
        )
    return todo
