"""From what became of each agent to one answer: aggregation, validation, synthesis."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import errors, expressions
from ostinato.core import rows
from ostinato.core import statuses as published
from ostinato.playbooks import aggregation, statuses, synthesis, validation
from ostinato.playbooks.aggregation import Aggregate, Outcome
from tests.playbooks import support

KNOWN = support.agents(
    support.agent("severity", "category", outputSchema=support.schema("level")),
    support.agent("category", outputSchema=support.schema("category")),
    support.agent("place", outputSchema=support.schema("place")),
    support.agent("advice", "severity", onParentFailure="run", outputSchema=support.schema("advice")),
    support.agent("alarm", "category", onParentFailure="fail", outputSchema=support.schema("alarm")),
)
PLAN = support.plan(KNOWN)


def done(output: Any, attempts: int = 1) -> Outcome:
    return Outcome("completed", attempts, output)


def failed(kind: str, message: str, attempts: int = 4) -> Outcome:
    return Outcome("failed", attempts, failure=rows.Failure(kind, message, "a traceback"))


SKIPPED = Outcome("skipped")
WELL = {
    "category": done({"category": "fire", "evidence": ["smoke"]}),
    "place": done({"place": "Salt Quay"}, 2),
    "severity": done({"level": 4}),
    "advice": done({"advice": "stay away"}),
    "alarm": done({"alarm": True}),
}
PARTLY = WELL | {
    "category": failed("TaskTimeout", "the attempt ran longer than 300 s"),
    "severity": SKIPPED,
    "alarm": SKIPPED,
}


def aggregate(outcomes: Mapping[str, Outcome]) -> Aggregate:
    return aggregation.aggregate(PLAN, KNOWN, outcomes)


def plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


# --- aggregation -------------------------------------------------------------------------------------------------


def test_a13_all_answers_in_the_order_of_the_plan() -> None:
    made = plain(aggregate(WELL))
    assert list(made["agents"]) == ["category", "place", "severity", "alarm", "advice"]
    assert made["agents"]["category"] == {
        "status": "completed",
        "attempts": 1,
        "output": {"category": "fire"},
        "evidence": ["smoke"],
    }
    assert made["agents"]["place"] == {
        "status": "completed",
        "attempts": 2,
        "output": {"place": "Salt Quay"},
        "evidence": None,
    }
    assert (made["failed"], made["skipped"]) == ([], [])


def test_a25_failed_and_skipped_agents_are_marked_with_the_reason() -> None:
    made = aggregate(PARTLY)
    assert (made.failed, made.skipped) == (["category", "alarm"], ["severity"])
    assert list(made.completed) == ["place", "advice"]
    agents = plain(made)["agents"]
    assert agents["category"] == {
        "status": "failed",
        "attempts": 4,
        "output": None,
        "evidence": None,
        "error": {"type": "TaskTimeout", "message": "the attempt ran longer than 300 s"},
    }
    because = {"type": "ParentFailed", "message": "agent 'alarm' needs 'category', which gave no usable answer"}
    assert (agents["alarm"]["status"], agents["alarm"]["error"]) == ("failed", because)
    assert agents["severity"]["status"] == "skipped"
    assert "'category'" in agents["severity"]["error"]["message"]


def test_a_traceback_does_not_leave_the_history_of_the_job() -> None:
    assert b"traceback" not in msgspec.json.encode(aggregate(PARTLY))


def test_an_agent_that_somebody_skipped_by_hand_has_no_error() -> None:
    made = plain(aggregate(WELL | {"place": SKIPPED}))
    assert made["skipped"] == ["place"]
    assert "error" not in made["agents"]["place"]


@pytest.mark.parametrize("outcome", [Outcome("cancelled", 1), Outcome("blocked")])
def test_an_agent_that_did_not_come_to_an_end_counts_as_failed(outcome: Outcome) -> None:
    made = plain(aggregate(WELL | {"place": outcome}))
    assert made["failed"] == ["place"]
    assert made["agents"]["place"]["error"]["type"] == "NotRun"
    assert outcome.state in made["agents"]["place"]["error"]["message"]


def test_evidence_is_a_part_of_the_output_if_the_schema_says_so() -> None:
    known = support.agents(support.agent("a", outputSchema=support.schema("x", "evidence")))
    made = aggregation.aggregate(support.plan(known), known, {"a": done({"x": 1, "evidence": "e"})})
    assert (made.agents["a"].output, made.agents["a"].evidence) == ({"x": 1, "evidence": "e"}, "e")


@pytest.mark.parametrize("output", [None, [], "text", 3])
def test_an_answer_that_is_no_object_is_not_used(output: Any) -> None:
    made = aggregate(WELL | {"place": done(output)})
    assert (made.agents["place"].status, made.agents["place"].output) == ("invalid", output)
    assert made.failed == ["place"]


# --- validation --------------------------------------------------------------------------------------------------


def no_errors(schema: Mapping[str, Any], value: Any) -> Iterable[tuple[str, str]]:
    return ()


def only_known_fields(schema: Mapping[str, Any], value: Any) -> Iterable[tuple[str, str]]:
    return [(f"/{name}", "is not expected") for name in value if name not in schema["properties"]]


def test_a14_valid_outputs_give_a_report_without_errors() -> None:
    report = validation.validate(aggregate(WELL), KNOWN, only_known_fields)
    assert plain(report) == {"valid": True, "errors": []}
    assert validation.marked(aggregate(WELL), report) == aggregate(WELL)


def test_a14_each_error_names_the_agent_and_the_path() -> None:
    given = aggregate(WELL | {"place": done({"place": "a", "city": "b"}), "severity": done({"lvl": 1, "why": 2})})
    report = validation.validate(given, KNOWN, only_known_fields)
    assert plain(report) == {
        "valid": False,
        "errors": [
            {"agent": "place", "path": "/city", "message": "is not expected"},
            {"agent": "severity", "path": "/lvl", "message": "is not expected"},
            {"agent": "severity", "path": "/why", "message": "is not expected"},
        ],
    }
    marked = validation.marked(given, report)
    assert marked.failed == ["place", "severity"]
    assert plain(marked)["agents"]["severity"] == {
        "status": "invalid",
        "attempts": 1,
        "output": {"lvl": 1, "why": 2},
        "evidence": None,
        "error": {"type": "InvalidOutput", "message": "/lvl: is not expected"},
    }


def test_agents_that_did_not_answer_are_no_matter_of_schemas() -> None:
    given = aggregate(PARTLY)
    report = validation.validate(given, KNOWN, no_errors)
    assert report.valid
    assert validation.marked(given, report) == given


def test_a14_more_than_five_fields_are_too_many_even_if_the_schema_would_let_them_pass() -> None:
    report = validation.validate(aggregate(WELL | {"place": done(dict.fromkeys("abcdef", 1))}), KNOWN, no_errors)
    [error] = report.errors
    assert (error.agent, error.path) == ("place", "")
    assert "6 fields" in error.message


def test_an_answer_that_is_no_object_is_in_the_report() -> None:
    given = aggregate(WELL | {"place": done(["a"])})
    report = validation.validate(given, KNOWN, only_known_fields)
    assert [(error.agent, error.message) for error in report.errors] == [
        ("place", "an agent must answer with an object, not a list")
    ]
    assert validation.marked(given, report) == given


def test_a_report_stays_short() -> None:
    def endless(schema: Mapping[str, Any], value: Any) -> Iterable[tuple[str, str]]:
        while True:
            yield "/x", "is wrong"

    assert len(validation.validate(aggregate(WELL), KNOWN, endless).errors) == 5 * validation.MOST_ERRORS


# --- synthesis ---------------------------------------------------------------------------------------------------


def evaluate(expression: str, data: Any) -> Any:
    return expressions.compile(expression, "synthesis.expression").evaluate(data)


def synthesize(made: Aggregate, **fields: Any) -> synthesis.Result:
    return synthesis.synthesize(support.playbook(KNOWN, synthesis=fields), made, evaluate=evaluate)


def test_a15_a25_one_answer_by_agent_with_those_that_failed_and_why() -> None:
    assert plain(synthesize(aggregate(PARTLY), how="by-agent")) == {
        "synthesized": {"place": {"place": "Salt Quay"}, "advice": {"advice": "stay away"}},
        "evidence": {},
        "failed": [
            {"agent": "category", "error": {"type": "TaskTimeout", "message": "the attempt ran longer than 300 s"}},
            {
                "agent": "alarm",
                "error": {
                    "type": "ParentFailed",
                    "message": "agent 'alarm' needs 'category', which gave no usable answer",
                },
            },
        ],
        "skipped": [
            {
                "agent": "severity",
                "error": {
                    "type": "ParentFailed",
                    "message": "agent 'severity' needs 'category', which gave no usable answer",
                },
            }
        ],
    }


def test_a15_all_fields_flat_with_the_evidence_beside() -> None:
    made = synthesize(aggregate(WELL), how="flat", conflict="error")
    assert made.synthesized == {
        "category": "fire", "place": "Salt Quay", "level": 4, "alarm": True, "advice": "stay away"
    }  # fmt: skip
    assert made.evidence == {"category": ["smoke"]}
    assert (made.failed, made.skipped) == ([], [])


def test_a15_an_expression_sees_the_answers_and_who_has_none() -> None:
    expression = '{"where": agents.place.output.place, "lost": failed, "why": agents.category.error.message}'
    assert synthesize(aggregate(PARTLY), how="jsonata", expression=expression).synthesized == {
        "where": "Salt Quay",
        "lost": ["category", "alarm"],
        "why": "the attempt ran longer than 300 s",
    }


def test_a15_an_agent_is_asked_as_if_all_others_were_its_parents() -> None:
    call = synthesis.question("editor", aggregate(PARTLY), {"text": "t"}, tenant_id="city", domain_id="incidents")
    assert (call.agent_id, call.raw_data, call.tenant_id, call.domain_id) == (
        "editor", {"text": "t"}, "city", "incidents"
    )  # fmt: skip
    assert call.parent_output == {
        "category": None,
        "place": {"place": "Salt Quay"},
        "severity": None,
        "alarm": None,
        "advice": {"advice": "stay away"},
    }
    assert set(call.parent_error) == {"category", "severity", "alarm"}
    assert synthesis.result(aggregate(PARTLY), {"said": "so"}).synthesized == {"said": "so"}


def test_an_answer_that_violates_its_schema_has_no_part_in_the_result() -> None:
    given = aggregate(WELL | {"place": done({"plaice": "fish"})})
    marked = validation.marked(given, validation.validate(given, KNOWN, only_known_fields))
    made = synthesize(marked, how="flat", conflict="last")
    assert "plaice" not in made.synthesized
    assert [absence.agent for absence in made.failed] == ["place"]


CLASH = {"a": {"x": 1, "y": "same"}, "b": {"x": 2, "y": "same"}, "c": {"x": 1}}


@pytest.mark.parametrize(("conflict", "x"), [("first", 1), ("last", 1), ("list", [1, 2])])
def test_whose_value_counts_where_agents_differ(conflict: Any, x: Any) -> None:
    assert synthesis.flat(CLASH, conflict) == {"x": x, "y": "same"}


def test_a_conflict_that_is_an_error_names_the_field_and_the_agents() -> None:
    with pytest.raises(errors.ConflictingOutputs, match="'a' and 'b' gave different values for 'x'") as caught:
        synthesis.flat(CLASH, "error")
    assert caught.value.details == {"field": "x", "agents": ["a", "b"]}
    assert isinstance(caught.value, errors.TerminalError)  # trying again would not help


def test_true_and_one_are_different_values() -> None:
    assert synthesis.flat({"a": {"x": 1}, "b": {"x": True}}, "list") == {"x": [1, True]}
    assert synthesis.flat({"a": {"x": {"p": 1, "q": 2}}, "b": {"x": {"q": 2, "p": 1}}}, "error") == {
        "x": {"p": 1, "q": 2}
    }


values = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b"]) | st.just([1]) | st.just({"k": 1})
outputs = st.dictionaries(
    st.sampled_from("abcd"), st.dictionaries(st.sampled_from("xyz"), values, max_size=3), max_size=4
)


@given(outputs)
def test_conflict_rules_are_as_a_naive_model_says(given: dict[str, dict[str, Any]]) -> None:
    fields = {field for output in given.values() for field in output}
    expected: dict[str, dict[str, Any]] = {"first": {}, "last": {}, "list": {}}
    clashing = False
    for field in fields:
        said = [output[field] for output in given.values() if field in output]
        texts = [json.dumps(value) for value in said]
        different = [value for place, value in enumerate(said) if texts[place] not in texts[:place]]
        clashing = clashing or len(different) > 1
        expected["first"][field], expected["last"][field] = said[0], said[-1]
        expected["list"][field] = different if len(different) > 1 else different[0]
    assert json.dumps(synthesis.flat(given, "first"), sort_keys=True) == json.dumps(expected["first"], sort_keys=True)
    assert json.dumps(synthesis.flat(given, "last"), sort_keys=True) == json.dumps(expected["last"], sort_keys=True)
    assert json.dumps(synthesis.flat(given, "list"), sort_keys=True) == json.dumps(expected["list"], sort_keys=True)
    if clashing:
        with pytest.raises(errors.ConflictingOutputs):
            synthesis.flat(given, "error")
    else:
        assert synthesis.flat(given, "error") == synthesis.flat(given, "first")


# --- statuses ----------------------------------------------------------------------------------------------------


def test_a21_the_names_of_the_statuses() -> None:
    assert statuses.invoking("severity") == "invoking_severity"
    assert statuses.agent_complete("severity") == "agent_complete_severity"
    assert [statuses.LOADING, statuses.VALIDATING, statuses.SYNTHESIZING, statuses.COMPLETE, statuses.ERROR] == [
        "loading_agents", "validating", "synthesizing", "complete", "error"
    ]  # fmt: skip


def test_a21_a_status_fits_for_any_agent_that_there_can_be() -> None:
    longest = support.agent("x" * 128)
    for status in (statuses.invoking(longest.name), statuses.agent_complete(longest.name)):
        assert published.check(status, None) == (status, None)
