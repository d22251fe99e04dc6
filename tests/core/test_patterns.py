"""Patterns as EventBridge documents them: operator by operator, what is refused and where, and hostile input."""

from __future__ import annotations

import json
import math
import time
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato import errors
from ostinato.core import patterns


def fits(values: list[Any], value: Any) -> bool:
    return patterns.compile({"field": values}).matches({"field": value})


def matches(pattern: dict[str, Any], event: Any) -> bool:
    return patterns.compile(pattern).matches(event)


# --- operators: the values of a field, a value that fits, a value that does not ---------------------------------------

OPERATORS: list[tuple[list[Any], list[Any], list[Any]]] = [
    # exact values
    (["running"], ["running"], ["Running", "running ", "", None, 1, True, {}, []]),
    (["initializing", "running"], ["running", "initializing"], ["stopped"]),
    ([""], [""], [None, " "]),
    ([None], [None], ["", "null", 0, False]),
    ([True], [True], [False, 1, 1.0, "true"]),
    ([False], [False], [True, 0, 0.0, "", None]),
    ([1], [1, 1.0], [True, "1", 2]),
    ([0], [0, 0.0, -0.0], [False, None, ""]),
    ([300], [300, 300.0, 3.0e2], [300.1, "300"]),
    ([3.018e2], [301.8], [301, 302]),
    ([2**53 + 1], [2**53 + 1], [2**53, float(2**53)]),
    (["a", 1, None], ["a", 1, None], ["b", True, 2, False]),
    # prefix
    ([{"prefix": "2017-10-02"}], ["2017-10-02", "2017-10-02T18:43:48Z"], ["2017-10-03", " 2017-10-02", 2017, None]),
    ([{"prefix": ""}], ["", "any"], [1, None]),
    ([{"prefix": {"equals-ignore-case": "EventB"}}], ["EventBridge", "eventb", "EVENTBUS"], ["event", "anEventB", 1]),
    # suffix
    ([{"suffix": ".png"}], ["a.png", ".png"], ["a.PNG", "a.png.bak", None]),
    ([{"suffix": {"equals-ignore-case": "tBridge"}}], ["EventBridge", "TBRIDGE"], ["bridges", "bridge", True]),
    # equals-ignore-case
    ([{"equals-ignore-case": "alice"}], ["alice", "ALICE", "Alice"], ["alic", "alice ", None]),
    ([{"equals-ignore-case": "ÄRGER"}], ["ärger"], ["arger"]),
    # anything-but
    ([{"anything-but": "initializing"}], ["running", "", None, True, 5], ["initializing", [], {}]),
    ([{"anything-but": 123}], [124, "123", None], [123, 123.0]),
    ([{"anything-but": 1}], [True, 2], [1, 1.0]),
    ([{"anything-but": ["stopped", "overloaded"]}], ["running", 1], ["stopped", "overloaded"]),
    ([{"anything-but": [100, 200, 300]}], [101, "100"], [100, 200.0, 3e2]),
    ([{"anything-but": {"prefix": "init"}}], ["running", "in", 1], ["init", "initializing"]),
    ([{"anything-but": {"prefix": ["init", "error"]}}], ["running"], ["initializing", "error-1"]),
    ([{"anything-but": {"suffix": ".txt"}}], [".txt.bak", None], ["a.txt"]),
    ([{"anything-but": {"suffix": [".txt", ".rtf"]}}], ["a.png"], ["a.txt", "a.rtf"]),
    ([{"anything-but": {"equals-ignore-case": "initializing"}}], ["init"], ["initializing", "INITIALIZING"]),
    ([{"anything-but": {"equals-ignore-case": ["stopped", "lost"]}}], ["running"], ["STOPPED", "Lost"]),
    ([{"anything-but": {"wildcard": "*/lib/*"}}], ["/usr/bin/x", 7], ["/usr/lib/x", "/lib/"]),
    ([{"anything-but": {"wildcard": ["*/lib/*", "*/bin/*"]}}], ["/etc/x"], ["/usr/lib/x", "/usr/bin/x"]),
    # numeric
    ([{"numeric": [">", 0, "<=", 5]}], [0.001, 1, 5, 5.0], [0, 5.001, -1, "3", True, None]),
    ([{"numeric": [">=", 0, "<", 5]}], [0, 4.999], [5, -0.001, False]),
    ([{"numeric": ["<", 10]}], [9, -1e308], [10, 11]),
    ([{"numeric": ["<=", 10]}], [10, -(10**400)], [10.5]),
    ([{"numeric": [">", 10]}], [10.5, 10**400], [10]),
    ([{"numeric": [">=", 10]}], [10], [9.99]),
    ([{"numeric": ["=", 3.018e2]}], [301.8], [301, "301.8"]),
    ([{"numeric": ["=", 1]}], [1, 1.0], [True]),
    # wildcard
    ([{"wildcard": "dir/*.png"}], ["dir/a.png", "dir/.png", "dir/sub/b.png"], ["dir/a.jpg", "x/dir/a.png", "dir/png"]),
    ([{"wildcard": "*"}], ["", "any"], [1, None]),
    ([{"wildcard": "plain"}], ["plain"], ["plainer", "Plain"]),
    ([{"wildcard": "a*a"}], ["aa", "aba", "aaa"], ["a", "ab", ""]),
    ([{"wildcard": "*b*b*"}], ["bb", "abcbd"], ["b", "acd"]),
    ([{"wildcard": "a*bc*c"}], ["abcc", "axbcyc"], ["abc"]),
    ([{"wildcard": r"10\*5"}], ["10*5"], ["1005", "10x5", r"10\*5"]),
    ([{"wildcard": r"C:\\*"}], ["C:\\", "C:\\x"], ["C:x", "C:\\\\"[:2]]),
    ([{"wildcard": r"\*\\\**"}], ["*\\*", "*\\*x"], ["*\\", "x"]),
    ([{"wildcard": "a.c*"}], ["a.c"], ["abc"]),
    # exists
    ([{"exists": True}], ["", 0, None, False, [1], [[None]]], [[], {}, {"x": 1}, [{}], [[]]]),
    ([{"exists": False}], [[], {}, {"x": 1}, [{"x": 1}], [[]]], ["", 0, None, False, [1], [{}, 1]]),
    # cidr
    (
        [{"cidr": "10.0.0.0/24"}],
        ["10.0.0.0", "10.0.0.255"],
        ["10.0.1.0", "9.255.255.255", "10.0.0", "x", "", 167772160],
    ),
    ([{"cidr": "10.1.2.3/8"}], ["10.255.0.1"], ["11.0.0.0"]),
    ([{"cidr": "0.0.0.0/0"}], ["255.255.255.255"], ["::1", "256.0.0.1", "1" * 10_000]),
    ([{"cidr": "10.0.0.7/32"}], ["10.0.0.7"], ["10.0.0.8"]),
    ([{"cidr": "2001:db8::/32"}], ["2001:db8::1", "2001:0DB8:1::"], ["2001:db9::", "10.0.0.1", "2001:db8::1%eth0"]),
    # several in one array: any of them
    ([{"prefix": "a"}, {"suffix": "z"}, "m", {"numeric": [">", 9]}], ["ab", "yz", "m", 10], ["mm", 9, None]),
    ([{"exists": False}, "x", {"prefix": "y"}], ["x", "yy", {}], ["z", None]),
    ([{"anything-but": "a"}, {"anything-but": "b"}], ["a", "b"], []),
]


