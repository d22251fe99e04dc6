"""Gates: members report for a key, and when everybody has, what the gate triggers is queued in the same transaction.

The job of a gate and a key has an external task for each member, `$open` that depends on all of them, and perhaps
`$deadline`, which waits for its time beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from ostinato import errors
from ostinato.core import codec, events, ledger, needs, rows, states
from ostinato.core.commands import consequences, producing

JOB: Final = "gate:"
"""How the jobs of gates are named: this, and the name of the gate."""
OPEN: Final = "$open"
DEADLINE: Final = "$deadline"
OPENED: Final = "opened"
"""The step of `$open` that says when the gate opened, and by whom."""

_LATE: Final = "late:"

Outcome = Literal["arrived", "failed", "duplicate", "late"]


class Arrived(msgspec.Struct, frozen=True, rename="camel"):
    """What became of a report. `opened` says that this very one has opened the gate."""

    job_id: str
    outcome: Outcome
    opened: bool
    state: str
    """How the job of the gate stands now."""


class Frozen(msgspec.Struct, frozen=True, rename="camel"):
    job_id: str
    created: bool


class Arrive(msgspec.Struct, gc=False):
    """A member reports for a key. The first to do so creates the job, unless `create` is None."""

    gate: str
    key: str
    member: str
    record: bytes
    """What is kept of the report, as JSON."""
    create: Callable[[], producing.Submit] | None
    """Makes the job. It may be large, and is there already for all but the first report."""
    success: bool = True
    on_failure: Literal["fail", "wait", "partial"] = "wait"
    when_late: producing.Submit | None = None
    """What a report triggers that comes when the gate is open without it."""
    depth: int = 0
    """How many rules and gates have led to it."""

    def needs(self, wanted: needs.Needs) -> None:
        _want(wanted, self.gate, self.key, self.member)
        if self.when_late is not None:
            wanted.new_tasks += len(self.when_late.spec.tasks)
            wanted.late_reports.add((self.gate, self.key, self.member))
        if not self.success and self.on_failure == "fail":
            wanted.whole_gates.add((self.gate, self.key))

    def apply(self, book: ledger.Ledger) -> Arrived:
        job_id = book.gate_jobs.get((self.gate, self.key))
        if job_id is None:
            job_id = self._begin(book)
        job = book.jobs[job_id]
        member = book.tasks.get((job_id, self.member))
        if member is None:
            raise errors.UnknownMember(
                f"{self.member!r} is not among the members that gate {self.gate!r} expects for key {self.key!r}",
                field="member",
            )
        if member.state in (states.COMPLETED, states.FAILED):
            return Arrived(job_id, "duplicate", False, job.state)
        if member.state != states.WAITING:
            return self._late(book, job)
        if not self.success:
            return self._failed(book, job, member)
        return Arrived(job_id, "arrived", self._take(book, job, member), job.state)

    def _take(self, book: ledger.Ledger, job: rows.Job, member: rows.Task) -> bool:
        before = book.tasks[(job.job_id, OPEN)].state
        consequences.complete(book, member, self.record)
        return _opened(book, job, before, self.gate, self.key, self.member)

    def _begin(self, book: ledger.Ledger) -> str:
        if self.create is None:
            raise errors.GateNotFrozen(
                f"nobody has said yet who is expected at gate {self.gate!r} for key {self.key!r}: freeze its members "
                "first"
            )
        return _begin(book, self.gate, self.key, self.create())

    def _failed(self, book: ledger.Ledger, job: rows.Job, member: rows.Task) -> Arrived:
        book.emit(job, events.GATE_ARRIVAL_FAILED, member, self._told())
        if self.on_failure == "partial":  # it counts as a report, though not as a success
            return Arrived(job.job_id, "failed", self._take(book, job, member), job.state)
        if self.on_failure == "fail":
            failure = consequences.make_failure("ArrivalFailed", f"{self.member} has reported that it did not succeed")
            consequences.fail_for_good(book, member, failure)
            if job.state == states.RUNNING:
                consequences.cancel_open_tasks(book, job, consequences.event_data(reason=failure.message))
                book.settle(job)
        return Arrived(job.job_id, "failed", False, job.state)

    def _late(self, book: ledger.Ledger, job: rows.Job) -> Arrived:
        book.emit(job, events.GATE_ARRIVAL_LATE, data=self._told())
        if self.when_late is not None:
            about = late_key(job.job_id, self.member)
            if about not in book.jobs_by_idempotency_key:  # what it triggers, it triggers once
                self.when_late.spec.idempotency_key = about
                self.when_late.apply(book)
        return Arrived(job.job_id, "late", False, job.state)

    def _told(self) -> bytes:
        about = consequences.event_data(gate=self.gate, key=self.key, member=self.member, depth=self.depth or None)
        return about[:-1] + b',"record":' + self.record + b"}"


class Freeze(msgspec.Struct, gc=False):
    """Say who is expected at a gate for a key. With nobody, it opens at once."""

    gate: str
    key: str
    members: Sequence[str]
    create: producing.Submit

    def needs(self, wanted: needs.Needs) -> None:
        _want(wanted, self.gate, self.key)
        wanted.whole_gates.add((self.gate, self.key))

    def apply(self, book: ledger.Ledger) -> Frozen:
        job_id = book.gate_jobs.get((self.gate, self.key))
        if job_id is None:
            job_id = _begin(book, self.gate, self.key, self.create)
            if not self.members:
                _opened(book, book.jobs[job_id], states.BLOCKED, self.gate, self.key, None)
            return Frozen(job_id, True)
        expected = {task.task_id for task in book.tasks_of(job_id) if ledger.is_external(task)}
        if expected != set(self.members):
            raise errors.GateFrozen(
                f"the members of gate {self.gate!r} for key {self.key!r} are already set, and are others: "
                "reset the key to begin anew"
            )
        return Frozen(job_id, False)


class OpenGate(msgspec.Struct, gc=False):
    """Open a gate without those who are missing. Answers who they are."""

    gate: str
    key: str
    by: str
    reason: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        _want(wanted, self.gate, self.key)
        wanted.whole_gates.add((self.gate, self.key))

    def apply(self, book: ledger.Ledger) -> list[str]:
        job = _gate_job(book, self.gate, self.key)
        opening = book.tasks[(job.job_id, OPEN)]
        if opening.state != states.BLOCKED or job.state != states.RUNNING:
            how = "open already" if job.state in (states.RUNNING, states.COMPLETED) else f"closed ({job.state})"
            raise errors.NotPossible(f"gate {self.gate!r} is {how} for key {self.key!r}", jobId=job.job_id)
        missing = [task for task in book.tasks_of(job.job_id) if _is_missing(task)]
        data = consequences.event_data(reason=self.reason or "opened without it", actor=self.by)
        for task in missing:
            book.move(task, states.SKIPPED, events.TASK_SKIPPED, data)
        consequences.stand_anew(book, missing, run=False)
        names = [task.task_id for task in missing]
        _opened(book, job, states.BLOCKED, self.gate, self.key, self.by, reason=self.reason, missing=names)
        return names


class ExpireGate(msgspec.Struct, gc=False):
    """The time for reporting is over. Whoever is still missing has missed it."""

    gate: str
    key: str

    def needs(self, wanted: needs.Needs) -> None:
        _want(wanted, self.gate, self.key)
        wanted.whole_gates.add((self.gate, self.key))

    def apply(self, book: ledger.Ledger) -> bool:
        job = _gate_job(book, self.gate, self.key)
        if job.state != states.RUNNING or book.tasks[(job.job_id, OPEN)].state != states.BLOCKED:
            return False
        consequences.cancel_open_tasks(book, job, consequences.event_data(reason="deadline"))
        book.end_job(job, states.TIMED_OUT)
        return True


class ResetGate(msgspec.Struct, gc=False):
    """Forget what was reported for a key: the next report begins anew. The job stays, as history."""

    gate: str
    key: str
    actor: str | None = None
    reason: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        _want(wanted, self.gate, self.key)
        wanted.whole_gates.add((self.gate, self.key))

    def apply(self, book: ledger.Ledger) -> str:
        job = _gate_job(book, self.gate, self.key)
        if job.state == states.RUNNING:
            consequences.cancel_open_tasks(book, job, consequences.event_data(reason="gate reset"))
            book.end_job(job, states.CANCELLED, reason="gate reset", actor=self.actor)
        data = consequences.event_data(gate=self.gate, key=self.key, actor=self.actor, reason=self.reason)
        book.emit(job, events.GATE_RESET, data=data)
        book.assign_gate(self.gate, self.key, None)
        return job.job_id


def place_of(job: rows.Job) -> tuple[str, str] | None:
    """The gate and the key that a job was made for, if it was."""
    if not job.name.startswith(JOB):
        return None
    tags = codec.decode(job.tags)
    return tags["gate"], tags["key"]


def check_rerun(book: ledger.Ledger, job: rows.Job, tasks: Sequence[rows.Task]) -> None:
    """Refuse to wait again for members whose reports could not come here, or would change nothing any more."""
    place = place_of(job)
    members = [task for task in tasks if ledger.is_external(task)]
    if place is None or not members:
        return
    gate, key = place
    if book.gate_jobs.get(place) != job.job_id:
        raise errors.NotPossible(
            f"gate {gate!r} was reset for key {key!r}, and nobody reports to this job any more: report to the gate, "
            "which begins anew",
            jobId=job.job_id,
        )
    skipped = [task.task_id for task in members if task.state == states.SKIPPED]
    if skipped:
        raise errors.NotPossible(
            f"gate {gate!r} has opened without {skipped[0]!r} for key {key!r}: its report is late now", jobId=job.job_id
        )


def late_key(job_id: str, member: str) -> str:
    """By this the job is found that a late report has triggered, so that it is not triggered again."""
    return f"{_LATE}{job_id}:{member}"


def is_late(job: rows.Job) -> bool:
    """Whether a late report has triggered it."""
    return job.idempotency_key is not None and job.idempotency_key.startswith(_LATE)


def _want(wanted: needs.Needs, gate: str, key: str, *members: str) -> None:
    wanted.gate_keys.setdefault((gate, key), {OPEN, DEADLINE}).update(members)


def _gate_job(book: ledger.Ledger, gate: str, key: str) -> rows.Job:
    job_id = book.gate_jobs.get((gate, key))
    if job_id is None:
        raise errors.GateKeyNotFound(f"nobody has reported to gate {gate!r} for key {key!r}")
    return book.jobs[job_id]


def _begin(book: ledger.Ledger, gate: str, key: str, create: producing.Submit) -> str:
    create.apply(book)
    book.assign_gate(gate, key, create.job_id)
    return create.job_id


def _is_missing(task: rows.Task) -> bool:
    """Also if somebody has cancelled it: nothing else will let the gate go on without it."""
    return task.state not in (states.COMPLETED, states.SKIPPED) and ledger.is_external(task)


def _opened(
    book: ledger.Ledger, job: rows.Job, before: str, gate: str, key: str, by: str | None, **more: object
) -> bool:
    """Whether the gate has just opened. If so, say it, note it for what follows, and let the deadline be."""
    opening = book.tasks[(job.job_id, OPEN)]
    if before != states.BLOCKED or opening.state == states.BLOCKED:
        return False
    told = {"gate": gate, "key": key, "by": by} | more
    book.emit(job, events.GATE_OPENED, data=consequences.event_data(**told))
    book.record_step(opening, OPENED, codec.encode_own({"at": book.now, "by": by}))
    deadline = book.tasks.get((job.job_id, DEADLINE))
    if deadline is not None and deadline.state in (states.WAITING, states.PENDING):
        book.move(deadline, states.SKIPPED, events.TASK_SKIPPED, consequences.event_data(reason="the gate is open"))
    return True
