"""The ledger of one transaction: the moves made on the rows that it has loaded, and the events that tell of the moves.

A transaction is: load rows, let commands act on the ledger, write what changed. Everything that must stay in step with
a task's state (the job's counters, the queue, timers, dead letters, the event stream) follows from `move`, here, once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.core import (
    approvals,
    budgets,
    codec,
    courses,
    events,
    histogram,
    items,
    pages,
    rows,
    sheet,
    states,
    statuses,
    tallies,
    usage,
)

_COUNTER = {
    states.BLOCKED: "blocked",
    states.PENDING: "active",
    states.PROCESSING: "active",
    states.WAITING: "active",
    states.COMPLETED: "completed",
    states.FAILED: "failed",
    states.SKIPPED: "skipped",
    states.CANCELLED: "cancelled",
}
_COUNTERS = {
    old: {new: "" if _COUNTER[old] == _COUNTER[new] else f"{_COUNTER[old]} {_COUNTER[new]}" for new in moves}
    for old, moves in states.TASK_MOVES.items()
}
"""By how a task stood and stands: which counter of its job goes down and which goes up, if that is legal at all."""

_Raw = pages.Raw
_IN_TURN = frozenset({states.PENDING, states.PROCESSING})
_GIVEN_UP = frozenset({states.CANCELLED, states.SKIPPED, states.BLOCKED})

BUDGET_JOB = "budget:"
"""How jobs are named in which people are asked whether an item of a pipeline may cost more."""
TENANT_BUDGET_JOB = f"{BUDGET_JOB}tenant/"
PLAYBOOK_JOB = "playbook:"
"""How jobs are named in which agents are optional tasks: the answer says who failed, and why."""

BLOB_MARK = b"\x00"
"""First byte of a stored payload that is a reference to a blob; no JSON text starts with it."""


class _Statuses(msgspec.Struct, frozen=True):
    """By the state that a task gets into."""

    processing: str | None = msgspec.field(default=None, name="started")
    completed: str | None = None
    failed: str | None = None
    cancelled: str | None = None


class _Options(msgspec.Struct, frozen=True):
    """What a task says of how it begins once it is ready, and of what its job is to say then."""

    delay: float | None = None
    external: bool = False
    statuses: _Statuses | None = None
    approval: approvals.Approval | None = None
    added_by: str | list[str] | None = msgspec.field(default=None, name="addedBy")
    compensates: bool = False


_options = msgspec.json.Decoder(_Options)


def is_external(task: rows.Task) -> bool:
    """Whether somebody outside completes it."""
    return task.options is not None and _options.decode(task.options).external


def is_dead_letter(job: rows.Job, task: rows.Task) -> bool:
    """Whether it has failed for good. That somebody has rejected an item of a pipeline is no failure, and that an item
    goes on without an optional step, or an answer without an agent, is none that anybody has to do something about."""
    if task.state != states.FAILED or (task.optional and job.name.startswith((courses.JOB, PLAYBOOK_JOB))):
        return False
    if task.error is None or not job.name.startswith((courses.JOB, BUDGET_JOB)) or not is_run_by_nobody(task):
        return True
    return codec.decode(task.error)["type"] != items.REJECTED_TYPE


def is_run_by_nobody(task: rows.Task) -> bool:
    """Whether somebody outside, or somebody who is asked, completes it."""
    if task.options is None:
        return False
    begins = _options.decode(task.options)
    return begins.external or begins.approval is not None


def approval_of(task: rows.Task) -> approvals.Approval | None:
    """What a task asks people, if it is an approval."""
    return None if task.options is None else _options.decode(task.options).approval


def authors(task: rows.Task) -> list[str]:
    """The people who have added it to its job, or given it another input, as far as they have a name."""
    known = None if task.options is None else _options.decode(task.options).added_by
    return [known] if isinstance(known, str) else known or []


def name_authors(task: rows.Task, names: list[str]) -> None:
    options: dict[str, Any] = {} if task.options is None else codec.decode(task.options)
    task.options = codec.encode_own(options | {"addedBy": names})


def _reason(data: bytes) -> str | None:
    """Why a task failed or was cancelled, from what is told of it."""
    told: dict[str, Any] = codec.decode(data)
    return told["error"]["message"] if "error" in told else told.get("reason")


def compensates(task: rows.Task) -> bool:
    """Whether it takes back what the tasks before it did."""
    return task.options is not None and _options.decode(task.options).compensates


class Ledger(sheet.Sheet):
    """What is done to the rows, and what follows from it."""

    def emit(self, job: rows.Job, kind: str, task: rows.Task | None = None, data: bytes = codec.EMPTY_OBJECT) -> None:
        """Append an event to the job's stream; the sequence has no gaps because the job's row is locked."""
        self.told += 1
        job.last_seq += 1
        job_id, watched = job.job_id, self.watched
        if watched is None or kind in watched:
            self._hear(job, kind, task, data)
        if len(data) > self.spill_bytes:
            data = pages.blob_reference(self.payload(job_id, data)[1:])
        told = self.events.get(job_id)
        if told is None:
            told = self.events[job_id] = []
        if task is None:
            told.append((kind, None, None, _Raw(data)))
        else:
            told.append((kind, task.task_id, task.attempt, _Raw(data)))

    def _hear(self, job: rows.Job, kind: str, task: rows.Task | None, data: bytes) -> None:
        """Rules say nothing of what rules do, or they would never come to an end."""
        if not job.name.startswith("rule:"):
            about = (None, None, None) if task is None else (task.task_id, task.name, task.attempt)
            self.heard.append(sheet.Heard(job.job_id, job.last_seq, kind, *about, data))

    def move(self, task: rows.Task, state: str, kind: str, data: bytes = codec.EMPTY_OBJECT) -> None:
        """Put a task into a state, keep the job's counters in step, and tell of it."""
        old, job_id = task.state, task.job_id
        key = (job_id, task.task_id)
        job = self.jobs[job_id]
        if old != state:
            counters = _COUNTERS[old].get(state)
            if counters == "blocked active":  # the usual ways first: what is named takes a third of the time
                job.blocked -= 1
                job.active += 1
            elif counters == "active completed":
                job.active -= 1
                job.completed += 1
            elif counters is None:
                states.check_task_move(task.task_id, old, state)
            elif counters:
                _count(job, task, counters)
            if job.max_parallel is not None:
                job.turns += (state in _IN_TURN) - (old in _IN_TURN)
            if old == states.PROCESSING:
                job.processing -= 1
                if task.token is not None:
                    self.revoked.append((key, task.token))
            elif old == states.WAITING:
                job.waiting -= 1
                self.drop_timer(key)
                if state in _GIVEN_UP:
                    self._withdraw(task)
            if state == states.PROCESSING:
                job.processing += 1
            elif state == states.WAITING:
                job.waiting += 1
            task.state = state
        if state != states.PROCESSING:
            if task.worker is not None:
                task.token = task.worker = task.timeout_at = None
            if state in states.TASK_ENDED:
                task.finished_at = self.now
        self.changed_tasks[key] = task
        if self.items and job_id in self.items:
            self._move_item(self.items[job_id], task, kind)
        self.emit(job, kind, task, data)
        if task.options is not None and old != state:
            self._say_status(job, task, state, data)

    def begin(self, job: rows.Job, task: rows.Task, data: bytes) -> None:
        """The same for the most common move, from pending to processing."""
        task.state = states.PROCESSING
        job.processing += 1
        self.changed_tasks[(task.job_id, task.task_id)] = task
        if self.items and task.job_id in self.items:
            self._move_item(self.items[task.job_id], task, events.TASK_PROCESSING)
        self.emit(job, events.TASK_PROCESSING, task, data)
        if task.options is not None:
            self._say_status(job, task, states.PROCESSING)

    def _move_item(self, item: items.Item, task: rows.Task, kind: str) -> None:
        """A step of an item of a pipeline has moved: it follows at the end, and what became of attempts is counted."""
        item.stand(task.task_id, task.state, task.attempt)
        how = events.ATTEMPT_ENDS.get(kind)
        if how is not None and task.started_at is not None:
            step = f"{item.pipeline}/{task.task_id}/"
            took = self.now - task.started_at
            self.tally(tallies.STEPS, step + how, 1, took)
            if how == "completed":
                self.tally(tallies.STEP_TIMES, step + histogram.label(took), 1, 0)

    def _say_status(self, job: rows.Job, task: rows.Task, state: str, data: bytes = codec.EMPTY_OBJECT) -> None:
        """With the reason, if it went wrong: whoever follows the job may hear of nothing else."""
        said = None if task.options is None else _options.decode(task.options).statuses
        status = None if said is None else getattr(said, state, None)
        if status is not None:
            told: dict[str, Any] = {"status": status}
            if state in (states.FAILED, states.CANCELLED) and (reason := _reason(data)):
                told["message"] = reason[: statuses.LONGEST_MESSAGE]
            self.emit(job, events.STATUS_PUBLISHED, task, codec.encode_own(told))

    def make_pending(self, task: rows.Task, kind: str = events.TASK_PENDING, data: bytes | None = None) -> None:
        """Queue a task, or let it wait for its turn where its job runs only so many at a time, or for a budget."""
        job = self.jobs[task.job_id]
        if (job.budget is not None or self.tenant_budget is not None) and task.state not in _IN_TURN:
            used_up = budgets.budget_exhausted(job, self.tenant_budget, self.now)
            if used_up is not None:
                self._await_budget(task, used_up)
                return
        if job.max_parallel is not None and job.turns >= job.max_parallel and task.state not in _IN_TURN:
            self._await_turn(task, data)
            return
        if data is None:
            data = self.pending_data.get(task.name)
            if data is None:
                data = self.pending_data[task.name] = codec.encode_own({"name": task.name})
        task.ready_at = self.now
        task.finished_at = None
        self.move(task, states.PENDING, kind, data)
        self.became_pending.append(task)

    def _await_budget(self, task: rows.Task, used_up: budgets.Exhausted) -> None:
        told: dict[str, object] = {"kind": "budget", "scope": used_up.scope}
        told |= {"budget": usage.money(used_up.budget), "spent": usage.money(used_up.spent)}
        if used_up.due_at is not None:
            told["dueAt"] = used_up.due_at
            self.waits_for_tenant = True
        elif task.job_id in self.items:
            self.items[task.job_id].over_budget = used_up
        task.finished_at = None
        self.move(task, states.WAITING, events.TASK_WAITING, codec.encode_own(told))
        self.set_timer(rows.Timer(task.job_id, task.task_id, "budget", used_up.scope, "", used_up.due_at))

    def _await_turn(self, task: rows.Task, data: bytes | None) -> None:
        told: dict[str, object] = {} if data is None else codec.decode(data)
        task.finished_at = None
        self.move(task, states.WAITING, events.TASK_WAITING, codec.encode_own(told | {"kind": "turn"}))
        # By name they come in the order of the job.
        self.set_timer(rows.Timer(task.job_id, task.task_id, "turn", f"{task.position:010d}", "", None))
        self.awaiting_turn.setdefault(task.job_id, {})[task.task_id] = task

    def give_turns(self) -> None:
        """Let those go on that wait for their turn, as far as others have made room."""
        for job_id, waiting in self.awaiting_turn.items():
            job = self.jobs[job_id]
            for task in sorted(waiting.values(), key=lambda task: task.position):
                if job.max_parallel is None or job.turns >= job.max_parallel or job.state != states.RUNNING:
                    break
                if task.state == states.WAITING:
                    self.make_pending(task)

    def make_ready(self, task: rows.Task, data: bytes | None = None) -> None:
        """Everything that it depends on is there: it may run now, or waits for its time, or for somebody outside."""
        if task.options is None:
            self.make_pending(task, data=data)
            return
        begins = _options.decode(task.options)
        if begins.external:
            self._make_waiting(task, "external", None)
        elif begins.approval is not None:
            self.ask(task, begins.approval)
        elif begins.delay:
            self._make_waiting(task, "delay", self.now + int(begins.delay * 1e6))
        else:
            self.make_pending(task, data=data)

    def _make_waiting(self, task: rows.Task, kind: str, due_at: int | None) -> None:
        task.finished_at = None
        data = {"kind": kind} if due_at is None else {"kind": kind, "dueAt": due_at}
        self.move(task, states.WAITING, events.TASK_WAITING, codec.encode_own(data))
        self.set_timer(rows.Timer(task.job_id, task.task_id, kind, "", "", due_at))

    def ask(self, task: rows.Task, approval: approvals.Approval, key: str = "", given: bytes | None = None) -> None:
        """Let a task wait for people: about its input, or with a key about what is given."""
        job = self.jobs[task.job_id]
        due_at = approval.next_due(self.now, escalated=False)
        task.finished_at = None
        told = {"kind": "approval", "key": key} if key else {"kind": "approval"}
        self.move(task, states.WAITING, events.TASK_WAITING, codec.encode_own(told))
        self.set_timer(rows.Timer(task.job_id, task.task_id, "approval", "", key, due_at))
        asked = {"key": key, "approval": approval, "submittedBy": job.submitted_by, "dueAt": due_at}
        self.emit(job, events.APPROVAL_REQUESTED, task, codec.encode_own(asked))
        row = rows.Approval(
            task.job_id,
            task.task_id,
            key,
            approvals.WAITING,
            codec.encode_own(approvals.Document(approval)),
            None if given is None else self.payload(task.job_id, given),
            approvals.named(approval.asked(escalated=False)),
            approval.not_submitter,
            job.submitted_by,
            version=job.last_seq,
            requested_at=self.now,
            due_at=due_at,
            escalated_at=None,
            decided_at=None,
            given=given,
        )
        self.approvals.setdefault(task.key, {})[key] = row
        self.change_approval(row)
        self.withdrawn.discard(task.key)

    def change_approval(self, row: rows.Approval) -> None:
        self.changed_approvals[row.place] = row

    def _withdraw(self, task: rows.Task) -> None:
        """Nobody is asked any longer. Of a function it is not known here whether it waits for people at all."""
        known = self.approvals.get(task.key, {})
        for row in known.values():
            if row.state == approvals.WAITING:
                row.state, row.due_at, row.decided_at = approvals.WITHDRAWN, None, self.now
                self.change_approval(row)
        if known:
            return
        if task.resuming or (task.options is not None and _options.decode(task.options).approval is not None):
            self.withdrawn.add(task.key)

    def set_timer(self, timer: rows.Timer) -> None:
        key = (timer.job_id, timer.task_id)
        self.timers.pop(key, None)
        self.new_timers[key] = timer
        if timer.kind == "wait":
            self.waiters.setdefault((timer.job_id, timer.name), []).append(timer)
        self.dropped_timers.discard(key)

    def drop_timer(self, key: rows.TaskKey) -> None:
        self.timers.pop(key, None)
        self.new_timers.pop(key, None)
        self.dropped_timers.add(key)

    def keep_signal(self, signal: rows.Signal) -> None:
        self.new_signals.append(signal)
        self.sent_signals.add((signal.job_id, signal.name, signal.signal_id))
        self.signals.setdefault((signal.job_id, signal.name), []).append(signal)

    def take_signal(self, job_id: str, name: str) -> rows.Signal | None:
        """The oldest signal of that name that nobody has taken yet, from before or from this very transaction."""
        for signal in self.signals.get((job_id, name), ()):
            if not signal.taken:
                signal.taken = True
                if all(signal is not new for new in self.new_signals):
                    self.taken_signals.append(signal)
                return signal
        return None

    def assign_gate(self, gate: str, key: str, job_id: str | None) -> None:
        """From now on this job stands for a gate and a key, or none does."""
        place = (gate, key)
        self.gates_before.setdefault(place, self.gate_jobs.get(place))
        if job_id is None:
            self.gate_jobs.pop(place, None)
        else:
            self.gate_jobs[place] = job_id

    def record_step(self, task: rows.Task, key: str, output: bytes) -> None:
        self.new_steps.append(rows.Step(task.job_id, task.task_id, key, self.payload(task.job_id, output), self.now))
        self.emit(self.jobs[task.job_id], events.STEP_COMPLETED, task, codec.encode_own({"key": key}))

    def payload(self, job_id: str, data: bytes) -> bytes:
        """What to store for a payload: the payload itself, or for a large one a reference to its blob."""
        if len(data) <= self.spill_bytes:
            return data
        address = self.address(data)
        self.blobs[(job_id, address)] = data
        return BLOB_MARK + address

    def tally(self, topic: tallies.Topic, key: str, count: int = 1, amount: int = 0) -> None:
        """Count on, in the bucket of this moment."""
        place = (topic.name, key, topic.bucket(self.now))
        grown = self.tallies.get(place)
        if grown is None:
            self.tallies[place] = [count, amount]
        else:
            grown[0] += count
            grown[1] += amount

    # --- consequences ----------------------------------------------------------------------------------------

    def satisfy_dependants(self, task: rows.Task) -> None:
        """One dependency less for each task that waits for this one; those with none left become pending."""
        job_id = task.job_id
        for dependant_id in self.dependants.get((job_id, task.task_id), ()):
            key = (job_id, dependant_id)
            dependant = self.tasks[key]
            if dependant.state == states.BLOCKED:
                left = dependant.open_dependencies = dependant.open_dependencies - 1
                if left:
                    self.changed_tasks[key] = dependant
                else:
                    self.make_ready(dependant)

    def fail_dependants(self, task: rows.Task) -> None:
        """Tell the dependants of a task that will never complete; each follows its own policy. An optional one only
        skips those that say so."""
        stack = [task]
        while stack:
            failed = stack.pop()
            for dependant_id in self.dependants.get(failed.key, ()):
                dependant = self.tasks[(failed.job_id, dependant_id)]
                if dependant.state != states.BLOCKED:
                    continue
                tolerated = failed.optional and failed.state != states.CANCELLED and dependant.policy == "block"
                if dependant.policy == "run" or tolerated:
                    dependant.open_dependencies -= 1
                    if dependant.open_dependencies == 0:
                        self.make_ready(dependant)
                    else:
                        self.changed_tasks[dependant.key] = dependant
                elif dependant.policy == "skip":
                    dependant.skipped_by_dependency = True
                    self.move(
                        dependant, states.SKIPPED, events.TASK_SKIPPED, codec.encode_own({"dependency": failed.task_id})
                    )
                    stack.append(dependant)

    def detect_failure(self, job: rows.Job, task: rows.Task) -> None:
        """Say once, at the first failure, that the job will not complete by itself."""
        if job.failure_detected_at is None:
            job.failure_detected_at = self.now
            self.emit(
                job,
                events.JOB_FAILURE_DETECTED,
                data=codec.encode_own({"failedTaskId": task.task_id, "taskStatuses": self.statuses(job)}),
            )

    def settle(self, job: rows.Job) -> None:
        """End a job that has nothing left to run."""
        if job.active or job.state != states.RUNNING:
            return
        if job.failed or job.blocked or job.cancelled:
            self.end_job(job, states.FAILED)
        else:
            self.end_job(job, states.COMPLETED)

    def end_job(self, job: rows.Job, state: str, **data: object) -> None:
        states.check_job_move(job.job_id, job.state, state)
        job.state = state
        job.finished_at = self.now
        if job.deadline_at is not None:
            self.drop_timer((job.job_id, ""))
        self.emit(
            job,
            events.JOB_END[state],
            data=codec.encode_own({"totalTasks": job.total, "taskStatuses": self.statuses(job)} | data),
        )
        self.ended_jobs.append(job)

    def reopen_job(self, job: rows.Job, data: dict[str, object]) -> None:
        """Take a job that has ended up again. The failure of before is history; a new one is detected anew."""
        states.check_job_move(job.job_id, job.state, states.RUNNING)
        job.state = states.RUNNING
        job.finished_at = None
        job.failure_detected_at = None
        if job.deadline_at is not None and job.deadline_at >= self.now:
            self.set_timer(rows.Timer(job.job_id, "", "deadline", "", "", job.deadline_at))
        else:
            job.deadline_at = None
        self.emit(job, events.JOB_RESUMED, data=codec.encode_own(data | {"deadlineAt": job.deadline_at}))

    @staticmethod
    def statuses(job: rows.Job) -> dict[str, int]:
        """How many tasks are in each state; states without tasks are left out."""
        counts = {
            "blocked": job.blocked,
            "pending": job.active - job.processing - job.waiting,
            "processing": job.processing,
            "waiting": job.waiting,
            "completed": job.completed,
            "failed": job.failed + job.tolerated,
            "skipped": job.skipped,
            "cancelled": job.cancelled,
        }
        return {name: count for name, count in counts.items() if count}

    def add_task(self, job: rows.Job, task: rows.Task, dependencies: list[str]) -> None:
        """Enter a new task, blocked for now."""
        job.total += 1
        job.blocked += 1
        key = (task.job_id, task.task_id)
        self.tasks[key] = task
        self.new_tasks.append(task)
        self.dependencies[key] = dependencies
        job_id, task_id = task.job_id, task.task_id
        for dependency in dependencies:
            self.new_edges.append((self.tenant, job_id, dependency, task_id))
            self.dependants.setdefault((job_id, dependency), []).append(task_id)


def _count(job: rows.Job, task: rows.Task, counters: str) -> None:
    if task.optional:
        counters = counters.replace("failed", "tolerated")
    before, after = counters.split(" ")
    setattr(job, before, getattr(job, before) - 1)
    setattr(job, after, getattr(job, after) + 1)
