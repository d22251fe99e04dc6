"""Every example in the reference of patterns holds, and every operator has one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ostinato import errors
from ostinato.core import patterns

PAGE = (Path(__file__).parents[2] / "docs/reference/patterns.md").read_text()
BLOCK = r"```json\n(.*?)```\n"
EXAMPLES = re.findall(rf"{BLOCK}\nmatches\n\n{BLOCK}\nbut not\n\n{BLOCK}", PAGE, re.DOTALL)


@pytest.mark.parametrize(("pattern", "matching", "other"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_holds(pattern: str, matching: str, other: str) -> None:
    compiled = patterns.compile(json.loads(pattern))
    assert compiled.matches(json.loads(matching))
    assert not compiled.matches(json.loads(other))


def test_no_block_is_left_out() -> None:
    assert PAGE.count("```json") == 3 * len(EXAMPLES)


@pytest.mark.parametrize("operator", [*patterns.OPERATORS, patterns.OR])
def test_every_operator_has_a_section_with_an_example(operator: str) -> None:
    section = re.search(rf"^## `{re.escape(operator)}`\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
    assert section
    assert f'"{operator}":' in section[1]


def test_the_limits_and_the_error_are_as_documented() -> None:
    limits = f"{patterns.DEEPEST} levels, {patterns.MOST_VALUES:,} values and {patterns.LONGEST // 1024} KiB"
    assert limits in PAGE
    assert f"{patterns.MOST_STARS} stars in all its wildcards" in PAGE
    with pytest.raises(errors.InvalidInput) as caught:
        patterns.compile({"detail": {"price": [{"numeric": [">", "0"]}]}})
    shown = json.loads(re.findall(r'^    (\{"code".*?\})$', PAGE, re.DOTALL | re.MULTILINE)[0])
    error = caught.value
    assert shown == {"code": error.code, "field": error.details["field"], "message": error.message}
