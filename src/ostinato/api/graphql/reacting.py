"""Gates, rules, events and external tasks, by the same handlers that HTTP has for them."""

from __future__ import annotations

from typing import Any

from ariadne import ObjectType

from ostinato import errors
from ostinato.api import models, reacting
from ostinato.api.graphql.resolvers import Call, Connection, convert, most, page
from ostinato.api.http import gates, tasks
from ostinato.core import commands, graph
from ostinato.gates import status
from ostinato.reactions import definitions
from ostinato.reactions import events as outside

AnyShelf = definitions.Shelf[Any]
query = ObjectType("Query")
mutation = ObjectType("Mutation")


# --- looking -----------------------------------------------------------------------------------------------------


@query.field("gates")
async def list_gates(_: Any, info: Any) -> list[reacting.GateSummary]:
    return [reacting.gate_summary(found) for found in await info.context.client.gates.shelf.all()]


@query.field("gate")
async def find_gate(_: Any, info: Any, name: str, version: int | None = None) -> reacting.StoredDefinition | None:
    return await _stored(info.context.client.gates.shelf, name, version)


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
    return [reacting.rule_summary(found) for found in await info.context.client.rules.shelf.all()]


@query.field("rule")
async def find_rule(_: Any, info: Any, name: str, version: int | None = None) -> reacting.StoredDefinition | None:
    return await _stored(info.context.client.rules.shelf, name, version)


# --- definitions -------------------------------------------------------------------------------------------------


@mutation.field("defineGate")
async def define_gate(_: Any, info: Any, definition: Any, expectedVersion: int | None = None) -> reacting.Defined:
    return await _define(info.context, info.context.client.gates.shelf, definition, expectedVersion)


@mutation.field("removeGate")
async def remove_gate(_: Any, info: Any, name: str) -> str:
    await info.context.client.gates.shelf.remove(name, actor=info.context.principal.actor)
    return name


@mutation.field("defineRule")
async def define_rule(_: Any, info: Any, definition: Any, expectedVersion: int | None = None) -> reacting.Defined:
    return await _define(info.context, info.context.client.rules.shelf, definition, expectedVersion)


@mutation.field("removeRule")
async def remove_rule(_: Any, info: Any, name: str) -> str:
    await info.context.client.rules.shelf.remove(name, actor=info.context.principal.actor)
    return name


async def _stored(shelf: AnyShelf, name: str, version: int | None) -> reacting.StoredDefinition | None:
    try:
        return reacting.definition(await shelf.stored(name, version))
    except errors.DefinitionNotFound:
        return None


async def _define(call: Call, shelf: AnyShelf, definition: Any, expected: int | None) -> reacting.Defined:
    saved = await shelf.save(definition, actor=call.principal.actor, expected=expected)
    return reacting.Defined(saved.name, saved.version)


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
