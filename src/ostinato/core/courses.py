"""The course of a pipeline: which statuses an item passes, which moves are legal, and where an item stands.

An item's status follows from how the tasks of its run stand. The *walk* of an item is every status that it has passed:
stop by stop, up to the first that is not done. When tasks move, the walk changes, and the item moves along it, one
legal move after the other. Steps that run together are passed in the order of the course: one that is done before its
turn is passed at once when those before it are done.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ostinato.core import approvals, states
from ostinato.core.retry import Retry

JOB: Final = "pipeline:"
"""How the jobs of pipelines are named: this, and the name of the pipeline."""
NOWHERE: Final = 0
"""Where an item is before it is entered."""
RETRY: Final = Retry(max_attempts=4, base_delay=60.0, multiplier=2.0, max_delay=86_400.0)
"""Three retries, after 60, 120 and 240 seconds."""

DEAD: Final = "dead"
"""How a step stands that has failed with all its attempts used up; one that no attempt can help has `failed`."""
REJECTED: Final = "rejected"
UNDONE: Final = "undone"
"""How a step stands that was done, and what it did taken back."""
OMITTED: Final = "omitted"
"""How a step stands whose condition is false: the item goes on past it."""
CONDITION: Final = "$when-"
"""How the task is named that evaluates the condition of a step: this, and the name of the step."""
_FAILED: Final = (states.FAILED, DEAD, states.CANCELLED)


class Status(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    code: int
    name: str
    phase: str | None = None


class Move(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A legal move beside those that follow from the course."""

    before: str = msgspec.field(name="from")
    after: str = msgspec.field(name="to")


