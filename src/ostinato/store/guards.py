"""What keeps other copies of SQLite in this process from taking a file's log away.

The locks of SQLite are locks of the process: when any descriptor of the file is closed, by Python's `sqlite3` or by a
program that reads the file to copy it, the kernel drops them all. Another copy then takes itself for the last one,
copies the log into the file and deletes it, while we go on writing into what is deleted. Locks of an open file
description are dropped only by us, and all copies see them: while we hold them, none is the last.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import threading
from typing import Final

HAS_LOCKS: Final = sys.platform == "linux" and sys.maxsize > 2**32
"""Elsewhere the layout of a lock is another, or there are none of this kind."""

if sys.platform == "linux":
    import fcntl

SHARED_BYTE: Final = 0x40000002
"""Of the file: who closes it as the last one locks this byte alone, and then deletes the log."""
WRITER_BYTE: Final = 120
"""Of the index of the log: locked by the one who writes."""
USED_BYTE: Final = 128
"""Of the index of the log: who finds it unlocked takes the index for one that a crash has left, and empties it."""
COMMITS: Final = (4, 8)
"""Of the index: how long the number is that every commit changes, and where it stands."""
_LOCK: Final = struct.Struct("hhqqi4x")
_WHO_WRITES: Final = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, WRITER_BYTE, 1, 0) if sys.platform == "linux" else b""

Identity = tuple[int, int]


class Guard:
    """The locks of this process on one file, for all who have it open here."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._users = 0
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._index = -1

    def hold(self) -> None:
        self._users += 1
        if not self._is_index(self._index):  # it was made anew since
            self._close_index()
            self._index = os.open(f"{self._path}-shm", os.O_RDWR | os.O_CLOEXEC)
        _lock(self._file, SHARED_BYTE, held=True)
        _lock(self._index, USED_BYTE, held=True)

    def leave(self) -> None:
        """Before the connections of one who had it open are closed: whoever is the last of all then tidies up."""
        self._users -= 1
        if not self._users:
            _lock(self._file, SHARED_BYTE, held=False)
            _lock(self._index, USED_BYTE, held=False)

    def close_unused(self) -> bool:
        """To close a descriptor would drop the locks of any connection that is left, and then there is a log."""
        if self._users or os.path.exists(f"{self._path}-wal"):
            return False
        os.close(self._file)
        self._close_index()
        return True

    def commits(self) -> bytes:
        return os.pread(self._index, *COMMITS)

    def writes_alone(self, commits: bytes) -> bool:
        """Whether nothing was committed since, and the lock of the writer is still this process's."""
        found = fcntl.fcntl(self._index, fcntl.F_OFD_GETLK, _WHO_WRITES)
        kind, _, _, _, pid = _LOCK.unpack(found)
        return kind == fcntl.F_WRLCK and pid == os.getpid() and self.commits() == commits

    def _is_index(self, descriptor: int) -> bool:
        return descriptor >= 0 and _of(os.fstat(descriptor)) == identity(f"{self._path}-shm")

    def _close_index(self) -> None:
        if self._index >= 0:
            os.close(self._index)
            self._index = -1


_guards: dict[Identity, Guard] = {}
_lock_of_guards = threading.Lock()


def hold(path: str) -> Guard | None:
    """Hold the locks of a file that is open, with its log. None where the system knows no such locks."""
    if not HAS_LOCKS:
        return None
    with _lock_of_guards:
        found = identity(path)
        if found is None:
            return None
        _close_unused()
        with contextlib.suppress(OSError):  # a file system without locks
            guard = _guards.get(found) or _guards.setdefault(found, Guard(path))
            guard.hold()
            return guard
        return None


def leave(guard: Guard) -> None:
    with _lock_of_guards:
        guard.leave()


def close_unused() -> None:
    """When connections were closed."""
    with _lock_of_guards:
        _close_unused()


def _close_unused() -> None:
    for key, guard in list(_guards.items()):
        if guard.close_unused():
            del _guards[key]


def _lock(descriptor: int, byte: int, *, held: bool) -> None:
    kind = fcntl.F_RDLCK if held else fcntl.F_UNLCK
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _LOCK.pack(kind, os.SEEK_SET, byte, 1, 0))


def identity(path: str) -> Identity | None:
    """Which file this is, whatever name it has by now."""
    try:
        return _of(os.stat(path))
    except OSError:  # it is not there any more, or nobody may look
        return None


def _of(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino
