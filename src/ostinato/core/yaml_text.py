"""YAML as another way to write JSON: the same values, and nothing that readers of YAML understand differently.

Only the events of the parser are used. Nothing is constructed from tags, and there are no anchors, so that a text is
never larger inside than it is outside. A plain word is a value of JSON if it is written as JSON writes it, and text if
no reader takes it for anything else; what lies between (`no`, `0x1F`, `1_000`, `1.10`) is refused, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, cast

import yaml

from ostinato import errors
from ostinato.core import codec

LARGEST = 1024 * 1024
"""Bytes of a text."""
DEEPEST = 64

_WORDS: Mapping[str, Any] = {"null": None, "~": None, "": None, "true": True, "false": False}
_DOUBTFUL_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""In any other spelling than JSON's."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_DOUBTFUL_NUMBER = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+"
    r"|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
    r"|\.(?:inf|Inf|INF)|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)|\.(?:nan|NaN|NAN)"
)


class Document(NamedTuple):
    value: Any
    lines: dict[str, int]
    """Where each field is, by its path: `tasks[0].name`. The path of the document itself is empty."""


def read(data: bytes, what: str) -> list[Document]:
    """All documents of a text. Errors name `what`, the line and the field."""
    if len(data) > LARGEST:
        raise errors.InvalidPayload(f"{what} has more than {LARGEST:,} bytes: split it", file=what)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise errors.InvalidPayload(f"{what}:{line}: this is not UTF-8", file=what, line=line) from None
    try:
        return list(_Reader(text, what).documents())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        said = ", ".join(part for part in (error.context, error.problem) if part)
    except yaml.YAMLError as error:  # a character that YAML does not have
        line = text.count("\n", 0, getattr(error, "position", 0) or 0) + 1
        said = "there is a character that YAML does not allow"
    raise errors.InvalidPayload(f"{what}:{line}: this is not valid YAML: {said}", file=what, line=line)


def line_of(lines: Mapping[str, int], field: str) -> int:
    """The line of a field, or of the nearest thing around it that is there."""
    while field and field not in lines:
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return lines.get(field, 1)


class _Reader:
    def __init__(self, text: str, what: str) -> None:
        # The events are the same, and come some ten times as fast where libyaml is there.
        parse = cast("Any", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
        self._events: Iterator[Any] = parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self._what = what
        self._lines: dict[str, int] = {}

    def documents(self) -> Iterator[Document]:
        for event in self._events:
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            if event.version or event.tags:
                self._refuse(event, "", "directives are not read: leave it out")
            first = next(self._events)
            if isinstance(first, yaml.ScalarEvent) and first.value == "" and _is_plain(first):
                continue  # nothing but a line of dashes
            self._lines = {"": first.start_mark.line + 1}
            yield Document(self._value(first, "", 0), self._lines)

    def _value(self, event: Any, path: str, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            self._refuse(event, path, "anchors and aliases are not read: write it out")
        if event.tag is not None:
            self._refuse(event, path, f"tags such as {event.tag!r} are not read: leave it out")
        if depth > DEEPEST:
            self._refuse(event, path, f"this is nested deeper than {DEEPEST} levels: flatten it")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        return self._plain(event, path) if _is_plain(event) else event.value

    def _mapping(self, path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(key := next(self._events), yaml.MappingEndEvent):
            name = self._key(key, path)
            inside = f"{path}.{name}" if path else name
            if name in found:
                self._refuse(key, inside, f"{name!r} is here a second time: give it once")
            self._lines[inside] = key.start_mark.line + 1
            found[name] = self._value(next(self._events), inside, depth + 1)
        return found

    def _key(self, event: Any, path: str) -> str:
        """Keys are text, letter by letter, as in JSON."""
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, path, "a key must be a text")
        if event.anchor is not None or event.tag is not None:
            self._refuse(event, path, "a key has neither anchor nor tag: leave it out")
        if _is_plain(event) and event.value in ("", "~", "<<"):
            self._refuse(event, path, "a key must be a text, and others are not merged in: write the fields out")
        return event.value

    def _sequence(self, path: str, depth: int) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            inside = f"{path}[{len(found)}]"
            self._lines[inside] = event.start_mark.line + 1
            found.append(self._value(event, inside, depth + 1))
        return found

    def _plain(self, event: Any, path: str) -> Any:
        text: str = event.value
        if text in _WORDS:
            return _WORDS[text]
        if _NUMBER.fullmatch(text):
            number = codec.parse(text, self._what)
            if codec.encode(number).decode() == text:
                return number
        elif text.lower() not in _DOUBTFUL_WORDS and not _DOUBTFUL_NUMBER.fullmatch(text):
            return text
        self._refuse(
            event, path, f'{text} may be text, or something else to some readers: write "{text}", or as JSON writes it'
        )

    def _refuse(self, event: Any, path: str, reason: str) -> NoReturn:
        line = event.start_mark.line + 1
        about = {"file": self._what, "line": line} | ({"field": path} if path else {})
        raise errors.InvalidInput(f"{self._what}:{line}: {f'{path}: ' if path else ''}{reason}", **about)


def _is_plain(event: Any) -> bool:
    return not event.style
