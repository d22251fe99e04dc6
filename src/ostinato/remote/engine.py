"""A worker without a database: the same worker and the same context as anywhere, with a server behind them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import uuid_utils

from ostinato import errors, functions, options, secrets, threads, tracing
from ostinato.core import codec, commands, graph, rows, usage
from ostinato.engine import service, worker
from ostinato.remote import link, reporter, wire

T = TypeVar("T")
CHECK_SECONDS = 1.0
"""How often to ask whether what runs here was cancelled or taken over."""

NOW_SECONDS = 30.0
"""How long a function that cannot wait for the event loop waits for the server."""

log = logging.getLogger("ostinato")


class RemoteEngine:
    """Runs tasks of a server until stopped: `async with RemoteEngine(app.functions, app.options, server, key):`."""

    def __init__(
        self,
        registry: Mapping[str, functions.Function],
        settings: options.EngineOptions,
        server: str,
        key: str | None,
        *,
        secret_source: secrets.SecretSource | None = None,
    ) -> None:
        self.tenant = ""
        self.options = settings
        self.max_payload_bytes = settings.max_payload_bytes
        self.max_tasks = settings.max_tasks
        self.secrets: secrets.SecretSource | None = secret_source or secrets.from_environment
        self._functions = registry
        self._own_queues = {name: f.queue for name, f in registry.items() if f.queue != "default"}
        self._link = link.Link(server, key)
        self._reporter = reporter.Reporter(self._link, self._unknown)
        self.worker = worker.Worker(registry, settings, self._reporter, self, tracing.tracer())
        self._reporter.claimer = self.worker
        self._reporter.worker_id = self.worker.worker_id
        self._pulse = Pulse(self._link, self.worker.worker_id, settings.lease_seconds, self._unknown_from_thread)
        self._check = Check(self)
        self._registering: asyncio.Task[None] | None = None
        self._main_loop: asyncio.AbstractEventLoop | None = None
        self._spending: weakref.WeakValueDictionary[rows.TaskKey, asyncio.Lock] = weakref.WeakValueDictionary()

    # --- life -------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Register. A server that cannot be reached now is waited for; one that refuses this worker raises."""
        self._main_loop = asyncio.get_running_loop()
        pauses = link.Pauses()
        while True:
            try:
                await self._register()
                break
            except (errors.ServerUnavailable, errors.TooManyRequests) as error:
                await pauses.after(error, "this worker cannot start yet")
            except BaseException:
                await self._link.close()
                raise
        self._reporter.start()
        self._pulse.start()
        self._check.start()

    async def stop(self) -> None:
        """Finish or hand back what runs, report it, and leave."""
        await self._check.stop()
        await self._reporter.stop_claiming()
        await self.worker.stop()
        await self._reporter.stop()
        if self._registering is not None:
            self._registering.cancel()
        await self._pulse.stop()
        with contextlib.suppress(errors.OstinatoError):  # if this fails, the leases run out by themselves
            done, _ = self.worker.settled_tokens()
            done = [*self._reporter.done, *done]
            leave = wire.Leave(self.worker.worker_id, done=done, claims=list(self.worker.take_doubtful()))
            await self._link.call("/v1/work/leave", leave, wire.Left)
        await self._link.close()

    async def __aenter__(self) -> RemoteEngine:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _register(self) -> None:
        body = wire.Register(
            functions=[wire.Function(f.name, f.retry, f.timeout) for f in self._functions.values()],
            worker_id=self.worker.worker_id,
            queues=list(self.options.queues),
            slots=self.options.concurrency,
            host=socket.gethostname(),
            pid=os.getpid(),
            lease_seconds=self.options.lease_seconds,
        )
        told = await self._link.call("/v1/work/register", body, wire.Registered)
        self.tenant = told.tenant
        self.max_payload_bytes = min(self.options.max_payload_bytes, told.max_payload_bytes)
        self.max_tasks = told.max_tasks
        self._reporter.max_body_bytes = told.max_body_bytes

    def _unknown_from_thread(self) -> None:
        if self._main_loop is not None and not self._main_loop.is_closed():
            self._main_loop.call_soon_threadsafe(self._unknown)

    def _unknown(self) -> None:
        """We were declared dead (a long silence, perhaps): nothing that runs here is ours any more. Start anew."""
        if self._registering is None or self._registering.done():
            self.worker.hand_back_all("declared dead")
            self._registering = asyncio.get_running_loop().create_task(self._register_again())

    async def _register_again(self) -> None:
        pauses = link.Pauses()
        while True:
            try:
                await self._register()
                self._reporter.have_room()
                return
            except errors.OstinatoError as error:
                await pauses.after(error, "this worker is not known to the server")

    async def check(self) -> None:
        """Stop functions whose task was cancelled or taken over by somebody else."""
        self.worker.hand_back_stale()
        held = self.worker.leases()
        doubtful = self.worker.take_doubtful()
        if not held and not doubtful:
            return
        tasks = [wire.HeldTask(lease.job_id, lease.task_id, lease.token) for lease in held]
        try:
            beat = wire.Heartbeat(self.worker.worker_id, tasks=tasks, claims=list(doubtful))
            heard = await self._link.call("/v1/work/heartbeat", beat, wire.Heard)
        except errors.OstinatoError as error:
            for token, since in doubtful.items():
                self.worker.doubt(token, since)
            if isinstance(error, errors.WorkerNotFound):
                self._unknown()
            elif not isinstance(error, link.TROUBLE):
                raise
            return
        for task in heard.lost:
            self.worker.revoke((task.job_id, task.task_id), task.token)

    # --- what the context needs ---------------------------------------------------------------------------------------

    def now(self) -> int:
        return time.time_ns() // 1000

    async def execute(self, command: commands.Command) -> Any:
        """Record a step, or let the job grow: again and again until the server has said that it did, or may not."""
        match command:
            case commands.RecordStep():
                await self._record(command.lease, command.key, lambda: self._step(command))
                return None
            case commands.AddTasks(lease=rows.Lease() as lease):
                return await self._record(lease, command.step_key, lambda: self._add(command, lease))
            case commands.RecordUsage():
                return await self._spend(command)
            case _:
                raise TypeError(f"{type(command).__name__} is nothing that a function may do")

    async def _record(self, lease: rows.Lease, key: str, attempt: Callable[[], Any]) -> Any:
        """A lost answer leaves open whether it was recorded; the steps of the task tell."""
        pauses = link.Pauses()
        while True:
            try:
                return await attempt()
            except link.TROUBLE as error:
                await pauses.after(error, f"step {key!r} was not taken")
            recorded = (await self.read_steps(lease)).get(key)
            if recorded is not None:
                return codec.decode(recorded)

    async def _step(self, command: commands.RecordStep) -> None:
        body = wire.RecordStep(
            **self._held(command.lease),
            key=command.key,
            output=reporter.raw(command.output),
        )
        await self._link.call("/v1/work/step", body, wire.Outcome)

    async def _spend(self, command: commands.RecordUsage) -> None:
        """Until the server has taken it. One at a time for each task: by its id the server knows the last one again."""
        body = wire.RecordUsage(
            **self._held(command.lease),
            usage_id=str(uuid_utils.uuid7()),
            cost=usage.money(command.used.cost),
            input_tokens=command.used.input_tokens,
            output_tokens=command.used.output_tokens,
            calls=command.used.calls,
            model=command.model,
        )
        async with self._spending.setdefault(command.lease.key, asyncio.Lock()):
            await self._insist("/v1/work/usage", body, wire.Outcome)

    async def _add(self, command: commands.AddTasks, lease: rows.Lease) -> list[str]:
        body = wire.AddTasks(**self._held(lease), key=command.step_key, tasks=list(command.tasks))
        return (await self._link.call("/v1/work/add-tasks", body, wire.TasksAdded)).task_ids

    async def read_steps(self, lease: rows.Lease) -> dict[str, bytes]:
        found = await self._insist("/v1/work/steps", wire.Held(**self._held(lease)), wire.Steps)
        return {name: bytes(output) for name, output in found.steps.items()}

    async def read_outputs(self, lease: rows.Lease, wanted: Sequence[str] | None) -> dict[str, Any]:
        return (await self._insist("/v1/work/outputs", self._outputs_of(lease, wanted), wire.Outputs)).outputs

    def read_outputs_now(self, lease: rows.Lease, wanted: Sequence[str] | None) -> dict[str, Any]:
        """The event loop stands still meanwhile, so this does not try for ever."""
        body = self._outputs_of(lease, wanted)
        until = time.monotonic() + NOW_SECONDS
        while True:
            try:
                return self._link.call_now("/v1/work/outputs", body, wire.Outputs).outputs
            except link.TROUBLE:
                if time.monotonic() > until:
                    raise
                time.sleep(link.SHORTEST_PAUSE)

    async def read_payload(self, lease: rows.Lease, stored: bytes) -> bytes:
        if not stored.startswith(b"\x00"):
            return stored
        body = wire.ReadPayload(**self._held(lease), digest=stored[1:].hex())
        return bytes((await self._insist("/v1/work/payload", body, wire.Payload)).payload)

    async def prepare_tasks(self, documents: Sequence[Any]) -> tuple[list[graph.TaskSpec], list[bytes]]:
        """Check tasks that are to be added to a job. The server checks them too; it encodes their inputs itself."""
        specs = graph.read_tasks(documents)
        for spec in specs:
            if spec.queue is None:
                spec.queue = self._own_queues.get(spec.name)
            codec.encode(spec.input, f"the input of task {spec.task_id!r}", self.max_payload_bytes)
        return specs, []

    async def search(self, q: str, /, **wanted: Any) -> list[Any]:
        raise errors.NotPossible(
            "a worker without the database cannot search: GET /v1/results/search does, with a key of jobs:read"
        )

    def _outputs_of(self, lease: rows.Lease, wanted: Sequence[str] | None) -> wire.ReadOutputs:
        return wire.ReadOutputs(**self._held(lease), task_ids=None if wanted is None else list(wanted))

    def _held(self, lease: rows.Lease) -> dict[str, Any]:
        return reporter.held(self.worker.worker_id, lease)

    async def _insist(self, path: str, body: wire.Held, answer: type[T]) -> T:
        pauses = link.Pauses()
        while True:
            try:
                return await self._link.call(path, body, answer)
            except link.TROUBLE as error:
                await pauses.after(error, "the server did not answer a running function")


class Check(service.Service):
    """Asks every second what was cancelled or taken over."""

    def __init__(self, engine: RemoteEngine) -> None:
        super().__init__()
        self._engine = engine

    async def run_once(self) -> float:
        await self._engine.check()
        return CHECK_SECONDS


class Pulse:
    """The heartbeat, on a thread of its own: a function that blocks the event loop is busy, not dead."""

    def __init__(self, target: link.Link, worker_id: str, lease_seconds: float, on_unknown: Callable[[], None]) -> None:
        self._link = target
        self._body = wire.Heartbeat(worker_id)
        self._interval = lease_seconds / 4
        self._on_unknown = on_unknown
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ostinato-pulse", daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            await threads.run(self._thread.join)

    def _run(self) -> None:
        pause = self._interval
        while not self._stop.wait(pause):
            pause = self._interval
            try:
                self._link.call_now("/v1/work/heartbeat", self._body, wire.Heard, seconds=self._interval)
            except errors.WorkerNotFound:
                self._on_unknown()
            except errors.TooManyRequests as error:
                pause = min(error.seconds, pause)  # others use the key too, but this one cannot be left out
            except errors.OstinatoError as error:
                log.warning("a heartbeat did not reach the server: %s", error)
