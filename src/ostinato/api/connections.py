"""How many connections a server holds, and which of them is closed when a new one needs its place.

A connection is *quiet* until a request on it was let in, and again when that request was answered. Quiet connections
are closed for new ones, the longest quiet first, so a new connection always gets in and a stranger cannot hold a place.
A tenth of each bound is kept for quiet connections: health checks need no key, and are answered when all else is full.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import ipaddress
import logging
import time

from starlette.types import Scope

from ostinato import errors
from ostinato.api import settings

KEPT_DESCRIPTORS = 256
"""Descriptors that are not for connections: the database, files, pipes, and connections that are just being closed."""
MOST_DESCRIPTORS = 65_536
TOLD_SECONDS = 60.0

log = logging.getLogger("ostinato")


class Group:
    """All connections, or those of one address."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.room = most - max(1, most // 10)
        self.busy = 0
        self.quiet: collections.OrderedDict[Connection, None] = collections.OrderedDict()

    @property
    def open(self) -> int:
        return self.busy + len(self.quiet)


class Connection:
    """One connection, whatever is spoken on it."""

    def __init__(self, transport: asyncio.Transport, address: str, groups: tuple[Group, Group]) -> None:
        self.transport = transport
        self.address = address
        self.groups = groups
        self.busy = False
        self.closed = False

    def spoke(self) -> None:
        """The head of a request is there: other quiet ones go before this one."""
        if not self.busy and not self.closed:
            for group in self.groups:
                group.quiet.move_to_end(self)

    def admit(self) -> None:
        """A request was let in: the connection stays until it is answered. ServerFull if there is no room."""
        if self.busy or self.closed:
            return
        if any(group.busy >= group.room for group in self.groups):
            raise errors.ServerFull()
        self.busy = True
        for group in self.groups:
            del group.quiet[self]
            group.busy += 1

    def release(self) -> None:
        """The answer is complete."""
        if self.busy and not self.closed:
            self.busy = False
            for group in self.groups:
                group.busy -= 1
                group.quiet[self] = None


class Connections:
    def __init__(self, most: int, most_per_address: int) -> None:
        self._all = Group(most)
        self._most_per_address = most_per_address
        self._addresses: dict[str, Group] = {}
        self._told_at = -TOLD_SECONDS

    def __len__(self) -> int:
        return self._all.open

    def bound(self, descriptors: int | None) -> None:
        """Hold no more than there are descriptors for."""
        room = (
            self._all.most if descriptors is None else max(settings.FEWEST_CONNECTIONS, descriptors - KEPT_DESCRIPTORS)
        )
        if room < self._all.most:
            log.warning("the limit of %d descriptors leaves room for %d connections", descriptors, room)
            self._all = Group(room)

    def opened(self, transport: asyncio.Transport, client: str | None) -> Connection:
        """A new connection. If that is one too many, of its address or at all, the longest quiet one is closed."""
        address = _neighbourhood(client)
        mine = self._addresses.get(address) or Group(self._most_per_address)
        groups = (mine, self._all)
        for group in groups:
            if group.open >= group.most:
                self._drop(next(iter(group.quiet)))  # there is one: not all may be busy
        self._addresses[address] = mine
        made = Connection(transport, address, groups)
        for group in groups:
            group.quiet[made] = None
        return made

    def closed(self, connection: Connection) -> None:
        if connection.closed:
            return
        connection.closed = True
        for group in connection.groups:
            if connection.busy:
                group.busy -= 1
            else:
                del group.quiet[connection]
        if not connection.groups[0].open:
            self._addresses.pop(connection.address, None)

    def _drop(self, connection: Connection) -> None:
        now = time.monotonic()
        if now - self._told_at >= TOLD_SECONDS:
            self._told_at = now
            log.warning("quiet connections are closed for new ones: %d are open", len(self))
        self.closed(connection)
        connection.transport.abort()


def admit(scope: Scope) -> None:
    """Whoever asks on this connection was let in."""
    connection: Connection | None = scope["state"].get("connection")
    if connection is not None:  # there is none without a network
        connection.admit()


def raise_limit() -> int | None:
    """Let this process have as many descriptors as it may; how many that are, None if there is no such limit here."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return min(soft, MOST_DESCRIPTORS) if soft >= 0 else MOST_DESCRIPTORS
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # a system with a bound of its own
        return soft
    return wanted


@functools.lru_cache(maxsize=4096)
def _neighbourhood(client: str | None) -> str:
    """Who counts as one address: of IPv6, everybody has 2**64."""
    try:
        address = ipaddress.ip_address(client or "")
    except ValueError:
        return client or ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.IPv6Network((address, 64), strict=False))
