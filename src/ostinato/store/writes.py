"""The changes of a ledger as rows for named writes, in the order in which they are run."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.core import codec, columns, items, ledger, pages, rows, states, tables
from ostinato.store import budgets, tallies

Row = tuple[Any, ...]
Writes = list[tuple[str, list[Row]]]

_inserted_job = tables.INSERT_JOB.row
_changed_job = tables.UPDATE_JOB.row
_advanced_job = tables.ADVANCE_JOB.row
_inserted_task = tables.INSERT_TASK.row
_ended_task = tables.INSERT_ENDED_TASK.row
_changed_task = tables.UPDATE_TASK.row
_claimed_task = tables.CLAIM_TASK.row
_completed_task = tables.COMPLETE_TASK.row
_task_with_input = tables.UPDATE_TASK_AND_INPUT.row
_approval = tables.WRITES["insert_approval"].row
_inserted_item = columns.row_of([column.name for column in columns.of(items.Item)])
_item_changes = columns.row_of(tables.ITEM.of_set(columns.CHANGE.name))
_CLAIMABLE = (states.PENDING, states.BLOCKED)
_TOLD = (states.COMPLETED, states.FAILED)
"""How a task may end at once, when somebody outside tells of it before anybody else knows of its job."""
_astuple = msgspec.structs.astuple


def of_ledger(tenant: str, book: ledger.Ledger, writer: str = "") -> Writes:
    """All that a transaction writes, and counts as `writer`. `statements` knows by their order what is usually written
    together. (A single task writes a row or none of each kind: a loop over none takes longer than to see that.)"""
    tasks, letters = _tasks(tenant, book)
    blobs, jobs = book.blobs, book.jobs
    return [
        ("insert_blob", [(tenant, *place, data) for place, data in blobs.items()] if blobs else []),
        *_jobs(tenant, book),
        *tasks,
        ("delete_lease", [(tenant, *lease) for lease in book.dropped_leases] if book.dropped_leases else []),
        ("insert_lease", [(tenant, *lease) for lease in book.new_leases] if book.new_leases else []),
        *(_around(tenant, book, letters, writer) if letters or _does_more(book) else ()),
        ("insert_event_page", [
            (tenant, job_id, first, last, book.now, body)
            for job_id, told in book.events.items()
            for first, last, body in pages.split(told, jobs[job_id].was_seq + 1)
        ]),
    ]  # fmt: skip


def _does_more(book: ledger.Ledger) -> bool:
    """Whether it does anything else than to let tasks go on: one look for all of what seldom happens."""
    return bool(
        book.new_timers or book.dropped_timers or book.new_steps or book.new_signals or book.taken_signals
        or book.gates_before or book.new_items or book.changed_items or book.changed_approvals or book.withdrawn
        or book.new_outside_events or book.waits_for_tenant or book.usages or book.tallies
    )  # fmt: skip


def _around(tenant: str, book: ledger.Ledger, letters: Writes, writer: str) -> Writes:
    """What happens beside the moves of tasks."""
    return [
        ("delete_timer", [(tenant, *key) for key in book.dropped_timers if key not in book.new_timers]),
        ("insert_timer", [(tenant, *_astuple(timer)) for timer in book.new_timers.values()]),
        ("insert_step", [(tenant, *_astuple(step)) for step in book.new_steps]),
        ("take_signal", [(tenant, s.job_id, s.name, s.signal_id, True) for s in book.taken_signals]),
        ("insert_signal", [(tenant, *_astuple(signal)) for signal in book.new_signals]),
        *letters,
        *_gate_keys(tenant, book),
        *_items(tenant, book),
        ("withdraw_approval", [(tenant, *key, book.now) for key in book.withdrawn]),
        ("insert_approval", [_approval(tenant, row) for row in book.changed_approvals.values()]),
        ("insert_outside_event", [(tenant, *event) for event in book.new_outside_events]),
        ("hold_budget", budgets.held(book) if book.waits_for_tenant else []),
        ("add_usage", [(tenant, *key, *_astuple(u), book.last_usages.get(key)) for key, u in book.usages.items()]),
        ("add_tally", tallies.rows_of(tenant, book.tallies, writer) if book.tallies else []),
    ]


def _jobs(tenant: str, book: ledger.Ledger) -> Writes:
    new, jobs = book.new_jobs, book.jobs
    new_ids = {job.job_id for job in new} if new else ()
    advanced: list[Row] = []
    changed: list[Row] = []
    for job_id in sorted(book.events):  # two transactions lock jobs in the same order
        if job_id in new_ids:
            continue
        job = jobs[job_id]
        if job.plain() == job.was_plain:
            advanced.append(_advanced_job(tenant, job))
        else:
            changed.append(_changed_job(tenant, job))
    return [
        ("insert_job", [_inserted_job(tenant, job) for job in new] if new else []),
        ("insert_job_tag", [
            (tenant, job.job_id, key, value, job.created_at)
            for job in new if job.tags != codec.EMPTY_OBJECT
            for key, value in codec.decode(job.tags).items()
        ] if new else []),
        ("update_job", changed),
        ("advance_job", advanced),
    ]  # fmt: skip


def _gate_keys(tenant: str, book: ledger.Ledger) -> Writes:
    """One write for each key, however often it was reset and begun anew: a statement sees no other part of itself."""
    gone: list[Row] = []
    changed: list[Row] = []
    new: list[Row] = []
    for place, before in book.gates_before.items():
        now = book.gate_jobs.get(place)
        if before is None and now is not None:
            new.append((tenant, *place, now))
        elif before is not None and now is None:
            gone.append((tenant, *place))
        elif before != now:
            changed.append((tenant, *place, now))
    return [("delete_gate_key", gone), ("update_gate_key", changed), ("insert_gate_key", new)]


def _items(tenant: str, book: ledger.Ledger) -> Writes:
    new: list[Row] = []
    changed: list[Row] = []
    for item_id, payload in book.new_items.items():
        new.append((*_inserted_item(tenant, book.items_by_id[item_id]), payload))
    for item_id, item in sorted(book.changed_items.items()):  # two transactions lock items in the same order
        if item_id not in book.new_items:
            payload = book.new_payloads.get(item_id)
            digest = None if payload is None else items.with_payload(item.digest, payload)
            changed.append(
                (tenant, item_id, item.was_status, *item.was_seen, *_item_changes(tenant, item)[1:], payload, digest)
            )
    return [("insert_item", new), ("update_item", changed)]


def _tasks(tenant: str, book: ledger.Ledger) -> tuple[Writes, Writes]:
    """The tasks with the queue, and the dead letters: both follow from how a task stood and stands."""
    queued: list[Row] = []
    unqueued: list[Row] = []
    new_letters: list[Row] = []
    gone_letters: list[Row] = []
    changed: list[Row] = []
    claimed: list[Row] = []
    completed: list[Row] = []
    changed_input: list[Row] = []
    for (job_id, task_id), t in book.changed_tasks.items():
        state, was = t.state, t.was
        if state == states.COMPLETED and was == states.PROCESSING:
            completed.append(_completed_task(tenant, t))
            continue
        if state == states.PROCESSING and was in _CLAIMABLE and (job_id, task_id) not in book.run_again:
            claimed.append(_claimed_task(tenant, t))
        elif was:
            if (job_id, task_id) in book.new_inputs:
                changed_input.append(_task_with_input(tenant, t))
            else:
                changed.append(_changed_task(tenant, t))
        if was == states.PENDING and (state != states.PENDING or t.ready_at != t.was_ready_at):
            unqueued.append((tenant, t.queue, t.name, -t.priority, t.was_ready_at, job_id, task_id))
        if state == states.PENDING and (was != states.PENDING or t.ready_at != t.was_ready_at):
            queued.append((tenant, t.queue, t.name, -t.priority, t.ready_at, job_id, task_id))
        elif state == states.FAILED and was != states.FAILED and ledger.is_dead_letter(book.jobs[job_id], t):
            new_letters.append((tenant, job_id, task_id, t.name, t.finished_at, _error_type(t)))
        if was == states.FAILED and state != states.FAILED:
            gone_letters.append((tenant, job_id, task_id))
    new = book.new_tasks
    return [
        ("insert_task", [_inserted_task(tenant, t) for t in new if t.state not in _TOLD] if new else []),
        ("insert_ended_task", [_ended_task(tenant, t) for t in new if t.state in _TOLD] if new else []),
        ("insert_edge", book.new_edges),
        ("update_task", changed),
        ("claim_task", claimed),
        ("complete_task", completed),
        ("update_task_and_input", changed_input),
        ("delete_ready", unqueued),
        ("insert_ready", queued),
    ], [
        (name, letters)
        for name, letters in (("insert_dead_letter", new_letters), ("delete_dead_letter", gone_letters)) if letters
    ]  # fmt: skip


def _error_type(task: rows.Task) -> str:
    """What a dead letter is found by; the whole error is in the task."""
    return "" if task.error is None else codec.decode(task.error)["type"][:200]
