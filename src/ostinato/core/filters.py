"""What to list: filters on jobs and on dead letters, checked when they are made, and pages of what was found."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Annotated, Any, TypedDict, TypeVar, Unpack

import msgspec

from ostinato import errors
from ostinato.core import cursors, states

MOST = 500
"""The longest page."""

T = TypeVar("T")
_END = 2**62
_Time = Annotated[int, msgspec.Meta(ge=0, le=_END)]
Place = tuple[_Time, str]
"""(created_at, job_id)"""
LetterPlace = tuple[_Time, str, str]
"""(failed_at, job_id, task_id)"""


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

    def place(self, cursor: str | None) -> Place:
        """Where to begin: everything that is listed comes before it."""
        end = (_END if self.created_until is None else self.created_until, "")
        return end if cursor is None else min(end, cursors.read(cursor, Place))


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
    _refuse_unknown(wanted.keys(), JobsWanted.__annotations__)
    state, tag = wanted.get("state"), wanted.get("tag")
    chosen = () if state is None else (state,) if isinstance(state, str) else tuple(dict.fromkeys(state))
    for one in chosen:
        if one not in states.JOB_STATES:
            raise errors.InvalidInput(
                f"state must be one of {', '.join(states.JOB_STATES)}, not {one!r}", field="state"
            )
    return JobFilter(
        states=chosen,
        name=wanted.get("name"),
        tag=None if tag is None else read_tag(tag),
        correlation_id=wanted.get("correlation_id"),
        request_id=wanted.get("request_id"),
        created_from=micros(wanted.get("created_from"), "created_from"),
        created_until=micros(wanted.get("created_until"), "created_until"),
    )


def dead_letter_filter(**wanted: Unpack[DeadLettersWanted]) -> DeadLetterFilter:
    _refuse_unknown(wanted.keys(), DeadLettersWanted.__annotations__)
    return DeadLetterFilter(
        name=wanted.get("name"),
        job_id=wanted.get("job_id"),
        error_type=wanted.get("error_type"),
        failed_from=micros(wanted.get("failed_from"), "failed_from"),
        failed_until=micros(wanted.get("failed_until"), "failed_until"),
    )


def _refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """A filter that was misspelt and left out would select more than was meant."""
    for name in sorted(set(given) - set(known)):
        raise errors.InvalidInput(f"there is no filter {name!r}: use {', '.join(known)}", field=name)


def read_tag(text: str) -> tuple[str, str | None]:
    key, separator, value = text.partition("=")
    if not key:
        raise errors.InvalidInput("tag must be a key, or key=value", field="tag")
    return key, value if separator else None


def micros(at: datetime.datetime | None, field: str) -> int | None:
    if at is None:
        return None
    if at.tzinfo is None:
        raise errors.InvalidInput(f"{field} has no time zone: say which, for example with +00:00", field=field)
    return round((at - _EPOCH) / _MICROSECOND)


def check_most(most: Any) -> int:
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MOST:
        raise errors.InvalidInput(f"a page has 1 to {MOST} entries, not {most!r}", field="most")
    return most


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
