"""Tables and what is written of them, each declared once, for both databases.

A write names the columns that a row brings along, in order. The SQL of both dialects is made from it, and so are the
row of a value, the places of payloads to encrypt, and the columns that a query selects as `{task t}`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from ostinato.core import columns, items, rows
from ostinato.core.columns import Column, number, payload, text

Row = tuple[Any, ...]
Conflict = Literal["nothing", "replace", "add"]
"""How a new row meets one with the same key: it is dropped, it replaces what can change, or it is added to it."""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of a tenant. With no trigger that writes elsewhere, it is `quiet`."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    quiet: bool = True

    @functools.cached_property
    def by_name(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.columns}

    def of_set(self, name: str) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if name in column.sets)

    def payloads(self) -> dict[str, str]:
        """The kinds of payloads, by column."""
        return {column.name: column.payload for column in self.columns if column.payload is not None}


@dataclasses.dataclass(frozen=True)
class Write:
    """A named statement over many rows; a row is the tenant, then what is `given`."""

    name: str
    purpose: str
    table: Table

    @property
    def given(self) -> tuple[tuple[str, Column], ...]:
        """What a row brings along: the name of each value in it, and its column."""
        raise NotImplementedError

    @functools.cached_property
    def row(self) -> Callable[[str, Any], Row]:
        """Makes the row of a tenant's value that has all that is given as attributes."""
        return columns.row_of([name for name, _ in self.given])

    def place(self, name: str) -> int:
        """Where in a row a value is."""
        return 1 + [known for known, _ in self.given].index(name)


@dataclasses.dataclass(frozen=True)
class Insert(Write):
    names: tuple[str, ...]
    constants: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    """Columns that are the same in every row, as SQL that both databases understand."""
    conflict: Conflict | None = None
    changes: tuple[str, ...] = ()
    """The columns that a row which is there takes over, or is added to."""

    @property
    def given(self) -> tuple[tuple[str, Column], ...]:
        return tuple((name, self.table.by_name[name]) for name in self.names)


@dataclasses.dataclass(frozen=True)
class Change(Write):
    key: tuple[str, ...]
    names: tuple[str, ...]
    guards: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    """Columns that must still be as they were, by the name under which a row says how that was."""
    constants: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    where: str = ""
    """Another condition on the row that is there, `{x}`."""
    kept: tuple[str, ...] = ()
    """Columns that stay as they are where the row says NULL."""

    @property
    def guarded(self) -> bool:
        """Whether it only takes effect on rows that still are as they were: the driver counts what it has changed."""
        return bool(self.guards)

    @property
    def given(self) -> tuple[tuple[str, Column], ...]:
        known = self.table.by_name
        return (
            *((name, known[name]) for name in self.key),
            *((was, known[name]) for was, name in self.guards.items()),
            *((name, known[name]) for name in self.names),
        )


@dataclasses.dataclass(frozen=True)
class Delete(Write):
    key: tuple[str, ...]

    @property
    def given(self) -> tuple[tuple[str, Column], ...]:
        return tuple((name, self.table.by_name[name]) for name in self.key)


def insert(
    purpose: str,
    table: Table,
    *,
    name: str = "",
    leave: Iterable[str] = (),
    constants: Mapping[str, str] | None = None,
    conflict: Conflict | None = None,
    changes: Iterable[str] | None = None,
) -> Insert:
    """Enter rows with all columns but those to `leave` and those that are constant."""
    constants = constants or {}
    names = tuple(c.name for c in table.columns if c.name not in constants and c.name not in leave)
    others = tuple(name for name in names if name not in table.key) if changes is None else tuple(changes)
    return Insert(name or f"insert_{table.name}", purpose, table, names, constants, conflict, others)


def delete(purpose: str, table: Table) -> Delete:
    return Delete(f"delete_{table.name}", purpose, table, table.key)


# --- the tables ------------------------------------------------------------------------------------------------------

