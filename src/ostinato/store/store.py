"""The verbs of the store. Each is one transaction, takes its tenant first, and works on batches."""

from __future__ import annotations

import contextlib
import copy
import gc
import operator
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from ostinato import encryption, errors
from ostinato.core import codec, commands, ledger, needs, pages, rows, states
from ostinato.store import (
    audit_log,
    database,
    executions,
    facts,
    fleet,
    gauges,
    keys,
    lists,
    memory,
    reads,
    reindex,
    rotation,
    sealed,
    stories,
    stream,
)
from ostinato.store.database import fetch

_new_task = operator.attrgetter(
    "job_id", "task_id", "position", "name", "queue", "priority", "policy", "optional", "dependencies", "options",
    "input", "state", "attempt", "open_dependencies", "skipped_by_dependency", "started_at", "finished_at",
    "ready_at", "worker", "token", "max_attempts", "timeout_at",
)  # fmt: skip
_job_changes = operator.attrgetter(
    "state", "cascades", "deadline_at", "finished_at", "failure_detected_at", "last_seq", "total", "blocked", "active",
    "completed", "failed", "tolerated", "skipped", "cancelled",
)  # fmt: skip
FEW_COMMANDS = 4
_CLAIMABLE = (states.PENDING, states.BLOCKED)
_astuple = msgspec.structs.astuple


class Refused(NamedTuple):
    """A command that was not carried out, and why."""

    error: Exception


class Outcome(NamedTuple):
    """What a transaction did: an answer or a refusal for each command, the leases, and what others may want to know."""

    answers: list[Any]
    leases: list[rows.Lease]
    ended_jobs: list[rows.Job]
    revoked: list[tuple[rows.TaskKey, str]]
    pending_left: int
    armed_timers: int
    events: int
    more_queued: bool = False
    """The claim left something in the queue, or may have."""
    results: Mapping[str, Mapping[str, bytes]] = {}
    """Outputs of small jobs that have ended, where they are known without reading them."""


class Store(
    reads.Reads,
    lists.Lists,
    executions.Executions,
    reindex.Reindexing,
    stories.Stories,
    stream.Stream,
    facts.FactFinding,
    fleet.Fleet,
    gauges.Gauges,
    keys.Keys,
    audit_log.AuditLog,
    rotation.Rotation,
):
    def __init__(
        self, db: database.Database, *, spill_bytes: int = 32 * 1024, keyring: encryption.Keyring | None = None
    ) -> None:
        self.db = db
        self._spill_bytes = spill_bytes
        self._keyring = keyring
        self._address = ledger.digest if keyring is None else encryption.address
        self._memory = memory.Memory()

    def seen_by(self, tenant: str) -> Self:
        """The same store, with what it remembers, on a database that shows nothing of other tenants."""
        made = copy.copy(self)
        made.db = self.db.seen_by(tenant)
        return made

    async def execute(
        self, tenant: str, batch: Sequence[commands.Command], claim: commands.Claim | None = None
    ) -> Outcome:
        """Carry out commands in order, then claim, in one transaction. A refused command leaves the others alone."""
        wanted = needs.Needs()
        for command in batch:
            command.needs(wanted)
        tries = 0
        results: dict[str, dict[str, bytes]] = {}

        def script() -> database.Script[_Decision]:
            nonlocal tries
            tries += 1
            if tries > 1:
                self._memory.distrust()
            return self._execute(tenant, wanted, batch, claim)

        def remember(done: _Decision) -> None:
            results.update(self._memory.remember(tenant, done.book, done.recalled))

        looking = claim is not None and claim.look
        brief = len(batch) <= FEW_COMMANDS and not looking and self._memory.knows_it_is_little(tenant, wanted)
        decision = await self.db.write(script, optimistic=True, brief=brief, committed=remember)
        if self._keyring is not None:
            sealed.open_inputs(self._keyring, tenant, decision.leases)
        return _outcome(decision, claim, results)

    def _execute(
        self,
        tenant: str,
        wanted: needs.Needs,
        batch: Sequence[commands.Command],
        claim: commands.Claim | None,
        *,
        trust: bool = True,
    ) -> database.Script[_Decision]:
        book = ledger.Ledger(tenant, self.db.now(), spill_bytes=self._spill_bytes, address=self._address)
        recalled = self._memory.recall(tenant, wanted, book, trust=trust)
        candidates = yield from _load(tenant, wanted, recalled, claim, book)
        with _unhurried():
            answers = [_carry_out(command, book) for command in batch]
            if recalled.jobs and any(isinstance(answer, Refused) for answer in answers):
                # A change is checked against the database when it is written. A refusal is not, so it is decided
                # on what the database says.
                return (yield from self._execute(tenant, wanted, batch, claim, trust=False))
            leases = [] if claim is None else claim.apply(book, candidates)
            writes = _writes(tenant, book)
        yield database.Run(writes)
        return _Decision(book, recalled, answers, leases, candidates)


class _Decision(NamedTuple):
    book: ledger.Ledger
    recalled: memory.Recalled
    answers: list[Any]
    leases: list[rows.Lease]
    candidates: list[rows.TaskKey]


def _outcome(decision: _Decision, claim: commands.Claim | None, results: Mapping[str, Mapping[str, bytes]]) -> Outcome:
    book, candidates = decision.book, decision.candidates
    return Outcome(
        decision.answers,
        decision.leases,
        book.ended_jobs,
        book.revoked,
        sum(1 for task in book.became_pending if task.state == states.PENDING),
        len(book.new_timers),
        book.told,
        claim is not None
        and claim.look
        and (len(candidates) >= claim.most or any(book.tasks[key].state == states.PENDING for key in candidates)),
        results,
    )


@contextlib.contextmanager
def _unhurried() -> Generator[None]:
    """Keep the garbage collector out while thousands of small values are made that all live a moment longer."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _carry_out(command: commands.Command, book: ledger.Ledger) -> Any:
    """Its answer, or its refusal. One that fails half-way takes the whole transaction with it, and is tried alone."""
    before = (book.told, len(book.new_jobs))
    try:
        return command.apply(book)
    except errors.OstinatoError as error:
        if (book.told, len(book.new_jobs)) != before:
            raise
        return Refused(error)


def _load(
    tenant: str,
    wanted: needs.Needs,
    recalled: memory.Recalled,
    claim: commands.Claim | None,
    book: ledger.Ledger,
) -> database.Script[list[rows.TaskKey]]:
    """Fill the ledger with what the commands need; the answer is what there is to be claimed."""
    if wanted.idempotency_keys:
        found = yield fetch("load_jobs_by_idempotency_key", tenant=tenant, keys=sorted(wanted.idempotency_keys))
        for row in found:
            job = rows.Job(*row)
            book.jobs_by_idempotency_key[job.idempotency_key or ""] = job
    candidates: list[rows.TaskKey] = []
    _, job_ids, keys, ups = recalled
    most = 0 if claim is None else claim.most
    if job_ids or keys or ups or most:
        names, queues = ([], []) if claim is None else ([*claim.functions], [*claim.queues])
        loaded: database.Loaded = yield database.Load(tenant, queues, names, most, job_ids, keys, ups)
        for row in loaded.jobs:
            if row[0] not in book.jobs:
                job = rows.Job(*row)
                job.note()
                book.jobs[job.job_id] = job
        _enter(book, loaded.tasks)
        for job_id, up, down in loaded.edges:
            book.dependants.setdefault((job_id, up), []).append(down)
        candidates = loaded.candidates
    yield from _load_waiting(tenant, wanted, book)
    yield from _load_whole_jobs(tenant, wanted, book)
    return candidates


def _load_waiting(tenant: str, wanted: needs.Needs, book: ledger.Ledger) -> database.Script[None]:
    if wanted.waiters:
        found = yield fetch("load_waiters", tenant=tenant, keys=sorted(wanted.waiters))
        keys: list[rows.TaskKey] = []
        for row in found:
            timer = rows.Timer(*row)
            book.waiters.setdefault((timer.job_id, timer.name), []).append(timer)
            keys.append((timer.job_id, timer.task_id))
        if keys:
            _enter(book, (yield fetch("load_tasks", tenant=tenant, keys=keys)))
    if wanted.signals:
        found = yield fetch("load_signals", tenant=tenant, keys=sorted(wanted.signals))
        for row in found:
            signal = rows.Signal(*row)
            book.signals.setdefault((signal.job_id, signal.name), []).append(signal)
    if wanted.timers:
        found = yield fetch("load_timers", tenant=tenant, keys=sorted(wanted.timers))
        for row in found:
            timer = rows.Timer(*row)
            book.timers[(timer.job_id, timer.task_id)] = timer


def _load_whole_jobs(tenant: str, wanted: needs.Needs, book: ledger.Ledger) -> database.Script[None]:
    jobs = book.jobs
    whole = {job_id for job_id in wanted.whole_jobs if job_id in jobs}
    whole |= {job_id for job_id, _ in wanted.failing if job_id in jobs and jobs[job_id].cascades}
    if whole:
        found = yield fetch("load_whole_jobs", tenant=tenant, job_ids=sorted(whole))
        _enter(book, found)
        found = yield fetch("load_edges", tenant=tenant, job_ids=sorted(whole))
        for key in [key for key in book.dependants if key[0] in whole]:
            del book.dependants[key]
        for job_id, up, down in found:
            book.dependants.setdefault((job_id, up), []).append(down)
            book.dependencies.setdefault((job_id, down), []).append(up)


def _enter(book: ledger.Ledger, found: list[database.Row]) -> None:
    for row in found:
        task = rows.Task(*row)
        book.tasks.setdefault((task.job_id, task.task_id), task)


def _writes(tenant: str, book: ledger.Ledger) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """The ledger's changes as rows. The queue and the dead letters follow from how a task stood and stands."""
    queued: list[tuple[Any, ...]] = []
    unqueued: list[tuple[Any, ...]] = []
    new_letters: list[tuple[Any, ...]] = []
    gone_letters: list[tuple[Any, ...]] = []
    changed: list[tuple[Any, ...]] = []
    claimed: list[tuple[Any, ...]] = []
    completed: list[tuple[Any, ...]] = []
    changed_input: list[tuple[Any, ...]] = []
    for (job_id, task_id), t in book.changed_tasks.items():
        state, was = t.state, t.was
        if state == states.COMPLETED and was == states.PROCESSING:
            completed.append((tenant, job_id, task_id, t.output, t.finished_at))
        elif state == states.PROCESSING and was in _CLAIMABLE and (job_id, task_id) not in book.run_again:
            claimed.append((
                tenant, job_id, task_id, t.attempt, t.started_at, t.ready_at, t.worker, t.token, t.max_attempts,
                t.timeout_at,
            ))  # fmt: skip
        elif was:
            row = (
                state, t.attempt, t.attempt_base, t.crashes, t.open_dependencies, t.resuming, t.skipped_by_dependency,
                t.output, t.error, t.started_at, t.finished_at, t.ready_at, t.worker, t.token, t.max_attempts,
                t.timeout_at,
            )  # fmt: skip
            if (job_id, task_id) in book.new_inputs:
                changed_input.append((tenant, job_id, task_id, t.input, *row))
            else:
                changed.append((tenant, job_id, task_id, *row))
        if was == states.PENDING and (state != states.PENDING or t.ready_at != t.was_ready_at):
            unqueued.append((tenant, t.queue, t.name, -t.priority, t.was_ready_at, job_id, task_id))
        if state == states.PENDING and (was != states.PENDING or t.ready_at != t.was_ready_at):
            queued.append((tenant, t.queue, t.name, -t.priority, t.ready_at, job_id, task_id))
        elif state == states.FAILED and was != states.FAILED:
            new_letters.append((tenant, job_id, task_id, t.name, t.finished_at, _error_type(t)))
        if was == states.FAILED and state != states.FAILED:
            gone_letters.append((tenant, job_id, task_id))
    new_jobs = {job.job_id for job in book.new_jobs}
    advanced: list[tuple[Any, ...]] = []
    changed_jobs: list[tuple[Any, ...]] = []
    for job_id in sorted(book.events.keys() - new_jobs):  # two transactions lock jobs in the same order
        job = book.jobs[job_id]
        if job.plain() == job.was_plain:
            advanced.append((tenant, job_id, job.was_seq, job.last_seq, job.blocked, job.active, job.completed))
        else:
            changed_jobs.append((tenant, job_id, job.was_seq, *_job_changes(job)))
    return [
        ("insert_blob", [(tenant, job_id, digest, data) for (job_id, digest), data in book.blobs.items()]),
        ("insert_job", [(tenant, *_astuple(job)[:-2]) for job in book.new_jobs]),
        ("insert_job_tag", [
            (tenant, job.job_id, key, value, job.created_at)
            for job in book.new_jobs if job.tags != codec.EMPTY_OBJECT
            for key, value in codec.decode(job.tags).items()
        ]),
        ("update_job", changed_jobs),
        ("advance_job", advanced),
        ("insert_task", [(tenant, *_new_task(task)) for task in book.new_tasks]),
        ("insert_edge", book.new_edges),
        ("update_task", changed),
        ("claim_task", claimed),
        ("complete_task", completed),
        ("update_task_and_input", changed_input),
        ("delete_ready", unqueued),
        ("insert_ready", queued),
        ("delete_lease", [(tenant, *lease) for lease in book.dropped_leases]),
        ("insert_lease", [(tenant, *lease) for lease in book.new_leases]),
        ("delete_timer", [(tenant, *key) for key in book.dropped_timers if key not in book.new_timers]),
        ("insert_timer", [(tenant, *_astuple(timer)) for timer in book.new_timers.values()]),
        ("insert_step", [(tenant, *_astuple(step)) for step in book.new_steps]),
        ("take_signal", [(tenant, s.job_id, s.name, s.signal_id, True) for s in book.taken_signals]),
        ("insert_signal", [(tenant, *_astuple(signal)) for signal in book.new_signals]),
        ("insert_dead_letter", new_letters),
        ("delete_dead_letter", gone_letters),
        ("insert_event_page", [
            (tenant, job_id, first, last, book.now, body)
            for job_id, told in book.events.items()
            for first, last, body in pages.split(told, book.jobs[job_id].was_seq + 1)
        ]),
    ]  # fmt: skip


def _error_type(task: rows.Task) -> str:
    """What a dead letter is found by; the whole error is in the task."""
    return "" if task.error is None else codec.decode(task.error)["type"][:200]
