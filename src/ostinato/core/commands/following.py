"""Items follow what has become of their steps: the moves are made in the transaction that moved the tasks."""

from __future__ import annotations

from typing import Any, Final

from ostinato.core import approvals, budgets, codec, courses, events, graph, items, ledger, states, tallies, usage
from ostinato.core.commands import consequences, producing
from ostinato.core.retry import Retry

RAISE: Final = "ostinato.pipeline.raise-budget"
APPROVE: Final = "approve"
PATIENT: Final = Retry(max_attempts=1000, base_delay=1.0, multiplier=2.0, max_delay=300.0)
"""An item is not given up while another of its steps is at work: that may take long."""
UNDO: Final = "ostinato.pipeline.undo"
JOB: Final = "undo:"
"""How jobs are named that take back what was done: this, and the name of the pipeline."""


def follow(book: ledger.Ledger) -> None:
    """Move the items whose steps have moved, and take back what was done with those that were rejected."""
    for job_id, item in [*book.items.items()]:
        if item.was is not None:
            course = book.course_of(item)
            given_up = book.jobs[job_id].state in (states.CANCELLED, states.TIMED_OUT)
            moved(book, item, course, item.follow(course, book.now, given_up=given_up))
            book.changed_items[item.item_id] = item
            rejects = {stop.reject for stop in course.stops if stop.reject}
            if item.status in rejects and item.status != item.was_status:
                undo(book, item, job_id)
            if item.over_budget is not None and items.BUDGET not in item.standing():
                ask_for_more(book, item, item.over_budget)
    for item_id in book.changed_items.keys() | book.new_items.keys():
        count(book, book.items_by_id[item_id])


def count(book: ledger.Ledger, item: items.Item) -> None:
    """How many items there are in each status, how many are tried again, and how many were over."""
    if item.status != item.was_status:
        if item.was_status != courses.NOWHERE:
            book.tally(tallies.ITEMS, f"{item.pipeline}/{item.was_status}", -1)
        book.tally(tallies.ITEMS, f"{item.pipeline}/{item.status}", 1)
        if item.was_open and not item.open:
            book.tally(tallies.ITEMS_ENDED, f"{item.pipeline}/{item.status}", 1)
    retrying = (item.retry_at is not None) - item.was_retrying
    if retrying:
        book.tally(tallies.ITEMS_RETRYING, item.pipeline, retrying)


def moved(book: ledger.Ledger, item: items.Item, course: courses.Course, made: list[dict[str, Any]]) -> None:
    """Tell of the moves that an item has made, in the stream of its run."""
    job = book.jobs.get(item.job_id or "")
    if made and job is not None:
        data = consequences.event_data(
            item=item.item_id,
            pipeline=item.pipeline,
            run=item.run,
            path=[move["to"] for move in made],
            before=made[0]["from"],
            code=item.status,
            status=course.names[item.status],
            actor=item.by,
            reason=item.why or item.told,
        )
        book.emit(job, events.ITEM_MOVED, data=data)


def ask_for_more(book: ledger.Ledger, item: items.Item, used_up: budgets.Exhausted) -> None:
    """The run of an item has cost what it may: people decide whether it may cost more, in a job of their own."""
    run = book.jobs[item.job_id or ""]
    budget, spent = usage.money(used_up.budget), usage.money(used_up.spent)
    title = f"May item {item.item_id} cost more? {usage.shown(used_up.spent)} of {usage.shown(used_up.budget)} is spent"
    asked = approvals.Approval(title, allow_edit=True)
    given: dict[str, Any] = {"item_id": item.item_id, "job_id": run.job_id}
    shown = given | {"budget": budget, "spent": spent, "raiseTo": usage.money(used_up.spent + used_up.budget)}
    spec = graph.JobSpec(
        [
            graph.TaskSpec(APPROVE, "approve", approval=asked, optional=True),
            graph.TaskSpec(
                "$raise",
                RAISE,
                depends_on=[APPROVE],
                queue=graph.SYSTEM_QUEUE,
                on_dependency_failure="run",
                retry=PATIENT,
            ),
        ],
        name=f"{ledger.BUDGET_JOB}{item.pipeline}",
        correlation_id=run.correlation_id,
        tags={"item": item.item_id},
    )
    inputs = [codec.encode_own(shown), codec.encode_own(given | {"budget": budget})]
    producing.Submit(f"{run.job_id}.budget-{run.last_seq}", spec, inputs, actor=run.submitted_by).apply(book)
    item.ask_for_budget()


def undo(book: ledger.Ledger, item: items.Item, job_id: str) -> None:
    """Enter the job that takes back what the steps of a run did, the last first, where they say how."""
    course = book.course_of(item)
    done = [n for n, step in course.steps.items() if step.undo is not None and item.is_(states.COMPLETED, n)]
    if done:
        given = {
            "item_id": item.item_id,
            "version": item.version,
            "run": item.run,
            "job_id": job_id,
            "steps": done[::-1],
        }
        spec = graph.JobSpec(
            [graph.TaskSpec("$undo", UNDO, queue=graph.SYSTEM_QUEUE)],
            name=f"{JOB}{item.pipeline}",
            correlation_id=book.jobs[job_id].correlation_id,
            tags={"item": item.item_id, "undo": str(item.run)},
        )
        number = book.jobs[job_id].last_seq
        producing.Submit(f"{job_id}.undo-{number}", spec, [codec.encode_own(given)], actor=item.by).apply(book)
        for name in done:
            item.take_back(name)
