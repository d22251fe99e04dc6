"""Patterns select events, in the language of Amazon EventBridge: read and checked once, then matched often.

Every refusal names the place in the document and says what to write instead.
"""

from __future__ import annotations

import difflib
import ipaddress
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from ostinato import errors
from ostinato.core import codec, matching

DEEPEST = matching.DEEPEST
MOST_STARS = 100
"""In all wildcards of a pattern: each is looked for in the whole of a string."""
MOST_VALUES = 1_000
LONGEST = 64 * 1024
"""In bytes, written as JSON."""

OPERATORS = ("anything-but", "cidr", "equals-ignore-case", "exists", "numeric", "prefix", "suffix", "wildcard")
OR = "$or"
_NEGATED = ("equals-ignore-case", "prefix", "suffix", "wildcard")
_LOWER, _UPPER = {">": False, ">=": True}, {"<": False, "<=": True}  # whether the bound itself belongs to the range
_SHOWN = 64


class Pattern:
    """A compiled pattern; it never changes, and any number of threads may use it."""

    __slots__ = ("_root",)

    def __init__(self, root: matching.Branch) -> None:
        self._root = root

    def matches(self, event: Mapping[str, Any]) -> bool:
        """Never raises: what is not an object does not match."""
        return self.fits(matching.nested(event))

    def fits(self, nested: Mapping[str, Any]) -> bool:
        """The same, of what `matching.nested` has made of an event: it need not be done for each of many patterns."""
        return isinstance(nested, matching.OBJECT) and self._root.inside(nested) != matching.NO

    def exact(self, *path: str) -> frozenset[str] | None:
        """The strings of which the field must hold one in every event that matches, or None if that cannot be said.

        To hold one may also mean an array with it, or an array of objects on the way there.
        """
        return self._root.exact(path)


def compile(document: Any, field: str = "pattern", *, saved: bool = False) -> Pattern:
    """Raises InvalidInput, whose `field` is the place in the document, for whatever is not a pattern. One that was
    `saved` may have more wildcards than are taken now, and may name a field twice."""
    unwritable = None
    try:
        codec.encode(document, field, LONGEST)
    except errors.PayloadTooLarge as error:
        _refuse(field, f"has {error.details['size']:,} bytes and the limit is {LONGEST:,}: split it into several")
    except errors.InvalidPayload as error:
        unwritable = error  # the reader names the place, if it is one that it sees
    root = _Reader(field, lenient=saved).branch(document, field, 1)
    if unwritable is not None:
        raise errors.InvalidInput(unwritable.message, field=field)
    return Pattern(root)


class _Fields:
    """What an object of a pattern says, while it is read: in one place, or in several by names with dots."""

    def __init__(self) -> None:
        self.leaves: dict[str, matching.Leaf] = {}
        self.below: dict[str, _Fields] = {}
        self.choices: list[tuple[matching.Branch, ...]] = []

    def at(self, path: list[str]) -> _Fields:
        found = self
        for name in path:
            found = found.below.setdefault(name, _Fields())
        return found

    def branch(self) -> matching.Branch:
        return matching.Branch(self.leaves, {n: fields.branch() for n, fields in self.below.items()}, self.choices)


