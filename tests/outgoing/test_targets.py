"""What must never be called. Only the resolver is a fake one; nothing here opens a connection."""

from collections.abc import Sequence

import pytest

from ostinato import errors, outgoing
from ostinato.outgoing import targets

INSIDE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",  # a metadata service
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",  # a platform service
    "169.254.0.1",
    "169.254.169.254",  # a metadata service
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",  # a metadata service
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::127.0.0.1",
    "::10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::1",  # 6to4 of 127.0.0.1
    "2002:a9fe:a9fe::",
    "2002:c0a8:101::1",
    "2a00:1450::5efe:10.0.0.1",  # ISATAP
    "2a00:1450::200:5efe:192.168.0.1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",  # a metadata service
    "fe80::1",
    "fe80::1%eth0",
    "2a00:1450:4001::1%eth0",
    "fec0::1",
    "ff02::1",
    "4000::1",
    "no address",
]
OUTSIDE = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2a00:1450:4001:813::200e", "2606:4700::1111"]
ODD = [
    "",
    "hooks.example",
    "//hooks.example/",
    "https:/hooks.example",
    "https:hooks.example",
    "https://",
    "https:///path",
    "https://:443/",
    "https://?x",
    "ftp://hooks.example/",
    "file:///etc/passwd",
    "gopher://hooks.example/",
    "unix:///var/run/docker.sock",
    "javascript:alert(1)",
    "https://user@hooks.example/",
    "https://user:pass@hooks.example/",
    "https://hooks.example@127.0.0.1/",
    "https://127.0.0.1:443@hooks.example/",
    "https://hooks.example:0/",
    "https://hooks.example:65536/",
    "https://hooks.example:99999999/",
    "https://hooks.example:-1/",
    "https://hooks.example:/\\",
    "https://hooks.example:port/",
    "https://hooks.example:44３/",
    "https://hooks.example\\@127.0.0.1/",
    "https:\\\\hooks.example/",
    "https://hooks.example/a b",
    "https://hooks.example/a\r\nX-B: c",
    "https://hooks.example/\tb",
    " https://hooks.example/",
    "https://hooks.example/\0",
    "https://hooks.example\n/",
    "https://hooks.example/ä",
    "https://hööks.example/",
    "https://①②⑦.0.0.1/",
    "https://１２７.0.0.1/",
    "https://127。0。0。1/",
    "https://hooks.example./",
    "https://hooks..example/",
    "https://.hooks.example/",
    "https://-hooks.example/",
    "https://hooks-.example/",
    "https://%31%32%37.0.0.1/",
    "https://hooks%2eexample/",
    f"https://{'a' * 64}.example/",
    f"https://{'a.' * 127}example/",
    "https://hooks.example/" + "a" * 5000,
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://0X7F.0.0.1/",
    "https://0x.0x.0x.0x/",
    "https://017700000001/",
    "https://0177.0.0.1/",
    "https://2130706433/",
    "https://127.1/",
    "https://127.0.1/",
    "https://0/",
    "https://127.0.0.1.1/",
    "https://256.0.0.1/",
    "https://hooks.example.0x10/",
    "https://[::1/",
    "https://[::1]x/",
    "https://[]/",
    "https://[1::2::3]/",
    "https://[fe80::1%25eth0]/",
    "https://[v1.x]/",
    "https://::1/",
]


class Resolver:
    def __init__(self, *found: str) -> None:
        self.found = found
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.found


def literal(address: str) -> str:
    return f"[{address}]" if ":" in address else address


@pytest.mark.parametrize("address", INSIDE)
async def test_a_name_with_an_address_inside_is_refused(address: str) -> None:
    resolver = Resolver(address)
    with pytest.raises(errors.TargetRefused) as caught:
        await outgoing.Caller(resolver=resolver).post("https://hooks.example/", b"")
    assert address not in caught.value.message
    assert resolver.asked == 1


@pytest.mark.parametrize("address", INSIDE)
async def test_one_address_inside_among_others_is_enough(address: str) -> None:
    with pytest.raises(errors.TargetRefused):
        await outgoing.Caller(resolver=Resolver("8.8.8.8", address)).post("https://hooks.example/", b"")


