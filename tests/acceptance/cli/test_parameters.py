"""What a command understands of its arguments is what typer does, whose own way there takes longer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer import exceptions
from typer.main import get_command

from ostinato.cli import main, parameters

GIVEN: list[Any] = [None, "", "text", "7", "-1", "1e9", "json", "caf\udce9", (), ["one"], ("one", "two")]


def commands(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, name), f"{path} {name}".strip())


def test_every_parameter_is_understood_as_typer_does() -> None:
    compared = 0
    for path, command in commands(get_command(main.root)):
        assert isinstance(command, parameters.Command | parameters.Group), path
        ctx = command.context_class(command, info_name=path)
        for parameter in command.get_params(ctx):
            if parameter.callback is not None:  # --help and --version, which end the program
                continue
            for value in [*GIVEN, parameter.default]:
                ours = answer(parameter.process_value, ctx, value)
                typers = answer(type(parameter).process_value, parameter, ctx, value)
                assert ours == typers, (path, parameter.name, value)
            compared += 1
    assert compared > 500


def answer(process: Any, *given: Any) -> tuple[type, Any]:
    try:
        found = process(*given)
    except exceptions.TyperException as error:
        return type(error), error.format_message()
    return type(found), found
