"""Cursors: the place after which a list goes on, as text that callers keep and hand back but do not read."""

from __future__ import annotations

import base64
from typing import Any, TypeVar

import msgspec

from ostinato import errors

T = TypeVar("T")

_NUL = b"\\u0000"
"""As JSON writes it. No id has it, and not every database can be asked for one that does."""


def write(place: tuple[Any, ...]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def read(cursor: str, kind: type[T]) -> T:
    """The place, if it is one of this kind of list."""
    try:
        data = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
        if _NUL in data:
            raise ValueError
        return msgspec.json.decode(data, type=kind)
    except (ValueError, AttributeError, TypeError, msgspec.MsgspecError):
        raise errors.InvalidInput("this is not a cursor of this list: start without one", field="cursor") from None
