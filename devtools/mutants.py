"""`make mutants`: plants bugs, one at a time, in the files that decide, and says which of them no test finds.

A bug is a small change: a comparison that is off by one or turned around, a condition that is dropped, a call that is
left out. It is planted in a copy of the repository, and the test files that should find it run there until one test
fails. What was tried is written down, so that a run that is interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from devtools.postgres import PostgresServer

ROOT: Final = Path(__file__).resolve().parent.parent
CODE: Final = "src/ostinato/"
SQL: Final = f"{CODE}store/sql/"


class Target(NamedTuple):
    """A file that decides, and the tests that should find what is wrong with it."""

    file: str
    tests: tuple[str, ...]


SETS: Final = (
    "tests/store/test_tallies.py",
    "tests/engine/test_retention.py",
    "tests/engine/test_tenants.py",
    "tests/engine/test_dead_letters.py",
    "tests/engine/test_lists.py",
    "tests/pipelines/test_entering.py",
)

TARGETS: Final = (
    Target(f"{CODE}core/states.py", ("tests/unit/test_states.py", "tests/engine/test_moves.py")),
    Target(
        f"{CODE}core/commands/consequences.py",
        ("tests/unit/test_commands.py", "tests/engine/test_failure.py", "tests/engine/test_live_graph.py"),
    ),
    Target(f"{CODE}core/commands/working.py", ("tests/unit/test_commands.py", "tests/engine/test_workers.py")),
    Target(f"{CODE}core/commands/waiting.py", ("tests/unit/test_commands.py", "tests/engine/test_waiting.py")),
    Target(
        f"{CODE}core/commands/producing.py",
        (
            "tests/unit/test_commands.py",
            "tests/engine/test_idempotency.py",
            "tests/engine/test_jobs.py",
            "tests/engine/test_live_graph.py",
        ),
    ),
    Target(f"{CODE}core/retry.py", ("tests/unit/test_retry.py", "tests/engine/test_retries.py")),
    Target(f"{CODE}engine/maintenance.py", ("tests/engine/test_maintenance.py", "tests/engine/test_workers.py")),
    Target(f"{CODE}engine/retention.py", ("tests/engine/test_retention.py",)),
    Target(f"{CODE}store/retention.py", ("tests/engine/test_retention.py", "tests/index/test_index.py")),
    Target(f"{CODE}core/approvals.py", ("tests/unit/test_approvals.py", "tests/engine/test_approvals.py")),
    Target(f"{CODE}core/commands/approving.py", ("tests/unit/test_approvals.py", "tests/engine/test_approvals.py")),
    Target(f"{SQL}common/retention.sql", ("tests/engine/test_retention.py", "tests/reactions/test_gates.py")),
    Target(f"{SQL}sqlite/sets.sql", SETS),
    Target(f"{SQL}postgres/sets.sql", SETS),
    Target(f"{SQL}sqlite/loads.sql", ("tests/engine/test_tenants.py", "tests/engine/test_waiting.py")),
    Target(f"{SQL}postgres/loads.sql", ("tests/engine/test_tenants.py", "tests/engine/test_waiting.py")),
    Target(f"{SQL}common/fleet.sql", ("tests/engine/test_workers.py", "tests/engine/test_tenants.py")),
    Target(f"{SQL}common/approvals.sql", ("tests/engine/test_approvals.py",)),
)


class Mutant(NamedTuple):
    """A change of a file: what stands from one place up to another becomes something else."""

    file: str
    start: int
    end: int
    line: int
    before: str
    after: str

    @property
    def key(self) -> str:
        """The same for as long as the line and what is done to it are."""
        text = f"{self.file}:{self.line}:{self.start}:{self.before}:{self.after}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {_short(self.before)} -> {_short(self.after)}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


# --- what can go wrong -----------------------------------------------------------------------------------------------

_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_SQL_SWAPS: Final = (
    (r"(?<![<>=!])<=(?!>)", "<"),
    (r"(?<![<>=!-])<(?![=>@])", "<="),
    (r"(?<![-<>=!])>=", ">"),
    (r"(?<![<>=!-])>(?![=>])", ">="),
    (r"\b(\w+\.)?tenant = (:tenant|\?1)", None),
    (r"(?<![<>=!:])=(?!=)(?= ?(?::|'|\w))", "<>"),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bNOT EXISTS\b", "EXISTS"),
    (r"(?<=\bAND )NOT (?=\w+\b)(?!EXISTS)", ""),
    (r"\bAND\b(?=[^;]*$)", "OR"),
    (r"\bmin\(", "max("),
)


def of_file(file: str, source: str) -> list[Mutant]:
    return of_sql(file, source) if file.endswith(".sql") else of_python(file, source)


def of_python(file: str, source: str) -> list[Mutant]:
    """Changes of decisions. What is only said (docstrings, messages, types, logs) is left alone."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        return place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)

    found: list[Mutant] = []

    def change(node: ast.expr | ast.stmt, after: str) -> None:
        start, end = span(node)
        found.append(Mutant(file, start, end, node.lineno, source[start:end], after))

    def text(node: ast.expr) -> str:
        start, end = span(node)
        return source[start:end]

    for node in _decisions(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                change(node, f"{text(left)} {_COMPARISONS[type(operator)]} {text(right)}")
            case ast.BoolOp(op=operator, values=[first, *_, last]):
                change(node, f"({text(first)})")
                change(node, f"({text(last)})")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                change(node, f"bool({text(operand)})")
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                other = "-" if isinstance(node.op, ast.Add) else "+"
                change(node, f"{text(left)} {other} {text(right)}")
            case ast.Constant(value=bool() as value):
                change(node, str(not value))
            case ast.Constant(value=int() as value):
                change(node, str(value + 1 if value < 100 else value * 2))
            case ast.Expr(value=ast.Call() | ast.Await()):
                change(node, "pass")
            case ast.IfExp(body=body):
                change(node, f"({text(body)})")
            case _:
                pass
    return sorted(set(found), key=lambda mutant: (mutant.start, mutant.end, mutant.after))


def _decisions(node: ast.AST) -> Iterator[ast.AST]:
    """All that is evaluated to decide something."""
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.Import() | ast.ImportFrom() | ast.Assert():
            return
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "logger"))):
            return
        case ast.Expr(value=ast.Constant()):
            return
        case ast.keyword(arg="snapshot" | "brief" | "optimistic"):  # hints for a driver, which change no answer
            return
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "logger")))):
            return
        case ast.AnnAssign(value=value):
            if value is not None:
                yield from _decisions(value)
            return
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            for statement in body:
                yield from _decisions(statement)
            return
        case ast.ClassDef(body=body):
            for statement in body:
                yield from _decisions(statement)
            return
        case _:
            yield node
            for child in ast.iter_child_nodes(node):
                yield from _decisions(child)


