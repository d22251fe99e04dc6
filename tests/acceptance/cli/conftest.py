"""Shells on both databases, and one on SQLite for what needs no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devtools import postgres as pg
from tests.acceptance.cli.support import BROKEN, FINE, Shell


@pytest.fixture(scope="package", params=["sqlite", "postgres"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """One database for all tests of this folder, with a job that completed and one that failed."""
    folder = tmp_path_factory.mktemp("cli")
    if request.param == "sqlite":
        server, url = None, f"sqlite:///{folder}/test.db"
    else:
        server = request.getfixturevalue("postgres")
        url = server.create_database()
    made = Shell(folder, url)
    made.write("fine.json", FINE | {"jobId": "fine-1"})
    made.write("broken.json", BROKEN | {"jobId": "broken-1"})
    made.run("run", "fine.json", "--app", "shop:app", "--url", url)
    made.run("run", "broken.json", "--app", "shop.py", "--url", url, code=1)
    yield made
    if server is not None:
        pg.drop_database(url, server.url())


@pytest.fixture(scope="package")
def sqlite_shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("bad")
    made = Shell(folder, f"sqlite:///{folder}/test.db")
    made.write("fine.json", FINE)
    made.write("explodes.py", "1 / 0")
    made.run("doctor", "--migrate")
    return made
