"""`python -m bench.patterns`: how many events a second one pattern is matched with, and how long compiling takes."""

from __future__ import annotations

import argparse
import timeit
from typing import Any

from ostinato.core import patterns

EVENT: dict[str, Any] = {
    "id": "evt-7f3a",
    "source": "ostinato",
    "detail-type": "Task Completed",
    "time": "2026-11-16T12:00:00Z",
    "account": "default",
    "detail": {
        "jobId": "order-17",
        "jobName": "order",
        "taskId": "charge",
        "name": "payments.charge",
        "attempt": 1,
        "status": "completed",
        "tags": {"team": "payments", "region": "eu-west-1"},
        "output": {"order": {"lines": [{"sku": "jacket", "price": 120}, {"sku": "scarf", "price": 35}]}},
    },
}
PATTERNS: dict[str, dict[str, Any]] = {
    "simple": {
        "source": ["ostinato"],
        "detail-type": ["Task Completed"],
        "detail": {"status": ["failed", "cancelled", "completed"]},
    },
    "nested": {
        "detail": {
            "tags": {"team": ["payments"]},
            "output": {"order": {"lines": {"sku": ["scarf"], "price": [{"numeric": [">", 0, "<", 100]}]}}},
        }
    },
    "wildcard": {"source": ["ostinato"], "detail": {"name": [{"wildcard": "pay*.c*ge"}]}},
    "$or": {
        "source": ["ostinato"],
        "$or": [{"detail": {"attempt": [{"numeric": [">", 3]}]}}, {"detail": {"jobName": [{"prefix": "ord"}]}}],
    },
    "100 values": {"detail": {"jobId": [f"order-{number}" for number in range(100)]}},
}
TARGETS = {"simple": 100_000}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.patterns", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="matches in each of the rounds")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'pattern':<12}{'matches/s':>12}{'target':>12}{'compile µs':>12}")
    for name, document in PATTERNS.items():
        matches, compiling = _measure(document, options.count, options.rounds)
        target = f">= {TARGETS[name]:,}" if name in TARGETS else ""
        print(f"{name:<12}{matches:>12,.0f}{target:>12}{compiling * 1e6:>12,.1f}")


def _measure(document: dict[str, Any], count: int, rounds: int) -> tuple[float, float]:
    """Matches a second and seconds to compile, in the best round: the others were disturbed."""
    pattern = patterns.compile(document)
    if not pattern.matches(EVENT):
        raise AssertionError("a pattern that does not match is found out too early to be measured")
    matching = min(timeit.repeat(lambda: pattern.matches(EVENT), number=count, repeat=rounds))
    few = max(1, count // 100)
    compiling = min(timeit.repeat(lambda: patterns.compile(document), number=few, repeat=rounds))
    return count / matching, compiling / few


if __name__ == "__main__":
    main()
