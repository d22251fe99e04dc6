"""Times for people: moments in UTC, and how long something takes in words."""

from __future__ import annotations

import datetime


def moment(micros: int) -> datetime.datetime:
    """The moment that the database keeps as microseconds since the epoch."""
    return datetime.datetime.fromtimestamp(micros / 1e6, datetime.UTC)


def text(micros: int) -> str:
    """As other systems write it: `2026-11-16T17:00:00.000Z`."""
    return moment(micros).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration(seconds: float) -> str:
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    for size, name, part, part_name in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = int(seconds % size // part)
            return f"{int(seconds // size)} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{int(seconds)} s"
