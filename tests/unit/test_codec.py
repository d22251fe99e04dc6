"""Payloads: exact, or refused."""

import dataclasses
import datetime
import decimal
import enum
import math
import re
import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import errors
from ostinato.core import codec

_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@dataclasses.dataclass
class Reading:
    value: float
    parts: list[Any] = dataclasses.field(default_factory=list)


class Measure(msgspec.Struct):
    value: float


class Pair(msgspec.Struct, array_like=True):
    left: Any
    right: Any


def round_trip(value: Any) -> Any:
    return codec.decode(codec.encode(value))


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


@given(_json)
def test_everything_that_json_can_say_comes_back_as_it_was(value: Any) -> None:
    back = round_trip(value)
    assert back == value
    assert repr(back) == repr(value), "also 1 and 1.0, 0.0 and -0.0"


@pytest.mark.parametrize("value", ["a\0b", "\0", {"\0": "\0"}, ["😀\u2028\x7f"], "é", "e\u0301"])
def test_odd_text_is_exact(value: Any) -> None:
    assert round_trip(value) == value


@pytest.mark.parametrize("value", [2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**100, -(10**100)])
def test_big_whole_numbers_are_exact(value: int) -> None:
    assert round_trip(value) == value
    assert codec.parse(str(value)) == value


@pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, 0.1 + 0.2, -0.0])
def test_floats_are_exact(value: float) -> None:
    assert repr(round_trip(value)) == repr(value)


@pytest.mark.parametrize("value", ["\ud800", {"a": ["\udfff"]}, {"\ud800": 1}, Reading(1.0, ["\ud800"])])
def test_lone_surrogates_are_refused(value: Any) -> None:
    with pytest.raises(errors.InvalidPayload, match="surrogate"):
        codec.encode(value)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: x,
        lambda x: [1, [x]],
        lambda x: {"a": {"b": (x,)}},
        lambda x: Reading(x),
        lambda x: Reading(1.0, [x]),
        lambda x: [Reading(1.0, [Reading(x)])],
        lambda x: Measure(x),
        lambda x: {"deep": [Measure(x)]},
        lambda x: Pair(1, x),
        lambda x: Pair(1, [Pair({"x": x}, 1)]),
        lambda x: enum.Enum("Level", {"ODD": x}).ODD,  # pyright: ignore[reportAttributeAccessIssue]
        lambda x: [enum.Enum("Level", {"ODD": x}).ODD],  # pyright: ignore[reportAttributeAccessIssue]
    ],
    ids=[
        "bare",
        "list",
        "dict",
        "dataclass",
        "in dataclass",
        "dataclasses",
        "struct",
        "in dict",
        "array",
        "arrays",
        "enum",
        "enums",
    ],
)
def test_numbers_that_json_cannot_say_are_refused_wherever_they_are(number: float, wrap: Any) -> None:
    with pytest.raises(errors.InvalidPayload, match="NaN or infinity"):
        codec.encode(wrap(number))


@pytest.mark.parametrize("value", [None, [None], {"a": None}, Reading(1.0, [None]), Pair(None, 1), "null"])
def test_null_itself_is_fine(value: Any) -> None:
    codec.encode(value)


@pytest.mark.parametrize("value", [object(), lambda: 1, 1j, [object()], {"a": {"b": print}}, type])
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(errors.InvalidPayload, match="cannot be written as JSON"):
        codec.encode(value)


def test_values_may_be_256_levels_deep() -> None:
    value = nested(256)
    assert codec.parse(codec.encode(value)) == codec.parse(codec.encode(value).decode()) == value


@pytest.mark.parametrize("depth", [257, 2_000, 100_000])
def test_deep_values_are_refused(depth: int) -> None:
    with pytest.raises(errors.InvalidPayload, match="the output is nested deeper than 256 levels"):
        codec.encode(nested(depth), "the output")


@pytest.mark.parametrize("depth", [257, 2_000, 100_000])
@pytest.mark.parametrize("kind", [str, str.encode])
def test_deep_json_text_is_refused(depth: int, kind: Callable[[str], Any]) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        with pytest.raises(errors.InvalidPayload, match="the file is nested deeper than 256 levels"):
            codec.parse(kind(text), "the file")


def test_depth_is_counted_outside_of_strings() -> None:
    assert codec.depth(b"[" * 70 + b"]" * 70, 64) == 70
    assert codec.depth(b'["' + b"[" * 100 + b'"]', 64) == 1
    assert codec.depth(b'["\\"' + b"[" * 100 + b'", []]', 64) == 2
    assert codec.depth(b"[]," * 100, 64) == 1


@pytest.mark.parametrize("end", [b"", b"\\", b'"', b'\\"'])
def test_depth_is_found_in_one_pass_whatever_the_text(end: bytes) -> None:
    body = b"[" * 65 + b'"' + b'\\"' * 200_000 + end
    began = time.thread_time()
    assert codec.depth(body, 64) == 65
    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    ("text", "deep"),
    [('["[[[["]', 1), ('["\\\\"[[]]]', 3), ('["a\\"[["]', 1), ("[[]][[[]]]", 3), ('{"a":"b"}', 1)],
)
def test_brackets_in_strings_do_not_count(text: str, deep: int) -> None:
    assert codec.depth(text.encode(), 0) == deep


