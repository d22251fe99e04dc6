"""The triggers by which the database refuses what must not happen, whoever writes: which there should be, and are.

What there should be is what the migrations make, so it is written down once. A body is compared without its spaces and
quotes, which databases write in their own way.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from ostinato.store import database, migrate
from ostinato.store.database import fetch

_MADE_OR_DROPPED = re.compile(
    r"^(?P<drop>DROP TRIGGER (?:IF EXISTS )?(?P<dropped>\w+))"
    r"|^CREATE TRIGGER (?P<trigger>\w+)\s(?:[^;]*?^BEGIN$.*?^END;$|[^;]*;$)"
    r"|^CREATE (?:OR REPLACE )?FUNCTION (?P<function>\w+)\(\) RETURNS trigger\b.*?AS \$\$(?P<body>.*?)\$\$",
    re.MULTILINE | re.DOTALL,
)
"""In SQLite the text of a trigger goes from BEGIN to END, in PostgreSQL it has neither."""
_CALLED = re.compile(r"EXECUTE FUNCTION (\w+)\(")


@functools.cache
def expected(dialect: str) -> dict[str, str]:
    """What each trigger does, by name: its text in SQLite, and in PostgreSQL that of the function that it calls."""
    triggers: dict[str, str] = {}
    bodies: dict[str, str] = {}
    for migration in migrate.migrations(dialect):
        for found in _MADE_OR_DROPPED.finditer(migration.sql):
            if found["dropped"]:
                triggers.pop(found["dropped"], None)
            elif found["trigger"]:
                triggers[found["trigger"]] = found[0]
            else:
                bodies[found["function"]] = found["body"]
    return {name: _plain(_body(text, bodies)) for name, text in triggers.items()}


def _body(text: str, bodies: dict[str, str]) -> str:
    called = _CALLED.search(text)
    return text if called is None else bodies[called[1]]


def _plain(text: str) -> str:
    return re.sub(r"[\s\"]+|;$", "", text)


def problems(dialect: str) -> database.Script[list[str]]:
    """A sentence for each trigger that is missing, turned off, or not as it was made."""
    rows = yield fetch("list_triggers")
    there = {name: (bool(on), _plain(text)) for name, on, text in rows}
    return list(_compared(expected(dialect), there))


def _compared(wanted: dict[str, str], there: dict[str, tuple[bool, str]]) -> Iterator[str]:
    for name, text in sorted(wanted.items()):
        if name not in there:
            yield f"the trigger {name} is missing"
        elif not there[name][0]:
            yield f"the trigger {name} is turned off"
        elif there[name][1] != text:
            yield f"the trigger {name} is not the one that Ostinato made"
