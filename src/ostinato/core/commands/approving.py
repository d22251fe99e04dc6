"""People decide, or let the time pass in which they could have."""

from __future__ import annotations

import msgspec

from ostinato import errors
from ostinato.core import allowed, approvals, codec, events, items, ledger, needs, rows, states
from ostinato.core.commands import consequences, passing


class Decided(msgspec.Struct, frozen=True, rename="camel"):
    """What became of a decision."""

    state: str
    """Of the approval: `waiting` until enough people have approved, then what was decided."""
    again: bool
    """The same person had decided the same before: nothing has changed."""
    approvals: int
    """How many people have approved so far."""
    quorum: int
    task_state: str


class Decide(msgspec.Struct, gc=False):
    """Somebody decides on the approval that a task waits for."""

    job_id: str
    task_id: str
    decision: str
    actor: str
    notes: str | None = None
    payload: bytes | None = None
    """What it is to be about from now on, if that was edited."""
    key: str | None = None
    """Which of a function's approvals; the one that waits if left out."""
    version: int | None = None
    """What the person has seen: refused if something else is asked now."""
    called: str | None = None
    """Another name of the actor, by which an approval may ask for them."""

    def needs(self, wanted: needs.Needs) -> None:
        want(wanted, (self.job_id, self.task_id))

    def apply(self, book: ledger.Ledger) -> Decided:
        task = book.task((self.job_id, self.task_id))
        row = self._row(book, task)
        document = approvals.read(row.document)
        if self._made_before(row, document):
            return _answer(task, row, document, again=True)
        self._check(book, task, row, document)
        item = _item(book, task)
        if item is not None:
            allowed.ask(book.course_of(item), item)
            if self.decision not in (approvals.APPROVE, approvals.REJECT):
                raise errors.NotPossible(
                    f"{self.decision!r} begins the item of this job again: decide on the item", decision=self.decision
                )
        payload = _payload(book, task, row) if self.payload is None else self.payload
        self._record(book, task, row, document)
        outcome = document.outcome()
        if outcome is not None:
            made = document.standing()
            if outcome != approvals.APPROVE:
                made = [one for one in made if one.decision == outcome]
            _conclude(book, task, row, document, outcome, approvals.result(outcome, made, book.now, payload))
        return _answer(task, row, document)

    def _row(self, book: ledger.Ledger, task: rows.Task) -> rows.Approval:
        known = book.approvals.get(task.key, {})
        if self.key is not None:
            row = known.get(self.key)
        else:  # the one that waits, or was decided last
            row = max(known.values(), key=lambda row: (row.state == approvals.WAITING, row.version), default=None)
        if row is None:
            raise errors.ApprovalNotFound(
                f"nobody is asked about task {task.task_id!r} of job {task.job_id!r}, which is {task.state}",
                jobId=task.job_id,
                taskId=task.task_id,
            )
        return row

    def _made_before(self, row: rows.Approval, document: approvals.Document) -> bool:
        mine = [made for made in document.standing() if made.by == self.actor]
        if not mine or mine[0].decision != self.decision:
            return False
        return self.payload is None or (mine[0].edited and self.payload == row.given)

    def _check(self, book: ledger.Ledger, task: rows.Task, row: rows.Approval, document: approvals.Document) -> None:
        approval = document.approval
        if row.state != approvals.WAITING:
            raise errors.ApprovalDecided(
                f"{approval.title!r} is no longer waiting: it is {approvals.shown(row.state)}", state=row.state
            )
        if self.version is not None and self.version != row.version:
            raise errors.ApprovalDecided(
                f"{approval.title!r} has changed since version {self.version} (now {row.version}): look at it again",
                state=row.state,
                version=row.version,
            )
        if self.decision not in approval.decisions:
            raise errors.InvalidInput(
                f"decision must be one of {', '.join(approval.decisions)}, not {self.decision!r}", field="decision"
            )
        approvals.check_notes(self.notes)
        approvals.check_may_decide(
            document,
            escalated=row.escalated_at is not None,
            submitted_by=row.submitted_by,
            actor=approvals.check_actor(self.actor),
            called=self.called,
            added_by=passing.adders(book, task) if approval.not_submitter else (),
        )
        if self.payload is not None and not approval.allow_edit:
            raise errors.InvalidInput(
                f"payload must be left out: {approval.title!r} does not allow to edit it", field="payload"
            )
        for made in document.standing():
            if made.by == self.actor:
                raise errors.ApprovalDecided(
                    f"{self.actor!r} has decided {made.decision!r} before, and that stands", state=row.state
                )

    def _record(self, book: ledger.Ledger, task: rows.Task, row: rows.Approval, document: approvals.Document) -> None:
        edited = self.payload is not None
        document.made.append(approvals.Made(self.actor, book.now, self.decision, self.notes, edited))
        data = consequences.event_data(
            key=row.key, decision=self.decision, by=self.actor, notes=self.notes, edited=edited or None
        )
        if self.payload is not None:
            data = data[:-1] + b',"payload":' + self.payload + b"}"
        job = book.jobs[task.job_id]
        book.emit(job, events.APPROVAL_DECIDED, task, data)
        if self.payload is not None:
            row.given, row.payload = self.payload, book.payload(task.job_id, self.payload)
            row.version = job.last_seq
        row.document = codec.encode_own(document)
        book.change_approval(row)
        item = _item(book, task)
        if item is not None:
            self._review(book, item)

    def _review(self, book: ledger.Ledger, item: items.Item) -> None:
        """The item of a pipeline was decided on: it shows by whom, and is what it was edited to."""
        item.reviewed_by, item.reviewed_at = self.actor, book.now
        book.attribute(item, self.actor, self.notes)
        if self.payload is not None:
            book.new_payloads[item.item_id] = self.payload
        book.changed_items[item.item_id] = item


