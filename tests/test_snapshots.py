"""OpenAPI, GraphQL, both schemas, `--help` and the events are those that a review has read."""

from __future__ import annotations

import json

import pytest

from devtools import postgres as pg
from devtools import snapshots


@pytest.mark.parametrize("name", sorted(snapshots.SNAPSHOTS))
def test_what_is_seen_of_a_version_is_in_a_file(name: str, request: pytest.FixtureRequest) -> None:
    made = _make(name, request)
    assert made == (snapshots.FOLDER / name).read_text(), f"tests/snapshots/{name}: {snapshots.HOW}"


def test_the_openapi_snapshot_is_json() -> None:
    assert json.loads(snapshots.openapi())["openapi"].startswith("3.1")


def _make(name: str, request: pytest.FixtureRequest) -> str:
    if name == "postgres.sql":
        server: pg.PostgresServer | pg.ForeignServer = request.getfixturevalue("postgres")
        return snapshots.postgres_schema(server) + "\n"
    return snapshots.SNAPSHOTS[name]() + "\n"
