"""Why is a task not running? One code, one sentence and the details, from facts that the store has gathered.

The codes: `running`, `dependency`, `retry`, `sleep`, `delay`, `turn`, `budget`, `signal`, `external`, `approval`,
`no_worker`, `queue_full`, `next`, `ended`, `job_ended`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostinato.core import approvals, budgets, codec, documents, moments, rows, states, usage


class Worker(msgspec.Struct, frozen=True):
    """What a worker says of itself (`functions` is None if it does not say), and how many tasks it has claimed."""

    worker_id: str
    alive: bool
    queues: Sequence[str]
    functions: Sequence[str] | None
    slots: int | None
    held: int | None = None
    awaiting: int = 0
    """How many of its functions wait for other jobs, without a slot."""
    awaiting_jobs: Mapping[tuple[str, str], str] = {}
    """Some of them: by job and task, the job that is waited for."""

    def knows(self, name: str) -> bool:
        return self.functions is None or name in self.functions

    def serves(self, name: str, queue: str) -> bool:
        return self.alive and queue in self.queues and self.knows(name)

    @property
    def free(self) -> int | None:
        if self.slots is None or self.held is None:
            return None
        return max(self.slots - max(self.held - self.awaiting, 0), 0)


class Dependency(msgspec.Struct, frozen=True):
    """A dependency that is not satisfied. One that has ended all the same will not be, unless somebody acts."""

    task_id: str
    state: str

    @property
    def lost(self) -> bool:
        return self.state in states.TASK_ENDED


class Facts(msgspec.Struct, frozen=True):
    """What was true of a task at one moment."""

    now: int
    job_state: str
    task: rows.Task
    dependencies: Sequence[Dependency] = ()
    """Some of those that are not satisfied, the lost ones first; `task.open_dependencies` counts all of them."""
    timer: rows.Timer | None = None
    approval: rows.Approval | None = None
    """What people are asked, if that is what it waits for."""
    workers: Sequence[Worker] = ()
    """The worker that runs it; for a pending task, all that are known."""
    ahead: int = 0
    """Ready tasks that the same workers would claim before it."""
    more_ahead: bool = False
    """They were not all counted."""
    used_up: budgets.Exhausted | None = None
    """The budget that it waits for, if it does."""


class Why(msgspec.Struct, frozen=True, rename="camel"):
    code: str
    sentence: str
    details: dict[str, Any]


def explain(facts: Facts) -> Why:
    state = facts.task.state
    if state in states.TASK_ENDED:
        return _ended(facts)
    if state == states.BLOCKED:
        return _blocked(facts)
    if state == states.WAITING:
        return _waiting(facts)
    if state == states.PROCESSING:
        return _running(facts)
    return _pending(facts)


def _ended(facts: Facts) -> Why:
    task = facts.task
    details = _details(state=task.state, at=_moment(task.finished_at), error=_error(task))
    was = "was " if task.state in (states.CANCELLED, states.SKIPPED) else ""
    sentence = f"It {was}{task.state} {_span(facts, task.finished_at)} ago"
    if task.state == states.FAILED:
        sentence += f", after {_attempts(task.attempt)}: {_reason(task)}. Retry it, skip it, or resume the job"
    elif task.state == states.CANCELLED:
        sentence += ". Retry it, skip it, or resume the job"
    elif task.state == states.SKIPPED and task.skipped_by_dependency:
        details["byDependency"] = True
        sentence += ", because a task that it depends on did not complete"
    return Why("ended", sentence + ".", details)


def _blocked(facts: Facts) -> Why:
    task = facts.task
    lost = [dependency for dependency in facts.dependencies if dependency.lost]
    details = _details(
        dependencies=[{"taskId": d.task_id, "state": d.state} for d in facts.dependencies],
        openDependencies=task.open_dependencies,
        jobState=facts.job_state,
    )
    if lost:
        more = task.open_dependencies - len(lost)
        sentence = f"It stays blocked, because it depends on {_listed(lost)}, which will not complete by itself"
        sentence += f"; {_others(more)} not completed either" if more > 0 else ""
        return Why("dependency", f"{sentence}. Resume the job to run again what failed, or skip it to go on.", details)
    if facts.job_state != states.RUNNING:
        sentence = f"The job is {facts.job_state}, so nothing in it runs any more. Resume the job to go on."
        return Why("job_ended", sentence, details)
    more = task.open_dependencies - len(facts.dependencies)
    names = _listed(facts.dependencies) + (f" and {more:,} more" if more > 0 and facts.dependencies else "")
    return Why("dependency", f"It waits for {names or f'{more:,} tasks'} to complete.", details)


def _waiting(facts: Facts) -> Why:
    task, timer = facts.task, facts.timer
    if timer is None:  # only between two commits of somebody who reads past the engine
        return Why("next", "It goes on at once.", {})
    due = _moment(timer.due_at)
    left = "" if timer.due_at is None else _until(facts, timer.due_at)
    if timer.kind == "retry":
        used = task.attempt - task.attempt_base
        sentence = f"Attempt {used} of {task.max_attempts} failed ({_reason(task)}); the next one is due {left}."
        details = _details(dueAt=due, attempt=used, maxAttempts=task.max_attempts, error=_error(task))
        return Why("retry", sentence, details)
    if timer.kind == "sleep":
        return Why("sleep", f"It sleeps; it goes on {left}.", _details(dueAt=due, key=timer.key))
    if timer.kind == "delay":
        return Why("delay", f"It is ready, and begins {left}.", _details(dueAt=due))
    if timer.kind == "turn":
        return Why("turn", "It is ready, but its job runs only so many tasks at the same time: it waits its turn.", {})
    if timer.kind == "budget":
        return _budget(facts)
    if timer.kind == "external":
        return Why("external", "It is external: it waits for somebody outside to complete it.", {})
    if timer.kind == "approval" and facts.approval is not None:
        return _asking(facts, facts.approval)
    until = f"; it gives up {left}" if left else ", however long that takes"
    return Why("signal", f"It awaits the signal {timer.name!r}{until}.", _details(signal=timer.name, dueAt=due))


def _budget(facts: Facts) -> Why:
    used_up = facts.used_up
    if used_up is None:  # it was raised a moment ago
        return Why("budget", "It waited for a budget that is not used up any more, and goes on at once.", {})
    details = _details(
        scope=used_up.scope,
        budget=usage.money(used_up.budget),
        spent=usage.money(used_up.spent),
        dueAt=_moment(used_up.due_at),
    )
    return Why("budget", budgets.sentence(used_up, facts.task.job_id), details)


def _asking(facts: Facts, row: rows.Approval) -> Why:
    document = approvals.read(row.document)
    approval, escalated = document.approval, row.escalated_at is not None
    asked = approval.asked(escalated=escalated)
    approved = list(dict.fromkeys(made.by for made in document.standing()))
    who = "somebody" if asked is None else ", ".join(asked)
    if approval.not_submitter and row.submitted_by is not None:
        who += f" (but not {row.submitted_by}, who submitted it)"
    sentence = f"It has been waiting for {_span(facts, row.requested_at)} for {who} to decide on {approval.title!r}"
    if approval.quorum > 1:
        sentence += f"; {len(approved)} of {approval.quorum} have approved"
    if row.due_at is not None:
        asks_more = approval.escalate is not None and not escalated
        then = "others are asked too" if asks_more else f"it ends by itself ({approval.on_deadline})"
        sentence += f"; {_until(facts, row.due_at)} {then}"
    details = _details(
        title=approval.title,
        key=row.key or None,
        asked=asked,
        since=_moment(row.requested_at),
        submittedBy=row.submitted_by,
        approvedBy=approved,
        quorum=approval.quorum,
        dueAt=_moment(row.due_at),
        escalated=escalated,
    )
    return Why("approval", sentence + ".", details)


def _running(facts: Facts) -> Why:
    task = facts.task
    alive = any(worker.alive for worker in facts.workers)
    used = task.attempt - task.attempt_base
    sentence = f"Attempt {used} of {task.max_attempts} has been running for {_span(facts, task.started_at)} "
    sentence += f"on worker {task.worker}"
    awaited = next((job for w in facts.workers if (job := w.awaiting_jobs.get((task.job_id, task.task_id)))), None)
    if awaited is not None:
        sentence += f"; it waits for the result of job {awaited}, and has given its slot back meanwhile"
    if not alive:
        sentence += ", which has not been heard of lately: if it is gone, the attempt is taken from it"
    details = _details(
        worker=task.worker,
        workerAlive=alive,
        since=_moment(task.started_at),
        attempt=used,
        maxAttempts=task.max_attempts,
        timeoutAt=_moment(task.timeout_at),
        awaitsJob=awaited,
    )
    return Why("running", sentence + ".", details)


def _pending(facts: Facts) -> Why:
    task = facts.task
    serving = [worker for worker in facts.workers if worker.serves(task.name, task.queue)]
    if not serving:
        return _no_worker(facts)
    slots = sum(worker.slots or 0 for worker in serving)
    known = [worker.free for worker in serving if worker.free is not None]
    details = _details(
        readyAt=_moment(task.ready_at),
        ahead=facts.ahead,
        moreAhead=facts.more_ahead or None,
        workers=len(serving),
        slots=slots,
        free=sum(known) if known else None,
    )
    ahead = f"{'more than ' if facts.more_ahead else ''}{facts.ahead:,}"
    if task.crashes >= 2 and not any(worker.held == 0 for worker in serving):
        details["alone"] = True
        sentence = f"{task.crashes} workers died while they had it, so it waits for one that runs nothing else."
        return Why("queue_full", sentence, details)
    if known and sum(known) <= facts.ahead:
        who = f"{_plural(len(serving), 'worker')} for function {task.name!r} in queue {task.queue!r}"
        sentence = f"{ahead} ready {'task is' if ahead == '1' else 'tasks are'} ahead of it and {who} "
        sentence += f"{'has' if len(serving) == 1 else 'have'} {sum(known):,} of {slots:,} slots free."
        return Why("queue_full", sentence, details)
    return Why(
        "next", f"It has been ready for {_span(facts, task.ready_at)}, and a worker will claim it next.", details
    )


def _no_worker(facts: Facts) -> Why:
    task = facts.task
    alive = [worker for worker in facts.workers if worker.alive]
    knowing = [worker for worker in alive if worker.knows(task.name)]
    if not alive:
        missing, sentence = "worker", "no worker is alive: start one"
    elif not knowing:
        known = sorted({name for worker in alive for name in worker.functions or ()})
        missing, sentence = "function", f"no live worker has registered function {task.name!r}: "
        sentence += f"{documents.nearest(task.name, known)}start one that has it"
    else:
        queues = ", ".join(repr(queue) for queue in sorted({q for worker in knowing for q in worker.queues}))
        missing = "queue"
        sentence = f"no live worker with function {task.name!r} listens to queue {task.queue!r} (only to {queues})"
    details = _details(missing=missing, function=task.name, queue=task.queue, liveWorkers=len(alive))
    return Why("no_worker", f"It is ready, but {sentence}.", details)


# --- words -----------------------------------------------------------------------------------------------------


def _details(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _moment(micros: int | None) -> Any:
    return None if micros is None else moments.moment(micros)


def _error(task: rows.Task) -> Any:
    """Type and message; the traceback is long, and in the task's attempts."""
    if task.error is None:
        return None
    error: dict[str, Any] = codec.decode(task.error)
    return {name: error.get(name) for name in ("type", "message")}


def _reason(task: rows.Task) -> str:
    error = _error(task)
    if error is None:
        return "no reason was recorded"
    message = str(error["message"]).partition("\n")[0][:200]
    return f"{error['type']}: {message}".rstrip(": ")


def _span(facts: Facts, since: int | None) -> str:
    return moments.duration((facts.now - (facts.now if since is None else since)) / 1e6)


def _until(facts: Facts, due_at: int) -> str:
    return "now" if due_at <= facts.now else f"in {moments.duration((due_at - facts.now) / 1e6)}"


def _listed(tasks: Sequence[Dependency]) -> str:
    return ", ".join(f"{task.task_id!r} ({task.state})" for task in tasks)


def _others(count: int) -> str:
    return "1 other has" if count == 1 else f"{count:,} others have"


def _attempts(count: int) -> str:
    return _plural(count, "attempt")


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