def of_sql(file: str, source: str) -> list[Mutant]:
    """Changes of conditions: of what follows a WHERE or an ON, up to the end of the statement."""
    found: list[Mutant] = []
    for start, end in _conditions(source):
        for pattern, after in _SQL_SWAPS:
            for match in re.finditer(pattern, source[start:end]):
                became = after if after is not None else f"{match[1] or ''}tenant = {match[1] or ''}tenant"
                at = start + match.start()
                line = source.count("\n", 0, at) + 1
                found.append(Mutant(file, at, start + match.end(), line, match[0], became))
    return sorted(set(found), key=lambda mutant: (mutant.start, mutant.end, mutant.after))


def _conditions(source: str) -> Iterator[tuple[int, int]]:
    """Each line of a statement from its first WHERE or ON, without comments."""
    begun = False
    at = 0
    for line in source.splitlines(keepends=True):
        if not line.startswith("--"):
            begins = re.search(r"\b(?:WHERE|ON|FILTER)\b", line)
            if begun or begins is not None:
                yield at + (0 if begun or begins is None else begins.start()), at + len(line)
            begun = (begun or begins is not None) and not line.rstrip().endswith(";")
        at += len(line)


# --- trying them -----------------------------------------------------------------------------------------------------


class Tried(NamedTuple):
    mutant: Mutant
    found: bool
    seconds: float


