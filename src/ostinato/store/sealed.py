"""Encryption at the seam to the database: payloads are sealed on their way into it and opened on their way out.

A script yields statements and receives rows, so one place sees everything that is stored: here. The columns of a table
say where its statements carry payloads, and what each is bound to. Without a keyring none of this is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ostinato import encryption, errors
from ostinato.core import codec, rows, tables
from ostinato.store import around, database

T = TypeVar("T")
Place = int | str
"""Where to find a value: a column of the row, or an argument of the statement."""


class Carrier(NamedTuple):
    """A statement whose rows carry payloads: those of `job`, at `place` in it, in columns of certain kinds."""

    job: Place
    place: tuple[Place, ...]
    payloads: tuple[tuple[int, str], ...]
    leniently: bool = False
    """What does not open is left as it is, for a transition that others share: the trouble of its own task."""


def _written(write: tables.Write) -> Carrier | None:
    payloads = tuple(
        (write.place(name), column.payload) for name, column in write.given if column.payload and name == column.name
    )
    if not payloads:
        return None
    job, *place = map(write.place, write.table.key)
    return Carrier(job, tuple(place), payloads)


def _read(table: tables.Table, found: str = "", *, leniently: bool = False) -> Carrier:
    """A query for these columns of a table, or for all. The parts of its key that are not found are arguments."""
    names = found.split() if found else [column.name for column in table.columns]

    def where(name: str) -> Place:
        return names.index(name) if name in names else name

    job, *place = table.key
    payloads = tuple((names.index(name), kind) for name, kind in table.payloads().items() if name in names)
    return Carrier(where(job), tuple(map(where, place)), payloads, leniently)


WRITES = {name: carrier for name, write in tables.WRITES.items() if (carrier := _written(write))}
_LOADED_ITEM = _read(tables.ITEM, " ".join([*tables.ITEM.by_name][:-2]), leniently=True)
_RESULT = _read(tables.RESULT, "number result_id job_id domain kind created_at document text")
_INPUT = list(tables.TASK.by_name).index("input")
_DEPENDENCY = _read(tables.TASK, "task_id state output error")
_FEED = _read(tables.EVENT_PAGE, "position transaction job_id first_seq at body")
# Transitions load tasks without opening them: they move payloads about and never look inside, and one that cannot be
# opened is the trouble of its own task, not of all that share its transaction.
READS = {
    "load_signals": _read(tables.SIGNAL),
    "load_approvals": _read(tables.APPROVAL, leniently=True),
    "load_approvals_of_jobs": _read(tables.APPROVAL, leniently=True),
    "load_inputs": _read(tables.TASK, "job_id task_id input", leniently=True),
    "read_approvals": _read(tables.APPROVAL),
    "audit_approvals": _read(tables.APPROVAL),
    "audit_steps": _read(tables.STEP, "task_id key output"),
    "audit_signals": _read(tables.SIGNAL, "name signal_id payload"),
    "list_tasks": _read(tables.TASK),
    "read_task": _read(tables.TASK),
    "read_all_dependency_outputs": _DEPENDENCY,
    "read_dependency_outputs": _DEPENDENCY,
    "read_job_outputs": _read(tables.TASK, "task_id output"),
    "read_job_failures": _read(tables.TASK, "task_id state error"),
    "read_steps": _read(tables.STEP, "key output"),
    "read_blob": _read(tables.BLOB, "data"),
    "list_steps": _read(tables.STEP, "key output"),
    "list_pages": _read(tables.EVENT_PAGE, "first_seq last_seq at body"),
    "feed": _FEED,
    "feed_of_job": _FEED,
    "list_outside_events": _read(tables.OUTSIDE_EVENT),
    "read_outside_events": _read(tables.OUTSIDE_EVENT),
    "read_item": _read(tables.ITEM),
    "audit_results": _read(
        tables.RESULT, "number result_id job_id domain kind created_at document text", leniently=True
    ),
    "audit_items": _read(tables.ITEM, "item_id digest payload", leniently=True),
    "load_items": _LOADED_ITEM,
    "load_items_by_id": _LOADED_ITEM,
    "read_result": _RESULT,
    "read_results": _RESULT,
    "read_dead_letters": _read(tables.TASK, "job_id task_id name failed_at attempt error input"),
}


class SealedDatabase(around.Around[database.Database]):
    """A database whose payloads only the holders of its keys can read."""

    def __init__(self, inner: database.Database, keyring: encryption.Keyring) -> None:
        super().__init__(inner)
        self._keyring = keyring

    async def write(
        self,
        script: Callable[[], database.Script[T]],
        *,
        optimistic: bool = False,
        brief: bool = False,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        self._inner.before_commit, self._inner.after_commit = self.before_commit, self.after_commit
        return await self._inner.write(
            lambda: self._translated(script()), optimistic=optimistic, brief=brief, committed=committed
        )

    async def read(
        self,
        script: Callable[[], database.Script[T]],
        *,
        snapshot: bool = True,
        brief: bool = False,
        long: bool = False,
    ) -> T:
        return await self._inner.read(lambda: self._translated(script()), snapshot=snapshot, brief=brief, long=long)

    def seen_by(self, tenant: str) -> database.Database:
        inner = self._inner.seen_by(tenant)
        return self if inner is self._inner else SealedDatabase(inner, self._keyring)

    def _translated(self, script: database.Script[T]) -> database.Script[T]:
        answer: Any = None
        while True:
            try:
                request = script.send(answer)
            except StopIteration as stop:
                return stop.value
            if isinstance(request, database.Run):
                request = database.Run([(name, self._seal(name, written)) for name, written in request.writes])
            elif isinstance(request, database.Fetch) and "mention" in request.args:
                # No sealed page seems to contain anything: all of them are read, and looked through when they are open.
                request = database.Fetch(request.block, request.args | {"mention": None})
            answer = yield request
            if isinstance(request, database.Load) and not self._keyring.accept_plain:
                answer = answer._replace(tasks=[_unplain(row) for row in answer.tasks])
            elif isinstance(request, database.Fetch) and request.block in READS:
                answer = self._open(request, answer)

    def _seal(self, name: str, written: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        carrier = WRITES.get(name)
        if carrier is None:
            return written
        return [self._translate(carrier, row, row[0], {}, self._keyring.seal) for row in written]

    def _open(self, request: database.Fetch, found: list[database.Row]) -> list[tuple[Any, ...]]:
        carrier, args = READS[request.block], request.args
        return [self._translate(carrier, row, args["tenant"], args, self._keyring.open) for row in found]

    @staticmethod
    def _translate(
        carrier: Carrier, row: Sequence[Any], tenant: str, args: dict[str, Any], do: Callable[[bytes, bytes], bytes]
    ) -> tuple[Any, ...]:
        def value(place: Place) -> Any:
            return args[place] if isinstance(place, str) else row[place]

        cells = list(row)
        for column, kind in carrier.payloads:
            if cells[column] is not None:
                where = [value(place) for place in carrier.place]
                with contextlib.suppress(*([errors.DecryptionFailed] if carrier.leniently else [])):
                    cells[column] = do(cells[column], about(tenant, value(carrier.job), kind, *where))
        return tuple(cells)


def about(tenant: str, job_id: str, kind: str, *place: str | int | bytes) -> bytes:
    """What a payload is bound to. No part can hold a NUL, so two different places never look alike."""
    parts = [part.hex() if isinstance(part, bytes) else str(part) for part in place]
    return "\0".join((tenant, job_id, kind, *parts)).encode()


def open_inputs(keyring: encryption.Keyring, tenant: str, leases: Sequence[rows.Lease]) -> None:
    """Open what workers are to run. One that cannot be opened stays so: its attempt fails, and says why."""
    for lease in leases:
        if lease.input.startswith(
            codec.SEAL_MARK
        ):  # otherwise it never was in the database: it was just submitted here
            with contextlib.suppress(errors.DecryptionFailed):
                lease.input = keyring.open(lease.input, about(tenant, lease.job_id, "input", lease.task_id))


def _unplain(row: database.Row) -> database.Row:
    """A task whose input was stored plain where nothing plain is accepted: it cannot be opened either."""
    return row if row[_INPUT].startswith(codec.SEAL_MARK) else (*row[:_INPUT], codec.SEAL_MARK, *row[_INPUT + 1 :])
