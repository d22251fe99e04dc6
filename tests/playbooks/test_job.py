"""The job of a playbook: which tasks it has, what they are given, and what an agent is called with."""

from typing import Any

import msgspec
import pytest

from ostinato import errors, expressions
from ostinato.core import codec, graph, ledger
from ostinato.core.commands import producing
from ostinato.playbooks import invocation, job
from ostinato.playbooks import plan as plans
from ostinato.playbooks.definition import Agent, Playbook
from tests.playbooks import support

LLM: dict[str, Any] = {"kind": "llm", "function": None, "llm": {"model": "m", "system": "s"}}
HTTP: dict[str, Any] = {"kind": "http", "function": None, "url": "https://example.com"}
KNOWN = support.agents(
    support.agent("place", queue="city", timeout=20, retry={"maxAttempts": 2}),
    support.agent("category", **HTTP),
    support.agent("severity", "category", input={"what": "{% parent_output.category.category %}"}, **LLM),
    support.agent("advice", "severity", onParentFailure="run"),
    support.agent("alarm", "severity", onParentFailure="fail"),
)
EDITOR = support.agent("editor", timeout=90, **LLM)
DATA = {"text": "Smoke on the quay", "from": "secret://api-key"}


def entries(book: Playbook, known: dict[str, Agent] = KNOWN, data: Any = DATA, limit: int | None = None) -> job.Entries:
    versions = job.Versions(7, {name: number for number, name in enumerate([*known, "editor"], 1)})
    known = known | {"editor": EDITOR}
    return job.entries(book, None, plans.plan(book, None, known), known, versions, data, limit=limit)


def tasks(book: Playbook) -> dict[str, graph.TaskSpec]:
    return {task.task_id: task for task in entries(book).tasks}


BOOK = support.playbook(KNOWN, maxConcurrency=4)


def test_every_agent_is_a_task_under_its_own_name_and_stages_are_told_apart() -> None:
    assert list(tasks(BOOK)) == [*KNOWN, "$aggregate", "$validate", "$synthesize", "$save"]
    assert not any(graph.is_id(task_id) for task_id in ("$aggregate", "$validate", "$synthesize", "$save"))


def test_a11_an_agent_runs_where_and_as_its_kind_says() -> None:
    made = tasks(BOOK)
    assert [(made[name].name, made[name].queue) for name in ("place", "category", "severity", "advice")] == [
        ("f.place", "city"),
        ("ostinato.agent.http", graph.SYSTEM_QUEUE),
        ("ostinato.agent.llm", graph.SYSTEM_QUEUE),
        ("f.advice", None),
    ]
    assert [made[name].timeout for name in ("place", "category")] == [20, 300]
    assert made["place"].retry == KNOWN["place"].retry
    assert made["place"].retry != made["category"].retry


def test_x4_agents_wait_for_their_parents_only() -> None:
    made = tasks(BOOK)
    assert [made[name].depends_on for name in KNOWN] == [[], [], ["category"], ["severity"], ["severity"]]


def test_a25_a_failed_agent_does_not_fail_the_job_and_its_dependants_follow_their_policy() -> None:
    made = tasks(BOOK)
    assert all(made[name].optional for name in KNOWN)
    assert [made[name].on_dependency_failure for name in ("severity", "advice", "alarm")] == ["skip", "run", "skip"]


def test_a12_a18_the_stages_follow_all_agents_however_they_ended_and_fail_the_job_if_they_fail() -> None:
    made = tasks(BOOK)
    stages = [made[name] for name in ("$aggregate", "$validate", "$synthesize", "$save")]
    assert [stage.depends_on for stage in stages] == [
        list(KNOWN),
        ["$aggregate"],
        ["$aggregate", "$validate"],
        ["$synthesize"],
    ]
    assert [stage.on_dependency_failure for stage in stages] == ["run", "block", "block", "block"]
    assert [stage.name for stage in stages] == [
        f"ostinato.playbook.{name}" for name in ("aggregate", "validate", "synthesize", "save")
    ]
    assert not any(stage.optional for stage in stages)
    assert {stage.queue for stage in stages} == {graph.SYSTEM_QUEUE}


def test_a13_a14_a15_a16_the_stages_have_their_own_timeouts() -> None:
    made = tasks(BOOK)
    assert [made[f"${name}"].timeout for name in ("aggregate", "validate", "synthesize", "save")] == [10, 10, 10, 30]
    quick = tasks(support.playbook(KNOWN, stages={"save": {"timeout": 1}}))
    assert quick["$save"].timeout == 1


def test_a20_a_stage_is_tried_again_twice_half_as_long_again_each_time() -> None:
    policy = tasks(BOOK)["$save"].retry
    assert policy is not None
    assert [policy.delay(n) for n in range(1, policy.max_attempts)] == [2, 3]


def test_a_synthesis_by_an_agent_takes_as_long_as_the_agent() -> None:
    made = tasks(support.playbook(KNOWN, synthesis={"how": "agent", "agent": "editor"}))
    assert "editor" not in made
    assert (made["$synthesize"].timeout, made["$synthesize"].retry) == (90, EDITOR.retry)


def test_a_playbook_that_keeps_nothing_does_not_save() -> None:
    assert list(tasks(support.playbook(KNOWN, save={"enabled": False})))[-1] == "$synthesize"


def test_a8_how_many_agents_run_at_a_time_goes_with_the_tasks() -> None:
    assert entries(BOOK).max_concurrency == 4
    assert entries(support.playbook(KNOWN)).max_concurrency == 10


# --- what the tasks are given ------------------------------------------------------------------------------------