@pytest.mark.parametrize(("values", "fitting", "other"), OPERATORS, ids=[json.dumps(row[0]) for row in OPERATORS])
def test_operators(values: list[Any], fitting: list[Any], other: list[Any]) -> None:
    for value in fitting:
        assert fits(values, value), value
    for value in other:
        assert not fits(values, value), value


@pytest.mark.parametrize(("values", "fitting", "other"), OPERATORS, ids=[json.dumps(row[0]) for row in OPERATORS])
def test_in_an_array_one_element_must_fit(values: list[Any], fitting: list[Any], other: list[Any]) -> None:
    if {"exists": False} in values:
        return  # in an array the field is there
    plain = [value for value in other if not isinstance(value, (dict, list))]
    for value in fitting:
        assert fits(values, [*plain, value])
        assert fits(values, [[[value], {"other": 1}], *plain])
    assert not fits(values, [plain, {"other": 1}])


# --- fields, arrays and alternatives ----------------------------------------------------------------------------------

EC2 = {
    "version": "0",
    "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
    "detail-type": "EC2 Instance State-change Notification",
    "source": "aws.ec2",
    "time": "2017-12-22T18:43:48Z",
    "resources": ["arn:aws:ec2:us-west-1:123456789012:instance/i-1", "arn:aws:ec2:us-west-1:123456789012:instance/i-2"],
    "detail": {"instance-id": "i-1234", "state": "terminated", "c-count": 3, "responseElements": None, "version": ""},
}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"source": ["aws.ec2"], "detail-type": [EC2["detail-type"]], "detail": {"state": ["terminated"]}}, True),
        ({"source": ["aws.ec2"], "detail": {"state": ["running"]}}, False),
        ({"source": ["aws.fargate", "aws.ec2"]}, True),
        ({"state": ["terminated"]}, False),
        ({"detail": ["terminated"]}, False),
        ({"source": {"state": ["terminated"]}}, False),
        ({"detail.state": ["terminated"]}, True),
        ({"resources": ["arn:aws:ec2:us-west-1:123456789012:instance/i-2"]}, True),
        ({"resources": [{"suffix": "/i-3"}]}, False),
        ({"detail": {"responseElements": [None]}}, True),
        ({"detail": {"version": [""]}}, True),
        ({"detail": {"version": [None]}}, False),
        ({"detail": {"nothing": [{"exists": False}]}}, True),
        ({"detail": {"state": [{"exists": False}]}}, False),
        ({"detail": [{"exists": True}]}, False),
        ({"detail": [{"exists": False}]}, True),
        ({"other": {"deep": {"nothing": [{"exists": False}]}}}, True),
        ({"source": {"deep": [{"exists": False}]}}, True),
        ({"other": {"nothing": [{"exists": True}]}}, False),
        ({"other": {"nothing": [{"anything-but": "x"}]}}, False),
        ({"$or": [{"source": ["aws.s3"]}, {"detail": {"c-count": [3]}}]}, True),
        ({"$or": [{"source": ["aws.s3"]}, {"detail": {"c-count": [4]}}]}, False),
        ({"source": ["aws.s3"], "$or": [{"id": [{"exists": True}]}, {"x": [1]}]}, False),
        ({"detail": {"$or": [{"c-count": [{"numeric": [">", 0, "<=", 5]}]}, {"state": ["lost"]}]}}, True),
        ({"detail": {"$or": [{"c-count": [9], "state": ["terminated"]}, {"c-count": [3], "state": ["lost"]}]}}, False),
        ({"$or": [{"x": [1]}, {"$or": [{"x": [2]}, {"source": ["aws.ec2"]}]}]}, True),
        ({"$or": [{"source": ["aws.ec2"], "$or": [{"x": [1]}, {"x": [2]}]}, {"x": [3]}]}, False),
        ({"$or": [{"x": [{"exists": False}]}, {"x": [1]}]}, True),
    ],
)
def test_fields(pattern: dict[str, Any], expected: bool) -> None:
    assert matches(pattern, EC2) is expected


