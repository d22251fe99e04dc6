"""`--webhooks` and `--webhook-network`: whom rules and gates may call, for every command that runs an engine."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Webhooks = Annotated[
    bool, typer.Option("--webhooks", help="Let rules and gates call addresses on the internet.", show_default=False)
]
Networks = Annotated[
    list[str] | None,
    typer.Option(
        "--webhook-network",
        help="A host, address or network that they may call though it is private; may be repeated.",
        metavar="HOST|CIDR",
    ),
]


def changes(webhooks: bool, networks: list[str] | None) -> dict[str, Any]:
    """What the command line says of the options of the engine; nothing if it says nothing.

    A network that is not understood is told now, not when the first call is made."""
    from ostinato import outgoing

    made: dict[str, Any] = {"webhooks": True} if webhooks else {}
    if networks:
        outgoing.Caller(outgoing.CallOptions(allow=tuple(networks)))
        made["webhook_networks"] = tuple(networks)
    return made


def flags(webhooks: bool, networks: list[str] | None) -> list[str]:
    """The same as arguments, for a command that starts another."""
    return [*(["--webhooks"] if webhooks else []), *(part for n in networks or () for part in ("--webhook-network", n))]
