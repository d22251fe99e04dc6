"""For programs that have a client of OpenAI's SDK already, with an authentication or a gateway of its own.

The client decides where it connects to: use it for endpoints that the operator chose, not for those of tenants. Its own
retries are turned off, and the address and the key of the settings are not used; the key still tells apart whose calls
wait for each other.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ostinato import errors, outgoing
from ostinato.agents import llm, wire
from ostinato.core import codec

if TYPE_CHECKING:
    import openai

MOST_BYTES = outgoing.CallOptions.max_answer_bytes


class Sdk:
    """Carries requests by an `openai.AsyncOpenAI`."""

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self._client = client.with_options(max_retries=0)
        self._host = client.base_url.host

    def address(self, settings: llm.LlmSettings) -> str:
        return wire.address(str(self._client.base_url))

    async def post(
        self, settings: llm.LlmSettings, body: bytes, *, idempotency_key: str | None, timeout: float
    ) -> outgoing.Answer:
        import httpx2
        import openai

        try:
            async with asyncio.timeout(timeout):
                return await self._post(codec.decode(body), idempotency_key)
        except openai.APIStatusError as error:
            return outgoing.Answer(error.status_code, dict(error.response.headers), error.response.content)
        except (TimeoutError, openai.APITimeoutError, httpx2.TimeoutException):
            raise errors.TargetUnreachable(f"{self._host} did not answer within {timeout:g} s") from None
        except (openai.OpenAIError, httpx2.HTTPError):
            raise errors.TargetUnreachable(f"the connection to {self._host} broke off") from None

    async def _post(self, fields: dict[str, Any], idempotency_key: str | None) -> outgoing.Answer:
        # Everything goes as it is: the SDK's own idea of what an endpoint takes would drop what it does not know.
        own = {name: fields.pop(name) for name in ("model", "messages")}
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        create: Any = self._client.chat.completions.with_streaming_response.create
        async with create(**own, extra_body=fields, extra_headers=headers, timeout=None) as response:
            body = bytearray()
            async for part in response.iter_bytes():
                body += part
                if len(body) > MOST_BYTES:
                    raise errors.CallRejected(f"{self._host} answered with more than {MOST_BYTES:,} bytes")
            return outgoing.Answer(response.status_code, dict(response.headers), bytes(body))
