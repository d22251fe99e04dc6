"""What this process has just written and need not read again.

A worker reports on tasks that it claimed a moment ago, in jobs that it may have been given a moment before. Their rows
are still here. To use them is safe, because a transaction only takes effect on jobs that still are as it thinks they
are: if somebody else has changed one, it is taken back and decided anew on what the database says.
Whoever recalls a job takes it out; it comes back when the transaction has committed, and is forgotten if it has not.
"""

from __future__ import annotations

import collections
from typing import NamedTuple

import msgspec

from ostinato.core import items, ledger, needs, rows, states

MOST_TASKS = 120_000
"""How many tasks are remembered in all, or KiB of what they were given; jobs used least lately are forgotten first."""
LARGE_JOB = 110_000
"""Of a job with more tasks than this only those that run are remembered."""
SMALL_JOB = 20
"""The outputs of a job with no more tasks than this are kept, so that its result need not be read when it ends."""
SMALL_OUTPUT = 1_024
"""… and if none of its outputs is longer than this."""
DISTRUST = 50
"""How many transactions do without memory after one that was overtaken: somebody else works on the same jobs."""


class Known(msgspec.Struct, gc=False):
    job: rows.Job
    tasks: dict[str, rows.Task]
    """By their ids."""
    outputs: dict[str, tuple[int, bytes]] | None = None
    """(position, output) of all tasks that have completed, or None if that is not known."""
    weight: int = 0
    item: items.Item | None = None
    """The item that it is the run of."""
    whole: bool = False
    """All of its tasks that have not ended are here: it was entered by this process."""
    inputs: int = 0
    """KiB of what its tasks were given."""


class Recalled(NamedTuple):
    """What was found in memory, and what has to be read."""

    jobs: dict[str, Known]
    job_ids: list[str]
    keys: list[rows.TaskKey]
    ups: list[rows.TaskKey]

    @property
    def whole_jobs(self) -> list[str]:
        """Jobs of which no task needs to be read."""
        return [job_id for job_id, known in self.jobs.items() if known.whole]

    def enter_candidates(self, candidates: list[rows.TaskKey], book: ledger.Ledger) -> list[rows.TaskKey]:
        """Enter what is known of tasks that are ready to be claimed. The answer is which are still to be read."""
        missing: list[rows.TaskKey] = []
        for key in candidates:
            if key not in book.tasks:
                known = self.jobs.get(key[0])
                task = None if known is None else known.tasks.get(key[1])
                if task is None:
                    missing.append(key)
                else:
                    book.tasks[key] = task
        return missing


