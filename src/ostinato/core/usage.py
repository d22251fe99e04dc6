"""What attempts use up: calls, tokens, and what they cost, in millionths of whatever currency that is."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import msgspec

from ostinato import errors
from ostinato.core import arguments, documents

MICROS: Final = 1_000_000
MOST_MONEY: Final = 1e9
MOST: Final = 10**12
"""Tokens, or calls, at a time."""
LONGEST_MODEL: Final = 256


class Usage(msgspec.Struct, frozen=True, gc=False):
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    """In millionths."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
        )


def micros(amount: float | Decimal, field: str) -> int:
    """An amount of money in millionths. Decimals in between: what people write are decimal fractions."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float, Decimal)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise errors.InvalidInput(f"{field} must be a number", field=field)
    if (isinstance(amount, Decimal) and not amount.is_finite()) or not 0 <= amount <= MOST_MONEY:
        raise errors.InvalidInput(
            f"{field} must be from 0 to {MOST_MONEY:,.0f}, not {documents.short(amount)}", field=field
        )
    exact = amount if isinstance(amount, Decimal) else Decimal(repr(amount))
    return int((exact * MICROS).to_integral_value())


def money(amount: int) -> float:
    """Millionths as a number of the currency."""
    return amount / MICROS


def shown(amount: int) -> str:
    """For a sentence: at least two decimals, and no more than say something."""
    whole, dot, part = f"{amount / MICROS:,.6f}".partition(".")
    return whole + dot + part.rstrip("0").ljust(2, "0")


def read(cost: float, input_tokens: int, output_tokens: int, calls: int, model: str | None = None) -> Usage:
    """What a function says that it has used up, checked."""
    counts = {"input_tokens": input_tokens, "output_tokens": output_tokens, "calls": calls}
    for field, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.InvalidInput(f"{field} must be a whole number from 0 to {MOST:,}", field=field)
    if model is not None and not arguments.text(model, "model", LONGEST_MODEL):
        raise errors.InvalidInput(f"model must be 1 to {LONGEST_MODEL} characters", field="model")
    return Usage(calls, input_tokens, output_tokens, micros(cost, "cost"))
