"""Talking to a server: one request at a time, answers as values, problems as the errors that they stand for."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from ostinato import errors

T = TypeVar("T")
log = logging.getLogger("ostinato")

SECONDS = 30.0
"""How long any answer may take; a claim says itself how much longer."""
IDLE_SECONDS = 4.0
"""A connection that was not used for so long is not used again: the server may just be closing it."""
SHORTEST_PAUSE = 0.05
LONGEST_PAUSE = 5.0
TROUBLE = (errors.ServerUnavailable, errors.TooManyRequests, errors.Unauthenticated, errors.Forbidden)
"""Errors that are not about what was said: it can be said again later."""

_encode = msgspec.json.Encoder().encode


class Link:
    """A server and the key for it. `call` is for the event loop, `call_now` for a thread that can wait."""

    def __init__(self, server: str, key: str | None) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise errors.InvalidInput(f"{parts.hostname or server!r} is not the address of a server", field="server")
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        limits = httpx2.Limits(keepalive_expiry=IDLE_SECONDS)
        self.server = server.rstrip("/")
        self._client = httpx2.AsyncClient(base_url=self.server, headers=headers, timeout=SECONDS, limits=limits)
        self._blocking = httpx2.Client(base_url=self.server, headers=headers, timeout=SECONDS, limits=limits)

    async def close(self) -> None:
        self._blocking.close()
        await self._client.aclose()

    async def call(self, path: str, body: Any, answer: type[T], *, wait: float = 0.0) -> T:
        try:
            reply = await self._client.post(path, content=_encode(body), timeout=SECONDS + wait)
        except httpx2.HTTPError as error:
            raise _unavailable(error) from None
        return _read(reply, answer)

    def call_now(self, path: str, body: Any, answer: type[T], *, seconds: float = SECONDS) -> T:
        try:
            reply = self._blocking.post(path, content=_encode(body), timeout=seconds)
        except httpx2.HTTPError as error:
            raise _unavailable(error) from None
        return _read(reply, answer)


class Pauses:
    """How long to wait before the next try: longer each time, and never the same for two workers."""

    def __init__(self) -> None:
        self._next = SHORTEST_PAUSE

    def reset(self) -> None:
        self._next = SHORTEST_PAUSE

    async def after(self, error: errors.OstinatoError, what: str) -> None:
        seconds = self._next * (0.5 + random.random())
        self._next = min(self._next * 2, LONGEST_PAUSE)
        if isinstance(error, errors.TooManyRequests):
            seconds = max(seconds, error.seconds)
        else:
            log.warning("%s: %s; trying again in %.2f s", what, error, seconds)
        await asyncio.sleep(seconds)


def _unavailable(error: Exception) -> errors.ServerUnavailable:
    reason = str(error) or type(error).__name__
    return errors.ServerUnavailable(f"the server cannot be reached: {reason}")


def _read(reply: httpx2.Response, answer: type[T]) -> T:
    if reply.is_success:
        try:
            return msgspec.json.decode(reply.content, type=answer)
        except msgspec.MsgspecError as error:
            raise errors.ServerUnavailable(f"the answer is not that of an Ostinato server: {error}") from None
    raise _problem(reply)


def _problem(reply: httpx2.Response) -> errors.OstinatoError:
    """What the server complains of, as the error that it was there."""
    try:
        said = msgspec.json.decode(reply.content, type=dict[str, Any])
        code, detail = str(said["code"]), str(said["detail"])
    except (msgspec.MsgspecError, KeyError):
        return errors.ServerUnavailable(f"the server answers {reply.status_code}")
    if reply.status_code == 429:
        return errors.TooManyRequests(float(said.get("retryAfter", 1.0)))
    if reply.status_code >= 500:
        return errors.ServerUnavailable(f"the server answers {reply.status_code}: {detail}")
    kind = _KINDS.get(code, errors.RequestRefused)
    return kind(detail, **{name: said[name] for name in ("jobId", "taskId", "field") if name in said})


def _kinds(kind: type[errors.OstinatoError]) -> Iterator[type[errors.OstinatoError]]:
    """All errors that are made from a sentence, which those with an `__init__` of their own are not."""
    for below in kind.__subclasses__():
        if "__init__" not in below.__dict__:
            yield below
            yield from _kinds(below)


_KINDS = {kind.code: kind for kind in _kinds(errors.OstinatoError)}
