"""Items follow what has become of their steps: the moves are made in the transaction that moved the tasks."""

from __future__ import annotations

from typing import Any, Final

from ostinato.core import codec, courses, events, graph, items, ledger, states, tallies
from ostinato.core.commands import asking, consequences, producing

UNDO: Final = "ostinato.pipeline.undo"
JOB: Final = "undo:"
"""How jobs are named that take back what was done: this, and the name of the pipeline."""


def follow(book: ledger.Ledger) -> list[str]:
    """Move the items whose steps have moved, and take back what was done with those that were rejected. The answer is
    the jobs in which people are asked about a budget that no step waits for any more."""
    for job_id, item in [*book.items.items()]:
        if item.was is not None:
            course = book.course_of(item)
            given_up = book.jobs[job_id].state in (states.CANCELLED, states.TIMED_OUT)
            if given_up:
                item.stand(items.BUDGET, states.BLOCKED, 0)
                item.how = book.jobs[job_id].state if item.how is None else item.how
            moved(book, item, course, item.follow(course, book.now, given_up=given_up))
            book.changed_items[item.item_id] = item
            rejects = {stop.reject for stop in course.stops if stop.reject}
            if item.status in rejects and item.status != item.was_status:
                undo(book, item, job_id)
            if item.over_budget is not None and items.BUDGET not in item.standing():
                asking.ask_for_item(book, item, item.over_budget)
    changed = [book.items_by_id[item_id] for item_id in book.changed_items.keys() | book.new_items.keys()]
    for item in changed:
        count(book, item)
    return [item.was_question for item in changed if item.was_question and item.was_question != item.question()]


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
            path=[move["to"] for move in made if move["to"] != move["from"]],
            before=made[0]["from"],
            code=item.status,
            status=course.names[item.status],
            actor=item.by,
            reason=item.why or item.told,
            how=item.how,
            skipped=[one["step"] for one in made if one.get("how") == states.SKIPPED] or None,
        )
        book.emit(job, events.ITEM_MOVED, data=data)


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
        run = book.jobs[job_id]
        spec = graph.JobSpec(
            [graph.TaskSpec("$undo", UNDO, queue=graph.SYSTEM_QUEUE)],
            name=f"{JOB}{item.pipeline}",
            correlation_id=run.correlation_id,
            tags={"item": item.item_id, "undo": str(item.run)},
        )
        number = run.last_seq
        producing.Submit(f"{job_id}.undo-{number}", spec, [codec.encode_own(given)], item.by, run.trace_parent).apply(
            book
        )
        for name in done:
            item.take_back(name)
