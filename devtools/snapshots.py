"""What users and databases see of a version, as text: `python -m devtools.snapshots` writes it to tests/snapshots.

A test compares, so that a change of one of these is a change of a file that a review reads.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
from fastapi import FastAPI
from graphql import print_schema
from typer.main import get_command

from devtools import postgres as pg
from ostinato.api import routing, schemas, server
from ostinato.api.graphql import schema
from ostinato.cli.main import root
from ostinato.core import events
from ostinato.store import connect, generated

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "snapshots"
HOW = "if this change is meant, run `make snapshots` and look at the difference"


def openapi() -> str:
    """The OpenAPI document, without the version of the package."""
    app = FastAPI(openapi_url=None)
    table = routing.Table()
    for group in server.ROUTES:
        table.install(app, group, public=server.PUBLIC_ROUTES)
    document: dict[str, Any] = schemas.document(app)
    document["info"].pop("version")
    return "".join(_lines(document))


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    """JSON with each value on one line that fits on one."""
    short = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(short) + len(indent) <= 120 or not isinstance(value, dict | list):
        yield short
        return
    within = f"{indent} "
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    yield opening
    items = sorted(value.items()) if isinstance(value, dict) else [(None, item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportUnknownMemberType]
    for number, (key, item) in enumerate(items):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        yield ("," if number else "") + f"\n{within}" + ("" if key is None else f"{json.dumps(key)}: ")
        yield from _lines(item, within)
    yield f"\n{indent}{closing}"


def graphql() -> str:
    return print_schema(schema.build())


def event_types() -> str:
    return "\n".join(sorted(events.TYPES))


def command_line() -> str:
    """`--help` of every command, as wide as it wants to be."""
    return "\n\n".join(_help(get_command(root), "ostinato", None))


def _help(command: Any, name: str, parent: Any) -> Iterator[str]:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True, max_content_width=100)
    context.terminal_width = 100
    yield f"$ {context.command_path} --help\n{command.get_help(context)}"
    if hasattr(command, "list_commands"):
        for below in command.list_commands(context):
            yield from _help(command.get_command(context, below), below, context)


def sqlite_schema() -> str:
    with tempfile.TemporaryDirectory() as folder:
        _migrate(f"sqlite:///{folder}/test.db")
        connection = apsw.Connection(f"{folder}/test.db")
        rows: Any = connection.execute(  # pyright: ignore[reportUnknownMemberType] - apsw's own types have gaps
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name"
        )
        text = "\n\n".join(f"{sql.strip()};" for (sql,) in rows)
        connection.close()
    return text


def postgres_schema(server: pg.PostgresServer | pg.ForeignServer | None = None) -> str:
    """As `pg_dump` writes it: tables, indexes, triggers, functions, policies and rights."""
    if server is None:
        with pg.PostgresServer(fsync=False) as own:
            return postgres_schema(own)
    url = server.create_database()
    try:
        _migrate(url)
        dump = subprocess.run(
            [pg.program("pg_dump"), "--schema-only", "--no-owner", url], check=True, capture_output=True, text=True
        ).stdout
    finally:
        pg.drop_database(url, server.url())
    # Comments, settings of the session and what depends on the version of pg_dump say nothing about the schema.
    lines = [line for line in dump.splitlines() if not re.match(r"--|SET |SELECT pg_catalog|\\(un)?restrict", line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _migrate(url: str) -> None:
    async def work() -> None:
        database = connect.connect(url)
        await database.open(migrate=True)
        await database.close()

    pg.run_in_thread(work())


def generated_sql(dialect: str) -> str:
    return "\n\n".join(f"-- name: {name}\n{sql};" for name, sql in generated.blocks(dialect).items())


SNAPSHOTS: dict[str, Callable[[], str]] = {
    "openapi.json": openapi,
    "schema.graphql": graphql,
    "events.txt": event_types,
    "help.txt": command_line,
    "sqlite.sql": sqlite_schema,
    "postgres.sql": postgres_schema,
    "generated-sqlite.sql": lambda: generated_sql("sqlite"),
    "generated-postgres.sql": lambda: generated_sql("postgres"),
}


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, make in SNAPSHOTS.items():
        (FOLDER / name).write_text(make() + "\n")
        print(f"tests/snapshots/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
