"""Everything that there is of one job, as the audit looks at it: its rows, and what its events say they should be.

What is damaged must not stop the audit: whatever of a job cannot be read is an error among `UNREADABLE`. Trouble of the
database is none of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import NamedTuple

import msgspec

from ostinato import errors
from ostinato.core import codec, events, fold, ledger, pages, rows, states, usage
from ostinato.store import database, reads, stream, usages
from ostinato.store.database import fetch

PAGE = 5_000
REFERENCE_BYTES = 128
"""No reference to a blob is larger, also if it is encrypted: larger payloads need not be read to find one."""


class Unreadable(Exception):
    """Something of a job cannot be read; the message says what."""


_DAMAGE = (msgspec.MsgspecError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
UNREADABLE = (Unreadable, errors.DecryptionFailed, *_DAMAGE)


class Large(NamedTuple):
    """A payload that is kept in a blob."""

    task_id: str | None
    what: str
    digest: bytes


class Reviewed(NamedTuple):
    """Who reviewed an item, and who moved it at that moment."""

    item_id: str
    by: str | None
    at: int | None
    moved_by: set[str | None]


class Snapshot(msgspec.Struct):
    job: rows.Job
    tasks: dict[str, rows.Task]
    edges: dict[str, list[str]]
    folded: fold.FoldedJob
    ready: set[tuple[str, int]]
    timers: dict[str, rows.Timer]
    letters: set[str]
    steps: set[tuple[str, str]]
    approvals: dict[tuple[str, str], rows.Approval]
    leased: dict[str, set[str]]
    usage: dict[usages.AttemptKey, usage.Usage]
    tags: dict[str, str]
    signals: dict[tuple[str, str], bool]
    """By name and id: whether a task has taken it."""
    ordered: bool
    """Whether it is known in which order the signals came: those of earlier versions have no place in it."""
    gate_keys: set[tuple[str, str]]
    item: Reviewed | None
    """Of the newest run of an item."""
    lost: list[Large]
    """Payloads whose blobs are gone."""
    inputs: dict[str, bool]
    """By task, where its events say what it is and it is there: whether the input is that."""


def read(tenant: str, job_id: str) -> database.Script[Snapshot | None]:
    """A job, or None if it was pruned meanwhile. Without all of its events there is nothing to compare with."""
    about = {"tenant": tenant, "job_id": job_id}
    found = yield fetch("read_job", **about)
    if not found:
        return None
    tasks = yield from _tasks(tenant, job_id)
    edges: dict[str, list[str]] = {}
    for up, down in (yield fetch("read_edges", **about)):
        edges.setdefault(down, []).append(up)
    asked = [rows.Approval(*row) for row in (yield fetch("audit_approvals", **about))]
    steps = yield fetch("audit_steps", most=REFERENCE_BYTES, **about)
    signals = yield fetch("audit_signals", most=REFERENCE_BYTES, **about)
    told = yield from _events(tenant, job_id)
    large = [*_of_events(told), *_of_tasks(tasks), *_of_others(steps, signals, asked)]
    lost = yield from _lost(tenant, job_id, large)
    folded = yield from _folded(tenant, told, lost)
    return Snapshot(
        job=rows.Job(*found[0]),
        tasks=tasks,
        edges=edges,
        folded=folded,
        ready={(row[0], row[1]) for row in (yield fetch("audit_ready", **about))},
        timers={row[1]: rows.Timer(*row) for row in (yield fetch("audit_timers", **about))},
        letters={row[0] for row in (yield fetch("audit_dead_letters", **about))},
        steps={(row[0], row[1]) for row in steps},
        approvals={(row.task_id, row.key): row for row in asked},
        leased=(yield from _leased(tenant, job_id, tasks)),
        usage=(yield from usages.of_attempts(tenant, job_id)),
        tags={row[0]: row[1] for row in (yield fetch("audit_tags", **about))},
        signals={(row[0], row[1]): bool(row[3]) for row in signals},
        ordered=all(row[4] for row in signals),
        gate_keys={(row[0], row[1]) for row in (yield fetch("audit_gate_keys", **about))},
        item=(yield from _reviewed(tenant, job_id)),
        lost=lost,
        inputs=(yield from _inputs(tenant, tasks, folded, {one.digest for one in lost})),
    )


def missing(lost: list[Large]) -> str:
    """A sentence that names what is missing, or the first of it."""
    named = [one.what for one in lost[:5]]
    more = f" and {len(lost) - 5:,} more" if len(lost) > 5 else ""
    return f"{', '.join(named)}{more}: missing from the blob table"


def cannot(what: str, error: Exception) -> str:
    """A sentence that says what cannot be read, and why."""
    own = isinstance(error, (errors.OstinatoError, Unreadable, msgspec.MsgspecError))
    return f"{what} cannot be read: {error if own else f'{type(error).__name__}: {error}'}"


@contextlib.contextmanager
def _reading(what: str) -> Generator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise Unreadable(cannot(what, error)) from error


# --- rows ----------------------------------------------------------------------------------------------------------


def _tasks(tenant: str, job_id: str) -> database.Script[dict[str, rows.Task]]:
    tasks: dict[str, rows.Task] = {}
    after = -1
    while page := (yield fetch("list_tasks", tenant=tenant, job_id=job_id, state=None, after=after, most=PAGE)):
        for row in page:
            task = rows.Task(*row)
            tasks[task.task_id] = task
            after = task.position
    return tasks


def _reviewed(tenant: str, job_id: str) -> database.Script[Reviewed | None]:
    found = yield fetch("audit_reviewed", tenant=tenant, job_id=job_id)
    if not found:
        return None
    item_id, by, at, _ = found[0]
    return Reviewed(item_id, by, at, {row[3] for row in found} - {None})


def _leased(tenant: str, job_id: str, tasks: dict[str, rows.Task]) -> database.Script[dict[str, set[str]]]:
    leased: dict[str, set[str]] = {}
    if any(task.state == states.PROCESSING for task in tasks.values()):
        for token, held in (yield fetch("audit_leases", tenant=tenant)):
            leased[token] = {task_id for holder, task_id in codec.decode(held) if holder == job_id}
    return leased


# --- events --------------------------------------------------------------------------------------------------------


def _events(tenant: str, job_id: str) -> database.Script[list[events.Event]]:
    with _reading("its events"):
        return (yield from stream.stream(tenant, job_id, whole=False))


def _folded(tenant: str, told: list[events.Event], lost: list[Large]) -> database.Script[fold.FoldedJob]:
    gone = {one.digest for one in lost}
    if any(pages.referred_blob(event.data) in gone for event in told):
        raise Unreadable(missing(lost))
    with _reading("its events"):
        complete: list[events.Event] = []
        for event in told:
            complete.append((yield from stream.complete(tenant, event)))
        return fold.fold(complete)


# --- large payloads ------------------------------------------------------------------------------------------------


def _of_events(told: list[events.Event]) -> Iterator[Large]:
    with _reading("its events"):
        for event in told:
            digest = pages.referred_blob(event.data)
            if digest is not None:
                yield Large(event.task_id, f"the data of event {event.seq} ({event.type})", digest)


def _of_tasks(tasks: dict[str, rows.Task]) -> Iterator[Large]:
    for task in tasks.values():
        yield from _referred(task.task_id, f"the input of task {task.task_id!r}", task.input)
        yield from _referred(task.task_id, f"the output of task {task.task_id!r}", task.output)


def _of_others(steps: list[database.Row], signals: list[database.Row], asked: list[rows.Approval]) -> Iterator[Large]:
    for task_id, key, output in steps:
        yield from _referred(task_id, f"the result of step {key!r} of task {task_id!r}", output)
    for name, signal_id, payload, *_ in signals:
        yield from _referred(None, f"the payload of signal {name!r} ({signal_id})", payload)
    for row in asked:
        yield from _referred(row.task_id, f"the payload of the approval of task {row.task_id!r}", row.payload)


def _referred(task_id: str | None, what: str, stored: bytes | None) -> Iterator[Large]:
    digest = _digest(stored)
    if digest is not None:
        yield Large(task_id, what, digest)


def _digest(stored: bytes | None) -> bytes | None:
    return stored[1:] if stored is not None and stored[:1] == ledger.BLOB_MARK else None


def _lost(tenant: str, job_id: str, large: list[Large]) -> database.Script[list[Large]]:
    if not large:
        return []
    kept = {row[0] for row in (yield fetch("audit_blobs", tenant=tenant, job_id=job_id))}
    return [one for one in large if one.digest not in kept]


def _inputs(
    tenant: str, tasks: dict[str, rows.Task], folded: fold.FoldedJob, gone: set[bytes]
) -> database.Script[dict[str, bool]]:
    """One after the other: all large inputs of a job at once may be too much for the memory."""
    same: dict[str, bool] = {}
    for task_id, task in tasks.items():
        told = folded.tasks.get(task_id)
        if told is None or told.input is None or _digest(task.input) in gone:
            continue
        stored = yield from reads.resolve(tenant, task.job_id, task.input)
        with _reading(f"the input of task {task_id!r}"):
            same[task_id] = codec.decode(stored) == told.input
    return same