class Step(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Work on an item. Its statuses are those of an item that waits for it, is worked on, and is done with."""

    step: str
    statuses: tuple[str, str, str]
    function: str | None = None
    agent: str | None = None
    """Who does it: a function, or an agent of the tenant's, in the version that it has when a run begins."""
    when: str | None = None
    """A JSONata expression over the item and the results so far: where it is false, the item goes on past the step."""
    optional: bool = False
    """Its failure does not fail the item."""
    retry: Retry = RETRY
    timeout: float | None = None
    queue: str | None = None
    ends: list[str] = []
    """Statuses in which the step may say that the item is over."""
    undo: str | None = None
    """The function that takes back what the step did, when the item is rejected or rolled back."""


class Review(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A person decides. `approve` goes on with the course, `reject` ends it, others begin again where they say."""

    review: str
    waiting: str
    reject: str
    taken: str | None = None
    """The status of an item that somebody is looking at."""
    editing: str | None = None
    """The status of an item that somebody is changing."""
    again: dict[str, str] = {}
    """More decisions, and the status of the course that the item begins again at."""
    title: str | None = None
    quorum: int = 1
    approvers: list[str] | None = None
    not_submitter: bool = False
    allow_edit: bool = True
    escalate: approvals.Escalation | None = None
    deadline: float | None = None
    on_deadline: approvals.OnDeadline = "reject"


class Together(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Steps that run at the same time."""

    together: list[Step]


class Passed(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A status that is only passed."""

    status: str


Entry = Passed | Step | Together | Review
ENTRIES: Final[dict[str, type[Entry]]] = {"status": Passed, "step": Step, "together": Together, "review": Review}
"""By the field that tells what an entry of a course is."""


class Pipeline(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A pipeline as it is kept, in the form in which it was written. Each entry of the course is an `Entry`."""

    name: str
    statuses: list[Status]
    course: list[dict[str, Any]]
    failed: str
    dead_letter: str
    description: str | None = None
    moves: list[Move] = []
    budget: float | None = None
    """What one run of an item may cost."""


class Stop(NamedTuple):
    """One place of a course, with the codes of its statuses."""

    kind: str
    name: str
    codes: tuple[int, ...]
    optional: bool = False
    group: int = 0
    """Steps with the same number run together."""
    reject: int = NOWHERE
    looking: tuple[int, ...] = ()
    """Statuses of a review that people move an item to and fro between."""
    conditional: bool = False

    @property
    def exits(self) -> tuple[int, ...]:
        """From where the item goes on to the next stop."""
        if self.kind == "step":
            begun = self.codes[:1] if self.conditional else ()  # where it may have begun again
            return self.codes if self.optional else (*begun, *self.codes[-1:])
        return (*self.codes, *self.looking)


class Course:
    """A pipeline in one version, made ready to be followed."""

    def __init__(self, pipeline: Pipeline, version: int) -> None:
        self.pipeline = pipeline
        self.version = version
        self.codes = {status.name: status.code for status in pipeline.statuses}
        self.names = {status.code: status.name for status in pipeline.statuses}
        self.failed = self.codes[pipeline.failed]
        self.dead = self.codes[pipeline.dead_letter]
        self.entries = [entry_of(given) for given in pipeline.course]
        self.steps = {step.step: step for entry in self.entries for step in steps_of(entry)}
        self.reviews = {entry.review: entry for entry in self.entries if isinstance(entry, Review)}
        self.stops = tuple(self._stops())
        self.ends = frozenset(self.codes[end] for step in self.steps.values() for end in step.ends)

    def _stops(self) -> Iterator[Stop]:
        codes = self.codes
        for group, entry in enumerate(self.entries):
            if isinstance(entry, Passed):
                yield Stop("status", entry.status, (codes[entry.status],), group=group)
            elif isinstance(entry, Review):
                looking = tuple(codes[name] for name in (entry.taken, entry.editing) if name is not None)
                waiting = (codes[entry.waiting],)
                yield Stop("review", entry.review, waiting, group=group, reject=codes[entry.reject], looking=looking)
            for step in steps_of(entry):
                triple = tuple(codes[name] for name in step.statuses)
                yield Stop("step", step.step, triple, step.optional, group, conditional=step.when is not None)

    @property
    def initial(self) -> int:
        return self.stops[0].codes[0]

    @functools.cached_property
    def open(self) -> frozenset[int]:
        """Statuses of items that are not over yet: all of the course, but for the end of it."""
        last = self.stops[-1]
        passed = {code for stop in self.stops for code in (*stop.codes, *stop.looking)}
        return frozenset(passed - set(last.codes if last.kind == "status" else last.codes[-1:]))

    @functools.cached_property
    def looked_at(self) -> tuple[int, ...]:
        """The statuses of its reviews."""
        return tuple(code for stop in self.stops if stop.kind == "review" for code in (*stop.codes, *stop.looking))

    @functools.cached_property
    def moves(self) -> frozenset[tuple[int, int]]:
        """Every legal move, as (from, to)."""
        return frozenset(_moves(self))

    def again(self, place: str) -> int:
        """The index of the stop to begin again at: a step by its name, or a status that is only passed."""
        for index, stop in enumerate(self.stops):
            if stop.name == place and stop.kind in ("step", "status"):
                return index
        raise KeyError(place)

    def is_optional(self, place: str) -> bool:
        return place in self.steps and self.steps[place].optional

    def before(self, index: int) -> list[str]:
        """What has to be done already for an item to begin at this stop: the steps and the reviews before it."""
        first = self.stops[index]
        return [stop.name for stop in self.stops[:index] if stop.kind != "status" and stop.group != first.group]

    def beside(self, index: int) -> list[str]:
        """The steps that run together with that of this stop."""
        first = self.stops[index]
        return [stop.name for stop in self.stops if stop.group == first.group and stop is not first]


def entry_of(given: dict[str, Any]) -> Entry:
    """What an entry of a course is: that is told by the one of these fields that it has."""
    kind = next(kind for field, kind in ENTRIES.items() if field in given)
    return msgspec.convert(given, kind)


def steps_of(entry: Entry) -> list[Step]:
    if isinstance(entry, Together):
        return entry.together
    return [entry] if isinstance(entry, Step) else []


def walk(course: Course, stands: Mapping[str, str | int], *, given_up: bool = False) -> list[int]:
    """Every status that an item has passed, by how the tasks of its run stand. A number says that the step has ended
    the item there. Once its run is given up, nothing that was cancelled is passed, were it optional or not."""
    passed: list[int] = []
    between: list[int] = []  # statuses that are passed when the next stop is reached
    for index, stop in enumerate(course.stops):
        if stop.kind == "status":
            between += stop.codes
            if index == 0:
                passed, between = [*between], []
            continue
        if stop.conditional and stands.get(CONDITION + stop.name) in _FAILED:
            passed.append(course.failed)
            break
        how = stands.get(stop.name, states.BLOCKED)
        if how == states.BLOCKED:
            break
        if how == OMITTED:
            continue
        if given_up and how == states.CANCELLED:
            passed += [*between, stop.codes[0], course.failed]
            break
        passed += [*between, *_reached(course, stop, how)]
        between = []
        if not is_done(stop, how):
            break
    else:
        passed += between
    return passed


def _reached(course: Course, stop: Stop, how: str | int) -> tuple[int, ...]:
    if stop.kind == "review":
        if how == REJECTED:
            return (*stop.codes, stop.reject)
        return (*stop.codes, course.failed) if how in _FAILED else stop.codes
    to, doing, done = stop.codes
    if isinstance(how, int):
        return (to, doing, how)
    if how in (states.COMPLETED, UNDONE) or (how == states.SKIPPED and not stop.optional):
        return (to, doing, done)
    if how in (states.FAILED, DEAD):
        after = () if stop.optional else (course.dead if how == DEAD else course.failed,)
        return (to, doing, *after)
    if how == states.CANCELLED and not stop.optional:
        return (to, course.failed)
    return (to, doing) if how == states.PROCESSING else (to,)


def is_done(stop: Stop, how: str | int) -> bool:
    if how in (states.COMPLETED, states.SKIPPED, UNDONE, OMITTED):
        return True
    return stop.optional and how in _FAILED


def path(course: Course, status: int, before: Sequence[int], now: Sequence[int]) -> list[int]:
    """The moves that take an item from its status to the end of its walk, given the walk that it had."""
    if [*before] == [*now] or now[-1:] == [status]:
        return []
    common = 0
    while common < min(len(before), len(now)) and before[common] == now[common]:
        common += 1
    return legal_tail(course, status, now[common:]) or _way_back(course, status, now, common)


def legal_tail(course: Course, status: int, wanted: Sequence[int]) -> list[int]:
    """As much of the way as can be gone from here. Somebody may have moved the item by hand: then it joins the way
    where that is legal, or stays where it was put."""
    for index, code in enumerate(wanted):
        if (status, code) in course.moves:
            return [*wanted[index:]]
    return []


def _way_back(course: Course, status: int, now: Sequence[int], common: int) -> list[int]:
    """A step is done again: back to the nearest place from which the walk can be gone once more."""
    for index in range(common - 1, -1, -1):
        if (status, now[index]) in course.moves:
            return [*now[index:]]
    return []


def followed(course: Course) -> Iterator[tuple[Stop, Stop]]:
    """Each stop with those that may come next: the one after it, and those after steps that may be left out."""
    for index, stop in enumerate(course.stops):
        for later in course.stops[index + 1 :]:
            yield stop, later
            if not later.conditional:
                break


def _moves(course: Course) -> Iterator[tuple[int, int]]:
    yield (NOWHERE, course.initial)
    stops = course.stops
    for one, other in followed(course):
        yield from ((code, other.codes[0]) for code in one.exits)
    for stop in stops:
        yield from _moves_inside(course, stop)
    yield from ((code, course.failed) for code in course.open)  # cancelled, or out of time
    yield from _moves_back(course)
    yield from ((course.codes[move.before], course.codes[move.after]) for move in course.pipeline.moves)


def _moves_inside(course: Course, stop: Stop) -> Iterator[tuple[int, int]]:
    if stop.kind == "step":
        to, doing, done = stop.codes
        yield from ((to, doing), (doing, done), (doing, to), (doing, course.failed), (doing, course.dead))
        yield from ((doing, course.codes[end]) for end in course.steps[stop.name].ends)
    elif stop.kind == "review":
        seen = (*stop.codes, *stop.looking)
        yield from ((one, other) for one in seen for other in seen if one != other)
        yield from ((one, stop.reject) for one in seen)


def _moves_back(course: Course) -> Iterator[tuple[int, int]]:
    """Where an item may begin again: at a step or a status of the course, from wherever nothing works on it."""
    stops = course.stops
    closed = {course.failed, course.dead, *course.ends, *(stop.reject for stop in stops if stop.reject)}
    closed |= {code for code in course.names if code not in course.open}
    for index, stop in enumerate(stops):
        if stop.kind == "review" or (stop.kind == "status" and stop is stops[-1]):
            continue
        target = stop.codes[0]
        for later in stops[index:]:
            resting = (later.codes[0], later.codes[-1]) if later.kind == "step" else (*later.codes, *later.looking)
            yield from ((code, target) for code in resting if code != target)
        yield from ((code, target) for code in closed if code != target)


_pipelines = msgspec.json.Decoder(Pipeline)


def decode(document: bytes, version: int) -> Course:
    """A pipeline as it was saved."""
    return Course(_pipelines.decode(document), version)
