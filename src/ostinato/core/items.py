"""Items of pipelines, as a transaction sees them: how their steps stand, and the moves that follow from that."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from ostinato.core import budgets, codec, courses, states
from ostinato.core.columns import Changes, NotStored, Payload

REJECTED_TYPE: Final = "Rejected"
"""What the failure of an approval is called when somebody has rejected it."""


class Stand(msgspec.Struct, array_like=True, gc=False):
    """How a step stands; a number is the status in which it has ended its item."""

    state: str | int
    attempt: int = 0
    retry_at: int | None = None


CANCELLED: Final = "cancelled"
TIMED_OUT: Final = "timed_out"
ROLLED_BACK: Final = "rolled_back"
"""What may have been done to an item, in its history."""

OMITTED_SINCE: Final = "its condition is false"

BUDGET: Final = "$budget"
"""Stands among the steps of an item while somebody is asked whether it may cost more; `attempt` is the question's."""
GIVEN_UP: Final = "$given-up"
"""Stands among the steps of an item that was rolled back, until a new run begins."""
_ASKED: Final = b'"$budget":'

_stands = msgspec.json.Decoder(dict[str, Stand])


class Item(msgspec.Struct, gc=False):
    """One item, without its payload."""

    item_id: str
    pipeline: str
    version: Changes[int]
    status: Changes[int]
    open: Changes[bool]
    job_id: Changes[str | None]
    """The job of its newest run; None until the first."""
    run: Changes[int]
    steps: Changes[bytes]
    step: Changes[str | None]
    """What it is at, or waits for."""
    attempt: Changes[int]
    retry_at: Changes[int | None]
    failures: Changes[int]
    """Failed attempts, over all runs."""
    error_type: Changes[str | None]
    entered_at: int
    status_at: Changes[int]
    submitted_by: str | None
    reviewed_by: Changes[str | None]
    reviewed_at: Changes[int | None]
    digest: Annotated[bytes, Payload("item_digest")]
    via: Changes[str | None] = None
    """The moves that led to its status when it was put there; JSON, for the trigger that records them."""
    was_status: NotStored[int] = courses.NOWHERE
    was_seen: NotStored[tuple[int, int, bytes, int | None]] = (0, 0, b"", None)
    """Its version, run, steps and when it was reviewed, as the database has them."""
    was_open: NotStored[bool] = False
    was_retrying: NotStored[bool] = False
    was_question: NotStored[str | None] = None
    """The job in which people are asked about its budget, as the database has it."""
    stands: NotStored[dict[str, Stand] | None] = None
    was: NotStored[dict[str, str | int] | None] = None
    """How the steps stood when the transaction began; None if none of them has moved."""
    made: NotStored[list[dict[str, Any]]] = []
    """The moves of this transaction."""
    begins_at: NotStored[int | None] = None
    """The status that a new run begins at."""
    over_budget: NotStored[budgets.Exhausted | None] = None
    """The budget of its run, if that is what a step waits for."""
    by: NotStored[str | None] = None
    why: NotStored[str | None] = None
    """Who has moved it in this transaction, and why."""
    failed_step: NotStored[str | None] = None
    """The step that `why` is about, if it is how one has failed."""
    how: NotStored[str | None] = None
    """What was done to it, where that is no step of its course."""
    told: NotStored[str | None] = None
    """Why, where nothing that people wrote may be in its history: events may be read by fewer."""

    def note(self) -> None:
        """From here on, what changes is a change."""
        self.was_status = self.status
        self.was_seen = (self.version, self.run, self.steps, self.reviewed_at)
        self.was_open, self.was_retrying = self.open, self.retry_at is not None
        self.was_question = self.question()
        self.was = None
        self.made = []
        self.begins_at = self.by = self.why = self.how = self.told = self.over_budget = None
        self.failed_step = None

    def standing(self) -> dict[str, Stand]:
        if self.stands is None:
            self.stands = _stands.decode(self.steps)
        return self.stands

    def has_ended(self, step: str) -> bool:
        """Nothing more comes of it in this run, and it was not taken back."""
        known = self.standing().get(step)
        return known is not None and (
            known.state in states.TASK_ENDED or known.state in (courses.DEAD, courses.OMITTED)
        )

    def is_rolled_back(self) -> bool:
        """Somebody has given it up, and not begun it again since."""
        return GIVEN_UP in self.standing()

    def roll_back(self, course: courses.Course) -> None:
        """It is given up for good: until somebody begins it again, nothing that its run is made to do concerns it."""
        self.give_up(course)
        self.standing()[GIVEN_UP] = Stand(ROLLED_BACK)
        self.steps = codec.encode_own(self.standing())

    def take_back(self, step: str) -> None:
        """What this step did is taken back."""
        self.standing()[step] = Stand(courses.UNDONE, self.standing()[step].attempt)
        self.steps = codec.encode_own(self.standing())

    def ask_for_budget(self, number: int) -> None:
        """Somebody is asked whether it may cost more; and is not asked again before that is decided."""
        self.standing()[BUDGET] = Stand(states.WAITING, number)
        self.steps = codec.encode_own(self.standing())

    def question(self) -> str | None:
        """The job in which somebody is asked whether it may cost more, by its steps as they are written."""
        if _ASKED not in self.steps:
            return None
        return f"{self.job_id}.budget-{self.standing()[BUDGET].attempt}"

    def give_up(self, course: courses.Course) -> None:
        """Nothing more comes of its run, and it waits for nothing."""
        open_ = (states.PENDING, states.PROCESSING, states.WAITING)
        self.stands = {name: known for name, known in self.standing().items() if known.state not in open_}
        self._place(course, {name: known.state for name, known in self.standing().items()})

    def may_lack(self, course: courses.Course, step: str) -> bool:
        """There is no result of this step, and none is needed to go on after it."""
        return course.is_optional(step) or self.is_(states.SKIPPED, step) or self.is_(courses.OMITTED, step)

    def is_(self, state: str, step: str) -> bool:
        known = self.standing().get(step)
        return known is not None and known.state == state

    def begin_run(self, job_id: str, begins_at: int) -> None:
        """A new run: what the steps of the last one did is history."""
        if self.was is None:
            self.was = {}
        self.job_id, self.begins_at = job_id, begins_at
        self.run += 1
        self.stands = {}

    def stand(self, step: str, state: str | int, attempt: int, retry_at: int | None = None) -> None:
        """A step of its run stands otherwise from now on."""
        standing = self.standing()
        if self.was is None:
            self.was = {name: known.state for name, known in standing.items()}
        if state == states.BLOCKED:
            standing.pop(step, None)
        else:
            standing[step] = Stand(state, attempt, retry_at)

    def fail_attempt(self, step: str, kind: str, retry_at: int | None) -> None:
        """An attempt has failed, and another follows."""
        standing = self.standing()
        standing[step] = Stand(standing[step].state, standing[step].attempt, retry_at)
        self.failures += 1
        self.error_type = kind
        self.why, self.failed_step = f"{step}: {kind}", step

    def fail(self, step: str, kind: str, *, review: bool, helpless: bool) -> None:
        """A step has failed for good: because no attempt can help, or because all are used up."""
        rejected = review and kind == REJECTED_TYPE
        state = courses.REJECTED if rejected else states.FAILED if helpless else courses.DEAD
        self.stand(step, state, self.standing()[step].attempt)
        if not rejected:
            self.failures += 1
            self.error_type = kind
            self.why, self.failed_step = f"{step}: {kind}", step

    def follow(self, course: courses.Course, now: int, *, given_up: bool = False) -> list[dict[str, Any]]:
        """Go where the steps have got to; the answer is what that adds to the history."""
        standing = self.standing()
        how = {name: known.state for name, known in standing.items()}
        walked = courses.walk(course, how, given_up=given_up)
        remarks: list[dict[str, Any]] = []
        if self.begins_at is not None:
            wanted = walked[walked.index(self.begins_at) :] if self.begins_at in walked else [self.begins_at]
            way = wanted[1:] if self.status == self.begins_at else courses.legal_tail(course, self.status, wanted)
        else:
            remarks = self._note_omitted(now)
            before = courses.walk(course, self.was or {})
            way = [] if self._was_put(course, before) else courses.path(course, self.status, before, walked)
        self._place(course, how)
        return [*remarks, *self.go(course, way, now)]

    def _note_omitted(self, now: int) -> list[dict[str, Any]]:
        """Steps that are left out pass no status: the history says so of where the item is."""
        was = self.was or {}
        left_out = [name for name, known in self.standing().items() if known.state == courses.OMITTED]
        return [
            self.remark(now, step=name, how=states.SKIPPED, why=OMITTED_SINCE)
            for name in left_out
            if was.get(name) != courses.OMITTED
        ]

    def remark(self, now: int, **about: str | None) -> dict[str, Any]:
        """An entry in its history that moves it nowhere."""
        said = {name: value for name, value in about.items() if value is not None}
        made = {"from": self.status, "to": self.status, "at": now, **said}
        self.made = [*self.made, made]
        self.via = codec.encode_own(self.made).decode()
        return made

    def _was_put(self, course: courses.Course, walked: list[int]) -> bool:
        """Somebody has put it to an end that its steps have not led to: it stays there, whatever becomes of them."""
        ends = self.status not in course.open and self.status not in (course.failed, course.dead)
        return ends and self.status not in walked[-1:]

    def go(self, course: courses.Course, way: list[int], now: int) -> list[dict[str, Any]]:
        """Make these moves, which are legal."""
        made: list[dict[str, Any]] = []
        at = self.status
        for code in way:
            made.append({"from": at, "to": code, "at": now, **self._about(course, code)})
            at = code
        if made:
            said = (("by", self.by), ("why", self.why), ("how", self.how))
            told_of = self._left_failed(course, made) or made[-1]
            told_of |= {name: value for name, value in said if value is not None}
            self.status, self.status_at, self.open = at, now, at in course.open
            self.made = [*self.made, *made]
            self.via = codec.encode_own(self.made).decode()
        return made

    def _left_failed(self, course: courses.Course, made: list[dict[str, Any]]) -> dict[str, Any] | None:
        """The move out of the step that has failed: it is followed by others if the item can do without that step."""
        failed = next((stop for stop in course.stops if stop.name == self.failed_step), None)
        return None if failed is None else next((move for move in made if move["from"] in failed.codes[1:2]), None)

    def _place(self, course: courses.Course, how: Mapping[str, str | int]) -> None:
        standing = self.standing()
        self.steps = codec.encode_own(standing)
        at = next((stop.name for stop in course.stops if stop.kind != "status" and not _is_past(stop, how)), None)
        self.step = at
        self.attempt = standing[at].attempt if at in standing else 0
        self.retry_at = min((s.retry_at for s in standing.values() if s.retry_at is not None), default=None)

    def _about(self, course: courses.Course, code: int) -> dict[str, Any]:
        step = next((stop.name for stop in course.stops if stop.kind != "status" and code in stop.codes), None)
        known = self.standing().get(step or self.step or "")
        about: dict[str, Any] = {}
        if step is not None:
            about["step"] = step
        if known is not None and known.attempt:
            about["attempt"] = known.attempt
        return about


def _is_past(stop: courses.Stop, how: Mapping[str, str | int]) -> bool:
    return stop.name in how and courses.is_done(stop, how[stop.name])


def digest(payload: bytes) -> bytes:
    """By which an item that is entered again is known, in letters: it is encrypted like a payload, where those are."""
    return hashlib.sha256(payload).hexdigest().encode()


def with_payload(known: bytes, payload: bytes) -> bytes:
    """The digest of an item whose payload is replaced: it stays known by what was entered, and has the new one beside
    it, by which the audit knows the payload."""
    return known if known.startswith(codec.SEAL_MARK) else entered(known) + b":" + digest(payload)


def entered(known: bytes) -> bytes:
    """The part of it that is of the payload as it was entered."""
    return known.partition(b":")[0]


def is_intact(known: bytes, payload: bytes, *, proven: bool = False) -> bool:
    """Whether a payload is the one that was recorded. Earlier versions said nothing of those that were replaced: one
    that was encrypted is `proven` to be of this item."""
    first, replaced, last = known.partition(b":")
    expected = last if replaced or proven else first
    return not expected or expected == digest(payload)


def read(row: tuple[Any, ...]) -> Item:
    item = Item(*row)
    item.note()
    return item
