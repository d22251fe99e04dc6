"""The processes that evaluate expressions: a few, started when they are needed and kept."""

from __future__ import annotations

import atexit
import collections
import contextlib
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any, BinaryIO, cast

from ostinato import errors
from ostinato.core import codec

MOST = 4
MOST_OF_ONE = 2
"""Of one tenant: others never wait for its runaway expressions while there are so few of them."""
GRACE = 0.5
"""Seconds beyond the bound of an evaluation: the process should have ended by itself, and has not."""
STARTING = 30.0
_LENGTH = struct.Struct(">I")
_KEPT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""What a Python needs of the environment. The rest, where secrets are, is not for expressions."""


class Ended(Exception):
    """The process ended before it answered: the evaluation took too long, or too much memory."""


class Process:
    def __init__(self) -> None:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        child = str(Path(__file__).with_name("child.py"))
        pipe = subprocess.PIPE
        try:
            # -P: what lies beside that file has names of the standard library.
            self._popen = subprocess.Popen(
                [sys.executable, "-P", child], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment
            )
        except OSError:
            raise errors.OstinatoError("no process could be started to evaluate the expression") from None
        try:
            nothing: dict[str, Any] = {"texts": [], "data": "null", "now": None, "seconds": 0.0, "bytes": 0}
            self.ask(codec.encode_own(nothing), STARTING)
        except Ended:
            raise errors.OstinatoError("the process that evaluates expressions does not start") from None

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def ask(self, body: bytes, seconds: float) -> dict[str, Any]:
        """Its answer; Ended if there is none within `seconds`, and the process is gone then."""
        timer = threading.Timer(seconds, self._popen.kill)
        timer.daemon = True
        timer.start()
        try:
            incoming, outgoing = cast("BinaryIO", self._popen.stdin), cast("BinaryIO", self._popen.stdout)
            incoming.write(_LENGTH.pack(len(body)) + body)
            incoming.flush()
            (length,) = _LENGTH.unpack(outgoing.read(_LENGTH.size))
            answer = outgoing.read(length)
            if len(answer) < length:
                raise EOFError
        except (OSError, EOFError, struct.error):
            self.end()
            raise Ended from None
        finally:
            timer.cancel()
        return codec.decode(answer)

    def end(self) -> None:
        self._popen.kill()
        for pipe in (self._popen.stdin, self._popen.stdout):
            with contextlib.suppress(OSError):  # what was not sent yet is of no use any more
                cast("BinaryIO", pipe).close()
        self._popen.wait()


class Turns:
    """Whose turn it is: one tenant's after the other's, however many of its threads wait."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._lock = threading.Lock()
        self._free = most
        self._most_of_one = most_of_one
        self._running: collections.Counter[str] = collections.Counter()
        self._waiting: collections.OrderedDict[str, collections.deque[threading.Event]] = collections.OrderedDict()

    @contextlib.contextmanager
    def turn(self, whose: str) -> Generator[None]:
        called = threading.Event()
        with self._lock:
            self._waiting.setdefault(whose, collections.deque()).append(called)
            self._call()
        try:
            called.wait()
            yield
        finally:
            with self._lock:
                if called.is_set():
                    self._free += 1
                    self._running[whose] -= 1
                    if not self._running[whose]:
                        del self._running[whose]
                    self._call()
                else:  # interrupted
                    self._leave(whose, called)

    def _call(self) -> None:
        """Call all who may go on, and let each tenant that had a turn wait behind the others."""
        for whose in list(self._waiting):
            if self._free and self._running[whose] < self._most_of_one:
                called = self._waiting[whose][0]
                self._leave(whose, called)
                if whose in self._waiting:
                    self._waiting.move_to_end(whose)
                self._free -= 1
                self._running[whose] += 1
                called.set()

    def _leave(self, whose: str, called: threading.Event) -> None:
        self._waiting[whose].remove(called)
        if not self._waiting[whose]:
            del self._waiting[whose]


class Processes:
    """Lends a process to one thread at a time."""

    def __init__(self) -> None:
        self._turns = Turns(MOST, MOST_OF_ONE)
        self._idle: list[Process] = []

    def ask(self, request: dict[str, Any], seconds: float, whose: str = "") -> dict[str, Any]:
        body = codec.encode(request, "the expression")  # before a process is taken: it would not come back
        with self._turns.turn(whose):
            process = self._take()
            try:
                answer = process.ask(body, seconds + GRACE)
            except BaseException:
                process.end()  # nobody has it any more
                raise
            self._idle.append(process)
            return answer

    def _take(self) -> Process:
        while True:
            try:
                process = self._idle.pop()
            except IndexError:
                return Process()
            if process.alive:
                return process
            process.end()  # somebody killed it since; that is not the fault of this expression

    def end(self) -> None:
        while self._idle:
            self._idle.pop().end()


_processes = Processes()


def _start_afresh() -> None:
    global _processes
    _processes = Processes()  # those of the parent are not ours to talk to


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
atexit.register(lambda: _processes.end())


def ask(request: dict[str, Any], seconds: float, whose: str = "") -> dict[str, Any]:
    return _processes.ask(request, seconds, whose)
