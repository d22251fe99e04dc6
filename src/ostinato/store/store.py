"""The verbs of the store. Each is one transaction, takes its tenant first, and works on batches."""

from __future__ import annotations

import collections
import copy
import gc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from ostinato import encryption, errors
from ostinato.core import commands, graph, ledger, needs, rows, sheet, states
from ostinato.store import (
    approvals,
    audit_log,
    budgets,
    courses,
    cursors,
    database,
    definitions,
    executions,
    facts,
    fleet,
    gates,
    gauges,
    items,
    keys,
    lists,
    memory,
    reads,
    reindex,
    results,
    retention,
    rotation,
    sealed,
    stories,
    stream,
    tallies,
    usages,
    writes,
)
from ostinato.store.database import fetch

FEW_COMMANDS = 4
MOST_TURNS = 1_000_000


class Refused(NamedTuple):
    """A command that was not carried out, and why."""

    error: Exception


class Outcome(msgspec.Struct):
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
    system_work: bool = False
    """Something became ready for the engine's own functions."""
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
    retention.Retention,
    gauges.Gauges,
    keys.Keys,
    audit_log.AuditLog,
    rotation.Rotation,
    definitions.Definitions,
    gates.Gates,
    results.Results,
    items.Items,
    approvals.Approvals,
    tallies.Tallies,
    usages.Usages,
    budgets.Budgets,
):
    def __init__(
        self,
        db: database.Database,
        *,
        spill_bytes: int = 32 * 1024,
        keyring: encryption.Keyring | None = None,
        search_index_in_clear: bool = False,
    ) -> None:
        self.db = db
        self._spill_bytes = spill_bytes
        self._keyring = keyring
        self._address = sheet.digest if keyring is None else encryption.address
        self._memory = memory.Memory()
        self.feed_cursors = cursors.Cursors(db)
        self.results_indexed = keyring is None or search_index_in_clear
        self.rules = definitions.RuleCache()
        self.saves = collections.Counter()
        self.budgets = budgets.BudgetCache()
        self.courses = courses.CourseCache()
        self._writer = tallies.Writer()
        self.writer_of_tallies = self._writer.name

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
            if done.book.usages:
                self.budgets.spent(tenant)

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
        now = self.db.now()
        rules = yield from self.rules.of(tenant, now)
        budget = yield from self.budgets.of(tenant, now, fresh=wanted.fresh_budget)
        discreet = self._keyring is not None
        book = ledger.Ledger(tenant, now, self._spill_bytes, self._address, rules.watched, discreet)
        if budget is not None:
            budgets.lend(book, budget)
        recalled = self._memory.recall(tenant, wanted, book, trust=trust)
        candidates = yield from _load(tenant, wanted, recalled, claim, book)
        if book.jobs or book.items_by_id or wanted.courses:
            yield from self.courses.load(tenant, now, wanted, book)
        stale = candidates and any(book.tasks[key].state != states.PENDING for key in candidates if key in book.tasks)
        if (trust and stale) or (book.gate_jobs and not (yield from _gates_are_the_same(tenant, book))):
            return (yield from self._execute(tenant, wanted, batch, claim, trust=False))
        with _Unhurried():
            answers, refused = _carry_out(batch, book)
            if book.awaiting_turn:
                book.give_turns()
            if refused and recalled.jobs:
                # A change is checked against the database when it is written. A refusal is not, so it is decided
                # on what the database says.
                return (yield from self._execute(tenant, wanted, batch, claim, trust=False))
            leases = [] if claim is None else claim.apply(book, candidates)
            if (book.items or book.items_by_id) and (answered := commands.follow(book)):
                yield from budgets.withdraw(tenant, book, answered)
            if book.waits_for_tenant:
                if not wanted.fresh_budget:
                    wanted.fresh_budget = True  # whether to wait is decided on what the database says
                    return (yield from self._execute(tenant, wanted, batch, claim, trust=False))
                yield from budgets.ask(tenant, book)
            if rules:
                commands.react(book, rules)
            changes = writes.of_ledger(tenant, book, self._writer.name(now) if book.tallies else "")
        yield database.Run(changes)
        return _Decision(book, recalled, answers, leases, candidates)


class _Decision(msgspec.Struct):
    book: ledger.Ledger
    recalled: memory.Recalled
    answers: list[Any]
    leases: list[rows.Lease]
    candidates: list[rows.TaskKey]


def _outcome(decision: _Decision, claim: commands.Claim | None, results: Mapping[str, Mapping[str, bytes]]) -> Outcome:
    book, candidates = decision.book, decision.candidates
    pending = book.became_pending
    return Outcome(
        decision.answers,
        decision.leases,
        book.ended_jobs,
        book.revoked,
        sum(task.state == states.PENDING for task in pending) if pending else 0,
        len(book.new_timers),
        book.told,
        claim is not None
        and claim.look
        and (len(candidates) >= claim.most or any(book.tasks[key].state == states.PENDING for key in candidates)),
        any(task.queue == graph.SYSTEM_QUEUE for task in pending) if pending else False,
        results,
    )


