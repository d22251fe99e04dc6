"""The inbox: what people are asked, found oldest first, and what a decision needs to see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ostinato import errors
from ostinato.core import approvals, codec, cursors, filters, ledger, rows
from ostinato.store import database, lists, reads
from ostinato.store.database import fetch


class Found(NamedTuple):
    """An approval with what it is about."""

    row: rows.Approval
    payload: Any


class Waiting(NamedTuple):
    """How much waits for people, and since when."""

    number: int
    oldest_at: int | None


class Approvals:
    db: database.Database

    async def approvals(
        self, tenant: str, wanted: filters.ApprovalFilter, *, cursor: str | None = None, most: int = 50
    ) -> filters.Page[Found]:
        """Approvals, oldest first."""
        place = wanted.place(cursor)
        return await self.db.read(lambda: _approvals(tenant, wanted, place, filters.check_most(most)))

    async def approval(self, tenant: str, job_id: str, task_id: str, key: str | None = None) -> Found:
        """The approval that a task waits for, or the one that it asked for last."""

        def script() -> database.Script[Found]:
            found = yield fetch("load_approvals", tenant=tenant, keys=[(job_id, task_id)])
            known = [row for row in (rows.Approval(*row) for row in found) if key is None or row.key == key]
            if not known:
                named = "" if key is None else f" under the key {key!r}"
                raise errors.ApprovalNotFound(
                    f"nobody is or was asked about task {task_id!r} of job {job_id!r}{named}",
                    jobId=job_id,
                    taskId=task_id,
                )
            return (yield from _with_payloads(tenant, [max(known, key=_latest)]))[0]

        return await self.db.read(script)

    async def tasks_asked_about(self, tenant: str, keys: Sequence[rows.TaskKey]) -> set[rows.TaskKey]:
        """Those of these tasks about which people are asked now."""

        def script() -> database.Script[set[rows.TaskKey]]:
            found = [rows.Approval(*row) for row in (yield fetch("load_approvals", tenant=tenant, keys=list(keys)))]
            return {(row.job_id, row.task_id) for row in found if row.state == approvals.WAITING}

        return await self.db.read(script, snapshot=False)

    async def count_waiting_approvals(self, tenant: str) -> Waiting:
        def script() -> database.Script[Waiting]:
            count, oldest = (yield fetch("count_waiting_approvals", tenant=tenant))[0]
            return Waiting(int(count), oldest)

        return await self.db.read(script, snapshot=False)


def load(tenant: str, keys: Sequence[rows.TaskKey], book: ledger.Ledger) -> database.Script[None]:
    """Enter the approvals of tasks into a ledger, with what they are about in full."""
    for found in (yield fetch("load_approvals", tenant=tenant, keys=list(keys))):
        row = rows.Approval(*found)
        if row.payload is not None:
            row.given = yield from _whole(tenant, row.job_id, row.payload)
        book.approvals.setdefault((row.job_id, row.task_id), {})[row.key] = row
    for job_id, task_id, data in (yield fetch("load_inputs", tenant=tenant, keys=list(keys))):
        book.inputs[(job_id, task_id)] = yield from _whole(tenant, job_id, data)
    yield from _load_adders(tenant, book)


def load_all(tenant: str, job_ids: Sequence[str], book: ledger.Ledger) -> database.Script[None]:
    """Enter all approvals of jobs into a ledger, without what they are about."""
    yield from _load_rows(tenant, job_ids, book)
    yield from _load_adders(tenant, book)


def load_guarded(tenant: str, job_ids: Sequence[str], book: ledger.Ledger) -> database.Script[None]:
    """Enter which tasks depend on approvals that several people have to give."""
    yield from _load_rows(tenant, job_ids, book)
    for (job_id, task_id), known in book.approvals.items():
        if any(row.state == approvals.WAITING and b'"quorum"' in row.document for row in known.values()):
            found = yield fetch("load_guarded", tenant=tenant, job_id=job_id, task_id=task_id)
            book.guarded[(job_id, task_id)] = {down for (down,) in found}


def _load_rows(tenant: str, job_ids: Sequence[str], book: ledger.Ledger) -> database.Script[None]:
    for found in (yield fetch("load_approvals_of_jobs", tenant=tenant, job_ids=list(job_ids))):
        row = rows.Approval(*found)
        book.approvals.setdefault((row.job_id, row.task_id), {}).setdefault(row.key, row)


def _load_adders(tenant: str, book: ledger.Ledger) -> database.Script[None]:
    """Where the submitter may not decide, those who have added or changed what is guarded may not either."""
    asking = [
        (row.job_id, row.task_id)
        for known in book.approvals.values()
        for row in known.values()
        if row.not_submitter and row.state == approvals.WAITING
    ]
    for job_id, task_id in asking:
        for (options,) in (yield fetch("load_added_options", tenant=tenant, job_id=job_id, task_id=task_id)):
            known = codec.decode(options).get("addedBy")
            if known is not None:
                book.adders.setdefault((job_id, task_id), set()).update([known] if isinstance(known, str) else known)


def waiting(tenant: str, job_id: str, task_id: str) -> database.Script[rows.Approval | None]:
    """What people are asked about a task that waits for them."""
    found = yield fetch("load_approvals", tenant=tenant, keys=[(job_id, task_id)])
    known = [rows.Approval(*row) for row in found]
    return next((row for row in known if row.state == approvals.WAITING), None)


def _whole(tenant: str, job_id: str, stored: bytes) -> database.Script[bytes]:
    """What does not open is left as it is: the command that needs it is refused, and no other."""
    try:
        return (yield from reads.resolve(tenant, job_id, stored))
    except errors.DecryptionFailed:
        return codec.SEAL_MARK


def _with_payloads(tenant: str, known: Sequence[rows.Approval]) -> database.Script[list[Found]]:
    keys = [(row.job_id, row.task_id) for row in known if row.payload is None]
    inputs: dict[rows.TaskKey, bytes] = {}
    if keys:
        inputs = {(job, task): data for job, task, data in (yield fetch("load_inputs", tenant=tenant, keys=keys))}
    found: list[Found] = []
    for row in known:
        stored = inputs[(row.job_id, row.task_id)] if row.payload is None else row.payload
        found.append(Found(row, codec.decode((yield from reads.resolve(tenant, row.job_id, stored)))))
    return found


def _latest(row: rows.Approval) -> tuple[bool, int]:
    return row.state == approvals.WAITING, row.version


def _approvals(
    tenant: str, wanted: filters.ApprovalFilter, place: filters.ApprovalPlace, most: int
) -> database.Script[filters.Page[Found]]:
    actor, called = wanted.approver or (None, None)
    args = {
        "tenant": tenant,
        "after_at": place[0],
        "after_job": place[1],
        "after_task": place[2],
        "after_key": place[3],
        "job_id": wanted.job_id,
        "task_id": wanted.task_id,
        "state": wanted.state,
        "actor": actor,
        "approver": approvals.named(None if actor is None else [actor]),
        "called": approvals.named(None if called is None else [called]),
        "most": most + 1,
    }
    keys = [(row[0], row[1], row[2], row[3]) for row in (yield fetch(_look(wanted), **args))]
    cursor = cursors.write(keys[most - 1]) if len(keys) > most else None
    keys = keys[:most]
    items: list[Found] = []
    size = 0
    for start in range(0, len(keys), lists.AT_ONCE):
        part = keys[start : start + lists.AT_ONCE]
        order = {at[1:]: index for index, at in enumerate(part)}
        found = [rows.Approval(*row) for row in (yield fetch("read_approvals", tenant=tenant, keys=list(order)))]
        known = yield from _with_payloads(tenant, sorted(found, key=lambda row: order[row.place]))
        items += known
        size += sum(len(codec.encode_own(one.payload)) for one in known)
        if size > lists.PAGE_BYTES and start + lists.AT_ONCE < len(keys):
            return filters.Page(items, cursors.write(part[-1]))
    return filters.Page(items, cursor)


def _look(wanted: filters.ApprovalFilter) -> str:
    if wanted.job_id is not None:
        return "find_approvals_of_job"
    return "find_waiting_approvals" if wanted.state == approvals.WAITING else "find_approvals"
