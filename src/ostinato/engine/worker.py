"""The worker: runs claimed tasks, and claims ahead of its concurrency while tasks are short."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import inspect
import logging
import random
import time
import traceback
from collections.abc import Awaitable, Coroutine, Generator, Mapping
from typing import TYPE_CHECKING, Any

import uuid_utils

from ostinato import context, errors, functions, logs, options, secrets, suspension, threads, tracing
from ostinato.core import codec, commands, graph, retry, rows
from ostinato.engine import awaiting, committer
from ostinato.engine.awaiting import Place

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

AHEAD_SECONDS = 0.05
"""How much work to hold ready: enough to keep busy during a commit, little enough not to keep it from others."""
TRUST = 250
"""Tasks of a function that may be claimed ahead for each one that was seen to be quick."""
TRUST_ALONE = 10 * TRUST
"""… where there is nobody else who could have run them, should they turn out slow."""
SHARED_PREFETCH = 2_000
"""Tasks that may be claimed ahead where others could run them: some 50 ms of work."""
LOOK_AHEAD = 64
"""For how many to look when a claim got all that it saw, after one that did not. Four times as many each time."""
STALE_SECONDS = 1.0
"""A task that was claimed ahead and has not started after this long is handed back."""
TURN = 20
TURN_SECONDS = 0.001
"""How many attempts that wait for nothing are run, and for how long, before others have a turn in the event loop."""

log = logging.getLogger("ostinato")


class _Running(awaiting.Running):
    tenant: str
    started_at: float = 0.0
    revoked: bool = False
    handing_back: str | None = None
    started: bool = False
    ctx: context.Context | None = None

    def __call__(self) -> dict[str, Any]:
        """What a log line of it is about."""
        return context.about(self.tenant, self.lease)

    def interrupt(self) -> None:
        """Stop the function. One that has not had its first step sees its flags when it gets there."""
        if self.ctx is not None:
            self.ctx.cancelled = True
        if self.started:
            self.task.cancel()


class _Pace:
    """How long a function took lately, and how much of it may therefore be claimed ahead."""

    __slots__ = ("_calls", "_seconds")

    def __init__(self) -> None:
        self._calls = 0
        self._seconds = 0.0

    def note(self, seconds: float) -> None:
        self._calls += 1
        self._seconds = seconds if self._calls == 1 else (self._seconds + seconds) / 2

    def ahead(self, settings: options.EngineOptions, *, alone: bool) -> int:
        """As many as can be run within a commit or two, but no more than what is known of the function warrants."""
        within = int(settings.concurrency * AHEAD_SECONDS / max(self._seconds, 1e-6))
        if alone:
            return min(settings.max_prefetch, within, self._calls * TRUST_ALONE)
        return min(settings.max_prefetch, within, self._calls * TRUST, SHARED_PREFETCH)


class Worker:
    def __init__(
        self,
        registry: Mapping[str, functions.Function],
        settings: options.EngineOptions,
        target: committer.Outbox,
        services: context.Services,
        tracer: Tracer | None = None,
    ) -> None:
        self.worker_id = str(uuid_utils.uuid4())
        self._functions = registry
        self._options = settings
        self._committer = target
        self._services = services
        self._tracer = tracer
        self._buffer: collections.OrderedDict[Place, tuple[float, rows.Lease]] = collections.OrderedDict()
        self._running: dict[Place, _Running] = {}
        self._paces: dict[str, _Pace] = {}
        self._look_ahead = settings.max_prefetch
        """For how many of each function to look: none after a claim that left some of what it saw, then more."""
        self.alone = False
        """No other worker was there lately that could take what this one leaves."""
        self._stopping = False
        self._last_claim: commands.Claim | None = None
        self._claimed_at = 0.0
        self._ended_at = time.monotonic()
        self._policies: dict[str, rows.FunctionPolicy] = {}
        self._unreported: dict[str, int] = {}
        """By claim: how many of its tasks nobody has durably reported on."""
        self._unrecorded = 0
        """Of all claims together."""
        self._done_tokens: list[str] = []
        self._doubtful: dict[str, float] = {}
        """Tokens of claims that may have been recorded, and since when that is not known."""
        self._queues = frozenset(settings.queues)
        self.slots = awaiting.Slots(settings.concurrency, settings.max_awaiting, self._running, self._freed)
        self._variables = contextvars.copy_context()
        """What every attempt starts with, whatever those before it have set."""

    # --- claiming --------------------------------------------------------------------------------------------

    def next_claim(self) -> commands.Claim | None:
        if self._stopping or not self._functions:
            return None
        now, concurrency = time.monotonic(), self._options.concurrency
        waiting = len(self._buffer)
        held = self.slots.taken + waiting  # who waits for another job may do so for hours, and keeps nobody waiting
        idle = held == 0
        if held and self._last_claim is not None and self._last_claim.passed_over:
            # A task is waiting that should run alone. It does, unless that takes too long to come about.
            idle = now - self._claimed_at > self._options.lease_seconds
            if not idle:
                return None
        held += len(self.slots.returning)
        slots = max(concurrency - held, 0)
        stuck = slots == 0 and now - self._ended_at > STALE_SECONDS
        allowed: dict[str, int] = {}
        if not stuck:
            far = self._look_ahead
            allowed = {n: min(pace.ahead(self._options, alone=self.alone), far) for n, pace in self._paces.items()}
        most = concurrency + (max(allowed.values()) if allowed else 0)
        # What has run takes up room until it is recorded, but for as much as is recorded at once, with a claim.
        unrecorded = max(self._unrecorded - len(self._running) - waiting - committer.MAX_BATCH, 0)
        room = most - held - unrecorded
        # Few and often would cost a transaction each: wait until a good part of the room is free.
        if room <= 0 or ((held or unrecorded) and room * 4 < most):
            return None
        taken = waiting + unrecorded
        ahead = {name: count - taken for name, count in allowed.items()} if taken else allowed
        if len(self._policies) != len(self._functions):
            self._policies = {name: function.policy for name, function in self._functions.items()}
        done, self._done_tokens = self._done_tokens, []
        token = uuid_utils.uuid4().hex
        claim = commands.Claim(self.worker_id, token, self._policies, self._queues, slots, ahead, idle=idle, done=done)
        self._last_claim = claim
        self._claimed_at = now
        return claim

    def claim_failed(self, claim: commands.Claim) -> None:
        """Nobody knows whether it was recorded: the answer may have been lost on its way."""
        self._done_tokens += claim.done
        self.doubt(claim.token)

    def doubt(self, token: str, since: float | None = None) -> None:
        self._doubtful.setdefault(token, since or time.monotonic())

    def take_doubtful(self) -> dict[str, float]:
        """Tokens of claims that may have been recorded without an answer."""
        doubtful, self._doubtful = self._doubtful, {}
        return doubtful

    def reported(self, reports: list[committer.Report]) -> None:
        """These reports are durable. A claim whose tasks have all been reported can be forgotten."""
        for report in reports:
            self._settle(report.lease.token)

    def _settle(self, token: str) -> None:
        left = self._unreported.get(token, 0) - 1
        if left >= 0:
            self._unrecorded -= 1
        if left > 0:
            self._unreported[token] = left
        elif self._unreported.pop(token, None) is not None:
            self._done_tokens.append(token)

    def deliver(self, leases: list[rows.Lease], more: bool = False, /) -> None:
        claim = self._last_claim
        if claim is not None and claim.look:
            further = min(max(4 * self._look_ahead, LOOK_AHEAD), self._options.max_prefetch)
            self._look_ahead = 0 if more and len(leases) < claim.most else further
        if leases:
            now = time.monotonic()
            self._unreported[leases[0].token] = len(leases)
            self._unrecorded += len(leases)
            for lease in leases:
                self._buffer[(lease.token, lease.job_id, lease.task_id)] = (now, lease)
            if self._stopping:  # the claim was under way when the stop came
                self._hand_back_buffer("worker stopped")
            self._fill()

    def revoke(self, key: rows.TaskKey, token: str) -> None:
        """The lease is gone (cancelled, timed out, taken over): stop the function, and report nothing."""
        place = (token, *key)
        running = self._running.get(place)
        if running is not None:
            running.revoked = True
            running.interrupt()
        elif self._buffer.pop(place, None) is not None:
            self._settle(token)

    def hand_back_all(self, reason: str) -> None:
        """Stop everything, and report each as not run: what was taken over by others stays theirs, the rest is free."""
        self._hand_back_buffer(reason)
        for running in self._running.values():
            running.handing_back = reason
            running.interrupt()

    def _hand_back_buffer(self, reason: str) -> None:
        while self._buffer:
            self._committer.post(commands.Release(self._next()[1], reason))

    def leases(self) -> list[rows.Lease]:
        """Everything this worker holds, running or not."""
        return [running.lease for running in self._running.values()] + [lease for _, lease in self._buffer.values()]

    def hand_back_stale(self) -> None:
        """Tasks wait in the buffer behind one that turned out slow: others can run them."""
        limit = time.monotonic() - STALE_SECONDS
        while self._buffer and next(iter(self._buffer.values()))[0] < limit:
            self._committer.post(commands.Release(self._next()[1], "not started in time"))

    async def stop(self, by: float | None = None) -> None:
        """Hand back what has not started, let running functions finish for a while, then hand them back too."""
        seconds = self._options.shutdown_seconds if by is None else max(by - time.monotonic(), 0.0)
        self._stopping = True
        self._hand_back_buffer("worker stopped")
        tasks = [running.task for running in self._running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        while self._running:
            self.hand_back_all("worker stopped")
            await asyncio.wait([running.task for running in self._running.values()], timeout=1)

    async def kill(self) -> None:
        self._stopping = True
        self._buffer.clear()
        tasks = [running.task for running in self._running.values()]
        for running in self._running.values():
            running.revoked = True
            running.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def settled_tokens(self) -> tuple[list[str], bool]:
        """Claims whose tasks have all been reported, and whether that is all of them."""
        return self._done_tokens, not self._unreported and not self._doubtful

    @property
    def busy(self) -> bool:
        return bool(self._running or self._buffer)

    def _next(self) -> tuple[float, rows.Lease]:
        return self._buffer.popitem(last=False)[1]

    def _freed(self) -> None:
        """A function has given its slot back."""
        self.slots.serve()
        self._fill()
        if not self._stopping:
            self._committer.have_room()

    # --- running ---------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        loop = asyncio.get_running_loop()
        while self._buffer and self.slots.taken + len(self.slots.returning) < self._options.concurrency:
            place, (_, lease) = self._buffer.popitem(last=False)
            task = loop.create_task(self._run(place), context=self._variables.copy())
            self._running[place] = _Running(lease, task, self.slots, self._services.tenant)

    async def _run(self, place: Place) -> None:
        """Run an attempt. One that ended without having waited for anything has left this asyncio task as it was, and
        the next ones are run in it too: making a task for each would take as long as to run a quick function."""
        running = self._running[place]
        task = running.task
        until = time.monotonic() + TURN_SECONDS
        for left in reversed(range(TURN)):
            logs.bind(running)
            variables = contextvars.copy_context() if self._buffer else None
            running.started = True
            running.started_at = time.monotonic()
            if self._tracer is None:
                attempt = self._attempt(running.lease, running)
            else:
                attempt = self._traced(self._tracer, running.lease, running)
            at_once = False
            try:
                waits_for = attempt.send(None)
            except StopIteration as ended:
                report, at_once = ended.value, True
            else:
                report = await _Rest(attempt, waits_for, running)
            finally:
                del self._running[place]
                if self.slots.without:
                    self.slots.forget(place)
            self._ended(running, report)
            if self.slots.returning:
                self.slots.serve()
            if not self._buffer or not at_once or not left or self._ended_at > until:
                break
            if contextvars.copy_context() != variables or task.cancelling():
                break
            place, (_, lease) = self._buffer.popitem(last=False)
            running = self._running[place] = _Running(lease, task, self.slots, self._services.tenant)
        if self._buffer:
            self._fill()
        elif not self._stopping:
            self._committer.have_room()

    def _ended(self, running: _Running, report: committer.Report | None) -> None:
        lease = running.lease
        pace = self._paces.get(lease.name)
        if pace is None:
            pace = self._paces[lease.name] = _Pace()
        self._ended_at = time.monotonic()
        pace.note(self._ended_at - running.started_at)
        if report is None:
            self._settle(lease.token)
        else:
            self._committer.post(report)

    async def _traced(self, tracer: Tracer, lease: rows.Lease, running: _Running) -> committer.Report | None:
        with tracing.attempt(tracer, self._services.tenant, lease) as span:
            report = await self._attempt(lease, running)
            tracing.ended(span, report)
        return report

    async def _attempt(self, lease: rows.Lease, running: _Running) -> committer.Report | None:
        """Run the function once and say how it went; None if that is nobody's business any more."""
        if running.revoked:
            return None
        if running.handing_back is not None:
            return commands.Release(lease, running.handing_back)
        function = self._functions[lease.name]
        try:
            ctx = running.ctx = context.Context(self._services, lease)
            ctx.home = running.task
            given = ctx.ready(function.reads_outputs)
            if given is None:
                given = await ctx.prepare(function.reads_outputs)
            arguments = function.bind(ctx, given)
            if lease.timeout is not None:
                result = await _within(lease.timeout, self._call(function, arguments, ctx), ctx)
            elif function.is_async:
                ctx.coroutine = call = function.code(**arguments)
                result = await call
            else:
                result = await self._call(function, arguments, ctx)
            if ctx.leaving is not None and (ctx.leaving.decided or ctx.leaving.left_open):
                return self._left(running, function, ctx.leaving, "returned")
            output = codec.encode(result, "the output of the task", self._services.max_payload_bytes)
            return commands.Complete(lease, output if ctx.redactor is None else ctx.redacted(output))
        except asyncio.CancelledError:
            if running.revoked:
                return None
            if running.handing_back is not None:
                return commands.Release(lease, running.handing_back)
            if (leaving := _leaving(running)) is not None:
                return self._left(running, function, leaving)
            return self._failure(running, function, errors.OstinatoError("the function cancelled itself"))
        except BaseException as error:
            if (leaving := _leaving(running)) is not None:
                return self._left(running, function, leaving, None if _passed_on(error) else "raised something else")
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                error = errors.OstinatoError(f"the function raised {type(error).__name__}")
            return self._failure(running, function, error)
        finally:
            if running.ctx is not None and running.ctx.leaving is not None:
                running.ctx.leaving.close()

    def _left(
        self,
        running: _Running,
        function: functions.Function,
        leaving: suspension.Suspension,
        instead: str | None = None,
    ) -> committer.Report:
        """The function was left for a durable wait, whatever its code has made of that."""
        command = leaving.command
        if command is None:
            return self._failure(running, function, leaving.refusal or errors.TerminalError(suspension.LEFT_OPEN))
        if instead is not None:
            log.warning(
                "function %r of task %s/%s caught what makes it wait, and %s. That is ignored, and the function is "
                "entered again after the wait: catch Exception, not BaseException, and do not return from `finally`",
                function.name,
                *running.lease.key,
                instead,
            )
        return command

    async def _call(self, function: functions.Function, arguments: dict[str, Any], ctx: context.Context) -> Any:
        if function.is_async:
            ctx.coroutine = call = function.code(**arguments)
            return await call
        ctx.home = None
        if function.takes_context:
            arguments["ctx"] = context.SyncContext(arguments["ctx"], asyncio.get_running_loop())
        result = await threads.run(lambda: function.code(**arguments))
        if inspect.iscoroutine(result):
            result.close()
            raise errors.TerminalError(
                f"function {function.name!r} is a plain `def` that returned a coroutine, which nobody would run: "
                "declare it, and what decorates it, with `async def`"
            )
        return result

    def _failure(self, running: _Running, function: functions.Function, error: BaseException) -> commands.Fail:
        lease = running.lease
        retryable = not isinstance(error, (errors.TerminalError, errors.InvalidInput))
        policy = function.retry
        if lease.options is not None:
            options_ = codec.decode(lease.options)
            if "retry" in options_:
                policy = retry.read(options_["retry"])
        if isinstance(error, errors.RetryAfter) and graph.is_seconds(error.seconds):
            delay = error.seconds
        else:
            delay = policy.delay(lease.attempt - lease.attempt_base, random.random())
        redactor = None if running.ctx is None else running.ctx.redactor
        return commands.Fail(lease, _describe(error, redactor), retryable, delay)


