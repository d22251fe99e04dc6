"""The matcher against two models that know nothing of it: one walks the raw document, one flattens the event."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.core import patterns

# --- a value ----------------------------------------------------------------------------------------------------------


def value_fits(wanted: Any, value: Any) -> bool:
    if not isinstance(wanted, dict):
        return same(wanted, value)
    ((operator, operand),) = wanted.items()
    match operator:
        case "exists":
            return operand
        case "anything-but":
            return not any(value_fits(one, value) for one in negated(operand))
        case "numeric":
            return is_number(value) and all(
                COMPARISONS[operand[i]](value, operand[i + 1]) for i in range(0, len(operand), 2)
            )
    if not isinstance(value, str):
        return False
    if isinstance(operand, dict):
        operand, value = operand["equals-ignore-case"].lower(), value.lower()
    match operator:
        case "prefix":
            return value[: len(operand)] == operand
        case "suffix":
            return value[len(value) - len(operand) :] == operand if len(operand) <= len(value) else False
        case "equals-ignore-case":
            return value.lower() == operand.lower()
        case "wildcard":
            return wildcard_fits(operand, value)
        case "cidr":
            address, bits = operand.split("/")
            return value.count(".") == 3 and in_bits(value)[: int(bits)] == in_bits(address)[: int(bits)]
    raise AssertionError(operator)


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def negated(operand: Any) -> list[Any]:
    """The values and operators of which none may fit."""
    if isinstance(operand, dict):
        ((operator, inner),) = operand.items()
        return [{operator: one} for one in (inner if isinstance(inner, list) else [inner])]
    return operand if isinstance(operand, list) else [operand]


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(wanted: Any, value: Any) -> bool:
    if is_number(wanted) and is_number(value):
        return wanted == value
    return type(wanted) is type(value) and wanted == value


def wildcard_fits(text: str, value: str) -> bool:
    if not text:
        return not value
    if text[0] == "*":
        return any(wildcard_fits(text[1:], value[i:]) for i in range(len(value) + 1))
    escaped = text[0] == "\\"
    return value[:1] == text[escaped] and wildcard_fits(text[1 + escaped :], value[1:])


def in_bits(address: str) -> str:
    return "".join(f"{int(part):08b}" for part in address.split("."))


# --- the first model: down the pattern, level by level ----------------------------------------------------------------


def walk(pattern: dict[str, Any], event: Any) -> str:
    """`found`, `absent` (it matches by what is not there) or `no`."""
    if isinstance(event, list):
        results = [walk(pattern, element) for element in event] or [walk(pattern, {})]
        return "found" if "found" in results else "no" if "no" in results else "absent"
    fields = event if isinstance(event, dict) else {}
    results: list[str] = []
    for name, wanted in pattern.items():
        if name == "$or":
            results.append(min((walk(one, fields) for one in wanted), key=["found", "absent", "no"].index))
        elif isinstance(wanted, dict):
            results.append(walk(wanted, fields.get(name)))
        else:
            results.append(walk_leaf(wanted, list(leaves(fields[name])) if name in fields else []))
    return "no" if "no" in results else "found" if "found" in results else "absent"


def walk_leaf(wanted: list[Any], values: list[Any]) -> str:
    if not values:
        return "absent" if {"exists": False} in wanted else "no"
    return "found" if any(value_fits(one, value) for one in wanted for value in values) else "no"


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for element in value:
            yield from leaves(element)
    elif not isinstance(value, dict):
        yield value


# --- the second model: the event as a list of fields, each with its place in every array around it --------------------

Place = dict[int, int]


def flatten(value: Any, path: tuple[str, ...], place: Place, arrays: Iterator[int]) -> Iterator[tuple[Any, Any, Place]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from flatten(inner, (*path, name), place, arrays)
    elif isinstance(value, list):
        array = next(arrays)
        for i, inner in enumerate(value):
            yield from flatten(inner, path, {**place, array: i}, arrays)
    else:
        yield path, value, place


def paths(pattern: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    for name, wanted in pattern.items():
        if isinstance(wanted, dict):
            yield from paths(wanted, (*path, name))
        else:
            yield (*path, name), wanted


def consistent(one: Place, other: Place) -> bool:
    return all(other.get(array, i) == i for array, i in one.items())


def flat_match(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    """Whether a value, or its absence, can be chosen for each field so that no two sit in two elements of one array."""
    fields = list(flatten(event, (), {}, itertools.count()))
    options: list[list[Place | None]] = []
    wanted_paths = list(paths(pattern))
    for path, wanted in wanted_paths:
        here: list[Place | None] = [
            place for at, value, place in fields if at == path and any(value_fits(one, value) for one in wanted)
        ]
        options.append(here + ([None] if {"exists": False} in wanted else []))
    for chosen in itertools.product(*options):
        places = [place for place in chosen if place is not None]
        if not all(consistent(a, b) for a, b in itertools.combinations(places, 2)):
            continue
        whole = {array: i for place in places for array, i in place.items()}
        absent = {path for (path, _), place in zip(wanted_paths, chosen, strict=True) if place is None}
        if not any(at in absent and consistent(place, whole) for at, _, place in fields):
            return True
    return False


# --- patterns, and events made to match them often --------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = ["", "a", "A", "ab", "aB", "ba", "bab", "a*b", "a\\b", "10.0.0.1", "10.0.3.1", "192.168.0.1"]
FIGURES = [-1, 0, 1, 1.0, 2, 2.5, 300, 3.0e2]
STRINGS, NUMBERS = st.sampled_from(TEXTS), st.sampled_from(FIGURES)
SCALARS = STRINGS | NUMBERS | st.sampled_from([True, False, None])
WILDCARDS = st.sampled_from(["*", "a*", "*b", "a*b", "*a*", "*b*b", "a\\*b", "a\\\\*", "10.*.1", "ab"])
RANGES = st.tuples(st.sampled_from([">", ">="]), st.sampled_from([-2, 0, 1]), st.sampled_from(["<", "<="]), st.just(2))
NUMERIC = st.tuples(st.sampled_from(list(COMPARISONS)), NUMBERS) | RANGES


def one_or_more(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values | st.lists(values, min_size=1, max_size=3)


def operator(name: str, operand: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return operand.map(lambda given: {name: given})


SOME_TEXT = STRINGS.filter(bool)
ANY_CASE = operator("equals-ignore-case", STRINGS)
NEGATED = (
    one_or_more(STRINGS)
    | one_or_more(NUMBERS)
    | operator("prefix", one_or_more(SOME_TEXT))
    | operator("suffix", one_or_more(SOME_TEXT))
    | operator("equals-ignore-case", one_or_more(STRINGS))
    | operator("wildcard", one_or_more(WILDCARDS))
)
WANTED = st.one_of(
    SCALARS,
    SCALARS,
    operator("prefix", STRINGS | ANY_CASE),
    operator("suffix", STRINGS | ANY_CASE),
    ANY_CASE,
    operator("wildcard", WILDCARDS),
    operator("numeric", NUMERIC.map(list)),
    operator("cidr", st.sampled_from(["10.0.0.0/24", "10.0.0.0/8", "0.0.0.0/0", "10.0.3.1/32", "10.0.0.0/22"])),
    operator("exists", st.booleans()),
    operator("anything-but", NEGATED),
)
LEAVES = st.lists(WANTED, min_size=1, max_size=3)


def objects(depth: int, choices: bool) -> st.SearchStrategy[dict[str, Any]]:
    if depth == 0:
        return st.dictionaries(NAMES, LEAVES, min_size=1, max_size=2)
    inner = objects(depth - 1, choices)
    plain = st.dictionaries(NAMES, LEAVES | inner, min_size=1, max_size=2)
    if not choices:
        return plain
    alternatives = st.lists(inner, min_size=2, max_size=3)
    return plain | st.builds(lambda fields, chosen: {**fields, "$or": chosen}, plain, alternatives)


PLAIN, WITH_CHOICES = objects(2, choices=False), objects(2, choices=True)
POOL = [*TEXTS, *FIGURES, True, False, None]
MOSTLY = st.sampled_from([True] * 9 + [False])
SHAPES = st.sampled_from(["plain"] * 4 + ["array"])
ELEMENTS = st.lists(st.sampled_from(["value", "value", "nested", "other"]), max_size=3)
OTHERS = SCALARS | st.just({"a": 1})


@st.composite
def events_for(draw: st.DrawFn, pattern: dict[str, Any]) -> dict[str, Any]:
    """An event of the pattern's shape, with values that mostly fit, in arrays now and then."""
    return event_for(draw, pattern)


