"""The page about running and observing names everything that there is, and nothing that is not."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from ostinato import tracing
from ostinato.api import metrics
from ostinato.cli import failures, main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/server.md").read_text()


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


def first_cells(text: str) -> set[str]:
    """What stands in code marks in the first column of a table."""
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def exposed() -> set[str]:
    """Every metric by the name under which Prometheus knows it."""
    counted = metrics.Metrics(None, "default")  # pyright: ignore[reportArgumentType]
    depth = metrics._Depth(0.0, 0, metrics.gauges.Depth([], 0, 0, None, 0))
    families = list(counted._families(["default"], "default", depth))
    return {f"{family.name}_total" if family.type == "counter" else family.name for family in families}


def test_every_metric_is_documented() -> None:
    assert first_cells(section("Metrics")) == exposed()
    assert len(metrics.NAMES) == len(exposed())


@pytest.mark.parametrize("name", ["server", "dev", "worker"])
def test_every_option_is_documented(name: str) -> None:
    root: Any = typer.main.get_command(main.root)
    command = root.get_command(None, name)
    flags = {
        flag
        for parameter in command.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
        if flag[:2] == "--"
    }
    assert first_cells(section(f"`ostinato {name}`")) == flags - {"--help"}


def test_every_span_attribute_is_documented() -> None:
    used = set(re.findall(r'"(ostinato\.\w+)"', inspect.getsource(tracing)))
    assert used == set(re.findall(r"`(ostinato\.\w+)`", section("Tracing")))


def test_every_environment_variable_is_documented() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    used = set(re.findall(r'"(OSTINATO_[A-Z_]+)"', sources))
    assert first_cells(section("Environment")) == used | {"OTEL_*"}


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    codes = set(map(int, re.findall(r"^\| (\d+) \|", section("Exit codes"), re.MULTILINE)))
    known = {value for name, value in vars(failures).items() if name.isupper() and isinstance(value, int)}
    assert codes <= known
