"""Vectors in SQLite: sqlite-vec and our own functions mean the same."""

from __future__ import annotations

import json
import random

import apsw
import pytest

from ostinato.store import vectors


def distance(connection: apsw.Connection, one: list[int], other: list[int]) -> float:
    sql = "SELECT vec_distance_cosine(vec_int8(vec_int8(?)), vec_int8(?))"
    return connection.execute(sql, (json.dumps(one), json.dumps(other))).fetchall()[0][0]


@pytest.fixture(params=["sqlite-vec", "Python"])
def equipped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> apsw.Connection:
    if request.param == "Python":
        monkeypatch.setattr(vectors, "_extension", lambda: None)
    else:
        pytest.importorskip("sqlite_vec")
    assert vectors.described().startswith(request.param)
    connection = apsw.Connection(":memory:")
    vectors.equip(connection)
    return connection


def test_distance_is_one_minus_the_cosine(equipped: apsw.Connection) -> None:
    assert distance(equipped, [127, 0], [0, -5]) == pytest.approx(1)
    assert distance(equipped, [127, 0], [1, 0]) == pytest.approx(0)
    assert distance(equipped, [127, 1], [-127, -1]) == pytest.approx(2)
    assert distance(equipped, [1, 1], [1, 0]) == pytest.approx(1 - 0.5**0.5, abs=1e-6)


def test_many_numbers(equipped: apsw.Connection) -> None:
    rng = random.Random(3)
    one, other = ([rng.randint(-127, 127) for _ in range(256)] for _ in range(2))
    product = sum(x * y for x, y in zip(one, other, strict=True))
    expected = 1 - product / (sum(x * x for x in one) * sum(x * x for x in other)) ** 0.5
    assert distance(equipped, one, other) == pytest.approx(expected, abs=1e-5)


def test_what_is_equipped_cannot_load_anything_else(equipped: apsw.Connection) -> None:
    with pytest.raises(apsw.Error, match="not authorized"):
        equipped.load_extension("anything")
