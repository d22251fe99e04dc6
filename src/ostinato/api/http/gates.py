"""Gates: describe them, report to them, look at why they have not opened, open them or begin anew."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Path

from ostinato import errors
from ostinato.api import reacting, routing
from ostinato.api.calls import Client, Cursor, Limit, Principal
from ostinato.api.http import definitions
from ostinato.api.http.definitions import Name
from ostinato.api.models import Reason
from ostinato.core import commands, cursors, scopes
from ostinato.gates import status
from ostinato.reactions import gates

routes = routing.Routes()
TAG = "gates"

Key = Annotated[
    str, Path(pattern=reacting.KEY_PATTERN, description="The business key, such as a date; a slash in it is `%2F`.")
]


async def gate_of(client: Client, name: Name) -> gates.Gate:
    """The gate in the path. Whether it is there is found out by what is done with it."""
    return client.gate(name)


Gate = Annotated[gates.Gate, Depends(gate_of)]


KIND = definitions.Kind(
    "gate",
    lambda client: client.gates.shelf,
    reacting.GateDefinition,
    reacting.Gates,
    reacting.gate_summary,
    saved="Keys that somebody has reported for keep the version of then.",
    removed="Its versions stay, and so does what was reported to it.",
)
definitions.register(routes, KIND)


# --- keys --------------------------------------------------------------------------------------------------------


@routes("GET", "/v1/gates/{name}/keys", scope=scopes.JOBS_READ, problems=(404,), tag=TAG)
async def list_gate_keys(gate: Gate, limit: Limit = 50, cursor: Cursor = None) -> reacting.GateKeyPage:
    """List the keys that somebody has reported for, the last ones first."""
    before = None if cursor is None else cursors.read(cursor, tuple[str])[0]
    found = await gate.keys(before=before, most=limit)
    more = cursors.write((found[-1].key,)) if len(found) == limit else None
    return reacting.GateKeyPage([reacting.gate_key(key) for key in found], more)


# A key may have slashes, which arrive here as such. So these come last, and what follows the last slash is the verb.


@routes("POST", "/v1/gates/{name}/{key:path}/arrivals", scope=scopes.JOBS_WRITE, problems=(404, 409), tag=TAG)
async def report_arrivals(
    client: Client, principal: Principal, gate: Gate, key: Key, body: reacting.Arrival | reacting.Arrivals
) -> reacting.Arrived | reacting.ArrivalOutcomes:
    """Report to a gate: one arrival, which may be refused, or a list, which is answered one by one."""
    about = {"arrivals": len(body)} if isinstance(body, list) else {"member": body.member}
    await client.note(principal.actor, "gates.arrive", f"{gate.name}/{key}", **about)
    if isinstance(body, list):
        return await _report(gate, key, body)
    answer = await _arrive(gate, key, body)
    return reacting.arrived(body.member, answer, await gate.counts(answer.job_id))


async def _arrive(gate: gates.Gate, key: str, given: reacting.Arrival) -> commands.Arrived:
    return await gate.arrive(key, given.member, given.data, status=given.status, correlation_id=given.correlation_id)


async def _report(gate: gates.Gate, key: str, given: Sequence[reacting.Arrival]) -> reacting.ArrivalOutcomes:
    await gate.definition()  # without it, all of them would fail in the same way
    answers = await asyncio.gather(*[_arrive(gate, key, one) for one in given], return_exceptions=True)
    told: list[reacting.ArrivalOutcome] = []
    job_id = None
    for one, answer in zip(given, answers, strict=True):
        if isinstance(answer, commands.Arrived):
            job_id = answer.job_id
            told.append(reacting.ArrivalOutcome(one.member, answer.outcome, answer.opened))
        elif isinstance(answer, (errors.NotPossible, errors.InvalidInput)):
            field = answer.details.get("field")
            told.append(reacting.ArrivalOutcome(one.member, None, False, answer.code, answer.message, field))
        else:
            raise answer
    if job_id is None:
        return reacting.ArrivalOutcomes(told, None, None, None)
    counts = await gate.counts(job_id)
    return reacting.ArrivalOutcomes(told, job_id, counts.arrived, counts.expected)


@routes("POST", "/v1/gates/{name}/{key:path}/open", scope=scopes.JOBS_WRITE, problems=(404, 409), tag=TAG)
async def open_gate(principal: Principal, gate: Gate, key: Key, body: reacting.OpenGate) -> reacting.GateOpened:
    """Open a gate without those who are missing."""
    return reacting.GateOpened(await gate.open(key, reason=body.reason, actor=principal.actor))


@routes("POST", "/v1/gates/{name}/{key:path}/reset", scope=scopes.JOBS_WRITE, problems=(404, 409), tag=TAG)
async def reset_gate(principal: Principal, gate: Gate, key: Key, body: Reason) -> reacting.GateReset:
    """Forget what was reported for a key: the next arrival begins anew."""
    return reacting.GateReset(await gate.reset(key, reason=body.reason, actor=principal.actor))


@routes("POST", "/v1/gates/{name}/{key:path}/freeze", scope=scopes.JOBS_WRITE, problems=(404, 409), tag=TAG)
async def freeze_gate(principal: Principal, gate: Gate, key: Key, body: reacting.FreezeGate) -> commands.Frozen:
    """Say who is expected for a key, where that is only known at run time."""
    return await gate.freeze(key, body.members, correlation_id=body.correlation_id, actor=principal.actor)


@routes("GET", "/v1/gates/{name}/{key:path}", scope=scopes.JOBS_READ, problems=(404,), tag=TAG)
async def show_gate_status(gate: Gate, key: Key) -> status.Status:
    """Say who has come, who is missing and since when, when the gate opened and by whom, and what that triggered."""
    return await gate.status(key)
