"""What may be done with an item as it stands: asked before it is done, and by those who only want to know."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ostinato import errors
from ostinato.core import courses, documents, items, states

WORKS: Final = (states.PENDING, states.PROCESSING)
"""How a step stands that somebody works on, or may take at any moment."""


def follows(course: courses.Course, item: items.Item, stop: courses.Stop) -> bool:
    """An item may begin there, from the status that it has."""
    return item.status == stop.codes[0] or (item.status, stop.codes[0]) in course.moves


def begin(course: courses.Course, item: items.Item, code: int) -> None:
    """Refuse to begin an item at a status that does not follow from the one it has."""
    if item.status != code and (item.status, code) not in course.moves:
        raise errors.IllegalMove(
            f"item {item.item_id!r} is {named(course, item.status)} and cannot begin at {named(course, code)}",
            itemId=item.item_id,
        )


def give_up(course: courses.Course, item: items.Item) -> None:
    """Refuse to roll an item back that is over, unless it has failed: what its steps did may still be taken back."""
    if item.status not in (course.failed, course.dead) and (item.status, course.failed) not in course.moves:
        raise errors.IllegalMove(
            f"item {item.item_id!r} is {named(course, item.status)}: it is over, and cannot be rolled back",
            itemId=item.item_id,
        )


def rerun(course: courses.Course, item: items.Item) -> None:
    """Refuse to go on with the run of an item that is over, or some of which was taken back."""
    undone = [name for name in course.steps if item.is_(courses.UNDONE, name)]
    if item.is_rolled_back():
        stands = "was rolled back"
    elif undone:
        stands = f"is {named(course, item.status)}, and {', '.join(undone)} of it was taken back"
    elif item.open or item.status in (course.failed, course.dead):
        return
    else:
        stands = f"is {named(course, item.status)}"
    found = [name for name in item.standing() if item.is_(states.COMPLETED, name)]
    again = {stop.name for index, stop in enumerate(course.stops) if not {*undone} & {*course.before(index)}}
    begins = [name for name in places(course, item, found) if name in again]
    instead = f"restart the item at {begins[-1]!r}" if begins else "act on the item"
    raise errors.NotPossible(
        f"item {item.item_id!r} {stands}: nothing of its run goes on; {instead} instead",
        itemId=item.item_id,
        jobId=item.job_id,
    )


def ask(course: courses.Course, item: items.Item) -> None:
    """Refuse a decision about an item that is over, though the review of its run still waits: somebody has put it
    there, who did so past the review."""
    if item.status not in course.open:
        raise errors.ApprovalDecided(
            f"item {item.item_id!r} is {named(course, item.status)}: it is over, and nobody is asked about it any "
            f"more; cancel job {item.job_id!r} to withdraw the question, or begin the item again",
            itemId=item.item_id,
            jobId=item.job_id,
        )


def move(course: courses.Course, item: items.Item, status: str) -> int:
    """The code of a status that somebody wants to move an item to by hand."""
    code = course.codes.get(status)
    if code is None:
        raise errors.InvalidInput(
            f"pipeline {item.pipeline!r} has no status {documents.short(status)}: "
            f"{documents.nearest(status, course.codes)}its statuses are {documents.listed(course.codes, 40)}",
            field="status",
            itemId=item.item_id,
        )
    if code != item.status and (item.status, code) not in by_hand(course):
        raise errors.IllegalMove(
            f"item {item.item_id!r} is {named(course, item.status)}: nobody moves it to {named(course, code)} by hand",
            itemId=item.item_id,
        )
    return code


def leaves_review(course: courses.Course, item: items.Item, code: int) -> str | None:
    """The review that an item would be moved out of, other than to where it is rejected."""
    stop = review_at(course, item)
    return stop.name if stop is not None and code not in (*stop.codes, *stop.looking, stop.reject) else None


def review_at(course: courses.Course, item: items.Item) -> courses.Stop | None:
    """The review that an item is in."""
    reviews = (stop for stop in course.stops if stop.kind == "review")
    return next((stop for stop in reviews if item.status in (*stop.codes, *stop.looking)), None)


def migrate(old: courses.Course, new: courses.Course, item: items.Item) -> None:
    """Refuse a version in which the item could not have the status that it has."""
    if new.names.get(item.status) != old.names[item.status]:
        raise errors.NotPossible(
            f"item {item.item_id!r} is {named(old, item.status)}, which version {new.version} does not have",
            itemId=item.item_id,
        )


def rest(item: items.Item, at_work: Collection[str]) -> None:
    """Refuse to touch an item that somebody works on."""
    if at_work:
        raise errors.NotPossible(
            f"{', '.join(at_work)} of item {item.item_id!r} is at work: wait for it, or cancel job {item.job_id!r}",
            itemId=item.item_id,
            jobId=item.job_id,
        )


def at_work(item: items.Item) -> list[str]:
    """The steps of an item that somebody works on, or may take at any moment."""
    return [name for name, known in item.standing().items() if known.state in WORKS]


def may_go_on(course: courses.Course, item: items.Item) -> bool:
    """There is something to be done with an item, and nobody is asked about it first."""
    if item.run == 0:
        return bool(item.open)
    unfinished = item.open or item.status in (course.failed, course.dead)
    return unfinished and item.step is not None and not at_work(item) and not is_reviewed(course, item)


def is_reviewed(course: courses.Course, item: items.Item) -> bool:
    """What it has got to is a review, in which people are asked, or have rejected it."""
    known = item.standing().get(item.step or "")
    return item.step in course.reviews and known is not None and known.state in (states.WAITING, courses.REJECTED)


def places(course: courses.Course, item: items.Item, found: Collection[str]) -> list[str]:
    """Where an item may begin again, with the results that it has: steps, reviews and statuses of its course."""
    if at_work(item):
        return []
    return [
        stop.name
        for index, stop in enumerate(course.stops)
        if follows(course, item, stop)
        if not lacking(course, item, index, found)
    ]


def lacking(course: courses.Course, item: items.Item, index: int, found: Collection[str]) -> list[str]:
    """The steps before a place that have no result though they need one."""
    return [name for name in course.before(index) if name not in found and not item.may_lack(course, name)]


def moves_by_hand(course: courses.Course, item: items.Item) -> list[str]:
    """The statuses to which people may move an item as it stands."""
    return [course.names[code] for before, code in sorted(by_hand(course)) if before == item.status]


def by_hand(course: courses.Course) -> set[tuple[int, int]]:
    """The moves that people make: within a review, and those that the pipeline names."""
    found = {(course.codes[move.before], course.codes[move.after]) for move in course.pipeline.moves}
    for stop in course.stops:
        if stop.kind == "review":
            seen = (*stop.codes, *stop.looking)
            found |= {(one, other) for one in seen for other in seen if one != other}
    return found


def named(course: courses.Course, code: int) -> str:
    return f"{code} {course.names.get(code, 'unknown')}"
