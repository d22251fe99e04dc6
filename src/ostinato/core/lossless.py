"""What comes back from JSON as something else is found here, and named with its place and the way to write it.

Only values that do not come back equal are looked at: those that are fine never get here.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import uuid
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from ostinato import errors

_FIXES: tuple[tuple[type, str, str], ...] = (
    (datetime.datetime, "a datetime", "give it as text, by isoformat()"),
    (datetime.date, "a date", "give it as text, by isoformat()"),
    (datetime.time, "a time", "give it as text, by isoformat()"),
    (datetime.timedelta, "a duration", "give it as a number, by total_seconds()"),
    (decimal.Decimal, "a Decimal", "give it as text, by str(), or as a number"),
    (uuid.UUID, "a UUID", "give it as text, by str()"),
    (bytes, "bytes", "give them as text, by decode() or base64"),
    (bytearray, "bytes", "give them as text, by decode() or base64"),
    (memoryview, "bytes", "give them as text, by decode() or base64"),
    (set, "a set", "give it as a list, by sorted()"),
    (frozenset, "a set", "give it as a list, by sorted()"),
)
_PLAIN = (str, int, type(None), msgspec.Raw)


def check(value: Any, what: str) -> None:
    """Refuse what would come back as something else. Tuples may: they are lists; and objects with fields, and what
    stands for a value: they are what they are made of."""
    stack: list[tuple[Any, str]] = [(value, "")]
    while stack:
        item, at = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                raise errors.InvalidPayload(
                    f"{_named(what, at)} is a number that JSON cannot say (NaN or infinity): use null or a string"
                )
        elif not isinstance(item, _PLAIN):
            _refuse(item, what, at)
            stack += _inside(item, what, at)


def _refuse(item: Any, what: str, at: str) -> None:
    for kind, name, fix in _FIXES:
        if isinstance(item, kind):
            raise errors.InvalidPayload(f"{_named(what, at)} is {name}, which JSON cannot say: {fix}")


def _inside(item: Any, what: str, at: str) -> Iterator[tuple[Any, str]]:
    if isinstance(item, dict):
        yield from _items(cast("dict[Any, Any]", item), what, at)
    elif isinstance(item, (list, tuple)):
        for number, one in enumerate(cast("list[Any]", item)):
            yield one, f"{at}[{number}]"
    elif isinstance(item, enum.Enum):
        yield item.value, at
    else:
        for name in _fields(item):
            yield getattr(item, name, None), _join(at, name)


def _items(item: dict[Any, Any], what: str, at: str) -> Iterator[tuple[Any, str]]:
    """Keys that are numbers become text, which another key may be already."""
    known: dict[str, Any] = {}
    for key, one in item.items():
        plain = key.value if isinstance(key, enum.Enum) else key
        _refuse(plain, f"a key of {_named(what, at)}", "")
        text = str(plain)
        if text in known:
            raise errors.InvalidPayload(
                f"{_named(what, at)} has the keys {known[text]!r} and {key!r}, which are the same in JSON: rename one"
            )
        known[text] = key
        yield one, _join(at, text)


def _fields(item: object) -> list[str]:
    kind: Any = item.__class__
    if isinstance(item, msgspec.Struct):
        return list(item.__struct_fields__)
    if dataclasses.is_dataclass(item):
        return [field.name for field in dataclasses.fields(item)]
    return [field.name for field in getattr(kind, "__attrs_attrs__", ())]


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _named(what: str, at: str) -> str:
    return f"{what}, at {at[:200]}," if at else what
