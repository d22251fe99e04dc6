"""What somebody outside says of a task that nobody runs."""

from __future__ import annotations

import msgspec

from ostinato import errors
from ostinato.core import graph, ledger, needs, rows, states
from ostinato.core.commands import consequences


class CompleteTask(msgspec.Struct, gc=False):
    """Give an external task its result. A second time changes nothing: the first result stands."""

    job_id: str
    task_id: str
    output: bytes
    actor: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        wanted.job(self.job_id)
        wanted.dependants_of.add((self.job_id, self.task_id))

    def apply(self, book: ledger.Ledger) -> str:
        task = _external_task(book, (self.job_id, self.task_id))
        if task.state != states.COMPLETED:
            _check_waiting(task)
            told = {} if self.actor is None else {"actor": self.actor}
            consequences.complete(book, task, self.output, **told)
        return task.state


class FailTask(msgspec.Struct, gc=False):
    """Say that an external task failed, for good."""

    job_id: str
    task_id: str
    failure: rows.Failure

    def needs(self, wanted: needs.Needs) -> None:
        wanted.failure_of((self.job_id, self.task_id))

    def apply(self, book: ledger.Ledger) -> str:
        task = _external_task(book, (self.job_id, self.task_id))
        if task.state != states.FAILED:
            _check_waiting(task)
            consequences.fail_for_good(book, task, self.failure)
        return task.state


def _external_task(book: ledger.Ledger, key: rows.TaskKey) -> rows.Task:
    task = book.task(key)
    if not ledger.is_external(task):
        who = "people decide on it" if ledger.is_run_by_nobody(task) else "its worker reports on it"
        raise errors.NotPossible(f"task {task.task_id!r} is not external: {who}", taskId=task.task_id, state=task.state)
    if book.jobs[task.job_id].name.startswith(graph.OWN_JOBS):
        raise errors.NotPossible(
            f"task {task.task_id!r} is a member of a gate: report to the gate instead", taskId=task.task_id
        )
    return task


def _check_waiting(task: rows.Task) -> None:
    if task.state != states.WAITING:
        raise errors.NotPossible(
            f"task {task.task_id!r} is {task.state}, not waiting", taskId=task.task_id, state=task.state
        )