@pytest.mark.parametrize(
    ("pattern", "event"),
    [
        ({"$or": [{"prefix": "a"}, {"suffix": "z"}]}, {"$or": "ab"}),
        ({"$or": ["x"]}, {"$or": "x"}),
        ({"$or": [{"prefix": "a"}]}, {"$or": "ab"}),
        ({"$or": ["x", {"exists": False}]}, {}),
        ({"$or": {"deep": ["x"]}}, {"$or": {"deep": "x"}}),
    ],
)
def test_or_is_a_plain_name_unless_two_objects_follow(pattern: dict[str, Any], event: dict[str, Any]) -> None:
    assert matches(pattern, event)


LINES = {"lines": {"sku": ["scarf"], "price": [{"numeric": ["<", 100]}]}}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([{"sku": "scarf", "price": 35}], True),
        ([{"sku": "jacket", "price": 120}, {"sku": "scarf", "price": 35}], True),
        ([{"sku": "jacket", "price": 35}, {"sku": "scarf", "price": 120}], False),
        ([{"sku": "scarf"}, {"price": 35}], False),
        ([{"sku": ["jacket", "scarf"], "price": [120, 35]}], True),
        ([[[{"sku": "scarf", "price": 35}]], 7], True),
        ([[{"sku": "scarf"}], [{"price": 35}]], False),
        ([], False),
        ({"sku": "scarf", "price": 35}, True),
        ("scarf", False),
    ],
)
def test_the_fields_of_one_object_match_within_one_element(lines: Any, expected: bool) -> None:
    assert matches(LINES, {"lines": lines}) is expected