JOB = Table("job", columns.of(rows.Job), ("job_id",))
JOB_TAG = Table("job_tag", (text("job_id"), text("key"), text("value"), number("created_at")), ("job_id", "key"))
TASK = Table("task", columns.of(rows.Task), ("job_id", "task_id"))
EDGE = Table("edge", (text("job_id"), text("up"), text("down")), ("job_id", "up", "down"))
READY = Table(
    "ready",
    (text("queue"), text("name"), number("rank"), number("ready_at"), text("job_id"), text("task_id")),
    ("queue", "name", "rank", "ready_at", "job_id", "task_id"),
)
LEASE = Table("lease", (text("worker"), text("token"), Column("tasks", columns.BYTES)), ("worker", "token"))
TIMER = Table("timer", columns.of(rows.Timer), ("job_id", "task_id"))
STEP = Table("step", columns.of(rows.Step), ("job_id", "task_id", "key"))
SIGNAL = Table("signal", columns.of(rows.Signal), ("job_id", "name", "signal_id"))
DEAD_LETTER = Table(
    "dead_letter",
    (text("job_id"), text("task_id"), text("name"), number("failed_at"), text("error_type")),
    ("job_id", "task_id"),
)
EVENT_PAGE = Table(
    "event_page",
    (text("job_id"), number("first_seq"), number("last_seq"), number("at"), payload("body", "events")),
    ("job_id", "first_seq"),
)
BLOB = Table("blob", (text("job_id"), Column("digest", columns.BYTES), payload("data", "blob")), ("job_id", "digest"))
APPROVAL = Table("approval", columns.of(rows.Approval), ("job_id", "task_id", "key"))
GATE_KEY = Table("gate_key", (text("gate"), text("key"), text("job_id")), ("gate", "key"))
OUTSIDE_EVENT = Table(
    "outside_event",
    (text("source"), text("event_id"), number("received_at"), payload("data", "outside")),
    ("source", "event_id"),
)
REMOVED_EVENT = Table("removed_event", (text("source"), text("event_id"), number("removed_at")), ("source", "event_id"))
ITEM = Table("item", (*columns.of(items.Item), payload("payload", "item")), ("item_id",), quiet=False)
PIPELINE_STATUS = Table(
    "pipeline_status",
    (
        text("pipeline"),
        number("version"),
        number("code"),
        text("name"),
        text("phase"),
        number("position"),
    ),
    ("pipeline", "version", "code"),
)
STATE_TRANSITION = Table(
    "state_transition",
    (text("pipeline"), number("version"), number("from_code"), number("to_code")),
    ("pipeline", "version", "from_code", "to_code"),
)
TALLY = Table(
    "tally",
    (text("topic"), text("key"), number("bucket"), text("writer"), number("count"), number("amount")),
    ("topic", "key", "bucket", "writer"),
)
USAGE = Table(
    "usage",
    (
        text("job_id"),
        text("task_id"),
        number("attempt"),
        number("calls"),
        number("input_tokens"),
        number("output_tokens"),
        number("cost"),
        text("last_id", nullable=True),
    ),
    ("job_id", "task_id", "attempt"),
)
RESULT = Table(
    "result",
    (
        text("result_id"),
        text("job_id"),
        text("domain"),
        text("kind"),
        number("created_at"),
        payload("document", "result"),
        payload("text", "result_text"),
    ),
    ("job_id",),
)
RESULT_DIGEST = Table("result_digest", (number("number"), number("digest")), ("number",))
TENANT = Table("tenant", (number("budget_day", nullable=True), number("budget_month", nullable=True)), ())

# --- what is written of them -----------------------------------------------------------------------------------------

_STILL_THERE = {"was_seq": "last_seq", "created_at": "created_at"}
"""A job that was removed and entered again under its id may have as many events."""
_AS_NEW = {"attempt_base": "0", "crashes": "0", "resuming": "false"}

INSERT_JOB = insert("Enter jobs.", JOB)
INSERT_JOB_TAG = insert("Let jobs be found by their tags.", JOB_TAG)
UPDATE_JOB = Change(
    "update_job", "Write back what can change in a job, if it still is as it was loaded.", JOB, JOB.key,
    JOB.of_set("change"), guards=_STILL_THERE,
)  # fmt: skip
ADVANCE_JOB = Change(
    "advance_job", "The same for the most common change: tasks have moved on, and none has ended but as completed.",
    JOB, JOB.key, JOB.of_set("advance"), guards=_STILL_THERE,
)  # fmt: skip
INSERT_TASK = insert("Enter tasks.", TASK, leave=("output", "error"), constants=_AS_NEW)
INSERT_ENDED_TASK = insert(
    "Enter tasks whose outcome is known already.", TASK, name="insert_ended_task", constants=_AS_NEW
)
UPDATE_TASK = Change("update_task", "Write back what can change in a task.", TASK, TASK.key, TASK.of_set("change"))
CLAIM_TASK = Change(
    "claim_task", "The same for a task that was ready, or has just become so, and is now leased.", TASK, TASK.key,
    TASK.of_set("claim"), constants={"state": "'processing'", "open_dependencies": "0", "resuming": "false"},
)  # fmt: skip
COMPLETE_TASK = Change(
    "complete_task", "The same for the most common change: a task that was running has completed.", TASK, TASK.key,
    TASK.of_set("complete"),
    constants={"state": "'completed'", "error": "NULL", "worker": "NULL", "token": "NULL", "timeout_at": "NULL"},
)  # fmt: skip
UPDATE_TASK_AND_INPUT = Change(
    "update_task_and_input", "The same for tasks that are to run again with another input.", TASK, TASK.key,
    ("input", "options", *TASK.of_set("change")),
)  # fmt: skip

