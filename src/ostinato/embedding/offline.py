"""The embedder that knows English words and needs no network: a small static model in a package of its own."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ostinato import errors, threads

DIMENSIONS = 256


class WordllamaEmbedder:
    """The model is loaded when it is first needed, which takes about a second."""

    def __init__(self) -> None:
        self.name = "wordllama"
        self.dimensions = DIMENSIONS
        self.least = 0.25

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return await threads.run(lambda: _embed(list(texts)))


def _embed(texts: list[str]) -> list[list[float]]:
    # A text without a word has no vector of its own: zeros say so.
    asked = [text for text in texts if text.strip()]
    made = iter(_model().embed(asked, norm=True).tolist() if asked else ())
    return [next(made) if text.strip() else [0.0] * DIMENSIONS for text in texts]


@functools.cache
def _model() -> Any:
    try:
        wordllama: Any = importlib.import_module("wordllama")  # an extra, without types
    except ImportError:
        raise errors.EmbeddingFailed("wordllama is not installed: pip install 'ostinato[wordllama]'") from None
    # Its weights are in the package itself. Left alone it would look for them elsewhere, and then on the internet.
    package = Path(str(wordllama.__file__)).parent
    return wordllama.WordLlama.load(cache_dir=package, dim=DIMENSIONS, disable_download=True)
