"""Encryption at the seam to the database: payloads are sealed on their way into it and opened on their way out.

A script yields statements and receives rows, so one place sees everything that is stored: here. The tables below say
where a statement carries payloads, and what each is bound to. Without a keyring none of this is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ostinato import encryption, errors
from ostinato.core import codec, rows
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


WRITES = {
    "insert_blob": Carrier(1, (2,), ((3, "blob"),)),
    "insert_task": Carrier(1, (2,), ((11, "input"),)),
    "insert_ended_task": Carrier(1, (2,), ((11, "input"), (23, "output"), (24, "error"))),
    "update_task": Carrier(1, (2,), ((10, "output"), (11, "error"))),
    "complete_task": Carrier(1, (2,), ((3, "output"),)),
    "update_task_and_input": Carrier(1, (2,), ((3, "input"), (11, "output"), (12, "error"))),
    "insert_step": Carrier(1, (2, 3), ((4, "step"),)),
    "insert_signal": Carrier(1, (2, 3), ((4, "signal"),)),
    "insert_event_page": Carrier(1, (2,), ((5, "events"),)),
    "insert_approval": Carrier(1, (2, 3), ((5, "approval"), (6, "approval_payload"))),
    "insert_outside_event": Carrier(1, (2,), ((4, "outside"),)),
    "insert_item": Carrier(1, (), ((19, "item_digest"), (21, "item"))),
    "update_item": Carrier(1, (), ((18, "item"), (23, "item_digest"))),
    "insert_result": Carrier(2, (), ((6, "result"), (7, "result_text"))),
}
_INPUT = 10
_APPROVAL = Carrier(0, (1, 2), ((4, "approval"), (5, "approval_payload")))
_ITEM = Carrier(0, (), ((18, "item_digest"),), leniently=True)
_RESULT = Carrier(2, (), ((6, "result"), (7, "result_text")))
_TASK = Carrier(0, (1,), ((_INPUT, "input"), (18, "output"), (19, "error")))
# Transitions load tasks without opening them: they move payloads about and never look inside, and one that cannot be
# opened is the trouble of its own task, not of all that share its transaction.
READS = {
    "load_signals": Carrier(0, (1, 2), ((3, "signal"),)),
    "load_approvals": _APPROVAL._replace(leniently=True),
    "load_approvals_of_jobs": _APPROVAL._replace(leniently=True),
    "load_inputs": Carrier(0, (1,), ((2, "input"),), leniently=True),
    "read_approvals": _APPROVAL,
    "audit_approvals": _APPROVAL,
    "audit_steps": Carrier("job_id", (0, 1), ((2, "step"),)),
    "audit_signals": Carrier("job_id", (0, 1), ((2, "signal"),)),
    "list_tasks": _TASK,
    "read_task": _TASK,
    "read_all_dependency_outputs": Carrier("job_id", (0,), ((2, "output"), (3, "error"))),
    "read_dependency_outputs": Carrier("job_id", (0,), ((2, "output"), (3, "error"))),
    "read_job_outputs": Carrier("job_id", (0,), ((1, "output"),)),
    "read_job_failures": Carrier("job_id", (0,), ((2, "error"),)),
    "read_steps": Carrier("job_id", ("task_id", 0), ((1, "step"),)),
    "read_blob": Carrier("job_id", ("digest",), ((0, "blob"),)),
    "list_steps": Carrier("job_id", ("task_id", 0), ((1, "step"),)),
    "list_pages": Carrier("job_id", (0,), ((3, "events"),)),
    "feed": Carrier(2, (3,), ((5, "events"),)),
    "feed_of_job": Carrier(2, (3,), ((5, "events"),)),
    "list_outside_events": Carrier(0, (1,), ((3, "outside"),)),
    "read_outside_events": Carrier(0, (1,), ((3, "outside"),)),
    "read_item": Carrier(0, (), ((18, "item_digest"), (20, "item"))),
    "audit_items": Carrier(0, (), ((1, "item_digest"), (2, "item")), leniently=True),
    "load_items": _ITEM,
    "load_items_by_id": _ITEM,
    "read_result": _RESULT,
    "read_results": _RESULT,
    "read_dead_letters": Carrier(0, (1,), ((5, "error"), (6, "input"))),
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

    async def read(self, script: Callable[[], database.Script[T]], *, snapshot: bool = True, brief: bool = False) -> T:
        return await self._inner.read(lambda: self._translated(script()), snapshot=snapshot, brief=brief)

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