WRITES: dict[str, Write] = {
    write.name: write
    for write in (
        insert("Keep large payloads, once for each content.", BLOB, conflict="nothing"),
        INSERT_JOB,
        INSERT_JOB_TAG,
        UPDATE_JOB,
        ADVANCE_JOB,
        INSERT_TASK,
        INSERT_ENDED_TASK,
        insert("Enter dependencies.", EDGE),
        UPDATE_TASK,
        CLAIM_TASK,
        COMPLETE_TASK,
        UPDATE_TASK_AND_INPUT,
        delete("Take tasks out of the queue.", READY),
        insert("Queue pending tasks.", READY),
        delete("Forget claims whose tasks have all been reported.", LEASE),
        insert("Note what a worker has claimed.", LEASE),
        delete("Disarm timers.", TIMER),
        insert("Arm timers, or move them.", TIMER, conflict="replace"),
        insert("Record finished steps. The first record of a step stands.", STEP, conflict="nothing"),
        Change("take_signal", "Mark signals as taken.", SIGNAL, SIGNAL.key, ("taken",)),
        insert("Keep signals.", SIGNAL),
        insert("List tasks that failed for good.", DEAD_LETTER),
        delete("Take tasks off the list of dead letters.", DEAD_LETTER),
        delete("The next report for a key begins again.", GATE_KEY),
        Change("update_gate_key", "A key begins again, with another job.", GATE_KEY, GATE_KEY.key, ("job_id",)),
        insert("Note which job stands for a gate and a key.", GATE_KEY),
        insert("Enter items. A trigger checks the moves that led to their status, and writes them down.", ITEM),
        Change(
            "update_item", "Write back what can change in an item, if it still is as it was loaded.", ITEM, ITEM.key,
            (*ITEM.of_set("change"), "payload", "digest"), kept=("payload", "digest"),
            guards={
                "was_status": "status", "was_version": "version", "was_run": "run", "was_steps": "steps",
                "was_reviewed_at": "reviewed_at",
            },
        ),
        Change(
            "withdraw_approval", "Ask no longer, about tasks that have ended.", APPROVAL, ("job_id", "task_id"),
            ("decided_at",), constants={"state": "'withdrawn'", "due_at": "NULL"}, where="{x}.state = 'waiting'",
        ),
        insert("Ask people, or note what they have decided.", APPROVAL, conflict="replace"),
        insert("Record events of others.", OUTSIDE_EVENT),
        insert("Remember the ids of events that are removed.", REMOVED_EVENT, conflict="nothing"),
        Change(
            "hold_budget", "Something waits for a budget of the tenant, if that still is what it was taken to be.",
            TENANT, (), (), guards={"was_day": "budget_day", "was_month": "budget_month"},
        ),
        insert(
            "Add to what attempts have used up.", USAGE, name="add_usage", conflict="add",
            changes=("calls", "input_tokens", "output_tokens", "cost", "last_id"),
        ),
        insert(
            "Count on, each process in rows of its own.", TALLY, name="add_tally", conflict="add",
            changes=("count", "amount"),
        ),
        insert("Append pages of events.", EVENT_PAGE),
        insert("Save results.", RESULT),
        insert("Note what results are known by.", RESULT_DIGEST),
        insert("The statuses of a version of a pipeline.", PIPELINE_STATUS),
        insert("The legal moves of a version of a pipeline.", STATE_TRANSITION),
    )
}  # fmt: skip
"""All writes of many rows, in the order in which a transaction runs them."""
GUARDED = tuple(write.name for write in WRITES.values() if isinstance(write, Change) and write.guarded)
"""Writes that only take effect on rows that still are as the script thinks they are."""
TABLES = {write.table.name: write.table for write in WRITES.values()}
OF_JOBS = tuple(table for table in TABLES.values() if "job_id" in table.by_name and table not in (JOB, RESULT))
"""Tables whose rows belong to a job, and are removed with it in one transaction."""
SEALED = tuple(table for table in TABLES.values() if table.payloads())
"""Tables with payloads."""
