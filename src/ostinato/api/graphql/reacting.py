"""Gates, rules, events and external tasks, by the same handlers that HTTP has for them."""

from __future__ import annotations

from typing import Any

from ariadne import ObjectType

from ostinato import errors
from ostinato.api import models, reacting
from ostinato.api.graphql.resolvers import Call, Connection, convert, most, page
from ostinato.api.http import gates, rules, tasks
from ostinato.core import commands, graph
from ostinato.gates import status
from ostinato.reactions import events as outside

query = ObjectType("Query")
mutation = ObjectType("Mutation")


# --- looking -----------------------------------------------------------------------------------------------------


@query.field("gates")
async def list_gates(_: Any, info: Any) -> list[reacting.GateSummary]:
    return (await gates.list_gates(info.context.client)).gates


@query.field("gate")
async def find_gate(_: Any, info: Any, name: str, version: int | None = None) -> reacting.StoredDefinition | None:
    try:
        return await gates.show_gate(info.context.client, name, version)
    except errors.DefinitionNotFound:
        return None


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


@query.field("rules")
async def list_rules(_: Any, info: Any) -> list[reacting.RuleSummary]:
    return (await rules.list_rules(info.context.client)).rules


@query.field("rule")
async def find_rule(_: Any, info: Any, name: str, version: int | None = None) -> reacting.StoredDefinition | None:
    try:
        return await rules.show_rule(info.context.client, name, version)
    except errors.DefinitionNotFound:
        return None


# --- definitions -------------------------------------------------------------------------------------------------


@mutation.field("defineGate")
async def define_gate(_: Any, info: Any, definition: Any, expectedVersion: int | None = None) -> reacting.Defined:
    call: Call = info.context
    shelf = call.client.gates.shelf
    saved = await shelf.save(definition, actor=call.principal.actor, expected=expectedVersion)
    return reacting.Defined(saved.name, saved.version)


@mutation.field("removeGate")
async def remove_gate(_: Any, info: Any, name: str) -> str:
    call: Call = info.context
    return (await gates.remove_gate(call.client, call.principal, name)).name


@mutation.field("defineRule")
async def define_rule(_: Any, info: Any, definition: Any, expectedVersion: int | None = None) -> reacting.Defined:
    call: Call = info.context
    shelf = call.client.rules.shelf
    saved = await shelf.save(definition, actor=call.principal.actor, expected=expectedVersion)
    return reacting.Defined(saved.name, saved.version)


@mutation.field("removeRule")
async def remove_rule(_: Any, info: Any, name: str) -> str:
    call: Call = info.context
    return (await rules.remove_rule(call.client, call.principal, name)).name


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
