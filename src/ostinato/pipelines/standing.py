"""How an item stands, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.core import courses, items, moments, states


def waits_inside(course: courses.Course, item: items.Item) -> bool:
    """A step waits in the midst of its work: for people, for a signal, or for a time."""
    waits = item.step in course.steps and item.is_(states.WAITING, item.step or "")
    return bool(item.open) and waits and item.retry_at is None


def sentence(
    course: courses.Course, item: items.Item, *, asked: bool = False, last: Sequence[str | None] = (None, None, None)
) -> str:
    """With `asked`, what its step waits for are people; `last` is how it was moved last, by whom, and why."""
    name = course.names.get(item.status, str(item.status))
    if item.retry_at is not None:
        why = f": {item.step} failed with {item.error_type}" if item.step and item.error_type else ""
        return f"Retry scheduled for {moments.text(item.retry_at)}{why}"
    if not item.open:
        how, by, why = last
        return _ended(_ENDED[how], by, why) if how in _ENDED else _over(course, item, name)
    if item.run == 0:
        return "Held back: nothing is done with it until it is processed"
    if item.is_(states.WAITING, items.BUDGET):
        return "Waits for people to decide whether it may cost more"
    asking = item.standing().get(f"{courses.CONDITION}{item.step}")
    if asking is not None and asking.state in (states.PENDING, states.PROCESSING):
        return f"The condition of {item.step} is evaluated"
    known = item.standing().get(item.step or "")
    if item.step is None or known is None:
        return f"Rests at {name}: begin it again to go on"
    if item.step in course.reviews or asked:
        return f"Waits for people to decide in {item.step}"
    if known.state == states.PROCESSING:
        return f"At work on {item.step}, attempt {known.attempt}"
    return f"Waits for a worker to run {item.step}" if known.state == states.PENDING else f"Waits in {item.step}"


_ENDED = {items.CANCELLED: "Cancelled", items.ROLLED_BACK: "Rolled back", items.TIMED_OUT: "Out of time"}


def _ended(what: str, by: str | None, why: str | None) -> str:
    who = what if by is None else f"{what} by {by}"
    return who if why is None or why == what.lower() else f"{who}: {why}"


def _over(course: courses.Course, item: items.Item, name: str) -> str:
    if item.status == course.dead:
        return f"Dead letter: all attempts of {item.step} failed, the last with {item.error_type}"
    if item.status == course.failed and item.step is not None and item.error_type is not None:
        return f"Failed in {item.step}: {item.error_type}"
    return f"Over: {name}"
