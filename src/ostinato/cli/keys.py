"""`ostinato keys`: who may talk to the server, and what they may do there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato.store import keys as keys_

group = typer.Typer(cls=Group, help="Make, list and revoke the keys of the server.", no_args_is_help=True)

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="keys")


@command(group, "create")
async def create(
    settings: Settings,
    scopes: Annotated[
        str,
        typer.Option(
            "--scopes",
            help="What it may do, parted by commas: jobs:read, jobs:write, tasks:work, approvals:decide, config:write, "
            "admin.",
            show_default=False,
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="What it is for, to tell it from the others.")] = "key",
    expires: Annotated[
        str | None, typer.Option("--expires", help="How long it works: 90m, 12h, 30d. [default: until it is revoked]")
    ] = None,
) -> None:
    """Make a key and show it, this once.

    The database is created if there is none yet, because a key is what a server for others starts with."""
    from ostinato.cli import session

    granted = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    life = None if expires is None else seconds(expires)
    async with session.opened(settings, migrate=True) as app:
        made = await app.engine.store.create_key(app.tenant, name, granted, expires_in=life)
        await session.record(app, "keys.create", made.key.key_id, name=name, scopes=granted)
        now = app.engine.db.now()
    if settings.json:
        output.document(_document(made.key, now) | {"key": made.text})
        return
    output.say(made.text)
    output.note(f"key {made.key.key_id} of tenant {made.key.tenant}: keep it now, it cannot be shown again")


@command(group, "ls")
async def ls(settings: Settings) -> None:
    """List the keys of a tenant, newest first."""
    from ostinato import views
    from ostinato.cli import session

    async with session.opened(settings) as app:
        found = await app.engine.store.keys(app.tenant)
        micros, now = app.engine.db.now(), session.now(app)
    if settings.json:
        output.document({"keys": [_document(key, micros) for key in found]})
        return
    lines = [
        [
            key.key_id,
            key.name,
            _state(key, micros),
            ", ".join(sorted(key.scopes)),
            output.ago(views.moment(key.created_at), now),
            output.ago(views.moment(key.expires_at), now) or "never",
            output.ago(views.moment(key.last_used_at), now) or "never",
        ]
        for key in found
    ]
    output.table(["key id", "name", "state", "scopes", "created", "expires", "last used"], lines, none="no keys")


@command(group, "revoke")
async def revoke(
    settings: Settings,
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="The id of the key.", show_default=False)],
) -> None:
    """Let a key open nothing any more.

    Servers hear of it within seconds, and close what it has open."""
    from ostinato import views
    from ostinato.cli import session

    async with session.opened(settings) as app:
        await session.record(app, "keys.revoke", key_id)
        revoked_at = views.moment(await app.engine.store.revoke_key(app.tenant, key_id))
    if settings.json:
        output.document({"keyId": key_id, "revokedAt": revoked_at})
    else:
        output.say(f"revoked: {key_id}")


def seconds(text: str) -> float:
    """`90m`, `12h` or `30d` as seconds."""
    from ostinato import errors

    match = re.fullmatch(r"(\d{1,9})([smhd])", text.strip())
    if match is None or int(match[1]) == 0:
        raise errors.InvalidInput(f"--expires {text!r} is not a time: use 90m, 12h or 30d", field="expires")
    return int(match[1]) * UNITS[match[2]]


def _state(key: keys_.Key, now: int) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "works" if key.works(now) else "expired"


def _document(key: keys_.Key, now: int) -> dict[str, Any]:
    from ostinato import views

    return {
        "tenant": key.tenant,
        "keyId": key.key_id,
        "name": key.name,
        "state": _state(key, now),
        "scopes": sorted(key.scopes),
        "createdAt": views.moment(key.created_at),
        "expiresAt": views.moment(key.expires_at),
        "lastUsedAt": views.moment(key.last_used_at),
        "revokedAt": views.moment(key.revoked_at),
    }
