"""The incidents example: its definitions, and its agents against what its reports are labelled with."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from ostinato import definition_files
from ostinato.agents import schema
from ostinato.playbooks import aggregation, definition, job, synthesis
from ostinato.playbooks import plan as plans
from ostinato.playbooks.definition import Agent

FOLDER = Path(__file__).parents[2] / "examples" / "incidents"
REPORTS: list[dict[str, Any]] = json.loads((FOLDER / "reports.json").read_text())
INGESTION, QUERY = "incident-ingestion", "incident-query"

spec = importlib.util.spec_from_file_location("incident_agents", FOLDER / "agents.py")
assert spec is not None
assert spec.loader is not None
code: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(code)


def documents(kind: str) -> dict[str, Any]:
    return {found.document["name"]: found.document for found in definition_files.in_folder(str(FOLDER / kind))}


AGENTS: dict[str, Agent] = {name: definition.read_agent(document) for name, document in documents("agents").items()}
GRAPHS = {name: definition.read_graph(document) for name, document in documents("graphs").items()}
PLAYBOOKS = {name: definition.read_playbook(document) for name, document in documents("playbooks").items()}


def run(name: str, data: dict[str, Any]) -> synthesis.Result:
    """All agents of a playbook, one after the other, as the engine would run them."""
    book = PLAYBOOKS[name]
    plan = plans.plan(book, None if book.graph is None else GRAPHS[book.graph], AGENTS)
    outputs: dict[str, Any] = {}
    for task in job.agent_tasks(book, plan, AGENTS):
        parents = {parent: outputs[parent] for parent in task.depends_on}
        outputs[task.task_id] = code.FUNCTIONS[task.name](data, parents or None)
    outcomes = {agent: aggregation.Outcome("completed", 1, output) for agent, output in outputs.items()}
    return synthesis.synthesize(book, aggregation.aggregate(plan, AGENTS, outcomes), evaluate=lambda *_: None)


def report_data(report: dict[str, Any]) -> dict[str, Any]:
    """What is sent in: without the labels."""
    return {"text": report["text"], "reportedAt": report["reportedAt"]}


# --- definitions -------------------------------------------------------------------------------------------------


def test_with_a_language_model_only_who_answers_is_another() -> None:
    """Same names and schemas, so that the playbook, its graph and the questions about it stay."""
    models = documents("llm/agents")
    assert list(models) == PLAYBOOKS[INGESTION].agents
    for name, document in models.items():
        made, plain = definition.read_agent(document), AGENTS[name]
        assert (made.kind, made.output_schema) == ("llm", plain.output_schema)
        assert (made.on_parent_failure, made.dependency_parents) == (plain.on_parent_failure, plain.dependency_parents)


def test_the_plan_of_the_ingestion() -> None:
    book = PLAYBOOKS[INGESTION]
    made = plans.plan(book, GRAPHS[INGESTION], AGENTS)
    assert made.levels == [["place", "time", "category", "summary"], ["severity"]]
    assert (made.critical_path, made.warnings) == (["category", "severity"], [])


def test_the_plan_of_the_query() -> None:
    made = plans.plan(PLAYBOOKS[QUERY], None, AGENTS)
    assert (made.levels, made.warnings) == ([["count", "where", "changes", "related"]], [])


def test_every_agent_has_its_function() -> None:
    assert {agent.function for agent in AGENTS.values()} == set(code.FUNCTIONS)


# --- ingestion ---------------------------------------------------------------------------------------------------


def test_there_are_reports_of_every_kind() -> None:
    assert len(REPORTS) >= 40
    assert len({report["id"] for report in REPORTS}) == len({report["text"] for report in REPORTS}) == len(REPORTS)
    assert {report["label"]["category"] for report in REPORTS} == set(code.CATEGORIES)
    assert {report["label"]["severity"] for report in REPORTS} == set(code.SEVERITIES)


@pytest.mark.parametrize("report", REPORTS, ids=[report["id"] for report in REPORTS])
def test_the_agents_find_what_a_report_says(report: dict[str, Any]) -> None:
    made = run(INGESTION, report_data(report))
    found = made.synthesized
    assert {name: found[name] for name in report["label"]} == report["label"]
    assert 0 < len(found["summary"]) <= 120
    for name in ("place", "time", "category", "severity"):
        assert all(words in report["text"] for words in made.evidence[name])


def test_what_agents_answer_is_what_their_schemas_say() -> None:
    for report in REPORTS:
        for name in PLAYBOOKS[INGESTION].agents:
            agent = AGENTS[name]
            output = code.FUNCTIONS[agent.function](report_data(report), {"category": {"category": "fire"}})
            assert set(output) == {*agent.outputs, "evidence"}
            assert schema.validate(agent.output_schema, {field: output[field] for field in agent.outputs}) == []


@pytest.mark.parametrize("at", ["yesterday at noon", "2026-03-09", "2026-13-09T06:40", "2026-03-09T24:00", ""])
def test_a_time_that_no_question_could_be_answered_about_is_no_answer(at: str) -> None:
    """A model may say anything: what is saved must not spoil the answers about everything else."""
    zoned = code.time({"text": "Smoke", "reportedAt": "2026-03-09T06:52:10+01:00"})
    assert schema.validate(AGENTS["time"].output_schema, {"at": zoned["at"], "stated": False}) == []
    assert schema.validate(AGENTS["time"].output_schema, {"at": at, "stated": True})


def test_a_report_without_place_time_or_any_known_word() -> None:
    found = run(INGESTION, {"text": "Something odd is going on", "reportedAt": "2026-03-09T10:00"}).synthesized
    assert found == {
        "place": None,
        "at": "2026-03-09T10:00",
        "stated": False,
        "category": "other",
        "summary": "Something odd is going on",
        "severity": "low",
        "level": 1,
    }


def test_severity_depends_on_the_category_and_can_do_without_it() -> None:
    data = {"text": "It is spreading along Mill Row", "reportedAt": "2026-03-09T10:00"}
    assert code.severity(data, {"category": {"category": "fire"}})["severity"] == "medium"
    assert code.severity(data, {"category": {"category": "noise"}})["severity"] == "low"
    assert code.severity(data, {"category": None})["severity"] == "low"


def test_a_long_report_is_summed_up_in_whole_words() -> None:
    made = code.summary({"text": "word " * 100})["summary"]
    assert len(made) <= 120
    assert made.endswith("word…")


# --- query -------------------------------------------------------------------------------------------------------

INCIDENTS = [
    {"incident_id": report["id"], "fields": run(INGESTION, report_data(report)).synthesized} for report in REPORTS
]


def ask(question: str) -> synthesis.Result:
    return run(QUERY, {"question": question, "incidents": INCIDENTS})


def labelled(category: str, since: str = "") -> list[str]:
    return [
        report["id"] for report in REPORTS if report["label"]["category"] == category and report["label"]["at"] >= since
    ]


def test_how_many() -> None:
    made = ask("How many fires were there?")
    assert made.synthesized["count"] == {"count": len(labelled("fire")), "byCategory": {"fire": len(labelled("fire"))}}
    assert made.evidence["count"] == labelled("fire")
    assert ask("How many incidents were there?").synthesized["count"]["count"] == len(REPORTS)


def test_how_many_since_a_day() -> None:
    made = ask("How many floods since 2026-03-04?")
    assert made.evidence["count"] == labelled("flood", "2026-03-04")
    assert 0 < made.synthesized["count"]["count"] < len(labelled("flood"))


def test_where() -> None:
    made = ask("Where were the accidents?")
    assert made.synthesized["where"]["places"][0] == {"place": "Lantern Bridge", "count": 2}
    assert made.evidence["where"] == labelled("accident")


def test_what_changed_since_a_day() -> None:
    """The five days from the 4th to the 8th, against the days before: there are reports of three of them."""
    made = ask("What changed since 2026-03-04?").synthesized["changes"]
    after = {name: len(labelled(name, "2026-03-04")) for name in code.CATEGORIES}
    before = {name: len(labelled(name)) - after[name] for name in code.CATEGORIES}
    assert made["since"] == "2026-03-04"
    assert made["more"] == sorted(name for name in after if after[name] > before[name])
    assert made["fewer"] == sorted(name for name in after if after[name] < before[name])
    assert made["more"]
    assert made["fewer"]


def test_what_changed_is_asked_of_as_many_days_before_as_since() -> None:
    def incident(day: int) -> dict[str, Any]:
        return {"incident_id": str(day), "fields": {"category": "fire", "at": f"2026-03-{day:02}T10:00"}}

    long_ago = [incident(1)] * 5
    question = {"question": "What changed since 2026-03-10?", "incidents": [*long_ago, incident(9), incident(11)]}
    assert code.changes(question)["more"] == []
    assert code.changes(question | {"incidents": [*long_ago, incident(11)]})["more"] == ["fire"]


def test_nothing_changed_since_no_day() -> None:
    assert ask("What changed?").synthesized["changes"] == {"since": None, "more": [], "fewer": []}