def test_a_job_keeps_the_versions_that_it_began_with() -> None:
    pins = job.given(codec.decode(entries(BOOK).inputs[0])).pins
    assert (pins.playbook, pins.version, pins.type, pins.domain_id) == ("book", 7, "ingestion", "incidents")
    assert {name: member.version for name, member in pins.agents.items()} == {
        "place": 1, "category": 2, "severity": 3, "advice": 4, "alarm": 5
    }  # fmt: skip
    assert (pins.graph, pins.graph_version, pins.synthesizer_version) == (None, None, None)
    edges = support.graph("category>severity")
    book = support.playbook(KNOWN, graph="g", synthesis={"how": "agent", "agent": "editor"})
    known = KNOWN | {"editor": EDITOR}
    versions = job.Versions(1, dict.fromkeys(known, 1) | {"editor": 9}, graph=3)
    made = job.entries(book, edges, plans.plan(book, edges, known), known, versions, None)
    pins = job.given(codec.decode(made.inputs[-1])).pins
    assert (pins.graph, pins.graph_version, pins.synthesizer_version) == ("g", 3, 9)


def test_the_input_tells_an_agent_all_that_it_needs() -> None:
    given = job.given(codec.decode(entries(BOOK).inputs[0]))
    assert given.raw_data == DATA
    assert given.pins.agents["severity"].parents == ["category"]
    assert given.template("severity") == {"what": "{% parent_output.category.category %}"}
    assert given.template("place") is None


def test_data_from_outside_is_never_taken_for_a_reference_to_a_secret() -> None:
    """The worker replaces every string of an input that starts with `secret://`."""

    def strings(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [found for part in value.values() for found in strings(part)]
        return [value] if isinstance(value, str) else []

    for data in (DATA, "secret://api-key", ["secret://api-key"]):
        made = entries(BOOK, KNOWN | {"place": support.agent("place", input={"key": "secret://api-key"})}, data)
        stored = codec.decode(made.inputs[0])
        assert not [text for text in strings(stored) if text.startswith("secret://")]
        assert job.given(stored).raw_data == data


def test_data_is_stored_once_however_many_agents_read_it() -> None:
    made = entries(BOOK, data={"text": "x" * 100_000})
    assert len(set(made.inputs)) == 1
    book = ledger.Ledger("tenant", 0, spill_bytes=32 * 1024)
    spec = graph.JobSpec(made.tasks, name=f"{job.JOB}book")
    producing.Submit("job-1", spec, made.inputs).apply(book)
    assert len(book.blobs) == 1
    assert len(book.tasks) == len(KNOWN) + 4


def test_too_much_data_is_refused_with_its_size() -> None:
    with pytest.raises(errors.PayloadTooLarge, match="data has"):
        entries(BOOK, data="x" * 100, limit=100)
    assert entries(BOOK, data="x" * 98, limit=100)


def test_nobody_else_names_a_job_like_that() -> None:
    with pytest.raises(errors.InvalidId, match="as the engine's own jobs do"):
        graph.read_job({"name": f"{job.JOB}book", "tasks": [{"taskId": "a", "name": "f"}]})


# --- what an agent is called with --------------------------------------------------------------------------------


def never(template: Any, data: Any) -> Any:
    raise AssertionError(template)


def render(template: Any, data: Any) -> Any:
    return expressions.render(template, data, "input")


def call(parents: list[str], outcomes: dict[str, Any]) -> invocation.Invocation:
    return invocation.invocation("me", DATA, parents, outcomes, tenant_id="city", domain_id="incidents")


def test_a8_an_agent_without_parents_gets_the_data_and_null() -> None:
    assert invocation.arguments(call([], {}), None, never) == {
        "agent_id": "me",
        "raw_data": DATA,
        "parent_output": None,
    }


def test_a11_an_agent_gets_what_its_parents_answered_by_their_names() -> None:
    given = invocation.arguments(call(["a", "b"], {"a": {"x": 1}, "b": {"y": 2}, "other": {}}), None, never)
    assert given["parent_output"] == {"a": {"x": 1}, "b": {"y": 2}}
    assert "parent_error" not in given


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        ({"error": {"type": "ValueError", "message": "no", "traceback": "…"}}, ("ValueError", "no")),
        (None, ("Skipped", "agent 'a' gave no answer")),
    ],
)
def test_a25_an_agent_that_runs_after_a_failed_parent_gets_null_and_the_error_beside(
    outcome: Any, error: tuple[str, str]
) -> None:
    given = invocation.arguments(call(["a", "b"], {"a": outcome, "b": {"y": 2}}), None, never)
    assert given["parent_output"] == {"a": None, "b": {"y": 2}}
    assert given["parent_error"] == {"a": {"type": error[0], "message": error[1]}}


def test_an_output_that_speaks_of_errors_is_still_an_output() -> None:
    for output in ({"error": "none"}, {"error": {"type": "a", "message": "b"}, "level": 1}, {"error": {}}):
        assert call(["a"], {"a": output}).parent_output == {"a": output}


def test_a_template_makes_the_input_of_what_there_is() -> None:
    template = {
        "text": "{% raw_data.text %}",
        "known": "{% parent_output.category.category %}",
        "lost": "{% $keys(parent_error) %}",
        "who": ["{% agent_id %}", "{% tenant_id %}", "{% domain_id %}"],
    }
    outcomes = {"category": {"category": "fire"}, "time": {"error": {"type": "E", "message": "m"}}}
    assert invocation.arguments(call(["category", "time"], outcomes), template, render) == {
        "text": "Smoke on the quay",
        "known": "fire",
        "lost": "time",
        "who": ["me", "city", "incidents"],
    }


def test_an_invocation_is_json() -> None:
    made = call(["a"], {"a": None})
    assert msgspec.json.decode(msgspec.json.encode(made), type=invocation.Invocation) == made
