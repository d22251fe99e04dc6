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


def question(agent_id: str, aggregate: Aggregate, raw_data: Any, *, tenant_id: str, domain_id: str) -> Invocation:
    """What the synthesizing agent is called with."""
    completed = aggregate.completed
    return Invocation(
        agent_id,
        raw_data,
        {name: completed[name].output if name in completed else None for name in aggregate.agents},
        tenant_id,
        domain_id,
        {name: answer.error for name, answer in aggregate.agents.items() if isinstance(answer.error, Error)},
    )


def result(aggregate: Aggregate, synthesized: Any, own: Mapping[str, Any] | None = None) -> Result:
    """The answer, with what it is based on and who has no part in it. `own` is the evidence of who put it together."""
    evidence = {name: answer.evidence for name, answer in aggregate.completed.items() if answer.evidence is not None}
    evidence |= own or {}
    absent = {name: Absence(name, aggregate.agents[name].error) for name in (*aggregate.failed, *aggregate.skipped)}
    return Result(
        synthesized,
        evidence,
        [absent[name] for name in aggregate.failed],
        [absent[name] for name in aggregate.skipped],
    )


def flat(outputs: Mapping[str, Mapping[str, Any]], conflict: Conflict) -> dict[str, Any]:
    """The fields of all, in the order in which they first appear."""
    found: dict[str, dict[str, Any]] = {}
    for agent, output in outputs.items():
        for field, value in output.items():
            found.setdefault(field, {})[agent] = value
    return {field: _settle(field, values, conflict) for field, values in found.items()}


def _settle(field: str, values: dict[str, Any], conflict: Conflict) -> Any:
    """`values` are those of the agents that gave one, in order."""
    if conflict == "last":
        return list(values.values())[-1]
    different: dict[bytes, str] = {}
    for agent, value in values.items():
        # Equal is what is written alike as JSON: in Python, 1 and true would be equal too.
        different.setdefault(codec.encode_canonical(value), agent)
    first, *others = different.values()
    if conflict == "first" or not others:
        return values[first]
    if conflict == "list":
        return [values[agent] for agent in (first, *others)]
    raise errors.ConflictingOutputs(
        f"agents {first!r} and {others[0]!r} gave different values for {field!r}: give one of them another field, or "
        "say with synthesis.conflict whose counts",
        field=field,
        agents=[first, *others],
    )
