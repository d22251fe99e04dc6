"""The program that evaluates expressions, in a process of its own. It is run as a file, and needs no other of ours.

A request and an answer are JSON with their length before them. Expressions are written by users, and some of what they
can ask for has no bound inside the library: whoever takes too long or too much memory ends with this process.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Generator
from typing import Any, BinaryIO, cast

import jsonatapy

LENGTH = struct.Struct(">I")
ADDRESS_SPACE = 1536 * 1024 * 1024
"""The library reserves a gigabyte for its stack, of which it uses little: about 400 MB are left for values."""
DEPTH = 500
"""Of calls in an expression. Each level of a recursive function takes two or three."""
SEQUENCE = 100_000
NICE = 10
"""What waits for cores goes before expressions: requests of others, above all."""
GRACE = 0.25
"""Seconds after which an evaluation that does not heed its bound is ended by force."""


class Moment:
    """What the functions that are not pure say. With a `now` of its own, an evaluation is the same every time."""

    def __init__(self) -> None:
        self.millis = 0
        self.random = random.Random()

    def enter(self, millis: int | None) -> None:
        self.millis = time.time_ns() // 1_000_000 if millis is None else millis
        self.random.seed(millis)

    def now(self, picture: str | None = None, zone: str | None = None) -> Any:
        bound = {"millis": self.millis, "picture": picture, "zone": zone}
        given = "".join(f", ${name}" for name in ("picture", "zone") if bound[name] is not None)
        return jsonatapy.compile(f"$fromMillis($millis{given})").evaluate(None, bound)

    def shuffled(self, items: Any) -> Any:
        if not isinstance(items, list):
            return items
        known = cast("list[Any]", items)
        return self.random.sample(known, len(known))


MOMENT = Moment()


def refuse_eval(*_: Any) -> Any:
    raise PermissionError("$eval is not available")


@functools.lru_cache(maxsize=256)
def compiled(text: str) -> Any:
    expression = jsonatapy.compile(text)
    expression.register_override("now", MOMENT.now)
    expression.register_override("millis", lambda: MOMENT.millis)
    expression.register_override("random", lambda: MOMENT.random.random())
    expression.register_override("shuffle", MOMENT.shuffled)
    expression.register_override("eval", refuse_eval)
    return expression


def evaluate(request: dict[str, Any]) -> dict[str, Any]:
    """The value of each expression as JSON text, None for those that are undefined; or which one failed, and why."""
    ends = time.monotonic() + request["seconds"]
    data = request["data"]
    values: list[str | None] = []
    room = request["bytes"]
    for index, text in enumerate(request["texts"]):
        MOMENT.enter(request["now"])
        left = max(int((ends - time.monotonic()) * 1000), 1)
        try:
            value = compiled(text).evaluate_json_or_none(
                data, timeout=left, max_stack_depth=DEPTH, max_sequence_length=SEQUENCE
            )
        except Exception as error:
            return {"index": index, "error": str(error)[:500]}
        room -= len(value or "")
        if room < 0:
            return {"index": index, "error": f"the result is larger than {request['bytes']:,} characters"}
        values.append(value)
    return {"values": values}


def check(text: str) -> dict[str, Any]:
    """What is wrong with an expression, if anything is."""
    try:
        compiled(text)
    except Exception as error:
        return {"error": str(error)[:500]}
    return {}


def serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    while head := incoming.read(LENGTH.size):
        request = json.loads(incoming.read(LENGTH.unpack(head)[0]))
        with limited(request["seconds"] + GRACE):
            found = check(request["check"]) if "check" in request else evaluate(request)
            answer = json.dumps(found).encode()
        outgoing.write(LENGTH.pack(len(answer)) + answer)
        outgoing.flush()


@contextlib.contextmanager
def limited(seconds: float) -> Generator[None]:
    """The signal ends this process even inside the library, and even if nobody is left who would do it."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)


def confine() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    with contextlib.suppress(AttributeError, OSError):  # not every system knows it
        os.nice(NICE)
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system has these bounds
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


if __name__ == "__main__":
    confine()
    serve(sys.stdin.buffer, sys.stdout.buffer)
