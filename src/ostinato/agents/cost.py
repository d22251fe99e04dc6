"""What answers of language models cost. Prices are the user's: a list in here would be wrong within weeks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from decimal import Decimal

from ostinato import errors

_MILLION = Decimal(1_000_000)


@dataclasses.dataclass(frozen=True)
class Price:
    """Of a million tokens, in whatever currency the user counts in."""

    input: float
    output: float

    def __post_init__(self) -> None:
        for name in ("input", "output"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise errors.InvalidInput(f"price.{name} must be a number, 0 or more", field=f"price.{name}")


@dataclasses.dataclass(frozen=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    """Answers that were given, and so are paid for."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens, self.calls + other.calls
        )


def of(usage: Usage, price: Price | None) -> float | None:
    """What this usage costs, or None if there is no price. Decimals in between: prices are decimal fractions."""
    if price is None:
        return None
    input_cost = Decimal(repr(price.input)) * usage.input_tokens
    output_cost = Decimal(repr(price.output)) * usage.output_tokens
    return float((input_cost + output_cost) / _MILLION)


def total(costs: Iterable[float | None]) -> float | None:
    """The sum of the costs that are known; None if none is."""
    known = [Decimal(repr(cost)) for cost in costs if cost is not None]
    return float(sum(known, Decimal(0))) if known else None


class Meter:
    """Counts what one attempt of an agent spends, answer by answer: also if the attempt fails or is cancelled."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.cost: float | None = None

    def add(self, usage: Usage, price: Price | None) -> None:
        self.usage += usage
        self.cost = total((self.cost, of(usage, price)))
