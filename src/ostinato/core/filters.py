"""What to list: filters on jobs, executions and dead letters, and pages of what was found."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypedDict, TypeVar, Unpack

import msgspec

from ostinato import errors
from ostinato.core import arguments, cursors, documents, executions, states
from ostinato.core.arguments import text_or_none

MOST = 500
"""The longest page."""

T = TypeVar("T")
_END = 2**62
_Time = Annotated[int, msgspec.Meta(ge=0, le=_END)]
Place = tuple[_Time, str]
"""(created_at, job_id)"""
LetterPlace = tuple[_Time, str, str]
"""(failed_at, job_id, task_id)"""
ApprovalPlace = tuple[_Time, str, str, str]
"""(requested_at, job_id, task_id, key)"""
OWN, OUTSIDE = 0, 1
ExecutionPlace = tuple[_Time, Literal[0, 1], str]
"""(start, own or outside, job id or ARN): the order of the index, in which no two executions have the same place."""
NEWEST, OLDEST = "newest", "oldest"
ORDERS = (NEWEST, OLDEST)
BY = ("status", "day", "hour")
"""What executions can be counted by. Days and hours are those of UTC."""


class Page(list[T]):
    """A part of a list, and where it goes on: no cursor, no more."""

    def __init__(self, items: Iterable[T] = (), cursor: str | None = None) -> None:
        super().__init__(items)
        self.cursor = cursor


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """All that is given must match. Times are microseconds; `created_until` is no longer part of the range."""

    states: tuple[str, ...] = ()
    """Any of them; none means all."""
    name: str | None = None
    tag: tuple[str, str | None] | None = None
    """A key, and the value if that is to match too."""
    correlation_id: str | None = None
    request_id: str | None = None
    created_from: int | None = None
    created_until: int | None = None
    include_engine: bool = True
    """The engine's own jobs too: those of rules and gates, and questions about budgets."""

    def place(self, cursor: str | None) -> Place:
        """Where to begin: everything that is listed comes before it."""
        end = (_END if self.created_until is None else self.created_until, "")
        return end if cursor is None else min(end, cursors.read(cursor, Place))


class ExecutionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """All that is given must match. Times are microseconds; `started_until` is no longer part of the range."""

    agent_name: str | None = None
    statuses: tuple[str, ...] = ()
    """Any of them; none means all."""
    tag: tuple[str, str | None] | None = None
    correlation_id: str | None = None
    started_from: int | None = None
    started_until: int | None = None
    order: str = NEWEST
    include_engine: bool = False
    """The engine's own jobs too: those of rules and gates, and questions about budgets."""

    @property
    def users_only(self) -> bool:
        """Who names an agent wants it, whoever entered it."""
        return not self.include_engine and self.agent_name is None

    def place(self, cursor: str | None) -> ExecutionPlace | None:
        return None if cursor is None else cursors.read(cursor, ExecutionPlace)

    def bounds(self, place: ExecutionPlace | None, kind: int) -> tuple[Place, Place]:
        """Between which two places of one kind of executions, themselves left out, to look."""
        low: Place = (self.started_from or 0, "")
        high: Place = (_END if self.started_until is None else self.started_until, "")
        if place is not None:
            at, of_kind, one = place
            # What is of the other kind comes before all of ours of that moment, or after them.
            side = (at, one) if kind == of_kind else (at + 1, "") if kind < of_kind else (at, "")
            low, high = (low, min(high, side)) if self.order == NEWEST else (max(low, side), high)
        return low, high


class DeadLetterFilter(msgspec.Struct, frozen=True, kw_only=True):
    """All that is given must match. Times are microseconds; `failed_until` is no longer part of the range."""

    name: str | None = None
    """Of the function."""
    job_id: str | None = None
    error_type: str | None = None
    failed_from: int | None = None
    failed_until: int | None = None

    def place(self, cursor: str | None) -> LetterPlace:
        end = (_END if self.failed_until is None else self.failed_until, "", "")
        return end if cursor is None else min(end, cursors.read(cursor, LetterPlace))


class ApprovalFilter(msgspec.Struct, frozen=True, kw_only=True):
    """All that is given must match."""

    state: str | None = None
    job_id: str | None = None
    task_id: str | None = None
    """Of that job."""
    approver: tuple[str, str | None] | None = None
    """Somebody who may decide: by the name that history has for them, and perhaps another one."""

    def place(self, cursor: str | None) -> ApprovalPlace:
        """Where to begin: everything that is listed comes after it."""
        return (0, "", "", "") if cursor is None else cursors.read(cursor, ApprovalPlace)