def event_for(draw: st.DrawFn, pattern: dict[str, Any]) -> dict[str, Any]:
    event: dict[str, Any] = {}
    for name, wanted in pattern.items():
        if name == "$or":
            event |= event_for(draw, draw(st.sampled_from(wanted)))
        elif isinstance(wanted, dict):
            event[name] = in_arrays(draw, lambda inner=wanted: event_for(draw, inner))
        else:
            fitting = [value for value in POOL if any(value_fits(one, value) for one in wanted)]
            if fitting and draw(MOSTLY):
                event[name] = in_arrays(draw, lambda likely=fitting: draw(st.sampled_from(likely)))
            elif not draw(MOSTLY):
                event[name] = in_arrays(draw, lambda: draw(SCALARS))
    return event


def in_arrays(draw: st.DrawFn, value: Callable[[], Any]) -> Any:
    if draw(SHAPES) == "plain":
        return value()
    made = {"value": value, "nested": lambda: [value()], "other": lambda: draw(OTHERS)}
    return [made[kind]() for kind in draw(ELEMENTS)]


# --- the matcher agrees -----------------------------------------------------------------------------------------------


def compare(
    model: Callable[[dict[str, Any], dict[str, Any]], bool], documents: st.SearchStrategy[dict[str, Any]]
) -> None:
    outcomes: Counter[bool] = Counter()

    @settings(max_examples=300, deadline=None, database=None)
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        pattern = data.draw(documents, label="pattern")
        event = data.draw(events_for(pattern), label="event")
        expected = model(pattern, event)
        outcomes[expected] += 1
        note(f"matches: {expected}")
        assert patterns.compile(pattern).matches(event) is expected

    agree()
    assert min(outcomes[True], outcomes[False]) > 0.1 * outcomes.total(), f"a one-sided test: {outcomes}"


