"""Something between a program and its PostgreSQL: a pooler that keeps to itself what was asked for, or a dead line.

It speaks no more of the protocol than its first packet. `silent` lets nothing pass any more, in either direction, and
closes nothing, as when a machine has lost its power: connections that are there, and new ones, get no answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncGenerator, Collection
from typing import Self
from urllib.parse import parse_qs, urlsplit, urlunsplit

_WANTS_TLS = 80877103
_WANTS_CANCEL = 80877102


class Proxy:
    """A server on a port of its own. `dropped` are parameters of the first packet that do not get through."""

    def __init__(self, url: str, *, dropped: Collection[str] = ()) -> None:
        self._parts = urlsplit(url)
        self._dropped = dropped
        self._loud = asyncio.Event()
        self._loud.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.connections = 0

    @property
    def silent(self) -> bool:
        return not self._loud.is_set()

    @silent.setter
    def silent(self, value: bool) -> None:
        if value:
            self._loud.clear()
        else:
            self._loud.set()

    def forget(self) -> None:
        """Nothing passes any more over the connections that are there, and new ones are as good as ever."""
        self._loud.clear()
        self._loud = asyncio.Event()
        self._loud.set()

    @property
    def url(self) -> str:
        user = self._parts.netloc.rpartition("@")[0]
        netloc = f"{user}@127.0.0.1:{self.port}" if user else f"127.0.0.1:{self.port}"
        return urlunsplit(self._parts._replace(netloc=netloc, query=""))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        loud = self._loud
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            async with self._upstream() as (from_server, to_server), _closing(writer):
                to_server.write(await self._first(reader, writer, loud))
                passing = [self._pass(reader, to_server, loud), self._pass(from_server, writer, loud)]
                done = [asyncio.ensure_future(one) for one in passing]
                try:
                    await asyncio.wait(done, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for one in done:
                        one.cancel()
                    await asyncio.gather(*done, return_exceptions=True)

    async def _first(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, loud: asyncio.Event) -> bytes:
        while True:
            length = await reader.readexactly(4)
            body = await reader.readexactly(struct.unpack("!i", length)[0] - 4)
            await loud.wait()
            [code] = struct.unpack("!i", body[:4])
            if code == _WANTS_TLS:
                writer.write(b"N")
                continue
            if code == _WANTS_CANCEL:
                return length + body
            words = body[4:].split(b"\0")
            pairs = [(name, value) for name, value in zip(words[::2], words[1::2], strict=False) if name]
            kept = [(name, value) for name, value in pairs if name.decode() not in self._dropped]
            body = body[:4] + b"".join(name + b"\0" + value + b"\0" for name, value in kept) + b"\0"
            return struct.pack("!i", len(body) + 4) + body

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, loud: asyncio.Event) -> None:
        while data := await reader.read(65536):
            await loud.wait()
            writer.write(data)
            await writer.drain()

    @contextlib.asynccontextmanager
    async def _upstream(self) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        query = parse_qs(self._parts.query)
        host = query.get("host", [self._parts.hostname or "127.0.0.1"])[0]
        port = int(query.get("port", [self._parts.port or 5432])[0])
        if host.startswith("/"):
            reader, writer = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            reader, writer = await asyncio.open_connection(host, port)
        async with _closing(writer):
            yield reader, writer


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
