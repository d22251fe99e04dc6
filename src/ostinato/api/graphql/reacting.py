"""Gates, events and external tasks, by the same handlers that HTTP has for them."""

from __future__ import annotations

from typing import Any

from ariadne import ObjectType

from ostinato import errors
from ostinato.api import models, reacting
from ostinato.api.graphql.resolvers import Call, Connection, convert, most, page
from ostinato.api.http import gates, tasks
from ostinato.core import commands, graph
from ostinato.gates import status
from ostinato.reactions import events as outside

query = ObjectType("Query")
mutation = ObjectType("Mutation")


# --- looking -----------------------------------------------------------------------------------------------------


@query.field("gateStatus")
async def find_status(_: Any, info: Any, gate: str, key: str) -> status.Status | None:
    try:
        return await info.context.client.gate(gate).status(key)
    except errors.GateKeyNotFound:
        return None


@query.field("gateKeys")
async def list_keys(_: Any, info: Any, gate: str, first: int, after: str | None = None) -> Connection:
    found = await gates.list_gate_keys(info.context.client.gate(gate), most(first), after)
    return page(found.keys, found.next_cursor)


# --- reporting ---------------------------------------------------------------------------------------------------


@mutation.field("arrive")
async def arrive(_: Any, info: Any, gate: str, key: str, **given: Any) -> Any:
    call: Call = info.context
    body = convert(given, reacting.Arrival)
    return await gates.report_arrivals(call.client, call.principal, call.client.gate(gate), key, body)


@mutation.field("openGate")
async def open_gate(_: Any, info: Any, gate: str, key: str, reason: str) -> list[str]:
    call: Call = info.context
    body = convert({"reason": reason}, reacting.OpenGate)
    return (await gates.open_gate(call.principal, call.client.gate(gate), key, body)).missing


@mutation.field("resetGate")
async def reset_gate(_: Any, info: Any, gate: str, key: str, **given: Any) -> str:
    call: Call = info.context
    body = convert(given, models.Reason)
    return (await gates.reset_gate(call.principal, call.client.gate(gate), key, body)).job_id


@mutation.field("freezeGate")
async def freeze_gate(_: Any, info: Any, gate: str, key: str, **given: Any) -> commands.Frozen:
    call: Call = info.context
    body = convert(given, reacting.FreezeGate)
    return await gates.freeze_gate(call.principal, call.client.gate(gate), key, body)


@mutation.field("postEvents")
async def post_events(_: Any, info: Any, events: Any) -> list[outside.Received]:
    call: Call = info.context
    return await call.client.post_events(events, actor=call.principal.actor)


# --- external tasks ----------------------------------------------------------------------------------------------


@mutation.field("completeTask")
async def complete_task(_: Any, info: Any, jobId: str, taskId: str, output: Any = None) -> str:
    call: Call = info.context
    body = reacting.CompleteTask(output)
    return (await tasks.complete_task(call.job(jobId), call.principal, graph.check_id(taskId, "taskId"), body)).state


@mutation.field("failTask")
async def fail_task(_: Any, info: Any, jobId: str, taskId: str, **given: Any) -> str:
    call: Call = info.context
    body = convert(given, reacting.FailTask)
    return (await tasks.fail_task(call.job(jobId), call.principal, graph.check_id(taskId, "taskId"), body)).state


ALL = (query, mutation)
