"""The schemas that agents' outputs must fit: JSON Schema, draft 2020-12, of an object with a few properties.

A schema is a user's, and checking runs in the process of the server. So what could take long is refused when the schema
is saved: references to anywhere but its own `$defs`, references in a circle, patterns that need backtracking, and
schemas that are small when written and huge when their references are followed.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from ostinato import errors
from ostinato.core import codec, documents

if TYPE_CHECKING:
    import jsonschema_rs  # at run time only when something is checked

DRAFT = "https://json-schema.org/draft/2020-12/schema"
MOST_PROPERTIES = 5
LONGEST = 16 * 1024
"""Of a schema, in bytes of JSON."""
DEEPEST = 16
"""Schemas within schemas, references included."""
MOST_PARTS = 500
"""Schemas within a schema, each counted as often as it is referred to."""
DEEPEST_VALUE = 100
MOST_VIOLATIONS = 20
LONGEST_MESSAGE = 200
LONGEST_PATTERN = 12 * 1024
"""Of a compiled pattern, in bytes. The worst of this size read half a million characters a second."""
MOST_WORK = 1_000_000
"""Parts of the schema times parts of the value: what takes more is not looked at."""
MOST_READING = 64 * 1024
"""Patterns times characters of text."""
MOST_EXPLAINING = 4_000
"""Work up to which all violations are told. To find them all costs a thousand times more than to find one."""
KEPT = 256
"""Compiled schemas."""

_ONE = (
    *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS = ("$defs", "dependentSchemas", "patternProperties", "properties")
_REFUSED = (
    *("$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "$vocabulary"),
    *("definitions", "dependencies"),
)
_REFERENCE = re.compile(r"#/\$defs/(?P<name>[A-Za-z0-9._-]+)")


@dataclasses.dataclass(frozen=True)
class Violation:
    path: str
    """Where in the value, such as `places[0].name`; empty for the value itself."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def check(schema: Any, field: str = "outputSchema") -> dict[str, Any]:
    """The schema, if outputs can be checked with it; otherwise InvalidInput says where it is wrong and what to do."""
    given = documents.as_object(schema, field)
    try:
        data = codec.encode(given, field, LONGEST)
    except errors.InvalidPayload as error:
        raise errors.InvalidInput(error.message, field=field) from None
    _compiled(data, field)
    return given


def validate(schema: dict[str, Any], value: Any) -> list[Violation]:
    """What does not fit, at most `MOST_VIOLATIONS`; nothing if all fits. The schema is checked the first time."""
    compiled = _compiled(codec.encode(schema, "outputSchema", LONGEST), "outputSchema")
    if not isinstance(value, dict):
        return [Violation("", f"must be an object, not {documents.short(value)}")]
    count = len(cast("dict[str, Any]", value))
    if count > MOST_PROPERTIES:
        return [Violation("", f"has {count:,} properties: at most {MOST_PROPERTIES} are allowed")]
    weight, depth, length = _measure(value)
    if depth > DEEPEST_VALUE:
        return [Violation("", f"is nested deeper than {DEEPEST_VALUE} levels")]
    work = weight * compiled.size.parts
    if work > MOST_WORK or length * compiled.size.patterns > MOST_READING:
        return [Violation("", "is too large to be checked against this schema: give less")]
    if compiled.validator.is_valid(value):
        return []
    return [_violation(error) for error in compiled.errors_of(value, everything=work <= MOST_EXPLAINING)]


def is_closed(schema: dict[str, Any]) -> bool:
    """Whether all objects have exactly the properties that are named: what endpoints ask of a strict schema."""
    return all(
        part.get("additionalProperties") is False
        and set(cast("dict[str, Any]", part.get("properties", {}))) == set(cast("list[str]", part.get("required", [])))
        for part in _all_parts(schema)
        if "properties" in part or part.get("type") == "object"
    )


class _Size(NamedTuple):
    parts: int
    patterns: int

    def plus(self, other: _Size) -> _Size:
        return _Size(self.parts + other.parts, self.patterns + other.patterns)


@dataclasses.dataclass(frozen=True)
class _Compiled:
    validator: jsonschema_rs.Draft202012Validator
    size: _Size

    def errors_of(self, value: Any, *, everything: bool) -> list[jsonschema_rs.ValidationError]:
        import jsonschema_rs

        if everything:
            return list(self.validator.iter_errors(value))[:MOST_VIOLATIONS]
        try:
            self.validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [error]
        return []


@functools.lru_cache(KEPT)
def _compiled(data: bytes, field: str) -> _Compiled:
    import jsonschema_rs

    schema: dict[str, Any] = codec.decode(data)
    size = _Reader(schema, field).check()
    options = jsonschema_rs.RegexOptions(size_limit=LONGEST_PATTERN, dfa_size_limit=1024 * 1024)
    try:
        validator = jsonschema_rs.Draft202012Validator(
            schema, retriever=_refuse_to_retrieve, validate_formats=True, pattern_options=options
        )
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise _not_valid(error, field) from None
    return _Compiled(validator, size)


def _refuse_to_retrieve(uri: str) -> NoReturn:
    """Never asked, since such references are refused before. By default they would be fetched, or read from disk."""
    raise ValueError("a schema may only refer to itself")


