"""Gates as their authors write them: what is taken, what is refused, and which field an error names."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import errors
from ostinato.gates import definition

GATE: dict[str, Any] = {"name": "phase", "members": ["A", "B"]}
TRIGGER: dict[str, Any] = {"signal": {"jobId": "job-1", "name": "day", "payload": "{% key %}"}}


def gate(**fields: Any) -> dict[str, Any]:
    return GATE | fields


def how(name: str, **fields: Any) -> dict[str, Any]:
    return gate(aggregate={"x": {"how": name} | fields})


def test_what_is_left_out_has_a_default() -> None:
    read = definition.read(GATE)
    assert list(read.expected) == ["A", "B"]
    assert (read.key, read.required, read.success, read.aggregate, read.trigger) == (None, [], None, {}, [])
    assert (read.on_failure, read.late, read.deadline, read.on_deadline) == ("wait", "ignore", None, "fail")


def test_e14_an_instance_is_kept_as_long_as_its_tenant_keeps_jobs_unless_the_gate_says_otherwise() -> None:
    assert definition.read(GATE).retention is None
    assert definition.read(gate(retention=3600)).retention == 3600


def test_a_whole_gate_is_read_and_written_back_alike() -> None:
    document = {
        "name": "phase3-to-phase4",
        "members": [{"name": "A", "kind": "players"}, {"name": "B", "kind": "teams"}],
        "key": "game_date",
        "description": "After the analytics",
        "required": ["status", "metadata.entities_changed"],
        "success": {"status": ["success", "partial"]},
        "onFailure": "partial",
        "aggregate": {
            "entities": {"how": "by-kind", "from": "metadata.entities_changed"},
            "ids": {"how": "jsonata", "expression": "$keys(members)"},
        },
        "trigger": [TRIGGER],
        "deadline": 3600.0,
        "onDeadline": "partial",
        "late": "trigger",
        "retention": 3600.0,
    }
    read = definition.read(document)
    assert msgspec.to_builtins(read) == document
    assert definition.read(msgspec.to_builtins(read)) == read
    assert list(definition.expressions(read)) == [
        ("aggregate.ids.expression", "$keys(members)"),
        ("trigger[0].signal.payload", "key"),
    ]


def test_reading_leaves_the_document_as_it_was() -> None:
    document = gate(trigger=[TRIGGER], aggregate={"n": {"how": "sum"}})
    before = msgspec.json.encode(document)
    definition.read(document)
    assert msgspec.json.encode(document) == before


def test_the_most_members_that_a_gate_may_have() -> None:
    names = [f"m{n}" for n in range(definition.MOST_MEMBERS)]
    assert len(definition.read(gate(members=names)).expected) == 10_000
    with pytest.raises(errors.InvalidInput, match="1 to 10,000"):
        definition.read(gate(members=[*names, "one-more"]))


BAD: list[tuple[Any, str, str]] = [
    ([], "document", "must be an object"),
    ({"members": ["A"]}, "name", "is missing"),
    ({"name": "phase"}, "members", "is missing"),
    (gate(name=""), "name", "not a valid name"),
    (gate(name="a b"), "name", "letters, digits"),
    (gate(name="a:b"), "name", "letters, digits"),
    (gate(name="-a"), "name", "starting with a letter or digit"),
    (gate(name="x" * 129), "name", "1 to 128"),
    (gate(name=None), "name", "Expected `str`"),
    (gate(onfailure="fail"), "onfailure", "did you mean 'onFailure'"),
    (gate(x=1), "x", "the fields are name, members"),
    (gate(key=""), "key", "1 to 128"),
    (gate(description="x" * 1025), "description", "1 to 1024"),
    (gate(members="dynamc"), "members", "'dynamic'"),
    (gate(members=[]), "members", "1 to 10,000"),
    (gate(members={}), "members", "must be a list"),
    (gate(members=["A", 3]), "members[1]", "must be an object"),
    (gate(members=["A", "B", "A"]), "members[2]", "has 'A' twice"),
    (gate(members=["A", {"name": "A"}]), "members[1]", "has 'A' twice"),
    (gate(members=["$open"]), "members[0]", "not a valid id"),
    (gate(members=["A", {"name": "a b"}]), "members[1].name", "not a valid id"),
    (gate(members=["A", {"kind": "x"}]), "members[1].name", "is missing"),
    (gate(members=["A", {"name": "B", "kind": 1}]), "members[1].kind", "Expected `str"),
    (gate(members=["A", {"name": "B", "kind": ""}]), "members[1].kind", "not a valid id"),
    (gate(members=["A", {"name": "B", "knd": "x"}]), "members[1].knd", "did you mean 'kind'"),
    (gate(required="status"), "required", "Expected `array`"),
    (gate(required=["a", 1]), "required[1]", "Expected `str`"),
    (gate(required=["a", "b..c"]), "required[1]", "not a path"),
    (gate(required=["a", "b", "a"]), "required[2]", "'a' twice"),
    (gate(required=[""]), "required[0]", "1 to 256"),
    (gate(success=["success"]), "success", "Expected `object"),
    (gate(success={"status": "success"}), "success.status", ""),
    (gate(onFailure="retry"), "onFailure", "Invalid enum value 'retry': use one of fail, wait, partial"),
    (gate(aggregate=[]), "aggregate", "must be an object"),
    (gate(aggregate={"n": "sum"}), "aggregate.n", "must be an object"),
    (gate(aggregate={"n": {}}), "aggregate.n.how", "is missing"),
    (gate(aggregate={"": {"how": "sum"}}), "aggregate.", "1 to 128"),
    (gate(aggregate={"a..b": {"how": "sum"}}), "aggregate.a..b", "not a path"),
    (gate(aggregate={f"n{n}": {"how": "sum"} for n in range(101)}), "aggregate", "more than 100"),
    (how("average"), "aggregate.x.how", "Invalid enum value 'average': use one of union, merge, count"),
    (how("sum", **{"form": "y"}), "aggregate.x.form", "did you mean 'from'"),
    (how("sum", **{"from": ".y"}), "aggregate.x.from", "not a path"),
    (how("sum", expression="1"), "aggregate.x.expression", "no meaning with sum"),
    (how("jsonata"), "aggregate.x.expression", "1 to 10,000 characters"),
    (how("jsonata", expression=""), "aggregate.x.expression", "1 to 10,000 characters"),
    (how("jsonata", expression="x" * 10_001), "aggregate.x.expression", "1 to 10,000 characters"),
    (how("jsonata", expression="1", **{"from": "y"}), "aggregate.x.from", "no meaning with jsonata"),
    (how("by-kind"), "members[0].kind", "'A' needs one"),
    (how("by-kind") | {"members": [{"name": "A", "kind": "x"}, "B"]}, "members[1].kind", "'B' needs one"),
    (gate(trigger=TRIGGER), "trigger", "must be a list"),
    (gate(trigger=[TRIGGER] * 11), "trigger", "0 to 10"),
    (gate(trigger=[TRIGGER, {"job": {}}]), "trigger[1].job.tasks", "is missing"),
    (gate(deadline=0), "deadline", "more than 0"),
    (gate(deadline=-1), "deadline", "more than 0"),
    (gate(deadline=math.nan), "deadline", "more than 0"),
    (gate(deadline=math.inf), "deadline", "more than 0"),
    (gate(deadline=400 * 86_400), "deadline", "at most 31,622,400"),
    (gate(deadline=True), "deadline", "Expected `float"),
    (gate(deadline="1h"), "deadline", "Expected `float"),
    (gate(onDeadline="fail"), "onDeadline", "no meaning without a deadline"),
    (gate(deadline=1, onDeadline="wait"), "onDeadline", "Invalid enum value 'wait': use one of fail, partial"),
    (gate(late="accept"), "late", "Invalid enum value 'accept': use one of ignore, refuse, trigger"),
    (gate(retention=0), "retention", "more than 0"),
    (gate(retention=1e12), "retention", "at most"),
]


@pytest.mark.parametrize(("document", "field", "words"), BAD)
def test_a_bad_gate_is_refused_by_its_field(document: Any, field: str, words: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        definition.read(document)
    assert caught.value.details["field"] == field
    assert words in caught.value.message


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["A", "{% key %}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "kind", "how", "from", "job", "tasks", "gate", "key"]), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(definition.Gate.__struct_encode_fields__), anything, max_size=4))
def test_whatever_is_sent_is_a_gate_or_refused_by_a_field(fields: dict[str, Any]) -> None:
    try:
        read = definition.read(GATE | fields)
    except errors.InvalidInput as error:
        refusal = error
    else:
        assert definition.read(msgspec.to_builtins(read)) == read
        return
    assert refusal.details["field"]
    assert msgspec.json.encode([refusal.message, refusal.details])


# --- members that are given at run time -------------------------------------------------------------------------


def test_a_dynamic_gate_gets_its_members_for_each_key() -> None:
    dynamic = definition.read(gate(members="dynamic"))
    with pytest.raises(errors.GateNotFrozen, match="freeze those of the key first"):
        _ = dynamic.expected
    frozen = definition.freeze(dynamic, ["task-1", {"name": "task-2", "kind": "x"}])
    assert list(frozen.expected) == ["task-1", "task-2"]
    assert frozen.kinds == ["x"]
    assert dynamic.members == "dynamic"


def test_a_dynamic_gate_may_have_no_members_at_all() -> None:
    assert not definition.freeze(definition.read(gate(members="dynamic")), []).expected


@pytest.mark.parametrize(
    ("members", "field"),
    [(["a", "a"], "members[1]"), (["$x"], "members[0]"), ("a", "members"), ([{"kind": "x"}], "members[0].name")],
)
def test_members_given_at_run_time_are_checked_as_those_of_a_definition(members: Any, field: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        definition.freeze(definition.read(gate(members="dynamic")), members)
    assert caught.value.details["field"] == field


def test_members_given_at_run_time_need_kinds_where_they_are_aggregated_by_kind() -> None:
    dynamic = definition.read(how("by-kind") | {"members": "dynamic"})
    with pytest.raises(errors.InvalidInput, match="'b' needs one"):
        definition.freeze(dynamic, [{"name": "a", "kind": "x"}, "b"])


def test_members_of_a_definition_are_not_to_be_given_again() -> None:
    with pytest.raises(errors.InvalidInput, match="in its definition"):
        definition.freeze(definition.read(GATE), ["A"])
