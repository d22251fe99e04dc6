"""What is wrong with a pipeline is said with the field that it is in, before anybody uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ostinato import errors
from ostinato.core import courses
from ostinato.pipelines import definition
from tests.pipelines.support import publishing

Document = dict[str, Any]


def entry(number: int, **changes: Any) -> Callable[[Document], Any]:
    """A change of one entry of the course."""
    return lambda document: document["course"][number].update(changes)


def tag(**changes: Any) -> Callable[[Document], Any]:
    return lambda document: document["course"][5]["together"][0].update(changes)


def put(**changes: Any) -> Callable[[Document], Any]:
    return lambda document: document.update(changes)


def cut(number: int) -> Callable[[Document], Any]:
    return lambda document: document.update(course=document["course"][:number])


BAD: list[tuple[Callable[[Document], Any], str, str]] = [
    (put(name=""), "name", "name"),
    (put(name="a b"), "name", "name"),
    (put(description="x" * 1025), "description", "1 to 1024"),
    (put(budget=0), "budget", "more than 0"),
    (put(budget=float("nan")), "budget", "more than 0"),
    (put(statuses=[]), "statuses", "1 to 200"),
    (put(course="all of it"), "course", "list"),
    (put(speed=1), "speed", "speed"),
    (put(failed="fialed"), "failed", "did you mean 'failed'?"),
    (put(failed="published"), "failed", "passed by the course (course[8].status): an item ends in it"),
    (put(deadLetter="scoring"), "deadLetter", "passed by the course"),
    (put(moves=[{"from": "published", "to": "upd"}]), "moves[0].to", "there is no status 'upd'"),
    (put(moves=[{"from": "published"}]), "moves[0].to", "to"),
    (cut(1), "course", "must have a step or a review"),
    (cut(8), "course[7]", "must be a status: the one that items are in when they are approved"),
    (cut(6), "course[5]", "must be a status"),
    (lambda document: document["course"].pop(0), "course[0]", "the one that items are entered in"),
    (lambda document: document["statuses"][3].update(code=0), "statuses[3].code", "1 to 99,999"),
    (lambda document: document["statuses"][3].update(code=100), "statuses[3]", "two statuses"),
    (lambda document: document["statuses"][3].update(name="failed"), "statuses[23]", "there are two statuses"),
    (entry(1, statuses=["to_fetch", "fetching"]), "course[1].statuses", "statuses"),
    (entry(1, statuses=["to_fetch", "fetching", "to_score"]), "course[2].statuses", "already"),
    (entry(1, step="tag"), "course[5]", "two places named 'tag'"),
    (entry(1, step="a b"), "course[1].step", "step"),
    (entry(1, agent="reader"), "course[1]", "a function or an agent that does it, and not both"),
    (entry(1, function=None), "course[1]", "a function or an agent"),
    (entry(1, timeout=-1), "course[1].timeout", "more than 0"),
    (entry(1, retry={"maxAttempts": 0}), "course[1].retry", "maxAttempts"),
    (entry(1, ends=["nowhere"]), "course[1].ends", "there is no status 'nowhere'"),
    (entry(1, ends=["enriched"]), "course[1].ends", "'enriched' is passed by the course (course[6].status)"),
    (tag(ends=["in_review"]), "course[5].together[0].ends", "'in_review' is passed by the course (course[7].taken)"),
    (tag(undo="ostinato.undo"), "", "ostinato."),
    (entry(5, together=[]), "course[5].together", "2 to 100"),
    (entry(7, reject="pending_enrichment"), "course[7].reject", "is passed by the course (course[3].status)"),
    (entry(7, quorum=0), "course[7].quorum", "quorum"),
    (entry(7, quorum=3, approvers=["ann"]), "course[7].quorum", "quorum"),
    (entry(7, again={"approve": "discovered"}), "course[7].again", "'approve' is a decision already"),
    (entry(7, again={"more": "published"}), "course[7].again.more", "not a status that the course passes before"),
    (entry(7, deadline=0), "course[7].deadline", "deadline"),
]


@pytest.mark.parametrize(("change", "field", "told"), BAD)
def test_what_is_wrong_is_said(change: Callable[[Document], Any], field: str, told: str) -> None:
    document = publishing()
    change(document)
    with pytest.raises(errors.InvalidInput) as refused:
        definition.read(document)
    assert told in str(refused.value)
    assert field in str(refused.value.details.get("field", ""))


def test_a_step_may_end_an_item_where_the_course_does() -> None:
    """It need not be reviewed, say; what is in the midst of the course is no end."""
    document = publishing()
    document["course"][2]["ends"] = ["irrelevant", "published"]
    course = courses.Course(definition.read(document), 1)
    assert (121, 400) in course.moves
    assert 400 not in course.open
