"""What callers give in Python, where no schema stands before it: refused here by name, before it gets anywhere.

A database may refuse what is of another type than it expects, or take it for something else, and it knows no names.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ostinato import errors
from ostinato.core import documents

LARGEST = 2**63 - 1
"""What every database can count to."""


def text(value: Any, field: str, longest: int | None = None) -> str:
    """A text that can be stored and looked for."""
    if not isinstance(value, str) or "\0" in value or not is_unicode(value):
        raise invalid(field, "a text without NUL or lone surrogates", value)
    if longest is not None and len(value) > longest:
        raise invalid(field, f"a text of at most {longest} characters", value)
    return value


def text_or_none(value: Any, field: str) -> str | None:
    return None if value is None else text(value, field)


def number(value: Any, field: str, least: int = -LARGEST) -> int:
    """A whole number."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= LARGEST:
        raise invalid(field, f"a whole number from {least} on" if least > -LARGEST else "a whole number", value)
    return value


def items(value: Any, field: str, what: str) -> list[Any]:
    """What stands in a list, or in whatever else can be gone through; a text or an object is not meant as one."""
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        raise invalid(field, f"a list of {what}", cast("Any", value))
    return list(cast("Iterable[Any]", value))


def texts(value: Any, field: str, what: str) -> list[str]:
    return [text(item, f"{field}[{index}]") for index, item in enumerate(items(value, field, what))]


def mapping(value: Any, field: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise invalid(field, "an object with names and values", value)
    return dict(cast("Mapping[str, Any]", value))


def moment(value: Any, field: str) -> datetime.datetime:
    """A moment, wherever it is read."""
    if not isinstance(value, datetime.datetime):
        raise invalid(field, "a datetime with a time zone", value)
    if value.tzinfo is None:
        raise errors.InvalidInput(f"{field} has no time zone: say which, for example with +00:00", field=field)
    return value


def day(value: Any, field: str) -> datetime.date:
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise invalid(field, "a date", value)
    return value


def invalid(field: str, wanted: str, given: Any) -> errors.InvalidInput:
    return errors.InvalidInput(f"{field} must be {wanted}, not {documents.short(given)}", field=field)


def is_unicode(value: str) -> bool:
    """Whether it has no lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
