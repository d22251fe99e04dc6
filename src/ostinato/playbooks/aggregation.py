"""What became of all agents, in one record: the answers of those that have one, and why the others have none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, cast

import msgspec

from ostinato.core import documents, rows, states
from ostinato.playbooks.definition import EVIDENCE, Agent
from ostinato.playbooks.invocation import Error
from ostinato.playbooks.plan import Plan

INVALID_OUTPUT = "InvalidOutput"
PARENT_FAILED = "ParentFailed"
NOT_RUN = "NotRun"


class Outcome(msgspec.Struct, frozen=True):
    """How the task of an agent ended."""

    state: str
    attempts: int = 0
    output: Any = None
    failure: rows.Failure | None = None


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """What one agent came to. An `invalid` one has an output, but not such as its schema says: it counts as failed."""

    status: Literal["completed", "failed", "skipped", "invalid"]
    attempts: int
    output: Any = None
    evidence: Any = None
    error: Error | msgspec.UnsetType = msgspec.UNSET


class Aggregate(msgspec.Struct, frozen=True, rename="camel"):
    """The agents are in the order of the plan."""

    agents: dict[str, Answer]
    failed: list[str]
    skipped: list[str]

    @property
    def completed(self) -> dict[str, Answer]:
        return {name: answer for name, answer in self.agents.items() if answer.status == "completed"}


def aggregate(plan: Plan, agents: Mapping[str, Agent], outcomes: Mapping[str, Outcome]) -> Aggregate:
    """Parents come before those that depend on them, so that it is known what became of them."""
    answers: dict[str, Answer] = {}
    for level in plan.levels:
        for name in level:
            outcome = outcomes.get(name, Outcome(states.BLOCKED))
            blamed = next((parent for parent in plan.parents[name] if answers[parent].status != "completed"), None)
            answers[name] = _answer(agents[name], outcome, blamed)
    return collect(answers)


def collect(answers: dict[str, Answer]) -> Aggregate:
    """The record of these answers, with who failed and who was left out."""
    return Aggregate(answers, _with(answers, ("failed", "invalid")), _with(answers, ("skipped",)))


def invalid(answer: Answer, message: str) -> Answer:
    """The same answer, marked as one that is not to be used."""
    return msgspec.structs.replace(answer, status="invalid", error=Error(INVALID_OUTPUT, message))


def _answer(agent: Agent, outcome: Outcome, blamed: str | None) -> Answer:
    if outcome.state == states.COMPLETED:
        return _given(agent, outcome)
    if outcome.state == states.SKIPPED:
        if blamed is None:  # somebody wanted it so
            return Answer("skipped", outcome.attempts)
        because = Error(PARENT_FAILED, f"agent {agent.name!r} needs {blamed!r}, which gave no usable answer")
        status = "failed" if agent.on_parent_failure == "fail" else "skipped"
        return Answer(status, outcome.attempts, error=because)
    if outcome.failure is not None:
        error = Error(outcome.failure.type, outcome.failure.message)
    else:
        error = Error(NOT_RUN, f"agent {agent.name!r} did not come to an end: its task is {outcome.state}")
    return Answer("failed", outcome.attempts, error=error)


def _given(agent: Agent, outcome: Outcome) -> Answer:
    """Evidence is kept beside the output, unless the schema says that it is a part of it."""
    given: Any = outcome.output
    if not isinstance(given, dict):
        answer = Answer("completed", outcome.attempts, given)
        return invalid(answer, f"an agent must answer with an object, not {documents.short(given)}")
    output = dict(cast("dict[str, Any]", given))
    evidence = output.get(EVIDENCE)
    if EVIDENCE not in agent.outputs:
        output.pop(EVIDENCE, None)
    return Answer("completed", outcome.attempts, output, evidence)


def _with(answers: Mapping[str, Answer], statuses: Collection[str]) -> list[str]:
    return [name for name, answer in answers.items() if answer.status in statuses]
