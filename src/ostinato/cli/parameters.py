"""The texts of a command line are taken as they come: typer would load pydantic, for longer than most commands run.

What is missing, and what is more than a text (a number, a choice), stays with typer. So do the messages about it.
"""

from __future__ import annotations

import functools
from typing import Any, cast

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _spared(super().get_params(ctx))


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _spared(super().get_params(ctx))


def _spared(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        parameter.process_value = functools.partial(_process, parameter)
    return parameters


def _process(parameter: Any, ctx: Any, value: Any) -> Any:
    """What typer would answer, without asking it where that is plain."""
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)  # typer's own: it may go
    many = parameter.multiple or parameter.nargs != 1
    if value is None and not parameter.required:
        found = () if many else None
    elif type(value) is kind:  # a text, or the default
        found = value
    elif value and kind == list[str] and not isinstance(value, str):
        found = list(value)
    else:
        return cast("Any", type(parameter)).process_value(parameter, ctx, value)
    return found if parameter.callback is None else parameter.callback(ctx, parameter, found)
