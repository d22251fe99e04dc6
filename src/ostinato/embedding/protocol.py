"""What an embedder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """Turns texts into vectors. Only vectors of the same name and length are ever compared."""

    @property
    def name(self) -> str:
        """Says how the vectors are made. With another way of making them goes another name."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def least(self) -> float:
        """Texts less alike than this, by the cosine, have nothing to do with each other; -1 lets all of them count."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in order. A vector of zeros says that there is nothing to compare."""
        ...
