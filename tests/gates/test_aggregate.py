"""What the arrivals come to: each way by example, and against a naive model in any order of arrival."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import errors
from ostinato.gates import aggregate, definition
from ostinato.gates.records import Record

MEMBERS = [{"name": "A", "kind": "players"}, {"name": "B", "kind": "teams"}, {"name": "C", "kind": "players"}]


def gate(how: str, members: Any = MEMBERS, **fields: Any) -> definition.Gate:
    return definition.read({"name": "phase", "members": members, "aggregate": {"x": {"how": how} | fields}})


def record(member: str, data: dict[str, Any], success: bool = True) -> Record:
    return Record(member=member, status="success" if success else "failed", success=success, data=data)


def arrived(values: Mapping[str, Any]) -> dict[str, Record]:
    return {member: record(member, {"x": value}) for member, value in values.items()}


def no_jsonata(expression: str, data: Any) -> Any:
    raise AssertionError(f"{expression} was to be evaluated")


def come_to(how: str, values: Mapping[str, Any]) -> Any:
    return aggregate.aggregate(gate(how), arrived(values), no_jsonata)["x"]


@pytest.mark.parametrize(
    ("how", "values", "result"),
    [
        ("union", {"C": [3, 1], "B": [2, 1], "A": [1, 1]}, [1, 2, 3]),
        ("union", {"A": [1, True, 1.5, "1", None], "B": [True, {"a": 1, "b": 2}], "C": [{"b": 2, "a": 1}]},
         [1, True, 1.5, "1", None, {"a": 1, "b": 2}]),
        ("union", {"A": [], "B": None}, []),
        ("merge", {"C": {"k": 3}, "A": {"k": 1, "a": {"b": 1}}, "B": {"a": {"c": 2}}}, {"k": 3, "a": {"c": 2}}),
        ("by-kind", {"C": ["c", "a"], "B": ["LAL"], "A": ["a"]}, {"players": ["a", "c"], "teams": ["LAL"]}),
        ("by-kind", {"A": ["a"]}, {"players": ["a"], "teams": []}),
        ("by-kind", {"A": ["same"], "B": ["same"]}, {"players": ["same"], "teams": ["same"]}),
        ("list", {"C": 1, "A": [2], "B": None}, {"A": [2], "C": 1}),
        ("count", {"A": 0, "B": False, "C": None}, 2),
        ("sum", {"A": 150, "B": 30, "C": 2**60}, 150 + 30 + 2**60),
        ("sum", {"A": 0.1, "B": 0.2, "C": 0.3}, 0.6),
        ("min", {"A": 3, "B": 1.5, "C": 2}, 1.5),
        ("max", {"A": 3, "B": 1.5, "C": 2}, 3),
        ("min", {"A": "2025-11-30", "C": "2025-11-29"}, "2025-11-29"),
        ("max", {"A": "2025-11-30", "C": "2025-11-29"}, "2025-11-30"),
        ("first", {"C": "late", "B": "early", "A": None}, "early"),
        ("first", {"B": False, "C": True}, False),
    ],
)  # fmt: skip
def test_each_way(how: str, values: dict[str, Any], result: Any) -> None:
    assert json.dumps(come_to(how, values)) == json.dumps(result)  # as JSON, for true is not 1


EMPTY: list[tuple[str, Any]] = [
    ("union", []), ("merge", {}), ("by-kind", {"players": [], "teams": []}), ("list", {}), ("count", 0), ("sum", 0),
    ("min", None), ("max", None), ("first", None),
]  # fmt: skip


@pytest.mark.parametrize(("how", "result"), EMPTY)
def test_what_comes_of_nobody_having_the_field(how: str, result: Any) -> None:
    assert come_to(how, {}) == result
    assert come_to(how, {"A": None, "B": None, "C": None}) == result


@pytest.mark.parametrize(("how", "result"), EMPTY)
def test_a_gate_over_no_members_has_the_same_aggregate_as_one_without_arrivals(how: str, result: Any) -> None:
    frozen = definition.freeze(gate(how, members="dynamic"), [])
    expected: Any = {} if how == "by-kind" else result  # the kinds come with the members
    assert aggregate.aggregate(frozen, {}, no_jsonata) == {"x": expected}


def test_e6_lists_by_kind_as_the_next_phase_takes_them() -> None:
    found = definition.read(
        {
            "name": "phase3-to-phase4",
            "members": MEMBERS,
            "aggregate": {"entities_changed": {"how": "by-kind", "from": "metadata.entities_changed"}},
        }
    )
    records = {
        "B": record("B", {"metadata": {"entities_changed": ["LAL", "GSW"]}}),
        "A": record("A", {"metadata": {"entities_changed": ["lebron-james", "stephen-curry"]}}),
    }
    assert aggregate.aggregate(found, records, no_jsonata) == {
        "entities_changed": {"players": ["lebron-james", "stephen-curry"], "teams": ["LAL", "GSW"]}
    }


def test_x12_what_failed_is_not_aggregated() -> None:
    records = arrived({"A": 1, "B": 2}) | {"C": record("C", {"x": "nonsense"}, success=False)}
    assert aggregate.aggregate(gate("sum"), records, no_jsonata) == {"x": 3}


def test_jsonata_sees_every_record_in_the_order_of_the_definition() -> None:
    seen: list[tuple[str, Any]] = []

    def evaluate(expression: str, data: Any) -> Any:
        seen.append((expression, data))
        return "answer"

    records = arrived({"B": 2, "A": 1}) | {"C": record("C", {}, success=False)}
    found = gate("jsonata", expression="members.*.success")
    assert aggregate.aggregate(found, records, evaluate) == {"x": "answer"}
    [(expression, data)] = seen
    assert expression == "members.*.success"
    assert list(data["members"]) == ["A", "B", "C"]
    assert data["members"]["A"] == {"member": "A", "status": "success", "success": True, "data": {"x": 1}}
    assert data["members"]["C"]["success"] is False


@pytest.mark.parametrize(
    ("how", "value", "wanted"),
    [
        ("union", "text", "a list"),
        ("union", {"a": 1}, "a list"),
        ("by-kind", 7, "a list"),
        ("merge", [1], "an object"),
        ("sum", "7", "a number"),
        ("sum", True, "a number"),
        ("min", [1], "a number or a text"),
        ("max", {}, "a number or a text"),
    ],
)
def test_a_value_that_does_not_fit_names_gate_member_and_field(how: str, value: Any, wanted: str) -> None:
    with pytest.raises(errors.UnfitValue) as caught:
        come_to(how, {"A": None, "B": value})
    assert caught.value.details == {"gate": "phase", "member": "B", "field": "data.x"}
    assert f"x of member 'B' must be {wanted}" in caught.value.message
    with pytest.raises(errors.UnfitValue):
        aggregate.check(gate(how), "B", {"x": value})


@pytest.mark.parametrize(
    ("how", "values", "words"),
    [
        ("min", {"A": 1, "B": "1"}, "do not compare"),
        ("max", {"A": "1", "B": 1}, "do not compare"),
        ("sum", {"A": 1.7e308, "B": 1.7e308}, "larger than a number can be"),
        ("sum", {"A": 10**400, "B": 0.5}, "larger than a number can be"),
    ],
)
def test_values_that_do_not_fit_together_are_told(how: str, values: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.UnfitValue, match=words) as caught:
        come_to(how, values)
    assert caught.value.details == {"gate": "phase", "field": "x"}


# --- a naive model ------------------------------------------------------------------------------------------------

numbers = st.integers(-(2**40), 2**40)
texts = st.text(max_size=3)
lists = st.lists(st.one_of(st.integers(0, 5), texts), max_size=5)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "union": lists,
    "by-kind": lists,
    "merge": st.dictionaries(texts, numbers, max_size=4),
    "list": st.one_of(numbers, texts, lists),
    "count": st.one_of(numbers, texts, lists),
    "sum": numbers,
    "min": numbers,
    "max": numbers,
    "first": st.one_of(numbers, texts, lists),
}


def naive(how: str, kinds: dict[str, str], present: list[tuple[str, Any]]) -> Any:
    """`present` are names and values in the order of the definition."""
    values = [value for _, value in present]
    match how:
        case "union":
            found: list[Any] = []
            for item in (item for items in values for item in items):
                found += [] if item in found else [item]
            return found
        case "by-kind":
            return {k: naive("union", kinds, [p for p in present if kinds[p[0]] == k]) for k in kinds.values()}
        case "merge":
            return {name: [v for v in values if name in v][-1][name] for v in values for name in v}
        case "list":
            return dict(present)
        case "first":
            return values[0] if values else None
        case "count":
            return len(values)
        case "sum":
            return sum(values)
        case _:
            return sorted(values)[0 if how == "min" else -1] if values else None


@given(st.data())
def test_any_order_of_arrival_gives_what_the_naive_model_says(data: st.DataObject) -> None:
    how = data.draw(st.sampled_from(sorted(VALUES)))
    names = [f"m{n}" for n in range(data.draw(st.integers(1, 8)))]
    kinds = {name: data.draw(st.sampled_from(["players", "teams", "games"])) for name in names}
    found = gate(how, members=[{"name": name, "kind": kinds[name]} for name in names])
    arrivals: dict[str, Record] = {}
    present: list[tuple[str, Any]] = []
    for name in names:
        value, success = data.draw(st.tuples(st.none() | VALUES[how], st.booleans()))
        if data.draw(st.booleans()):
            arrivals[name] = record(name, {"x": value}, success)
            present += [(name, value)] if success and value is not None else []
    shuffled = {name: arrivals[name] for name in data.draw(st.permutations(sorted(arrivals)))}
    result = aggregate.aggregate(found, shuffled, no_jsonata)["x"]
    assert result == naive(how, kinds, present)
    straight = aggregate.aggregate(found, arrivals, no_jsonata)["x"]
    assert json.dumps(result) == json.dumps(straight)  # down to the order of the keys
