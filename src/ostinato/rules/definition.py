"""A rule as its author writes it: a pattern that selects events, and what is to happen for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ostinato.core import documents, patterns
from ostinato.rules import targets

LONGEST_DESCRIPTION = 1024


class Rule(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    name: str
    pattern: dict[str, Any]
    targets: list[targets.Target]
    description: str | None = None
    enabled: bool = True


def read(document: Any) -> Rule:
    """Turn a document into a checked rule, or raise InvalidInput naming the field."""
    given = documents.check_names(document, Rule)
    given["targets"] = targets.read(given["targets"], "targets")
    rule = documents.read(given, Rule)
    targets.check_name(rule.name, "name")
    if rule.description is not None:
        documents.check_text(rule.description, "description", LONGEST_DESCRIPTION)
    patterns.compile(rule.pattern, "pattern")
    return rule


def expressions(rule: Rule) -> Iterator[tuple[str, str]]:
    """Every JSONata expression in the rule, with the path of its field, for who can tell whether it is valid."""
    return targets.expressions(rule.targets, "targets")
