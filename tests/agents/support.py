"""A real server that speaks the chat completions protocol, and does what a test tells it to."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

from tests.outgoing import support

KEY = "sk-Very5ecret-0123456789abcdef"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"category": {"enum": ["fire", "flood"]}, "severity": {"type": "integer", "minimum": 1}},
    "required": ["category", "severity"],
    "additionalProperties": False,
}
GOOD = {"category": "fire", "severity": 2, "evidence": ["smoke over the roof"]}


class Request:
    def __init__(self, raw: support.Request) -> None:
        self.line = raw.line
        self.headers = raw.headers
        self.body: dict[str, Any] = json.loads(raw.body)

    @property
    def format(self) -> str:
        return self.body.get("response_format", {"type": "text"})["type"]


Behaviour = support.Behaviour
Choosing = Callable[[Request], Behaviour]


class Endpoint(support.Listener):
    """Answers with what is in the script, one after the other; the last one again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.script: collections.deque[Behaviour] = collections.deque()
        self.choose: Choosing | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def plan(self, *script: Behaviour) -> None:
        self.script = collections.deque(script)

    def take(self, request: support.Request) -> Behaviour:
        self.requests.append(read := Request(request))
        if self.choose is not None:
            return self.choose(read)
        return self.script.popleft() if len(self.script) > 1 else self.script[0]


@contextlib.asynccontextmanager
async def running() -> AsyncGenerator[Endpoint]:
    endpoint = Endpoint()
    async with endpoint.listening():
        yield endpoint


def saying(
    content: Any = GOOD,
    *,
    finish: str | None = "stop",
    usage: Any = (100, 20),
    headers: dict[str, str] | None = None,
    after: float = 0,
    **message: Any,
) -> Behaviour:
    """A completion. What is not text is sent as JSON, as models do."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    document: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model-2026-11-01",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        ],
    }
    if isinstance(usage, tuple):
        sent, got = cast("tuple[int, int]", usage)
        usage = {"prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got}
    if usage is not None:
        document["usage"] = usage
    answer = sending(document, headers=headers)

    async def behave(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(after)
        await answer(writer)

    return behave


def sending(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Behaviour:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return support.answering(status, body, **{"Content-Type": "application/json", **(headers or {})})


def refusing(
    status: int, message: str = "no", code: str | None = None, headers: dict[str, str] | None = None
) -> Behaviour:
    """An error as the protocol has it. Providers quote the key in the text, so this does too."""
    error = {"message": f"{message}: {KEY}", "type": "some_error", "param": None, "code": code}
    return sending({"error": error}, status, headers)
