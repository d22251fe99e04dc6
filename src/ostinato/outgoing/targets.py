"""From a URL that a user gave to addresses that may be called, or a refusal.

The URL is taken apart here, strictly, and put together again from the parts: no two parsers can read it differently.
The name is resolved once, every address that it has is checked, and these addresses are what is connected to.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import socket
from collections.abc import Callable, Sequence

from ostinato import errors, threads
from ostinato.outgoing import addresses

LONGEST = 4096
PORTS = {"https": 443, "http": 80}

Resolver = Callable[[str, int], Sequence[str]]
"""From a host and a port to addresses. It is called in a thread, and raises OSError if there are none."""

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(#.*)?")
_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclasses.dataclass(frozen=True)
class Url:
    scheme: str
    host: str
    port: int
    path: str
    """With the query."""

    @property
    def authority(self) -> str:
        """As in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def parse(text: str) -> Url:
    """The parts of a URL; what is unusual about it is refused. The fragment is dropped. Any port may be called."""
    if len(text) > LONGEST:
        raise errors.TargetRefused(f"the URL is longer than {LONGEST} characters")
    if not re.fullmatch(r"[!-~]*", text) or "\\" in text:
        raise errors.TargetRefused(
            "the URL has a character that must be percent-encoded; a host is written in ASCII letters, or as xn--…"
        )
    found = _URL.fullmatch(text)
    scheme = found["scheme"].lower() if found else ""
    if found is None or scheme not in PORTS:
        raise errors.TargetRefused("the URL must start with https:// and name a host")
    if "@" in found["authority"]:
        raise errors.TargetRefused("the URL must not hold a user or a password: send an Authorization header")
    parts = _AUTHORITY.fullmatch(found["authority"])
    if parts is None:
        raise errors.TargetRefused("the host or the port of the URL is not valid")
    port = int(parts["port"]) if parts["port"] else PORTS[scheme]
    if not 0 < port < 65536:
        raise errors.TargetRefused("the port of the URL must be 1 to 65535")
    rest = found["rest"]
    return Url(scheme, _host(parts), port, rest if rest.startswith("/") else f"/{rest}")


def _host(parts: re.Match[str]) -> str:
    if parts["v6"]:
        try:
            return str(ipaddress.IPv6Address(parts["v6"]))
        except ValueError:
            raise errors.TargetRefused("the host of the URL is not a valid IPv6 address") from None
    name = parts["name"].lower()
    if not _NAME.fullmatch(name):
        raise errors.TargetRefused("the host of the URL is not a valid name")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        # What ends in a number is an IPv4 address to every resolver, be it octal, hexadecimal or short.
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError:
            raise errors.TargetRefused("write the IPv4 address of the URL as four decimal numbers") from None
    return name


def from_system(host: str, port: int) -> list[str]:
    """What the resolver of this machine says."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Guard:
    """Decides which hosts may be called. `allow` holds names, addresses and networks that are not public."""

    def __init__(self, allow: Sequence[str], resolver: Resolver = from_system) -> None:
        self._resolver = resolver
        self._networks: list[addresses.Network] = []
        self._names: set[str] = set()
        for entry in allow:
            try:
                self._networks.append(ipaddress.ip_network(entry))
            except ValueError:
                self._names.add(_allowed_name(entry))

    async def addresses_of(self, url: Url) -> list[str]:
        """The addresses to connect to: one that must not be called is enough to refuse them all."""
        found = await self._resolve(url)
        if not all(self._allowed(url.host, address) or addresses.is_public(address) for address in found):
            raise errors.TargetRefused(
                f"{url.host} must not be called: it is not on the internet. The operator of this server can allow it"
            )
        if url.scheme == "http" and not all(self._allowed(url.host, address) for address in found):
            raise errors.TargetRefused(f"{url.host} must be called with https://")
        return [str(address) for address in found]

    async def _resolve(self, url: Url) -> list[addresses.Address]:
        try:
            return [addresses.read(url.host)]
        except ValueError:
            pass  # it is a name
        try:
            found = await threads.run(lambda: self._resolver(url.host, url.port))
        except (OSError, UnicodeError):
            found = ()
        if not found:
            raise errors.TargetUnreachable(f"{url.host} could not be found")
        try:
            return [addresses.read(text) for text in found]
        except ValueError:
            raise errors.TargetRefused(f"{url.host} must not be called: its address is of no known kind") from None

    def _allowed(self, host: str, address: addresses.Address) -> bool:
        return host in self._names or any(address in network for network in self._networks)


def _allowed_name(entry: str) -> str:
    name = entry.lower()
    if not _NAME.fullmatch(name) or _NUMBER.fullmatch(name.rpartition(".")[2]):
        raise errors.InvalidInput(f"allow must hold hosts, addresses and networks, not {entry!r}", field="allow")
    return name
