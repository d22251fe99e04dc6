"""Asking before something is done. In a pipe there is nobody to ask: there the answer must be given beforehand."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ostinato.cli.settings import Settings

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def check_can_ask(settings: Settings, sentence: str) -> None:
    """Refuse to go on where nobody can be asked. `sentence` says what would be done, and what to say instead."""
    from ostinato import errors

    if settings.json or not sys.stdin.isatty():
        raise errors.InvalidInput(sentence)
