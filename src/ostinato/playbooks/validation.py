"""Whether the agents answered what their schemas say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ostinato import errors
from ostinato.playbooks import aggregation
from ostinato.playbooks.aggregation import Aggregate
from ostinato.playbooks.definition import MOST_OUTPUTS, Agent

Validate = Callable[[Mapping[str, Any], Any], Iterable[tuple[str, str]]]
"""From a JSON Schema and a value to what is wrong with it: paths in the value, and what there is to say of them."""

MOST_ERRORS = 20
"""Of one agent: who sees so many does not need the others."""


class Violation(msgspec.Struct, frozen=True, rename="camel"):
    agent: str
    path: str
    message: str


class Report(msgspec.Struct, frozen=True, rename="camel"):
    valid: bool
    errors: list[Violation]


def validate(aggregate: Aggregate, agents: Mapping[str, Agent], validator: Validate) -> Report:
    """Of those that answered. That others did not is no matter of schemas."""
    found = [
        Violation(name, path, message)
        for name, answer in aggregate.agents.items()
        for path, message in _violations(agents[name], answer, validator)
    ]
    return Report(not found, found)


def marked(aggregate: Aggregate, report: Report) -> Aggregate:
    """The aggregate in which answers that violate their schemas count as failed. What they said is still to be seen."""
    first: dict[str, Violation] = {}
    for violation in report.errors:
        first.setdefault(violation.agent, violation)
    return aggregation.collect(
        {
            name: aggregation.invalid(answer, _sentence(first[name]))
            if name in first and answer.status == "completed"
            else answer
            for name, answer in aggregate.agents.items()
        }
    )


def check_answered(aggregate: Aggregate, agents: Mapping[str, Agent], validator: Validate) -> None:
    """Refuse an aggregate in which agents have failed and no other has an answer that can be used."""
    for name, answer in aggregate.completed.items():
        if not any(_violations(agents[name], answer, validator)):
            return
    answers = marked(aggregate, validate(aggregate, agents, validator))
    if not answers.failed:
        return  # somebody has skipped them all
    why = [f"{name!r}: {found.error.message}" for name, found in answers.agents.items() if found.error]
    raise errors.NoAnswer(
        f"none of the {len(answers.agents)} agents gave an answer that can be used: {'; '.join(why)}",
        agents=answers.failed,
    )


def _violations(agent: Agent, answer: aggregation.Answer, validator: Validate) -> Iterator[tuple[str, str]]:
    if answer.status == "invalid" and answer.error is not msgspec.UNSET:
        yield "", answer.error.message
    elif answer.status == "completed":
        if len(answer.output) > MOST_OUTPUTS:
            yield "", f"the output has {len(answer.output):,} fields: an agent answers at most {MOST_OUTPUTS}"
        for count, error in enumerate(validator(agent.output_schema, answer.output), 1):
            if count > MOST_ERRORS:
                return
            yield error


def _sentence(violation: Violation) -> str:
    return f"{violation.path}: {violation.message}" if violation.path else violation.message
