"""Where the expressions stand in a template: strings that are, as a whole but for blanks around, `{% … %}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ostinato import errors
from ostinato.core import documents

OPENING, CLOSING = "{%", "%}"
MOST_LEVELS = 64


def is_template(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    text = value.strip()
    return len(text) >= len(OPENING + CLOSING) and text.startswith(OPENING) and text.endswith(CLOSING)


def expressions(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Every expression in a template, with the path of the field in which it stands."""
    stack: list[tuple[str, Any, int]] = [(field, value, 0)]
    while stack:
        where, part, level = stack.pop()
        if level > MOST_LEVELS:
            raise errors.InvalidInput(f"{field} is nested deeper than {MOST_LEVELS} levels: flatten it", field=field)
        if is_template(part):
            yield where, part.strip()[len(OPENING) : -len(CLOSING)].strip()
        elif isinstance(part, dict):
            items = list(cast("dict[str, Any]", part).items())
            stack.extend((documents.join(where, name), item, level + 1) for name, item in reversed(items))
        elif isinstance(part, list):
            items = list(enumerate(cast("list[Any]", part)))
            stack.extend((f"{where}[{index}]", item, level + 1) for index, item in reversed(items))


def has_expressions(value: Any) -> bool:
    return next(expressions(value, ""), None) is not None


def check(value: Any, field: str) -> None:
    """Refuse a template that is too deep to be filled in, and expressions that say nothing."""
    for where, expression in expressions(value, field):
        if not expression:
            raise errors.InvalidInput(f"{where} has an empty expression: write it between {{% and %}}", field=where)