class _Unhurried:
    """Keep the garbage collector out while thousands of small values are made that all live a moment longer."""

    __slots__ = ("_enabled",)

    def __enter__(self) -> None:
        self._enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *exc: object) -> None:
        if self._enabled:
            gc.enable()


def _carry_out(batch: Sequence[commands.Command], book: ledger.Ledger) -> tuple[list[Any], bool]:
    """An answer or a refusal for each, and whether any was refused. One that fails half-way takes the whole transaction
    with it, and is tried alone."""
    answers: list[Any] = []
    refused = False
    for command in batch:
        before = book.told
        try:
            answers.append(command.apply(book))
        except errors.OstinatoError as error:
            if book.told != before:
                raise
            answers.append(Refused(error))
            refused = True
    return answers, refused


def _load(
    tenant: str,
    wanted: needs.Needs,
    recalled: memory.Recalled,
    claim: commands.Claim | None,
    book: ledger.Ledger,
) -> database.Script[list[rows.TaskKey]]:
    """Fill the ledger with what the commands need; the answer is what there is to be claimed."""
    idempotency_keys = wanted.idempotency_keys
    if wanted.gate_keys:
        yield from _find_gates(tenant, wanted, recalled, book)
        idempotency_keys = idempotency_keys | _keys_of_late_reports(wanted, book)
    if idempotency_keys:
        found = yield fetch("load_jobs_by_idempotency_key", tenant=tenant, keys=sorted(idempotency_keys))
        for key, removed, request_hash, *row in found:
            job = rows.RemovedJob(removed, request_hash) if row[0] is None else rows.Job(*row)
            book.jobs_by_idempotency_key[key] = job
    if wanted.outside_events:
        found = yield fetch("load_outside_events", tenant=tenant, keys=sorted(wanted.outside_events))
        book.outside_events |= {(source, event_id) for source, event_id in found}
    if wanted.usages:
        found = yield fetch("load_last_usages", tenant=tenant, keys=sorted(wanted.usages))
        book.last_usages |= {(job_id, task_id, attempt): last for job_id, task_id, attempt, last in found}
    if wanted.items:
        yield from courses.find_items(tenant, wanted, recalled, book)
    candidates: list[rows.TaskKey] = []
    job_ids, keys, ups = recalled.job_ids, recalled.keys, recalled.ups
    most = 0 if claim is None else claim.most
    if job_ids or keys or ups or most:
        names, queues = ([], []) if claim is None else ([*claim.functions], [*claim.queues])
        known = recalled.whole_jobs if most else []
        loaded: database.Loaded = yield database.Load(tenant, queues, names, most, job_ids, keys, ups, known)
        for row in loaded.jobs:
            if row[0] not in book.jobs:
                job = rows.Job(*row)
                job.note()
                book.jobs[job.job_id] = job
        _enter(book, loaded.tasks)
        for job_id, up, down in loaded.edges:
            book.dependants.setdefault((job_id, up), []).append(down)
        candidates = loaded.candidates
        missing = recalled.enter_candidates(candidates, book)
        if missing:
            _enter(book, (yield fetch("load_tasks", tenant=tenant, keys=missing)))
    asking = wanted.approvals or wanted.all_approvals or wanted.item_approvals or wanted.guarded
    if wanted.waiters or wanted.signals or wanted.sent_signals or wanted.timers or asking:
        yield from _load_waiting(tenant, wanted, book)
    if wanted.budget_waiters:
        found = yield fetch("load_waiting_for_budget", tenant=tenant, job_ids=sorted(wanted.budget_waiters))
        _enter(book, found)
        for row in found:
            book.awaiting_budget.setdefault(row[0], []).append(book.tasks[(row[0], row[1])])
    limited = [job.job_id for job in book.jobs.values() if job.max_parallel is not None]
    if limited:
        yield from _load_turns(tenant, wanted, book, limited)
    if wanted.whole_jobs or wanted.whole_gates or wanted.items or wanted.failing:
        yield from _load_whole_jobs(tenant, wanted, book)
    return candidates


def _find_gates(
    tenant: str, wanted: needs.Needs, recalled: memory.Recalled, book: ledger.Ledger
) -> database.Script[None]:
    """Only now is it known which jobs to load."""
    found = yield fetch("load_gate_keys", tenant=tenant, keys=sorted(wanted.gate_keys))
    for gate, key, job_id in found:
        book.gate_jobs[(gate, key)] = job_id
        if job_id not in book.jobs:
            recalled.job_ids.append(job_id)
        keys = [(job_id, task_id) for task_id in wanted.gate_keys[(gate, key)]]
        recalled.keys.extend(keys)
        recalled.ups.extend(keys)


