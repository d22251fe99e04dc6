"""The audit: proves, on a live database, that the rows are the fold of the events and that the invariants hold.

Each job is read on one snapshot, so it may run beside workers. The names of the invariants: I1 entered once, I2 nothing
stuck, I3 fired once, I4 outputs never change, I5 nothing runs after it completed, I7 no gaps, I8 rows = fold(events),
I10 legal moves only, I11 timers never early, I12 attempts within the policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ostinato import errors
from ostinato.core import approvals, budgets, codec, commands, fold, ledger, rows, states, usage
from ostinato.core.commands import gating
from ostinato.store import beside, snapshots, store, triggers

_SAID = (snapshots.Unreadable, errors.DecryptionFailed)
"""Errors that say by themselves what cannot be read."""


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    invariant: str
    tenant: str
    job_id: str
    task_id: str | None
    message: str


class Report(msgspec.Struct, rename="camel"):
    jobs: int = 0
    tasks: int = 0
    events: int = 0
    problems: list[Problem] = msgspec.field(default_factory=lambda: list[Problem]())


async def audit(target: store.Store, tenant: str | None = None) -> Report:
    """Look at every job of one tenant, or of all of them, at what is kept beside them, and at the triggers."""
    report = Report()
    for owner in [tenant] if tenant is not None else await target.tenants():
        after = ""
        while page := await target.job_ids(owner, after, 200):
            for job_id in page:
                await _audit_job(target, owner, job_id, report)
            after = page[-1]
        await _look_beside(target, owner, report)
    for message in await target.db.read(lambda: triggers.problems(target.db.dialect), snapshot=False):
        report.problems.append(Problem("I10", "", "", None, message))
    return report


async def _look_beside(target: store.Store, tenant: str, report: Report) -> None:
    """What belongs to no job that there is, and what is kept of items and results outside of jobs."""
    for job_id, tables in (await beside.orphans(target.db, tenant)).items():
        message = f"its row is missing, and there is something of it in {', '.join(tables)}"
        report.problems.append(Problem("I8", tenant, job_id, None, message))
    async for invariant, message in beside.of_items(target.db, tenant):
        report.problems.append(Problem(invariant, tenant, "", None, message))
    async for invariant, message in beside.of_results(target.db, tenant):
        report.problems.append(Problem(invariant, tenant, "", None, message))


async def _audit_job(target: store.Store, tenant: str, job_id: str, report: Report) -> None:
    try:
        snapshot = await target.db.read(lambda: snapshots.read(tenant, job_id))
    except snapshots.UNREADABLE as error:
        message = str(error) if isinstance(error, _SAID) else snapshots.cannot("it", error)
        report.problems.append(Problem("I4", tenant, job_id, None, message))
        return
    if snapshot is None:
        return  # pruned meanwhile
    report.jobs += 1
    report.tasks += len(snapshot.tasks)
    report.events += snapshot.folded.last_seq
    for invariant, task_id, message in _problems(snapshot):
        report.problems.append(Problem(invariant, tenant, job_id, task_id, message))


Found = tuple[str, str | None, str]


def _problems(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    for broken in snapshot.folded.broken:
        yield broken.invariant, broken.task_id, broken.message
    if snapshot.lost:
        yield "I4", snapshot.lost[0].task_id if len(snapshot.lost) == 1 else None, snapshots.missing(snapshot.lost)
    yield from _readable(_of_job(snapshot), None, "its row")
    for task in snapshot.tasks.values():
        yield from _readable(_of_task(snapshot, task), task.task_id, "its row")
    yield from _readable(_of_others(snapshot), None, "what is kept beside its tasks")
    yield from _readable(_approval_problems(snapshot), None, "what people were asked")


def _readable(found: Iterator[Found], task_id: str | None, what: str) -> Iterator[Found]:
    """What is found until something cannot be read, which is a problem too."""
    try:
        yield from found
    except snapshots.UNREADABLE as error:
        yield "I4", task_id, snapshots.cannot(what, error)


def _of_job(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    yield from _job_problems(snapshot)
    yield from _contradictions(snapshot)


def _of_task(snapshot: snapshots.Snapshot, task: rows.Task) -> Iterator[Found]:
    yield from _task_problems(snapshot, task)
    yield from _task_contradictions(snapshot, task)
    yield from _place_problems(snapshot, task)


def _of_others(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    yield from _stray_rows(snapshot)
    yield from _gate_problems(snapshot)
    yield from _review_problems(snapshot)
    yield from _usage_problems(snapshot)


def _contradictions(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    """The job is what was asked for, ended when its events say so, and got the signals that were sent to it."""
    job, folded = snapshot.job, snapshot.folded
    yield from _changed(job, folded.asked, None)
    if job.finished_at != folded.finished_at:
        yield "I8", None, "the row and the events disagree about when it ended"
    if codec.decode(job.tags) != folded.tags:
        yield "I8", None, "the row and the events disagree about its tags"
    if snapshot.tags != folded.tags:
        yield "I8", None, "it is not found by the tags that its events say"
    yield from _signal_problems(snapshot)
    if folded.deadline_at not in (fold.UNKNOWN, job.deadline_at):
        yield "I8", None, "the row and the events disagree about its deadline"


def _signal_problems(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    rows, told = snapshot.signals, snapshot.folded.signals
    if rows.keys() != told.keys():
        yield "I8", None, "the rows and the events disagree about which signals it got"
    elif not snapshot.ordered:  # then it is known how many were taken, but not which
        if sorted(name for (name, _), taken in rows.items() if taken) != sorted(
            name for (name, _), taken in told.items() if taken
        ):
            yield "I8", None, "the rows and the events disagree about how many of its signals were taken"
    else:
        for (name, signal_id), taken in rows.items():
            if taken != told[(name, signal_id)]:
                how = "was taken by a task" if taken else "was taken by no task"
                yield "I8", None, f"the row says that signal {name!r} ({signal_id}) {how}, and the events do not"


def _task_contradictions(snapshot: snapshots.Snapshot, task: rows.Task) -> Iterator[Found]:
    told = snapshot.folded.tasks.get(task.task_id)
    if told is None:
        return
    yield from _changed(task, told.asked, task.task_id)
    if not snapshot.inputs.get(task.task_id, True):
        yield "I8", task.task_id, "the input in the row is not the one that was recorded"
    if task.state == told.state == states.FAILED and told.error not in (None, _shown(task.error)):
        yield "I8", task.task_id, "the error in the row is not the one that was recorded"
    if task.state in states.TASK_ENDED and task.state == told.state and task.finished_at != told.ended_at:
        yield "I8", task.task_id, "the row and the events disagree about when it ended"


def _changed(row: rows.Job | rows.Task, asked: dict[str, Any], task_id: str | None) -> Iterator[Found]:
    for column, told in asked.items():
        value = getattr(row, column)
        if value != told:
            yield "I8", task_id, f"the row says that {column} is {value!r}, and the events {told!r}"


def _job_problems(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    job, folded = snapshot.job, snapshot.folded
    if job.last_seq != folded.last_seq:
        yield "I7", None, f"the row says {job.last_seq} events and there are {folded.last_seq}"
    if job.state != folded.state:
        yield "I8", None, f"the row says {job.state} and the events say {folded.state}"
    if (job.failure_detected_at is not None) != folded.failure_detected:
        yield "I8", None, "the row and the events disagree about whether a failure was detected"
    if snapshot.tasks.keys() != folded.tasks.keys():
        yield "I8", None, "the rows and the events disagree about which tasks there are"
    counted = _count(snapshot.tasks)
    for name, count in counted.items():
        if getattr(job, name) != count:
            yield "I8", None, f"the counter {name} is {getattr(job, name)} and there are {count}"
    in_turn = sum(task.state in (states.PENDING, states.PROCESSING) for task in snapshot.tasks.values())
    if job.max_parallel is not None and job.turns != in_turn:
        yield "I8", None, f"{job.turns} of its tasks have a turn and {in_turn} are pending or processing"
    if job.max_parallel is not None and in_turn > job.max_parallel:
        yield "I12", None, f"{in_turn} of its tasks are pending or processing and {job.max_parallel} may be"
    turn_waiters = any(timer.kind == "turn" for timer in snapshot.timers.values())
    budget_waiters = any(timer.kind == "budget" for timer in snapshot.timers.values())
    if job.max_parallel is not None and turn_waiters and in_turn < job.max_parallel and not budget_waiters:
        yield "I2", None, "a task waits for its turn and nobody is in its way"
    if job.state == states.RUNNING and counted["active"] == 0:
        yield "I2", None, "the job is running and nothing in it can run"
    if job.state in states.JOB_ENDED and counted["active"]:
        yield "I2", None, f"the job is {job.state} and {counted['active']} of its tasks are still active"


def _count(tasks: dict[str, rows.Task]) -> dict[str, int]:
    names = (
        "total", "blocked", "active", "processing", "waiting", "completed", "failed", "tolerated", "skipped",
        "cancelled",
    )  # fmt: skip
    counts: dict[str, int] = dict.fromkeys(names, 0)
    for task in tasks.values():
        counts["total"] += 1
        if task.state in states.TASK_ACTIVE:
            counts["active"] += 1
            if task.state != states.PENDING:
                counts[task.state] += 1
        elif task.state == states.FAILED:
            counts["tolerated" if task.optional else "failed"] += 1
        else:
            counts[task.state] += 1
    return counts


def _task_problems(snapshot: snapshots.Snapshot, task: rows.Task) -> Iterator[Found]:
    told = snapshot.folded.tasks.get(task.task_id)
    if told is None:
        return
    if (task.state, task.attempt) != (told.state, told.attempt):
        yield (
            "I8",
            task.task_id,
            f"the row says {task.state}, attempt {task.attempt}; the events {told.state}, attempt {told.attempt}",
        )
    ups = snapshot.edges.get(task.task_id, [])
    if sorted(ups) != sorted(told.depends_on) or len(ups) != task.dependencies:
        yield "I8", task.task_id, "the rows and the events disagree about its dependencies"
    if task.state == states.COMPLETED and _shown(task.output) != told.output:
        yield "I4", task.task_id, "the output in the row is not the one that was recorded"
    if task.state == states.BLOCKED:
        open_ones = sum(not _satisfied(snapshot.tasks[up], task) for up in ups if up in snapshot.tasks)
        if open_ones != task.open_dependencies or open_ones == 0:
            yield "I8", task.task_id, f"it counts {task.open_dependencies} open dependencies and has {open_ones}"
    if task.attempt - task.attempt_base > max(task.max_attempts, 1):
        yield "I12", task.task_id, f"it used {task.attempt - task.attempt_base} of {task.max_attempts} attempts"
    recorded = {key for owner, key in snapshot.steps if owner == task.task_id}
    if recorded != told.steps:
        yield "I8", task.task_id, "the rows and the events disagree about its finished steps"


def _satisfied(dependency: rows.Task, task: rows.Task) -> bool:
    outcome = commands.outcome_of(dependency, task.policy)
    return outcome == "ok" or (outcome == "failed" and task.policy == "run")


def _shown(output: bytes | None) -> Any:
    if output is None:
        return None
    if output.startswith(ledger.BLOB_MARK):
        return {"$blob": output[1:].hex()}
    return codec.decode(output)


def _place_problems(snapshot: snapshots.Snapshot, task: rows.Task) -> Iterator[Found]:
    """A pending task is queued, a processing one leased, a waiting one has its timer; otherwise nobody comes for it."""
    queued = (task.task_id, task.ready_at) in snapshot.ready
    if queued != (task.state == states.PENDING):
        yield "I2", task.task_id, f"it is {task.state} and {'in' if queued else 'not in'} the queue"
    if task.state == states.PROCESSING and task.task_id not in snapshot.leased.get(task.token or "", ()):
        by = f"attempt {task.attempt}, worker {task.worker}, claim {task.token}"
        yield "I2", task.task_id, f"it is processing and no worker's claim covers it ({by})"
    if (task.task_id in snapshot.timers) != (task.state == states.WAITING):
        yield (
            "I2",
            task.task_id,
            f"it is {task.state} and its timer {'is' if task.state != 'waiting' else 'is not'} set",
        )
    yield from _timer_problems(snapshot, task)
    if (task.task_id in snapshot.letters) != ledger.is_dead_letter(snapshot.job, task):
        yield "I8", task.task_id, f"it is {task.state} and its dead letter does not say so"


def _timer_problems(snapshot: snapshots.Snapshot, task: rows.Task) -> Iterator[Found]:
    """What a task waits for is what its event says, until then. (Approvals are looked at by themselves.)"""
    timer, told = snapshot.timers.get(task.task_id), snapshot.folded.tasks.get(task.task_id)
    if timer is None or told is None or told.awaits is None or task.state != states.WAITING:
        return
    awaits = told.awaits
    if timer.kind != awaits.kind:
        yield "I8", task.task_id, f"its timer is of kind {timer.kind}, and the events say {awaits.kind}"
    elif timer.kind not in ("turn", "approval") and (timer.name, timer.key) != (awaits.name, awaits.key):
        yield "I8", task.task_id, "its timer waits for something else than the events say"
    elif timer.kind != "approval" and timer.due_at != awaits.due_at:
        yield "I8", task.task_id, f"its timer is due at {timer.due_at}, and the events say {awaits.due_at}"


def _gate_problems(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    """The job of a gate is found by the key that it was made for, until the key is reset. What a late report triggered
    is named like it, and stands for no key."""
    place = gating.place_of(snapshot.job)
    stands = place is not None and not snapshot.folded.gate_reset and not gating.is_late(snapshot.job)
    wanted = {place} if stands else set[tuple[str, str]]()
    if snapshot.gate_keys != wanted:
        yield "I8", None, "the rows and the events disagree about the key of a gate that it stands for"


def _review_problems(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    """Whoever reviewed an item has decided in its run, or has moved it by that. An earlier run may be gone."""
    item, job = snapshot.item, snapshot.job
    if item is None or item.at is None or (item.at, item.by) in snapshot.folded.decided or item.by in item.moved_by:
        return
    if item.at > job.created_at or item.moved_by:
        said = ", ".join(sorted(by for by in item.moved_by if by)) or "nobody"
        yield "I8", None, f"item {item.item_id!r} says that {item.by!r} reviewed it, and its history {said!r}"


def _usage_problems(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    job, folded = snapshot.job, snapshot.folded
    if job.spent != folded.spent:
        yield "I8", None, f"the row says {usage.shown(job.spent)} spent and the events say {usage.shown(folded.spent)}"
    if job.budget != folded.budget:
        yield "I8", None, "the row and the events disagree about its budget"
    exhausted = job.budget is not None and job.spent >= job.budget
    for timer in snapshot.timers.values():
        if timer.kind == "budget" and timer.name == budgets.JOB and not exhausted:
            yield "I2", timer.task_id, "it waits for the budget of its job, which is not used up"
    told = {(task.task_id, n): used for task in folded.tasks.values() for n, used in task.usage.items()}
    for task_id, attempt in sorted(told.keys() | snapshot.usage.keys()):
        if told.get((task_id, attempt)) != snapshot.usage.get((task_id, attempt)):
            yield "I8", task_id, f"the rows and the events disagree about what attempt {attempt} used up"


def _approval_problems(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    """What people are asked is what the events say, and whoever waits for them has its timer."""
    told = snapshot.folded.approvals
    for task_id, key in sorted(told.keys() ^ snapshot.approvals.keys()):
        yield "I8", task_id, f"the rows and the events disagree about whether people were asked ({key or 'its own'})"
    for place in sorted(told.keys() & snapshot.approvals.keys()):
        row, asks = snapshot.approvals[place], told[place]
        document = approvals.read(row.document)
        made = [(one.by, one.decision) for one in document.made]
        says = (row.state, made, row.requested_at, row.submitted_by, row.escalated_at is not None)
        if says != (asks.state, asks.made, asks.requested_at, asks.submitted_by, asks.escalated):
            yield "I8", row.task_id, f"the row of the approval says {says[:2]} and the events {(asks.state, asks.made)}"
        asked = approvals.read_document(asks.approval)
        who = (asked, approvals.named(asked.asked(escalated=asks.escalated)), asked.not_submitter)
        if who != (document.approval, row.asked, row.not_submitter):
            yield (
                "I8",
                row.task_id,
                "the row of the approval and the events disagree about what is asked and who may decide",
            )
        timer = snapshot.timers.get(row.task_id)
        timed = timer is not None and timer.kind == "approval" and timer.key == row.key
        due_at = timer.due_at if timed and timer is not None else None
        if timed != (row.state == approvals.WAITING) or due_at != row.due_at:
            yield "I2", row.task_id, f"its approval is {row.state}, and its timer does not say so"


def _stray_rows(snapshot: snapshots.Snapshot) -> Iterator[Found]:
    for task_id in sorted((snapshot.timers.keys() | snapshot.letters) - snapshot.tasks.keys() - {""}):
        yield "I8", task_id, "something is timed or listed for a task that does not exist"
    for task_id, ready_at in sorted(snapshot.ready):
        task = snapshot.tasks.get(task_id)
        if task is None or task.state != states.PENDING or task.ready_at != ready_at:
            yield "I2", task_id, "it is in the queue and should not be there"
    deadline_set = "" in snapshot.timers
    wanted = snapshot.job.deadline_at is not None and snapshot.job.state == states.RUNNING
    if deadline_set != wanted:
        yield "I2", None, "the deadline of the job and its timer disagree"
    elif deadline_set and snapshot.timers[""].due_at != snapshot.job.deadline_at:
        yield "I2", None, "the timer of its deadline is due at another time"
