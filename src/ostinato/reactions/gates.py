"""Gates in use: members report for a key, people look at how it stands, open it or begin anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import uuid_utils

from ostinato import errors
from ostinato.core import arguments, codec, commands, events, graph, ledger, moments, rows, states
from ostinato.core.commands import gating
from ostinato.engine import engine
from ostinato.gates import arrivals, definition, instance, records, status
from ostinato.reactions import definitions
from ostinato.rules import targets
from ostinato.store import gates as gate_keys
from ostinato.store import store

KIND = "gate"
MOST_LATE = 1000
"""Reports that came too late, or failed, of which is told."""


class Gates(definitions.Kept[definition.Gate]):
    """The gates of a tenant: `app.gates`."""

    def __init__(self, app: definitions.Application) -> None:
        self._app = app
        self.shelf = definitions.Shelf(app, KIND, definition.read, definition.expressions)

    def gate(self, name: str) -> Gate:
        targets.check_name(name, "name")
        return Gate(self._app, self.shelf, name)


class Gate:
    """One gate: `app.gate("phase2-to-phase3")`."""

    def __init__(self, app: definitions.Application, shelf: definitions.Shelf[definition.Gate], name: str) -> None:
        self._app = app
        self._shelf = shelf
        self.name = name

    def __repr__(self) -> str:
        return f"Gate({self.name!r})"

    async def definition(self) -> definition.Gate:
        return (await self._shelf.get(self.name)).value

    # --- reporting --------------------------------------------------------------------------------------------------

    async def arrive(
        self,
        key: str,
        member: str,
        data: Any = None,
        *,
        status: str | None = None,
        correlation_id: str | None = None,
        depth: int = 0,
    ) -> commands.Arrived:
        """Report for a key. Durable, and the gate open if this was the last one, when this returns."""
        gate, version = await self._shelf.get(self.name)
        frozen = gate
        if gate.members == definition.DYNAMIC:
            # Who is expected is only known to the job; it refuses whoever is not.
            frozen = definition.freeze(gate, [definition.Member(member, kind="unknown")])
        now = moments.moment(self._engine.db.now())
        record = arrivals.check(frozen, key, member, data, status, correlation_id=correlation_id, arrived_at=now)
        codec.encode(record.data, "data")  # the rest of the record is of our own making
        create = None
        if gate.members != definition.DYNAMIC:
            create = self._engine.belonging(
                lambda: instance.submission(
                    gate, version, key, _new_id(), correlation_id=record.correlation_id, depth=depth
                )
            )
        late = None
        if gate.late == "trigger":
            new_id = _new_id()
            late = self._engine.belonging(lambda: instance.late_submission(gate, version, key, new_id, record, depth))()
        answer: commands.Arrived = await self._engine.execute(
            commands.Arrive(
                self.name, key, member, codec.encode_own(record), create, record.success, gate.on_failure, late, depth
            )
        )
        if answer.outcome == "late" and gate.late == "refuse":
            raise errors.GateClosed(
                f"gate {self.name!r} is {_state(answer.state)} for key {key!r}: the report of {member!r} came too "
                "late, and is recorded as such",
                jobId=answer.job_id,
            )
        return answer

    async def freeze(
        self, key: str, members: Sequence[Any], *, correlation_id: str | None = None, actor: str | None = None
    ) -> commands.Frozen:
        """Say who is expected for a key, where that is only known at run time. With nobody, the gate opens at once."""
        targets.check_key(key, "key")
        expected = arguments.items(members, "members", "members")
        if correlation_id is not None:
            graph.check_id(correlation_id, "correlation_id")
        await self._app.note(actor, "gates.freeze", f"{self.name}/{key}", members=len(expected))
        gate, version = await self._shelf.get(self.name)
        frozen = definition.freeze(gate, expected)
        create = self._engine.belonging(
            lambda: instance.submission(
                frozen, version, key, _new_id(), frozen=True, correlation_id=correlation_id, actor=actor
            )
        )()
        return await self._engine.execute(commands.Freeze(self.name, key, list(frozen.expected), create))

    async def open(self, key: str, *, reason: str, actor: str) -> list[str]:
        """Open the gate without those who are missing; the answer is who they are."""
        targets.check_key(key, "key")
        arguments.text(reason, "reason")
        arguments.text(actor, "actor")
        await self._app.note(actor, "gates.open", f"{self.name}/{key}", reason=reason)
        return await self._engine.execute(commands.OpenGate(self.name, key, actor, reason))

    async def reset(self, key: str, *, reason: str | None = None, actor: str | None = None) -> str:
        """Forget what was reported: the next report begins anew. The answer is the job that stays behind."""
        targets.check_key(key, "key")
        arguments.text_or_none(reason, "reason")
        await self._app.note(actor, "gates.reset", f"{self.name}/{key}", reason=reason)
        return await self._engine.execute(commands.ResetGate(self.name, key, actor, reason))

    # --- looking ----------------------------------------------------------------------------------------------------

    async def keys(self, *, before: str | None = None, most: int = 100) -> list[gate_keys.GateKey]:
        """The keys that somebody has reported for, the last ones first."""
        arguments.text_or_none(before, "before")
        arguments.number(most, "most", 1)
        await self._shelf.get(self.name)
        return await self._store.gate_keys(self._tenant, self.name, before=before, most=most)

    async def counts(self, job_id: str) -> gate_keys.Counts:
        """How many members count as arrived in the job of a key, and how many are expected. It is quick to ask."""
        return await self._store.gate_counts(self._tenant, arguments.text(job_id, "job_id"))

    async def status(self, key: str) -> status.Status:
        """Who has come, who is missing and since when, when it opened and by whom, and what that triggered."""
        targets.check_key(key, "key")
        job_id = await self._store.gate_job(self._tenant, self.name, key)
        job = await self._store.job(self._tenant, job_id)
        tasks = {task.task_id: task for task in await self._store.all_tasks(self._tenant, job_id)}
        if gating.OPEN not in tasks:  # it was removed while we looked
            raise errors.GateKeyNotFound(f"nobody has reported to gate {self.name!r} for key {key!r}")
        opening = await self._opening(job_id, tasks[gating.OPEN])
        gate = (await self._shelf.get(self.name, opening.version)).value
        if opening.members is not None:
            gate = definition.freeze(gate, opening.members)
        return status.view(gate, await self._instance(key, job, tasks, gate))

    async def frozen(self, key: str, gate: definition.Gate, member: str) -> definition.Gate:
        """The gate with whom it expects for a key; if it was reset meanwhile, with this member alone."""
        try:
            job_id = await self._store.gate_job(self._tenant, self.name, key)
            opening = await self._opening(job_id, await self._store.task(self._tenant, job_id, gating.OPEN))
        except errors.NotFound:
            return definition.freeze(gate, [definition.Member(member, kind="unknown")])
        return definition.freeze(gate, opening.members)

    async def _instance(
        self, key: str, job: rows.Job, tasks: dict[str, rows.Task], gate: definition.Gate
    ) -> status.Instance:
        reported, late = await self._reports(job.job_id, tasks, gate)
        opened = {name: output for name, output, _ in await self._steps(job.job_id)}.get(gating.OPENED)
        mark: dict[str, Any] = {} if opened is None else codec.decode(opened)
        told = await self._told(job.job_id, (events.GATE_OPENED, events.GATE_RESET))
        last: dict[str, Any] = codec.decode(told[-1].data) if told else {}
        opening = tasks[gating.OPEN]
        broken = opening.state == states.FAILED
        return status.Instance(
            key=key,
            job_id=job.job_id,
            state=_state(job.state) if opened is None or broken else "open",
            records=reported,
            late=late,
            since=moments.moment(job.created_at),
            opened_at=moments.moment(mark["at"]) if mark else None,
            opened_by=mark.get("by"),
            reason=last.get("reason"),
            ended_at=None
            if job.finished_at is None or (opened is not None and not broken)
            else moments.moment(job.finished_at),
            error=_error(opening),
            triggered=[
                {"target": task.task_id, "state": task.state, "result": await self._output(task), "error": _error(task)}
                for task in tasks.values()
                if task.task_id.startswith(instance.TRIGGER)
            ],
        )

    async def _reports(
        self, job_id: str, tasks: dict[str, rows.Task], gate: definition.Gate
    ) -> tuple[dict[str, records.Record], list[records.Record]]:
        """The last report of each member, and those that came too late."""
        found: dict[str, records.Record] = {}
        late: list[records.Record] = []
        for event in await self._told(job_id, (events.GATE_ARRIVAL_FAILED, events.GATE_ARRIVAL_LATE)):
            record = records.read(codec.decode(event.data)["record"])
            record = msgspec.structs.replace(record, arrived_at=moments.moment(event.at))
            if event.type == events.GATE_ARRIVAL_LATE:
                late.append(record)
            else:
                found[record.member] = record
        for name in gate.expected:
            task = tasks.get(name)
            if task is not None and task.state == states.COMPLETED and task.output is not None:
                at = None if task.finished_at is None else moments.moment(task.finished_at)
                found[name] = msgspec.structs.replace(records.read(await self._output(task)), arrived_at=at)
        return found, late

    async def _output(self, task: rows.Task) -> Any:
        if task.output is None:
            return None
        if not task.output.startswith(ledger.BLOB_MARK):
            return codec.decode(task.output)
        return codec.decode(await self._store.payload(self._tenant, task.job_id, task.output))

    async def _opening(self, job_id: str, task: rows.Task) -> instance.Opening:
        data = codec.decode(await self._store.payload(self._tenant, job_id, task.input))
        return msgspec.convert(data["opening"], instance.Opening)

    async def _steps(self, job_id: str) -> list[tuple[str, bytes, int]]:
        return await self._store.steps(self._tenant, job_id, gating.OPEN)

    async def _told(self, job_id: str, kinds: Sequence[str]) -> list[events.Event]:
        return await self._store.events(self._tenant, job_id, types=frozenset(kinds), most=MOST_LATE)

    @property
    def _engine(self) -> engine.Engine:
        return self._app.engine

    @property
    def _store(self) -> store.Store:
        return self._app.engine.store

    @property
    def _tenant(self) -> str:
        return self._app.engine.tenant


def _new_id() -> str:
    return str(uuid_utils.uuid7())


def state_of(found: gate_keys.GateKey) -> status.State:
    """How a gate stands for a key that was listed."""
    return "open" if found.opened else _state(found.state)


def _error(task: rows.Task) -> dict[str, Any] | None:
    """Why a task failed, or is to be tried again."""
    if task.error is None or task.state == states.COMPLETED:
        return None
    error: dict[str, Any] = codec.decode(task.error)
    return {name: error.get(name) for name in ("type", "message")}


def _state(job_state: str) -> status.State:
    """How a gate stands that has not opened; one that is open stays so, whatever becomes of what it triggers."""
    return _STATES[job_state]


_STATES: dict[str, status.State] = {
    states.RUNNING: "waiting",
    states.COMPLETED: "open",
    states.FAILED: "failed",
    states.TIMED_OUT: "expired",
    states.CANCELLED: "reset",
}
