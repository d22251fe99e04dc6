"""The names of the library: each is loaded when it is asked for, and is the one that type checkers see."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ostinato


def imported() -> dict[str, str]:
    """From where each name comes in the source, as a type checker reads it."""
    tree = ast.parse(Path(ostinato.__file__).read_text())
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "typing")
    return {name.name: str(node.module) for node in found for name in node.names}


def test_each_name_is_the_one_that_type_checkers_see() -> None:
    assert set(imported()) == set(ostinato.__all__)
    for name, module in imported().items():
        assert getattr(ostinato, name) is getattr(importlib.import_module(module), name)


def test_names_can_be_listed_and_imported_all_at_once() -> None:
    names: dict[str, Any] = {}
    exec("from ostinato import *", names)
    assert set(ostinato.__all__) <= set(names)
    assert set(ostinato.__all__) <= set(dir(ostinato))


def test_a_name_that_is_not_there_is_told_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'ostinato' has no attribute 'Nothing'"):
        ostinato.Nothing  # noqa: B018 - to ask for it is the test
    with pytest.raises(ImportError, match="Nothing"):
        exec("from ostinato import Nothing")


def test_nothing_is_loaded_that_was_not_asked_for() -> None:
    code = "import sys, ostinato; print(ostinato.__version__, 'ostinato.app' in sys.modules, 'asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1:] == ["False", "False"]
