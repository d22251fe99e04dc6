"""Who is asking: from the text of a key to a principal, for every way in."""

from __future__ import annotations

import asyncio
import collections
import ipaddress
import logging
import time
from typing import TypeVar

import msgspec

from ostinato import errors
from ostinato.core import scopes
from ostinato.store import keys, store

T = TypeVar("T")
REMEMBERED_SECONDS = 2.0
"""How long a looked-up key is believed, and so the longest that a revoked one goes on working."""
MOST_REMEMBERED = 10_000
"""Keys that exist, and as many made-up ones: these do not push out those."""

log = logging.getLogger("ostinato")


class Principal(msgspec.Struct, frozen=True):
    """Who is asking. The tenant of everything they see and do is this one, whatever a request says."""

    tenant: str
    key_id: str | None
    """None for whoever is at this machine, on a server that has no keys yet."""
    name: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        return scopes.allows(self.scopes, scope)

    def require(self, scope: str) -> None:
        if not self.may(scope):
            raise errors.Forbidden(f"this key does not have the scope {scope}", scope=scope)

    @property
    def actor(self) -> str:
        """How the history names them."""
        return "local" if self.key_id is None else f"key:{self.key_id}"


class Access:
    """Lets people in by their key. With `open_as`, a server without any key serves its own machine as that tenant."""

    def __init__(self, target: store.Store, *, open_as: str | None = None) -> None:
        self._store = target
        self._open_as = open_as
        self._real: collections.OrderedDict[str, tuple[float, keys.Key]] = collections.OrderedDict()
        self._made_up: collections.OrderedDict[str, float] = collections.OrderedDict()
        self._use_noted: dict[str, float] = {}
        self._noting: set[asyncio.Task[None]] = set()

    def knows(self, text: str | None) -> bool:
        """Whether nothing need be read to refuse this, or it is a key that has been seen here."""
        if text is None:
            return self._open_as is None
        parts = keys.split(text)
        return parts is None or parts[0] in self._real

    async def authenticate(self, text: str | None, client: str | None) -> Principal:
        """Whose key this is. Without a key: whoever is at this machine, if there are no keys; else Unauthenticated."""
        if text is None:
            if self._open_as is not None and is_loopback(client) and await self._has_no_keys():
                return Principal(self._open_as, None, "local", frozenset(scopes.SCOPES))
            raise errors.Unauthenticated()
        key_id, secret = keys.split(text) or ("", "")
        key = await self._find(key_id)
        if not keys.matches(key, secret) or key is None or not key.works(self._store.db.now()):
            raise errors.Unauthenticated()
        self._note_use(key)
        return Principal(key.tenant, key.key_id, key.name, key.scopes)

    async def still_valid(self, principal: Principal) -> bool:
        """Whether somebody who came in before would come in now: to be asked every few seconds by what stays open."""
        if principal.key_id is None:
            return self._open_as == principal.tenant and await self._has_no_keys()
        key = await self._find(principal.key_id)
        return key is not None and key.works(self._store.db.now()) and key.scopes == principal.scopes

    async def _find(self, key_id: str) -> keys.Key | None:
        """Keys that do not exist are remembered too: guessing the same again costs the database nothing."""
        now = time.monotonic()
        known = self._real.get(key_id)
        if known is not None and now - known[0] < REMEMBERED_SECONDS:
            return known[1]
        if not key_id or now - self._made_up.get(key_id, -1e9) < REMEMBERED_SECONDS:
            return None
        found = await self._store.find_key(key_id)
        if found is None:
            _remember(self._made_up, key_id, now)
        else:
            _remember(self._real, key_id, (now, found))
        return found

    async def _has_no_keys(self) -> bool:
        """Read each time, so that the first key counts at once, whoever made it. From then on nothing is read."""
        if self._open_as is not None and await self._store.any_key():
            self._open_as = None
        return self._open_as is not None

    def _note_use(self, key: keys.Key) -> None:
        """Beside the request: whether this can be written now is of no concern to whoever asks."""
        now = time.monotonic()
        if now - self._use_noted.get(key.key_id, -1e9) < keys.USE_NOTED_EVERY / 1e6:
            return
        if len(self._use_noted) >= MOST_REMEMBERED:
            self._use_noted.clear()
        self._use_noted[key.key_id] = now
        noting = asyncio.get_running_loop().create_task(self._write_use(key))
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)

    async def _write_use(self, key: keys.Key) -> None:
        try:
            await self._store.note_use(key.tenant, key.key_id)
        except errors.OstinatoError as error:
            log.warning("the use of key %s was not noted: %s", key.key_id, error)

    async def close(self) -> None:
        """Finish what is being written."""
        await asyncio.gather(*self._noting)


def _remember(memory: collections.OrderedDict[str, T], key_id: str, what: T) -> None:
    memory[key_id] = what
    memory.move_to_end(key_id)
    if len(memory) > MOST_REMEMBERED:
        memory.popitem(last=False)


def is_loopback(address: str | None) -> bool:
    """Whether an address is this machine; names other than localhost never are."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        return False