class Memory:
    def __init__(self, most_tasks: int = MOST_TASKS) -> None:
        self._most = most_tasks
        self._jobs: collections.OrderedDict[tuple[str, str], Known] = collections.OrderedDict()
        self._size = 0
        self._distrust = 0

    def distrust(self) -> None:
        """Forget everything, and do without for a while."""
        self._jobs.clear()
        self._size = 0
        self._distrust = DISTRUST

    def knows_it_is_little(self, tenant: str, wanted: needs.Needs) -> bool:
        """Whether what is wanted is all here and concerns a few tasks only. A hint, which may be wrong."""
        if wanted.fresh or wanted.idempotency_keys or wanted.new_tasks > SMALL_JOB or self._distrust:
            return False
        if wanted.gate_keys or wanted.outside_events:
            return False
        for keys in (wanted.tasks, wanted.dependants_of):
            for job_id, task_id in keys:
                known = self._jobs.get((tenant, job_id))
                task = None if known is None else known.tasks.get(task_id)
                if task is None or task.dependants is None or len(task.dependants) > SMALL_JOB:
                    return False
        return True

    def recall(self, tenant: str, wanted: needs.Needs, book: ledger.Ledger, *, trust: bool) -> Recalled:
        """Enter what is known into the ledger."""
        if self._distrust:
            self._distrust -= 1
            trust = False
        found = Recalled({}, [], [], [])
        for job_id in wanted.jobs:
            known = self._take(tenant, job_id)
            if known is None or not trust or job_id in wanted.fresh:
                found.job_ids.append(job_id)
            else:
                found.jobs[job_id] = known
                book.jobs[job_id] = known.job
                if known.item is not None:
                    book.items[job_id] = book.items_by_id[known.item.item_id] = known.item
        jobs, tasks = found.jobs, book.tasks
        for key in wanted.tasks:
            known = jobs.get(key[0])
            task = None if known is None else known.tasks.get(key[1])
            if task is None:
                found.keys.append(key)
            else:
                tasks[key] = task
        for key in wanted.dependants_of | wanted.failing if wanted.failing else wanted.dependants_of:
            job_id, task_id = key
            known = jobs.get(job_id)
            task = None if known is None else known.tasks.get(task_id)
            if known is None or task is None:
                if key not in wanted.tasks:
                    found.keys.append(key)
                found.ups.append(key)
                continue
            tasks[key] = task
            if task.dependants is None:
                found.ups.append(key)
            elif task.dependants:
                book.dependants[key] = [*task.dependants]
                for dependant in task.dependants:
                    below = (job_id, dependant)
                    if below not in tasks:
                        task = known.tasks.get(dependant)
                        if task is None:
                            found.keys.append(below)
                        else:
                            tasks[below] = task
        return found

    def remember(self, tenant: str, book: ledger.Ledger, recalled: Recalled) -> dict[str, dict[str, bytes]]:
        """Keep how a transaction that has committed left things. The answer is outputs of jobs that have ended."""
        results: dict[str, dict[str, bytes]] = {}
        current: dict[str, Known] = {}
        born = {job.job_id for job in book.new_jobs} if book.new_jobs else ()
        for job_id in book.events:
            job = book.jobs[job_id]
            known = recalled.jobs.pop(job_id, None) or self._take(tenant, job_id)
            if known is None or (known.job is not job and not _same(known.job, job)):
                known = _new(job) if job_id in born else Known(job, {})
            known.job = job
            job.note()
            known.item = book.items.get(job_id)
            if known.item is not None:
                known.item.note()
            current[job_id] = known
        for key in recalled.ups:
            task = book.tasks.get(key)
            if task is not None:
                task.dependants = book.dependants.get(key, ())
        self._note_tasks(book, current)
        for job_id, known in current.items():
            if known.job.state == states.RUNNING:
                self._keep(tenant, job_id, known)
            elif known.outputs is not None and len(known.outputs) == known.job.total:
                results[job_id] = {name: data for name, (_, data) in sorted(known.outputs.items(), key=_position)}
        for job_id, known in recalled.jobs.items():
            self._keep(tenant, job_id, known)
        return results

    @staticmethod
    def _note_tasks(book: ledger.Ledger, current: dict[str, Known]) -> None:
        dependants = book.dependants
        for key, task in book.tasks.items():
            known = current.get(key[0])
            if known is None:
                continue
            state = task.state
            if state == states.PROCESSING or (state not in states.TASK_ENDED and known.job.total <= LARGE_JOB):
                if not task.was:  # it is new, and so is everything that waits for it
                    task.dependants = dependants.get(key, ())
                    known.inputs += len(task.input) >> 10
                task.was = state
                task.was_ready_at = task.ready_at
                known.tasks[key[1]] = task
                continue
            known.tasks.pop(key[1], None)
            if known.outputs is not None:
                output = task.output
                small = output is not None and len(output) <= SMALL_OUTPUT and output[:1] != ledger.BLOB_MARK
                if state == states.COMPLETED and output is not None and small:
                    known.outputs[key[1]] = (task.position, output)
                else:
                    known.outputs = None

    def _take(self, tenant: str, job_id: str) -> Known | None:
        known = self._jobs.pop((tenant, job_id), None)
        if known is not None:
            self._size -= known.weight
        return known

    def _keep(self, tenant: str, job_id: str, known: Known) -> None:
        if self._distrust or known.job.max_parallel is not None:
            return  # whose turn is next in such a job, only the database knows
        self._jobs[(tenant, job_id)] = known
        known.weight = len(known.tasks) + known.inputs + 1
        self._size += known.weight
        while self._size > self._most:
            _, forgotten = self._jobs.popitem(last=False)
            self._size -= forgotten.weight


def _new(job: rows.Job) -> Known:
    return Known(job, {}, {} if job.total <= SMALL_JOB else None, whole=job.total <= LARGE_JOB)


def _same(known: rows.Job, job: rows.Job) -> bool:
    """Whether the job that a transaction loaded is as it is known here. An id may be used again after it was pruned."""
    return known.last_seq == job.was_seq and known.created_at == job.created_at


def _position(output: tuple[str, tuple[int, bytes]]) -> int:
    return output[1][0]
