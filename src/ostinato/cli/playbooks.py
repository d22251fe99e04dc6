"""`ostinato agents`, `ostinato graphs` and `ostinato playbooks`: define them, and see the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from ostinato.cli import definitions, output
from ostinato.cli.definitions import Name
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import app as app_
    from ostinato.cli import applying

agents = typer.Typer(cls=Group, help="Define the agents that playbooks are made of.", no_args_is_help=True)
graphs = typer.Typer(cls=Group, help="Define which agents need the output of which others.", no_args_is_help=True)
group = typer.Typer(
    cls=Group, help="Define which agents answer for a domain, and see how they would run.", no_args_is_help=True
)


def register(root: typer.Typer) -> None:
    for name, part in (("agents", agents), ("graphs", graphs), ("playbooks", group)):
        root.add_typer(part, name=name)


def _agent_shelf(app: app_.Ostinato) -> applying.AnyShelf:
    return app.playbooks.agents


def _graph_shelf(app: app_.Ostinato) -> applying.AnyShelf:
    return app.playbooks.graphs


def _playbook_shelf(app: app_.Ostinato) -> applying.AnyShelf:
    return app.playbooks.shelf


def _agent_cells(agent: dict[str, Any]) -> list[str]:
    tags = ", ".join(f"{name}={value}" for name, value in agent.get("tags", {}).items())
    return [agent["kind"], ", ".join(agent["outputSchema"]["properties"]), output.short(tags)]


def _graph_cells(graph: dict[str, Any]) -> list[str]:
    return [output.short(", ".join(f"{edge['from']} → {edge['to']}" for edge in graph["edges"]))]


def _playbook_cells(playbook: dict[str, Any]) -> list[str]:
    return [playbook["domain"], playbook["type"], output.short(", ".join(playbook["agents"]))]


AGENT = definitions.Kind("agent", _agent_shelf, ["kind", "answers", "tags"], _agent_cells)
GRAPH = definitions.Kind("graph", _graph_shelf, ["edges"], _graph_cells)
PLAYBOOK = definitions.Kind(
    "playbook", _playbook_shelf, ["domain", "type", "agents"], _playbook_cells, parts=(AGENT, GRAPH)
)
for _group, _kind in ((agents, AGENT), (graphs, GRAPH), (group, PLAYBOOK)):
    definitions.register(_group, _kind)
    definitions.register_show(_group, _kind)


@command(group, "plan")
async def plan(settings: Settings, name: Name) -> None:
    """Show who would run after whom, and what cannot go well. Nothing runs."""
    from ostinato.cli import session

    async with session.opened(settings) as app, definitions.suggesting(PLAYBOOK, app):
        found = await app.playbooks.plan(name)
    if settings.json:
        output.document(found)
        return
    for number, level in enumerate(found.levels, 1):
        output.say(f"level {number}: {', '.join(level)}")
    output.say(f"critical path: {' → '.join(found.critical_path)}")
    for warning in found.warnings:
        output.say(f"warning: {warning}")
