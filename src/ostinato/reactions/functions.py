"""The engine's own functions: opening a gate, the end of its time, and doing what a target says.

They are tried again like any other function, so each of them may run more than once; what it does is the same once.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ostinato import errors, expressions, indexing, outgoing, secrets, threads, tracing
from ostinato.context import Context
from ostinato.core import codec, commands, executions, graph, moments, rulebook
from ostinato.core.commands import gating, reacting
from ostinato.engine import engine
from ostinato.gates import aggregate, definition, instance, records
from ostinato.reactions import callouts, events, gates, rules

DEEPEST = 16
"""So many rules and gates may follow from one another; more are taken for a circle."""
HOPELESS = (errors.JobNotFound, errors.JobEnded, errors.GateClosed, errors.IdempotencyConflict)
"""What will be no different however often it is tried."""


_AGAIN = "redriven"
"""What a gate has come to says so if it was put together again: then its targets are those of now, too."""


class About(msgspec.Struct):
    """On whose behalf a target is fired."""

    depth: int = 0
    rule: str | None = None
    gate: str | None = None


class OwnFunctions:
    def __init__(self, running: engine.Engine, calls: outgoing.Caller) -> None:
        self.engine = running
        self._calls = calls
        self._gates = gates.Gates(self)
        self._rules = rules.Rules(self)

    async def note(self, actor: str | None, action: str, target: str = "", /, **details: Any) -> None:
        """What rules and gates do is in the history of their jobs."""

    # --- gates ------------------------------------------------------------------------------------------------------

    async def open(self, ctx: Context, opening: dict[str, Any]) -> dict[str, Any]:
        """What all the members have reported comes to. It is what the targets of the gate are given."""
        said = msgspec.convert(opening, instance.Opening)
        gate = (await self._gates.shelf.get(said.gate, said.version)).value
        if ctx.redriven:
            gate = await self._corrected_gate(gate)
        if said.members is not None:
            gate = definition.freeze(gate, said.members)
        elif said.late is not None and gate.members == definition.DYNAMIC:
            gate = await self._gates.gate(said.gate).frozen(said.key, gate, said.late.member)
        if said.late is not None:
            reported = {said.late.member: said.late}
            mark: dict[str, Any] = {"at": None, "by": said.late.member}
        else:
            outputs = await ctx.dependency_outputs.load()
            reported = {name: records.read(output) for name, output in outputs.items() if output is not None}
            steps = await self.engine.store.steps(self.engine.tenant, ctx.job_id, gating.OPEN)
            marks = [codec.decode(output) for name, output, _ in steps if name == gating.OPENED]
            mark = marks[0] if marks else {}
        ids = records.correlation_ids(reported[name] for name in gate.expected if name in reported)
        opened_at = mark.get("at")
        evaluate = functools.partial(_evaluate, ctx.tenant)
        return {
            "gate": gate.name,
            "key": said.key,
            "late": said.late is not None,
            "members": msgspec.to_builtins(reported),
            "aggregate": await threads.run(lambda: aggregate.aggregate(gate, reported, evaluate)),
            "correlationId": ids[0] if ids else None,
            "correlationIds": ids,
            "openedAt": None if opened_at is None else moments.text(opened_at),
            "openedBy": mark.get("by"),
        } | ({_AGAIN: True} if ctx.redriven else {})

    async def _corrected_gate(self, gate: definition.Gate) -> definition.Gate:
        """Who runs it again has corrected how reports are put together, perhaps. Who is expected stays as it was."""
        with contextlib.suppress(errors.DefinitionNotFound):
            now = (await self._gates.shelf.get(gate.name)).value
            return msgspec.structs.replace(gate, aggregate=now.aggregate)
        return gate

    async def deadline(self, ctx: Context, gate: str, key: str, then: str) -> bool:
        """The time for reporting is over: open the gate with what there is, or close it."""
        with contextlib.suppress(errors.NotPossible, errors.GateKeyNotFound):  # it has opened meanwhile, or begun anew
            if then == "partial":
                await self.engine.execute(commands.OpenGate(gate, key, "deadline", "the deadline has passed"))
            else:
                await self.engine.execute(commands.ExpireGate(gate, key))
            return True
        return False

    # --- targets ----------------------------------------------------------------------------------------------------

    async def fire(
        self, ctx: Context, about: dict[str, Any], target: dict[str, Any], data: dict[str, Any] | None = None
    ) -> Any:
        """Do what a target says, with the event of a rule, or with what a gate has come to."""
        whose = msgspec.convert(about, About)
        if whose.depth >= DEEPEST:
            raise errors.TerminalError(
                f"{DEEPEST} rules and gates have led to this one: they seem to follow each other in a circle"
            )
        about_it: dict[str, Any] = (await ctx.dependency_outputs.load())[gating.OPEN] if data is None else data
        if ctx.redriven or about_it.get(_AGAIN):
            target = await self._corrected(ctx, whose, target)
        [(kind, template)] = target.items()
        now = self.engine.db.now() / 1e6
        filled = await threads.run(lambda: _render(template, about_it, kind, now, ctx.tenant))
        with tracing.incoming(ctx.lease.trace_parent):
            return await self._do(ctx, whose, kind, template, filled, about_it)

    async def _do(
        self, ctx: Context, whose: About, kind: str, template: Any, filled: Any, about_it: dict[str, Any]
    ) -> Any:
        try:
            match kind:
                case "job":
                    _refuse_references(template, filled, kind)
                    return await self._start_job(ctx, whose, filled, about_it)
                case "gate":
                    return await self._report(whose, filled, about_it)
                case "signal":
                    return await self._signal(ctx, whose, filled)
                case "webhook":
                    return await self._call(ctx, template, filled, about_it)
                case "index":
                    return await self._index(filled)
                case _:
                    raise errors.TerminalError(f"{kind!r} is no target")
        except HOPELESS as error:
            raise errors.TerminalError(error.message, **error.details) from error

    async def _corrected(self, ctx: Context, whose: About, target: dict[str, Any]) -> dict[str, Any]:
        """Whoever runs a target again has corrected it before, perhaps: as it stands in the definition now, if it
        does."""
        try:
            if whose.rule is not None:
                now = (await self._rules.shelf.get(whose.rule)).value.targets
            else:
                now = (await self._gates.shelf.get(whose.gate or "")).value.trigger
        except errors.DefinitionNotFound:
            return target
        number = int(ctx.task_id.rpartition("-")[2])
        return msgspec.to_builtins(now[number - 1]) if number <= len(now) else target

    async def _start_job(self, ctx: Context, whose: About, document: Any, data: Mapping[str, Any]) -> Any:
        made: dict[str, Any] = {"idempotencyKey": ctx.idempotency_key, "correlationId": _correlation_id(data)}
        made |= {name: value for name, value in document.items() if value is not None}
        made["tags"] = made.get("tags", {}) | {rulebook.DEPTH_TAG: str(whose.depth + 1)}
        by = f"rule:{whose.rule}" if whose.rule is not None else f"gate:{whose.gate}"
        # A worker may register the functions tomorrow: until then the job waits, and says so. No caller could be told.
        command = await self.engine.prepare_job(made, by, check=False)
        try:
            with tracing.submission(self.engine.tracer, self.engine.tenant, command):
                answer = await self.engine.execute(command)
        except errors.IdempotencyConflict as error:
            if made["idempotencyKey"] != ctx.idempotency_key:
                raise
            # It was this very task that started it, at another moment, which may be part of what it was given.
            return {"jobId": error.details["jobId"], "created": False}
        return {"jobId": answer.job_id, "created": answer.created}

    async def _report(self, whose: About, filled: Any, data: Mapping[str, Any]) -> Any:
        given = filled.get("correlationId")
        answer = await self._gates.gate(filled["name"]).arrive(
            _as_key(filled["key"]),
            filled["member"],
            filled.get("data"),
            status=filled.get("status"),
            correlation_id=_correlation_id(data) if given is None else given,
            depth=whose.depth + 1,
        )
        return msgspec.to_builtins(answer)

    async def _signal(self, ctx: Context, whose: About, filled: Any) -> Any:
        payload = codec.encode(filled.get("payload"), "the payload of the signal", self.engine.max_payload_bytes)
        key = ctx.idempotency_key
        command = commands.SendSignal(filled["jobId"], filled["name"], key, payload, depth=whose.depth + 1)
        return {"jobId": filled["jobId"], "woken": await self.engine.execute(command)}

    async def _call(self, ctx: Context, template: Any, filled: Any, data: Mapping[str, Any]) -> Any:
        callouts.check_allowed(self.engine)
        body = codec.encode(filled.get("body", data), "the body of the call", self.engine.max_payload_bytes)
        # Only the rule or gate itself may ask for secrets, and not what it was told by others.
        asked = template.get("headers", {})
        secret = template.get("secret")
        answer = await self._calls.post(
            filled["url"],
            body,
            headers={
                name: await callouts.secret(self.engine, value) if asked[name] == value else value
                for name, value in filled.get("headers", {}).items()
            },
            secret=None if secret is None else await callouts.secret(self.engine, secret),
            idempotency_key=ctx.idempotency_key,
        )
        return {"status": answer.status}

    async def _index(self, filled: Any) -> Any:
        """A rule that writes to the index has chosen: no tags are asked for."""
        event = executions.status_change(filled)
        reported = executions.read_event(event, stages=self.engine.options.index_stages)
        await events.record(self.engine, [events.stamped(self.engine, indexing.written(filled))])
        await self.engine.store.index_executions(self.engine.tenant, [reported.execution])
        return {"executionArn": reported.execution.execution_arn}


def named(own: OwnFunctions) -> dict[str, Any]:
    """By the names of the functions."""
    return {instance.OPEN: own.open, instance.DEADLINE: own.deadline, reacting.FIRE: own.fire}


def _evaluate(whose: str, expression: str, data: Any) -> Any:
    return expressions.Expression(expression, "aggregate").evaluate(data, whose=whose)


def _render(template: Any, data: Any, kind: str, now: float, whose: str) -> Any:
    """A target filled in. A correlation id that comes to nothing is as good as none: it is that of the data then."""
    name = "correlationId"
    if not isinstance(template.get(name), str):
        return expressions.render(template, data, kind, now, whose=whose)
    rest = {field: value for field, value in template.items() if field != name}
    filled = expressions.render(rest, data, kind, now, whose=whose)
    named = expressions.render(template[name], data, f"{kind}.{name}", now, default=None, whose=whose)
    return filled | {name: named}


def _correlation_id(data: Mapping[str, Any]) -> str | None:
    """Of what a gate has come to, or of the event that a rule has heard of."""
    found: Any = data.get("correlationId")
    return found if graph.is_id(found) else reacting.correlation_id(data)


def _refuse_references(template: Any, filled: Any, field: str) -> None:
    """A worker takes `secret://NAME` in an input for a wish. Only who wrote the target may have one: whoever sends an
    event would else be given any secret that it can name."""
    if isinstance(template, str):
        if template != filled and _has_reference(filled):
            raise errors.TerminalError(
                f"{field} has come to a reference to a secret ({secrets.PREFIX}…): only the target itself may ask for "
                "one"
            )
    elif isinstance(template, dict):
        for name, part in cast("dict[str, Any]", template).items():
            _refuse_references(part, filled[name], f"{field}.{name}")
    elif isinstance(template, list):
        for index, part in enumerate(cast("list[Any]", template)):
            _refuse_references(part, filled[index], f"{field}[{index}]")


def _has_reference(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        return any(_has_reference(item) for item in cast("list[Any]", value))
    return isinstance(value, str) and value.startswith(secrets.PREFIX)


def _as_key(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
