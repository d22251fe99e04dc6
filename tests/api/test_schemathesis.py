"""Requests that nobody would think of, made from OpenAPI itself, for every operation and by several roles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.api import schemathesis_hooks, test_server

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "ignored_auth",
    "positive_data_acceptance",
)
_PATH = os.pathsep.join(path for path in sys.path if path)
EXAMPLES = os.environ.get("OSTINATO_SCHEMATHESIS_EXAMPLES")
THOROUGH = ["--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES or "3"]
QUICK = ["--phases", "examples,fuzzing", "--max-examples", "2"]
"""For those who are refused most of what they ask for: there is not much to find behind a 403, and it is the same on
both databases, so each of them has one database."""
ROLES = {
    "admin": "admin",
    "reader": "jobs:read",
    "producer": "jobs:read,jobs:write",
    "worker": "tasks:work",
}

USERS = {"reader": "postgres", "producer": "sqlite", "worker": "postgres"}
"""On which database who asks there."""


def hire(url: str, address: str) -> None:
    """Let there be a worker with a function that jobs may name."""
    key = json.loads(test_server.run(url, "keys", "create", "--scopes", "tasks:work", "--json"))["key"]
    body = {"functions": [{"name": schemathesis_hooks.FUNCTION}]}
    answer = httpx2.post(f"{address}/v1/work/register", json=body, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 201, answer.text


def effort(role: str, url: str) -> list[str]:
    """PostgreSQL takes fewer values than SQLite, so it is there that requests are also made up which are not valid."""
    if role != "admin":
        return QUICK
    return THOROUGH if EXAMPLES or url.startswith("postgresql:") else [*THOROUGH, "--mode", "positive"]


def explore(address: str, key: str, folder: Path, effort: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/v1/openapi.json", "--no-color"]
    command += ["--checks", ",".join(CHECKS), "--header", f"Authorization: Bearer {key}"]
    command += [*effort, "--suppress-health-check", "all", "--workers", "1", "--generation-deterministic"]
    command += ["--exclude-path-regex", "/stream$"]  # a stream does not end by itself
    environment = os.environ | {"SCHEMATHESIS_HOOKS": "tests.api.schemathesis_hooks", "PYTHONPATH": _PATH}
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, timeout=400)


@pytest.mark.timeout(500)
@pytest.mark.parametrize(
    ("role", "database"),
    [("admin", "postgres"), ("admin", "sqlite"), *USERS.items()],
)
def test_nothing_breaks_the_server_or_its_description(
    role: str, database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url: str = request.getfixturevalue(f"{database}_url")
    made = test_server.run(url, "keys", "create", "--scopes", ROLES[role], "--json")
    with test_server.serving(url, "--requests-per-second", "100000") as (process, address):
        hire(url, address)
        found = explore(address, json.loads(made)["key"], tmp_path, effort(role, url))
        assert process.poll() is None, "the server is gone"
        assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]
