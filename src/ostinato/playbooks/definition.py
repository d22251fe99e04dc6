"""Agents, graphs and playbooks as their authors write them, with what the seed of it all takes for granted.

An agent is stateless: `{agent_id, raw_data, parent_output}` in, a small object out. A graph says whose output others
need, and so may the agents themselves. A playbook says which agents answer for a domain, and what comes of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from ostinato import errors
from ostinato.core import codec, documents, graph
from ostinato.core.retry import LONGEST, Retry
from ostinato.rules import targets, templates

RETRY = Retry(max_attempts=4, base_delay=2.0, multiplier=2.0)
"""Three retries, after 2, 4 and 8 seconds."""
TIMEOUT = 300.0
DEADLINE = 900.0
CONCURRENCY = 10
EVIDENCE = "evidence"
"""What an agent's answer may have beside its output."""

MOST_AGENTS = 1000
MOST_EDGES = 10_000
MOST_PARENTS = 100
MOST_OUTPUTS = 5
MOST_CONCURRENT = 1000
MOST_ATTEMPTS = 100
LONGEST_DESCRIPTION = 1024
LONGEST_PROMPT = 100_000
LONGEST_EXPRESSION = 10_000
LARGEST_SCHEMA = 32 * 1024
LARGEST_INPUT = 32 * 1024
LARGEST_PARAMETERS = 4 * 1024
LONGEST_DEADLINE = 366 * 86_400.0

Kind = Literal["function", "http", "llm"]
OnParentFailure = Literal["skip", "run", "fail"]
Conflict = Literal["first", "last", "error", "list"]

T = TypeVar("T", bound=msgspec.Struct)


