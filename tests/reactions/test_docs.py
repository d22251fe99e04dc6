"""The references of gates and rules: every definition in them is one, and every field and bound of them is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostinato import expressions
from ostinato.api import reacting
from ostinato.gates import definition as gate_definition
from ostinato.reactions import events, functions, own
from ostinato.rules import definition as rule_definition
from ostinato.rules import targets

FOLDER = Path(__file__).parents[2] / "docs/reference"
GATES, RULES = (FOLDER / "gates.md").read_text(), (FOLDER / "rules.md").read_text()


def definitions(page: str) -> list[Any]:
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]


def first_column(page: str, heading: str) -> list[str]:
    """The names in code marks that begin the rows of the table with this heading."""
    table = re.search(rf"^\| {heading} \|.*?\n\n", page + "\n\n", re.DOTALL | re.MULTILINE)
    assert table
    rows = re.findall(r"^\| (`.*?) \|", table[0], re.MULTILINE)[0 if "`" not in heading else 1 :]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_every_definition_is_one() -> None:
    document, *rules = definitions(GATES)
    gate = gate_definition.read(document)
    assert [expressions.compile(text, field) for field, text in gate_definition.expressions(gate)]
    assert set(document) == {field.encode_name for field in msgspec.structs.fields(gate_definition.Gate)}
    assert len(rules) == 1
    assert len(definitions(RULES)) == 2
    for document in rules + definitions(RULES):
        rule = rule_definition.read(document)
        assert [expressions.compile(text, field) for field, text in rule_definition.expressions(rule)]


def test_every_field_is_told() -> None:
    for page, kind in ((GATES, gate_definition.Gate), (RULES, rule_definition.Rule)):
        assert sorted(first_column(page, "field")) == sorted(f.encode_name for f in msgspec.structs.fields(kind))
    assert sorted(first_column(GATES, "`how`")) == sorted(gate_definition.How.__args__)
    assert tuple(first_column(RULES, "target")) == targets.KINDS


@pytest.mark.parametrize("kind", ["gate", "signal", "webhook"])
def test_every_field_of_a_target_is_told(kind: str) -> None:
    row = re.search(rf"^\| `{kind}` \| (.*?) \|", RULES, re.MULTILINE)
    assert row
    struct = {"gate": targets.GateTarget, "signal": targets.SignalTarget, "webhook": targets.WebhookTarget}[kind]
    assert re.findall(r"`(\w+)`", row[1]) == [field.encode_name for field in msgspec.structs.fields(struct)]


def test_the_bounds_are_as_told() -> None:
    assert f"1 to {gate_definition.MOST_MEMBERS:,}" in GATES
    assert f"up to {targets.MOST_TARGETS} [targets]" in GATES
    assert f"1 to {targets.LONGEST_KEY} characters" in GATES
    assert f"Up to {reacting.MOST_ARRIVALS:,} arrivals" in GATES
    assert f"up to {gate_definition.LONGEST_DESCRIPTION:,} characters" in GATES
    assert f"1 to {targets.MOST_TARGETS} targets" in RULES
    assert f"up to {events.MOST_EVENTS}, each up to {events.LONGEST_EVENT // 1024} KiB" in RULES
    assert f"up to {own.RETRY.max_attempts} times" in RULES
    assert f"{functions.DEEPEST} rules and gates" in RULES
