"""Every request has an answer in time, also when the database is silent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato import errors

ANSWER_SECONDS = 20.0
"""From when the request is there to the beginning of its answer. What streams may then go on."""
READY_SECONDS = 1.5
"""Whether a server can work is asked by who takes it out of rotation, and waits no longer than a second or two."""


class Answers:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        async with within(ANSWER_SECONDS) as deadline:
            scope["state"]["deadline"] = deadline

            async def answer(message: Message) -> None:
                if message["type"] == "http.response.start":
                    deadline.reschedule(None)
                await send(message)

            await self._app(scope, receive, answer)


@contextlib.asynccontextmanager
async def within(seconds: float) -> AsyncGenerator[asyncio.Timeout]:
    """DatabaseUnavailable after this long: nothing else takes a request that time."""
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            yield deadline
    except TimeoutError:
        if not deadline.expired():
            raise
        raise errors.DatabaseUnavailable(f"the database has not answered within {seconds:g} s") from None


def allow(request: Request, seconds: float) -> None:
    """For a request that is to wait for something to happen."""
    deadline: asyncio.Timeout | None = request.scope["state"].get("deadline")
    if deadline is not None:
        deadline.reschedule(asyncio.get_running_loop().time() + seconds + ANSWER_SECONDS)
