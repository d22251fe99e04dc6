"""What people do to jobs and tasks: cancel, skip, retry, resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ostinato import errors
from ostinato.core import absent, allowed, codec, courses, documents, events, graph, items, ledger, needs, rows, states
from ostinato.core.commands import consequences, gating, passing, rehearsal


class CancelJob(msgspec.Struct, gc=False):
    """Stop a job. Answers the state the job is in afterwards: `cancelled`, or how it had ended before."""

    job_id: str
    reason: str | None = None
    actor: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        wanted.whole_job(self.job_id)

    def apply(self, book: ledger.Ledger) -> str:
        job = book.job(self.job_id)
        if job.state == states.RUNNING:
            consequences.cancel_open_tasks(book, job, consequences.event_data(reason=self._reason()))
            if job.job_id in book.items:
                book.attribute(book.items[job.job_id], self.actor, self.reason, items.CANCELLED)
            book.end_job(job, states.CANCELLED, reason=self.reason, actor=self.actor)
        return job.state

    def _reason(self) -> str:
        return "job cancelled" if self.reason is None else f"job cancelled: {self.reason}"


class CancelTask(msgspec.Struct, gc=False):
    """Stop one task. To its dependants it counts as failed."""

    job_id: str
    task_id: str
    reason: str | None = None
    person: passing.Person = passing.Person()

    def needs(self, wanted: needs.Needs) -> None:
        wanted.failure_of((self.job_id, self.task_id))
        wanted.all_approvals.add(self.job_id)

    def apply(self, book: ledger.Ledger) -> str:
        task = book.task((self.job_id, self.task_id))
        job = book.running_job(self.job_id)
        if task.state not in states.TASK_ENDED:
            passing.cancel(book, task, self.person, self.reason)
            data = consequences.event_data(reason=self.reason, actor=self.person.actor)
            book.move(task, states.CANCELLED, events.TASK_CANCELLED, data)
            if job.job_id in book.items:
                book.attribute(book.items[job.job_id], self.person.actor, self.reason, items.CANCELLED)
            book.fail_dependants(task)
            book.detect_failure(job, task)
            book.settle(job)
        return task.state


class SkipTask(msgspec.Struct, gc=False):
    """Go on as if this task were not needed: its dependants see no output of it."""

    job_id: str
    task_id: str
    reason: str | None = None
    person: passing.Person = passing.Person()

    def needs(self, wanted: needs.Needs) -> None:
        wanted.whole_job(self.job_id)
        wanted.all_approvals.add(self.job_id)

    def apply(self, book: ledger.Ledger) -> str:
        task = book.task((self.job_id, self.task_id))
        job = book.job(self.job_id)
        if job.name.startswith(gating.JOB) and (ledger.is_external(task) or task.task_id == gating.OPEN):
            raise errors.NotPossible(
                f"task {task.task_id!r} belongs to a gate: open the gate instead, which says so to those who look",
                taskId=task.task_id,
            )
        item = book.items.get(job.job_id)
        if item is not None and consequences.is_review(book, item, task):
            raise errors.NotPossible(
                f"task {task.task_id!r} is the review of item {item.item_id!r}: decide on the item instead, which says "
                "who did",
                taskId=task.task_id,
                itemId=item.item_id,
            )
        if task.state == states.SKIPPED and not task.skipped_by_dependency:
            return task.state
        _check_item(book, job)
        states.check_task_move(task.task_id, task.state, states.SKIPPED)
        actor = self.person.actor
        data = consequences.event_data(reason=self.reason, actor=actor)
        passing.skip(book, task, self.person, self.reason)
        if job.state != states.RUNNING:
            book.reopen_job(job, {"skip": [task.task_id], "actor": actor})
        task.skipped_by_dependency = False
        task.error = None
        book.move(task, states.SKIPPED, events.TASK_SKIPPED, data)
        if job.job_id in book.items:
            book.attribute(book.items[job.job_id], actor, self.reason or f"{task.task_id} was skipped")
        consequences.stand_anew(book, [task], run=False)
        consequences.restore_failure_mark(book, job)
        book.settle(job)
        return task.state


class RetryTasks(msgspec.Struct, gc=False):
    """Run chosen tasks of one job again, with all their attempts; a job that had ended is taken up again."""

    job_id: str
    task_ids: Sequence[str]
    inputs: Mapping[str, bytes] = {}
    actor: str | None = None
    only_failed: bool = False
    """Refuse what is not, or no longer, a dead letter."""

    def needs(self, wanted: needs.Needs) -> None:
        wanted.whole_job(self.job_id)
        wanted.all_approvals.add(self.job_id)

    def apply(self, book: ledger.Ledger) -> list[str]:
        job = book.job(self.job_id)
        tasks = [book.task((self.job_id, task_id)) for task_id in dict.fromkeys(self.task_ids)]
        _check_item(book, job)
        for task in tasks:
            if self.only_failed and task.state != states.FAILED:
                raise errors.NotPossible(
                    f"task {task.task_id!r} of job {self.job_id!r} is {task.state}, not a dead letter",
                    taskId=task.task_id,
                    state=task.state,
                )
            if task.state == states.WAITING and not task.resuming and not ledger.is_run_by_nobody(task):
                continue  # what is due later is made due now
            if task.state not in (states.FAILED, states.CANCELLED, states.SKIPPED):
                raise errors.NotPossible(
                    f"task {task.task_id!r} is {task.state}: only failed, cancelled, skipped or to-be-retried tasks "
                    "can be retried",
                    taskId=task.task_id,
                    state=task.state,
                )
        gating.check_rerun(book, job, tasks)
        undone = _undone(book, job.job_id)
        for task in tasks:
            if task.task_id in undone:
                raise _taken_back(f"task {task.task_id!r} does not run again", [task.task_id], undone)
        consequences.check_inputs(tasks, self.inputs)
        passing.change(book, tasks, self.inputs)
        again = [*self._agents(book, job, tasks), *tasks]
        passing.run_again(book, job.job_id, lambda stage: self._run(stage, [task.key for task in again]))
        self._run(book, [task.key for task in again])
        return [task.task_id for task in tasks]

    def _run(self, book: ledger.Ledger, keys: Sequence[rows.TaskKey]) -> None:
        tasks = [book.tasks[key] for key in keys]
        consequences.run_again(book, book.job(self.job_id), tasks, self.inputs, self.actor)

    @staticmethod
    def _agents(book: ledger.Ledger, job: rows.Job, tasks: Sequence[rows.Task]) -> list[rows.Task]:
        """Of a playbook, those that failed and that are waited for again: without them, the same would come of it."""
        if not job.name.startswith(ledger.PLAYBOOK_JOB):
            return []
        stages = {task.key for task in tasks if not task.optional}
        return [
            task
            for task in book.tasks_of(job.job_id)
            if task.state == states.FAILED and task not in tasks
            if any(dependant.key in stages for dependant in _dependants(book, task))
        ]


class Resume(msgspec.Struct, gc=False):
    """Re-run what failed or was cancelled, and nothing that completed. `dry_run` does so on copies, and only tells."""

    job_id: str
    inputs: Mapping[str, bytes] = {}
    deadline: float | None = None
    dry_run: bool = False
    actor: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        wanted.whole_job(self.job_id)
        wanted.all_approvals.add(self.job_id)

    def apply(self, book: ledger.Ledger) -> ResumePlan:
        _check_item(book, book.job(self.job_id))
        if self.dry_run:
            book = rehearsal.rehearse(book, self.job_id)
        passing.run_again(book, self.job_id, self._resume)
        return self._resume(book)

    def _resume(self, book: ledger.Ledger) -> ResumePlan:
        """Do it, and tell how the tasks stood before and stand now."""
        job = book.job(self.job_id)
        if job.state == states.COMPLETED:
            raise errors.NotPossible(f"job {job.job_id!r} is completed: there is nothing to resume", jobId=job.job_id)
        tasks = book.tasks_of(job.job_id)
        undone = _undone(book, job.job_id)
        ended = [t for t in tasks if t.state == states.CANCELLED or (t.state == states.FAILED and _matters(book, t))]
        again = [t for t in ended if t.task_id not in undone]
        if ended and not again:
            raise _taken_back(f"job {job.job_id!r} cannot be resumed", [t.task_id for t in ended], undone)
        unknown = [absent.cut(name) for name in sorted(set(self.inputs) - {t.task_id for t in again})]
        if unknown:
            shown = documents.listed([repr(name) for name in unknown])
            raise errors.NotPossible(
                f"new input was given for {shown}, which would not run again", taskIds=unknown[: graph.MOST_DETAILED]
            )
        if not again and job.state == states.RUNNING:
            raise errors.NotPossible(f"job {job.job_id!r} is running and nothing in it has failed", jobId=job.job_id)
        gating.check_rerun(book, job, again)
        held = [t for t in tasks if t.state in (states.BLOCKED, states.SKIPPED)]
        consequences.check_inputs(again, self.inputs)
        passing.change(book, again, self.inputs)
        if self.deadline is not None:  # else it keeps its own, if that has not passed
            job.deadline_at = book.now + int(self.deadline * 1e6)
            book.set_timer(rows.Timer(job.job_id, "", "deadline", "", "", job.deadline_at))
        rerun = consequences.run_again(book, job, again, self.inputs, self.actor, always_reopen=True)
        return ResumePlan(
            rerun=rerun,
            reused=[t.task_id for t in tasks if t.state == states.COMPLETED and t.task_id not in undone],
            waiting=[
                t.task_id for t in held if t.state in (states.BLOCKED, states.PENDING) and t.task_id not in undone
            ],
            undone=[t.task_id for t in tasks if t.task_id in undone],
            undone_by=sorted(set(undone.values())),
        )


def _check_item(book: ledger.Ledger, job: rows.Job) -> None:
    """Refuse to go on with a run that its item has left behind: it would do again what was given up, or taken back."""
    if not job.name.startswith(courses.JOB):
        return
    item = book.items.get(job.job_id)
    if item is None:
        item_id = codec.decode(job.tags)["item"]
        raise errors.NotPossible(
            f"item {item_id!r} has begun another run since job {job.job_id!r}: act on the item instead",
            itemId=item_id,
            jobId=job.job_id,
        )
    allowed.rerun(book.course_of(item), item)


def _undone(book: ledger.Ledger, job_id: str) -> dict[str, str]:
    """What does not count any more, and which task has begun to take it back: all that is before that one."""
    found: dict[str, str] = {}
    for task in book.tasks_of(job_id):
        if (task.attempt or task.state == states.COMPLETED) and ledger.compensates(task):
            queue = [task.task_id]
            while queue:
                for up in book.dependencies.get((job_id, queue.pop()), ()):
                    if up not in found:
                        found[up] = task.task_id
                        queue.append(up)
    return found


def _taken_back(what: str, task_ids: list[str], undone: Mapping[str, str]) -> errors.NotPossible:
    by = sorted({undone[task_id] for task_id in task_ids})
    shown = documents.listed([repr(task_id) for task_id in task_ids])
    named = documents.listed([repr(one) for one in by])
    return errors.NotPossible(
        f"{what}: {named} compensates what came before it ({shown}) and has begun; submit a new job",
        taskIds=task_ids[: graph.MOST_DETAILED],
        compensatedBy=by[: graph.MOST_DETAILED],
    )


def _matters(book: ledger.Ledger, failed: rows.Task) -> bool:
    """That an optional task failed does not, unless others were skipped for it; that an agent did, until what all of
    them answered has been put together."""
    if not failed.optional:
        return True
    dependants = _dependants(book, failed)
    if book.jobs[failed.job_id].name.startswith(ledger.PLAYBOOK_JOB):
        return any(d.state != states.COMPLETED and not d.optional for d in dependants)
    return any(d.state == states.SKIPPED and d.skipped_by_dependency for d in dependants)


def _dependants(book: ledger.Ledger, task: rows.Task) -> list[rows.Task]:
    return [book.tasks[(task.job_id, task_id)] for task_id in book.dependants.get(task.key, ())]


class ResumePlan(msgspec.Struct, frozen=True, rename="camel"):
    """What a resume re-runs, what it reuses, and what was blocked or skipped and can go on now or afterwards."""

    rerun: list[str]
    reused: list[str]
    waiting: list[str]
    undone: list[str] = []
    """What does not run again, nor count, because a task that compensates it has begun."""
    undone_by: list[str] = []
    """The tasks that compensate it."""
