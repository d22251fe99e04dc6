"""A small HTTP server of our own that can misbehave, and certificates for it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Request:
    def __init__(self, head: bytes, body: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.line = lines[0]
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        self.body = body


Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Listener:
    """Reads requests, one a connection, and leaves the answer to those who know it."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self._serving: set[asyncio.Task[None]] = set()

    def take(self, request: Request) -> Behaviour:
        raise NotImplementedError

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._serving.add(task := cast("asyncio.Task[None]", asyncio.current_task()))
        task.add_done_callback(self._serving.discard)
        # A connection may be cancelled wherever it stands, also while it closes.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            try:
                request = Request(await reader.readuntil(b"\r\n\r\n"), b"")
                request.body = await reader.readexactly(int(request.headers["content-length"]))
                await self.take(request)(writer)
            finally:
                writer.close()
                await writer.wait_closed()

    @contextlib.asynccontextmanager
    async def listening(self, tls: ssl.SSLContext | None = None) -> AsyncGenerator[None]:
        listener = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=tls)
        self.port = listener.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            listener.close()
            for task in list(self._serving):
                task.cancel()
            await asyncio.gather(*self._serving)


class Server(Listener):
    """Does the same with every request, and remembers them."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.behave: Behaviour = answering(200, b"fine")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=1"

    def take(self, request: Request) -> Behaviour:
        self.requests.append(request)
        return self.behave


def answering(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()

    return behave


async def dripping(writer: asyncio.StreamWriter) -> None:
    """An answer that never stalls and never ends."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.02)


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def breaking_off(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()


async def talking_nonsense(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.9\r\n")
    await writer.drain()


@contextlib.asynccontextmanager
async def running(tls: ssl.SSLContext | None = None) -> AsyncGenerator[Server]:
    server = Server()
    async with server.listening(tls):
        yield server


def self_signed(folder: Path, name: str) -> tuple[ssl.SSLContext, str]:
    """A context for a server of this name, and the file by which a client may trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, private = folder / "server.pem", folder / "server.key"
    trusted.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(trusted, private)
    return context, str(trusted)
