"""Templates: any JSON in which a string `{% … %}` stands for the value of an expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ostinato.expressions import language

OPEN, CLOSE = "{%", "%}"


def check(template: Any, field: str) -> None:
    """Raises InvalidInput for the first expression that is not valid, with its path as the field."""
    _map(template, field, lambda expression: language.compile(expression.text, expression.field))


def render(
    template: Any,
    data: Any,
    field: str,
    now: float | None = None,
    *,
    timeout: float = language.SECONDS,
    default: Any = language.REQUIRED,
    whose: str = "",
) -> Any:
    """The template with every expression replaced by its value over `data`; `field` is what errors call it. One
    that has no value is an error, unless there is a `default`.

    All of it has `timeout` seconds when it is the turn of the tenant `whose`: in an event loop, call it with
    `threads.run`.
    """
    found: list[language.Expression] = []
    _map(template, field, found.append)
    if not found:
        return template
    values = iter(language.evaluate(found, data, timeout=timeout, now=now, default=default, whose=whose))
    return _map(template, field, lambda expression: next(values))


def _map(value: Any, path: str, change: Callable[[language.Expression], Any]) -> Any:
    """The value with its expressions changed, in the order in which they stand."""
    if isinstance(value, str):
        stripped = value.strip()
        if stripped.startswith(OPEN) and stripped.endswith(CLOSE) and len(stripped) >= len(OPEN + CLOSE):
            return change(language.Expression(stripped[2:-2].strip(), path))
        return value
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _map(item, f"{path}.{key}" if path else key, change) for key, item in items}
    if isinstance(value, list):
        return [_map(item, f"{path}[{index}]", change) for index, item in enumerate(cast("list[Any]", value))]
    return value
