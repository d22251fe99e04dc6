"""Output schemas: what is refused when they are saved, and that no schema or value can hold up the process."""

import random
import time
from typing import Any

import pytest

from ostinato import errors
from ostinato.agents import schema

PLACE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "severity": {"type": "integer", "minimum": 1, "maximum": 5},
        "tags": {"type": "array", "items": {"enum": ["fire", "water"]}},
        "at": {"$ref": "#/$defs/point"},
        "when": {"type": "string", "format": "date"},
    },
    "required": ["name", "severity"],
    "additionalProperties": False,
    "$defs": {"point": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]}},
}
RANDOM = "".join(random.Random(1).choices("ab", k=64_000))
"""Text in which nothing repeats, so that matching cannot learn from it."""
SLOW = 1.0
"""Seconds that nothing in here may take; without the bounds it would be minutes."""


def of(inner: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": inner}, **more}


def test_a_value_that_fits() -> None:
    value = {"name": "x", "severity": 3, "tags": ["fire"], "at": {"lat": 1.5}, "when": "2026-11-16"}
    assert schema.check(PLACE) == PLACE
    assert schema.validate(PLACE, value) == []


def test_violations_say_where_and_what() -> None:
    value = {"name": "", "severity": 9, "tags": ["fire", "air"], "at": {"lat": "north"}, "when": "yesterday"}
    found = {violation.path: violation.message for violation in schema.validate(PLACE, value)}
    assert set(found) == {"name", "severity", "tags[1]", "at.lat", "when"}
    assert found["severity"] == "9 is greater than the maximum of 5"
    assert found["at.lat"] == '"north" is not of type "number"'
    [missing] = schema.validate(PLACE, {"severity": 1})
    assert str(missing) == '"name" is a required property'


@pytest.mark.parametrize("value", [[], "text", 1, None, True])
def test_only_objects_fit(value: Any) -> None:
    [violation] = schema.validate(PLACE, value)
    assert "must be an object" in violation.message


def test_an_output_has_at_most_five_properties_also_if_the_schema_is_open() -> None:
    assert schema.validate(of({}), dict.fromkeys("abcde", 1)) == []
    [violation] = schema.validate(of({}), dict.fromkeys("abcdef", 1))
    assert violation.message == "has 6 properties: at most 5 are allowed"


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "outputSchema"),
        (True, "outputSchema"),
        ({}, "outputSchema.type"),
        ({"type": "array"}, "outputSchema.type"),
        ({"type": ["object", "null"], "properties": {"a": {}}}, "outputSchema.type"),
        ({"type": "object"}, "outputSchema.properties"),
        ({"type": "object", "properties": {}}, "outputSchema.properties"),
        ({"type": "object", "properties": []}, "outputSchema.properties"),
        ({"type": "object", "properties": {name: {} for name in "abcdef"}}, "outputSchema.properties"),
        (of({}, **{"$schema": "http://json-schema.org/draft-07/schema#"}), "outputSchema.$schema"),
        (of({"type": "strin"}), "outputSchema.properties.a.type"),
        (of({"minimum": "1"}), "outputSchema.properties.a.minimum"),
        (of({"$ref": "http://127.0.0.1/schema"}), "outputSchema.properties.a.$ref"),
        (of({"$ref": "file:///etc/passwd"}), "outputSchema.properties.a.$ref"),
        (of({"$ref": "other.json"}), "outputSchema.properties.a.$ref"),
        (of({"$ref": "#"}), "outputSchema.properties.a.$ref"),
        (of({"$ref": "#/$defs/none"}), "outputSchema.properties.a.$ref"),
        (of({"$ref": 7}), "outputSchema.properties.a.$ref"),
        (of({"$id": "http://127.0.0.1/"}), "outputSchema.properties.a.$id"),
        (of({"$dynamicRef": "#x"}), "outputSchema.properties.a.$dynamicRef"),
        (of({"items": [{"not": {"$ref": "x"}}]}), "outputSchema.properties.a.items"),
        (of({"anyOf": [{}, {"not": {"$ref": "x"}}]}), "outputSchema.properties.a.anyOf[1].not.$ref"),
        (of({"$defs": {}}), "outputSchema.properties.a.$defs"),
        (of({"pattern": "("}), "outputSchema.properties.a.pattern"),
        (of({"pattern": "(?=a)b"}), "outputSchema.properties.a.pattern"),
        (of({"pattern": r"(a)\1"}), "outputSchema.properties.a.pattern"),
        (of({"pattern": "(a{1000}){1000}"}), "outputSchema.properties.a.pattern"),
    ],
)
def test_what_is_no_schema_for_outputs_is_refused_by_its_place(document: Any, field: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        schema.check(document)
    assert caught.value.details["field"] == field
    assert field in caught.value.message


def test_a_word_that_is_a_keyword_elsewhere_is_only_a_word() -> None:
    document = of({"const": {"$ref": "http://127.0.0.1/", "pattern": "("}, "examples": [{"$id": 1}]})
    document["properties"]["$ref"] = {"type": "string"}
    schema.check(document)


def test_the_field_is_that_of_the_definition() -> None:
    with pytest.raises(errors.InvalidInput, match=r"^agents\[2\]\.outputSchema\.type must be"):
        schema.check({"type": "array"}, "agents[2].outputSchema")


def test_schemas_that_are_large_are_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="16,384"):
        schema.check(of({"enum": ["x" * 100] * 200}))
    deep: dict[str, Any] = {}
    for _ in range(30):
        deep = {"not": deep}
    with pytest.raises(errors.InvalidInput, match="nested deeper"):
        schema.check(of(deep))
    with pytest.raises(errors.InvalidInput, match="more than 500 parts"):
        schema.check(of({"anyOf": [{"minimum": 1}] * 300}))