def test_the_matcher_agrees_with_a_walk_down_the_document() -> None:
    compare(lambda pattern, event: walk(pattern, event) != "no", WITH_CHOICES)


def test_the_matcher_agrees_with_a_choice_among_flattened_fields() -> None:
    """How EventBridge itself defines consistency within arrays; the places of arrays, not the levels, are compared."""
    compare(flat_match, PLAIN)


def test_the_exact_strings_lose_no_event() -> None:
    """In an event that matches, one of them is there: an index that looks for them finds the pattern."""
    outcomes: Counter[bool] = Counter()

    @settings(max_examples=100, deadline=None, database=None)
    @given(st.data())
    def found(data: st.DataObject) -> None:
        exact_here = {"a": data.draw(st.lists(STRINGS, min_size=1, max_size=2), label="exact")}
        other = data.draw(WITH_CHOICES, label="other")
        pattern = data.draw(st.sampled_from([{**other, **exact_here}, {"$or": [exact_here, {"a": ["x"], **other}]}]))
        event = data.draw(events_for(pattern), label="event")
        compiled = patterns.compile(pattern)
        exact, matched = compiled.exact("a"), compiled.matches(event)
        outcomes[exact is not None and matched] += 1
        if exact is not None and matched:
            assert exact & {value for value in leaves(event["a"]) if isinstance(value, str)}

    found()
    assert outcomes[True] > 0.1 * outcomes.total(), f"hardly anything was asked: {outcomes}"


# --- names with dots --------------------------------------------------------------------------------------------------


def regrouped(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    """The same with some of its paths joined by dots. (Of an object with one field, so that no name is there twice.)"""
    made: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, dict):
            inner = regrouped(draw, value)
            if inner and OR not in inner and draw(st.booleans()):
                made |= {f"{name}.{part}": one for part, one in inner.items()}
                continue
            value = inner
        elif isinstance(value, list):
            value = [regrouped(draw, one) if isinstance(one, dict) and is_choice(name, one) else one for one in value]
        made[name] = value
    return made


OR = "$or"


def is_choice(name: str, one: dict[str, Any]) -> bool:
    """An object in an array of a pattern is an operator, unless it is an alternative."""
    return name == OR or not (set(one) & set(patterns.OPERATORS))


def test_names_joined_by_dots_are_paths() -> None:
    """In patterns and in events: however either is written, it means what its nested form means."""
    outcomes: Counter[bool] = Counter()

    @settings(max_examples=300, deadline=None, database=None)
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        pattern = data.draw(WITH_CHOICES, label="pattern")
        event = data.draw(events_for(pattern), label="event")
        expected = walk(pattern, event) != "no"
        outcomes[expected] += 1
        joined = data.draw(st.composite(regrouped)(pattern), label="joined pattern")
        flat = data.draw(st.composite(regrouped)(event), label="joined event")
        assert patterns.compile(joined).matches(event) is expected
        assert patterns.compile(pattern).matches(flat) is expected
        assert patterns.compile(joined).matches(flat) is expected

    agree()
    assert min(outcomes[True], outcomes[False]) > 0.1 * outcomes.total(), f"a one-sided test: {outcomes}"
