"""Going on without what people are asked. It is a decision: only those who may decide may do so, under their name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from typing import NamedTuple

import msgspec

from ostinato import errors
from ostinato.core import approvals, codec, events, ledger, rows, scopes, states
from ostinato.core.commands import consequences, rehearsal

OPEN = frozenset({approvals.WAITING, approvals.WITHDRAWN, approvals.EXPIRED, approvals.REJECT, approvals.CANCELLED})
"""How an approval stands that a function cannot have gone on from."""


class Person(msgspec.Struct, frozen=True):
    """Who gives an order. Without `scopes` it is code that may do everything."""

    actor: str | None = None
    called: str | None = None
    """Another name of theirs, by which an approval may ask for them."""
    scopes: frozenset[str] | None = None


class _Question(NamedTuple):
    """What people are asked, were asked, or will be asked once it is its turn."""

    task: rows.Task
    row: rows.Approval | None
    document: approvals.Document


def skip(book: ledger.Ledger, task: rows.Task, person: Person, reason: str | None) -> None:
    """Refuse to skip what people must decide, or what stands between that and others, unless they may decide it."""
    questions = list(_of_task(book, task))
    if book.dependants.get(task.key):
        questions += _before(book, task)
    for one in questions:
        _check(book, one, person)
        _check_quorum(one, person)
    _tell(book, questions, task, person, approvals.SKIPPED, reason)


def cancel(book: ledger.Ledger, task: rows.Task, person: Person, reason: str | None) -> None:
    """The same where cancelling ends a question, or lets something run that would have come after the answer."""
    questions = [one for one in _of_task(book, task) if task.state not in states.TASK_ENDED]
    if any(_runs_anyway(book, (task.job_id, d)) for d in book.dependants.get(task.key, ())):
        questions += _before(book, task)
    for one in questions:
        _check(book, one, person)
    _tell(book, questions, task, person, approvals.CANCELLED, reason)


def leave(book: ledger.Ledger, task: rows.Task, person: Person) -> None:
    """Refuse to move the item of a pipeline out of its review by hand, unless they may decide in it."""
    for one in _of_task(book, task):
        if task.state not in (states.COMPLETED, states.SKIPPED):
            _check(book, one, person)
            _check_quorum(one, person)


def edit(book: ledger.Ledger, task: rows.Task, person: Person) -> None:
    """Refuse to replace what people are asked about, unless a key may decide; and once some have approved it."""
    questions = [one for one in _of_task(book, task) if task.state not in states.TASK_ENDED]
    _check_unapproved(book, [one.row for one in questions if one.row is not None], "replaced")
    if person.scopes is not None:
        for one in questions:
            _check(book, one, person)


def run_again(book: ledger.Ledger, job_id: str, order: Callable[[ledger.Ledger], object]) -> None:
    """Refuse to run tasks again where one would go on from a question that has no answer: it is asked again first."""
    if not any(_is_undecided(book, task) for task in book.tasks_of(job_id)):
        return
    stage = rehearsal.rehearse(book, job_id)
    order(stage)
    for task in stage.tasks_of(job_id):
        if task.state not in states.TASK_ACTIVE or book.tasks[task.key].state in states.TASK_ACTIVE:
            continue
        for one in _before(stage, task):
            if _is_undecided(stage, one.task):
                asked = one.task.task_id
                raise errors.NotPossible(
                    f"task {task.task_id!r} stands behind {asked!r}, on which people have not decided: resume the job, "
                    f"or retry {asked!r} too, so that they are asked again; or skip {asked!r}, which takes the right "
                    "to decide",
                    taskId=task.task_id,
                    approval=asked,
                )


def grow(book: ledger.Ledger, job_id: str, after: Collection[str], added: Collection[str]) -> None:
    """Refuse to add tasks behind an approval that some have given: they have approved without them."""
    for (growing, task_id), guarded in book.guarded.items():
        if growing == job_id and (task_id in after or not guarded.isdisjoint(after)):
            _check_unapproved(book, book.approvals[(job_id, task_id)].values(), "added behind it")
            guarded.update(added)


def change(book: ledger.Ledger, tasks: Iterable[rows.Task], inputs: Container[str]) -> None:
    """The same for another input of tasks behind it, and for that of a function which has asked people already: their
    answer is recorded, and would be taken for one to the new input."""
    for task in tasks:
        if task.task_id in inputs:
            for row in book.approvals.get(task.key, {}).values():
                if row.key and row.state == approvals.APPROVE:
                    raise errors.NotPossible(
                        f"people have approved {_read(row).approval.title!r} in task {task.task_id!r} with the input "
                        "that it had: run it again without another input, or submit a new job",
                        taskId=task.task_id,
                    )
            for one in _before(book, task):
                _check_unapproved(book, [one.row] if one.row else (), "changed behind it")


def _check_unapproved(book: ledger.Ledger, known: Iterable[rows.Approval], what: str) -> None:
    for row in known:
        document = _read(row) if row.state == approvals.WAITING else None
        if document is not None and document.approvals():
            approval = document.approval
            raise errors.NotPossible(
                f"{document.approvals()} of {approval.quorum} people have approved {approval.title!r} "
                f"(task {row.task_id!r}): nothing is {what} until it is decided",
                taskId=row.task_id,
            )


def _is_undecided(book: ledger.Ledger, task: rows.Task) -> bool:
    """People are, were or will be asked, and it has come to nothing: no decision, and no end that its rules name."""
    if task.state in (states.COMPLETED, states.FAILED, states.SKIPPED):
        return False
    known = book.approvals.get(task.key, {})
    if task.options is not None and ledger.approval_of(task) is not None:
        ended = known.get("") if task.state == states.CANCELLED else None
        return ended is None or ended.state != approvals.CANCELLED
    return any(row.state in (approvals.WAITING, approvals.WITHDRAWN) for row in known.values())


def adders(book: ledger.Ledger, task: rows.Task) -> set[str]:
    """The people who have added an approval, or any of the tasks that it guards, to the job, or changed its input."""
    found = set(book.adders.get(task.key, ()))
    seen, queue = {task.key}, [task]
    while queue:
        one = queue.pop()
        found.update(ledger.authors(one))
        for dependant_id in book.dependants.get(one.key, ()):
            key = (one.job_id, dependant_id)
            if key not in seen and key in book.tasks:
                seen.add(key)
                queue.append(book.tasks[key])
    return found


def _runs_anyway(book: ledger.Ledger, key: rows.TaskKey) -> bool:
    dependant = book.tasks.get(key)
    return dependant is not None and dependant.state == states.BLOCKED and dependant.policy == "run"


def _of_task(book: ledger.Ledger, task: rows.Task) -> Iterator[_Question]:
    known = book.approvals.get(task.key, {})
    asked = ledger.approval_of(task)
    if asked is not None:
        row = known.get("")
        waits = row is not None and row.state == approvals.WAITING
        yield _Question(task, row if waits else None, _read(row) if row and waits else approvals.Document(asked))
        return
    for row in known.values():
        if row.state in OPEN:
            yield _Question(task, row, _read(row))


def _before(book: ledger.Ledger, task: rows.Task) -> Iterator[_Question]:
    """What is still to be decided before a task, directly or through others that have not run either."""
    seen, queue = {task.key}, [task]
    while queue:
        for up in book.dependencies.get(queue.pop().key, ()):
            key = (task.job_id, up)
            one = book.tasks[key]
            skipped = one.state == states.SKIPPED and not one.skipped_by_dependency
            if key not in seen and one.state != states.COMPLETED and not skipped:
                seen.add(key)
                queue.append(one)
                yield from _of_task(book, one)


def _read(row: rows.Approval) -> approvals.Document:
    return approvals.read(row.document)


def _check(book: ledger.Ledger, question: _Question, person: Person) -> None:
    task, row, document = question
    job = book.jobs[task.job_id]
    title = document.approval.title
    needed = scopes.ADMIN if job.name.startswith(ledger.TENANT_BUDGET_JOB) else scopes.APPROVALS_DECIDE
    if person.scopes is not None and not scopes.allows(person.scopes, needed):
        raise errors.Forbidden(
            f"task {task.task_id!r} asks people {title!r}: to go on without their answer is to decide, and this key "
            f"does not have the scope {needed}",
            scope=needed,
            taskId=task.task_id,
        )
    if person.actor is None:
        raise errors.InvalidInput(
            f"task {task.task_id!r} asks people {title!r}: to go on without their answer is to decide, so say as "
            "`actor` who does",
            field="actor",
            taskId=task.task_id,
        )
    approvals.check_may_decide(
        document,
        escalated=row is not None and row.escalated_at is not None,
        submitted_by=job.submitted_by,
        added_by=adders(book, task) if document.approval.not_submitter else (),
        actor=approvals.check_actor(person.actor),
        called=person.called,
    )


def _check_quorum(question: _Question, person: Person) -> None:
    quorum = question.document.approval.quorum
    others = {made.by for made in question.document.standing() if made.decision == approvals.APPROVE} - {person.actor}
    if len(others) + 1 < quorum:
        raise errors.NotPossible(
            f"task {question.task.task_id!r} needs {quorum} people to approve {question.document.approval.title!r}: "
            f"one person cannot skip it while {len(others)} others have approved",
            taskId=question.task.task_id,
            quorum=quorum,
        )


def _tell(
    book: ledger.Ledger, questions: list[_Question], task: rows.Task, person: Person, what: str, reason: str | None
) -> None:
    """A question that waits at this very task ends with this decision."""
    for one in questions:
        if one.task is not task or one.row is None or one.row.state != approvals.WAITING or person.actor is None:
            continue
        one.document.made.append(approvals.Made(person.actor, book.now, what, reason))
        data = consequences.event_data(key=one.row.key, decision=what, by=person.actor, notes=reason)
        book.emit(book.jobs[task.job_id], events.APPROVAL_DECIDED, task, data)
        one.row.state, one.row.due_at, one.row.decided_at = what, None, book.now
        one.row.document = codec.encode_own(one.document)
        book.change_approval(one.row)
