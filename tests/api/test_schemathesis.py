"""Requests that nobody would think of, made from OpenAPI itself, for every operation and by several roles."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api import test_server

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "ignored_auth",
)
ROLES = {
    "admin": "admin",
    "reader": "jobs:read",
    "producer": "jobs:read,jobs:write",
    "worker": "tasks:work",
}


def explore(address: str, key: str, folder: Path, examples: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/v1/openapi.json", "--no-color"]
    command += ["--checks", ",".join(CHECKS), "--header", f"Authorization: Bearer {key}"]
    command += ["--phases", "examples,coverage,fuzzing", "--suppress-health-check", "all", "--workers", "1"]
    command += ["--max-examples", str(examples), "--generation-deterministic"]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=400)


@pytest.mark.timeout(500)
@pytest.mark.parametrize("role", ROLES)
def test_nothing_breaks_the_server_or_its_description(url: str, role: str, tmp_path: Path) -> None:
    made = test_server.run(url, "keys", "create", "--scopes", ROLES[role], "--json")
    with test_server.serving(url, "--requests-per-second", "100000") as (process, address):
        found = explore(address, json.loads(made)["key"], tmp_path, 5)
        assert process.poll() is None, "the server is gone"
        assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]
