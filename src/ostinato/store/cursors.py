"""Cursors of a tenant's feed: places in the feed of all tenants, which would tell each how busy the others are.

So they are encrypted, with a secret of the database, for one tenant. The same place is the same cursor, and only places
of events of that tenant are handed out.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from typing import TYPE_CHECKING

from ostinato import errors
from ostinato.core import documents
from ostinato.store import database
from ostinato.store.database import fetch

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

Place = tuple[int, int, int]
"""Where an event stands in the feed: two numbers for its page, and its own in the stream of its job."""
BEGINNING: Place = (0, 0, 0)
_BEGINNING = "0.0.0"
_IN_CLEAR = re.compile(r"\d+\.\d+\.\d+")
_NUMBERS = struct.Struct("!QQQ")


class Cursors:
    """One for all tenants: it reads the secret when it is first needed, past the wall between them."""

    def __init__(self, db: database.Database) -> None:
        self._db = db
        self._sealer: AESSIV | None = None

    async def ready(self) -> Cursors:
        if self._sealer is None:

            def script() -> database.Script[bytes]:
                return bytes((yield fetch("read_feed_secret"))[0][0])

            # Most programs follow no feed, and to import it takes as long as to start.
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV

            self._sealer = AESSIV(await self._db.read(script, snapshot=False))
        return self

    def write(self, tenant: str, place: Place) -> str:
        if place == BEGINNING:
            return _BEGINNING
        sealed = self._known().encrypt(_NUMBERS.pack(*place), [tenant.encode()])
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def read(self, tenant: str, cursor: str | None) -> Place:
        """InvalidInput for everything that was not handed out to this tenant by this database."""
        if not cursor or cursor == _BEGINNING:
            return BEGINNING
        from cryptography.exceptions import InvalidTag

        try:
            sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            major, minor, seq = _NUMBERS.unpack(self._known().decrypt(sealed, [tenant.encode()]))
        except (InvalidTag, ValueError, TypeError, AttributeError, binascii.Error, struct.error):
            raise errors.InvalidInput(_why_not(cursor), field="cursor") from None
        return major, minor, seq

    def _known(self) -> AESSIV:
        if self._sealer is None:
            raise errors.NotRunning()
        return self._sealer


def _why_not(cursor: object) -> str:
    shown = documents.short(cursor)
    if isinstance(cursor, str) and _IN_CLEAR.fullmatch(cursor):
        return f"{shown} is a cursor of an earlier version of Ostinato: begin without one, or at {_BEGINNING}"
    return (
        f"{shown} is not a cursor of this feed: it is damaged, or the cursor is of another database or tenant. Begin "
        "without one"
    )