@pytest.mark.parametrize("address", INSIDE)
async def test_an_address_inside_is_refused_when_written_out(address: str) -> None:
    resolver = Resolver("8.8.8.8")
    with pytest.raises(errors.TargetRefused):
        await outgoing.Caller(resolver=resolver).post(f"https://{literal(address)}/", b"")
    assert resolver.asked == 0


@pytest.mark.parametrize("url", ODD)
async def test_an_unusual_url_is_refused_before_anything_is_asked(url: str) -> None:
    resolver = Resolver("8.8.8.8")
    with pytest.raises(errors.TargetRefused):
        await outgoing.Caller(resolver=resolver).post(url, b"")
    assert resolver.asked == 0


async def addresses_of(url: str, *found: str, allow: Sequence[str] = ()) -> list[str]:
    return await targets.Guard(allow, Resolver(*found)).addresses_of(targets.parse(url))


@pytest.mark.parametrize("address", OUTSIDE)
async def test_what_is_outside_may_be_called(address: str) -> None:
    assert await addresses_of("https://hooks.example/", address) == [address]
    assert await addresses_of(f"https://{literal(address)}/") == [address]


async def test_what_wraps_a_public_address_may_be_called() -> None:
    assert await addresses_of("https://hooks.example/", "::ffff:8.8.8.8") == ["8.8.8.8"]
    assert await addresses_of("https://hooks.example/", "64:ff9b::808:808") == ["64:ff9b::808:808"]
    assert await addresses_of("https://hooks.example/", "2002:808:808::1") == ["2002:808:808::1"]


async def test_plain_http_is_for_allowed_hosts_only() -> None:
    with pytest.raises(errors.TargetRefused, match="https://"):
        await addresses_of("http://hooks.example/", "8.8.8.8")
    with pytest.raises(errors.TargetRefused, match="https://"):
        await addresses_of("http://hooks.example/", "8.8.8.8", "10.0.0.1", allow=["10.0.0.0/8"])
    assert await addresses_of("http://hooks.example/", "8.8.8.8", allow=["hooks.example"]) == ["8.8.8.8"]


async def test_hosts_and_networks_can_be_allowed() -> None:
    assert await addresses_of("https://a.internal/", "10.1.2.3", allow=["10.0.0.0/8"]) == ["10.1.2.3"]
    assert await addresses_of("https://a.internal/", "::ffff:10.1.2.3", allow=["10.0.0.0/8"]) == ["10.1.2.3"]
    assert await addresses_of("https://A.internal/", "fd00::1", allow=["a.Internal"]) == ["fd00::1"]
    assert await addresses_of("https://[::1]/", allow=["::1"]) == ["::1"]
    with pytest.raises(errors.TargetRefused):
        await addresses_of("https://b.a.internal/", "10.1.2.3", allow=["a.internal"])
    with pytest.raises(errors.TargetRefused):
        await addresses_of("https://a.internal/", "10.1.2.3", "127.0.0.1", allow=["10.0.0.0/8"])


@pytest.mark.parametrize("entry", ["", "*", "10.0.0.1/8", "10.0.0.0/33", "https://a.internal", "a b", "10.1"])
def test_what_may_be_allowed_is_checked(entry: str) -> None:
    with pytest.raises(errors.InvalidInput, match="allow"):
        outgoing.Caller(outgoing.CallOptions(allow=(entry,)))


async def test_a_name_that_is_not_there_may_come_back() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    with pytest.raises(errors.TargetUnreachable, match=r"hooks\.example could not be found"):
        await outgoing.Caller(resolver=unknown).post("https://hooks.example/", b"")


@pytest.mark.parametrize(
    ("text", "authority", "path"),
    [
        ("https://Hooks.Example", "hooks.example", "/"),
        ("HTTPS://hooks.example:443/a?b=c#d", "hooks.example", "/a?b=c"),
        ("https://hooks.example:8443?x", "hooks.example:8443", "/?x"),
        ("http://hooks.example:443/", "hooks.example:443", "/"),
        ("https://[2A00:1450::1]:8080//x", "[2a00:1450::1]:8080", "//x"),
        ("https://xn--hks-qlaa.example/@x", "xn--hks-qlaa.example", "/@x"),
    ],
)
def test_the_parts_of_a_url(text: str, authority: str, path: str) -> None:
    url = targets.parse(text)
    assert (url.authority, url.path) == (authority, path)


def test_the_resolver_of_this_machine() -> None:
    assert targets.from_system("127.0.0.1", 80) == ["127.0.0.1"]