class _Rest(Awaitable[committer.Report | None]):
    """What is left of an attempt that was begun by hand, and waits for something now."""

    def __init__(self, begun: Coroutine[Any, Any, committer.Report | None], waits_for: Any, running: _Running) -> None:
        self._begun = begun
        self._waits_for = waits_for
        self._running = running

    def __await__(self) -> Generator[Any, Any, committer.Report | None]:
        waits_for = self._waits_for
        while True:
            leaving = None if self._running.ctx is None else self._running.ctx.leaving
            if leaving is not None and leaving.abandoned:
                return leaving.command
            try:
                try:
                    answer = yield waits_for
                except BaseException as error:
                    waits_for = self._begun.throw(error)
                else:
                    waits_for = self._begun.send(answer)
            except StopIteration as ended:
                return ended.value


async def _within(seconds: float, call: Awaitable[Any], ctx: context.Context) -> Any:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await call
    except TimeoutError:
        if limit.expired():
            ctx.cancelled = True  # a function in a thread goes on until it asks
            raise errors.TaskTimeout(f"the attempt took longer than its timeout of {seconds:g} s") from None
        raise


def _leaving(running: _Running) -> suspension.Suspension | None:
    leaving = None if running.ctx is None else running.ctx.leaving
    return leaving if leaving is not None and leaving.decided else None


def _passed_on(error: BaseException) -> bool:
    """Whether the function let pass what makes it wait: out of a task group that comes wrapped."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(suspension.Suspended) is not None  # pyright: ignore[reportUnknownMemberType]
    return isinstance(error, suspension.Suspended)


def _describe(error: BaseException, redactor: secrets.Redactor | None) -> rows.Failure:
    """What an exception says of itself, even if it cannot say it."""
    kind = "Exception"
    try:
        kind = type(error).__name__
        text = str(error)
        trace = None if isinstance(error, errors.OstinatoError) else _author_trace(error)
    except Exception as worse:
        text, trace = f"(the message cannot be shown: {type(worse).__name__})", None
    if redactor is not None:  # before the texts are cut: half a secret would not be found
        kind, text, trace = redactor.text(kind), redactor.text(text), None if trace is None else redactor.text(trace)
    return commands.make_failure(kind, text, trace)


def _author_trace(error: BaseException) -> str:
    """The traceback as its author wants to see it: without the frames of the engine above the function."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_globals.get("__name__", "").startswith(("ostinato.", "concurrent.")):
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame))
