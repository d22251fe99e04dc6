"""Which addresses are out on the internet: nothing else may be called unless it was allowed by name or network.

The lists are spelt out because what `ipaddress` calls global changed between versions of Python.
"""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_CLOSED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by the customers of a carrier; also a metadata service
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # the platform service of a cloud, on an address that looks public
        "169.254.0.0/16",  # link-local, metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, a metadata service
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "2001::/23",  # protocol assignments: Teredo (which hides an IPv4 address), benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All of IPv6 that is given out. Loopback, link-local, site-local, unique local and multicast lie outside."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""The well-known prefix. The one for local use, 64:ff9b:1::/48, is outside the global unicast and stays closed."""
_ISATAP = (bytes.fromhex("00005efe"), bytes.fromhex("02005efe"))


def read(text: str) -> Address:
    """The address; one that is an IPv4 address in the guise of IPv6 is given as IPv4. Raises ValueError."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise ValueError("an address with a zone is only of use on this machine")
        return address.ipv4_mapped or address
    return address


def is_public(address: Address) -> bool:
    """Whether it, and the IPv4 address that it may carry, is out on the internet."""
    destination = _destination(address)
    if any(destination in network for network in _CLOSED):
        return False
    return isinstance(destination, ipaddress.IPv4Address) or destination in _GLOBAL_UNICAST


def _destination(address: Address) -> Address:
    """Where packets go in the end: several kinds of IPv6 address are a wrapping for an IPv4 address."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour or address
    packed = address.packed
    compatible = packed[:12] == bytes(12)
    if compatible or address in _NAT64 or packed[8:12] in _ISATAP:
        return ipaddress.IPv4Address(packed[12:])
    return address
