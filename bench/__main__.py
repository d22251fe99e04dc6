"""`python -m bench`: every scenario on both backends, the floor beside the engine, and a table at the end."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from bench.databases import BACKENDS, FreshDatabase, databases
from bench.profiling import profiler
from bench.report import SMALLER, Result, Samples, Summary, table
from bench.scenarios import measure, run_loop, subject
from bench.shapes import SCENARIOS, Scenario

ROOT = Path(__file__).resolve().parent.parent
SIDES = ("floor", "engine")
TIMEOUT = 1800


def main() -> int:
    options = _parse()
    sides = SIDES if options.side == "both" else (options.side,)
    results: list[Result] = []
    for backend in BACKENDS if options.backend == "both" else (options.backend,):
        with databases(backend, options.scratch) as fresh:
            done: dict[str, Result] = {}
            for scenario in _choose(options.only, options.large, growth=not options.profile):
                if options.profile:
                    _profile(scenario, backend, fresh)
                    continue
                samples = _collect(scenario, backend, fresh, sides, options.repeat)
                engine, floor = Summary.of(samples["engine"]), Summary.of(samples["floor"])
                result = Result(scenario, backend, engine, floor, done.get(SMALLER.get(scenario.name, "")))
                done[scenario.name] = result
                print(json.dumps(result.as_dict()), flush=True)
            results += done.values()
    if results and not options.json_only:
        print(f"\n{table(results)}\n\n{_machine()}; the median of {options.repeat}, the greatest peak of memory")
    failed = any(summary is None for result in results for summary in (getattr(result, side) for side in sides))
    return 1 if failed else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    parser.add_argument("--only", metavar="W1,W2", default="", help="these scenarios; all by default")
    parser.add_argument("--side", choices=[*SIDES, "both"], default="both", help="the engine, the floor, or both")
    parser.add_argument("--repeat", type=_positive, default=3, help="runs of each, of which the median counts")
    parser.add_argument("--large", action="store_true", help="also the job of 100,000 tasks")
    parser.add_argument("--json-only", action="store_true", help="no table")
    parser.add_argument("--profile", action="store_true", help="profile the engine in this process instead")
    parser.add_argument(
        "--scratch", type=Path, default=Path(), help="a folder on a real disk for SQLite files; here by default"
    )
    options = parser.parse_args()
    known = {name.split("-")[0] for name in SCENARIOS} | set(SCENARIOS)
    options.only = [name for name in options.only.split(",") if name]
    if unknown := [name for name in options.only if name not in known]:
        parser.error(f"no scenario {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return options


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _choose(only: list[str], large: bool, growth: bool) -> list[Scenario]:
    """The scenarios asked for, with those that their growth is measured against."""
    names = {name for name in SCENARIOS if not only or name in only or name.split("-")[0] in only}
    if not large:
        names -= {"W5-100k"} - set(only)
    for larger, smaller in reversed(SMALLER.items()):
        if growth and larger in names:
            names.add(smaller)
    return [scenario for scenario in SCENARIOS.values() if scenario.name in names]


def _collect(
    scenario: Scenario, backend: str, fresh: FreshDatabase, sides: tuple[str, ...], repeat: int
) -> dict[str, Samples]:
    """Run the sides in turn, each time in a new process on a new database. A side that fails has no samples."""
    samples: dict[str, Samples] = {side: [] for side in SIDES}
    failed: set[str] = set()
    for turn in range(1, repeat + 1):
        for side in sides:
            if side in failed:
                continue
            with fresh() as url:
                sample = _run(scenario, side, url)
            label = f"{backend:8} {scenario.name:7} {side:6} {turn}/{repeat}"
            if sample is None:
                failed.add(side)
                samples[side].clear()
                _progress(f"{label}  failed")
            else:
                samples[side].append(sample)
                _progress(f"{label}  {scenario.metric} {sample[scenario.metric]:,.2f}  {sample['peak_mb']:.0f} MB")
    return samples


def _run(scenario: Scenario, side: str, url: str) -> dict[str, float] | None:
    command = [sys.executable, "-m", "bench.single", scenario.name, side, url]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        return None
    sample: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return sample


def _profile(scenario: Scenario, backend: str, fresh: FreshDatabase) -> None:
    profile = profiler()
    with fresh() as url:
        sample = run_loop(measure(scenario, subject("engine", url), profile))
    figures = json.dumps(sample.as_dict())
    print(f"\n{backend} {scenario.name}: {scenario.title}\n{figures}\n{profile.text()}", flush=True)


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