def test_array_consistency_holds_at_each_level() -> None:
    pattern = {"a": {"name": ["x"], "b": {"c": [1], "d": [2]}}}
    assert matches(pattern, {"a": [{"name": "y"}, {"name": "x", "b": [{"c": 0}, {"c": 1, "d": 2}]}]})
    assert not matches(pattern, {"a": [{"name": "x", "b": [{"c": 1}, {"d": 2}]}]})
    assert not matches(pattern, {"a": [{"name": "x", "b": []}, {"name": "y", "b": [{"c": 1, "d": 2}]}]})


def test_what_is_absent_is_absent_beside_what_was_found_or_else_everywhere() -> None:
    alone = {"lines": {"refund": [{"exists": False}]}}
    assert matches(alone, {"lines": [{"sku": "scarf"}, {"sku": "hat"}]})
    assert not matches(alone, {"lines": [{"sku": "scarf"}, {"refund": 1}]})
    assert matches(alone, {"lines": []})
    assert matches(alone, {})
    beside = {"lines": {"sku": ["scarf"], "refund": [{"exists": False}]}}
    assert matches(beside, {"lines": [{"sku": "scarf"}, {"sku": "hat", "refund": 1}]})
    assert not matches(beside, {"lines": [{"sku": "scarf", "refund": 1}, {"sku": "hat"}]})
    assert not matches(beside, {})


# --- exact strings, for an index over rules ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ({"source": ["a", "b"]}, ["source"], {"a", "b"}),
        ({"source": ["a"]}, ["detail-type"], None),
        ({"source": ["a"]}, [], None),
        ({"source": ["a"]}, ["source", "x"], None),
        ({"detail": {"status": ["a"]}}, ["detail", "status"], {"a"}),
        ({"detail": {"status": ["a"]}}, ["detail"], None),
        ({"source": ["a", 1]}, ["source"], None),
        ({"source": ["a", None]}, ["source"], None),
        ({"source": ["a", {"prefix": "b"}]}, ["source"], None),
        ({"source": ["a", {"exists": False}]}, ["source"], None),
        ({"$or": [{"source": ["a"]}, {"source": ["b", "c"]}]}, ["source"], {"a", "b", "c"}),
        ({"$or": [{"source": ["a"]}, {"x": ["b"]}]}, ["source"], None),
        ({"source": ["a"], "$or": [{"x": ["a"]}, {"y": ["b"]}]}, ["source"], {"a"}),
        ({"source": ["a", "b"], "$or": [{"source": ["a"]}, {"source": ["a"]}]}, ["source"], {"a"}),
        ({"detail": {"$or": [{"s": ["a"]}, {"s": ["b"]}]}}, ["detail", "s"], {"a", "b"}),
        ({"$or": [{"d": {"s": ["a"]}}, {"d": {"s": ["b"]}}]}, ["d", "s"], {"a", "b"}),
    ],
)
def test_the_exact_strings_of_a_field(pattern: dict[str, Any], path: list[str], expected: set[str] | None) -> None:
    assert patterns.compile(pattern).exact(*path) == expected


# --- what is refused, and where ---------------------------------------------------------------------------------------


def nested(depth: int) -> dict[str, Any]:
    document: dict[str, Any] = {"x": [1]}
    for _ in range(depth - 1):
        document = {"x": document}
    return document


