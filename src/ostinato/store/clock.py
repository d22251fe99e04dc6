"""The time of an SQLite file: that of the machine since it was started, whoever sets its clock meanwhile.

All processes that have the file open go by the same clock. It runs with the time since the machine was started, which
is the same for all of them and cannot be set, so that a sleep, a lease and a deadline take as long as they should when
the wall clock jumps. The file notes where that clock stood, and once the machine has been started anew it begins at the
wall clock again. When the wall clock is set by more than a second, the file's clock follows a little faster or slower.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import time
import weakref
from typing import NamedTuple

SLEW = 50_000
"""By so many millionths it runs faster or slower to follow a wall clock that was set: an hour takes twenty."""
NOTICED = 1_000_000
"""Microseconds between the two that are worth following."""
CLOSE = 100_000

log = logging.getLogger("ostinato")


class Line(NamedTuple):
    """When it was `at` (microseconds since the epoch) `since` (microseconds since the machine was started)."""

    since: int
    at: int
    faster: int
    """By how many millionths it runs faster than time."""


def wall() -> int:
    """The clock of the machine, which can be set."""
    return time.time_ns() // 1000


_SINCE_START = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC if hasattr(time, "CLOCK_MONOTONIC") else None)


def elapsed() -> int:
    """Since the machine was started, also while it was suspended."""
    return (time.monotonic_ns() if _SINCE_START is None else time.clock_gettime_ns(_SINCE_START)) // 1000


@functools.cache
def start() -> str | None:
    """Which start of which machine this is, for processes that count time from the same moment; None if that cannot be
    told."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
    except OSError:
        return None
    with contextlib.suppress(OSError):  # a container may count from another moment
        boot += f" {os.readlink('/proc/self/ns/time')}"
    return boot


class Clock:
    """The clock of one file, for all connections of this process."""

    def __init__(self) -> None:
        self.line = Line(elapsed(), wall(), 0)

    def now(self) -> int:
        line = self.line
        passed = elapsed() - line.since
        return line.at + passed + passed * line.faster // 1_000_000

    def corrected(self) -> Line | None:
        """How it goes on from now on to follow the wall clock; None if it goes on as it does."""
        passed = elapsed()
        now, faster = self.now(), self.line.faster
        ahead = wall() - now
        if ahead * faster > 0:  # it is under way
            wanted = faster if abs(ahead) > CLOSE else 0
        else:
            wanted = 0 if abs(ahead) < NOTICED else SLEW if ahead > 0 else -SLEW
        if wanted == faster:
            return None
        if wanted:
            log.warning(
                "the clock of this machine was set, and is %+.1f s from that of the database, which follows it "
                "by %d %%: sleeps, leases and deadlines take as long as they should",
                ahead / 1e6,
                SLEW // 10_000,
            )
        return Line(passed, now, wanted)


_clocks: weakref.WeakValueDictionary[str, Clock] = weakref.WeakValueDictionary()


def of_file(path: str) -> Clock:
    """The clock that all connections of this process to the file share."""
    place = os.path.realpath(path)
    found = _clocks.get(place)
    if found is None:
        found = _clocks[place] = Clock()
    return found
