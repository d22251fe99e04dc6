"""The embedder that needs nothing: it hashes words and their parts.

It knows how words look and not what they mean: "crash" is near "crashed" and "crashes", but not near "collision". Texts
are alike if they share words or parts of words, in any language with letters.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import math
from collections.abc import Sequence

from ostinato.core import words

SPREAD = 4
"""Dimensions that each feature touches: the more, the less it matters if two features share one."""
PART_LENGTHS = (3, 4)
PARTS_WEIGHT = 2.0
"""What all parts of a word count together, if the word itself counts 1."""


class HashingEmbedder:
    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.name = "hashing-1"
        self.least = 0.15

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for word, count in collections.Counter(words.telling(words.of_text(text))).items():
            weight = math.sqrt(count)
            for dimension, value in _word(word, self.dimensions):
                vector[dimension] += weight * value
        length = math.sqrt(sum(x * x for x in vector))
        return [x / length for x in vector] if length else vector


@functools.lru_cache(maxsize=65_536)
def _word(word: str, dimensions: int) -> tuple[tuple[int, float], ...]:
    """What a word adds to the vector of its text: something for itself, and something for each of its parts."""
    marked = f"<{word}>"
    parts = {marked[at : at + size] for size in PART_LENGTHS for at in range(len(marked) - size + 1)} - {marked}
    added: collections.defaultdict[int, float] = collections.defaultdict(float)
    for feature, weight in [(marked, 1.0), *((part, PARTS_WEIGHT / math.sqrt(len(parts))) for part in sorted(parts))]:
        digest = hashlib.blake2b(feature.encode(), digest_size=4 * SPREAD).digest()
        for start in range(0, len(digest), 4):
            place = int.from_bytes(digest[start : start + 4])
            added[(place >> 1) % dimensions] += weight if place & 1 else -weight
    return tuple(added.items())
