"""What follows from a move: for dependants, for the job, for tasks that are to run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ostinato import errors
from ostinato.core import codec, events, graph, items, ledger, rows, states

MAX_ERROR_TEXT = 16 * 1024


def event_data(**fields: object) -> bytes:
    return codec.encode_own({name: value for name, value in fields.items() if value is not None})


def encode_failure(failure: rows.Failure) -> bytes:
    return codec.encode_own(failure)


def make_failure(kind: str, message: str, traceback: str | None = None) -> rows.Failure:
    """A failure whose texts are short enough to store and valid as JSON, whatever the exception said."""

    def clean(text: str) -> str:
        return text[:MAX_ERROR_TEXT].encode("utf-8", "replace").decode()

    return rows.Failure(clean(kind), clean(message), None if traceback is None else clean(traceback[-MAX_ERROR_TEXT:]))


def enter_tasks(
    book: ledger.Ledger,
    job: rows.Job,
    specs: Sequence[graph.TaskSpec],
    inputs: Sequence[bytes],
    added_by: str | None = None,
) -> None:
    job_id = job.job_id
    first = job.total
    entered: list[rows.Task] = []
    for position, (spec, data) in enumerate(zip(specs, inputs, strict=True), first):
        if spec.on_dependency_failure != "block":
            job.cascades = True
        count = len(spec.depends_on)
        task = rows.Task(
            job_id,
            spec.task_id,
            position,
            spec.name,
            spec.queue or "default",
            job.priority if spec.priority is None else spec.priority,
            spec.on_dependency_failure,
            spec.optional,
            count,
            task_options(spec, added_by),
            data if len(data) <= book.spill_bytes else book.payload(job_id, data),
            states.BLOCKED,
            open_dependencies=count,
        )
        book.add_task(job, task, spec.depends_on)
        entered.append(task)
    if first:  # tasks added to a job may depend on tasks of before, which may be over already
        new = {spec.task_id for spec in specs}
        for spec, task in zip(specs, entered, strict=True):
            stand_on(book, task, [book.tasks[(job_id, d)] for d in spec.depends_on if d not in new])
    for task in entered:
        if task.open_dependencies == 0 and task.state == states.BLOCKED:
            book.make_ready(task)


def stand_on(book: ledger.Ledger, task: rows.Task, dependencies: Sequence[rows.Task], *, tell: bool = True) -> None:
    """Count off the dependencies that are already settled, or skip the task where its policy says so.

    Without `tell`, its dependants have counted it before, and are not told again."""
    for dependency in dependencies:
        outcome = outcome_of(dependency, task.policy)
        if outcome == "ok" or (outcome == "failed" and task.policy == "run"):
            task.open_dependencies -= 1
        elif outcome == "failed" and task.policy == "skip" and task.state == states.BLOCKED:
            task.skipped_by_dependency = True
            data = codec.encode_own({"dependency": dependency.task_id})
            book.move(task, states.SKIPPED, events.TASK_SKIPPED, data)
            if tell:
                book.fail_dependants(task)


def outcome_of(task: rows.Task, policy: str = "block") -> str:
    """How a task looks to one that depends on it, with that policy: `ok`, `failed` or still `open`.

    That an optional task failed, or was skipped since another did, is nobody's concern, but for those who said that
    they are to be skipped then."""
    tolerated = task.optional and policy != "skip"
    if task.state == states.COMPLETED or (task.state == states.FAILED and tolerated):
        return "ok"
    if task.state == states.SKIPPED:
        return "failed" if task.skipped_by_dependency and not tolerated else "ok"
    if task.state in (states.FAILED, states.CANCELLED):
        return "failed"
    return "open"


def task_options(spec: graph.TaskSpec, added_by: str | None = None) -> bytes | None:
    plain = spec.retry is None and spec.timeout is None and spec.delay is None and spec.statuses is None
    if plain and added_by is None and not spec.external and spec.approval is None and not spec.compensates:
        return None
    return event_data(
        retry=spec.retry,
        timeout=spec.timeout,
        maxAttempts=None if spec.retry is None else spec.retry.max_attempts,
        delay=spec.delay,
        external=spec.external or None,
        statuses=spec.statuses,
        approval=spec.approval,
        addedBy=added_by,
        compensates=spec.compensates or None,
    )


def received(stored: bytes) -> bytes:
    if stored.startswith(ledger.BLOB_MARK):
        return codec.encode_own({"blob": stored[1:].hex()})
    if stored.startswith(codec.SEAL_MARK):
        raise codec.cannot_open(stored)
    return b'{"value":' + stored + b"}"


def wake(book: ledger.Ledger, task: rows.Task, step_key: str, outcome: bytes, signal: str | None = None) -> None:
    """Record what the task was waiting for as a finished step, and let it go on from there."""
    book.record_step(task, step_key, outcome)
    book.make_pending(task, data=None if signal is None else event_data(name=task.name, signal=signal))


def complete(book: ledger.Ledger, task: rows.Task, output: bytes, **told: object) -> None:
    """Record the result of a task, and let those go on that waited for it."""
    stored = output if len(output) <= book.spill_bytes else book.payload(task.job_id, output)
    task.output = stored
    task.error = None
    if stored is not output:
        data = codec.encode_own({"output": {"$blob": stored[1:].hex()}} | told)
    elif told:
        data = b'{"output":' + stored + b"," + codec.encode_own(told)[1:]
    else:
        data = b'{"output":' + stored + b"}"
    book.move(task, states.COMPLETED, events.TASK_COMPLETED, data)
    book.satisfy_dependants(task)
    job = book.jobs[task.job_id]
    if not job.active:
        book.settle(job)


def fail_for_good(book: ledger.Ledger, task: rows.Task, failure: rows.Failure, *, helpless: bool = False) -> None:
    """No attempt is left, or none can help: to items of pipelines these are two ends."""
    job = book.jobs[task.job_id]
    task.error = encode_failure(failure)
    data = event_data(error=failure, attempts=task.attempt)
    book.move(task, states.FAILED, events.TASK_FAILED, data)
    if task.job_id in book.items:
        item = book.items[task.job_id]
        item.fail(task.task_id, failure.type, review=is_review(book, item, task), helpless=helpless)
    if not task.optional:
        book.detect_failure(job, task)
    book.fail_dependants(task)
    book.settle(job)


def is_review(book: ledger.Ledger, item: items.Item, task: rows.Task) -> bool:
    return task.task_id in book.course_of(item).reviews


def cancel_open_tasks(book: ledger.Ledger, job: rows.Job, data: bytes) -> None:
    for task in book.tasks_of(job.job_id):
        if task.state not in states.TASK_ENDED:
            book.move(task, states.CANCELLED, events.TASK_CANCELLED, data)


def run_again(
    book: ledger.Ledger,
    job: rows.Job,
    tasks: Sequence[rows.Task],
    inputs: Mapping[str, bytes],
    actor: str | None,
    *,
    always_reopen: bool = False,
) -> list[str]:
    ids = [task.task_id for task in tasks]
    if job.state != states.RUNNING:
        book.reopen_job(job, {"tasks": ids, "actor": actor})
    elif always_reopen:
        job.failure_detected_at = None
        told = {"tasks": ids, "actor": actor, "deadlineAt": job.deadline_at}
        book.emit(job, events.JOB_RESUMED, data=codec.encode_own(told))
    for task in tasks:
        if task.task_id in inputs:
            task.input = book.payload(job.job_id, inputs[task.task_id])
            book.new_inputs.add(task.key)
            if actor is not None and actor not in ledger.authors(task):
                ledger.name_authors(task, [*ledger.authors(task), actor])
        book.run_again.add(task.key)
        task.attempt_base = task.attempt
        task.crashes = 0
        task.error = None
        task.resuming = False
        task.skipped_by_dependency = False
    stand_anew(book, tasks, run=True)
    restore_failure_mark(book, job)
    book.settle(job)
    return ids


def check_inputs(tasks: Sequence[rows.Task], inputs: Mapping[str, bytes]) -> None:
    """Who may run tasks again may not, by that, have rules and gates do what their definitions do not say."""
    for task in tasks:
        if task.task_id in inputs and task.name.startswith(graph.RESERVED):
            raise errors.NotPossible(
                f"the input of task {task.task_id!r} is the engine's own: correct the rule or gate, then run it again "
                "as it is",
                taskId=task.task_id,
            )


def stand_anew(book: ledger.Ledger, tasks: Sequence[rows.Task], *, run: bool) -> None:
    """Put tasks, and those that had counted or been skipped on how they ended, to where their dependencies let them
    stand now. One after the other in the order of the graph: nothing is looked at before it stands where it will.

    With `run` the tasks are to run again; else they have just changed, and it is only about what depends on them."""
    again = {task.key for task in tasks} if run else frozenset[rows.TaskKey]()
    changed = set[rows.TaskKey]() if run else {task.key for task in tasks}
    for task in _in_order(book, tasks):
        before = (task.state, task.skipped_by_dependency)
        if task.key in again:
            _stand(book, task, again=True)
        elif any((task.job_id, up) in changed for up in book.dependencies.get(task.key, ())) and _follows(task):
            _stand(book, task, again=False)
        if task.key in again or before != (task.state, task.skipped_by_dependency):
            changed.add(task.key)


def _follows(task: rows.Task) -> bool:
    """Whether how it stands is nothing but what its dependencies have come to: it has not begun since then."""
    if task.state in (states.PENDING, states.WAITING):
        return not task.resuming and task.attempt == task.attempt_base
    return task.state == states.BLOCKED or (task.state == states.SKIPPED and task.skipped_by_dependency)


def _in_order(book: ledger.Ledger, tasks: Sequence[rows.Task]) -> list[rows.Task]:
    """These and whatever may follow from them, each after all that it depends on."""
    found: list[rows.Task] = []
    seen: set[rows.TaskKey] = set()
    stack = [(task, False) for task in tasks]
    while stack:
        task, is_left = stack.pop()
        if is_left:
            found.append(task)
        elif task.key not in seen:
            seen.add(task.key)
            stack.append((task, True))
            below = [book.tasks[(task.job_id, down)] for down in book.dependants.get(task.key, ())]
            stack.extend((one, False) for one in below)
    return found[::-1]


def _stand(book: ledger.Ledger, task: rows.Task, *, again: bool) -> None:
    """Pending, or blocked, or skipped, as the dependencies of a task stand."""
    ups = [book.tasks[(task.job_id, up)] for up in book.dependencies.get(task.key, ())]
    outcomes = [outcome_of(up, task.policy) for up in ups]
    if task.skipped_by_dependency and task.policy == "skip" and "failed" in outcomes:
        return  # it stays so, for another reason
    satisfied = sum(outcome == "ok" or (outcome == "failed" and task.policy == "run") for outcome in outcomes)
    if satisfied == task.dependencies and not again and task.state in states.TASK_ACTIVE:
        return
    task.finished_at = None
    task.skipped_by_dependency = False
    if satisfied == task.dependencies:
        task.open_dependencies = 0
        if task.state == states.WAITING:  # what it waits for is over
            book.make_pending(task, data=event_data(name=task.name, by="operator"))
        else:
            book.make_ready(task, data=event_data(name=task.name, by="operator"))
        return
    if task.state != states.BLOCKED:
        book.move(task, states.BLOCKED, events.TASK_BLOCKED)
    book.changed_tasks[task.key] = task
    task.open_dependencies = task.dependencies
    stand_on(book, task, ups, tell=False)


def restore_failure_mark(book: ledger.Ledger, job: rows.Job) -> None:
    """A job taken up again with failures left in it says so once more."""
    if job.failure_detected_at is None and (job.failed or job.cancelled):
        for task in book.tasks_of(job.job_id):
            if task.state == states.CANCELLED or (task.state == states.FAILED and not task.optional):
                book.detect_failure(job, task)
                return
