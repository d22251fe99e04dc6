"""The job of a playbook: a task for each agent, under its name, and the stages that make one answer of theirs.

Agents are optional tasks: a failed one is a mark in the answer, not the end of the job. The stages are not: a job whose
answer could not be put together or saved has failed.

All tasks have the same input, which the job therefore stores once if it is large. What is an agent's own in it goes by
its name, and definitions by the versions that they had when the job began. The data, and the templates that it is put
into, are in it as texts of JSON: so nothing in them is taken for a reference to a secret, wherever the data comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from ostinato.core import codec, graph, ledger
from ostinato.core.retry import Retry
from ostinato.playbooks import statuses
from ostinato.playbooks.definition import Agent, Graph, Playbook, Stages
from ostinato.playbooks.plan import Plan, timeout_of

JOB = ledger.PLAYBOOK_JOB
AGENT = "ostinato.agent."
STAGE = "ostinato.playbook."
LOAD, LOAD_GRAPH, PLAN = "$load", "$load-graph", "$plan"
AGGREGATE, VALIDATE, SYNTHESIZE, SAVE = "$aggregate", "$validate", "$synthesize", "$save"
STAGE_RETRY = Retry(max_attempts=3, base_delay=2.0, multiplier=1.5)
"""Two retries, as for everything that reads and writes only what is our own."""


class Versions(NamedTuple):
    """Which versions of its definitions a job began with, and keeps."""

    playbook: int
    agents: Mapping[str, int]
    """Of the synthesizing one too."""
    graph: int | None = None


class Member(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An agent in one job."""

    version: int
    parents: list[str] = []
    template: str | None = None
    """Of its input; JSON in a text."""
    agent: str | None = None
    """Its name, if its task has another."""