REFUSED: list[tuple[Any, str, str]] = [
    (None, "pattern", "must be an object"),
    ([], "pattern", "must be an object"),
    ("x", "pattern", "not a string"),
    ({}, "pattern", "is empty: name at least one field"),
    ({"a": {}}, "pattern.a", "is empty"),
    ({"a": "x"}, "pattern.a", r"put it in \[ \]"),
    ({"a": {"b": None}}, "pattern.a.b", "not null"),
    ({"a": True}, "pattern.a", "not true or false"),
    ({"a": []}, "pattern.a", "empty array"),
    ({"a": ["x", []]}, "pattern.a[1]", "not an array"),
    ({"a": [{}]}, "pattern.a[0]", "is empty: use one of anything-but"),
    ({"a": [math.nan]}, "pattern.a[0]", "finite"),
    ({"a": ["x", math.inf]}, "pattern.a[1]", "finite"),
    ({"a": [{"prefx": "x"}]}, "pattern.a[0].prefx", "did you mean 'prefix'"),
    ({"a": [{"anything_but": "x"}]}, "pattern.a[0].anything_but", "did you mean 'anything-but'"),
    ({"a": [{"regex": "x"}]}, "pattern.a[0].regex", "use anything-but, cidr"),
    ({"a": [{"k" * 99: "x"}]}, "pattern.a[0]." + "k" * 64 + "…", "use anything-but, cidr"),
    ({"a": [{"prefix": "x", "suffix": "y"}]}, "pattern.a[0]", "an object for each"),
    ({"a": [{"prefix": 1}]}, "pattern.a[0].prefix", "must be a string, not a number"),
    ({"a": [{"prefix": ["x"]}]}, "pattern.a[0].prefix", "must be a string, not an array"),
    ({"a": [{"prefix": {"ignore-case": "x"}}]}, "pattern.a[0].prefix.ignore-case", "did you mean 'equals-ignore-case'"),
    ({"a": [{"suffix": {"equals-ignore-case": None}}]}, "pattern.a[0].suffix.equals-ignore-case", "must be a string"),
    ({"a": [{"equals-ignore-case": ["x"]}]}, "pattern.a[0].equals-ignore-case", "must be a string"),
    ({"a": [{"wildcard": 5}]}, "pattern.a[0].wildcard", "must be a string"),
    ({"a": [{"wildcard": "a**b"}]}, "pattern.a[0].wildcard", "in a row at character 2"),
    ({"a": [{"wildcard": "ab\\c"}]}, "pattern.a[0].wildcard", "at character 3"),
    ({"a": [{"wildcard": "a\\\\\\"}]}, "pattern.a[0].wildcard", "at character 4"),
    ({"a": [{"anything-but": None}]}, "pattern.a[0].anything-but", "string or a number, not null"),
    ({"a": [{"anything-but": True}]}, "pattern.a[0].anything-but", "not true or false"),
    ({"a": [{"anything-but": []}]}, "pattern.a[0].anything-but", "empty array"),
    ({"a": [{"anything-but": ["x", 1]}]}, "pattern.a[0].anything-but[1]", "must be a string"),
    ({"a": [{"anything-but": [1, "x"]}]}, "pattern.a[0].anything-but[1]", "must be a number"),
    ({"a": [{"anything-but": [1, math.nan]}]}, "pattern.a[0].anything-but[1]", "finite"),
    ({"a": [{"anything-but": [["x"]]}]}, "pattern.a[0].anything-but[0]", "not an array"),
    ({"a": [{"anything-but": {"numeric": [">", 1]}}]}, "pattern.a[0].anything-but.numeric", "use equals-ignore-case"),
    ({"a": [{"anything-but": {"prefix": ""}}]}, "pattern.a[0].anything-but.prefix", "at least one character"),
    ({"a": [{"anything-but": {"suffix": ["x", ""]}}]}, "pattern.a[0].anything-but.suffix[1]", "empty suffix"),
    ({"a": [{"anything-but": {"wildcard": ["*", "**"]}}]}, "pattern.a[0].anything-but.wildcard[1]", "in a row"),
    ({"a": [{"anything-but": {"prefix": "x", "suffix": "y"}}]}, "pattern.a[0].anything-but", "an object for each"),
    ({"a": [{"numeric": 5}]}, "pattern.a[0].numeric", "not a number"),
    ({"a": [{"numeric": []}]}, "pattern.a[0].numeric", "one or two comparisons"),
    ({"a": [{"numeric": [">"]}]}, "pattern.a[0].numeric", "one or two comparisons"),
    ({"a": [{"numeric": [">", 0, "<"]}]}, "pattern.a[0].numeric", "one or two comparisons"),
    ({"a": [{"numeric": ["=>", 0]}]}, "pattern.a[0].numeric[0]", "=, <, <=, > and >="),
    ({"a": [{"numeric": [0, ">"]}]}, "pattern.a[0].numeric[0]", "=, <, <=, > and >="),
    ({"a": [{"numeric": [[], 0]}]}, "pattern.a[0].numeric[0]", "=, <, <=, > and >="),
    ({"detail": {"price": [{"numeric": [">", "0"]}]}}, "pattern.detail.price[0].numeric[1]", "not a string"),
    ({"a": [{"numeric": [">", True]}]}, "pattern.a[0].numeric[1]", "not true or false"),
    ({"a": [{"numeric": ["<", math.nan]}]}, "pattern.a[0].numeric[1]", "finite"),
    ({"a": [{"numeric": ["<", 5, ">", 0]}]}, "pattern.a[0].numeric[0]", "begins with > or >="),
    ({"a": [{"numeric": ["=", 5, "<", 9]}]}, "pattern.a[0].numeric[0]", "begins with > or >="),
    ({"a": [{"numeric": [">", 5, ">", 9]}]}, "pattern.a[0].numeric[2]", "ends with < or <="),
    ({"a": [{"numeric": [">", 5, "<", 5]}]}, "pattern.a[0].numeric[3]", "above the lower bound"),
    ({"a": [{"numeric": [">=", 9, "<=", 5]}]}, "pattern.a[0].numeric[3]", "above the lower bound"),
    ({"a": [{"exists": "yes"}]}, "pattern.a[0].exists", "true or false"),
    ({"a": [{"exists": 0}]}, "pattern.a[0].exists", "true or false"),
    ({"a": [{"cidr": 10}]}, "pattern.a[0].cidr", "must be a string"),
    ({"a": [{"cidr": "10.0.0.0"}]}, "pattern.a[0].cidr", "a slash"),
    ({"a": [{"cidr": "10.0.0.0/255.0.0.0"}]}, "pattern.a[0].cidr", "number of bits"),
    ({"a": [{"cidr": "10.0.0.0/33"}]}, "pattern.a[0].cidr", "up to 32"),
    ({"a": [{"cidr": "10.0.0/8"}]}, "pattern.a[0].cidr", "10.0.0.0/24"),
    ({"a": [{"cidr": "::/129"}]}, "pattern.a[0].cidr", "up to 128"),
    ({"a": [{"cidr": "10.0.0.0/8/8"}]}, "pattern.a[0].cidr", "number of bits"),
    ({"a": [{"cidr": "10.0.0.0/²"}]}, "pattern.a[0].cidr", "number of bits"),
    ({"a": [{"cidr": "fe80::1%eth0/64"}]}, "pattern.a[0].cidr", "number of bits"),
    ({"$or": []}, "pattern.$or", "empty array"),
    ({"$or": [{"a": [1]}]}, "pattern.$or[0].a", "two or more objects"),
    ({"$or": [{"a": [1]}, "x"]}, "pattern.$or[0].a", "two or more objects"),
    ({"$or": [{"a": [1]}, {"prefix": "x"}]}, "pattern.$or[0].a", "two or more objects"),
    ({"$or": [{"a": [1]}, {}]}, "pattern.$or[1]", "is empty"),
    ({"b": {"$or": [{"a": [1]}, {"a": {"c": [{"exists": 1}]}}]}}, "pattern.b.$or[1].a.c[0].exists", "true or false"),
    (nested(33), "pattern" + ".x" * 32, "32 levels"),
    ({"a": list(range(1_001))}, "pattern", "1,000 values"),
    ({"a": [{"anything-but": list(range(1_001))}]}, "pattern", "1,000 values"),
    ({f"n{i}": [1] for i in range(1_001)}, "pattern", "1,000 values"),
    ({"a": ["x" * 65_600]}, "pattern", "65,610 bytes and the limit is 65,536"),
    ({"a": ["\ud800"]}, "pattern", "surrogate"),
    ({"\ud800": []}, "pattern.?", "empty array"),
    ({1: ["x"]}, "pattern", "names are strings"),
    ({"a": [b"x"]}, "pattern.a[0]", "not JSON"),
]


