"""The worker: runs claimed tasks, and claims ahead of its concurrency while tasks are short."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import random
import time
import traceback
from collections.abc import Awaitable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import uuid_utils

from ostinato import context, errors, functions, options
from ostinato.core import codec, commands, retry, rows
from ostinato.engine import committer

AHEAD_SECONDS = 0.05
"""How much work to hold ready: enough to keep busy during a commit, little enough not to keep it from others."""
STALE_SECONDS = 1.0
"""A task that was claimed ahead and has not started after this long is handed back."""


class _Running:
    __slots__ = ("context", "lease", "revoked", "task")

    def __init__(self, lease: rows.Lease, task: asyncio.Task[None]) -> None:
        self.lease = lease
        self.task = task
        self.revoked = False
        self.context: context.Context | None = None


class Worker:
    def __init__(
        self,
        registry: Mapping[str, functions.Function],
        settings: options.EngineOptions,
        target: committer.Committer,
        services: context.Services,
    ) -> None:
        self.worker_id = str(uuid_utils.uuid4())
        self._functions = registry
        self._options = settings
        self._committer = target
        self._services = services
        self._buffer: collections.deque[tuple[float, rows.Lease]] = collections.deque()
        self._running: dict[rows.TaskKey, _Running] = {}
        self._pace = 1.0
        self._stopping = False
        self._last_claim: commands.Claim | None = None
        self._policies: dict[str, rows.FunctionPolicy] = {}
        self._unreported: dict[str, int] = {}
        self._done_tokens: list[str] = []
        self._queues = frozenset(settings.queues)
        self._threads: ThreadPoolExecutor | None = None

    # --- claiming --------------------------------------------------------------------------------------------

    def next_claim(self) -> commands.Claim | None:
        if self._stopping or not self._functions:
            return None
        held = len(self._running) + len(self._buffer)
        if held and self._last_claim is not None and self._last_claim.passed_over:
            return None  # a task is waiting that must run alone
        room = self._options.concurrency + self._ahead() - held
        # Few and often would cost a transaction each: wait until a good part of the room is free.
        if room <= 0 or (held and room * 4 < self._options.concurrency + self._ahead()):
            return None
        if len(self._policies) != len(self._functions):
            self._policies = {name: function.policy for name, function in self._functions.items()}
        token = uuid_utils.uuid4().hex
        done, self._done_tokens = self._done_tokens, []
        claim = commands.Claim(self.worker_id, token, self._policies, self._queues, room, idle=held == 0, done=done)
        self._last_claim = claim
        return claim

    def _ahead(self) -> int:
        """How many tasks can be run within the time of a commit or two, going by how long they took lately."""
        return min(self._options.max_prefetch, int(self._options.concurrency * AHEAD_SECONDS / self._pace))

    def claim_failed(self, claim: commands.Claim) -> None:
        self._done_tokens += claim.done

    def reported(self, reports: list[committer.Report]) -> None:
        """These reports are durable. A claim whose tasks have all been reported can be forgotten."""
        for report in reports:
            self._settle(report.lease.token)

    def _settle(self, token: str) -> None:
        left = self._unreported.get(token, 0) - 1
        if left > 0:
            self._unreported[token] = left
        elif self._unreported.pop(token, None) is not None:
            self._done_tokens.append(token)

    def deliver(self, leases: list[rows.Lease], revoked: list[tuple[rows.TaskKey, str]]) -> None:
        for key, token in revoked:
            self.revoke(key, token)
        if leases:
            now = time.monotonic()
            self._unreported[leases[0].token] = len(leases)
            self._buffer.extend([(now, lease) for lease in leases])
            self._fill()

    def revoke(self, key: rows.TaskKey, token: str) -> None:
        """The lease is gone (cancelled, timed out, taken over): stop the function, and report nothing."""
        running = self._running.get(key)
        if running is not None and running.lease.token == token:
            running.revoked = True
            if running.context is not None:
                running.context.cancelled = True
            running.task.cancel()
            return
        for item in self._buffer:
            if item[1].key == key and item[1].token == token:
                self._buffer.remove(item)
                self._settle(token)
                return

    def revoke_all(self) -> None:
        for lease in [running.lease for running in self._running.values()] + [lease for _, lease in self._buffer]:
            self.revoke(lease.key, lease.token)

    def leases(self) -> list[rows.Lease]:
        """Everything this worker holds, running or not."""
        return [running.lease for running in self._running.values()] + [lease for _, lease in self._buffer]

    def hand_back_stale(self) -> None:
        """Tasks wait in the buffer behind one that turned out slow: others can run them."""
        limit = time.monotonic() - STALE_SECONDS
        while self._buffer and self._buffer[0][0] < limit:
            self._committer.post(commands.Release(self._buffer.popleft()[1], "not started in time"))

    async def stop(self) -> None:
        """Hand back what has not started, let running functions finish for a while, then hand them back too."""
        self._stopping = True
        while self._buffer:
            self._committer.post(commands.Release(self._buffer.popleft()[1], "worker stopped"))
        tasks = [running.task for running in self._running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=self._options.shutdown_seconds)
        for running in list(self._running.values()):
            running.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def kill(self) -> None:
        self._stopping = True
        self._buffer.clear()
        tasks = [running.task for running in self._running.values()]
        for running in self._running.values():
            running.revoked = True
            running.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def all_tokens(self) -> list[str]:
        """Claims that are still noted in the database, as far as this worker knows."""
        return [*self._done_tokens, *self._unreported]

    @property
    def busy(self) -> bool:
        return bool(self._running or self._buffer)

    # --- running ---------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        loop = asyncio.get_running_loop()
        while self._buffer and len(self._running) < self._options.concurrency:
            lease = self._buffer.popleft()[1]
            task = loop.create_task(self._run(lease))
            self._running[(lease.job_id, lease.task_id)] = _Running(lease, task)

    async def _run(self, lease: rows.Lease) -> None:
        started = time.perf_counter()
        command = await self._attempt(lease)
        self._pace += 0.5 * (max(time.perf_counter() - started, 1e-6) - self._pace)
        del self._running[(lease.job_id, lease.task_id)]
        if command is None:
            self._settle(lease.token)
        else:
            self._committer.post(command)
        if self._buffer:
            self._fill()
        elif not self._stopping:
            self._committer.want_claim()

    async def _attempt(self, lease: rows.Lease) -> committer.Report | None:
        """Run the function once and say how it went; None if that is nobody's business any more."""
        function = self._functions[lease.name]
        running = self._running[(lease.job_id, lease.task_id)]
        try:
            ctx = running.context = context.Context(self._services, lease)
            arguments = function.bind(ctx, await ctx.prepare(function.reads_outputs))
            if lease.timeout is None:
                result = await self._call(function, arguments)
            else:
                result = await _within(lease.timeout, self._call(function, arguments))
            what = f"the output of task {lease.task_id!r}"
            output = codec.encode(result, what, self._options.max_payload_bytes)
            return commands.Complete(lease, output)
        except context.Suspended as suspended:
            return suspended.command
        except asyncio.CancelledError:
            if running.revoked:
                return None
            if self._stopping:
                return commands.Release(lease, "worker stopped")
            return self._failure(lease, function, errors.OstinatoError("the function cancelled itself"))
        except errors.LeaseLost:
            return None
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                error = errors.OstinatoError(f"the function raised {type(error).__name__}")
            return self._failure(lease, function, error)

    async def _call(self, function: functions.Function, arguments: dict[str, Any]) -> Any:
        if function.is_async:
            return await function.code(**arguments)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._options.concurrency, "ostinato-function")
        loop = asyncio.get_running_loop()
        if function.takes_context:
            arguments["ctx"] = context.SyncContext(arguments["ctx"], loop)
        call = contextvars.copy_context().run
        return await loop.run_in_executor(self._threads, lambda: call(lambda: function.code(**arguments)))

    def _failure(self, lease: rows.Lease, function: functions.Function, error: BaseException) -> commands.Fail:
        retryable = not isinstance(error, (errors.TerminalError, errors.InvalidInput))
        policy = function.retry
        if lease.options is not None:
            options_ = codec.decode(lease.options)
            if "retry" in options_:
                policy = retry.read(options_["retry"])
        if isinstance(error, errors.RetryAfter):
            delay = error.seconds
        else:
            delay = policy.delay(lease.attempt - lease.attempt_base, random.random())
        trace = None if isinstance(error, errors.OstinatoError) else _author_trace(error)
        return commands.Fail(lease, commands.make_failure(type(error).__name__, str(error), trace), retryable, delay)


async def _within(seconds: float, call: Awaitable[Any]) -> Any:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await call
    except TimeoutError:
        if limit.expired():
            raise errors.TaskTimeout(f"the attempt took longer than its timeout of {seconds:g} s") from None
        raise


def _author_trace(error: BaseException) -> str:
    """The traceback as its author wants to see it: without the frames of the engine above the function."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_globals.get("__name__", "").startswith(("ostinato.", "concurrent.")):
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame))
