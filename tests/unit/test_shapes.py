"""What a pattern asks for is said in words."""

from typing import Annotated

import msgspec
import pytest

from ostinato.core import shapes

WORDS = [
    (
        r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$(?!\n)",
        "use 1 to 128 letters, digits, _, ., : or -, starting with a letter or digit",
    ),
    (
        r"^\$?[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$",
        "use 1 to 64 letters, digits, _, ., : or -, starting with a letter or digit (or with $ before it)",
    ),
    (
        r"^[^\W_][\w.:/ -]{0,199}$(?!\n)",
        "use 1 to 200 letters, digits, _, ., :, /, spaces or -, starting with a letter or digit",
    ),
    (r"^[^\x00]*$", "it must be a text without NUL"),
    (r"^[^\x00=]*$", "it must be a text without NUL or ="),
    (r"^[^\x00-\x1f]*$", "it must be a text without control characters"),
    (r"^[^\x00-\x1f\x7f-\x9f]{1,256}$", "it must be a text of 1 to 256 characters without control characters"),
    (r"^[A-Za-z0-9_.:/-]+$(?!\n)", "use letters, digits, _, ., :, / or - only"),
    (r"^[a-z0-9]+$", "use small letters or digits only"),
    (
        r"^[^\x00=]{1,9}=[^\x00]{0,8}$",
        "write key=value, with 1 to 9 characters before the = and up to 8 after it",
    ),
]


@pytest.mark.parametrize(("pattern", "words"), WORDS)
def test_a_pattern_in_words(pattern: str, words: str) -> None:
    assert shapes.in_words(pattern) == words


@pytest.mark.parametrize("pattern", [r"^[^\x00]*$", r"^[a-z'\"]*$", "^(a|b)$"])
def test_what_msgspec_says_of_a_pattern_is_put_in_words(pattern: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert("\0", Annotated[str, msgspec.Meta(pattern=pattern)])
    assert shapes.explain(str(caught.value)) == f"the text is not valid: {shapes.in_words(pattern)}"


def test_what_msgspec_says_of_something_else_stays() -> None:
    assert shapes.explain("Expected `int`, got `str`") == "Expected `int`, got `str`"
