"""The test kit: a clock that jumps, `run_until_idle`, and a harness that crashes at every commit.

async with testing.open(app) as kit:
    job = await kit.app.submit(...)
    await kit.run_until_idle()          # everything that can run now has run
    await kit.advance(3600)             # an hour later, in no time

await testing.crash_everywhere(build, scenario)   # the scenario survives a crash before and after every commit
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import itertools
import shutil
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

from ostinato import audit, errors
from ostinato.app import Ostinato
from ostinato.engine import engine
from ostinato.store import connect

START = 1_800_000_000
"""Where a new clock stands: a fixed moment, so that a failing test fails again."""


class Clock:
    """A clock that only moves when told to."""

    def __init__(self, seconds: float = START) -> None:
        self._micros = int(seconds * 1e6)

    def __call__(self) -> int:
        return self._micros

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise errors.InvalidInput("a clock cannot go back", field="seconds")
        self._micros += int(seconds * 1e6)


class Crash(BaseException):
    """The process ended here, as far as the database can tell."""


class Kit:
    """An open application whose time and loops the test drives."""

    def __init__(self, app: Ostinato, clock: Clock, running: engine.Engine) -> None:
        self.app = app
        self.clock = clock
        self._engine = running

    async def run_until_idle(self, timeout: float = 30.0) -> None:
        """Run until nothing is left that can run at this moment of the clock."""
        try:
            async with asyncio.timeout(timeout):
                while await self._round():
                    pass
        except TimeoutError:
            raise errors.ResultTimeout(f"there was still something to run after {timeout:g} s") from None

    async def advance(self, seconds: float) -> None:
        """Let time pass, then run until idle."""
        self.clock.advance(seconds)
        await self._engine.register()  # this worker is alive, however far the clock jumped
        await self._engine.steward.beat()
        await self.run_until_idle()

    async def audit(self) -> None:
        """Prove that the rows are the fold of the events; AssertionError says what is wrong."""
        report = await audit.audit(self._engine.store)
        if report.problems:
            lines = "\n".join(f"  {p.invariant} {p.job_id} {p.task_id or ''}: {p.message}" for p in report.problems)
            raise AssertionError(f"the audit found {len(report.problems)} problems:\n{lines}")

    async def _round(self) -> bool:
        """One go at everything; False if nothing happened."""
        running = self._engine
        before = running.events_written
        await running.timers.run_once()
        await running.reaper.run_once()
        await running.steward.run_once()
        running.committer.want_claim()
        while running.busy:
            await asyncio.sleep(0.0005)
        return running.events_written != before


@contextlib.asynccontextmanager
async def open(app: Ostinato, clock: Clock | None = None) -> AsyncGenerator[Kit]:
    """Open an application with a clock of its own and no loop that runs by itself."""
    clock = clock or Clock()
    running = await _start(app, clock)
    try:
        yield Kit(app, clock, running)
    finally:
        await app.stop()


async def crash_everywhere(
    build: Callable[[str], Ostinato],
    scenario: Callable[[Kit], Awaitable[Any]],
    *,
    fresh_url: Callable[[], str] | None = None,
    every: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Run the scenario with a crash before, and after, each of its commits; the answer is how many crashes there were.

    `build` makes the application for a URL. After a crash it is built anew on the same database, and the scenario runs
    again from its start, as a restarted program would: so it submits with an idempotency key, signals with a signal id,
    and asserts what should be true in the end. Each time the audit must find nothing. Where a fresh database takes
    long, `every=3` tries each third crash only, before and after commits in turn.
    """
    if every < 1:
        raise errors.InvalidInput("every must be at least 1", field="every")
    with tempfile.TemporaryDirectory(prefix="ostinato-") as folder, _crashes_expected():
        url = fresh_url or await _fresh_files(Path(folder))
        total = 2 * (await _run(build, scenario, url(), _CrashPlan(None))).commits
        crashes = 0
        for nth in itertools.count():
            point = nth * every
            if every % 2 == 0:  # the even places are before commits
                point += nth % 2
            plan = await _run(build, scenario, url(), _CrashPlan(point))
            # What shares a commit depends on timing, so a run may have a commit more or less than the first one had.
            if not plan.fired and point >= total:
                return crashes
            crashes += plan.fired
            progress(point + 1, total)
        raise AssertionError


async def _fresh_files(folder: Path) -> Callable[[], str]:
    """Copies of one file with the schema, which takes longer to make than most scenarios to run."""
    template = folder / "template.db"
    database = connect.connect(f"sqlite:///{template}")
    await database.open(migrate=True)
    await database.close()
    numbers = itertools.count()

    def fresh_file() -> str:
        path = folder / f"{next(numbers)}.db"
        shutil.copy(template, path)
        return f"sqlite:///{path}"

    return fresh_file


@contextlib.contextmanager
def _crashes_expected() -> Generator[None]:
    """Nobody asks what became of a function that a crash has ended. The event loop need not complain of that."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        if isinstance(about.get("exception"), Crash):
            return
        if before is None:
            loop.default_exception_handler(about)
        else:
            before(loop, about)

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        gc.collect()
        loop.set_exception_handler(before)


async def _run(
    build: Callable[[str], Ostinato], scenario: Callable[[Kit], Awaitable[Any]], url: str, plan: _CrashPlan
) -> _CrashPlan:
    """The scenario on a fresh database, crashing where the plan says, and run again until it gets to its end."""
    clock = Clock()
    while True:
        app = build(url)
        running = await _start(app, clock, plan)
        kit = Kit(app, clock, running)
        try:
            await scenario(kit)
            await kit.run_until_idle()
            await kit.audit()
            await app.stop()
            return plan
        except Crash:
            await running.kill()
            app.detach()
            clock.advance(app.options.lease_seconds + 1)
        except BaseException as error:
            await running.kill()
            app.detach()
            error.add_note(f"the scenario was {f'crashed {plan.where}' if plan.fired else 'not disturbed'}")
            raise


class _CrashPlan:
    """Crash once: at point 2n before commit n+1, at point 2n+1 after it."""

    def __init__(self, point: int | None) -> None:
        self._point = point
        self.commits = 0
        self.fired = False

    @property
    def where(self) -> str:
        number = (self._point or 0) // 2 + 1
        return f"{'after' if (self._point or 0) % 2 else 'before'} commit {number}"

    def before_commit(self) -> None:
        self._crash_at(self.commits * 2)

    def after_commit(self) -> None:
        at = self.commits * 2 + 1
        self.commits += 1
        self._crash_at(at)

    def _crash_at(self, at: int) -> None:
        if not self.fired and at == self._point:
            self.fired = True
            raise Crash


async def _start(app: Ostinato, clock: Clock, plan: _CrashPlan | None = None) -> engine.Engine:
    settings = dataclasses.replace(app.options, clock=clock, prune_every_seconds=None)
    running = app.make_engine(settings, manual=True)
    await running.start()
    if plan is not None:
        running.db.before_commit = plan.before_commit
        running.db.after_commit = plan.after_commit
    app.attach(running)
    return running
