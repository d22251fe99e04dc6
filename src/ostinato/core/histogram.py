"""How long things take, in bins that grow by a quarter: enough to say of any share of them how long it took at most."""

from __future__ import annotations

import math
from collections.abc import Mapping

GROWTH = 1.25
FIRST = 1_000
"""Microseconds that the first bin holds."""
LAST = 120


def bin_of(micros: int) -> int:
    if micros <= FIRST:
        return 0
    return min(math.ceil(math.log(micros / FIRST) / math.log(GROWTH)), LAST)


def label(micros: int) -> str:
    """A bin as a key: such keys are in the order of the bins."""
    return f"{bin_of(micros):03d}"


def quantile(counts: Mapping[int, int], share: float) -> float | None:
    """How many seconds this share of all that was counted took at most, to within a quarter."""
    total = sum(counts.values())
    if total <= 0:
        return None
    left = math.ceil(total * share)
    for number in sorted(counts):
        left -= counts[number]
        if left <= 0:
            return FIRST * GROWTH ** (number - 0.5 if number else 0) / 1e6
    return None
