"""`ostinato encryption`: keys for payloads at rest, what they have encrypted, and changing them."""

from __future__ import annotations

from typing import Annotated

import typer

from ostinato.cli import output
from ostinato.cli.settings import Settings, command

group = typer.Typer(help="Encrypt stored payloads, and change the keys.", no_args_is_help=True)


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
    """Count stored payloads by the key that encrypted them."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        found = await app.encryption_status()
    if settings.json:
        output.document({"tenant": app.tenant, "payloads": found})
        return
    lines = [[p.kind, p.key_id or "(not encrypted)", f"{p.count:,}"] for p in found]
    output.table(["payload", "key id", "count"], lines, none="no payloads")


@command(group, "rotate")
async def rotate(settings: Settings) -> None:
    """Encrypt everything that is stored with the first key.

    Workers may go on meanwhile, if they have this key first too. What is done stays done if this is stopped."""
    from ostinato.cli import session

    def progress(table: str, rows: int) -> None:
        if settings.json:
            output.json_line({"table": table, "rows": rows})
        else:
            output.note(f"{table}: {rows:,} rows")

    async with session.opened(settings) as app:
        await session.record(app, "encryption.rotate", "" if app.keyring is None else app.keyring.ids[0])
        count = await app.rotate_encryption(progress)
    if settings.json:
        output.json_line({"rotated": count})
    else:
        output.say(f"rotated: {count:,} row{'' if count == 1 else 's'}")
