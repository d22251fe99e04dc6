"""Tokens and prices."""

import math

import pytest

from ostinato import errors
from ostinato.agents import cost


def test_a_price_is_for_a_million_tokens() -> None:
    usage = cost.Usage(input_tokens=1_000_000, output_tokens=500_000, calls=1)
    assert cost.of(usage, cost.Price(0.15, 0.6)) == 0.45
    assert cost.of(usage, None) is None
    assert cost.of(usage, cost.Price(0, 0)) == 0


def test_costs_are_exact_as_decimals_are() -> None:
    assert cost.of(cost.Usage(3, 0, 1), cost.Price(0.1, 0)) == 0.0000003
    assert cost.of(cost.Usage(1234, 567, 1), cost.Price(2.5, 10)) == 0.008755
    assert cost.total([0.1] * 10) == 1.0
    assert cost.total([0.1, None, 0.2]) == 0.3


def test_the_sum_of_nothing_known_is_not_known() -> None:
    assert cost.total([]) is None
    assert cost.total([None, None]) is None
    assert cost.total([None, 0.0]) == 0


def test_a_meter_adds_up() -> None:
    meter = cost.Meter()
    assert (meter.usage, meter.cost) == (cost.Usage(), None)
    meter.add(cost.Usage(100, 20, 1), cost.Price(1, 2))
    meter.add(cost.Usage(50, 10, 1), None)
    meter.add(cost.Usage(100, 20, 1), cost.Price(1, 2))
    assert meter.usage == cost.Usage(250, 50, 3)
    assert meter.cost == 0.00028


@pytest.mark.parametrize("value", [-0.01, math.nan, math.inf])
def test_a_price_must_be_one(value: float) -> None:
    with pytest.raises(errors.InvalidInput, match=r"price\.output"):
        cost.Price(1, value)
