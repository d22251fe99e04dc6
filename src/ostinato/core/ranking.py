"""Two lists of the best become one: reciprocal rank fusion.

Scores of different searches cannot be compared, but places can. Whatever stands at place `n` of a list is worth
`1 / (60 + n)`, and what stands in several lists is worth the sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

SMOOTHING = 60
"""How little the first places are worth more than those after them."""
LEVELS = 127


class Ranked(NamedTuple):
    """`ranks` are the places in the lists that have it, counted from 1."""

    item: int
    score: float
    ranks: Mapping[str, int]


def fuse(lists: Mapping[str, Sequence[int]], most: int) -> list[Ranked]:
    """The best of all lists, best first; what is worth the same is ordered newest (largest) first."""
    ranks: dict[int, dict[str, int]] = {}
    for name, items in lists.items():
        for place, item in enumerate(items, 1):
            ranks.setdefault(item, {}).setdefault(name, place)
    fused = [Ranked(item, sum(1 / (SMOOTHING + place) for place in of.values()), of) for item, of in ranks.items()]
    fused.sort(key=lambda ranked: (-ranked.score, -ranked.item))
    return fused[:most]


def levels(vector: Sequence[float]) -> list[int] | None:
    """The direction of a vector in whole numbers from -127 to 127, which is all that is kept of it, or None.

    That takes a byte for each dimension, and changes the angle between two vectors by less than a degree.
    """
    largest = max((abs(x) for x in vector), default=0.0)
    if largest == 0.0 or not math.isfinite(largest):
        return None
    return [round(x / largest * LEVELS) for x in vector]
