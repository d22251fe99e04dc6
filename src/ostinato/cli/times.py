"""Times on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime


def read(text: str | None, option: str) -> datetime.datetime | None:
    """A moment in ISO 8601; without a time zone it is in UTC."""
    import datetime

    from ostinato import errors

    if text is None:
        return None
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise errors.InvalidInput(
            f"{option} {text!r} is not a time: write it like 2026-11-16 or 2026-11-16T12:30:00Z", field=option
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)