@pytest.mark.parametrize(("document", "field", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_not_a_pattern_is_refused_by_place(document: Any, field: str, message: str) -> None:
    with pytest.raises(errors.InvalidInput, match=message) as caught:
        patterns.compile(document)
    assert caught.value.details["field"] == field
    assert caught.value.message.startswith(field) or message == "surrogate"


def test_the_place_begins_with_the_field_that_the_caller_names() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        patterns.compile({"a": []}, field="rule.when")
    assert caught.value.details["field"] == "rule.when.a"


def test_the_limits_themselves_are_allowed() -> None:
    patterns.compile(nested(32))
    patterns.compile({"a": list(range(999)), "b": [{"anything-but": "x"}]})
    patterns.compile({"a": ["x" * (65_536 - len('{"a":[""]}'))]})


# --- hostile input ----------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*patterns.OPERATORS, "$or", "a", ""]), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None, database=None)
@given(JSON, JSON)
def test_any_json_is_a_pattern_or_refused(document: Any, event: Any) -> None:
    try:
        pattern = patterns.compile(document)
    except errors.InvalidInput as error:
        refused = error.details["field"]
        refused.encode()  # it is sent to the caller
        return
    assert pattern.matches(event) in (True, False)
    assert pattern.exact("a") is None or pattern.exact("a")


def deep(make: Any, depth: int = 100_000) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = make(value)
    return value


@pytest.mark.parametrize("make", [lambda value: [value], lambda value: {"a": value}, lambda value: [{"a": value}]])
def test_depth_exhausts_nothing(make: Any) -> None:
    bottomless = deep(make)
    for document in (bottomless, {"a": bottomless}, {"a": [bottomless]}, {"a": [{"anything-but": bottomless}]}):
        with pytest.raises(errors.InvalidInput):
            patterns.compile(document)
    for document in ({"a": ["x"]}, {"a": {"a": {"a": ["x"]}}}, {"a": {"b": [{"exists": False}]}}, nested(32)):
        for event in (bottomless, {"a": bottomless}):
            assert patterns.compile(document).matches(event) in (True, False)
    assert fits(["x"], deep(lambda value: [value]))


def test_huge_numbers_are_compared_or_refused() -> None:
    assert not fits([{"numeric": ["<", 5]}], 10**5_000)
    assert not fits([5], math.nan)
    with pytest.raises(errors.InvalidInput):
        patterns.compile({"a": [{"numeric": [">", 10**5_000, "<", "x"]}]})


def test_an_event_may_be_any_mapping_and_nothing_else() -> None:
    pattern = patterns.compile({"a": {"b": ["x"]}, "c": [{"exists": False}]})
    assert pattern.matches(MappingProxyType({"a": MappingProxyType({"b": "x"})}))
    assert pattern.matches(MappingProxyType({"a": ({"b": ("x",)},), "c": MappingProxyType({})}))
    absent: Any = patterns.compile({"c": [{"exists": False}]})
    assert not any(absent.matches(event) for event in (None, [], [{}], "x", 5, True))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("*a" * 500 + "*b", "a" * 100_000),
        ("a*" * 500 + "b", "a" * 100_000 + "c"),
        ("*" + "a" * 5_000 + "b*", "a" * 100_000),
        ("*" + "ab" * 2_000 + "c*", "ab" * 50_000),
        ("*" + "a" * 60 + "b" + "a" * 60 + "*c*", "a" * 100_000),
    ],
)
def test_no_wildcard_takes_long(text: str, value: str) -> None:
    pattern = patterns.compile({"field": [{"wildcard": text}]}, saved=True)
    began = time.process_time()
    assert not pattern.matches({"field": value})
    assert time.process_time() - began < 0.25


