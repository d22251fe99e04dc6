"""How programs that run for long write their log."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

LogFormat = Annotated[
    Literal["json", "console"] | None,
    typer.Option("--log-format", help="How log lines look. [default: console on a terminal, else json]"),
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"], typer.Option("--log-level", help="The least that is logged.")
]