class JobsWanted(TypedDict, total=False):
    """Filters on jobs; all that are given must match."""

    state: str | Iterable[str] | None
    name: str | None
    tag: str | None
    """A key, or `key=value`."""
    correlation_id: str | None
    request_id: str | None
    created_from: datetime.datetime | None
    created_until: datetime.datetime | None
    """No longer part of the range."""
    include_engine: bool | None
    """The engine's own jobs too: those of rules and gates, and questions about budgets. Without a word, yes."""


class ExecutionsWanted(TypedDict, total=False):
    """Filters on executions; all that are given must match."""

    agent_name: str | None
    status: str | Iterable[str] | None
    tag: str | None
    """A key, or `key=value`."""
    correlation_id: str | None
    started_from: datetime.datetime | None
    started_until: datetime.datetime | None
    """No longer part of the range."""
    include_engine: bool | None
    """The same. Without a word, only those of an agent that is named."""


class DeadLettersWanted(TypedDict, total=False):
    """Filters on dead letters; all that are given must match."""

    name: str | None
    """Of the function."""
    job_id: str | None
    error_type: str | None
    failed_from: datetime.datetime | None
    failed_until: datetime.datetime | None
    """No longer part of the range."""


def job_filter(**wanted: Unpack[JobsWanted]) -> JobFilter:
    """A filter as people write it: one state or several, a tag as `key` or `key=value`, times as datetimes."""
    refuse_unknown(wanted.keys(), JobsWanted.__annotations__)
    tag = wanted.get("tag")
    return JobFilter(
        states=_some_of(wanted.get("state"), states.JOB_STATES, "state"),
        name=text_or_none(wanted.get("name"), "name"),
        tag=None if tag is None else read_tag(tag),
        correlation_id=text_or_none(wanted.get("correlation_id"), "correlation_id"),
        request_id=text_or_none(wanted.get("request_id"), "request_id"),
        created_from=micros(wanted.get("created_from"), "created_from"),
        created_until=micros(wanted.get("created_until"), "created_until"),
        include_engine=_flag(wanted.get("include_engine"), "include_engine", default=True),
    )


def execution_filter(*, order: str = NEWEST, **wanted: Unpack[ExecutionsWanted]) -> ExecutionFilter:
    refuse_unknown(wanted.keys(), ExecutionsWanted.__annotations__)
    tag = wanted.get("tag")
    return ExecutionFilter(
        agent_name=text_or_none(wanted.get("agent_name"), "agent_name"),
        statuses=_some_of(wanted.get("status"), executions.STATUSES, "status"),
        tag=None if tag is None else read_tag(tag),
        correlation_id=text_or_none(wanted.get("correlation_id"), "correlation_id"),
        started_from=micros(wanted.get("started_from"), "started_from"),
        started_until=micros(wanted.get("started_until"), "started_until"),
        order=one_of(order, ORDERS, "order"),
        include_engine=_flag(wanted.get("include_engine"), "include_engine", default=False),
    )


def dead_letter_filter(**wanted: Unpack[DeadLettersWanted]) -> DeadLetterFilter:
    refuse_unknown(wanted.keys(), DeadLettersWanted.__annotations__)
    return DeadLetterFilter(
        name=text_or_none(wanted.get("name"), "name"),
        job_id=text_or_none(wanted.get("job_id"), "job_id"),
        error_type=text_or_none(wanted.get("error_type"), "error_type"),
        failed_from=micros(wanted.get("failed_from"), "failed_from"),
        failed_until=micros(wanted.get("failed_until"), "failed_until"),
    )


def refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """A filter that was misspelt and left out would select more than was meant."""
    for name in sorted(set(given) - set(known)):
        raise errors.InvalidInput(f"there is no filter {name!r}: use {', '.join(known)}", field=name)


def _flag(given: Any, field: str, *, default: bool) -> bool:
    if given is not None and not isinstance(given, bool):
        raise arguments.invalid(field, "true or false", given)
    return default if given is None else given


def _some_of(given: str | Iterable[str] | None, known: Sequence[str], field: str) -> tuple[str, ...]:
    chosen = [] if given is None else [given] if isinstance(given, str) else arguments.items(given, field, "texts")
    return tuple(dict.fromkeys(one_of(one, known, field) for one in chosen))


def one_of(given: str, known: Sequence[str], field: str) -> str:
    if given not in known:
        raise arguments.invalid(field, f"one of {', '.join(known)}", given)
    return given


def read_tag(text: str) -> tuple[str, str | None]:
    key, separator, value = arguments.text(text, "tag").partition("=")
    if not key:
        raise errors.InvalidInput("tag must be a key, or key=value", field="tag")
    return key, value if separator else None


def micros(at: datetime.datetime | None, field: str) -> int | None:
    if at is None:
        return None
    return round((arguments.moment(at, field) - _EPOCH) / _MICROSECOND)


def check_most(most: Any) -> int:
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MOST:
        raise errors.InvalidInput(f"a page has 1 to {MOST} entries, not {documents.short(most)}", field="most")
    return most


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