class Trial:
    """A copy of a repository in which bugs are planted, and what became of those that were tried before."""

    def __init__(self, root: Path, copy: Path, notes: Path, *, timeout: float = 300.0) -> None:
        self._root = root
        self._copy = copy
        self._notes = notes
        self._timeout = timeout
        self._known = _read(notes)

    def fits(self, target: Target) -> bool:
        """Whether its tests pass as long as nothing is planted. (One that fails now and then gets a second try.)"""
        return self._passes(target.tests) or self._passes(target.tests)

    def known(self, mutant: Mutant) -> bool | None:
        """Whether it was found before; None if it was not tried."""
        return self._known.get(mutant.key)

    def attempt(self, mutant: Mutant, tests: Sequence[str]) -> Tried:
        path = self._copy / mutant.file
        source = path.read_text()
        began = time.monotonic()
        path.write_text(source[: mutant.start] + mutant.after + source[mutant.end :])
        try:
            found = not self._passes(tests)
        finally:
            path.write_text(source)
        self._known[mutant.key] = found
        with self._notes.open("a") as notes:
            notes.write(json.dumps({"key": mutant.key, "mutant": str(mutant), "found": found}) + "\n")
        return Tried(mutant, found, time.monotonic() - began)

    def _passes(self, tests: Sequence[str]) -> bool:
        """A run that does not end has found something too."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        paths = os.pathsep.join([str(self._copy / "src"), str(self._copy)])
        environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.Popen(
            command, cwd=self._copy, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            return done.wait(self._timeout) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(done.pid, signal.SIGKILL)
            done.wait()


def _read(notes: Path) -> dict[str, bool]:
    lines = notes.read_text().splitlines() if notes.exists() else []
    return {entry["key"]: entry["found"] for entry in map(json.loads, lines)}


@contextlib.contextmanager
def copied(root: Path) -> Generator[Path]:
    """What git knows of, as it stands in the working tree."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory(prefix="ostinato-mutants-") as folder:
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, Path(folder) / name)
        yield Path(folder)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, targets: Sequence[Target] = TARGETS) -> int:
    options = _parse(arguments)
    until = time.monotonic() + options.minutes * 60
    chosen = [target for target in targets if options.only in target.file]
    with copied(root) as copy:
        trial = Trial(root, copy, options.notes, timeout=options.timeout)
        survivors: list[Mutant] = []
        broken: list[str] = []
        tried = 0
        for target in chosen:
            mutants = of_file(target.file, (copy / target.file).read_text())
            sample = random.Random(options.seed).sample(mutants, min(options.sample or len(mutants), len(mutants)))
            survivors += [mutant for mutant in sample if trial.known(mutant) is False]
            rest = [mutant for mutant in sample if trial.known(mutant) is None]
            if rest and time.monotonic() < until and not trial.fits(target):
                broken.append(target.file)
                continue
            for mutant in rest:
                if time.monotonic() >= until:
                    break
                became = trial.attempt(mutant, target.tests)
                tried += 1
                print(f"{'found   ' if became.found else 'SURVIVED'} {became.seconds:5.1f} s  {mutant}", flush=True)
                survivors += [] if became.found else [mutant]
    print(f"\n{tried} tried now; of all that were tried, {len(survivors)} survived" + ":" * bool(survivors))
    for mutant in survivors:
        print(f"  {mutant}")
    for file in broken:
        print(f"not tried, since its tests fail as it is: {file}")
    return 2 if broken else 1 if survivors else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m devtools.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="files with this in their name")
    parser.add_argument("--sample", type=int, default=0, help="so many of each file, chosen at random; 0 is all")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no more after this time")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for the tests of one; then it is found")
    parser.add_argument(
        "--notes", type=Path, default=ROOT / ".mutants.jsonl", help="what was tried; remove it to begin from the start"
    )
    return parser.parse_args(arguments)


def _with_postgres() -> int:
    """One server for all runs: to start one takes as long as most tests."""
    if "OSTINATO_TEST_POSTGRES" in os.environ:
        return main()
    with PostgresServer(fsync=False) as server:
        os.environ["OSTINATO_TEST_POSTGRES"] = server.url()
        return main()


if __name__ == "__main__":
    sys.exit(_with_postgres())
