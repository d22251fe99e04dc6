"""A command is there at once: it loads what it needs, and nothing that only others need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.acceptance.cli.support import Shell

DRIVERS = {"apsw", "asyncpg"}
ENGINE = {"ostinato.app", "ostinato.engine", "ostinato.store", "ostinato.views", "asyncio", "msgspec"}
SLOW = {
    "ariadne",
    "cryptography",
    "fastapi",
    "httpx2",
    "jsonatapy",
    "jsonschema_rs",
    "openai",
    "opentelemetry",
    "ostinato.api",
    "ostinato.outgoing",
    "ostinato.reactions",
    "prometheus_client",
    "pydantic",
    "rich",
    "starlette",
    "structlog",
    "uvicorn",
    "uvloop",
    "websockets",
}


PROGRAM = """
import atexit, sys
atexit.register(lambda: print("loaded:", *sys.modules, file=sys.stderr))
from ostinato.cli import main
main.main()
"""


def loaded(shell: Shell, *arguments: str, code: int = 0) -> set[str]:
    """The modules that a command had loaded when it ended."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, cwd=shell.folder, env=shell.environment, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return set(done.stderr.rpartition("loaded:")[2].split())


def test_help_and_version_are_there_at_once(sqlite_shell: Shell) -> None:
    assert sqlite_shell.run("--version").startswith("ostinato ")
    assert "dead-letters" in sqlite_shell.run("--help")


@pytest.mark.parametrize(
    ("command", "default"),
    [
        (("jobs", "ls"), "$OSTINATO_URL, else sqlite:///ostinato.db"),
        (("run",), "what the application says"),
        (("worker",), "what the application says"),
        (("jobs", "submit"), "with --app what the application says, else $OSTINATO_URL, else sqlite:///ostinato.db"),
        (("dev",), "sqlite:///ostinato.db"),
    ],
)
def test_help_says_which_database_a_command_uses(sqlite_shell: Shell, command: tuple[str, ...], default: str) -> None:
    said = " ".join(sqlite_shell.run(*command, "--help").split())
    assert f"--url URL The database. [default: {default}]" in said


@pytest.mark.parametrize(
    ("command", "code"),
    [(("--help",), 0), (("--version",), 0), (("jobs", "ls", "--help"), 0), (("job",), 2)],
    ids=["help", "version", "help of a command", "no command"],
)
def test_what_needs_no_engine_loads_none(sqlite_shell: Shell, command: tuple[str, ...], code: int) -> None:
    assert not loaded(sqlite_shell, *command, code=code) & (ENGINE | SLOW | DRIVERS)


@pytest.mark.parametrize(
    "command",
    [
        ("jobs", "ls"),
        ("jobs", "ls", "--state", "failed", "--name", "broken"),
        ("tasks", "show", "fine-1", "A"),
        ("results", "ls"),
        ("events", "fine-1"),
    ],
    ids=" ".join,
)
def test_a_command_loads_what_it_needs_and_no_more(shell: Shell, command: tuple[str, ...]) -> None:
    found = loaded(shell, *command, "--json")
    driver = "apsw" if shell.url.startswith("sqlite") else "asyncpg"
    assert found & (SLOW | DRIVERS) == {driver}
    assert f"ostinato.cli.{command[0]}" in found
    assert "ostinato.cli.gates" not in found, "other commands"
