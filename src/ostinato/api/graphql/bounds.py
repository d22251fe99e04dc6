"""How large a query may be, before any of it is run: by tokens, depth, aliases and what it would cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ariadne.validation import cost_validator  # pyright: ignore[reportUnknownVariableType]
from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    OperationDefinitionNode,
    SelectionSetNode,
    parse,
    value_from_ast_untyped,
)

from ostinato import errors

MOST_TOKENS = 2_000
MOST_DEPTH = 10
MOST_ALIASES = 15
MOST_FIELDS = 200
"""The rules of the language compare fields with each other: that must stay quick."""
MOST_COST = 1_000


class QueryTooLarge(errors.RequestRefused):
    """The query asks for too much at once: ask for less, or in several queries."""

    code = "query_too_large"


def read(_: Any, data: dict[str, Any]) -> DocumentNode:
    """Parse a query, if it is within the bounds."""
    try:
        document = parse(data["query"], max_tokens=MOST_TOKENS)
    except GraphQLError as error:
        if "tokens" in error.message:
            raise QueryTooLarge(f"the query has more than {MOST_TOKENS:,} tokens", limit=MOST_TOKENS) from None
        raise
    shape = _Shape(document)
    operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
    if len(operations) > 1:  # what one of them costs could hide behind the variables of another
        raise QueryTooLarge("the document has several operations: send one at a time", limit=1)
    if _fields(document) > MOST_FIELDS:
        raise QueryTooLarge(f"the query has more than {MOST_FIELDS} fields", limit=MOST_FIELDS)
    for operation in operations:
        if shape.depth(operation.selection_set) > MOST_DEPTH:
            raise QueryTooLarge(f"the query is nested deeper than {MOST_DEPTH} levels", limit=MOST_DEPTH)
        if shape.aliases(operation.selection_set) > MOST_ALIASES:
            raise QueryTooLarge(f"the query has more than {MOST_ALIASES} aliases", limit=MOST_ALIASES)
    return document


def rules(_: Any, document: DocumentNode, data: dict[str, Any]) -> list[Any]:
    """The cost of a query depends on its variables, and on what they are if they are not given."""
    defaults = {
        definition.variable.name.value: value_from_ast_untyped(definition.default_value)
        for operation in document.definitions
        if isinstance(operation, OperationDefinitionNode)
        for definition in operation.variable_definitions or ()
        if definition.default_value is not None
    }
    return [cost_validator(MOST_COST, variables=defaults | (data.get("variables") or {}))]


class _Shape:
    """Depth and aliases of selections, with those of the fragments that they spread. What describes the schema is free:
    it is bounded by a rule of its own."""

    def __init__(self, document: DocumentNode) -> None:
        self._fragments = {
            node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._known: dict[tuple[str, str], int] = {}

    def depth(self, selected: SelectionSetNode | None) -> int:
        deepest = 0
        for node in _selections(selected):
            if isinstance(node, FieldNode):
                below = 0 if node.name.value.startswith("__") else self.depth(node.selection_set)
                deepest = max(deepest, 1 + below)
            elif isinstance(node, FragmentSpreadNode):
                deepest = max(deepest, self._spread("depth", node))
            else:
                deepest = max(deepest, self.depth(node.selection_set))
        return deepest

    def aliases(self, selected: SelectionSetNode | None) -> int:
        count = 0
        for node in _selections(selected):
            if isinstance(node, FragmentSpreadNode):
                count += self._spread("aliases", node)
                continue
            if isinstance(node, FieldNode) and node.alias is not None:
                count += 1
            count += self.aliases(node.selection_set)
        return count

    def _spread(self, what: str, node: FragmentSpreadNode) -> int:
        """Each fragment is looked at once. One that spreads itself is refused later, by a rule of the language."""
        key = (what, node.name.value)
        if key not in self._known:
            self._known[key] = 0
            fragment = self._fragments.get(node.name.value)
            if fragment is not None:
                self._known[key] = getattr(self, what)(fragment.selection_set)
        return self._known[key]


def _fields(node: Any) -> int:
    """How many fields are written in a document, whether they are used or not."""
    below = getattr(node, "definitions", None) or _selections(getattr(node, "selection_set", None))
    return isinstance(node, FieldNode) + sum(map(_fields, below))


def _selections(selected: SelectionSetNode | None) -> Iterator[Any]:
    yield from () if selected is None else selected.selections
