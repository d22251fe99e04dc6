"""A group that is also a command: what names none of its commands is meant for `show`."""

from __future__ import annotations

from typing import Any, ClassVar

from ostinato.cli.parameters import Group


class WithDefault(Group):
    default: ClassVar[str] = "show"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else [self.default, *args])