def _item(book: ledger.Ledger, task: rows.Task) -> items.Item | None:
    """The item of a pipeline, if this task is its review. Steps may ask people too: that is not about the item."""
    item = book.items.get(task.job_id)
    return item if item is not None and consequences.is_review(book, item, task) else None


def want(wanted: needs.Needs, key: rows.TaskKey) -> None:
    wanted.failure_of(key)
    wanted.approvals.add(key)


def come_due(book: ledger.Ledger, task: rows.Task, key: str) -> bool:
    """Nobody, or not enough people, have decided in time: ask others, or end it."""
    row = book.approvals.get(task.key, {}).get(key)
    if row is None or row.state != approvals.WAITING:
        return False
    document = approvals.read(row.document)
    payload = _payload(book, task, row)
    del book.timers[task.key]
    item = _item(book, task)
    if item is not None and item.status not in book.course_of(item).open:
        _withdraw(book, task, item)
    elif row.escalated_at is None and document.approval.escalate is not None:
        _escalate(book, task, row, document.approval, document.approval.escalate)
    else:
        _expire(book, task, row, document, payload)
    return True


def _withdraw(book: ledger.Ledger, task: rows.Task, item: items.Item) -> None:
    """Somebody has put the item to an end, past its review."""
    why = consequences.event_data(reason=f"item {item.item_id!r} is over")
    book.move(task, states.CANCELLED, events.TASK_CANCELLED, why)
    book.fail_dependants(task)
    book.settle(book.jobs[task.job_id])


def _escalate(
    book: ledger.Ledger, task: rows.Task, row: rows.Approval, approval: approvals.Approval, more: approvals.Escalation
) -> None:
    row.escalated_at = book.now
    row.due_at = approval.next_due(row.requested_at, escalated=True)
    row.asked = approvals.named(approval.asked(escalated=True))
    data = codec.encode_own({"key": row.key, "to": more.to, "dueAt": row.due_at})
    book.emit(book.jobs[task.job_id], events.APPROVAL_ESCALATED, task, data)
    book.set_timer(rows.Timer(task.job_id, task.task_id, "approval", "", row.key, row.due_at))
    book.change_approval(row)


def _expire(
    book: ledger.Ledger, task: rows.Task, row: rows.Approval, document: approvals.Document, payload: bytes
) -> None:
    then = document.approval.on_deadline
    data = codec.encode_own({"key": row.key, "onDeadline": then})
    book.emit(book.jobs[task.job_id], events.APPROVAL_EXPIRED, task, data)
    outcome = approvals.EXPIRED if then == "fail" else then
    made = document.standing()
    result = approvals.result(outcome, made, book.now, payload, by_deadline=True)
    _conclude(book, task, row, document, outcome, result)


def _conclude(
    book: ledger.Ledger,
    task: rows.Task,
    row: rows.Approval,
    document: approvals.Document,
    outcome: str,
    result: bytes,
) -> None:
    row.state, row.due_at, row.decided_at = outcome, None, book.now
    book.change_approval(row)
    if row.key:
        _wake(book, task, row.key, outcome, result)
    elif outcome == approvals.REJECT:
        message = approvals.rejection(document.approval.title, codec.decode(result))
        consequences.fail_for_good(book, task, consequences.make_failure("Rejected", message))
    elif outcome == approvals.EXPIRED:
        message = approvals.expiry(document.approval.title)
        consequences.fail_for_good(book, task, consequences.make_failure("ApprovalExpired", message))
    else:
        consequences.complete(book, task, result)


def _wake(book: ledger.Ledger, task: rows.Task, key: str, outcome: str, result: bytes) -> None:
    """The function goes on. A rejection is recorded so that it stands until somebody has the task run again: then the
    function asks again."""
    if outcome in (approvals.REJECT, approvals.EXPIRED):
        key = f"{key}!{task.attempt_base}"
    book.record_step(task, key, result)
    book.make_pending(task, data=consequences.event_data(name=task.name, approval=outcome))


def _payload(book: ledger.Ledger, task: rows.Task, row: rows.Approval) -> bytes:
    """What people decide about, in full."""
    if row.given is not None:
        return row.given
    data = book.inputs.get(task.key, task.input)
    if data.startswith(ledger.BLOB_MARK):  # it was submitted in this very transaction
        data = book.blobs[(task.job_id, data[1:])]
    codec.check_open(data)
    return data


def _answer(task: rows.Task, row: rows.Approval, document: approvals.Document, *, again: bool = False) -> Decided:
    return Decided(row.state, again, document.approvals(), document.approval.quorum, task.state)
