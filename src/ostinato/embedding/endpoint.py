"""The embedder that asks a server which speaks OpenAI's protocol: OpenAI itself, or one of many others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ostinato import errors

if TYPE_CHECKING:
    import httpx2

MOST_TEXTS = 128
"""Texts in one request."""
LONGEST_TEXT = 20_000
"""Characters of a text that are sent: models read no more than some thousand words."""


class _Vector(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Vector]


class OpenAIEmbedder:
    """Nothing is tried again here: whoever calls knows best how often, and the errors say whether it may help."""

    def __init__(
        self,
        *,
        model: str,
        dimensions: int,
        api_key: str | None = None,
        base_url: str = "https://api.openai.com/v1",
        shorten: bool = False,
        least: float = 0.2,
        timeout: float = 30.0,
    ) -> None:
        """`dimensions` is how long the model's vectors are; with `shorten`, how long they are to be made."""
        self.name = model
        self.dimensions = dimensions
        self.least = least
        self._api_key = api_key
        self._url = base_url.rstrip("/") + "/embeddings"
        self._shorten = shorten
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"<OpenAIEmbedder {self.name}>"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        import httpx2

        headers = {} if self._api_key is None else {"authorization": f"Bearer {self._api_key}"}
        vectors: list[list[float]] = []
        async with httpx2.AsyncClient(headers=headers, timeout=self._timeout) as client:
            for start in range(0, len(texts), MOST_TEXTS):
                vectors += await self._ask(client, texts[start : start + MOST_TEXTS])
        return vectors

    async def _ask(self, client: httpx2.AsyncClient, texts: Sequence[str]) -> list[list[float]]:
        import httpx2

        from ostinato.outgoing import caller

        # A server refuses a text of nothing.
        body: dict[str, object] = {"model": self.name, "input": [text[:LONGEST_TEXT] or " " for text in texts]}
        if self._shorten:
            body["dimensions"] = self.dimensions
        host = httpx2.URL(self._url).host
        try:
            answer = await client.post(self._url, json=body, follow_redirects=False)
        except httpx2.TimeoutException:
            raise errors.TargetUnreachable(f"{host} did not answer within {self._timeout:g} s") from None
        except httpx2.HTTPError:
            raise errors.TargetUnreachable(f"{host} could not be reached, or broke off") from None
        caller.check_status(host, answer)
        return self._read(host, answer.content, len(texts))

    def _read(self, host: str, content: bytes, count: int) -> list[list[float]]:
        try:
            data = msgspec.json.decode(content, type=_Answer).data
        except msgspec.MsgspecError:
            raise errors.EmbeddingFailed(f"{host} did not answer with embeddings: check base_url and model") from None
        by_index = {vector.index: vector.embedding for vector in data}
        if by_index.keys() != set(range(count)):
            raise errors.EmbeddingFailed(f"{host} answered with {len(data)} embeddings for {count} texts")
        for embedding in by_index.values():
            if len(embedding) != self.dimensions:
                raise errors.EmbeddingFailed(
                    f"{self.name} makes vectors of {len(embedding)} dimensions, not {self.dimensions}: say so in "
                    "`dimensions`"
                )
        return [by_index[index] for index in range(count)]
