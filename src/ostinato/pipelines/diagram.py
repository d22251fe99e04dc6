"""The legal moves of a pipeline for people: what each is for, and a picture of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from ostinato.core import allowed, courses

Kind = Literal["enter", "course", "skip", "retry", "end", "failure", "review", "named", "again"]


class MoveView(msgspec.Struct, frozen=True, rename="camel"):
    """A legal move. From nowhere, an item is entered."""

    from_code: int
    from_status: str | None
    code: int
    status: str
    kind: Kind
    """Items are entered (`enter`), go along the `course` and `skip` steps of it whose condition is false, wait for a
    `retry`, are at an `end` that a step has found or at a `failure`; people move them in a `review`, or as the pipeline
    has `named`; and they begin `again`."""


class Moves(msgspec.Struct, frozen=True, rename="camel"):
    """Every move that a version of a pipeline allows. The database refuses the others."""

    pipeline: str
    version: int
    statuses: list[courses.Status]
    moves: list[MoveView]


def moves(course: courses.Course) -> Moves:
    forward = frozenset(_forward(course))
    found = [
        MoveView(before, course.names.get(before), code, course.names[code], _kind(course, forward, before, code))
        for before, code in sorted(course.moves)
    ]
    return Moves(course.pipeline.name, course.version, course.pipeline.statuses, found)


def mermaid(course: courses.Course) -> str:
    """A state diagram, by phase. That a run may be given up, and begin again, is left out: so it is from almost
    everywhere."""
    at_work = {stop.codes[1] for stop in course.stops if stop.kind == "step"}
    lines = ["stateDiagram-v2", *_phases(course)]
    shown = [move for move in moves(course).moves if move.kind != "again"]
    left = {move.from_code for move in shown}
    for move in shown:
        before = f"s{move.from_code}" if move.from_code else "[*]"
        if move.kind != "failure" or move.from_code in at_work:
            lines.append(f"    {before} --> s{move.code}" + (f" : {move.kind}" if move.kind in _TOLD else ""))
    lines += [f"    s{status.code} --> [*]" for status in course.pipeline.statuses if status.code not in left]
    return "\n".join(lines) + "\n"


def _phases(course: courses.Course) -> Iterator[str]:
    for number, phase in enumerate(dict.fromkeys(status.phase for status in course.pipeline.statuses)):
        indent = "    " if phase is None else "        "
        if phase is not None:
            yield f'    state "{phase}" as p{number} {{'
        for status in course.pipeline.statuses:
            if status.phase == phase:
                yield f'{indent}state "{status.code} {status.name}" as s{status.code}'
        if phase is not None:
            yield "    }"


_TOLD = ("skip", "retry", "end", "failure", "review", "named")


def table(course: courses.Course) -> str:
    """Every legal move, as Markdown: from each status, where an item goes on to, ends, or begins again."""
    lines = ["| from | goes on to | ends in | begins again at |", "|---|---|---|---|"]
    order = _order(course)
    for code, name in course.names.items():
        ways = [after for before, after in course.moves if before == code]
        ends = [after for after in ways if after not in order]
        on = [after for after in ways if after in order and code in order and order[after] > order[code]]
        again = [after for after in ways if after not in (*ends, *on)]
        lines.append(f"| {code} {name} | {_list(on)} | {_list(ends)} | {_list(again)} |")
    return "\n".join(lines)


def _order(course: courses.Course) -> dict[int, int]:
    """The statuses of the course, and what its end may become, in order."""
    passed = [code for stop in course.stops for code in (*stop.codes, *stop.looking)]
    passed += [course.codes[move.after] for move in course.pipeline.moves]
    return {code: index for index, code in enumerate(dict.fromkeys(passed))}


def _list(codes: Iterable[int]) -> str:
    return ", ".join(str(code) for code in sorted(codes)) or "–"


def _forward(course: courses.Course) -> Iterator[tuple[int, int]]:
    for one, other in courses.followed(course):
        yield from ((code, other.codes[0]) for code in one.exits)
    for stop in course.stops:
        yield from itertools.pairwise(stop.codes)


def _leaps(course: courses.Course, before: int, code: int) -> bool:
    """Past a step that may be left out."""
    places = {passed: number for number, stop in enumerate(course.stops) for passed in (*stop.codes, *stop.looking)}
    first, last = course.stops[places[before]], course.stops[places[code]]
    begun = first.conditional and not first.optional and before == first.codes[0]
    return first is not last and (begun or places[code] - places[before] > 1)


def _kind(course: courses.Course, forward: frozenset[tuple[int, int]], before: int, code: int) -> Kind:
    if before == courses.NOWHERE:
        return "enter"
    if (before, code) in forward:
        return "skip" if _leaps(course, before, code) else "course"
    if any(course.codes[m.before] == before and course.codes[m.after] == code for m in course.pipeline.moves):
        return "named"
    if code in (course.failed, course.dead):
        return "failure"
    rejects = {stop.reject for stop in course.stops if stop.reject}
    if (before, code) in allowed.by_hand(course) or code in rejects:
        return "review"
    steps = [stop for stop in course.stops if stop.kind == "step" and stop.codes[1] == before]
    if steps and code in course.ends:
        return "end"
    return "retry" if any(code == stop.codes[0] for stop in steps) else "again"