class _Reader:
    """Looks at every part of one schema, before it is compiled."""

    def __init__(self, schema: dict[str, Any], field: str) -> None:
        self._schema = schema
        self._field = field
        defined = schema.get("$defs")
        self._defs = cast("dict[str, Any]", defined) if isinstance(defined, dict) else {}
        self._sizes: dict[str, _Size] = {}

    def check(self) -> _Size:
        """How large it is, references followed."""
        schema, field = self._schema, self._field
        if schema.get("$schema", DRAFT) not in (DRAFT, DRAFT + "#"):
            _refuse(f"{field}.$schema", f"must be {DRAFT}, or be left out")
        if schema.get("type") != "object":
            _refuse(f"{field}.type", 'must be "object": an agent gives an object')
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not 1 <= len(cast("dict[str, Any]", properties)) <= MOST_PROPERTIES:
            _refuse(f"{field}.properties", f"must name 1 to {MOST_PROPERTIES} properties")
        return self._size(schema, field, ())

    def _size(self, schema: Any, at: str, following: tuple[str, ...], depth: int = 0) -> _Size:
        if not isinstance(schema, dict):
            return _Size(1, 0)  # true or false, or a mistake that the compiler finds
        if depth > DEEPEST:
            _refuse(at, f"is nested deeper than {DEEPEST} levels: flatten the schema")
        part = cast("dict[str, Any]", schema)
        for name in _REFUSED:
            if name in part:
                _refuse(f"{at}.{name}", "is not supported: define parts in $defs, and refer to them as #/$defs/NAME")
        if depth and "$schema" in part:
            _refuse(f"{at}.$schema", "belongs at the top")
        if depth and "$defs" in part:
            _refuse(f"{at}.$defs", "belongs at the top")
        size = _own_size(part)
        for place, inner in _inside(part):
            size = size.plus(self._size(inner, f"{at}.{place}", following, depth + 1))
            self._bound(size)
        if "$ref" in part:
            size = size.plus(self._referred(part["$ref"], f"{at}.$ref", following, depth))
        self._bound(size)
        return size

    def _referred(self, reference: Any, at: str, following: tuple[str, ...], depth: int) -> _Size:
        found = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
        if found is None or found["name"] not in self._defs:
            _refuse(at, f"{documents.short(reference)} must be #/$defs/NAME, with NAME being defined in $defs")
        name = found["name"]
        if name in following:
            _refuse(at, f"{name} refers to itself: write out as many levels as there are")
        if name not in self._sizes:
            at = f"{self._field}.$defs.{name}"
            self._sizes[name] = self._size(self._defs[name], at, (*following, name), depth + 1)
        return self._sizes[name]

    def _bound(self, size: _Size) -> None:
        if size.parts > MOST_PARTS:
            _refuse(self._field, f"has more than {MOST_PARTS} parts when its references are followed: simplify it")


def _own_size(part: dict[str, Any]) -> _Size:
    """Without the schemas inside."""
    alternatives, names = part.get("enum"), part.get("patternProperties")
    count = len(cast("list[Any]", alternatives)) if isinstance(alternatives, list) else 0
    patterns = len(cast("dict[str, Any]", names)) if isinstance(names, dict) else 0
    return _Size(1 + len(part) + count // 8, patterns + ("pattern" in part) + (part.get("format") == "regex"))


def _inside(part: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas directly inside one, and where."""
    for name in _ONE:
        if name in part:
            yield name, part[name]
    for name in _LISTS:
        if isinstance(part.get(name), list):
            yield from ((f"{name}[{index}]", inner) for index, inner in enumerate(part[name]))
    for name in _MAPS:
        if isinstance(part.get(name), dict):
            yield from ((f"{name}.{documents.short_text(key)}", inner) for key, inner in part[name].items())


def _all_parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        part = cast("dict[str, Any]", schema)
        yield part
        for _, inner in _inside(part):
            yield from _all_parts(inner)


def _measure(value: Any) -> tuple[int, int, int]:
    """How many parts a value has, how deep it is, and how many characters of text it has, which count a little too."""
    parts, depth, length = 0, 0, 0
    left: list[tuple[Any, int]] = [(value, 1)]
    while left:
        item, level = left.pop()
        parts += 1
        depth = max(depth, level)
        if isinstance(item, dict):
            names = cast("dict[str, Any]", item)
            length += sum(map(len, names))
            left.extend((inner, level + 1) for inner in names.values())
        elif isinstance(item, list):
            left.extend((inner, level + 1) for inner in cast("list[Any]", item))
        elif isinstance(item, str):
            length += len(item)
    return parts + length // 32, depth, length


def _violation(error: jsonschema_rs.ValidationError) -> Violation:
    return Violation(_path(error.instance_path), _cut(error.message))


def _path(parts: list[str | int]) -> str:
    path = ""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else documents.join(path, documents.short_text(part))
    return path


def _cut(text: str) -> str:
    """The message starts with the value, which may be long, and ends with what is wrong with it."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    return f"{text[:80]} … {text[83 - LONGEST_MESSAGE :]}"


def _not_valid(error: Exception, field: str) -> errors.InvalidInput:
    at, why = field, "is not a JSON Schema"
    if path := getattr(error, "instance_path", None):
        at = f"{field}.{_path(path)}"
        why = f"is not valid: {_cut(getattr(error, 'message', ''))}"
        if path[-1] == "pattern" or "patternProperties" in path:
            why += ". Patterns have no look-around and no back references, and must not be large"
    return errors.InvalidInput(f"{at} {why}", field=at)


def _refuse(at: str, why: str) -> NoReturn:
    raise errors.InvalidInput(f"{at} {why}", field=at)
