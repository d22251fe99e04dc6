"""The compiled form of a pattern: what is asked of values, fields and objects. `patterns` makes it from a document."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

StringTest = Callable[[str], bool]
NumberTest = Callable[[float], bool]

NO, ABSENT, FOUND = 0, 1, 2
"""How an event fares with a part of a pattern: not at all; by what it does not have; by a value that it has."""

_MISSING: Any = object()
OBJECT: Any = (dict, Mapping)  # dict first: asking for a Mapping takes longer
_ARRAY: Any = (list, tuple)
_LONGEST_ADDRESS = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")


# --- what is asked of one value --------------------------------------------------------------------------------------


def _never(_: Any) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Test:
    """What is asked of a value, by its kind. A boolean is not a number here, though Python says so."""

    string: StringTest = _never
    number: NumberTest = _never
    constants: frozenset[bool | None] = frozenset()
    """Those of true, false and null that fit."""


def other_than(test: Test) -> Test:
    """Whatever does not fit the test: values of other kinds too."""
    return Test(lambda value: not test.string(value), lambda value: not test.number(value), _CONSTANTS - test.constants)


_CONSTANTS: frozenset[bool | None] = frozenset([True, False, None])
PRESENT = other_than(Test())
"""Any value fits, null too."""


def one_of(strings: Iterable[str], numbers: Iterable[float] = (), constants: Iterable[bool | None] = ()) -> Test:
    """Numbers are equal by value, and Python's hashes follow: 300, 300.0 and 3.0e2 are one."""
    return Test(frozenset(strings).__contains__, frozenset(numbers).__contains__, frozenset(constants))


def one_of_any_case(strings: Iterable[str]) -> Test:
    folded = frozenset(string.casefold() for string in strings)
    return Test(lambda value: value.casefold() in folded)


def starting(prefixes: Iterable[str]) -> Test:
    wanted = tuple(prefixes)
    return Test(lambda value: value.startswith(wanted))


def starting_in_any_case(prefix: str) -> Test:
    folded = prefix.casefold()
    return Test(lambda value: value.casefold().startswith(folded))


def ending(suffixes: Iterable[str]) -> Test:
    wanted = tuple(suffixes)
    return Test(lambda value: value.endswith(wanted))


def ending_in_any_case(suffix: str) -> Test:
    folded = suffix.casefold()
    return Test(lambda value: value.casefold().endswith(folded))


def wildcard(pieces: list[str]) -> Test:
    """The text between the stars. The leftmost place of each piece leaves most for the next: nothing is tried twice."""
    if len(pieces) == 1:
        return one_of(pieces)
    first, *middle, last = pieces
    shortest = len(first) + len(last)

    def fits(value: str) -> bool:
        if len(value) < shortest or not value.startswith(first) or not value.endswith(last):
            return False
        at, end = len(first), len(value) - len(last)
        for piece in middle:
            found = value.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    return Test(fits)


def between(low: float, high: float, with_low: bool, with_high: bool) -> Test:
    def fits(value: float) -> bool:
        return (low < value or (with_low and low == value)) and (value < high or (with_high and value == high))

    return Test(number=fits)


