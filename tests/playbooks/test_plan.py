"""Plans: who waits for whom, in which levels, and what is refused or warned of before anything runs."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import errors
from ostinato.playbooks import plan as plans
from tests.playbooks import support

FIVE = support.agents(*[support.agent(name) for name in "ABCDE"])
SEED = support.graph("A>C", "B>D", "C>E")


def test_a7_the_example_of_the_seed() -> None:
    made = support.plan(FIVE, SEED)
    assert made.levels == [["A", "B"], ["C", "D"], ["E"]]
    assert made.critical_path == ["A", "C", "E"]


def test_a12_x1_every_agent_is_in_one_level_by_itself() -> None:
    made = support.plan(FIVE, SEED)
    assert sorted(name for level in made.levels for name in level) == list(FIVE)


def test_x4_an_agent_waits_for_its_own_parents_and_not_for_a_level() -> None:
    assert support.plan(FIVE, SEED).parents == {"A": [], "B": [], "C": ["A"], "D": ["B"], "E": ["C"]}


def test_a6_a9_edges_of_the_graph_and_parents_of_the_agents_are_united() -> None:
    known = support.agents(support.agent("a"), support.agent("b", "a"), support.agent("c", "b"), support.agent("d"))
    made = support.plan(known, support.graph("a>c", "a>b", "c>d"))
    assert made.parents == {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["c"]}
    assert made.levels == [["a"], ["b"], ["c"], ["d"]]


def test_x3_an_edge_that_the_graph_and_the_agent_name_counts_once() -> None:
    known = support.agents(support.agent("a"), support.agent("b", "a"))
    assert support.plan(known, support.graph("a>b", "a>b")).parents == {"a": [], "b": ["a"]}


def test_parents_are_in_the_order_of_the_playbook() -> None:
    known = support.agents(support.agent("z"), support.agent("a"), support.agent("m", "a", "z"))
    assert support.plan(known).parents["m"] == ["z", "a"]


def test_only_the_agents_of_the_playbook_are_planned() -> None:
    made = plans.plan(support.playbook(["A"]), None, FIVE)
    assert (made.levels, made.parents) == ([["A"]], {"A": []})


def test_x3_a_circle_between_a_graph_and_the_agents_is_named() -> None:
    known = support.agents(support.agent("a"), support.agent("b", "a"), support.agent("c", "b"))
    with pytest.raises(errors.CycleFound) as caught:
        support.plan(known, support.graph("c>a"))
    cycle = caught.value.details["cycle"]
    assert cycle[0] == cycle[-1]
    assert set(itertools.pairwise(cycle)) == {("a", "b"), ("b", "c"), ("c", "a")}
    assert " → ".join(cycle) in caught.value.message


UNKNOWN: list[tuple[list[str], list[str], str, str]] = [
    (["place", "categry"], [], "agents[1]", "no such agent: did you mean 'category'?"),
    (["place", "weather"], [], "agents[1]", "no such agent: save it first"),
    (["place"], ["place>category"], "edges[0].to", "add it to the agents of the playbook"),
    (["place", "category"], ["place>category", "plaec>category"], "edges[1].from", "did you mean 'place'?"),
    (["place", "severity"], [], "dependencyParents[0]", "of agent 'severity' is 'category'"),
]


@pytest.mark.parametrize(("names", "edges", "field", "words"), UNKNOWN)
def test_x3_an_unknown_agent_is_named_with_the_nearest(
    names: list[str], edges: list[str], field: str, words: str
) -> None:
    known = support.agents(support.agent("place"), support.agent("category"), support.agent("severity", "category"))
    with pytest.raises(errors.UnknownAgent) as caught:
        plans.plan(support.playbook(names), support.graph(*edges), known)
    assert caught.value.details["field"] == field
    assert words in caught.value.message


def test_an_agent_that_puts_answers_together_must_be_there_and_be_a_model() -> None:
    llm: dict[str, Any] = {"kind": "llm", "function": None, "llm": {"model": "m", "system": "s"}}
    known = support.agents(support.agent("a"), support.agent("b"), support.agent("editor", **llm))
    for name, words in (("editr", "did you mean 'editor'"), ("b", "of kind function")):
        with pytest.raises(errors.InvalidInput, match=words) as caught:
            plans.plan(support.playbook(["a"], synthesis={"how": "agent", "agent": name}), None, known)
        assert caught.value.details["field"] == "synthesis.agent"
    made = plans.plan(support.playbook(["a"], synthesis={"how": "agent", "agent": "editor"}), None, known)
    assert made.levels == [["a"]]


# --- warnings ----------------------------------------------------------------------------------------------------


def test_x5_all_attempts_of_one_agent_may_take_longer_than_the_whole_job() -> None:
    made = support.plan(support.agents(support.agent("slow")))
    assert made.warnings == ["agent 'slow' may need 1,214 s with all its attempts, more than the deadline of 900 s"]


def test_x5_a_chain_of_agents_may_take_longer_though_each_of_them_does_not() -> None:
    once: dict[str, Any] = {"retry": {"maxAttempts": 1}, "timeout": 400}
    known = support.agents(
        support.agent("a", **once), support.agent("b", "a", **once), support.agent("c", "b", **once), support.agent("d")
    )
    made = support.plan(known, deadline=1214)
    assert made.warnings == []
    assert support.plan(known, deadline=1199).warnings[-1] == (
        "the agents a → b → c may need 1,200 s with all their attempts, more than the deadline of 1,199 s"
    )


def test_x5_agents_that_run_side_by_side_do_not_add_up() -> None:
    known = support.agents(*[support.agent(name, timeout=200, retry={"maxAttempts": 1}) for name in "abcdef"])
    assert support.plan(known).warnings == []


def test_a11_an_agent_has_300_seconds_or_its_own_or_those_of_the_playbook() -> None:
    plain, own = support.agent("a"), support.agent("b", timeout=7)
    standard = support.playbook("ab")
    other = support.playbook("ab", stages={"agent": {"timeout": 20}})
    assert [plans.timeout_of(standard, plain), plans.timeout_of(standard, own)] == [300, 7]
    assert [plans.timeout_of(other, plain), plans.timeout_of(other, own)] == [20, 7]


def test_the_critical_path_goes_by_time() -> None:
    known = support.agents(
        support.agent("long", timeout=100), support.agent("a", timeout=1), support.agent("b", "a", timeout=1)
    )
    assert support.plan(known).critical_path == ["long"]


def test_fields_that_may_clash_are_told_before() -> None:
    known = support.agents(
        support.agent("a", timeout=1, outputSchema=support.schema("x", "y")),
        support.agent("b", timeout=1, outputSchema=support.schema("y", "z")),
    )
    assert support.plan(known, synthesis={"how": "flat", "conflict": "error"}).warnings == [
        "'y' is answered by a, b: when they differ, synthesis fails (conflict: error)"
    ]
    assert support.plan(known, synthesis={"how": "flat", "conflict": "first"}).warnings == []


# --- any graph ---------------------------------------------------------------------------------------------------

NAMES = [f"a{number}" for number in range(8)]
edge = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] != pair[1])


def naive_levels(edges: set[tuple[str, str]]) -> list[list[str]]:
    """Take away whoever waits for nobody, again and again. What is left waits for each other."""
    left, levels = list(NAMES), []
    while free := [name for name in left if not any(child == name and parent in left for parent, child in edges)]:
        levels.append(free)
        left = [name for name in left if name not in free]
    return levels


@given(st.lists(edge, max_size=14), st.lists(edge, max_size=6))
def test_a_plan_is_as_a_naive_model_says_or_there_is_a_circle(
    in_graph: list[tuple[str, str]], in_agents: list[tuple[str, str]]
) -> None:
    edges = {*in_graph, *in_agents}
    expected = naive_levels(edges)
    circular = sum(map(len, expected)) < len(NAMES)
    known = support.agents(
        *[support.agent(name, *{parent for parent, child in in_agents if child == name}) for name in NAMES]
    )
    try:
        made = support.plan(known, support.graph(*[f"{parent}>{child}" for parent, child in in_graph]))
    except errors.CycleFound as error:
        cycle = error.details["cycle"]
        assert circular
        assert cycle[0] == cycle[-1]
        assert set(itertools.pairwise(cycle)) <= edges
        return
    assert not circular
    assert made.levels == expected
    level_of = {name: number for number, level in enumerate(made.levels) for name in level}
    assert all(level_of[parent] < level_of[child] for parent, child in edges)
    assert {(parent, child) for child, parents in made.parents.items() for parent in parents} == edges
    assert set(itertools.pairwise(made.critical_path)) <= edges
