"""What a playbook looks like before it runs: who waits for whom, in which levels, and what cannot go well.

Levels are only a view: an agent starts as soon as its own parents are done.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ostinato import errors
from ostinato.core import documents, graph
from ostinato.playbooks.definition import Agent, Graph, Playbook, refuse_circle


class Plan(msgspec.Struct, frozen=True, rename="camel"):
    levels: list[list[str]]
    critical_path: list[str]
    """The chain of agents that may take longest if every first attempt succeeds."""
    warnings: list[str]
    parents: dict[str, list[str]]
    """Of each agent, in the order of the playbook."""


def plan(playbook: Playbook, edges: Graph | None, agents: Mapping[str, Agent]) -> Plan:
    """Unite the edges of the graph with the parents that the agents name. `agents` are all that there are."""
    chosen = _chosen(playbook, agents)
    _check_synthesizer(playbook, agents)
    parents = _parents(chosen, edges)
    refuse_circle(parents, "agents")
    tasks = [
        graph.TaskSpec(name, name, depends_on=parents[name], timeout=timeout_of(playbook, agent))
        for name, agent in chosen.items()
    ]
    view = graph.plan(graph.JobSpec(tasks))
    warnings = [*_too_slow(playbook, chosen, view.critical_path), *_clashing(playbook, chosen)]
    return Plan(view.levels, view.critical_path, warnings, parents)


def timeout_of(playbook: Playbook, agent: Agent) -> float:
    """How many seconds one attempt has."""
    return playbook.stages.agent.timeout if agent.timeout is None else agent.timeout


# --- who, and after whom -----------------------------------------------------------------------------------------


def _chosen(playbook: Playbook, agents: Mapping[str, Agent]) -> dict[str, Agent]:
    for index, name in enumerate(playbook.agents):
        if name not in agents:
            raise errors.UnknownAgent(
                f"agents[{index}] is {name!r}, and there is no such agent: {documents.nearest(name, agents)}"
                "save it first, or take it out",
                field=f"agents[{index}]",
                agent=name,
            )
    return {name: agents[name] for name in playbook.agents}


def _check_synthesizer(playbook: Playbook, agents: Mapping[str, Agent]) -> None:
    name = playbook.synthesis.agent
    if name is None:
        return
    fit = [other for other, agent in agents.items() if agent.kind == "llm"]
    if name not in agents:
        raise errors.UnknownAgent(
            f"synthesis.agent is {name!r}, and there is no such agent: {documents.nearest(name, fit)}save it first",
            field="synthesis.agent",
            agent=name,
        )
    if name not in fit:
        raise errors.InvalidInput(
            f"synthesis.agent {name!r} is of kind {agents[name].kind}: only one of kind llm can put answers together",
            field="synthesis.agent",
        )


def _parents(chosen: Mapping[str, Agent], edges: Graph | None) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {name: set() for name in chosen}
    if edges is not None:
        for index, edge in enumerate(edges.edges):
            for side, name in (("from", edge.parent), ("to", edge.child)):
                if name not in chosen:
                    raise _not_chosen(f"edges[{index}].{side}", f"of graph {edges.name!r} is", name, chosen)
            found[edge.child].add(edge.parent)
    for name, agent in chosen.items():
        for index, parent in enumerate(agent.dependency_parents):
            if parent not in chosen:
                raise _not_chosen(f"dependencyParents[{index}]", f"of agent {name!r} is", parent, chosen)
            found[name].add(parent)
    place = {name: index for index, name in enumerate(chosen)}
    return {name: sorted(before, key=place.__getitem__) for name, before in found.items()}


def _not_chosen(field: str, whose: str, name: str, chosen: Mapping[str, Agent]) -> errors.UnknownAgent:
    return errors.UnknownAgent(
        f"{field} {whose} {name!r}, which the playbook does not have: {documents.nearest(name, chosen)}"
        "add it to the agents of the playbook, or take it out here",
        field=field,
        agent=name,
    )


# --- what cannot go well -----------------------------------------------------------------------------------------


def _too_slow(playbook: Playbook, chosen: Mapping[str, Agent], path: list[str]) -> list[str]:
    """An agent, or a chain of agents, that cannot use all its attempts before the deadline."""
    worst = {name: graph.worst_case(agent.retry, timeout_of(playbook, agent)) for name, agent in chosen.items()}
    limit = f"more than the deadline of {playbook.deadline:,.0f} s"
    found = [
        f"agent {name!r} may need {seconds:,.0f} s with all its attempts, {limit}"
        for name, seconds in worst.items()
        if seconds > playbook.deadline
    ]
    whole = sum(worst[name] for name in path)
    if len(path) > 1 and whole > playbook.deadline:
        shown = " → ".join(path) if len(path) <= 6 else " → ".join([*path[:3], "…", *path[-2:]])
        found.append(f"the agents {shown} may need {whole:,.0f} s with all their attempts, {limit}")
    return found


def _clashing(playbook: Playbook, chosen: Mapping[str, Agent]) -> list[str]:
    """Fields that more than one agent answers, where that ends in an error as soon as they differ."""
    if playbook.synthesis.conflict != "error":
        return []
    givers: dict[str, list[str]] = {}
    for name, agent in chosen.items():
        for output in agent.outputs:
            givers.setdefault(output, []).append(name)
    return [
        f"{output!r} is answered by {documents.listed(names)}: when they differ, synthesis fails (conflict: error)"
        for output, names in givers.items()
        if len(names) > 1
    ]