# --- names with dots, and too many wildcards --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        {"detail": {"state": {"status": "running"}}},
        {"detail": {"state.status": "running"}},
        {"detail.state": {"status": "running"}},
        {"detail.state.status": "running"},
        {"detail": {"state": [{"status": "off"}, {"status": "running"}]}},
        {"detail": {"state": {"status": "off"}, "state.status": "running"}},
        {"detail": {"state": "leaf", "state.status": "running"}},
        {"detail": {"state": [], "state.status": "running"}},
        {"detail": {"state": [{"status": "running"}]}, "detail.state.other": 1},
    ],
)
@pytest.mark.parametrize(
    "pattern",
    [
        {"detail": {"state": {"status": ["running"]}}},
        {"detail": {"state.status": ["running"]}},
        {"detail.state": {"status": ["running"]}},
        {"detail.state.status": ["running"]},
        {"$or": [{"detail.state.status": ["running"]}, {"x": ["y"]}]},
    ],
)
def test_a_dot_joins_the_names_of_a_path(pattern: Any, event: Any) -> None:
    compiled = patterns.compile(pattern)
    assert compiled.matches(event)
    assert not compiled.matches(
        {"detail": {"state.stat.us": "running", "status": "running"}, "state.status": "running"}
    )


@pytest.mark.parametrize("name", ["a.", ".a", "a..b", ".", "..", "a.$or", "$or.a"])
def test_a_name_with_an_empty_part_is_a_path_like_others(name: str) -> None:
    assert patterns.compile({name: ["x"]}).matches({name: "x"})
    assert not patterns.compile({name: ["x"]}).matches({"a": "x", "b": "x"})


