"""What an agent is called with: the data, what its parents answered, and who it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

Render = Callable[[Any, Any], Any]
"""From a template and the data for it to the value."""


class Error(msgspec.Struct, frozen=True, rename="camel"):
    """Why there is no answer. Where in the code that was is between the agent and the history of its job."""

    type: str
    message: str


class Invocation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The names are those that agents know, whatever they are written in."""

    agent_id: str
    raw_data: Any
    parent_output: dict[str, Any] | None
    """What each parent answered, by its name; null for one that did not. An agent without parents gets null."""
    tenant_id: str
    domain_id: str
    parent_error: dict[str, Error] = {}
    """Why, for the parents that did not answer."""
    execution_arn: str = ""
    """By this the execution that it is part of is found."""


def invocation(
    agent_id: str,
    raw_data: Any,
    parents: Sequence[str],
    outcomes: Mapping[str, Any],
    *,
    tenant_id: str,
    domain_id: str,
    execution_arn: str = "",
) -> Invocation:
    """`outcomes` are as a task gets them of its dependencies: an output, `{"error": …}`, or null for a skipped one."""
    answers: dict[str, Any] = {}
    failures: dict[str, Error] = {}
    for parent in parents:
        answers[parent], failure = _outcome(parent, outcomes.get(parent))
        if failure is not None:
            failures[parent] = failure
    return Invocation(agent_id, raw_data, answers or None, tenant_id, domain_id, failures, execution_arn)


def arguments(call: Invocation, template: Mapping[str, Any] | None, render: Render) -> dict[str, Any]:
    """The template filled in, or what every agent gets."""
    given: dict[str, Any] = msgspec.to_builtins(call)
    if template is not None:
        return render(template, {"parent_error": {}} | given)
    names = ("agent_id", "raw_data", "parent_output", "parent_error")
    return {name: given[name] for name in names if name in given}


class _Failed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a failed dependency looks."""

    error: Error


def _outcome(parent: str, value: Any) -> tuple[Any, Error | None]:
    if value is None:
        return None, Error("Skipped", f"agent {parent!r} gave no answer")
    try:
        return None, msgspec.convert(value, _Failed).error
    except msgspec.ValidationError:
        return value, None
