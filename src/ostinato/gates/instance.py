"""The job of a gate and a key: a task for each member, one that opens the gate when all have come, and what follows."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.core import codec, graph, rulebook
from ostinato.core.commands import gating, producing, reacting
from ostinato.gates import definition
from ostinato.gates.records import Record

MEMBER = "ostinato.member"
OPEN = "ostinato.open"
DEADLINE = "ostinato.deadline"
TRIGGER = "$trigger-"


class Opening(msgspec.Struct, rename="camel", omit_defaults=True):
    """What `$open` needs to know: which gate it is, as of which version, and for a late report what was reported."""

    gate: str
    version: int
    key: str
    members: list[definition.Member] | None = None
    """Of a gate whose members were given at run time."""
    late: Record | None = None


def submission(
    gate: definition.Gate,
    version: int,
    key: str,
    job_id: str,
    *,
    frozen: bool = False,
    correlation_id: str | None = None,
    depth: int = 0,
    actor: str | None = None,
) -> producing.Submit:
    """The job in which the members report. `gate` has its members: from its definition, or `frozen` for the key."""
    opening = Opening(gate.name, version, key, list(gate.expected.values()) if frozen else None)
    members = list(gate.expected)
    tasks = [graph.TaskSpec(name, MEMBER, queue=graph.SYSTEM_QUEUE, external=True) for name in members]
    inputs = [codec.EMPTY_OBJECT] * len(tasks)
    _add_opening(gate, opening, members, depth, tasks, inputs)
    if gate.deadline is not None:
        tasks.append(
            graph.TaskSpec(
                gating.DEADLINE, DEADLINE, queue=graph.SYSTEM_QUEUE, optional=True, delay=float(gate.deadline)
            )
        )
        inputs.append(codec.encode_own({"gate": gate.name, "key": key, "then": gate.on_deadline}))
    return _submit(gate, key, job_id, tasks, inputs, correlation_id, depth, actor)


def late_submission(
    gate: definition.Gate, version: int, key: str, job_id: str, record: Record, depth: int = 0
) -> producing.Submit:
    """What a report triggers that came when the gate had opened without it."""
    tasks: list[graph.TaskSpec] = []
    inputs: list[bytes] = []
    _add_opening(gate, Opening(gate.name, version, key, late=record), [], depth, tasks, inputs)
    return _submit(gate, key, job_id, tasks, inputs, record.correlation_id, depth, None)


def _add_opening(
    gate: definition.Gate,
    opening: Opening,
    members: list[str],
    depth: int,
    tasks: list[graph.TaskSpec],
    inputs: list[bytes],
) -> None:
    tasks.append(graph.TaskSpec(gating.OPEN, OPEN, depends_on=members, queue=graph.SYSTEM_QUEUE))
    inputs.append(codec.encode_own({"opening": opening}))
    for number, target in enumerate(gate.trigger, 1):
        given: dict[str, Any] = {"about": {"gate": gate.name, "depth": depth}, "target": target}
        tasks.append(
            graph.TaskSpec(f"{TRIGGER}{number}", reacting.FIRE, depends_on=[gating.OPEN], queue=graph.SYSTEM_QUEUE)
        )
        inputs.append(codec.encode_own(given))


def _submit(
    gate: definition.Gate,
    key: str,
    job_id: str,
    tasks: list[graph.TaskSpec],
    inputs: list[bytes],
    correlation_id: str | None,
    depth: int,
    actor: str | None,
) -> producing.Submit:
    tags = {"gate": gate.name, "key": key}
    if depth:
        tags[rulebook.DEPTH_TAG] = str(depth)
    spec = graph.JobSpec(tasks, name=f"{gating.JOB}{gate.name}", correlation_id=correlation_id, tags=tags)
    return producing.Submit(job_id, spec, inputs, actor, keep=gate.retention)
