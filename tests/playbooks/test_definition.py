"""Agents, graphs and playbooks as their authors write them: what is taken, what is refused, which field is named."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import errors
from ostinato.core import graph as graphs
from ostinato.playbooks import definition

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"level": {"type": "integer"}}}
AGENT: dict[str, Any] = {"name": "severity", "kind": "function", "function": "rate", "outputSchema": SCHEMA}
GRAPH: dict[str, Any] = {"name": "order", "edges": [{"from": "a", "to": "b"}]}
PLAYBOOK: dict[str, Any] = {"name": "book", "domain": "incidents", "type": "ingestion", "agents": ["a", "b"]}
LLM: dict[str, Any] = {"model": "small", "system": "Be brief.", "apiKey": "secret://llm"}


def agent(**fields: Any) -> dict[str, Any]:
    return AGENT | fields


def http(**fields: Any) -> dict[str, Any]:
    return {"name": "a", "kind": "http", "url": "https://example.com/a", "outputSchema": SCHEMA} | fields


def llm(**fields: Any) -> dict[str, Any]:
    return {"name": "a", "kind": "llm", "llm": LLM | fields, "outputSchema": SCHEMA}


def properties(*names: str) -> dict[str, Any]:
    return agent(outputSchema={"type": "object", "properties": {name: {} for name in names}})


def graph(*edges: Any, **fields: Any) -> dict[str, Any]:
    return GRAPH | {"edges": [{"from": e[0], "to": e[1]} if isinstance(e, str) else e for e in edges]} | fields


def playbook(**fields: Any) -> dict[str, Any]:
    return PLAYBOOK | fields


def synthesis(how: str, **fields: Any) -> dict[str, Any]:
    return playbook(synthesis={"how": how} | fields)


# --- what is taken -----------------------------------------------------------------------------------------------


def test_a20_an_agent_is_tried_again_after_2_4_and_8_seconds() -> None:
    policy = definition.read_agent(AGENT).retry
    assert [policy.delay(n) for n in range(1, policy.max_attempts)] == [2, 4, 8]


def test_what_a_retry_policy_leaves_out_is_as_with_all_agents() -> None:
    policy = definition.read_agent(agent(retry={"maxAttempts": 3})).retry
    assert [policy.delay(n) for n in range(1, policy.max_attempts)] == [2, 4]


def test_x6_a_retry_policy_has_no_list_of_errors_that_it_is_for() -> None:
    with pytest.raises(errors.InvalidInput, match="not a known field"):
        definition.read_agent(agent(retry={"errorEquals": ["States.Timeout"]}))


def test_a9_an_agent_may_name_its_parents_and_is_left_out_if_they_fail() -> None:
    read = definition.read_agent(agent(dependencyParents=["category", "place"]))
    assert (read.dependency_parents, read.on_parent_failure) == (["category", "place"], "skip")
    assert definition.read_agent(AGENT).dependency_parents == []


def test_the_timeouts_of_the_stages() -> None:
    """A4, A5, A6, A11, A13, A14, A15 and A16."""
    stages = definition.read_playbook(PLAYBOOK).stages
    assert [getattr(stages, name).timeout for name in stages.__struct_fields__] == [5, 5, 10, 300, 10, 10, 10, 30]
    assert definition.read_playbook(playbook(stages={"save": {"timeout": 60}})).stages.save.timeout == 60


def test_a8_a19_ten_agents_at_a_time_and_fifteen_minutes_for_all() -> None:
    read = definition.read_playbook(PLAYBOOK)
    assert (read.max_concurrency, read.deadline) == (10, 15 * 60)
    assert (read.graph, read.synthesis.how, read.save.enabled) == (None, "by-agent", True)


@pytest.mark.parametrize("kind", ["ingestion", "query"])
def test_a1_one_kind_of_playbook_serves_both_pipelines(kind: str) -> None:
    assert definition.read_playbook(playbook(type=kind)).type == kind


def test_a14_an_output_has_at_most_five_fields() -> None:
    assert definition.read_agent(properties(*"abcde")).outputs == list("abcde")
    with pytest.raises(errors.InvalidInput, match="6 fields: an agent answers 1 to 5"):
        definition.read_agent(properties(*"abcdef"))


def test_x3_an_edge_given_twice_is_one_edge() -> None:
    read = definition.read_graph(graph("ab", "bc", "ab"))
    assert [(edge.parent, edge.child) for edge in read.edges] == [("a", "b"), ("b", "c")]


def test_x3_a_graph_with_a_circle_is_refused_by_the_names_in_it() -> None:
    with pytest.raises(errors.CycleFound, match=r"x → y → z → x|y → z → x → y|z → x → y → z") as caught:
        definition.read_graph(graph("ax", "xy", "yz", "zx", "zb"))
    assert set(caught.value.details["cycle"]) == {"x", "y", "z"}


WHOLE: list[tuple[Callable[[Any], Any], dict[str, Any], list[tuple[str, str]]]] = [
    (
        definition.read_agent,
        {
            "name": "severity",
            "kind": "function",
            "outputSchema": SCHEMA,
            "description": "How bad it is",
            "function": "incidents.severity",
            "queue": "incidents",
            "input": {"text": "{% raw_data.text %}", "known": ["{% parent_output.category %}", 1]},
            "timeout": 20.0,
            "dependencyParents": ["category"],
            "onParentFailure": "run",
            "tags": {"team": "city"},
            "budget": {"tokens": 1000, "cost": 0.5},
        },
        [("input.text", "raw_data.text"), ("input.known[0]", "parent_output.category")],
    ),
    (definition.read_agent, http(secret="secret://hook"), []),
    (
        definition.read_agent,
        llm(
            baseUrl="http://localhost:8080/v1",
            temperature=0.0,
            price={"input": 1.5, "output": 6.0},
            evidence=False,
            parameters={"max_tokens": 500},
        ),
        [],
    ),
    (definition.read_graph, graph("ab", "bc", description="Who needs whom"), []),
    (
        definition.read_playbook,
        {
            "name": "incident-query",
            "domain": "incidents",
            "type": "query",
            "agents": ["count", "where"],
            "graph": "order",
            "description": "Answers",
            "maxConcurrency": 3,
            "deadline": 60.0,
            "stages": {"load": {"timeout": 1.0}, "loadGraph": {"timeout": 2.0}},
            "synthesis": {"how": "jsonata", "expression": "agents.count.output"},
            "save": {"text": "{% raw_data.text %}", "fields": {"place": "{% synthesized.place %}"}},
        },
        [
            ("synthesis.expression", "agents.count.output"),
            ("save.text", "raw_data.text"),
            ("save.fields.place", "synthesized.place"),
        ],
    ),
    (definition.read_playbook, synthesis("flat", conflict="list"), []),
    (definition.read_playbook, synthesis("agent", agent="editor"), []),
    (definition.read_playbook, playbook(save={"enabled": False}), []),
]


@pytest.mark.parametrize(("read", "document", "expressions"), WHOLE)
def test_a_whole_definition_is_read_and_written_back_alike(
    read: Callable[[Any], Any], document: dict[str, Any], expressions: list[tuple[str, str]]
) -> None:
    before = msgspec.json.encode(document)
    made = read(document)
    assert msgspec.to_builtins(made) == document
    assert read(msgspec.to_builtins(made)) == made
    assert list(definition.expressions(made)) == expressions
    assert msgspec.json.encode(document) == before


# --- what is refused ---------------------------------------------------------------------------------------------

BAD_AGENTS: list[tuple[Any, str, str]] = [
    ([], "document", "must be an object"),
    ({"name": "a", "kind": "function"}, "outputSchema", "is missing"),
    (agent(name="a b"), "name", "not a valid name"),
    (agent(name="$save"), "name", "starting with a letter or digit"),
    (agent(name="a:b"), "name", "letters, digits"),
    (agent(name="x" * 129), "name", "1 to 128"),
    (agent(kind="lambda"), "kind", "Invalid enum value 'lambda'"),
    (agent(dependencyParent=["a"]), "dependencyParent", "did you mean 'dependencyParents'"),
    (agent(outputschema={}), "outputschema", "did you mean 'outputSchema'"),
    (agent(description="x" * 1025), "description", "1 to 1024"),
    (agent(function=None), "function", "an agent of kind function needs it"),
    (agent(function=""), "function", "not a valid name"),
    (agent(function="ostinato.fire"), "function", "the engine's own"),
    (agent(queue="ostinato.system"), "queue", "the engine's own"),
    (agent(queue="a b"), "queue", "not a valid id"),
    (agent(url="https://example.com"), "url", "for agents of kind http"),
    (agent(llm=LLM), "llm", "for agents of kind llm"),
    (http(url=None), "url", "an agent of kind http needs it"),
    (http(url="ftp://example.com"), "url", "must be an address"),
    (http(url="https://u:p@example.com"), "url", "must not have a user"),
    (http(url="{% raw_data.url %}"), "url", "must be an address"),
    (http(secret="hunter2"), "secret", "secret://NAME"),
    (http(function="f"), "function", "for agents of kind function"),
    (http(queue="q"), "queue", "for agents of kind function"),
    (llm() | {"llm": None}, "llm", "an agent of kind llm needs it"),
    (llm(model=""), "llm.model", "1 to 256"),
    (llm(modle="x"), "llm.modle", "did you mean 'model'"),
    (llm(system=""), "llm.system", "1 to 100,000"),
    (llm(system="x" * 100_001), "llm.system", "1 to 100,000"),
    (llm(apiKey="sk-very-secret"), "llm.apiKey", "secret://NAME"),
    (llm(baseUrl="localhost"), "llm.baseUrl", "must be an address"),
    (llm(parameters={"x": "y" * 5000}), "llm.parameters", "4,096 bytes"),
    (llm(temperature=2.5), "llm.temperature", "between 0 and 2"),
    (llm(temperature=math.nan), "llm.temperature", "between 0 and 2"),
    (llm(price={"input": 1}), "llm.price", "missing required field `output`"),
    (llm(price={"input": 1, "output": -1}), "llm.price.output", "0 or more"),
    (agent(outputSchema=True), "outputSchema", "Expected `object"),
    (agent(outputSchema={}), "outputSchema.type", "must be 'object'"),
    (agent(outputSchema={"type": "array"}), "outputSchema.type", "not 'array'"),
    (agent(outputSchema={"type": "object"}), "outputSchema.properties", "must be an object"),
    (agent(outputSchema={"type": "object", "properties": {}}), "outputSchema.properties", "1 to 5"),
    (properties(*"abcdef"), "outputSchema.properties", "1 to 5"),
    (properties("a\nb"), "outputSchema.properties.a\nb", "without control characters"),
    (agent(outputSchema=SCHEMA | {"$comment": "x" * 32_768}), "outputSchema", "more than 32,768 bytes"),
    (agent(input="{% raw_data %}"), "input", "Expected `object"),
    (agent(input={"a": ["{%  %}"]}), "input.a[0]", "empty expression"),
    (agent(input={"a": "x" * 32_768}), "input", "more than 32,768 bytes"),
    (agent(input={"a": math.nan}), "input", "NaN or infinity"),
    (agent(outputSchema=SCHEMA | {"maximum": math.inf}), "outputSchema", "NaN or infinity"),
    (agent(timeout=0), "timeout", "more than 0"),
    (agent(timeout=math.inf), "timeout", "at most"),
    (agent(timeout="5m"), "timeout", "Expected `float"),
    (agent(retry=3), "retry", "must be an object"),
    (agent(retry={"maxAttempts": 0}), "retry", "retry.maxAttempts must be 1"),
    (agent(retry={"maxAttempts": 101}), "retry.maxAttempts", "1 to 100"),
    (agent(retry={"attempts": 3}), "retry.attempts", "did you mean 'maxAttempts'"),
    (agent(dependencyParents="category"), "dependencyParents", "Expected `array`"),
    (agent(dependencyParents=["a", "a b"]), "dependencyParents[1]", "not a valid name"),
    (agent(dependencyParents=["a", "b", "a"]), "dependencyParents[2]", "'a' twice"),
    (agent(dependencyParents=["a", "severity"]), "dependencyParents[1]", "depends on itself"),
    (agent(dependencyParents=[f"a{n}" for n in range(101)]), "dependencyParents", "0 to 100"),
    (agent(onParentFailure="retry"), "onParentFailure", "Invalid enum value 'retry'"),
    (agent(tags={"a=b": "c"}), "tags", "without ="),
    (agent(tags={f"t{n}": "" for n in range(65)}), "tags", "the limit is 64"),
    (agent(budget={"tokens": 0}), "budget.tokens", "more than 0"),
    (agent(budget={"cost": math.nan}), "budget.cost", "more than 0"),
    (agent(budget={"tokns": 1}), "budget.tokns", "did you mean 'tokens'"),
]

BAD_GRAPHS: list[tuple[Any, str, str]] = [
    (None, "document", "must be an object"),
    ({"name": "g"}, "edges", "is missing"),
    (GRAPH | {"name": ""}, "name", "not a valid name"),
    (GRAPH | {"edges": {}}, "edges", "must be a list"),
    (graph({"from": "a"}), "edges[0].to", "is missing"),
    (graph("ab", {"from": "a", "too": "b"}), "edges[1].too", "did you mean 'to'"),
    (graph({"from": "a", "to": "$b"}), "edges[0].to", "not a valid name"),
    (graph({"from": 1, "to": "b"}), "edges[0].from", "Expected `str`"),
    (graph("ab", "cc"), "edges[1]", "leads from 'c' to itself"),
    (graph("ab", "bc", "ca"), "edges", "in a circle: "),
    (GRAPH | {"edges": [{"from": "a", "to": f"b{n}"} for n in range(10_001)]}, "edges", "0 to 10,000"),
]

BAD_PLAYBOOKS: list[tuple[Any, str, str]] = [
    ("book", "document", "must be an object"),
    ({"name": "book"}, "domain", "is missing"),
    (playbook(name="a/b"), "name", "not a valid name"),
    (playbook(domain=""), "domain", "not a valid name"),
    (playbook(type="search"), "type", "Invalid enum value 'search'"),
    (playbook(agnets=["a"]), "agnets", "did you mean 'agents'"),
    (playbook(agents=[]), "agents", "1 to 1,000"),
    (playbook(agents=[f"a{n}" for n in range(1001)]), "agents", "1 to 1,000"),
    (playbook(agents=["a", "$b"]), "agents[1]", "not a valid name"),
    (playbook(agents=["a", "b", "a"]), "agents[2]", "'a' twice"),
    (playbook(graph=""), "graph", "not a valid name"),
    (playbook(maxConcurrency=0), "maxConcurrency", "1 to 1,000"),
    (playbook(maxConcurrency=1001), "maxConcurrency", "1 to 1,000"),
    (playbook(maxConcurrency=True), "maxConcurrency", "Expected `int`"),
    (playbook(deadline=0), "deadline", "more than 0"),
    (playbook(deadline=math.nan), "deadline", "more than 0"),
    (playbook(deadline=1e9), "deadline", "at most"),
    (playbook(stages=[]), "stages", "must be an object"),
    (playbook(stages={"sav": {"timeout": 1}}), "stages.sav", "did you mean 'save'"),
    (playbook(stages={"save": 30}), "stages.save", "must be an object"),
    (playbook(stages={"save": {}}), "stages.save.timeout", "is missing"),
    (playbook(stages={"loadGraph": {"timeout": -1}}), "stages.loadGraph.timeout", "more than 0"),
    (synthesis("merge"), "synthesis.how", "Invalid enum value 'merge'"),
    (synthesis("flat"), "synthesis.conflict", "flat needs it"),
    (synthesis("flat", conflict="newest"), "synthesis.conflict", "Invalid enum value 'newest'"),
    (synthesis("by-agent", conflict="last"), "synthesis.conflict", "it goes with flat"),
    (synthesis("flat", conflict="last", expression="1"), "synthesis.expression", "it goes with jsonata"),
    (synthesis("jsonata"), "synthesis.expression", "jsonata needs it"),
    (synthesis("jsonata", expression=""), "synthesis.expression", "1 to 10,000"),
    (synthesis("jsonata", expression="x" * 10_001), "synthesis.expression", "1 to 10,000"),
    (synthesis("agent"), "synthesis.agent", "agent needs it"),
    (synthesis("agent", agent="a b"), "synthesis.agent", "not a valid name"),
    (synthesis("agent", agent="b"), "synthesis.agent", "take it out of agents"),
    (playbook(save=True), "save", "must be an object"),
    (playbook(save={"text": "{%%}"}), "save.text", "empty expression"),
    (playbook(save={"fields": ["a"]}), "save.fields", "Expected `"),
    (playbook(save={"fields": "place"}), "save.fields", "an expression that gives one"),
]

BAD = [
    *[(definition.read_agent, *case) for case in BAD_AGENTS],
    *[(definition.read_graph, *case) for case in BAD_GRAPHS],
    *[(definition.read_playbook, *case) for case in BAD_PLAYBOOKS],
]


@pytest.mark.parametrize(("read", "document", "field", "words"), BAD)
def test_a_bad_definition_is_refused_by_its_field(
    read: Callable[[Any], Any], document: Any, field: str, words: str
) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        read(document)
    assert caught.value.details["field"] == field
    assert words in caught.value.message
    assert len(caught.value.message) < 400


def test_a_secret_that_was_written_into_a_definition_is_not_repeated() -> None:
    for document in (llm(apiKey="sk-very-secret"), http(secret="sk-very-secret")):
        with pytest.raises(errors.InvalidInput) as caught:
            definition.read_agent(document)
        assert "sk-very-secret" not in str([caught.value.message, caught.value.details])


def test_whatever_can_name_an_agent_can_name_a_task() -> None:
    for name in ("a", "A.b_c-d", "0", "x" * 128):
        assert graphs.is_id(definition.read_agent(agent(name=name)).name)


words = st.sampled_from(["a", "b", "name", "object", "function", "{% a %}", "secret://a", "https://a.b", "flat", ""])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["from", "to", "how", "type", "timeout", "save", "model", "text"]), inner)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("read", "kind", "base"),
    [
        (definition.read_agent, definition.Agent, AGENT),
        (definition.read_graph, definition.Graph, GRAPH),
        (definition.read_playbook, definition.Playbook, PLAYBOOK),
    ],
)
@given(data=st.data())
def test_whatever_is_sent_is_a_definition_or_refused_by_a_field(
    data: st.DataObject, read: Callable[[Any], Any], kind: type[msgspec.Struct], base: dict[str, Any]
) -> None:
    fields = data.draw(st.dictionaries(st.sampled_from(kind.__struct_encode_fields__), anything, max_size=4))
    try:
        made = read(base | fields)
    except errors.InvalidInput as error:
        refusal = error
    else:
        assert read(msgspec.to_builtins(made)) == made
        return
    assert refusal.details["field"]
    assert msgspec.json.encode([refusal.message, refusal.details])
