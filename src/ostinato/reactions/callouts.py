"""Calls from the engine to the world outside: whether they are allowed here, and with which secrets."""

from __future__ import annotations

from ostinato import errors, secrets
from ostinato.engine import engine


def check_allowed(running: engine.Engine) -> None:
    if not running.options.webhooks:
        error = errors.TerminalError("calls to the outside are off: start servers and workers with --webhooks")
        error.add_note("A program of your own says EngineOptions(webhooks=True).")
        raise error


async def secret(running: engine.Engine, value: str) -> str:
    """A secret of the tenant: `secret://NAME` stands for the one that is called `TENANT.NAME` here."""
    if not value.startswith(secrets.PREFIX):
        return value
    name = value.removeprefix(secrets.PREFIX)
    reference = f"{secrets.PREFIX}{running.tenant}.{name}"
    return await secrets.resolve(reference, running.secret_source, secrets.Redactor())
