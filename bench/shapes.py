"""The graphs of tasks that the scenarios run, the same for the engine and for the floor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A graph: how many tasks, and edges (up, down) between their indexes; `down` waits for `up`."""

    tasks: int
    edges: tuple[tuple[int, int], ...] = ()


def fan(width: int) -> Shape:
    """`width` independent tasks and one that joins them."""
    return Shape(width + 1, tuple((up, width) for up in range(width)))


def chain(length: int) -> Shape:
    """Tasks that wait one for the other."""
    return Shape(length, tuple((up, up + 1) for up in range(length - 1)))


SINGLE = Shape(1)
DIAMOND = Shape(5, ((0, 2), (0, 3), (2, 4), (3, 4)))  # A and B are roots, C and D need A, E needs C and D


@dataclass(frozen=True)
class Scenario:
    """Jobs to run, all at once or one after the other, and the figure that counts."""

    name: str
    title: str
    metric: str
    jobs: Callable[[], list[Shape]]
    at_once: bool = True


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("W1", "one job: 1,000 tasks and a join", "tasks_per_s", lambda: [fan(1_000)]),
        Scenario("W2", "one job: a chain of 200", "ms_per_task", lambda: [chain(200)]),
        Scenario("W3", "500 five-task jobs at once", "tasks_per_s", lambda: [DIAMOND] * 500),
        Scenario("W4", "100 single-task jobs, one at a time", "p50_ms", lambda: [SINGLE] * 100, at_once=False),
        Scenario("W5-10k", "one job: 10,000 tasks and a join", "tasks_per_s", lambda: [fan(10_000)]),
        Scenario("W5-100k", "one job: 100,000 tasks and a join", "tasks_per_s", lambda: [fan(100_000)]),
    )
}
