"""Which commands there are, and where: each is loaded when it is asked for, so that none waits for the others."""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.main import get_group

from ostinato.cli.parameters import Group

MODULES = {
    "run": "run",
    "worker": "worker",
    "server": "server",
    "dev": "dev",
    "ingest": "playing",
    "query": "playing",
    "signal": "signals",
    "workers": "fleet",
    "functions": "fleet",
    "retention": "retention",
    "prune": "fleet",
    "usage": "usage",
    "budgets": "usage",
    "audit": "audit",
    "doctor": "doctor",
    "jobs": "jobs",
    "tasks": "tasks",
    "dead-letters": "dead_letters",
    "approvals": "approvals",
    "results": "results",
    "executions": "executions",
    "index": "index",
    "keys": "keys",
    "events": "events",
    "gates": "gates",
    "rules": "rules",
    "agents": "playbooks",
    "graphs": "playbooks",
    "playbooks": "playbooks",
    "pipelines": "pipelines",
    "items": "items",
    "encryption": "encryption",
}


class Commands(Group):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # For a name that nobody has, all of them: one of theirs may have been meant.
        for name in [cmd_name] if cmd_name in MODULES else MODULES:
            if name not in self.commands:
                self.commands.update(_load(MODULES[name]))
        return self.commands.get(cmd_name)


def _load(module: str) -> dict[str, Any]:
    part = typer.Typer(rich_markup_mode=None)
    importlib.import_module(f"ostinato.cli.{module}").register(part)
    return dict(get_group(part).commands)
