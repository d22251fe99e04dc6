"""The ledger of one transaction: the rows it has loaded, the moves made on them, and the events that tell of the moves.

A transaction is: load rows, let commands act on the ledger, write what changed. Everything that must stay in step with
a task's state (the job's counters, the queue, timers, dead letters, the event stream) follows from `move`, here, once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ostinato import errors
from ostinato.core import codec, events, pages, rows, states

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

_IN_TURN = frozenset({states.PENDING, states.PROCESSING})

BLOB_MARK = b"\x00"
"""First byte of a stored payload that is a reference to a blob; no JSON text starts with it."""


def digest(data: bytes) -> bytes:
    """Where a large payload is kept: by its content, so that a job keeps the same one once."""
    return hashlib.sha256(data).digest()


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


_PLAIN = _Options()
_options = msgspec.json.Decoder(_Options)


def is_external(task: rows.Task) -> bool:
    """Whether somebody outside completes it."""
    return task.options is not None and _options.decode(task.options).external


class Heard(NamedTuple):
    """An event that some rule may be about."""

    job_id: str
    seq: int
    kind: str
    task_id: str | None
    name: str | None
    attempt: int | None
    data: bytes


class Ledger:
    def __init__(
        self,
        tenant: str,
        now: int,
        *,
        spill_bytes: int = 32 * 1024,
        address: Callable[[bytes], bytes] = digest,
        watched: frozenset[str] | None = frozenset(),
    ) -> None:
        self.tenant = tenant
        self.now = now
        self.spill_bytes = spill_bytes
        self._address = address
        self._watched = watched
        """Types of events that somebody wants to hear of; None stands for all."""
        # what was loaded
        self.jobs: dict[str, rows.Job] = {}
        self.tasks: dict[rows.TaskKey, rows.Task] = {}
        self.dependants: dict[rows.TaskKey, list[str]] = {}
        self.dependencies: dict[rows.TaskKey, list[str]] = {}
        self.jobs_by_idempotency_key: dict[str, rows.Job] = {}
        self.signals: dict[rows.TaskKey, list[rows.Signal]] = {}
        self.waiters: dict[rows.TaskKey, list[rows.Timer]] = {}
        self.timers: dict[rows.TaskKey, rows.Timer] = {}
        self.awaiting_turn: dict[str, dict[str, rows.Task]] = {}
        """By job: the first few of its tasks that wait for their turn."""
        self.gate_jobs: dict[tuple[str, str], str] = {}
        """By gate and key."""
        self.outside_events: set[tuple[str, str]] = set()
        # what is to be written
        self.new_jobs: list[rows.Job] = []
        self.new_tasks: list[rows.Task] = []
        self.new_edges: list[tuple[str, str, str, str]] = []
        self.changed_tasks: dict[rows.TaskKey, rows.Task] = {}
        self.new_inputs: set[rows.TaskKey] = set()
        self.run_again: set[rows.TaskKey] = set()
        """Tasks that start anew: more about them has changed than their state."""
        self.events: dict[str, list[bytes]] = {}
        """What is to be told, by job, as entries of a page. Every change of a job tells something."""
        self.told = 0
        self.new_timers: dict[rows.TaskKey, rows.Timer] = {}
        self.dropped_timers: set[rows.TaskKey] = set()
        self.new_leases: list[tuple[str, str, bytes]] = []
        self.dropped_leases: list[tuple[str, str]] = []
        self.new_steps: list[rows.Step] = []
        self.new_signals: list[rows.Signal] = []
        self.taken_signals: list[rows.Signal] = []
        self.gates_before: dict[tuple[str, str], str | None] = {}
        """The jobs of gates and keys that have another now, or none."""
        self.new_outside_events: list[tuple[str, str, int, bytes]] = []
        self.blobs: dict[tuple[str, bytes], bytes] = {}
        self.heard: list[Heard] = []
        # what the caller wants to know after the commit
        self.ended_jobs: list[rows.Job] = []
        self.revoked: list[tuple[rows.TaskKey, str]] = []
        self.became_pending: list[rows.Task] = []
        self._pending_data: dict[str, bytes] = {}

    # --- finding ---------------------------------------------------------------------------------------------

    def job(self, job_id: str) -> rows.Job:
        job = self.jobs.get(job_id)
        if job is None:
            raise errors.JobNotFound(f"there is no job {job_id!r}", jobId=job_id)
        return job

    def running_job(self, job_id: str) -> rows.Job:
        job = self.job(job_id)
        if job.state != states.RUNNING:
            raise errors.JobEnded(f"job {job_id!r} is {job.state}", jobId=job_id, state=job.state)
        return job

    def task(self, key: rows.TaskKey) -> rows.Task:
        self.job(key[0])
        task = self.tasks.get(key)
        if task is None:
            raise errors.TaskNotFound(f"there is no task {key[1]!r} in job {key[0]!r}", jobId=key[0], taskId=key[1])
        return task

    def leased_task(self, key: rows.TaskKey, attempt: int, token: str) -> rows.Task:
        """The task, if this attempt and token still own it. The fence that every worker write goes through."""
        task = self.tasks.get(key)
        if task is None or task.state != states.PROCESSING or task.token != token or task.attempt != attempt:
            state = "gone" if task is None else task.state
            raise errors.LeaseLost(
                f"attempt {attempt} no longer owns task {key[1]!r} of job {key[0]!r} (now {state}): "
                "its result is not recorded",
                jobId=key[0],
                taskId=key[1],
                state=state,
            )
        return task

    def reported_task(self, lease: rows.Lease) -> rows.Task:
        """The task of a lease that its worker now gives up by reporting on it: nobody needs to be told to stop."""
        task = self.leased_task((lease.job_id, lease.task_id), lease.attempt, lease.token)
        task.token = None
        if not lease.name:  # reported from elsewhere, with no more than it takes to prove the right to
            lease.name, lease.ready_at, lease.started_at = task.name, task.ready_at, task.started_at
        return task

    def tasks_of(self, job_id: str) -> list[rows.Task]:
        """All tasks of a job that was loaded whole, in the producer's order."""
        return sorted((t for t in self.tasks.values() if t.job_id == job_id), key=lambda t: t.position)

    # --- changing --------------------------------------------------------------------------------------------

    def emit(self, job: rows.Job, kind: str, task: rows.Task | None = None, data: bytes = codec.EMPTY_OBJECT) -> None:
        """Append an event to the job's stream; the sequence has no gaps because the job's row is locked."""
        self.told += 1
        job.last_seq += 1
        job_id = job.job_id
        if self._watched is None or kind in self._watched:
            self._hear(job, kind, task, data)
        if len(data) > self.spill_bytes:
            data = pages.blob_reference(self.payload(job_id, data)[1:])
        told = self.events.get(job_id)
        if told is None:
            told = self.events[job_id] = []
        if task is None:
            told.append(pages.entry(kind, None, None, data))
        else:
            told.append(pages.entry(kind, task.task_id, task.attempt, data))

    def _hear(self, job: rows.Job, kind: str, task: rows.Task | None, data: bytes) -> None:
        """Rules say nothing of what rules do, or they would never come to an end."""
        if not job.name.startswith("rule:"):
            about = (None, None, None) if task is None else (task.task_id, task.name, task.attempt)
            self.heard.append(Heard(job.job_id, job.last_seq, kind, *about, data))

    def move(self, task: rows.Task, state: str, kind: str, data: bytes = codec.EMPTY_OBJECT) -> None:
        """Put a task into a state, keep the job's counters in step, and tell of it."""
        old = task.state
        key = (task.job_id, task.task_id)
        job = self.jobs[task.job_id]
        if old != state:
            if state not in states.TASK_MOVES[old]:
                states.check_task_move(task.task_id, old, state)
            self._count(job, task, old, state)
            if job.max_parallel is not None:
                job.turns += (state in _IN_TURN) - (old in _IN_TURN)
            if old == states.PROCESSING and task.token is not None:
                self.revoked.append((key, task.token))
            elif old == states.WAITING:
                self.drop_timer(key)
            task.state = state
        if state != states.PROCESSING:
            task.token = task.worker = task.timeout_at = None
            if state in states.TASK_ENDED:
                task.finished_at = self.now
        self.changed_tasks[key] = task
        self.emit(job, kind, task, data)
        if task.options is not None and old != state:
            self._say_status(job, task, state)

    def _say_status(self, job: rows.Job, task: rows.Task, state: str) -> None:
        said = None if task.options is None else _options.decode(task.options).statuses
        status = None if said is None else getattr(said, state, None)
        if status is not None:
            self.emit(job, events.STATUS_PUBLISHED, task, codec.encode_own({"status": status}))

    def make_pending(self, task: rows.Task, kind: str = events.TASK_PENDING, data: bytes | None = None) -> None:
        """Queue a task, or let it wait for its turn where its job runs only so many at a time."""
        job = self.jobs[task.job_id]
        if job.max_parallel is not None and job.turns >= job.max_parallel and task.state not in _IN_TURN:
            self._await_turn(task, data)
            return
        if data is None:
            data = self._pending_data.get(task.name)
            if data is None:
                data = self._pending_data[task.name] = codec.encode_own({"name": task.name})
        task.ready_at = self.now
        task.finished_at = None
        self.move(task, states.PENDING, kind, data)
        self.became_pending.append(task)

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
        begins = _PLAIN if task.options is None else _options.decode(task.options)
        if begins.external:
            self._make_waiting(task, "external", None)
        elif begins.delay:
            self._make_waiting(task, "delay", self.now + int(begins.delay * 1e6))
        else:
            self.make_pending(task, data=data)

    def _make_waiting(self, task: rows.Task, kind: str, due_at: int | None) -> None:
        task.finished_at = None
        data = {"kind": kind} if due_at is None else {"kind": kind, "dueAt": due_at}
        self.move(task, states.WAITING, events.TASK_WAITING, codec.encode_own(data))
        self.set_timer(rows.Timer(task.job_id, task.task_id, kind, "", "", due_at))

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
        address = self._address(data)
        self.blobs[(job_id, address)] = data
        return BLOB_MARK + address

    # --- consequences ----------------------------------------------------------------------------------------

    def satisfy_dependants(self, task: rows.Task) -> None:
        """One dependency less for each task that waits for this one; those with none left become pending."""
        for dependant_id in self.dependants.get(task.key, ()):
            dependant = self.tasks[(task.job_id, dependant_id)]
            if dependant.state != states.BLOCKED:
                continue
            dependant.open_dependencies -= 1
            if dependant.open_dependencies == 0:
                self.make_ready(dependant)
            else:
                self.changed_tasks[dependant.key] = dependant

    def fail_dependants(self, task: rows.Task) -> None:
        """Tell the dependants of a task that will never complete; each follows its own policy. The failure of an
        optional one only skips those that say so."""
        stack = [task]
        while stack:
            failed = stack.pop()
            for dependant_id in self.dependants.get(failed.key, ()):
                dependant = self.tasks[(failed.job_id, dependant_id)]
                if dependant.state != states.BLOCKED:
                    continue
                tolerated = failed.optional and failed.state == states.FAILED and dependant.policy == "block"
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
        if job.deadline_at is not None and job.deadline_at > self.now:
            self.set_timer(rows.Timer(job.job_id, "", "deadline", "", "", job.deadline_at))
        else:
            job.deadline_at = None
        self.emit(job, events.JOB_RESUMED, data=codec.encode_own(data))

    @staticmethod
    def statuses(job: rows.Job) -> dict[str, int]:
        """How many tasks stand how; without those that nobody is in."""
        counts = {
            "blocked": job.blocked,
            "active": job.active,
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

    @staticmethod
    def _count(job: rows.Job, task: rows.Task, old: str, new: str) -> None:
        before, after = _COUNTER[old], _COUNTER[new]
        if before is after:
            return
        if task.optional:
            before = "tolerated" if before == "failed" else before
            after = "tolerated" if after == "failed" else after
        setattr(job, before, getattr(job, before) - 1)
        setattr(job, after, getattr(job, after) + 1)