class _Reader:
    """Reads one document, and counts its values."""

    def __init__(self, field: str, *, lenient: bool) -> None:
        self._field = field
        self._lenient = lenient
        self._values = 0
        self._stars = 0

    def branch(self, document: Any, at: str, depth: int) -> matching.Branch:
        fields = _Fields()
        self._read(document, at, depth, fields)
        return fields.branch()

    def _read(self, document: Any, at: str, depth: int, fields: _Fields) -> None:
        if not isinstance(document, dict):
            _refuse(at, f'must be an object such as {{"source": ["shop"]}}, not {_kind(document)}')
        if not document:
            _refuse(at, "is empty: name at least one field")
        if depth > DEEPEST:
            _refuse(at, f"is nested deeper than {DEEPEST} levels: flatten the pattern")
        for name, content in cast("dict[Any, Any]", document).items():
            if not isinstance(name, str):
                _refuse(at, f"has a field name that is {_kind(name)}: names are strings")
            here = f"{at}.{_short(name)}"
            if name == OR and _is_choice(content):
                choice = tuple(self.branch(one, f"{here}[{i}]", depth + 1) for i, one in enumerate(content))
                fields.choices.append(choice)
                continue
            *path, last = name.split(".")
            below = depth + len(path)
            if below > DEEPEST:
                _refuse(here, f"is nested deeper than {DEEPEST} levels: flatten the pattern")
            if isinstance(content, dict):
                self._read(content, here, below + 1, fields.at([*path, last]))
            elif isinstance(content, list):
                leaves = fields.at(path).leaves
                if last in leaves and not self._lenient:
                    _refuse(here, "is the same field as one before, whose name is written another way: name it once")
                leaves[last] = self._leaf(cast("list[Any]", content), here)
            else:
                _refuse(here, f"must be an array of values or an object, not {_kind(content)}: put it in [ ]")

    def _leaf(self, values: list[Any], at: str) -> matching.Leaf:
        if not values:
            _refuse(at, 'is an empty array, which nothing matches: give a value, or {"exists": true} for any')
        strings: list[str] = []
        numbers: list[float] = []
        constants: list[bool | None] = []
        tests: list[matching.Test] = []
        absent = False
        for i, value in enumerate(values):
            here = f"{at}[{i}]"
            self._count()
            if isinstance(value, str):
                strings.append(value)
            elif value is None or isinstance(value, bool):
                constants.append(value)
            elif isinstance(value, (int, float)):
                numbers.append(_finite(value, here))
            elif isinstance(value, dict) and _is_absence(cast("dict[Any, Any]", value)):
                absent = True
            else:
                tests.append(self._operator(value, here))
        only_strings = len(strings) == len(values)
        if strings or numbers or constants:
            tests.insert(0, matching.one_of(strings, numbers, constants))
        return matching.Leaf(matching.any_of(tests), absent, frozenset(strings) if only_strings else None)

    def _operator(self, value: Any, at: str) -> matching.Test:
        name, operand = _single(value, at, OPERATORS)
        here = f"{at}.{name}"
        match name:
            case "anything-but":
                return matching.other_than(self._negated(operand, here))
            case "prefix" | "suffix":
                return _edge(name, operand, here)
            case "equals-ignore-case":
                return matching.one_of_any_case([_string(operand, here)])
            case "wildcard":
                return self._wildcard(operand, here)
            case "numeric":
                return _numeric(operand, here)
            case "cidr":
                return _cidr(operand, here)
            case _:
                if operand is not True:
                    _refuse(here, f"must be true or false, not {_kind(operand)}")
                return matching.PRESENT

    def _negated(self, operand: Any, at: str) -> matching.Test:
        if not isinstance(operand, dict):
            listed = self._listed(operand, at)
            first, here = listed[0]
            if isinstance(first, str):
                return matching.one_of([_string(one, here) for one, here in listed])
            if isinstance(first, bool) or not isinstance(first, (int, float)):
                _refuse(here, f"must be a string or a number, not {_kind(first)}; an array has only one of the two")
            return matching.one_of([], [_number(one, here) for one, here in listed])
        name, inner = _single(cast("Any", operand), at, _NEGATED)
        listed = self._listed(inner, f"{at}.{name}")
        if name == "wildcard":
            return matching.any_of([self._wildcard(one, here) for one, here in listed])
        strings = [_string(one, here) for one, here in listed]
        if name == "equals-ignore-case":
            return matching.one_of_any_case(strings)
        for one, here in listed:
            if not one:
                _refuse(here, f"is empty, and every string has an empty {name}: give at least one character")
        return matching.starting(strings) if name == "prefix" else matching.ending(strings)

    def _wildcard(self, operand: Any, at: str) -> matching.Test:
        pieces = _pieces(operand, at)
        self._stars += len(pieces) - 1
        if self._stars > MOST_STARS and not self._lenient:
            _refuse(at, f"has one * too many: a pattern has up to {MOST_STARS} of them. Split it into several rules")
        return matching.wildcard(pieces)

    def _listed(self, operand: Any, at: str) -> list[tuple[Any, str]]:
        """One value or an array of them, each with its place."""
        if not isinstance(operand, list):
            return [(operand, at)]
        values = cast("list[Any]", operand)
        if not values:
            _refuse(at, 'is an empty array: give a value, or write {"exists": true} for any')
        self._count(len(values) - 1)
        return [(one, f"{at}[{i}]") for i, one in enumerate(values)]

    def _count(self, more: int = 1) -> None:
        self._values += more
        if self._values > MOST_VALUES:
            _refuse(self._field, f"has more than {MOST_VALUES:,} values: split it into several")


# --- operators -------------------------------------------------------------------------------------------------------


def _edge(name: str, operand: Any, at: str) -> matching.Test:
    """A prefix or a suffix, perhaps in any case."""
    prefix = name == "prefix"
    if isinstance(operand, dict):
        inner, text = _single(cast("Any", operand), at, ("equals-ignore-case",))
        folded = _string(text, f"{at}.{inner}")
        return matching.starting_in_any_case(folded) if prefix else matching.ending_in_any_case(folded)
    plain = [_string(operand, at)]
    return matching.starting(plain) if prefix else matching.ending(plain)


def _pieces(operand: Any, at: str) -> list[str]:
    """The text between the stars of a wildcard."""
    pieces = [""]
    for token in _WILDCARD_TOKEN.finditer(_string(operand, at)):
        text, place = token[0], token.start() + 1
        if text == "*":
            pieces.append("")
        elif text[0] == "*":
            _refuse(at, f"has several * in a row at character {place}: one says the same; a star itself is \\*")
        elif text == "\\":
            _refuse(at, f"has a lone \\ at character {place}: write \\\\ for a backslash and \\* for a star")
        else:
            pieces[-1] += text.removeprefix("\\")
    return pieces


