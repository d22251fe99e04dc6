"""A pipeline as its author writes it, checked field by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ostinato import errors
from ostinato.core import approvals, courses, documents, graph
from ostinato.core.retry import LONGEST
from ostinato.pipelines import run

MOST_STATUSES = 200
MOST_ENTRIES = 100
MOST_MOVES = 1000
LARGEST_CODE = 99_999
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
LONGEST_ID = 100
"""Of an item: it is part of the ids of its runs, and of what people are asked."""


def read(document: Any) -> courses.Pipeline:
    """Turn a document into a checked pipeline, or raise InvalidInput naming the field."""
    given = documents.check_names(document, courses.Pipeline)
    statuses = documents.as_list(given["statuses"], "statuses", 1, MOST_STATUSES)
    given["statuses"] = [documents.read(one, courses.Status, f"statuses[{n}]") for n, one in enumerate(statuses)]
    entries = documents.as_list(given["course"], "course", 1, MOST_ENTRIES)
    course = [_entry(one, f"course[{n}]") for n, one in enumerate(entries)]
    given["course"] = [msgspec.to_builtins(entry) for entry in course]
    moves = documents.as_list(given.get("moves", []), "moves", 0, MOST_MOVES)
    given["moves"] = [documents.read(one, courses.Move, f"moves[{n}]") for n, one in enumerate(moves)]
    made = documents.read(given, courses.Pipeline)
    _check(made, course)
    return made


def expressions(pipeline: courses.Pipeline) -> Iterable[tuple[str, str]]:
    """The conditions of its steps, each with its field."""
    for number, given in enumerate(pipeline.course):
        entry = courses.entry_of(given)
        for index, step in enumerate(courses.steps_of(entry)):
            if step.when is not None:
                at = (
                    f"course[{number}].together[{index}]"
                    if isinstance(entry, courses.Together)
                    else f"course[{number}]"
                )
                yield f"{at}.when", step.when


def _entry(document: Any, field: str) -> courses.Entry:
    given = documents.as_object(document, field)
    told = [name for name in courses.ENTRIES if name in given]
    if len(told) != 1:
        raise errors.InvalidInput(
            f"{field} must have one of {', '.join(courses.ENTRIES)}, which says what it is, not {len(told)} of them",
            field=field,
        )
    kind = courses.ENTRIES[told[0]]
    if kind is courses.Together:
        steps = documents.as_list(given["together"], f"{field}.together", 2, MOST_ENTRIES)
        named = [documents.read(one, courses.Step, f"{field}.together[{n}]") for n, one in enumerate(steps)]
        given["together"] = [msgspec.to_builtins(step) for step in named]
    return documents.read(given, kind, field)


def _check(pipeline: courses.Pipeline, course: list[courses.Entry]) -> None:
    documents.check_text(pipeline.name, "name", 128)
    if not graph.is_id(pipeline.name):
        graph.check_id(pipeline.name, "name")
    if pipeline.description is not None:
        documents.check_text(pipeline.description, "description", LONGEST_DESCRIPTION)
    if pipeline.budget is not None and not 0 < pipeline.budget < LONGEST:
        raise errors.InvalidInput("budget must be more than 0", field="budget")
    names = _check_statuses(pipeline)
    places: dict[str, str] = {}
    for number, entry in enumerate(course):
        _check_entry(entry, f"course[{number}]", names, places)
    if not isinstance(course[0], courses.Passed):
        raise errors.InvalidInput("course[0] must be a status: the one that items are entered in", field="course[0]")
    steps = courses.steps_of(course[-1])
    last_step = steps[-1] if steps else None
    may_lack = last_step is not None and (last_step.optional or last_step.when is not None)
    if isinstance(course[-1], courses.Review) or may_lack:
        last = f"course[{len(course) - 1}]"
        raise errors.InvalidInput(
            f"{last} must be a status: the one that items are in when they are approved, or go on without the step",
            field=last,
        )
    if all(isinstance(entry, courses.Passed) for entry in course):
        raise errors.InvalidInput("course must have a step or a review: there is nothing to be done", field="course")
    for name, field in ((pipeline.failed, "failed"), (pipeline.dead_letter, "deadLetter")):
        _check_known(name, field, names)
        _check_over(name, field, places)
    _check_ends(course, places)
    for number, move in enumerate(pipeline.moves):
        _check_known(move.before, f"moves[{number}].from", names)
        _check_known(move.after, f"moves[{number}].to", names)
    _check_again(course, places)


def _check_statuses(pipeline: courses.Pipeline) -> set[str]:
    names: set[str] = set()
    codes: set[int] = set()
    for number, status in enumerate(pipeline.statuses):
        field = f"statuses[{number}]"
        documents.check_text(status.name, f"{field}.name", LONGEST_NAME)
        if status.phase is not None:
            documents.check_text(status.phase, f"{field}.phase", LONGEST_NAME)
        if not 1 <= status.code <= LARGEST_CODE:
            raise errors.InvalidInput(f"{field}.code must be 1 to {LARGEST_CODE:,}", field=f"{field}.code")
        if status.name in names or status.code in codes:
            raise errors.InvalidInput(
                f"{field}: there are two statuses with the name {status.name!r} or the code {status.code}", field=field
            )
        names.add(status.name)
        codes.add(status.code)
    return names


def _check_entry(entry: courses.Entry, field: str, names: set[str], places: dict[str, str]) -> None:
    for name, where in _passed(entry, field):
        _check_known(name, where, names)
        if name in places:
            raise errors.InvalidInput(
                f"{where}: the course passes status {name!r} at {places[name]} already", field=where
            )
        places[name] = where
    for number, step in enumerate(courses.steps_of(entry)):
        at = f"{field}.together[{number}]" if isinstance(entry, courses.Together) else field
        _check_step(step, at, names)
    if isinstance(entry, courses.Review):
        _check_review(entry, field, names)


def _passed(entry: courses.Entry, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(entry, courses.Passed):
        yield entry.status, f"{field}.status"
    elif isinstance(entry, courses.Review):
        looking = {"waiting": entry.waiting, "taken": entry.taken, "editing": entry.editing}
        yield from ((name, f"{field}.{part}") for part, name in looking.items() if name is not None)
    for number, step in enumerate(courses.steps_of(entry)):
        at = f"{field}.together[{number}]" if isinstance(entry, courses.Together) else field
        yield from ((name, f"{at}.statuses") for name in step.statuses)


def _check_step(step: courses.Step, field: str, names: set[str]) -> None:
    graph.check_id(step.step, f"{field}.step")
    if (step.function is None) == (step.agent is None):
        raise errors.InvalidInput(f"{field} needs a function or an agent that does it, and not both", field=field)
    if step.agent is not None:
        graph.check_id(step.agent, f"{field}.agent")
    for name, part in ((step.function, "function"), (step.undo, "undo")):
        if name is not None:
            graph.check_name(name, f"{field}.{part}")
            graph.check_not_reserved(name)
    if step.queue is not None:
        graph.check_id(step.queue, f"{field}.queue")
        graph.check_not_reserved(step.queue)
    documents.check_seconds(step.timeout, f"{field}.timeout", LONGEST)
    for name in step.ends:
        _check_known(name, f"{field}.ends", names)


def _check_review(review: courses.Review, field: str, names: set[str]) -> None:
    graph.check_id(review.review, f"{field}.review")
    _check_known(review.reject, f"{field}.reject", names)
    for decision in review.again:
        graph.check_id(decision, f"{field}.again")
        if decision in (approvals.APPROVE, approvals.REJECT):
            raise errors.InvalidInput(f"{field}.again: {decision!r} is a decision already", field=f"{field}.again")
    approvals.check(run.asked(review, LONGEST_ID * "x"), field, within=field)


def _check_again(course: list[courses.Entry], places: Mapping[str, str]) -> None:
    """Items begin again at a status that is only passed, before the review; and no two places have one name."""
    restarts: set[str] = set()
    named: set[str] = set()
    for number, entry in enumerate(course):
        field = f"course[{number}]"
        if isinstance(entry, courses.Passed):
            restarts.add(entry.status)
        own = [entry.review] if isinstance(entry, courses.Review) else [step.step for step in courses.steps_of(entry)]
        for name in own:
            if name in named or name in places:
                raise errors.InvalidInput(f"{field}: there are two places named {name!r}", field=field)
            named.add(name)
        if isinstance(entry, courses.Review):
            for decision, status in entry.again.items():
                if status not in restarts:
                    raise errors.InvalidInput(
                        f"{field}.again.{decision}: {documents.short(status)} is not a status that the course passes "
                        f"before: choose one of {', '.join(sorted(restarts))}",
                        field=f"{field}.again.{decision}",
                    )


def _check_ends(course: list[courses.Entry], places: Mapping[str, str]) -> None:
    """Who is rejected, or ended by a step, is over: nowhere in the midst of the course, but perhaps at its end."""
    last, steps = course[-1], courses.steps_of(course[-1])
    end = last.status if isinstance(last, courses.Passed) else steps[-1].statuses[-1]
    midst = {name: where for name, where in places.items() if name != end}
    for number, entry in enumerate(course):
        field = f"course[{number}]"
        if isinstance(entry, courses.Review):
            _check_over(entry.reject, f"{field}.reject", midst)
        for index, step in enumerate(courses.steps_of(entry)):
            at = f"{field}.together[{index}]" if isinstance(entry, courses.Together) else field
            for name in step.ends:
                _check_over(name, f"{at}.ends", midst)


def _check_over(name: str, field: str, passed: Mapping[str, str]) -> None:
    if name in passed:
        raise errors.InvalidInput(
            f"{field}: status {name!r} is passed by the course ({passed[name]}): an item ends in it", field=field
        )


def _check_known(name: str, field: str, names: set[str]) -> None:
    if name not in names:
        raise errors.InvalidInput(
            f"{field}: there is no status {documents.short(name)}: {documents.nearest(name, names)}add it to statuses",
            field=field,
        )