class Price(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a million tokens cost."""

    input: float
    output: float


class Llm(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A model behind an OpenAI-compatible address. Without a key, it is called without one."""

    model: str
    system: str
    base_url: str | None = None
    api_key: str | None = None
    temperature: float | None = None
    price: Price | None = None
    evidence: bool = True
    """Whether to ask for quotations that support the answer."""
    parameters: dict[str, Any] = {}
    """Whatever else the endpoint knows, such as `max_tokens`."""


class Budget(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """What one call of an agent may use up, with all its attempts."""

    tokens: int | None = None
    cost: float | None = None


class Agent(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """`function`, `url` or `llm` says how it is called, and goes with the kind."""

    name: str
    kind: Kind
    output_schema: dict[str, Any]
    description: str | None = None
    function: str | None = None
    queue: str | None = None
    url: str | None = None
    secret: str | None = None
    """Signs the calls of an `http` agent."""
    llm: Llm | None = None
    input: dict[str, Any] | None = None
    """A template over `{raw_data, parent_output, parent_error, agent_id, tenant_id, domain_id}`. Without one, the agent
    gets the first two and its id."""
    timeout: float | None = None
    """Seconds for one attempt; if not given here, the playbook says."""
    retry: Retry = RETRY
    dependency_parents: list[str] = []
    on_parent_failure: OnParentFailure = "skip"
    tags: dict[str, str] = {}
    budget: Budget | None = None

    @property
    def outputs(self) -> list[str]:
        """The names of what it answers."""
        return list(self.output_schema["properties"])


class Edge(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`child` needs the output of `parent`."""

    parent: str = msgspec.field(name="from")
    child: str = msgspec.field(name="to")


class Graph(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    name: str
    edges: list[Edge]
    description: str | None = None


class Stage(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    timeout: float


class Stages(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """How many seconds each stage has. That of `agent` is for every attempt of an agent that does not say its own."""

    load: Stage = Stage(5.0)
    load_graph: Stage = Stage(5.0)
    plan: Stage = Stage(10.0)
    agent: Stage = Stage(TIMEOUT)
    aggregate: Stage = Stage(10.0)
    validate: Stage = Stage(10.0)
    synthesize: Stage = Stage(10.0)
    save: Stage = Stage(30.0)


class Synthesis(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """How the outputs of all agents become one answer."""

    how: Literal["by-agent", "flat", "jsonata", "agent"] = "by-agent"
    conflict: Conflict | None = None
    """For `flat`: what becomes of a field for which agents gave different values."""
    expression: str | None = None
    """For `jsonata`: over what the agents came to."""
    agent: str | None = None
    """For `agent`: the name of one of kind `llm`, which is given what all the others answered."""


class Save(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """What is kept of an answer, to be searched: `text` by its words and meaning, `fields` by their values. Both are
    templates over `{raw_data, synthesized, job_id, tenant_id, domain_id}`."""

    enabled: bool = True
    text: str | None = None
    fields: dict[str, Any] | str | None = None


class Playbook(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    name: str
    domain: str
    type: Literal["ingestion", "query"]
    agents: list[str]
    graph: str | None = None
    description: str | None = None
    max_concurrency: int = CONCURRENCY
    """So many agents of one job run at the same time."""
    deadline: float = DEADLINE
    stages: Stages = Stages()
    synthesis: Synthesis = Synthesis()
    save: Save = Save()


# --- agents ------------------------------------------------------------------------------------------------------


def read_agent(document: Any) -> Agent:
    """Turn a document into a checked agent, or raise InvalidInput naming the field."""
    given = documents.check_names(document, Agent)
    if "retry" in given:
        given["retry"] = _retry(given["retry"])
    _read_part(given, "llm", Llm)
    _read_part(given, "budget", Budget)
    agent = documents.read(given, Agent)
    _check_named(agent.name, agent.description)
    _check_kind(agent)
    _check_schema(agent.output_schema, "outputSchema")
    if agent.input is not None:
        _check_template(agent.input, "input")
    documents.check_seconds(agent.timeout, "timeout", LONGEST)
    _check_names(agent.dependency_parents, "dependencyParents", 0, MOST_PARENTS)
    if agent.name in agent.dependency_parents:
        raise errors.CycleFound(
            f"agent {agent.name!r} depends on itself: take it out of dependencyParents",
            field=f"dependencyParents[{agent.dependency_parents.index(agent.name)}]",
            cycle=[agent.name, agent.name],
        )
    graph.check_tags(agent.tags)
    if agent.budget is not None:
        _check_more_than_zero(agent.budget.tokens, "budget.tokens")
        _check_more_than_zero(agent.budget.cost, "budget.cost")
    return agent


_CALLED_BY: dict[str, str] = {"function": "function", "http": "url", "llm": "llm"}
_ONLY_FOR: dict[str, str] = {"function": "function", "queue": "function", "url": "http", "secret": "http", "llm": "llm"}


def _check_kind(agent: Agent) -> None:
    for name, kind in _ONLY_FOR.items():
        if getattr(agent, name) is not None and kind != agent.kind:
            raise errors.InvalidInput(
                f"{name} is for agents of kind {kind}, and this one is of kind {agent.kind}: leave it out", field=name
            )
    needed = _CALLED_BY[agent.kind]
    if getattr(agent, needed) is None:
        raise errors.InvalidInput(f"{needed} is missing: an agent of kind {agent.kind} needs it", field=needed)
    if agent.function is not None:
        graph.check_name(agent.function, "function")
        _check_not_reserved(agent.function, "function")
    if agent.queue is not None:
        graph.check_id(agent.queue, "queue")
        _check_not_reserved(agent.queue, "queue")
    if agent.url is not None:
        targets.check_url(agent.url, "url")
    if agent.secret is not None:
        targets.check_secret(agent.secret, "secret")
    if agent.llm is not None:
        _check_llm(agent.llm)


def _check_llm(llm: Llm) -> None:
    documents.check_text(llm.model, "llm.model", 256)
    if not 1 <= len(llm.system) <= LONGEST_PROMPT:
        raise errors.InvalidInput(
            f"llm.system must be a text of 1 to {LONGEST_PROMPT:,} characters", field="llm.system"
        )
    if llm.base_url is not None:
        targets.check_url(llm.base_url, "llm.baseUrl")
    if llm.api_key is not None:
        targets.check_secret(llm.api_key, "llm.apiKey")
    if llm.temperature is not None and not 0 <= llm.temperature <= 2:
        raise errors.InvalidInput(
            f"llm.temperature must be between 0 and 2, not {llm.temperature!r}", field="llm.temperature"
        )
    if llm.price is not None:
        for name, price in (("input", llm.price.input), ("output", llm.price.output)):
            if not 0 <= price < LONGEST:
                raise errors.InvalidInput(
                    f"llm.price.{name} must be 0 or more, not {price!r}", field=f"llm.price.{name}"
                )
    _check_size(llm.parameters, "llm.parameters", LARGEST_PARAMETERS)


def _check_schema(schema: dict[str, Any], field: str) -> None:
    """Only the shape: an object of a few known fields. Whether it is a valid JSON Schema, a validator knows."""
    _check_size(schema, field, LARGEST_SCHEMA)
    if schema.get("type") != "object":
        raise errors.InvalidInput(
            f"{field}.type must be 'object', not {documents.short(schema.get('type'))}: agents answer with objects",
            field=f"{field}.type",
        )
    where = f"{field}.properties"
    properties = documents.as_object(schema.get("properties"), where)
    if not 1 <= len(properties) <= MOST_OUTPUTS:
        raise errors.InvalidInput(
            f"{where} has {len(properties):,} fields: an agent answers 1 to {MOST_OUTPUTS}; leave the others to others",
            field=where,
        )
    for name in properties:
        documents.check_text(name, f"{where}.{documents.short_text(name)}", 128)


def _retry(given: Any) -> Retry:
    """What is not given is as with all agents, not as with all tasks."""
    said = documents.as_object(given, "retry")
    made = documents.read(msgspec.to_builtins(RETRY) | said, Retry, "retry")
    if "maxDelay" not in said:
        made = msgspec.structs.replace(made, max_delay=max(made.max_delay, made.base_delay))
    if made.max_attempts > MOST_ATTEMPTS:
        raise errors.InvalidInput(
            f"retry.maxAttempts must be 1 to {MOST_ATTEMPTS}, not {made.max_attempts:,}", field="retry.maxAttempts"
        )
    return made


# --- graphs ------------------------------------------------------------------------------------------------------


def read_graph(document: Any) -> Graph:
    """Turn a document into a checked graph, or raise InvalidInput naming the field. An edge given twice is one edge."""
    given = documents.check_names(document, Graph)
    edges = documents.as_list(given["edges"], "edges", 0, MOST_EDGES)
    given["edges"] = list(dict.fromkeys(_edge(item, f"edges[{index}]") for index, item in enumerate(edges)))
    made = documents.read(given, Graph)
    _check_named(made.name, made.description)
    parents: dict[str, list[str]] = {}
    for edge in made.edges:
        parents.setdefault(edge.parent, [])
        parents.setdefault(edge.child, []).append(edge.parent)
    refuse_circle(parents, "edges")
    return made


def refuse_circle(parents: Mapping[str, Sequence[str]], field: str) -> None:
    """Raise CycleFound if agents wait for each other, naming them in the direction of the edges."""
    cycle = graph.find_cycle(parents)[::-1]
    if cycle:
        raise graph.cycle_found(f"{field}: the agents depend on each other in a circle", cycle, field=field)


def _edge(item: Any, field: str) -> Edge:
    edge = item if isinstance(item, Edge) else documents.read(item, Edge, field)
    targets.check_name(edge.parent, f"{field}.from")
    targets.check_name(edge.child, f"{field}.to")
    if edge.parent == edge.child:
        raise errors.CycleFound(
            f"{field} leads from {edge.parent!r} to itself: remove it", field=field, cycle=[edge.parent, edge.child]
        )
    return edge


# --- playbooks ---------------------------------------------------------------------------------------------------


def read_playbook(document: Any) -> Playbook:
    """Turn a document into a checked playbook, or raise InvalidInput naming the field."""
    given = documents.check_names(document, Playbook)
    if "stages" in given and not isinstance(given["stages"], Stages):
        stages = documents.check_names(given["stages"], Stages, "stages")
        given["stages"] = {name: documents.read(stage, Stage, f"stages.{name}") for name, stage in stages.items()}
    _read_part(given, "synthesis", Synthesis)
    _read_part(given, "save", Save)
    playbook = documents.read(given, Playbook)
    _check_named(playbook.name, playbook.description)
    targets.check_name(playbook.domain, "domain")
    _check_names(playbook.agents, "agents", 1, MOST_AGENTS)
    if playbook.graph is not None:
        targets.check_name(playbook.graph, "graph")
    if not 1 <= playbook.max_concurrency <= MOST_CONCURRENT:
        raise errors.InvalidInput(
            f"maxConcurrency must be 1 to {MOST_CONCURRENT:,}, not {documents.short(playbook.max_concurrency)}",
            field="maxConcurrency",
        )
    documents.check_seconds(playbook.deadline, "deadline", LONGEST_DEADLINE)
    for part in msgspec.structs.fields(Stages):
        stage: Stage = getattr(playbook.stages, part.name)
        documents.check_seconds(stage.timeout, f"stages.{part.encode_name}.timeout", LONGEST_DEADLINE)
    _check_synthesis(playbook)
    _check_template(playbook.save.text, "save.text")
    _check_template(playbook.save.fields, "save.fields")
    if isinstance(playbook.save.fields, str) and not templates.is_template(playbook.save.fields):
        raise errors.InvalidInput(
            "save.fields must be an object, or an expression that gives one: {% … %}", field="save.fields"
        )
    return playbook


_NEEDED_BY: dict[str, str] = {"conflict": "flat", "expression": "jsonata", "agent": "agent"}


def _check_synthesis(playbook: Playbook) -> None:
    synthesis = playbook.synthesis
    for name, how in _NEEDED_BY.items():
        field = f"synthesis.{name}"
        given = getattr(synthesis, name) is not None
        if given and how != synthesis.how:
            raise errors.InvalidInput(f"{field} has no meaning with {synthesis.how}: it goes with {how}", field=field)
        if not given and how == synthesis.how:
            raise errors.InvalidInput(f"{field} is missing: {how} needs it", field=field)
    if synthesis.expression is not None and not 1 <= len(synthesis.expression) <= LONGEST_EXPRESSION:
        raise errors.InvalidInput(
            f"synthesis.expression must be JSONata of 1 to {LONGEST_EXPRESSION:,} characters",
            field="synthesis.expression",
        )
    if synthesis.agent is not None:
        targets.check_name(synthesis.agent, "synthesis.agent")
        if synthesis.agent in playbook.agents:
            raise errors.InvalidInput(
                f"synthesis.agent {synthesis.agent!r} is one of the agents whose answers it is to put together: "
                "take it out of agents",
                field="synthesis.agent",
            )


# --- for all -----------------------------------------------------------------------------------------------------


def expressions(defined: Agent | Graph | Playbook) -> Iterator[tuple[str, str]]:
    """Every JSONata expression in it, with the path of its field, for who can tell whether it is valid."""
    if isinstance(defined, Agent):
        yield from templates.expressions(defined.input, "input")
    elif isinstance(defined, Playbook):
        if defined.synthesis.expression is not None:
            yield "synthesis.expression", defined.synthesis.expression
        yield from templates.expressions(defined.save.text, "save.text")
        yield from templates.expressions(defined.save.fields, "save.fields")


def _read_part(given: dict[str, Any], name: str, kind: type[T]) -> None:
    """Read a part of a document on its own, so that an error in it says where; what is null is left out."""
    if given.get(name) is not None and not isinstance(given[name], kind):
        given[name] = documents.read(given[name], kind, name)


def _check_named(name: str, description: str | None) -> None:
    targets.check_name(name, "name")
    if description is not None:
        documents.check_text(description, "description", LONGEST_DESCRIPTION)


def _check_names(names: list[str], field: str, least: int, most: int) -> None:
    documents.as_list(names, field, least, most)
    seen: set[str] = set()
    for index, name in enumerate(names):
        targets.check_name(name, f"{field}[{index}]")
        if name in seen:
            raise errors.InvalidInput(f"{field} has {name!r} twice: name it once", field=f"{field}[{index}]")
        seen.add(name)


def _check_not_reserved(name: str, field: str) -> None:
    if name.startswith(graph.RESERVED):
        raise errors.InvalidInput(
            f"{field} {documents.short(name)} starts with {graph.RESERVED!r}, as the engine's own do: use another name",
            field=field,
        )


def _check_template(template: Any, field: str) -> None:
    templates.check(template, field)
    _check_size(template, field, LARGEST_INPUT)


def _check_size(value: Any, field: str, largest: int) -> None:
    try:
        size = len(codec.encode(value, field))
    except errors.InvalidPayload as error:
        raise errors.InvalidPayload(error.message, field=field) from None
    if size > largest:
        raise errors.InvalidInput(f"{field} has more than {largest:,} bytes: make it smaller", field=field)


def _check_more_than_zero(value: float | None, field: str) -> None:
    if value is not None and not 0 < value < LONGEST:
        raise errors.InvalidInput(f"{field} must be more than 0, not {value!r}", field=field)
