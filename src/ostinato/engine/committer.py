"""Natural group commit: callers hand in commands, and while one transaction is being synced the next batch gathers.

An idle system commits at once; a busy one shares each sync among hundreds of tasks. Completing tasks and claiming the
next ones happen in the same transaction, so a chain costs one commit for each link.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ostinato import errors
from ostinato.core import commands, rows
from ostinato.engine import observing
from ostinato.store import store

MAX_BATCH = 1024
MANY = 16
"""Reports that come together when functions are quick."""
GATHER_SECONDS = 0.005
"""How long others may have to wait for them."""
LONGEST_PAUSE = 5.0
STOP_SECONDS = 10.0
"""How long a stop waits for a database that does not take what was handed in."""
TROUBLE = (
    errors.DatabaseUnavailable,
    errors.DatabaseForbidden,
    errors.DatabaseFull,
    errors.DatabaseReadOnly,
    errors.NotRunning,
)
"""Errors that are not about what was to be written: it can be written later."""

log = logging.getLogger("ostinato")


class Report(commands.Command, Protocol):
    """What a worker says of a lease that it holds."""

    @property
    def lease(self) -> rows.Lease: ...


class Outbox(Protocol):
    """Where a worker hands in its reports, and says that it can take more."""

    def post(self, report: Report, /) -> None: ...
    def have_room(self) -> None: ...


class Claimer(Protocol):
    """Who wants tasks: the worker of this process, or those that wait elsewhere for an answer."""

    def next_claim(self) -> commands.Claim | None: ...
    def claim_failed(self, claim: commands.Claim) -> None: ...
    def reported(self, reports: list[Report]) -> None: ...
    def deliver(self, leases: list[rows.Lease], more: bool = False, /) -> None: ...


async def one_by_one(target: store.Store, tenant: str, batch: Sequence[commands.Command]) -> store.Outcome:
    """A transaction for each command, so that one that the database does not take keeps no other back."""
    answers: list[Any] = []
    outcomes: list[store.Outcome] = []
    for command in batch:
        try:
            outcome = await target.execute(tenant, [command])
        except TROUBLE:
            raise  # all of it is tried again; what was recorded already is refused then, and rightly
        except Exception as error:
            answers.append(store.Refused(error))
        else:
            outcomes.append(outcome)
            answers += outcome.answers
    return store.Outcome(
        answers,
        [],
        [ended for outcome in outcomes for ended in outcome.ended_jobs],
        [revoked for outcome in outcomes for revoked in outcome.revoked],
        sum(outcome.pending_left for outcome in outcomes),
        sum(outcome.armed_timers for outcome in outcomes),
        sum(outcome.events for outcome in outcomes),
        more_queued=True,
        system_work=any(outcome.system_work for outcome in outcomes),
    )


class Committer:
    def __init__(
        self,
        tenant: str,
        target: store.Store,
        on_commit: Callable[[store.Outcome], None] = lambda _: None,
        observers: observing.Observers | None = None,
    ) -> None:
        self.tenant = tenant
        self._store = target
        self._on_commit = on_commit
        self._observers = observing.Observers() if observers is None else observers
        self._waiting: list[tuple[commands.Command, asyncio.Future[Any]]] = []
        self._reports: list[Report] = []
        self._wake = asyncio.Event()
        self._knock = asyncio.Event()
        """Somebody waits for an answer who was not there when the database last refused."""
        self._claim_wanted = False
        self._queue_empty = False
        """Nothing was left when the last claim looked, and nobody has said since that there is more."""
        self._loop: asyncio.Task[None] | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.claimer: Claimer | None = None
        self.polls: Claimer | None = None
        """Workers elsewhere. They look into the queue by rules of their own."""
        self._polls_first = False
        self.news = 0
        """How often somebody has said that there may be work."""

    def start(self) -> None:
        self._home = asyncio.get_running_loop()
        self._loop = asyncio.create_task(self._run(), name="ostinato-committer")

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Commit what was handed in, then stop, after so many seconds in any case."""
        if self._loop is not None:
            await self._drained(seconds)
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
            self._loop = None
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(errors.NotRunning())

    async def kill(self) -> None:
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
            self._loop = None

    @property
    def idle(self) -> bool:
        return self._quiet.is_set()

    def check(self) -> None:
        """Raise what the loop died of, if it did."""
        if self._loop is not None and self._loop.done() and not self._loop.cancelled():
            error = self._loop.exception()
            if error is not None:
                raise error

    async def _drained(self, seconds: float) -> None:
        loop = self._loop
        if loop is not None:
            quiet = asyncio.ensure_future(self._quiet.wait())
            await asyncio.wait([loop, quiet], return_when=asyncio.FIRST_COMPLETED, timeout=seconds)
            quiet.cancel()

    async def execute(self, command: commands.Command) -> Any:
        """Hand in a command and wait for its answer; it is durable when the answer is there."""
        self._check_open()
        loop = asyncio.get_running_loop()
        if loop is not self._home:  # the answer would never get there
            raise errors.NotPossible(
                "the application is open in another event loop: call it there, from a thread with "
                "asyncio.run_coroutine_threadsafe(…, loop)"
            )
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((command, future))
        self._quiet.clear()
        self._wake.set()
        self._knock.set()
        return await future

    def post(self, report: Report) -> None:
        """Hand in a worker's report. It is tried until the database takes it; nobody waits for the answer."""
        if self._loop is None or self._loop.done():
            self._check_open()
        if not self._reports:  # whoever handed in the first one has woken the loop
            self._quiet.clear()
            self._wake.set()
        self._reports.append(report)

    def have_room(self) -> None:
        """Look for work, if there may be some."""
        if not self._queue_empty:
            self.want_claim()

    def want_claim(self) -> None:
        """Look for work, even if there is nothing else to commit."""
        self._queue_empty = False
        self.news += 1
        self.claim_again()

    def claim_again(self) -> None:
        """Ask those who want tasks once more, though nobody has said that there are any."""
        if self.claimer is not None or self.polls is not None:
            self._claim_wanted = True
            self._quiet.clear()
            self._wake.set()

    def _check_open(self) -> None:
        if self._loop is None:
            raise errors.NotRunning()
        self.check()  # nobody would ever answer

    async def _run(self) -> None:
        pause, hurried = 0.05, False
        while True:
            await self._wake.wait()
            await asyncio.sleep(0)  # let what is ready to finish join this batch
            if len(self._reports) >= MANY:
                await self._gather()
            self._wake.clear()
            self._knock.clear()
            try:
                await self.run_once()
                pause, hurried = 0.05, False
            except Exception as error:
                if not hurried:
                    log.warning("the database did not take a batch, trying again in %.2f s: %s", pause, error)
                hurried = await self._pause(pause)
                if not hurried:
                    pause = min(pause * 2, LONGEST_PAUSE)
                self._wake.set()
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # the end of this loop: those who came meanwhile are not left waiting
                for _, future in self._waiting:
                    if not future.done():
                        future.set_exception(error)
                raise
            if not self._wake.is_set():
                self._quiet.set()

    async def _pause(self, seconds: float) -> bool:
        """Let the database be for a while; whether somebody new has come who is not to wait for that."""
        try:
            await asyncio.wait_for(self._knock.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _gather(self) -> None:
        """Let quick functions that are under way report too, while each turn of the event loop brings more: Python runs
        either them or the transaction, so nothing is lost, and all share one commit."""
        until = time.monotonic() + GATHER_SECONDS
        before, gathered = 0, len(self._reports)
        while before < gathered < MAX_BATCH and time.monotonic() < until:
            await asyncio.sleep(0)
            before, gathered = gathered, len(self._reports)

    async def run_once(self) -> store.Outcome | None:
        """One transaction: everything handed in so far (up to a bound) and a claim. None if there was nothing to do."""
        waiting, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        reports, self._reports = self._reports[:MAX_BATCH], self._reports[MAX_BATCH:]
        if self._waiting or self._reports:
            self._wake.set()
        claim_wanted, self._claim_wanted = self._claim_wanted, False
        batch = [*reports, *[command for command, _ in waiting]]
        if not batch and not claim_wanted:
            return None
        claimer, claim = self._next_claim(busy=bool(batch))
        if not batch and claim is None:
            return None
        began = time.perf_counter()
        try:
            outcome = await self._execute(batch, claim, claimer)
            if outcome.more_queued and claimer is self.claimer:
                self._queue_empty = False
        except BaseException as error:
            self._queue_empty = False
            # Callers are told; reports of the worker are kept for the next try.
            self._reports = reports + self._reports
            if claimer is not None and claim is not None:
                claimer.claim_failed(claim)
                self._claim_wanted = True  # nobody says again that there is something
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            raise
        recorded = self._answer(reports, waiting, outcome.answers)
        if self.claimer is not None:
            self.claimer.reported(recorded)
        if claimer is not None:
            claimer.deliver(outcome.leases, outcome.more_queued)
        self._on_commit(outcome)
        if self._observers:
            seconds = time.perf_counter() - began
            self._observers.committed(observing.Commit(self.tenant, batch, outcome, seconds, self._store.db.now()))
        return outcome

    def _next_claim(self, *, busy: bool) -> tuple[Claimer | None, commands.Claim | None]:
        """One claim for each transaction. The worker of this process and the others have the first say in turn."""
        self._polls_first = not self._polls_first
        order = (self.polls, self.claimer) if self._polls_first else (self.claimer, self.polls)
        for claimer in order:
            if claimer is None or (claimer is self.claimer and self._queue_empty and not busy):
                continue  # there is nothing to be found
            claim = claimer.next_claim()
            if claim is None:
                continue
            if claimer is self.claimer:
                claim.look = not self._queue_empty
                self._queue_empty = True
            if self.polls is not None:
                self.claim_again()  # for those who were not asked this time
            return claimer, claim
        return None, None

    async def _execute(
        self, batch: list[commands.Command], claim: commands.Claim | None, claimer: Claimer | None
    ) -> store.Outcome:
        """One transaction; or, if the database does not take one of the commands, one for each: then only it fails."""
        try:
            return await self._store.execute(self.tenant, batch, claim)
        except TROUBLE:
            raise
        except Exception as error:
            log.warning("a batch of %d was not taken, trying one by one: %s", len(batch), error)
        outcome = await one_by_one(self._store, self.tenant, batch)
        if claim is not None and claimer is not None:
            claimer.claim_failed(claim)
            self.claim_again()
        return outcome

    def _answer(
        self,
        reports: list[Report],
        waiting: list[tuple[commands.Command, asyncio.Future[Any]]],
        answers: list[Any],
    ) -> list[Report]:
        """Tell callers; the answer is which reports are settled, recorded or rightly refused."""
        settled: list[Report] = []
        for report, answer in zip(reports, answers, strict=False):
            if not isinstance(answer, store.Refused):
                settled.append(report)
            elif isinstance(answer.error, errors.LeaseLost):
                log.info("%s was not recorded: %s", type(report).__name__, answer.error)
                settled.append(report)
            else:
                self._refused(report, answer.error)
        for (_, future), answer in zip(waiting, answers[len(reports) :], strict=True):
            if future.done():
                continue
            if isinstance(answer, store.Refused):
                future.set_exception(answer.error)
            else:
                future.set_result(answer)
        return settled

    def _refused(self, report: Report, error: Exception) -> None:
        """A report that cannot be recorded must not leave its task running for ever: the task fails, and says why."""
        log.error("%s was not recorded: %s", type(report).__name__, error)
        if isinstance(report, commands.Fail) and not report.retryable:
            return  # its lease stays noted, so that it is found when this worker ends
        failure = commands.make_failure(type(error).__name__, f"the outcome could not be recorded: {error}")
        self._reports.append(commands.Fail(report.lease, failure, retryable=False))
        self._wake.set()
