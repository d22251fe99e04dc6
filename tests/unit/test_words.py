"""Words as they are indexed and asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.core import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two Cars, crashed!", ["two", "cars", "crashed"]),
        ("Müllerstraße CAFÉ", ["mullerstrasse", "cafe"]),
        ("order_17-b", ["order", "17", "b"]),
        ("火事です", ["火事", "事で", "です"]),
        ("駅 ABC駅前", ["駅", "abc", "駅前"]),
        ('\'; DROP TABLE "x" --', ["drop", "table", "x"]),
        ("\0 \ud800 🔥 ", []),
    ],
)
def test_words_of_a_text(text: str, expected: list[str]) -> None:
    assert words.of_text(text) == expected


@given(st.text())
def test_a_word_has_nothing_that_means_something_to_a_database(text: str) -> None:
    """On this rests that no query can be a syntax error."""
    for word in words.of_text(text):
        assert all(sign.isalnum() or ord(sign) >= 0xE00 for sign in word)
        assert not set(word) & set(" '\"\\:&|!()*^")
        assert len(word) <= words.LONGEST
        word.encode()


@given(st.text())
def test_words_stay_as_they_are(text: str) -> None:
    """A word that was indexed is found by itself, if it is not cut into pairs."""
    for word in words.of_text(text):
        assert words.of_text(word) == [word]


def test_a_question_is_asked_by_what_it_is_about() -> None:
    assert words.of_query("How many fires are there in the old town, the OLD one?") == ["fires", "old", "town", "one"]
    assert words.of_query("what is it") == ["what", "is", "it"]
    assert len(words.of_query(" ".join(f"w{n}" for n in range(500)))) == words.MOST_ASKED
    assert len(words.of_text("word " * 20_000)) == words.MOST_WORDS


def test_a_snippet_is_around_what_was_asked_for() -> None:
    text = "filler " * 100 + "the Burst pipe " + "filler " * 100
    part = words.snippet(text, ["burst"])
    assert "Burst pipe" in part
    assert part.startswith("…")
    assert part.endswith("…")
    assert len(part) <= words.SNIPPET + 2
    assert words.snippet("short text", ["text"]) == "short text"
    assert words.snippet(text, ["absent"]).startswith("filler")
    assert words.snippet("", []) == ""
