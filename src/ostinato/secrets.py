"""Secrets by reference: `secret://NAME` in an input is resolved in the worker, just before the function is called.

What is stored and shown is the reference. Whatever the attempt then sends out is redacted by value before it is stored
or logged, so that a function that lets a secret slip does not write it down.
"""

from __future__ import annotations

import base64
import contextvars
import inspect
import json
import logging
import os
import re
import traceback
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import msgspec

from ostinato import errors
from ostinato.core import codec

PREFIX = "secret://"
HIDDEN = "***"
SHORTEST = 6
"""Shorter values are not redacted: they would be found everywhere."""

SecretSource = Callable[[str], "str | Awaitable[str | None] | None"]
"""From the name of a secret to its value, or to None if there is no such secret."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


def from_environment(name: str) -> str | None:
    """A file in `$OSTINATO_SECRETS_DIR`, as Docker and Kubernetes mount them, or else `$OSTINATO_SECRET_<NAME>`."""
    folder = os.environ.get("OSTINATO_SECRETS_DIR")
    if folder:
        try:
            return (Path(folder) / name).read_text().removesuffix("\n")
        except FileNotFoundError:
            pass
    return os.environ.get(f"OSTINATO_SECRET_{name}")


def mentioned(data: bytes) -> bool:
    """Whether there may be a reference in a payload: a quick look before a careful one."""
    return data.find(b"secret://") >= 0  # `in` would first try the text as a number, which takes twice as long


async def resolve(value: Any, source: SecretSource, redactor: Redactor) -> Any:
    """The value with every reference in it replaced by its secret; the redactor gets to know them."""
    if isinstance(value, str):
        return await _read(value, source, redactor) if value.startswith(PREFIX) else value
    if isinstance(value, list):
        return [await resolve(item, source, redactor) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: await resolve(item, source, redactor) for key, item in items}
    return value


async def _read(reference: str, source: SecretSource, redactor: Redactor) -> str:
    name = reference.removeprefix(PREFIX)
    if not _NAME.fullmatch(name):
        raise errors.UnknownSecret(
            f"{reference[:200]!r} is not a reference to a secret: use 1 to 128 letters, digits, . _ or - for its name"
        )
    try:
        found = source(name)
        value = await found if inspect.isawaitable(found) else found
    except Exception as error:  # what it says may hold anything
        raise errors.OstinatoError(f"{reference} could not be read: {type(error).__name__}") from None
    if not isinstance(value, str):
        raise errors.UnknownSecret(
            f"the input refers to {reference}, which this worker does not have: set OSTINATO_SECRET_{name}, or put it "
            "into a file of that name in $OSTINATO_SECRETS_DIR",
            reference=reference,
        )
    redactor.add(reference, value)
    return value


class Redactor:
    """Knows the secrets of one attempt, and hides them in what goes out of it."""

    def __init__(self) -> None:
        self._references: dict[str, str] = {}
        self._forms: set[str] = set()

    def add(self, reference: str, value: str) -> None:
        if len(value) >= SHORTEST:
            self._references[value] = reference
        self._forms |= {form for form in _forms(value) if len(form) >= SHORTEST}

    def text(self, text: str) -> str:
        """The text with every secret in it hidden, also where two of them overlap."""
        spans = sorted(span for form in self._forms for span in _occurrences(text, form))
        parts: list[str] = []
        end = 0
        for start, stop in spans:
            if start >= end:
                parts += [text[end:start], HIDDEN]
            end = max(end, stop)
        return "".join([*parts, text[end:]])

    def finds(self, text: str) -> bool:
        return any(form in text for form in self._forms)

    def value(self, value: Any) -> Any:
        """The same for everything in a JSON value, its keys and its numbers included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(item) for key, item in cast("dict[Any, Any]", value).items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in cast("list[Any]", value)]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return HIDDEN if self.finds(str(value)) else value
        return value

    def payload(self, data: bytes) -> bytes:
        return codec.encode_own(self.value(codec.decode(data)))

    def document(self, value: Any) -> Any:
        """For tasks and jobs that are yet to run: a value that is a secret becomes its reference again."""
        try:
            plain = msgspec.to_builtins(value)
        except (TypeError, ValueError, RecursionError):
            return value  # it cannot be stored either, and whoever tries will say so
        return self.value(self._referring(plain))

    def _referring(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._references.get(value, value)
        if isinstance(value, dict):
            return {key: self._referring(item) for key, item in cast("dict[Any, Any]", value).items()}
        if isinstance(value, (list, tuple)):
            return [self._referring(item) for item in cast("list[Any]", value)]
        return value


def _forms(value: str) -> Iterator[str]:
    """How a secret looks where it slips: as it is, inside JSON or a traceback, in a URL, as bytes, line by line."""
    yield value
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    data = value.encode("utf-8", "surrogatepass")
    yield repr(value)[1:-1]
    yield repr(data)[2:-1]
    yield quote(value, safe="", errors="replace")
    yield base64.b64encode(data).decode()
    yield base64.urlsafe_b64encode(data).decode().rstrip("=")
    yield data.hex()
    yield from value.splitlines()


def _occurrences(text: str, form: str) -> Iterator[tuple[int, int]]:
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + 1)


# --- what the library sends out while a function with secrets runs -----------------------------------------------

_current: contextvars.ContextVar[Redactor | None] = contextvars.ContextVar("ostinato-secrets", default=None)


def enter(redactor: Redactor | None) -> None:
    """From here on, and in everything that is started from here, these are the secrets to hide."""
    _current.set(redactor)


def hide_in_payload(data: bytes) -> bytes:
    redactor = _current.get()
    return data if redactor is None else redactor.payload(data)


def hide_in_document(value: Any) -> Any:
    redactor = _current.get()
    return value if redactor is None else redactor.document(value)


class RedactingLog(logging.LoggerAdapter[logging.Logger]):
    """A log whose lines, tracebacks and extra fields are redacted before any handler sees them."""

    def __init__(self, logger: logging.Logger, about: dict[str, Any], redactor: Redactor) -> None:
        super().__init__(logger, about)
        self._redactor = redactor

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        message, kwargs = super().process(msg, kwargs)
        kwargs["extra"] = self._redactor.value(dict(kwargs.get("extra") or {}))
        return message, kwargs

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if self.isEnabledFor(level):
            text = _formatted(msg, args) + _trace(kwargs.pop("exc_info", None))
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1  # the line is the author's, not this one
            super().log(level, "%s", self._redactor.text(text), **kwargs)


def _formatted(message: object, args: tuple[object, ...]) -> str:
    values: Any = cast("Any", args[0]) if len(args) == 1 and isinstance(args[0], dict) else args
    try:
        return str(message) % values if args else str(message)
    except (TypeError, ValueError, KeyError):  # a log line that is wrong is no reason to fail
        return f"{message} {args}"


def _trace(about: Any) -> str:
    if not about:
        return ""
    if isinstance(about, tuple):
        about = cast("tuple[Any, ...]", about)[1]
    if isinstance(about, BaseException):
        return "\n" + "".join(traceback.format_exception(about)).rstrip()
    return "\n" + traceback.format_exc().rstrip()
