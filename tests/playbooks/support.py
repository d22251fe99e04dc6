"""Short ways to write agents and playbooks."""

from collections.abc import Iterable, Mapping
from typing import Any

from ostinato.playbooks import definition
from ostinato.playbooks import plan as plans
from ostinato.playbooks.definition import Agent, Graph, Playbook

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"value": {}}}


def schema(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in names}}


def agent(name: str, *parents: str, **fields: Any) -> Agent:
    document = {"name": name, "kind": "function", "function": f"f.{name}", "outputSchema": SCHEMA}
    return definition.read_agent(document | {"dependencyParents": list(parents)} | fields)


def agents(*made: Agent) -> dict[str, Agent]:
    return {one.name: one for one in made}


def graph(*edges: str) -> Graph:
    """`"A>B"` leads from A to B."""
    pairs = [edge.split(">") for edge in edges]
    return definition.read_graph({"name": "g", "edges": [{"from": one, "to": other} for one, other in pairs]})


def playbook(names: Iterable[str], **fields: Any) -> Playbook:
    document = {"name": "book", "domain": "incidents", "type": "ingestion", "agents": list(names)}
    return definition.read_playbook(document | fields)


def plan(known: Mapping[str, Agent], edges: Graph | None = None, **fields: Any) -> plans.Plan:
    """Of a playbook with all of these agents."""
    return plans.plan(playbook(known, **fields), edges, known)
