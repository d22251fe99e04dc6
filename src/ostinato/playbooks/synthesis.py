"""One answer of many. Only agents that completed have a say; the others are named in the result, with their errors.

- `by-agent`: the output of each, by its name.
- `flat`: the fields of all outputs in one object. Where agents gave different values for one field, the `first` or the
  `last` of them in the order of the plan counts, or the `list` of all different ones, or it is an `error`.
- `jsonata`: whatever the expression makes of `{agents, failed, skipped}`.
- `agent`: whatever that agent makes of what all the others answered, as if they were its parents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ostinato import errors
from ostinato.core import codec
from ostinato.playbooks.aggregation import Aggregate
from ostinato.playbooks.definition import Conflict, Playbook
from ostinato.playbooks.invocation import Error, Invocation

Evaluate = Callable[[str, Any], Any]
"""From a JSONata expression and its input to its value."""
Ask = Callable[[Invocation], Any]
"""From what an agent is called with to its output."""


class Absence(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An agent that has no part in the answer, and why."""

    agent: str
    error: Error | msgspec.UnsetType = msgspec.UNSET


class Result(msgspec.Struct, frozen=True, rename="camel"):
    synthesized: Any
    evidence: dict[str, Any]
    """What the agents based their answers on, of those that said."""
    failed: list[Absence]
    skipped: list[Absence]


def synthesize(playbook: Playbook, aggregate: Aggregate, *, evaluate: Evaluate) -> Result:
    """For all ways but `agent`, which takes a call: see `question`."""
    synthesis = playbook.synthesis
    if synthesis.expression is not None:
        return result(aggregate, evaluate(synthesis.expression, msgspec.to_builtins(aggregate)))
    outputs = {name: answer.output for name, answer in aggregate.completed.items()}
    if synthesis.conflict is not None:
        return result(aggregate, flat(outputs, synthesis.conflict))
    return result(aggregate, outputs)


def question(playbook: Playbook, aggregate: Aggregate, raw_data: Any, *, tenant_id: str) -> Invocation:
    """What the synthesizing agent is called with."""
    assert playbook.synthesis.agent is not None
    completed = aggregate.completed
    return Invocation(
        playbook.synthesis.agent,
        raw_data,
        {name: completed[name].output if name in completed else None for name in aggregate.agents},
        tenant_id,
        playbook.domain,
        {name: answer.error for name, answer in aggregate.agents.items() if isinstance(answer.error, Error)},
    )


def result(aggregate: Aggregate, synthesized: Any) -> Result:
    """The answer, with what it is based on and who has no part in it."""
    evidence = {name: answer.evidence for name, answer in aggregate.completed.items() if answer.evidence is not None}
    absent = {name: Absence(name, aggregate.agents[name].error) for name in (*aggregate.failed, *aggregate.skipped)}
    return Result(
        synthesized,
        evidence,
        [absent[name] for name in aggregate.failed],
        [absent[name] for name in aggregate.skipped],
    )


def flat(outputs: Mapping[str, Mapping[str, Any]], conflict: Conflict) -> dict[str, Any]:
    """The fields of all, in the order in which they first appear."""
    found: dict[str, dict[bytes, tuple[str, Any]]] = {}
    for agent, output in outputs.items():
        for field, value in output.items():
            # Equal is what is written alike as JSON: in Python, 1 and true would be equal too.
            found.setdefault(field, {}).setdefault(codec.encode_canonical(value), (agent, value))
    return {field: _settle(field, list(values.values()), conflict) for field, values in found.items()}


def _settle(field: str, values: list[tuple[str, Any]], conflict: Conflict) -> Any:
    if len(values) == 1 or conflict == "first":
        return values[0][1]
    if conflict == "list":
        return [value for _, value in values]
    if conflict == "error":
        (first, _), (second, _), *_ = values
        raise errors.ConflictingOutputs(
            f"agents {first!r} and {second!r} gave different values for {field!r}: give one of them another field, or "
            "say with synthesis.conflict whose counts",
            field=field,
            agents=[agent for agent, _ in values],
        )
    return values[-1][1]