_WILDCARD_TOKEN = re.compile(r"\*+|\\[*\\]|\\|[^*\\]+")


def _numeric(operand: Any, at: str) -> matching.Test:
    shape = 'must be an array such as [">", 0, "<=", 5] or ["=", 5]'
    if not isinstance(operand, list):
        _refuse(at, f"{shape}, not {_kind(operand)}")
    terms = cast("list[Any]", operand)
    if len(terms) not in (2, 4):
        _refuse(at, f"{shape}: one or two comparisons, each a sign and a number")
    sign, bound = _sign(terms[0], f"{at}[0]"), _number(terms[1], f"{at}[1]")
    if len(terms) == 4:
        return _range(sign, bound, _sign(terms[2], f"{at}[2]"), _number(terms[3], f"{at}[3]"), at)
    if sign == "=":
        return matching.one_of([], [bound])
    if sign in _LOWER:
        return matching.between(bound, math.inf, _LOWER[sign], True)
    return matching.between(-math.inf, bound, True, _UPPER[sign])


def _range(sign: str, low: float, second: str, high: float, at: str) -> matching.Test:
    order = "but a range begins with > or >= and ends with < or <="
    if sign not in _LOWER:
        _refuse(f"{at}[0]", f"is {sign}, {order}")
    if second not in _UPPER:
        _refuse(f"{at}[2]", f"is {second}, {order}")
    if low >= high:
        _refuse(f"{at}[3]", 'must be above the lower bound; for a single number write ["=", number]')
    return matching.between(low, high, _LOWER[sign], _UPPER[second])


def _sign(value: Any, at: str) -> str:
    if not isinstance(value, str) or value not in ("=", *_LOWER, *_UPPER):
        _refuse(at, "must be one of =, <, <=, > and >=")
    return value


def _cidr(operand: Any, at: str) -> matching.Test:
    address, slash, bits = _string(operand, at).partition("/")
    if not slash or not (bits.isascii() and bits.isdigit()) or "%" in address:
        _refuse(at, "must be an address, a slash and a number of bits, such as 10.0.0.0/24 or 2001:db8::/32")
    try:
        return matching.in_network(ipaddress.ip_network((address, int(bits)), strict=False))
    except ValueError:
        _refuse(at, "is not a network: write for example 10.0.0.0/24 (up to 32 bits) or 2001:db8::/32 (up to 128)")


# --- parts -----------------------------------------------------------------------------------------------------------


def _is_choice(content: Any) -> bool:
    """Whether `$or` is meant. Otherwise it is the name of a field, and its objects are operators."""
    if not isinstance(content, list):
        return False
    objects = [cast("dict[Any, Any]", one) for one in cast("list[Any]", content) if isinstance(one, dict)]
    all_objects = len(objects) == len(cast("list[Any]", content)) >= 2
    return all_objects and not any(name in OPERATORS for one in objects for name in one)


def _single(value: Any, at: str, known: tuple[str, ...]) -> tuple[str, Any]:
    """The one operator of an object, and what it is given."""
    if not isinstance(value, dict):
        _refuse(at, f"must be a string, a number, true, false, null or an operator in {{ }}, not {_kind(value)}")
    operators = cast("dict[Any, Any]", value)
    if len(operators) > 1:
        _refuse(at, "has several operators: write an object for each, any of which may match")
    for name, operand in operators.items():
        if name in known:
            return name, operand
        shown = _short(name) if isinstance(name, str) else "?"
        near = difflib.get_close_matches(shown, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(known)}"
        if f".{OR}[" in at:
            hint += f"; for alternatives, {OR} takes two or more objects, with no field named like an operator"
        _refuse(f"{at}.{shown}", f"is not an operator here: {hint}")
    _refuse(at, f"is empty: use one of {', '.join(known)}")


def _is_absence(value: dict[Any, Any]) -> bool:
    return len(value) == 1 and value.get("exists") is False


def _string(value: Any, at: str) -> str:
    if not isinstance(value, str):
        _refuse(at, f"must be a string, not {_kind(value)}")
    return value


def _number(value: Any, at: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _refuse(at, f"must be a number, not {_kind(value)}")
    return _finite(value, at)


def _finite(value: float, at: str) -> float:
    if isinstance(value, float) and not math.isfinite(value):
        _refuse(at, "is NaN or infinite, which JSON cannot say: use a finite number")
    return value


def _refuse(at: str, why: str) -> NoReturn:
    raise errors.InvalidInput(f"{at} {why}", field=at)


def _kind(value: Any) -> str:
    """What a value is, without the value: it may be long or secret."""
    for kinds, name in _KINDS:
        if isinstance(value, kinds):
            return name
    return "something that is not JSON"


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "true or false"),
    (str, "a string"),
    ((int, float), "a number"),
    (list, "an array"),
    (dict, "an object"),
)


def _short(name: str) -> str:
    """A name that can be shown: not too long, and without half characters, which no answer could carry."""
    shown = name[:_SHOWN].encode(errors="replace").decode()
    return shown if len(name) <= _SHOWN else shown + "…"