def test_fields_of_one_object_may_be_written_in_both_ways() -> None:
    compiled = patterns.compile({"lines.sku": ["scarf"], "lines": {"price": [35]}, "lines.note": [{"exists": False}]})
    assert compiled.matches({"lines": [{"sku": "jacket", "price": 120}, {"sku": "scarf", "price": 35}]})
    assert not compiled.matches({"lines": [{"sku": "jacket", "price": 35}, {"sku": "scarf", "price": 120}]})
    assert not compiled.matches({"lines": [{"sku": "scarf", "price": 35}], "lines.note": "x"})


@pytest.mark.parametrize(
    ("pattern", "field"),
    [
        ({"a": {"b": ["x"]}, "a.b": ["y"]}, "p.a.b"),
        ({"a.b": ["x"], "a": {"b": ["y"]}}, "p.a.b"),
        ({".".join("a" * 33): ["x"]}, "p." + ".".join("a" * 32)[:63] + ".…"),
        ({"a": {".".join("b" * 32): ["x"]}}, "p.a." + ".".join("b" * 32)),
        ({"a": [{"wildcard": "*a" * 60}], "b": [{"wildcard": "*a" * 41}]}, "p.b[0].wildcard"),
        ({"a": [{"wildcard": "*a"}] * 101}, "p.a[100].wildcard"),
        ({"a": [{"anything-but": {"wildcard": ["*a"] * 101}}]}, "p.a[0].anything-but.wildcard[100]"),
    ],
)
def test_what_is_there_twice_or_too_often_is_refused_by_its_place(pattern: Any, field: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        patterns.compile(pattern, "p")
    assert caught.value.details["field"] == field
    if "a" * 33 not in str(pattern) and len(str(pattern)) > 300:
        assert "100" in caught.value.message or "32 levels" in caught.value.message


def test_a_pattern_that_was_saved_before_goes_on() -> None:
    """Of a rule that was saved under other limits, the tenant's other rules must not suffer."""
    assert patterns.compile({"a": [{"wildcard": "*a"}] * 200}, saved=True).matches({"a": "bca"})
    assert patterns.compile({"a": {"b": ["x"]}, "a.b": ["y"]}, saved=True).matches({"a.b": "y"})


def test_an_event_with_dots_is_read_however_deep_or_wide_it_is() -> None:
    deep: Any = {"x.y": 1}
    for _ in range(5_000):
        deep = {"a": [[deep]]}
    assert not patterns.compile({"a.b": ["x"]}).matches(deep)
    assert not patterns.compile({"a.b": ["x"]}).matches({".".join(["a"] * 10_000): "x", 5: {"a.b": 1}})  # pyright: ignore[reportArgumentType]
    assert patterns.compile({"a.b": ["x"]}).matches({"a": {"b": "x"}, ".".join(["a"] * 10_000): "x"})
