"""Keys: 256 random bits that are shown once. Only their hash is stored, so a stolen database opens no door."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from typing import NamedTuple

from ostinato import errors
from ostinato.core import absent, graph, scopes
from ostinato.store import database
from ostinato.store.database import fetch

PREFIX = "ost"
USE_NOTED_EVERY = 60_000_000
"""Microseconds: reading with a key must not cost a write each time."""
_NO_SECRET = bytes(32)
_TEXT = re.compile(rf"{PREFIX}_([0-9a-f]{{16}})_([0-9a-f]{{64}})")


class Key(NamedTuple):
    """A key as it is stored, in the order of its columns."""

    tenant: str
    key_id: str
    name: str
    secret_hash: bytes
    scopes: frozenset[str]
    created_at: int
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None

    def works(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class NewKey(NamedTuple):
    """A key that was just made, with the only copy of its text."""

    key: Key
    text: str


class Keys:
    db: database.Database

    async def create_key(
        self, tenant: str, name: str, granted: Iterable[str], *, expires_in: float | None = None
    ) -> NewKey:
        """Make a key. Its text is in the answer and nowhere else."""
        graph.check_id(tenant, "tenant")
        graph.check_name(name, "name")
        allowed = scopes.check(granted)
        key_id, secret = secrets.token_hex(8), secrets.token_hex(32)
        life = None if expires_in is None else int(graph.check_seconds(expires_in, "expires") * 1e6)

        def script() -> database.Script[Key]:
            now = self.db.now()
            expires_at = None if life is None else now + life
            made = Key(tenant, key_id, name, _hash(secret), allowed, now, expires_at, None, None)
            yield fetch(
                "insert_key",
                tenant=tenant,
                key_id=key_id,
                name=name,
                secret_hash=made.secret_hash,
                scopes=" ".join(sorted(allowed)),
                now=now,
                expires_at=expires_at,
            )
            return made

        return NewKey(await self.db.write(script), f"{PREFIX}_{key_id}_{secret}")

    async def keys(self, tenant: str) -> list[Key]:
        def script() -> database.Script[list[Key]]:
            return [_key(row) for row in (yield fetch("list_keys", tenant=tenant))]

        return await self.db.read(script, snapshot=False)

    async def revoke_key(self, tenant: str, key_id: str) -> int:
        """Let a key open nothing any more; the answer is since when."""

        def script() -> database.Script[int]:
            found = yield fetch("revoke_key", tenant=tenant, key_id=key_id, now=self.db.now())
            if not found:
                raise errors.KeyNotFound(f"there is no key {absent.named(key_id)}", keyId=absent.cut(key_id))
            return found[0][0]

        return await self.db.write(script)

    async def find_key(self, key_id: str) -> Key | None:
        """A key of any tenant: this is how a request gets to know its tenant."""

        def script() -> database.Script[Key | None]:
            found = yield fetch("find_key", key_id=key_id)
            return _key(found[0]) if found else None

        return await self.db.read(script, snapshot=False, brief=True)

    async def any_key(self) -> bool:
        """Whether anybody has ever made a key. From then on nobody comes in without one."""

        def script() -> database.Script[bool]:
            return bool((yield fetch("any_key")))

        return await self.db.read(script, snapshot=False, brief=True)

    async def note_use(self, tenant: str, key_id: str) -> None:
        """A key was used. Written at most once a minute."""

        def script() -> database.Script[None]:
            now = self.db.now()
            yield fetch("touch_key", tenant=tenant, key_id=key_id, now=now, before=now - USE_NOTED_EVERY)

        await self.db.write(script)


def split(text: str) -> tuple[str, str] | None:
    """(key id, secret) of the text of a key; None if it is not one."""
    found = _TEXT.fullmatch(text)
    return None if found is None else (found[1], found[2])


def matches(key: Key | None, secret: str) -> bool:
    """Compared in constant time, and no sooner done for a key that does not exist."""
    expected = _NO_SECRET if key is None else key.secret_hash
    return hmac.compare_digest(_hash(secret), expected) and key is not None


def _hash(secret: str) -> bytes:
    """A fast hash is right here: nobody guesses 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _key(row: database.Row) -> Key:
    tenant, key_id, name, secret_hash, granted, *times = row
    return Key(tenant, key_id, name, bytes(secret_hash), frozenset(granted.split()), *times)
