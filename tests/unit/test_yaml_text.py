"""YAML that is JSON in other clothes: what is read, what is refused, and where."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import errors
from ostinato.core import yaml_text


def values(text: str) -> list[Any]:
    return [document.value for document in yaml_text.read(text.encode(), "a.yaml")]


def refused(text: str | bytes) -> errors.InvalidInput:
    with pytest.raises(errors.InvalidInput) as caught:
        yaml_text.read(text.encode() if isinstance(text, str) else text, "a.yaml")
    assert caught.value.details["file"] == "a.yaml"
    return caught.value


def test_several_documents_and_where_their_fields_are() -> None:
    first, second = yaml_text.read(
        b"""# agents
---
name: place
schema:
  type: object
  required: [a,
    b]
---
- name: "time"
  text: |
    two
    lines
---
""",
        "a.yaml",
    )
    assert first.value == {"name": "place", "schema": {"type": "object", "required": ["a", "b"]}}
    assert second.value == [{"name": "time", "text": "two\nlines\n"}]
    assert first.lines == {
        "": 3,
        "name": 3,
        "schema": 4,
        "schema.type": 5,
        "schema.required": 6,
        "schema.required[0]": 6,
        "schema.required[1]": 7,
    }
    assert (second.lines["[0].text"], yaml_text.line_of(second.lines, "[0].text.more[3]")) == (10, 10)
    assert yaml_text.line_of(first.lines, "missing") == 3
    assert values("") == values("# nothing\n") == values("---\n---\n") == []


def test_what_is_plain_is_json_or_text() -> None:
    text = """
      - [null, ~, true, false, 0, -7, 1.5, 300]
      - [text, a b, 2026-03-09, 2026-03-09T06:52:00Z, 1.2.3, "no", 'null', "1.10", 12ab, x/y]
      - {no: 1, 1: 2, true: 3, 2026-03-09: 4}
    """
    plain, texts, keys = values(text)[0]
    assert plain == [None, None, True, False, 0, -7, 1.5, 300]
    assert all(isinstance(one, str) for one in texts)
    assert texts[2:5] == ["2026-03-09", "2026-03-09T06:52:00Z", "1.2.3"]
    assert keys == {"no": 1, "1": 2, "true": 3, "2026-03-09": 4}


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "N",
        "True",
        "NULL",
        "0x1F",
        "0o17",
        "017",
        "0b11",
        "1_000",
        "+1",
        "1.",
        ".5",
        "1e3",
        "1.5e+3",
        "12:30",
        "06:40",
        ".inf",
        "-.INF",
        ".nan",
        "1.10",
        "1.50",
        "12345678901234567890123.5",
    ],
)
def test_what_readers_of_yaml_do_not_agree_on_is_refused(text: str) -> None:
    error = refused(f"name: x\nvalue:\n  - {text}\n")
    assert (error.details["line"], error.details["field"]) == (3, "value[0]")
    assert f'write "{text}"' in str(error)
    assert values(f'- "{text}"') == [[text]]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: &x [1]\nb: *x\n", 1, "anchors"),
        ("a: 1\nb: *x\n", 2, "anchors"),
        ("a: !!python/object/apply:os.system [ls]\n", 1, "tags"),
        ("a: 1\nb: !!str 2\n", 2, "tags"),
        ("a: ! 2\n", 1, "tags"),
        ("base: {a: 1}\n<<: {b: 2}\n", 2, "merged"),
        ("a: 1\nb: 2\na: 3\n", 3, "second time"),
        ("? [a, b]\n: 1\n", 1, "must be a text"),
        ("? &k a\n: 1\n", 1, "anchor"),
        ("~: 1\n", 1, "must be a text"),
        ("%YAML 1.1\n---\na: 1\n", 1, "directives"),
        ("a: [1\nb: 2\n", 2, "not valid YAML"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML"),
        ("a: 1\nb: \x00\n", 2, "not valid YAML"),
        ("a: " + "[" * 100, 1, "nested deeper"),
        ("[" * 500_000, 1, "nested deeper"),
        ("\n" + "- " * 300_000, 2, "nested deeper"),
        (b"a: 1\nb: \xff\n", 2, "not UTF-8"),
    ],
)
def test_what_is_not_read(text: str | bytes, line: int, said: str) -> None:
    started = time.perf_counter()
    error = refused(text)
    assert time.perf_counter() - started < 2
    assert said in str(error)
    assert error.details["line"] == line
    assert str(error).startswith(f"a.yaml:{line}: ")


def test_a_bomb_and_a_text_that_is_too_large() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 9))
    assert "anchors" in str(refused("l0: &l0 [lol]\n" + levels))
    assert "split it" in str(refused("a: " + "x" * yaml_text.LARGEST))


TEXTS = st.text(st.characters(max_codepoint=0xD7FF), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_with_its_texts_escaped_is_yaml_too(value: Any) -> None:
    """As every tool writes it: whatever is in quotes comes back as it was."""
    assert values(json.dumps(value)) == [value]
