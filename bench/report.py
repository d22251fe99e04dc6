"""What the samples of a scenario come to: one JSON line each, and a Markdown table beside the targets."""

from __future__ import annotations

import operator
import statistics
from dataclasses import dataclass

from bench.shapes import Scenario

UNITS = {"tasks_per_s": "tasks/s", "ms_per_task": "ms/step", "p50_ms": "ms p50"}


@dataclass(frozen=True)
class Target:
    """A bound: at least (`>=`) or at most (`<=`) a value."""

    sign: str
    value: float

    def met(self, value: float) -> bool:
        return bool((operator.ge if self.sign == ">=" else operator.le)(value, self.value))

    def __str__(self) -> str:
        return f"{self.sign} {self.value:,g}"


TARGETS = {
    ("W1", "sqlite"): Target(">=", 15_000),
    ("W2", "sqlite"): Target("<=", 0.6),
    ("W3", "sqlite"): Target(">=", 12_000),
    ("W4", "sqlite"): Target("<=", 1.2),
    ("W1", "postgres"): Target(">=", 8_000),
    ("W2", "postgres"): Target("<=", 1.5),
    ("W3", "postgres"): Target(">=", 7_000),
    ("W4", "postgres"): Target("<=", 2.5),
}
RATIO_TARGETS = {
    "W1": Target(">=", 0.6),
    "W2": Target("<=", 1.3),
    "W3": Target(">=", 0.6),
    "W4": Target("<=", 1.3),
}
GROWTH_TARGET = Target("<=", 10.5)
MEMORY_TARGET = Target("<=", 400)
SMALLER = {"W5-10k": "W1", "W5-100k": "W5-10k"}  # the scenario with a tenth of the tasks

Samples = list[dict[str, float]]


@dataclass(frozen=True)
class Summary:
    """The samples of one side of a scenario: the median of each figure, but the greatest peak of memory."""

    figures: dict[str, float]
    samples: Samples

    @classmethod
    def of(cls, samples: Samples) -> Summary | None:
        if not samples:
            return None
        figures = {name: statistics.median(sample[name] for sample in samples) for name in samples[0]}
        return cls({**figures, "peak_mb": max(sample["peak_mb"] for sample in samples)}, samples)


@dataclass(frozen=True)
class Result:
    """A scenario on one backend: what the engine did, and the floor beside it."""

    scenario: Scenario
    backend: str
    engine: Summary | None
    floor: Summary | None
    smaller: Result | None = None  # the scenario with a tenth of the tasks, on the same backend

    def growth(self) -> tuple[float | None, float | None]:
        """How many times longer than the smaller scenario the engine and the floor took."""
        if self.smaller is None:
            return None, None
        return _growth(self.engine, self.smaller.engine), _growth(self.floor, self.smaller.floor)

    def as_dict(self) -> dict[str, object]:
        metric = self.scenario.metric
        engine, floor = _figure(self.engine, metric), _figure(self.floor, metric)
        target, ratio_target = TARGETS.get((self.scenario.name, self.backend)), RATIO_TARGETS.get(self.scenario.name)
        ratio = _ratio(engine, floor)
        engine_growth, floor_growth = self.growth()
        return {
            "scenario": self.scenario.name,
            "title": self.scenario.title,
            "backend": self.backend,
            "metric": metric,
            "engine": engine,
            "floor": floor,
            "ratio": ratio,
            "target": str(target) if target else None,
            "target_met": _met(target, engine),
            "ratio_target": str(ratio_target) if ratio_target else None,
            "ratio_target_met": _met(ratio_target, ratio),
            "engine_growth": engine_growth,
            "floor_growth": floor_growth,
            "growth_target_met": _met(GROWTH_TARGET, engine_growth),
            "engine_peak_mb": _figure(self.engine, "peak_mb"),
            "floor_peak_mb": _figure(self.floor, "peak_mb"),
            "engine_samples": self.engine.samples if self.engine else [],
            "floor_samples": self.floor.samples if self.floor else [],
        }


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    scenario: str
    backend: str
    unit: str
    engine: float | None
    floor: float | None
    target: Target | None = None
    ratio_target: Target | None = None
    engine_mb: float | None = None
    floor_mb: float | None = None

    def cells(self) -> list[str]:
        ratio = _ratio(self.engine, self.floor)
        return [
            self.scenario,
            self.backend,
            self.unit,
            _number(self.engine),
            _number(self.floor),
            _judged(self.target, self.engine),
            _number(ratio),
            _judged(self.ratio_target, ratio),
            _number(self.engine_mb),
            _number(self.floor_mb),
        ]


HEADINGS = ["scenario", "backend", "unit", "engine", "floor", "target", "ratio", "target", "engine MB", "floor MB"]


def table(results: list[Result]) -> str:
    """All results as an aligned Markdown table."""
    rows = [HEADINGS, *(line.cells() for result in results for line in _lines(result))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    )


def _lines(result: Result) -> list[Line]:
    name, backend, engine, floor = result.scenario.name, result.backend, result.engine, result.floor
    metric = result.scenario.metric
    engine_mb, floor_mb = _figure(engine, "peak_mb"), _figure(floor, "peak_mb")
    lines = [
        Line(
            name,
            backend,
            UNITS[metric],
            _figure(engine, metric),
            _figure(floor, metric),
            TARGETS.get((name, backend)),
            RATIO_TARGETS.get(name),
            engine_mb,
            floor_mb,
        )
    ]
    if metric == "p50_ms":
        lines.append(Line(name, backend, "ms p95", _figure(engine, "p95_ms"), _figure(floor, "p95_ms")))
    if result.smaller:
        label = f"{name} : {result.smaller.scenario.name}"
        lines.append(Line(label, backend, "× the time", *result.growth(), target=GROWTH_TARGET))
    if name == "W5-100k":
        lines.append(Line(name, backend, "MB peak", engine_mb, floor_mb, target=MEMORY_TARGET))
    return lines


def _figure(summary: Summary | None, name: str) -> float | None:
    return summary.figures[name] if summary else None


def _ratio(one: float | None, other: float | None) -> float | None:
    return round(one / other, 3) if one is not None and other else None


def _growth(summary: Summary | None, smaller: Summary | None) -> float | None:
    return _ratio(_figure(summary, "seconds"), _figure(smaller, "seconds"))


def _met(target: Target | None, value: float | None) -> bool | None:
    return target.met(value) if target and value is not None else None


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value < 20 else f"{value:.1f}"


def _judged(target: Target | None, value: float | None) -> str:
    met = _met(target, value)
    return "" if target is None else str(target) if met is None else f"{target} {'yes' if met else 'NO'}"
