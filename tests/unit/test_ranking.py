"""Fusing ranks, and what is kept of a vector."""

from __future__ import annotations

import math
import random

import pytest

from ostinato.core import ranking


def test_what_stands_in_both_lists_comes_first() -> None:
    fused = ranking.fuse({"text": [1, 2, 3], "vector": [9, 3, 8]}, 10)
    assert fused[0].item == 3
    assert fused[0].ranks == {"text": 3, "vector": 2}
    assert fused[0].score == pytest.approx(1 / 63 + 1 / 62)
    assert {ranked.item for ranked in fused} == {1, 2, 3, 8, 9}
    assert [ranked.score for ranked in fused] == sorted((ranked.score for ranked in fused), reverse=True)


def test_of_the_same_worth_the_newest_comes_first() -> None:
    assert [ranked.item for ranked in ranking.fuse({"text": [4], "vector": [7]}, 10)] == [7, 4]


def test_one_list_keeps_its_order_and_only_the_best_are_kept() -> None:
    assert [ranked.item for ranked in ranking.fuse({"text": [5, 1, 9]}, 2)] == [5, 1]
    assert ranking.fuse({}, 5) == []
    assert ranking.fuse({"text": [], "vector": []}, 5) == []


def test_a_list_that_names_something_twice_counts_its_first_place() -> None:
    assert ranking.fuse({"text": [1, 1, 2]}, 5)[0].ranks == {"text": 1}


def test_levels_keep_the_direction() -> None:
    rng = random.Random(1)
    for _ in range(50):
        vector = [rng.gauss(0, 1) for _ in range(256)]
        kept = ranking.levels(vector)
        assert kept is not None
        assert max(map(abs, kept)) == 127
        product = sum(x * y for x, y in zip(vector, kept, strict=True))
        cosine = product / (math.hypot(*vector) * math.hypot(*kept))
        assert math.degrees(math.acos(min(1.0, cosine))) < 1


@pytest.mark.parametrize("vector", [[], [0.0, 0.0], [math.inf, 1.0]])
def test_no_direction_is_none(vector: list[float]) -> None:
    assert ranking.levels(vector) is None