def test_references_in_a_circle_are_refused() -> None:
    defs = {"x": {"anyOf": [{"$ref": "#/$defs/y"}]}, "y": {"items": {"$ref": "#/$defs/x"}}}
    with pytest.raises(errors.InvalidInput, match="refers to itself"):
        schema.check(of({"$ref": "#/$defs/x"}, **{"$defs": defs}))


def test_references_that_double_are_refused() -> None:
    """Forty small definitions that stand for 2**40 checks."""
    defs: dict[str, Any] = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
    defs["d40"] = {"type": "string"}
    started = time.perf_counter()
    with pytest.raises(errors.InvalidInput):
        schema.check(of({"$ref": "#/$defs/d0"}, **{"$defs": defs}))
    assert time.perf_counter() - started < SLOW


def nested_alternatives() -> dict[str, Any]:
    """The worst that fits into the bounds: alternatives in alternatives, each asking what the others have seen."""
    part: dict[str, Any] = {"properties": {"x": True}}
    while True:
        larger = {"anyOf": [part, part], "unevaluatedProperties": False}
        try:
            schema.check(of(larger))
        except errors.InvalidInput:
            return of(part)
        part = larger


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (of({"items": {"anyOf": [{"const": f"x{i}"} for i in range(100)]}}), ["y"] * 60_000),
        (of({"items": {"anyOf": [{"const": f"x{i}"} for i in range(10)]}}), ["y"] * 10_000),
        (of({"items": {"allOf": [{"type": "string", "pattern": f"^{i}(ab)*"} for i in range(100)]}}), ["y"] * 3000),
        (of({"items": {"type": "number"}}), ["y"] * 60_000),
        (of({"uniqueItems": True}), [[i, {"a": i}] for i in range(20_000)]),
        (of({"pattern": "^(a+)+$"}), "a" * 60_000 + "b"),
        (of({"pattern": r"\w*b[ab]{41}d"}), RANDOM[:63_000]),
        (of({"pattern": r"\w*b[ab]{41}d"}), RANDOM * 4),
        (of({"pattern": "(?:.*a){4}[ab]{30}c"}), RANDOM[:63_000]),
        (of({"allOf": [{"pattern": rf"{i}|\w*b[ab]{{41}}d"} for i in range(60)]}), RANDOM),
        (of({"allOf": [{"pattern": rf"{i}|\w*b[ab]{{41}}d"} for i in range(60)]}), RANDOM[:1000]),
        (of({"patternProperties": {rf"{i}|\w*b[ab]{{41}}d": {} for i in range(60)}}), {RANDOM[:1000]: 1}),
        (of({"contains": {"enum": ["a" * i for i in range(100)]}}), ["zzz"] * 50_000),
        (of({"multipleOf": 1e-300}), 1e308),
        (of({"multipleOf": 0.01}), 10**4000),
        (of({"format": "regex"}), "(a{1000}){1000}" * 100),
        (of({"format": "regex"}), r"\p{L}{100}" * 6_000),
        (of({"format": "regex"}), "(" * 60_000),
        (of({"format": "idn-email"}), "a." * 100_000),
        (nested_alternatives(), {"x": 1, "y": 2}),
        (nested_alternatives(), {f"y{i}": 2 for i in range(2000)}),
    ],
    ids=range(21),
)
def test_no_value_takes_long(document: dict[str, Any], value: Any) -> None:
    started = time.perf_counter()
    schema.check(document)
    found = schema.validate(document, {"a": value})
    assert time.perf_counter() - started < SLOW
    assert len(found) <= schema.MOST_VIOLATIONS
    assert all(len(violation.message) <= schema.LONGEST_MESSAGE + 3 for violation in found)


def test_patterns_and_long_texts_do_not_go_together() -> None:
    assert schema.validate(of({"type": "string"}), {"a": "x" * 250_000}) == []
    assert schema.validate(of({"pattern": "^x"}), {"a": "x" * 65_000}) == []
    [violation] = schema.validate(of({"pattern": "^x"}), {"a": "x" * 66_000})
    assert "too large to be checked" in violation.message


def test_a_deep_value_is_no_danger() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    [violation] = schema.validate(of({"items": {"items": {"type": "string"}}}), {"a": value})
    assert violation.message == "is nested deeper than 100 levels"


def test_a_schema_is_compiled_once_and_few_are_kept() -> None:
    document = of({"const": "once"})
    schema.check(document)
    before = schema._compiled.cache_info()
    assert schema.validate(document, {"a": 1})
    after = schema._compiled.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 1)
    for number in range(schema.KEPT + 10):
        schema.check(of({"const": number}))
    assert schema._compiled.cache_info().currsize == schema.KEPT


def test_a_schema_is_closed_if_nothing_is_left_open_in_it() -> None:
    closed = of({"type": "string"}, required=["a"], additionalProperties=False)
    assert schema.is_closed(closed)
    assert not schema.is_closed(of({"type": "string"}, additionalProperties=False))
    assert not schema.is_closed(of({"type": "string"}, required=["a"]))
    assert not schema.is_closed(closed | {"properties": {"a": {"anyOf": [{"type": "object"}]}}})
