"""The inbox of a tenant: what people are asked, and deciding on it."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato import errors, views
from ostinato import secrets as secrets_
from ostinato.core import approvals, arguments, codec, commands, filters, moments
from ostinato.core.commands import asking
from ostinato.engine import scribe
from ostinato.store import approvals as inbox

if TYPE_CHECKING:
    from ostinato.app import Ostinato


LONGEST = 300
"""Characters of what is taken for an id, a key or a decision."""


class DecisionView(msgspec.Struct, frozen=True, rename="camel"):
    """What somebody has decided."""

    by: str
    at: datetime.datetime
    decision: str
    notes: str | None
    edited: bool
    """They have changed the payload: what others decided before was about another one, and does not count."""


class ApprovalView(msgspec.Struct, frozen=True, rename="camel"):
    """What people are, or were, asked."""

    job_id: str
    task_id: str
    key: str
    """The step of a function that asks; empty for a task that is an approval."""
    version: int
    """Changes with what is asked. Name it in a decision that is about nothing else."""
    state: str
    """`waiting`, `withdrawn`, `expired`, or what was decided."""
    title: str
    payload: Any
    decisions: list[str]
    """What can be decided."""
    quorum: int
    approvals: int
    """How many have approved so far."""
    asked: list[str] | None
    """Who may decide; null is everybody."""
    not_submitter: bool
    allow_edit: bool
    submitted_by: str | None
    requested_at: datetime.datetime
    due_at: datetime.datetime | None
    """When others are asked, or `onDeadline` is done."""
    on_deadline: str
    escalated_at: datetime.datetime | None
    decided_at: datetime.datetime | None
    made: list[DecisionView]


class ApprovalDetail(msgspec.Struct, frozen=True, rename="camel"):
    """An approval, and what came out of the tasks that its own depends on, by task id."""

    approval: ApprovalView
    outputs: dict[str, Any]


def approval_view(found: inbox.Found) -> ApprovalView:
    row, payload = found
    document = approvals.read(row.document)
    approval = document.approval
    return ApprovalView(
        row.job_id,
        row.task_id,
        row.key,
        row.version,
        row.state,
        approval.title,
        payload,
        list(approval.decisions),
        approval.quorum,
        document.approvals(),
        approval.asked(escalated=row.escalated_at is not None),
        approval.not_submitter,
        approval.allow_edit,
        row.submitted_by,
        moments.moment(row.requested_at),
        views.moment(row.due_at),
        approval.on_deadline,
        views.moment(row.escalated_at),
        views.moment(row.decided_at),
        [DecisionView(one.by, moments.moment(one.at), one.decision, one.notes, one.edited) for one in document.made],
    )


class Approvals:
    """`app.approvals`: `await app.approvals.decide(job_id, task_id, "approve", actor="ann")`."""

    def __init__(self, app: Ostinato) -> None:
        self._app = app

    async def list(
        self,
        *,
        state: str | None = approvals.WAITING,
        job_id: str | None = None,
        task_id: str | None = None,
        approver: str | None = None,
        called: str | None = None,
        cursor: str | None = None,
        most: int = 50,
    ) -> filters.Page[ApprovalView]:
        """What is waiting for people, oldest first; with another `state` what became so, with None all.

        `approver` leaves what this person may decide; `called` is another name by which they may be asked."""
        for field, value in {"state": state, "job_id": job_id, "task_id": task_id}.items():
            if value is not None:
                arguments.text(value, field, LONGEST)
        for name in (approver, called):
            if name is not None:
                approvals.check_actor(name)
        if task_id is not None and job_id is None:
            raise errors.InvalidInput("task_id needs the job_id that it belongs to", field="job_id")
        who = None if approver is None else (approver, called)
        wanted = filters.ApprovalFilter(state=state, job_id=job_id, task_id=task_id, approver=who)
        found = await self._app.engine.store.approvals(self._app.tenant, wanted, cursor=cursor, most=most)
        return filters.Page([approval_view(one) for one in found], found.cursor)

    async def get(self, job_id: str, task_id: str, *, key: str | None = None) -> ApprovalDetail:
        """The approval that a task waits for, or asked for last, with the outputs of what the task depends on."""
        _check_place(job_id, task_id, key)
        target, tenant = self._app.engine.store, self._app.tenant
        found = await target.approval(tenant, job_id, task_id, key)
        outputs = await target.dependency_outputs(tenant, (job_id, task_id), None)
        return ApprovalDetail(approval_view(found), outputs)

    @scribe.telling_refusals
    async def decide(
        self,
        job_id: str,
        task_id: str,
        decision: str,
        *,
        actor: str,
        notes: str | None = None,
        payload: Any = ...,
        key: str | None = None,
        version: int | None = None,
        called: str | None = None,
    ) -> commands.Decided:
        """Decide on what a task asks, under the name of `actor`. The same decision again changes nothing.

        A `payload` replaces what it is about, where that is allowed. With the `version` that was looked at, the
        decision is refused if something else is asked by now."""
        _check_place(job_id, task_id, key)
        approvals.check_actor(actor)
        approvals.check_notes(notes)
        arguments.text(decision, "decision", LONGEST)
        if called is not None:
            approvals.check_actor(called)
        if version is not None:
            arguments.number(version, "version")
        if decision not in (approvals.APPROVE, approvals.REJECT):
            item_id = await self._app.pipelines.reviewed_by_task(job_id, task_id)
            if item_id is not None:  # such a decision begins the item of a pipeline again
                given = msgspec.UNSET if payload is ... else payload
                return await self._app.pipelines.decide(
                    item_id, decision, actor=actor, notes=notes, payload=given, called=called
                )
        limit = self._app.options.max_payload_bytes
        edited = None if payload is ... else codec.encode(payload, "the payload of the decision", limit)
        command = commands.Decide(
            job_id,
            task_id,
            decision,
            actor,
            secrets_.hide_in_document(notes),
            None if edited is None else secrets_.hide_in_payload(edited),
            key,
            version,
            called,
        )
        about = {"decision": decision, "key": key, "edited": edited is not None or None}
        await self._app.note(actor, "approvals.decide", f"{job_id}/{task_id}", **about)
        return await self._app.engine.execute(command)

    async def is_about_tenant(self, job_id: str) -> bool:
        """Whether people are asked in this job what the tenant may spend."""
        found = await self._app.engine.store.job(self._app.tenant, job_id)
        return found.name.startswith(asking.TENANT)

    async def waiting(self) -> inbox.Waiting:
        """How much waits for people, and since when the oldest does (in microseconds)."""
        return await self._app.engine.store.count_waiting_approvals(self._app.tenant)


def _check_place(job_id: Any, task_id: Any, key: Any) -> None:
    """What names an approval, whether there is one or not."""
    arguments.text(job_id, "job_id", LONGEST)
    arguments.text(task_id, "task_id", LONGEST)
    if key is not None:
        arguments.text(key, "key", LONGEST)