@given(
    st.recursive(st.text('[]{}"\\\n,:a'), lambda inner: st.lists(inner) | st.dictionaries(st.text('[]{}"\\'), inner))
)
def test_depth_is_that_of_the_value(value: Any) -> None:
    def levels(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value
        return 0 if isinstance(value, str) else 1 + max(map(levels, inner), default=0)

    assert codec.depth(codec.encode(value)) == levels(value)


def test_a_value_that_refers_to_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(errors.InvalidPayload, match="refers to itself"):
        codec.encode(value)


@pytest.mark.parametrize(
    "text", ["1e400", "-1e400", "[1E999]", "NaN", "Infinity", "", "{", "[1,]", b"\xff", b'"\xed\xa0\x80"']
)
def test_bad_json_text_is_refused(text: str | bytes) -> None:
    with pytest.raises(errors.InvalidPayload, match="not valid JSON"):
        codec.parse(text)


class Level(enum.Enum):
    HIGH = "high"


PLACES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: x, ""),
    (lambda x: {"a": [0, {"b": x}]}, ", at a[1].b,"),
    (lambda x: (1, x), ", at [1],"),
    (lambda x: Reading(1.0, [x]), ", at parts[0],"),
    (lambda x: [None, Measure(x)], ", at [1].value,"),
]


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("value", "back"),
    [
        ((1, (2, [3])), [1, [2, [3]]]),
        (Point(1, 2), [1, 2]),
        (Reading(1.5), {"value": 1.5, "parts": []}),
        (Measure(1.5), {"value": 1.5}),
        ({"deep": [Reading(1.5, [Measure(2)])]}, {"deep": [{"value": 1.5, "parts": [{"value": 2}]}]}),
        (Level.HIGH, "high"),
        ({Level.HIGH: 1, 2: 3, 0.5: 4}, {"high": 1, "2": 3, "0.5": 4}),
    ],
)
def test_tuples_objects_and_enums_are_what_they_are_made_of(value: Any, back: Any) -> None:
    assert round_trip(value) == back


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (datetime.datetime(2026, 11, 16, tzinfo=datetime.UTC), "a datetime, which JSON cannot say: give it as text"),
        (datetime.date(2026, 11, 16), "a date, "),
        (datetime.time(12), "a time, "),
        (datetime.timedelta(hours=1), "a duration, which JSON cannot say: give it as a number, by total_seconds()"),
        (decimal.Decimal("1.10"), "a Decimal, "),
        (uuid.UUID(int=1), "a UUID, "),
        (b"text", "bytes, "),
        (bytearray(b"text"), "bytes, "),
        (memoryview(b"text"), "bytes, "),
        ({1, 2}, "a set, which JSON cannot say: give it as a list, by sorted()"),
        (frozenset({1}), "a set, "),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize(("wrap", "place"), PLACES, ids=[place or "bare" for _, place in PLACES])
def test_what_would_come_back_as_something_else_is_refused(value: Any, said: str, wrap: Any, place: str) -> None:
    with pytest.raises(errors.InvalidPayload, match=re.escape(f"the output{place} is {said}")):
        codec.encode(wrap(value), "the output")


@pytest.mark.parametrize("value", [{1: "a", "1": "b"}, [{"x": {1.5: "a", "1.5": "b"}}], {Level.HIGH: 1, "high": 2}])
def test_keys_that_would_become_the_same_are_refused(value: Any) -> None:
    with pytest.raises(errors.InvalidPayload, match=r"has the keys .*, which are the same in JSON: rename one"):
        codec.encode(value)


def test_keys_that_come_back_as_something_else_are_refused() -> None:
    with pytest.raises(errors.InvalidPayload, match="a key of value is a date, which JSON cannot say"):
        codec.encode({datetime.date(2026, 11, 16): 1})


def test_the_limit_counts_bytes_and_names_what_is_too_large() -> None:
    assert codec.encode("é", "x", limit=4) == b'"\xc3\xa9"'
    with pytest.raises(errors.PayloadTooLarge, match="the report has 5 bytes and the limit is 4") as caught:
        codec.encode("éa", "the report", limit=4)
    assert caught.value.details == {"size": 5, "limit": 4}


def test_canonical_bytes_do_not_depend_on_the_order_of_keys() -> None:
    assert codec.encode_canonical({"a": 1, "b": [{"c": 1, "d": 2}]}) == codec.encode_canonical(
        {"b": [{"d": 2, "c": 1}], "a": 1}
    )


LONE = [
    r'"\ud800"',
    r'{"a": "\ud800", "b": 1}',
    r'{"\udfff": "a"}',
    r'["\\\ud83d\ude00", "\ud83d"]',
    r'"\ud800\ud800"',
    r'"\uD800\u0041 and more"',
]


@pytest.mark.parametrize("text", [*LONE, '"\ud800"'], ids=ascii)
def test_a_lone_surrogate_in_json_text_is_said_to_be_one(text: str) -> None:
    for sent in (text, text.encode()) if text.isascii() else (text,):
        with pytest.raises(errors.InvalidPayload, match="the job has text with a lone surrogate"):
            codec.parse(sent, "the job")


@pytest.mark.parametrize("text", ["{", '"abc', r'"\u12', r'["\\ud800"', r'["\ud83d\ude00"', r'{"a": x, "b": "\ud800"}'])
def test_json_text_that_is_cut_off_is_said_to_be_no_json(text: str) -> None:
    with pytest.raises(errors.InvalidPayload, match="the job is not valid JSON"):
        codec.parse(text, "the job")