def _gates_are_the_same(tenant: str, book: ledger.Ledger) -> database.Script[bool]:
    """A job that has ended may have been a gate's no longer when it was loaded: a report would come too late for a gate
    that has just begun anew. Of one that runs this is noticed when it is written."""
    ended = {place: job_id for place, job_id in book.gate_jobs.items() if not _runs(book, job_id)}
    if not ended:
        return True
    found = yield fetch("load_gate_keys", tenant=tenant, keys=sorted(ended))
    return {(gate, key): job_id for gate, key, job_id in found} == ended


def _runs(book: ledger.Ledger, job_id: str) -> bool:
    return job_id in book.jobs and book.jobs[job_id].state == states.RUNNING


def _keys_of_late_reports(wanted: needs.Needs, book: ledger.Ledger) -> set[str]:
    """Which jobs to look for is only known when the jobs of the gates are."""
    jobs = book.gate_jobs
    return {
        commands.late_key(jobs[(gate, key)], member) for gate, key, member in wanted.late_reports if (gate, key) in jobs
    }


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
        found = yield fetch("load_signals", tenant=tenant, keys=sorted(wanted.signals), most=len(wanted.tasks))
        for row in found:
            signal = rows.Signal(*row)
            book.signals.setdefault((signal.job_id, signal.name), []).append(signal)
    if wanted.sent_signals:
        found = yield fetch("load_sent_signals", tenant=tenant, keys=sorted(wanted.sent_signals))
        book.sent_signals |= {(job_id, name, signal_id) for job_id, name, signal_id in found}
    if wanted.timers:
        found = yield fetch("load_timers", tenant=tenant, keys=sorted(wanted.timers))
        for row in found:
            timer = rows.Timer(*row)
            book.timers[(timer.job_id, timer.task_id)] = timer
    if wanted.approvals:
        yield from approvals.load(tenant, sorted(wanted.approvals), book)
    asking = wanted.all_approvals | {
        book.items_by_id[item_id].job_id or "" for item_id in wanted.item_approvals if item_id in book.items_by_id
    }
    if asking:
        yield from approvals.load_all(tenant, sorted(asking), book)
    if wanted.guarded:
        yield from approvals.load_guarded(tenant, sorted(wanted.guarded), book)


def _load_turns(tenant: str, wanted: needs.Needs, book: ledger.Ledger, job_ids: list[str]) -> database.Script[None]:
    """As many of those that wait for their turn as this transaction can make room for."""
    all_turns = wanted.whole_jobs or wanted.whole_gates or wanted.all_turns
    most = MOST_TURNS if all_turns else len(wanted.tasks) + len(wanted.dependants_of) + 1
    found = yield fetch("load_waiting_for_turn", tenant=tenant, job_ids=job_ids, most=most)
    _enter(book, found)
    for row in found:
        task = book.tasks[(row[0], row[1])]
        book.awaiting_turn.setdefault(task.job_id, {})[task.task_id] = task


def _load_whole_jobs(tenant: str, wanted: needs.Needs, book: ledger.Ledger) -> database.Script[None]:
    jobs = book.jobs
    whole = {job_id for job_id in wanted.whole_jobs if job_id in jobs}
    whole |= {book.gate_jobs[gate] for gate in wanted.whole_gates if gate in book.gate_jobs}
    named = [book.items_by_id[item_id].job_id for item_id in wanted.items if item_id in book.items_by_id]
    whole |= {job_id for job_id in named if job_id is not None and job_id in jobs}
    whole |= {job_id for job_id, _ in wanted.failing if job_id in jobs and jobs[job_id].cascades}
    if whole:
        # Edges first: somebody may add tasks meanwhile, and then there are tasks without edges, but no edge to nowhere.
        edges = yield fetch("load_edges", tenant=tenant, job_ids=sorted(whole))
        found = yield fetch("load_whole_jobs", tenant=tenant, job_ids=sorted(whole))
        _enter(book, found)
        for key in [key for key in book.dependants if key[0] in whole]:
            del book.dependants[key]
        for job_id, up, down in edges:
            book.dependants.setdefault((job_id, up), []).append(down)
            book.dependencies.setdefault((job_id, down), []).append(up)
    yield from _load_gates_of_jobs(tenant, wanted, book)


def _load_gates_of_jobs(tenant: str, wanted: needs.Needs, book: ledger.Ledger) -> database.Script[None]:
    """Whether these are still the jobs of their gates and keys. It is asked after they were read: a reset of later
    changes the job, and is noticed when it is written."""
    places = {commands.place_of(book.jobs[job_id]) for job_id in wanted.whole_jobs if job_id in book.jobs}
    unknown = sorted(place for place in places if place is not None and place not in wanted.gate_keys)
    if unknown:
        found = yield fetch("load_gate_keys", tenant=tenant, keys=unknown)
        book.gate_jobs.update({(gate, key): job_id for gate, key, job_id in found})


def _enter(book: ledger.Ledger, found: list[database.Row]) -> None:
    for row in found:
        task = rows.Task(*row)
        book.tasks.setdefault((task.job_id, task.task_id), task)
