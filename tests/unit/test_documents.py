"""Documents from outside: messages that stay short and can be sent back, and names that are nearly right."""

import math
import time
from typing import Any

import msgspec
import pytest

from ostinato import errors
from ostinato.core import documents


class Part(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    size: int = 0
    more: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("document", "field", "message"),
    [
        (None, "part", "part must be an object with names and values, not None"),
        ({1: 2}, "part", "part must be an object with names and values, not an object"),
        ({}, "part.name", "part.name is missing: it is required"),
        (
            {"nam": "x"},
            "part.nam",
            "part.nam is not a known field: did you mean 'name'? the fields are name, size, more",
        ),
        ({"name": "x", "size": "1"}, "part.size", "part.size is not valid: Expected `int`, got `str`"),
        ({"name": "x", "more": {1: 2}}, "part.more", "part.more is not valid: Expected `str`, got `int`"),
    ],
)
def test_an_error_names_the_field_and_the_way_out(document: Any, field: str, message: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.read(document, Part, "part")
    assert caught.value.message == message
    assert caught.value.details["field"].startswith(field)


def test_a_document_of_its_own_is_named_by_its_fields_alone() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        documents.read({"name": 1}, Part)
    assert caught.value.details["field"] == "name"


def deep() -> Any:
    inside: Any = []
    for _ in range(100_000):
        inside = [inside]
    return inside


LARGE: dict[str, Any] = {
    "long text": "x" * 10**7,
    "lone surrogate": "\ud800",
    "large number": 10**5000,
    "deep list": deep(),
    "object": {"a": 1},
    "bytes": b"\xff" * 100,
    "nothing": None,
}


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_a_value_is_told_in_a_few_words_that_can_be_sent(value: Any) -> None:
    told = documents.short(value)
    assert 0 < len(told) <= 70
    told.encode()


def test_the_nearest_name_is_found_in_a_moment_or_not_at_all() -> None:
    names = [f"processor-{n}" for n in range(10_000)]
    begun = time.process_time()
    assert documents.nearest("procesor-7", names) == "did you mean 'processor-7'? "
    assert documents.nearest("x" * 10**6, names) == ""
    assert documents.nearest("quite another", names) == ""
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("path", "found"),
    [("a", {"b": {"c": 0}}), ("a.b.c", 0), ("a.x", None), ("a.b.c.d", None), ("none", None), ("none.x", None)],
)
def test_a_path_leads_into_objects(path: str, found: Any) -> None:
    assert documents.look_up({"a": {"b": {"c": 0}}, "none": None}, path) == found


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, 11])
def test_a_time_that_is_no_time_is_refused(value: float) -> None:
    with pytest.raises(errors.InvalidInput, match="more than 0 and at most 10 seconds"):
        documents.check_seconds(value, "deadline", 10)


def test_many_names_are_told_as_a_few() -> None:
    assert documents.listed(["a", "b"]) == "a, b"
    assert documents.listed([str(n) for n in range(1007)]) == "0, 1, 2, 3, 4 and 1,002 more"
