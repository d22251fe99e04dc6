"""The page about options names every option with its default, and its examples run."""

from __future__ import annotations

import ast
import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ostinato import EngineOptions, Retry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/options.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_every_option_is_named_with_its_default() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", PAGE, re.MULTILINE))
    fields = [field.name for field in dataclasses.fields(EngineOptions)]
    assert sorted(told) == sorted(fields)
    assert told.pop("default_retry") == "Retry()"
    options: Any = EngineOptions()
    assert options.default_retry == Retry()
    for name, text in told.items():
        assert ast.literal_eval(text) == getattr(options, name), name


def test_the_page_is_linked() -> None:
    assert "docs/reference/options.md" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("example", EXAMPLES, ids=["options", "fan-out"])
def test_the_examples_run(example: str, tmp_path: Path) -> None:
    said = re.findall(r"print\(.*\)  # (.*)", example)
    (tmp_path / "example.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == said
