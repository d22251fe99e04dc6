"""Which saved results: filters, checked when they are made, and the fields that can be asked for."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypedDict, TypeGuard, Unpack, cast

import msgspec

from ostinato import errors
from ostinato.core import cursors, documents, filters

MOST_FIELDS = 64
"""Fields of a result that can be asked for."""
MOST_ASKED = 8
LONGEST_KEY = 128
LONGEST_VALUE = 256

_END = 2**62
_Number = Annotated[int, msgspec.Meta(ge=0, le=_END)]
Place = tuple[_Number, _Number]
"""(created_at, number)"""


class ResultFilter(msgspec.Struct, frozen=True, kw_only=True):
    """All that is given must match. Times are microseconds; `until` is no longer part of the range."""

    domain: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    since: int = 0
    until: int = _END

    def place(self, cursor: str | None) -> Place:
        """Where to begin: everything that is listed comes before it."""
        end = (self.until, 0)
        return end if cursor is None else min(end, cursors.read(cursor, Place))


class ResultsWanted(TypedDict, total=False):
    """Filters on saved results; all that are given must match."""

    domain: str | None
    fields: Mapping[str, Any] | tuple[tuple[str, str], ...] | None
    """Values of top-level fields. `3` and `"3"` are the same, and so are `true` and `"true"`."""
    since: datetime.datetime | None
    until: datetime.datetime | None
    """No longer part of the range."""


def result_filter(**wanted: Unpack[ResultsWanted]) -> ResultFilter:
    filters.refuse_unknown(wanted.keys(), ResultsWanted.__annotations__)
    domain, given = wanted.get("domain"), wanted.get("fields") or ()
    fields = given if _are_pairs(given) else tuple(documents.as_object(given, "fields").items())
    if domain is not None:
        documents.check_text(domain, "domain", LONGEST_KEY)
    if len(fields) > MOST_ASKED:
        raise errors.InvalidInput(f"at most {MOST_ASKED} fields can be asked for at once", field="fields")
    asked: list[tuple[str, str]] = []
    for key, value in fields:
        text = _value(value)
        if text is None or not key:
            raise errors.InvalidInput(
                f"fields.{documents.short_text(key)} must be a text, a number, true or false, of at most "
                f"{LONGEST_VALUE} characters",
                field="fields",
            )
        asked.append((key, text))
    since = filters.micros(wanted.get("since"), "since")
    until = filters.micros(wanted.get("until"), "until")
    return ResultFilter(
        domain=domain,
        fields=tuple(dict.fromkeys(asked)),
        since=0 if since is None else max(0, since),
        until=_END if until is None else max(0, min(until, _END)),
    )


def _are_pairs(given: Any) -> TypeGuard[tuple[tuple[str, str], ...]]:
    if not isinstance(given, tuple):
        return False
    return all(isinstance(pair, tuple) and len(pair) == 2 for pair in cast("tuple[Any, ...]", given))  # pyright: ignore[reportUnknownArgumentType]


def read_fields(given: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Fields as people write them: `key=value`."""
    fields: list[tuple[str, str]] = []
    for text in given:
        key, separator, value = text.partition("=")
        if not key or not separator:
            raise errors.InvalidInput(f"a field is asked for as key=value, not {documents.short(text)}", field="field")
        fields.append((key, value))
    return tuple(fields)


def fields_of(document: Any) -> dict[str, str]:
    """The top-level fields that results can be found by: short texts, numbers, true and false."""
    if not isinstance(document, Mapping):
        return {}
    found: dict[str, str] = {}
    for key, value in document.items():  # pyright: ignore[reportUnknownVariableType]
        text = _value(value)
        if isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and "\0" not in key and text is not None:
            found[key] = text
        if len(found) == MOST_FIELDS:
            break
    return found


def _value(value: Any) -> str | None:
    """As text, so that what is typed in a URL is found; None if it is nothing to be asked for."""
    if not isinstance(value, (str, int, float)):
        return None
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST_VALUE and "\0" not in text else None
