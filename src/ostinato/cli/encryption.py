"""`ostinato encryption`: keys for payloads at rest, what they have encrypted, and changing them."""

from __future__ import annotations

from typing import Annotated

import typer

from ostinato.cli import output
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

group = typer.Typer(cls=Group, help="Encrypt stored payloads, and change the keys.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="encryption")


@command(group, "new-key")
async def new_key(
    settings: Settings,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="A name for it, such as 2027-01.", show_default=False)],
) -> None:
    """Make a key, for $OSTINATO_ENCRYPTION_KEYS."""
    import base64

    from ostinato import encryption

    key = encryption.new_key()
    encryption.Keyring({key_id: key})  # refuses an id that could not be used
    made = f"{key_id}:{base64.b64encode(key).decode()}"
    if settings.json:
        output.document({"key": made})
    else:
        output.say(made)


@command(group, "status")
async def status(settings: Settings) -> None:
    """Count stored payloads by the key that encrypted them.

    Of all tenants, or of --tenant."""
    from ostinato import rotation
    from ostinato.cli import session

    async with session.opened(settings) as app:
        found = await rotation.status(app.engine.store, settings.tenant)
    if settings.json:
        output.document({"payloads": found})
        return
    lines = [[p.tenant, p.kind, p.key_id or "(not encrypted)", f"{p.count:,}"] for p in found]
    output.table(["tenant", "payload", "key id", "count"], lines, none="no payloads")


@command(group, "rotate")
async def rotate(settings: Settings) -> None:
    """Encrypt everything that is stored with the first key.

    Of all tenants, or of --tenant. Workers may go on meanwhile, if they have this key first too. What is done stays
    done if this is stopped."""
    from ostinato import rotation
    from ostinato.cli import session

    def progress(tenant: str, table: str, rows: int) -> None:
        if settings.json:
            output.json_line({"tenant": tenant, "table": table, "rows": rows})
        else:
            output.note(f"{tenant}: {rows:,} rows of {table}")

    async with session.opened(settings) as app:
        keyring = app.keys_at_hand()
        await session.record(app, "encryption.rotate", keyring.ids[0], tenant=settings.tenant or "all")
        count = await rotation.rotate(app.engine.store, keyring, settings.tenant, progress)
    if settings.json:
        output.json_line({"rotated": count})
    else:
        output.say(f"rotated: {count:,} row{'' if count == 1 else 's'}")
