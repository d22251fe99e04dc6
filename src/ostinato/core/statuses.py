"""What a job may say of itself: a short status and a sentence."""

from __future__ import annotations

import datetime
from typing import Any

from ostinato import errors
from ostinato.core import arguments

LONGEST_STATUS = 200
LONGEST_MESSAGE = 4096


def check(status: Any, message: Any) -> tuple[str, str | None]:
    """Both, if they can be published."""
    _check_text(status, "status", LONGEST_STATUS)
    if not status:
        raise errors.InvalidInput("status must not be empty", field="status")
    if message is not None:
        _check_text(message, "message", LONGEST_MESSAGE)
    return status, message


def written(at: datetime.datetime) -> str:
    return arguments.moment(at, "timestamp").isoformat()


def _check_text(text: Any, field: str, longest: int) -> None:
    if not isinstance(text, str) or len(text) > longest:
        raise errors.InvalidInput(f"{field} must be text of at most {longest:,} characters", field=field)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise errors.InvalidInput(f"{field} has a lone surrogate, which is not valid Unicode", field=field) from None