class Pins(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a job is a job of."""

    playbook: str
    version: int
    type: Literal["ingestion", "query"]
    domain_id: str = msgspec.field(name="domain_id")
    agents: dict[str, Member]
    graph: str | None = None
    graph_version: int | None = None
    synthesizer: str | None = None
    synthesizer_version: int | None = None
    reviews: list[str] = []
    """Of a pipeline, if it is a step of one: people may have changed the data there."""

    @property
    def versions(self) -> Versions:
        agents = {name: member.version for name, member in self.agents.items()}
        if self.synthesizer is not None and self.synthesizer_version is not None:
            agents[self.synthesizer] = self.synthesizer_version
        return Versions(self.version, agents, self.graph_version)


class Given(msgspec.Struct, frozen=True):
    """The input of every task of the job, as it is stored."""

    pins: Pins = msgspec.field(name="$playbook")
    data: str = msgspec.field(name="raw_data")

    @property
    def raw_data(self) -> Any:
        return codec.decode(self.data)

    def template(self, agent: str) -> dict[str, Any] | None:
        """How the input of an agent is made, if it says."""
        text = self.pins.agents[agent].template
        return None if text is None else codec.decode(text)


class Entries(NamedTuple):
    """What is to be entered into the job. `inputs` are those of the tasks, in order, encoded."""

    tasks: list[graph.TaskSpec]
    inputs: list[bytes]
    max_concurrency: int
    """So many of the tasks may run at the same time. (Stages run after the agents, one by one, and never reach it.)"""


def entries(
    playbook: Playbook,
    edges: Graph | None,
    plan: Plan,
    agents: Mapping[str, Agent],
    versions: Versions,
    raw_data: Any,
    *,
    limit: int | None = None,
) -> Entries:
    """The whole job. `limit` is how many bytes the data may have."""
    tasks = [*agent_tasks(playbook, plan, agents), *stage_tasks(playbook, plan, agents)]
    given = Given(_pins(playbook, edges, plan, agents, versions), codec.encode(raw_data, "data", limit).decode())
    return Entries(tasks, [codec.encode_own(given)] * len(tasks), playbook.max_concurrency)


def given(document: Any) -> Given:
    """What `entries` wrote, as a task finds it in its input."""
    return msgspec.convert(document, Given)


def of_step(
    pipeline: str,
    version: int,
    step: str,
    agent: Agent,
    agent_version: int,
    parents: list[str],
    *,
    payload: str,
    reviews: list[str],
) -> bytes:
    """The input of a task that is an agent's though its job is no playbook's: a step of a pipeline."""
    member = Member(agent_version, parents, _as_text(agent.input), agent.name)
    pins = Pins(pipeline, version, "ingestion", pipeline, {step: member}, reviews=reviews)
    return codec.encode_own(Given(pins, payload))


def agent_tasks(playbook: Playbook, plan: Plan, agents: Mapping[str, Agent]) -> list[graph.TaskSpec]:
    """In the order of the plan. An agent that is to fail with its parent is skipped like one that is to be left out:
    it is the same to the engine, and what it counts as is said when the answers are put together."""
    return [
        graph.TaskSpec(
            name,
            function_of(agents[name]),
            depends_on=plan.parents[name],
            retry=agents[name].retry,
            timeout=timeout_of(playbook, agents[name]),
            queue=queue_of(agents[name]),
            optional=True,
            on_dependency_failure="run" if agents[name].on_parent_failure == "run" else "skip",
            statuses=graph.Statuses(
                started=statuses.invoking(name),
                completed=statuses.agent_complete(name),
                failed=statuses.agent_failed(name),
            ),
        )
        for level in plan.levels
        for name in level
    ]


def stage_tasks(playbook: Playbook, plan: Plan, agents: Mapping[str, Agent]) -> list[graph.TaskSpec]:
    """Each after the one before; the first after all agents, however they ended."""
    stages = playbook.stages
    synthesizer = None if playbook.synthesis.agent is None else agents[playbook.synthesis.agent]
    everybody = [name for level in plan.levels for name in level]
    tasks = [
        _stage(AGGREGATE, everybody, stages.aggregate.timeout, on_dependency_failure="run"),
        _stage(VALIDATE, [AGGREGATE], stages.validate.timeout, says=statuses.VALIDATING),
    ]
    if synthesizer is None:
        tasks.append(_stage(SYNTHESIZE, [AGGREGATE, VALIDATE], stages.synthesize.timeout, says=statuses.SYNTHESIZING))
    else:  # it takes as long as the agent that does it
        timeout = timeout_of(playbook, synthesizer)
        tasks.append(
            _stage(SYNTHESIZE, [AGGREGATE, VALIDATE], timeout, retry=synthesizer.retry, says=statuses.SYNTHESIZING)
        )
    if playbook.save.enabled:
        tasks.append(_stage(SAVE, [SYNTHESIZE], stages.save.timeout))
    last = tasks[-1]
    if last.statuses is not None:
        last.statuses = msgspec.structs.replace(last.statuses, completed=statuses.COMPLETE, cancelled=statuses.ERROR)
    return tasks


def first_tasks(stages: Stages) -> list[graph.TaskSpec]:
    """What comes before it is known which agents there are: loading them and their graph, and the plan, which then
    enters all the others."""
    tasks = [
        _stage(LOAD, [], stages.load.timeout, says=statuses.LOADING),
        _stage(LOAD_GRAPH, [LOAD], stages.load_graph.timeout),
        _stage(PLAN, [LOAD, LOAD_GRAPH], stages.plan.timeout),
    ]
    tasks[-1].statuses = graph.Statuses(failed=statuses.ERROR, cancelled=statuses.ERROR)
    return tasks


def _stage(
    task_id: str,
    after: list[str],
    timeout: float,
    *,
    retry: Retry = STAGE_RETRY,
    on_dependency_failure: Literal["block", "run"] = "block",
    says: str | None = None,
) -> graph.TaskSpec:
    return graph.TaskSpec(
        task_id,
        STAGE + task_id.removeprefix("$"),
        depends_on=after,
        retry=retry,
        timeout=timeout,
        queue=graph.SYSTEM_QUEUE,
        on_dependency_failure=on_dependency_failure,
        statuses=graph.Statuses(started=says, failed=statuses.ERROR),
    )


def function_of(agent: Agent) -> str:
    return AGENT + agent.kind if agent.function is None else agent.function


def queue_of(agent: Agent) -> str | None:
    return agent.queue if agent.kind == "function" else graph.SYSTEM_QUEUE


def _pins(playbook: Playbook, edges: Graph | None, plan: Plan, agents: Mapping[str, Agent], versions: Versions) -> Pins:
    members = {
        name: Member(versions.agents[name], parents, _as_text(agents[name].input))
        for name, parents in plan.parents.items()
    }
    synthesizer = playbook.synthesis.agent
    return Pins(
        playbook.name,
        versions.playbook,
        playbook.type,
        playbook.domain,
        members,
        None if edges is None else edges.name,
        versions.graph,
        synthesizer,
        None if synthesizer is None else versions.agents[synthesizer],
    )


def _as_text(template: dict[str, Any] | None) -> str | None:
    return None if template is None else codec.encode(template, "input").decode()
