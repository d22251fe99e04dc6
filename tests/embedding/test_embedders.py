"""Embedders: the built-in one, one behind a real HTTP server, and the one that is an extra."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
import subprocess
import sys
from typing import Any

import pytest

from ostinato import errors
from ostinato.embedding import Embedder, HashingEmbedder, OpenAIEmbedder, WordllamaEmbedder
from tests.outgoing import support

HAS_WORDLLAMA = importlib.util.find_spec("wordllama") is not None


async def likeness(embedder: Embedder, one: str, other: str) -> float:
    a, b = await embedder.embed([one, other])
    return sum(x * y for x, y in zip(a, b, strict=True))


# --- hashing -----------------------------------------------------------------------------------------------------


async def test_vectors_have_length_one_and_the_given_dimensions() -> None:
    for dimensions in (64, 256):
        [vector] = await HashingEmbedder(dimensions).embed(["A burst water main"])
        assert len(vector) == dimensions
        assert math.hypot(*vector) == pytest.approx(1)


async def test_a_text_without_words_has_no_direction() -> None:
    assert await HashingEmbedder().embed(["", "?!"]) == [[0.0] * 256] * 2


async def test_texts_that_share_words_or_parts_of_words_are_near() -> None:
    hashing = HashingEmbedder()
    same = await likeness(hashing, "burst water pipe", "the pipe of water: burst!")
    forms = await likeness(hashing, "flooded streets", "a street is flooding")
    apart = await likeness(hashing, "flooded streets", "parking permit renewal")
    assert same == pytest.approx(1, abs=0.01)
    assert same > forms > 0.3 > hashing.least > apart


async def test_it_knows_no_synonyms() -> None:
    """Said in the documents, and so it is."""
    hashing = HashingEmbedder()
    assert await likeness(hashing, "car crash", "vehicle collision") < hashing.least


def test_vectors_are_the_same_in_every_process() -> None:
    code = (
        "import asyncio; from ostinato.embedding import HashingEmbedder;"
        "print(asyncio.run(HashingEmbedder(32).embed(['Ein Küchenbrand'])))"
    )
    seen = {
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
                       capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert seen == {f"{asyncio.run(HashingEmbedder(32).embed(['Ein Küchenbrand']))}\n"}


# --- an endpoint -------------------------------------------------------------------------------------------------


def embedder(server: support.Server, **given: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder(model="m", base_url=f"http://127.0.0.1:{server.port}/v1/", **({"dimensions": 2} | given))


def vectors(*order: int, size: int = 2) -> bytes:
    return json.dumps({"data": [{"index": i, "embedding": [float(i)] * size} for i in order]}).encode()


async def test_texts_are_sent_and_vectors_come_back_in_order() -> None:
    async with support.running() as server:
        server.behave = support.answering(200, vectors(2, 0, 1))
        made = await embedder(server, api_key="key-1").embed(["a", "", "c"])
        assert made == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
        [request] = server.requests
        assert request.line.startswith("POST /v1/embeddings ")
        assert request.headers["authorization"] == "Bearer key-1"
        assert json.loads(request.body) == {"model": "m", "input": ["a", " ", "c"]}
        assert "key-1" not in repr(embedder(server, api_key="key-1"))


async def test_many_texts_go_in_batches() -> None:
    async with support.running() as server:

        async def answer(writer: asyncio.StreamWriter) -> None:
            count = len(json.loads(server.requests[-1].body)["input"])
            await support.answering(200, vectors(*range(count)), Connection="close")(writer)

        server.behave = answer
        assert len(await embedder(server).embed(["x"] * 300)) == 300
        assert [len(json.loads(request.body)["input"]) for request in server.requests] == [128, 128, 44]
        assert await embedder(server).embed([]) == []


async def test_a_shorter_vector_is_asked_for() -> None:
    async with support.running() as server:
        server.behave = support.answering(200, vectors(0))
        await embedder(server, shorten=True).embed(["a"])
        assert json.loads(server.requests[0].body)["dimensions"] == 2


@pytest.mark.parametrize(
    ("behave", "kind", "match"),
    [
        (support.answering(401), errors.CallRejected, "401"),
        (support.answering(302, Location="http://elsewhere"), errors.CallRejected, "redirects"),
        (support.answering(500), errors.CallFailed, "500"),
        (support.answering(429, Retry_After="7"), errors.RetryAfter, "7 s"),
        (support.answering(200, b"<html>"), errors.EmbeddingFailed, "base_url"),
        (support.answering(200, b'{"data": [{"index": 0, "embedding": ["x"]}]}'), errors.EmbeddingFailed, "base_url"),
        (support.answering(200, vectors()), errors.EmbeddingFailed, "0 embeddings for 1"),
        (support.answering(200, vectors(1)), errors.EmbeddingFailed, "1 embeddings for 1"),
        (support.answering(200, vectors(0, size=3)), errors.EmbeddingFailed, "3 dimensions, not 2"),
        (support.breaking_off, errors.TargetUnreachable, "broke off"),
        (support.talking_nonsense, errors.TargetUnreachable, "broke off"),
    ],
)
async def test_what_goes_wrong_has_a_type_and_is_not_tried_again(behave: Any, kind: Any, match: str) -> None:
    async with support.running() as server:
        server.behave = behave
        with pytest.raises(kind, match=match) as caught:
            await embedder(server, api_key="key-1").embed(["a"])
        assert "key-1" not in str(caught.value)
        assert server.connections == 1


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    async with support.running() as server:

        async def sleep(_: asyncio.StreamWriter) -> None:
            await asyncio.sleep(60)

        server.behave = sleep
        with pytest.raises(errors.TargetUnreachable, match=r"within 0\.2 s"):
            await embedder(server, timeout=0.2).embed(["a"])
    with pytest.raises(errors.TargetUnreachable, match="could not be reached"):
        await embedder(server).embed(["a"])


# --- an extra ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(HAS_WORDLLAMA, reason="wordllama is installed")
async def test_without_the_extra_it_says_which_one_to_install() -> None:
    with pytest.raises(errors.EmbeddingFailed, match=r"ostinato\[wordllama\]"):
        await WordllamaEmbedder().embed(["a"])


@pytest.mark.skipif(not HAS_WORDLLAMA, reason="wordllama is not installed")
async def test_wordllama_knows_synonyms() -> None:
    made = WordllamaEmbedder()
    assert await likeness(made, "car crash downtown", "vehicle collision in the city centre") > 0.4
    assert await likeness(made, "car crash downtown", "parking permit renewal") < made.least
    assert await made.embed(["", " "]) == [[0.0] * made.dimensions] * 2