def in_network(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> Test:
    def fits(value: str) -> bool:
        # Reading takes time, also where it fails. A zone (fe80::1%eth0) has a meaning on one machine only.
        if len(value) > _LONGEST_ADDRESS or "%" in value:
            return False
        try:
            return ipaddress.ip_address(value) in network
        except ValueError:
            return False

    return Test(string=fits)


def any_of(tests: list[Test]) -> Test:
    return Test(
        _either([test.string for test in tests if test.string is not _never]),
        _either([test.number for test in tests if test.number is not _never]),
        frozenset[bool | None]().union(*(test.constants for test in tests)),
    )


def _either(tests: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    if len(tests) <= 1:
        return tests[0] if tests else _never
    several = tuple(tests)

    def fits(value: Any) -> bool:
        for test in several:  # noqa: SIM110 - any() over a generator takes twice as long
            if test(value):
                return True
        return False

    return fits


# --- what is asked of a field and of an object -----------------------------------------------------------------------


class Leaf:
    """A field with values. An object is no value: the field counts as absent where one stands, or an array of them."""

    __slots__ = ("absent", "exact", "test")

    def __init__(self, test: Test, absent: bool, exact: frozenset[str] | None) -> None:
        self.test = test
        self.absent = ABSENT if absent else NO
        self.exact = exact
        """The strings of which one must be there, if nothing else fits."""

    def match(self, value: Any) -> int:
        if value is _MISSING or isinstance(value, dict):
            return self.absent
        if isinstance(value, _ARRAY):
            return self._match_any(value)
        if self._fits(value):
            return FOUND
        return self.absent if isinstance(value, Mapping) else NO

    def _match_any(self, values: Iterable[Any]) -> int:
        found = self.absent
        for value in _flat(values):
            if self._fits(value):
                return FOUND
            if not isinstance(value, OBJECT):
                found = NO
        return found

    def _fits(self, value: Any) -> bool:
        if isinstance(value, str):
            return self.test.string(value)
        if value is None or isinstance(value, bool):
            return value in self.test.constants
        return isinstance(value, (int, float)) and self.test.number(value)


class Branch:
    """An object: all its fields must match, in an array all within one element.

    What must be absent counts for the one element in which other fields were found, otherwise for every element.
    """

    __slots__ = ("_branches", "_choices", "_empty", "_leaves", "_names")

    def __init__(
        self, leaves: dict[str, Leaf], branches: dict[str, Branch], choices: Iterable[tuple[Branch, ...]]
    ) -> None:
        self._leaves = tuple((name, leaf.test.string, leaf.match) for name, leaf in leaves.items())
        self._branches = tuple((name, branch.match) for name, branch in branches.items())
        self._choices = tuple(choices)
        self._names: dict[str, Leaf | Branch] = {**leaves, **branches}
        self._empty = self.inside({})

    def match(self, value: Any) -> int:
        if isinstance(value, OBJECT):
            return self.inside(value)
        if isinstance(value, _ARRAY):
            return self._match_any(value)
        return self._empty

    def _match_any(self, values: Iterable[Any]) -> int:
        found = self._empty
        for value in _flat(values):
            result = self.inside(value) if isinstance(value, OBJECT) else self._empty
            if result == FOUND:
                return FOUND
            if result == NO:
                found = NO
        return found

    def inside(self, event: Mapping[str, Any]) -> int:
        """The hot path: strings, by far the most frequent values, are judged without a call to the leaf."""
        found = ABSENT
        for name, string, match in self._leaves:
            value = event.get(name, _MISSING)
            if value.__class__ is str:
                if not string(value):
                    return NO
                found = FOUND
            else:
                result = match(value)
                if result == NO:
                    return NO
                if result == FOUND:
                    found = FOUND
        for name, match in self._branches:
            result = match(event.get(name, _MISSING))
            if result == NO:
                return NO
            if result == FOUND:
                found = FOUND
        for alternatives in self._choices:
            result = _best(alternatives, event)
            if result == NO:
                return NO
            if result == FOUND:
                found = FOUND
        return found

    def exact(self, path: tuple[str, ...]) -> frozenset[str] | None:
        """The strings of which one must be at this place; None if others may be there, or nothing."""
        known = [self._exact_here(path), *(_union([one.exact(path) for one in choice]) for choice in self._choices)]
        return min((strings for strings in known if strings is not None), key=len, default=None)

    def _exact_here(self, path: tuple[str, ...]) -> frozenset[str] | None:
        node = self._names.get(path[0]) if path else None
        if isinstance(node, Branch):
            return node.exact(path[1:])
        return node.exact if node is not None and len(path) == 1 else None


def _best(alternatives: tuple[Branch, ...], event: Mapping[str, Any]) -> int:
    best = NO
    for branch in alternatives:
        result = branch.inside(event)
        if result == FOUND:
            return FOUND
        best = max(best, result)
    return best


def _union(sets: list[frozenset[str] | None]) -> frozenset[str] | None:
    known = [one for one in sets if one is not None]
    return frozenset[str]().union(*known) if len(known) == len(sets) else None


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    """The elements of an array and of arrays in it, however deep: an event must not exhaust the stack."""
    waiting = [values]
    while waiting:
        for value in waiting.pop():
            if isinstance(value, _ARRAY):
                waiting.append(value)
            else:
                yield value


# --- names with dots in events ---------------------------------------------------------------------------------------

DEEPEST = 32
"""Levels of a pattern: what lies deeper in an event is not looked at."""


def nested(event: Any) -> Any:
    """The event with its dotted names as paths, `{"a.b": 1}` as `{"a": {"b": 1}}`; itself if it has none."""
    return _open(event, DEEPEST) if isinstance(event, OBJECT) and _has_dots(event) else event


def _has_dots(event: Any) -> bool:
    """Asked of every event: names are looked at together, and of values only those that may hold others."""
    waiting: list[Any] = [event]
    for part in waiting:  # it grows meanwhile: an event must not exhaust the stack
        if not isinstance(part, _ARRAY):
            if not isinstance(part, OBJECT):
                continue
            if "." in "".join([name for name in part if name.__class__ is str]):
                return True
            part = part.values()
        waiting += [value for value in part if value.__class__ not in _SCALARS]
    return False


_SCALARS: Any = frozenset([str, int, float, bool, type(None)])


def _open(event: Mapping[Any, Any], left: int) -> dict[Any, Any]:
    """So many levels of an object."""
    made: dict[Any, Any] = {}
    for name, value in event.items():
        first, *rest = name.split(".") if isinstance(name, str) else [name]
        if len(rest) < left:
            value = _opened(value, left - len(rest) - 1)
            for part in reversed(rest):
                value = {part: value}
            made[first] = _merged(made[first], value) if first in made else value
    return made


def _opened(value: Any, left: int) -> Any:
    if isinstance(value, OBJECT):
        return _open(value, left)
    if isinstance(value, _ARRAY):
        return [_open(one, left) if isinstance(one, OBJECT) else one for one in _flat(value)]
    return value


def _merged(one: Any, other: Any) -> Any:
    """Two values of the same path: one object of two, beside an array in each of its objects, and otherwise both."""
    if isinstance(one, dict) and isinstance(other, dict):
        made = dict(cast("dict[Any, Any]", one))
        for name, value in cast("dict[Any, Any]", other).items():
            made[name] = _merged(made[name], value) if name in made else value
        return made
    ones, others = _listed(one), _listed(other)
    if isinstance(other, dict) and _has_objects(one):
        return [_merged(value, other) if isinstance(value, dict) else value for value in ones]
    if isinstance(one, dict) and _has_objects(other):
        return [_merged(value, one) if isinstance(value, dict) else value for value in others]
    return [*ones, *others]


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in cast("list[Any]", value))


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]
