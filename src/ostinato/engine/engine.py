"""One engine in one process: the committer, the worker, its heartbeat and the maintenance loops, around one store."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import logging
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import uuid_utils

from ostinato import encryption, errors, functions, logs, options, process, secrets, threads, tracing
from ostinato.core import codec, commands, graph, ledger, retry, rows
from ostinato.engine import (
    bell,
    committer,
    ends,
    maintenance,
    observing,
    polls,
    pulse,
    scribe,
    service,
    steward,
    worker,
)
from ostinato.store import connect, store

log = logging.getLogger("ostinato")
LEASE_CHECK_SECONDS = 1.0
DOUBT_SECONDS = 120.0
"""How long a statement that nobody waits for any more may still take effect."""
COLLECT_EVERY = 100_000
"""New values that may be there before the garbage collector looks at them; Python's own bound is 700."""
TURN_SECONDS = 0.0001
"""How long one thread may run Python while another waits to; Python's own bound is fifty times that."""
OWN_CONCURRENCY = 32
"""How many of the engine's own functions run at the same time for one tenant."""
OwnFunctions = Callable[["Engine"], Mapping[str, functions.Function]]
"""Makes the functions that the engine itself needs, for the engine that runs them."""

Search = Callable[..., Awaitable[list[Any]]]
"""Searches saved results, for the engine given first."""


class Engine:
    """Runs until stopped. With `manual`, no loop runs by itself: a test kit drives `run_once` and the clock.

    A guest shares the database and the loops of its host, which serves another tenant, and only gives orders.
    """

    def __init__(
        self,
        url: str,
        tenant: str,
        registry: Mapping[str, functions.Function],
        settings: options.EngineOptions,
        *,
        keyring: encryption.Keyring | None = None,
        secret_source: secrets.SecretSource | None = None,
        manual: bool = False,
        host: Engine | None = None,
        own_functions: OwnFunctions | None = None,
        attending: bool = False,
        search: Search | None = None,
    ) -> None:
        self.tenant = tenant
        self.options = settings
        self.max_payload_bytes = settings.max_payload_bytes
        self.max_tasks = settings.max_tasks
        self._url = url
        self._keyring = keyring
        self.secret_source = secret_source or secrets.from_environment
        # What an attendant handles comes from anywhere, and is not to be read as a wish for a secret.
        self.secrets: secrets.SecretSource | None = None if attending else self.secret_source
        self._functions = registry
        self._own_queues = {name: f.queue for name, f in registry.items() if f.queue != "default"}
        self._manual = manual
        self._host = host
        self._own_functions = own_functions
        self._search = search
        self._attending = attending
        self.guests: set[Engine] = set()
        if host is None:
            self.db = connect.connect_sealed(url, keyring, clock=settings.clock)
            self.store = store.Store(
                self.db,
                spill_bytes=settings.spill_bytes,
                keyring=keyring,
                search_index_in_clear=settings.search_index_in_clear,
            )
        else:
            self.db, self.store = host.db, host.store.seen_by(tenant)
        self.bell = bell.Bell() if host is None else host.bell
        self.observers = observing.Observers() if host is None else host.observers
        self.committer = committer.Committer(
            tenant, self.store, lambda outcome: self._committed(tenant, outcome), self.observers
        )
        self.scribe = scribe.Scribe(tenant, self.store)
        self.polls = polls.Polls(self.committer)
        self.tracer = tracing.tracer()
        self.worker: worker.Worker | None = None
        self.pulse: pulse.Pulse | None = None
        poll, lease = settings.poll_seconds, settings.lease_seconds
        self.timers = maintenance.Timers(self.store, self._committed, poll) if host is None else host.timers
        self.reaper = (
            host.reaper
            if host
            else maintenance.Reaper(
                self.store, self._committed, lease, self.observers, real_time=settings.clock is None
            )
        )
        self.steward = steward.Steward(self.store, self._engage, poll, lease) if host is None else host.steward
        self.services: list[service.Service] = []
        self.ends = ends.Ends(self.store, tenant)
        self._known_functions: set[str] = set()
        self._leases_checked_at = time.monotonic()
        self._told: dict[str, object] = {}
        """What others have last heard of functions that wait for other jobs."""
        self._main_loop: asyncio.AbstractEventLoop | None = None
        self.stop_by: float | None = None
        """Once it is told to stop: by when it should have."""
        self.events_written = 0

    # --- life ------------------------------------------------------------------------------------------------

    async def start(self, *, migrate: bool = True) -> None:
        self._main_loop = asyncio.get_running_loop()
        if self._host is not None:
            self._host.guests.add(self)
            try:
                if self._attending:
                    self._begin_work()
                    await self.register()
                self.committer.start()  # nothing is claimed before it is known by whom
            except BaseException:
                await self.stop()
                raise
            return
        await self._open(migrate=migrate)
        _let_batches_live()
        _take_turns()
        try:
            if self.options.work:
                await self._start_worker()
            if self._manual:
                self.committer.start()
                return
            self.committer.start()
            self.services = [Watcher(self)]
            if self.options.maintain:
                self.services += [self.timers, self.reaper, self.steward]
                if self.options.prune_every_seconds is not None:
                    every = self.options.prune_every_seconds
                    self.services.append(maintenance.Pruner(self.store, every))
            for item in self.services:
                item.start()
            self.committer.want_claim()
        except BaseException:
            await self.stop()
            raise

    async def _open(self, *, migrate: bool) -> None:
        """Open the database, which may be about to start as well."""
        until, pause, told = time.monotonic() + self.options.wait_seconds, 0.05, False
        while True:
            try:
                await self.db.open(migrate=migrate)
                return
            except errors.DatabaseAway as error:
                left = until - time.monotonic()
                if left <= 0:
                    raise
                if not told:
                    log.warning("%s; waiting up to %g s for it", error, self.options.wait_seconds)
                told = True
                await asyncio.sleep(min(pause, left))
                pause = min(pause * 2, 1.0)

    async def kill(self) -> None:
        """End as a crash would: report nothing, hand back nothing. Only for the test kit."""
        if self._host is None:
            await self.steward.kill()
        for item in self.services:
            await item.stop()
        if self.worker is not None:
            await self.worker.kill()
        await self.committer.kill()
        if self.pulse is not None:
            await self.pulse.stop()
        self.ends.ask_no_more()
        if self._host is None:
            await self.db.close()
        else:
            self._host.guests.discard(self)

    @property
    def busy(self) -> bool:
        """Something is running, or waits to be committed. Raises what the committer died of, if it did."""
        self.committer.check()
        if not self.committer.idle or (self.worker is not None and self.worker.busy):
            return True
        return self._host is None and self.steward.busy

    async def stop(self) -> None:
        """Finish or hand back what runs, commit what was reported, and let go of the database. That takes as long as
        functions may go on, and a moment if they did, though the database is silent."""
        if self._host is None or self._host.stop_by is None:
            self.stop_by = time.monotonic() + self.options.shutdown_seconds
        else:
            self.stop_by = self._host.stop_by
        for item in self.services:
            await item.stop()
        await asyncio.gather(*[guest.stop() for guest in list(self.guests)])
        if self.worker is not None:
            await self.worker.stop(self.stop_by)
        # The rest needs a moment at most, unless the database is silent: then the leases run out by themselves.
        await self.committer.stop(min(committer.STOP_SECONDS, max(self.stop_by - time.monotonic() - 1.0, 0.5)))
        with contextlib.suppress(errors.OstinatoError, TimeoutError):
            async with asyncio.timeout(max(self.stop_by - time.monotonic() - 0.5, 0.3)):
                if self.pulse is not None:
                    await self.pulse.stop()
                if self.worker is not None:
                    await self._leave(self.worker)
        self.ends.ask_no_more()
        if self._host is None:
            await self.db.close()
        else:
            self._host.guests.discard(self)
        self.ends.stop()

    async def _leave(self, own: worker.Worker) -> None:
        settled, all_settled = own.settled_tokens()
        await self.store.execute(self.tenant, [commands.DropLeases(own.worker_id, settled)])
        if all_settled:
            await self.store.forget_worker(self.tenant, own.worker_id)

    def _begin_work(self) -> worker.Worker:
        self.worker = worker.Worker(self._functions, self.options, self.committer, self, self.tracer)
        self.committer.claimer = self.worker
        return self.worker

    async def _start_worker(self) -> None:
        started = self._begin_work()
        await self.register()
        self.pulse = pulse.Pulse(
            lambda: connect.connect_sealed(self._url, self._keyring, clock=self.options.clock),
            self.tenant,
            started.worker_id,
            self.options.lease_seconds,
            self._lost_from_thread,
            self._working_guests,
        )
        await self.pulse.start(beating=not self._manual)

    def _working_guests(self) -> list[tuple[str, str]]:
        """By tenant, the workers that run something and must not look dead while the event loop is held up. Another
        thread asks."""
        workers = [(guest.tenant, guest.worker) for guest in list(self.guests)]
        return [(tenant, own.worker_id) for tenant, own in workers if own is not None and own.busy]

    async def register(self) -> None:
        """Make this worker and its functions known."""
        if self.worker is not None:
            about = {
                "host": socket.gethostname(),
                **process.here(),
                "leaseSeconds": self.options.lease_seconds,
                "queues": list(self.options.queues),
                "functions": sorted(self._functions),
                "slots": self.options.concurrency,
            } | self.worker.slots.told()
            self._told = self.worker.slots.told()
            known = {
                name: {"retry": function.retry, "timeout": function.timeout}
                for name, function in self._functions.items()
                if not self._attending  # the engine's own are no functions that anybody can name
            }
            await self.store.register_worker(
                self.tenant, self.worker.worker_id, self.options.lease_seconds, about, known, process.machine()
            )
            await self._look_for_others(self.worker)

    async def _look_for_others(self, own: worker.Worker) -> None:
        """Whether there is anybody who could take what our worker leaves. Guests have a queue of their own."""
        here = {engine.worker.worker_id for engine in (self, *self.guests) if engine.worker is not None}
        own.alone = not await self.store.has_other_workers(self.tenant, here)

    def _lost_from_thread(self) -> None:
        if self._main_loop is not None and not self._main_loop.is_closed():
            self._main_loop.call_soon_threadsafe(self.declared_dead)

    def declared_dead(self) -> None:
        """We were declared dead (a long pause, perhaps): nothing that runs here is ours any more. Start anew."""
        if self.worker is not None:
            self.worker.hand_back_all("declared dead")
            asyncio.get_running_loop().create_task(self.register())

    async def _engage(self, tenant: str) -> Engine:
        """Somebody who runs the engine's own functions for a tenant."""
        settings = dataclasses.replace(self.options, queues=(graph.SYSTEM_QUEUE,), concurrency=OWN_CONCURRENCY)
        registry: dict[str, functions.Function] = {}
        made = Engine(
            self._url,
            tenant,
            registry,
            settings,
            keyring=self._keyring,
            secret_source=self.secret_source,
            host=self,
            attending=True,
        )
        registry.update({} if self._own_functions is None else self._own_functions(made))
        await made.start()
        return made

    def attend(self) -> None:
        self.committer.want_claim()

    # --- what the context and the application need -------------------------------------------------------------

    def now(self) -> int:
        return self.db.now()

    async def execute(self, command: commands.Command) -> Any:
        return await self.committer.execute(command)

    async def execute_together(self, batch: Sequence[commands.Command]) -> None:
        """Carry out commands in a transaction of their own."""
        self._committed(self.tenant, await self.store.execute(self.tenant, batch))

    async def read_steps(self, lease: rows.Lease) -> dict[str, bytes]:
        return {name: output for name, output, _ in await self.store.steps(self.tenant, *lease.key)}

    async def read_outputs(self, lease: rows.Lease, wanted: Sequence[str] | None) -> dict[str, Any]:
        return await self.store.dependency_outputs(self.tenant, lease.key, wanted)

    def read_outputs_now(self, lease: rows.Lease, wanted: Sequence[str] | None) -> dict[str, Any]:
        if self.pulse is None:
            raise errors.NotRunning()
        return self.pulse.read_now(lambda target: target.dependency_outputs(self.tenant, lease.key, wanted))

    async def read_payload(self, lease: rows.Lease, stored: bytes) -> bytes:
        if not stored.startswith(ledger.BLOB_MARK):
            return stored
        return await self.store.payload(self.tenant, lease.job_id, stored)

    async def prepare_tasks(self, documents: Sequence[Any]) -> tuple[list[graph.TaskSpec], list[bytes]]:
        """Check tasks that are to be added to a job, and encode their inputs."""
        specs = await threads.run_if(graph.is_large(documents), lambda: graph.read_tasks(documents))
        await self.check_functions(specs)
        return specs, self.encode_inputs(specs)

    async def search(self, q: str, /, **wanted: Any) -> list[Any]:
        """For functions that look at what other jobs have saved."""
        if self._search is None:
            raise errors.NotPossible("there is nothing here to search with: use `app.results`")
        return await self._search(self, q, **wanted)

    async def prepare_job(self, document: Any, actor: str | None = None, *, check: bool = True) -> commands.Submit:
        """Check a job, and make the command that enters it. Without `check` its functions may be unknown as yet."""
        spec = await threads.run_if(graph.is_large(document), lambda: graph.read_job(document))
        if len(spec.tasks) > self.max_tasks:
            raise errors.InvalidGraph(
                f"the job has {len(spec.tasks):,} tasks and the limit is {self.max_tasks:,}", field="tasks"
            )
        if check:
            await self.check_functions(spec.tasks)
        return commands.Submit(
            spec.job_id or str(uuid_utils.uuid7()),
            spec,
            self.encode_inputs(spec.tasks),
            actor,
            correlation_id=logs.correlation_id(),
        )

    def belonging(self, submit: Callable[[], commands.Submit]) -> Callable[[], commands.Submit]:
        """Makes the same command, of a job that belongs to the trace and the correlation in which this is called."""
        trace_parent, correlation_id = tracing.inherited(self.tracer), logs.correlation_id()

        def make() -> commands.Submit:
            command = submit()
            command.trace_parent, command.correlation_id = trace_parent, correlation_id
            return command

        return make

    def encode_inputs(self, specs: Sequence[graph.TaskSpec]) -> list[bytes]:
        """The inputs as JSON."""
        limit = self.max_payload_bytes
        self.choose_queues(specs)
        encode, empty = codec.encode, codec.EMPTY_OBJECT
        try:
            return [encode(spec.input, "", limit) if spec.input else empty for spec in specs]
        except errors.InvalidPayload:  # only now is it worth saying which
            return [encode(spec.input, f"the input of task {spec.task_id!r}", limit) for spec in specs]

    def choose_queues(self, specs: Sequence[graph.TaskSpec]) -> None:
        """Tasks that do not name a queue get that of their function, where it is known here."""
        if self._own_queues:
            for spec in specs:
                if spec.queue is None:
                    spec.queue = self._own_queues.get(spec.name)

    async def check_functions(self, specs: Sequence[graph.TaskSpec]) -> None:
        """Refuse names that neither this process nor any worker of this database has ever registered."""
        if not self.options.check_functions:
            return
        wanted = {spec.name for spec in specs} - self._known_functions - self._functions.keys()
        if wanted:
            wanted &= {spec.name for spec in specs if not graph.run_by_nobody(spec)}
        if not wanted:
            return
        self._known_functions |= set(await self.store.functions(self.tenant))
        unknown = sorted(wanted - self._known_functions)
        if unknown:
            known = sorted(self._known_functions | self._functions.keys())
            error = errors.UnknownFunction(graph.unknown_function_message(unknown[0], known), name=unknown[0])
            error.add_note("A program may also submit with EngineOptions(check_functions=False): the job then waits.")
            raise error

    async def known_policies(self) -> dict[str, tuple[retry.Retry, float | None]]:
        """The retry and the timeout of every function that a worker of this database has registered."""
        known = await self.store.functions(self.tenant)
        return {
            name: (msgspec.convert(about.get("retry") or {}, retry.Retry), about.get("timeout"))
            for name, about in known.items()
        }

    # --- what happened -----------------------------------------------------------------------------------------

    def _committed(self, tenant: str, outcome: store.Outcome) -> None:
        """All who work for the tenant in this process hear of it, whoever of them it was."""
        host = self._host or self
        for engine in {self, host, *host.guests} if host.guests or host is not self else (self,):
            if engine.tenant == tenant:
                engine.hear(outcome)
        if outcome.armed_timers:
            self.timers.wake()
        if outcome.system_work:
            self.steward.wake()
        if outcome.events:
            host.events_written += outcome.events
            self.bell.ring(tenant)
            self.db.announce()

    def hear(self, outcome: store.Outcome) -> None:
        """A transaction of this tenant was committed in this process."""
        if self.worker is not None:
            for key, token in outcome.revoked:
                self.worker.revoke(key, token)
        for job in outcome.ended_jobs:
            self.ends.tell(job.job_id, job.state, job.total, outcome.results.get(job.job_id))
        if outcome.pending_left and (outcome.system_work or not self._attending):
            self.committer.want_claim()

    async def look_around(self) -> None:
        """Find what other processes did: jobs that ended, leases that were taken from us."""
        await self.ends.look()
        if self.worker is not None and time.monotonic() - self._leases_checked_at > LEASE_CHECK_SECONDS:
            self._leases_checked_at = time.monotonic()
            if self.worker.slots.told() != self._told:
                await self.register()
            else:
                await self._look_for_others(self.worker)
            await self.check_leases()
        for guest in list(self.guests):
            await guest.look_around()

    async def check_leases(self) -> None:
        """Stop functions whose task was cancelled or taken over by somebody else."""
        if self.worker is None:
            return
        self.worker.hand_back_stale()
        await self._recover_doubtful(self.worker)
        held = self.worker.leases()
        if held:
            live = await self.store.live_leases(self.tenant, [lease.key for lease in held])
            for lease in held:
                if (lease.job_id, lease.task_id, lease.token) not in live:
                    self.worker.revoke(lease.key, lease.token)

    async def _recover_doubtful(self, holder: worker.Worker) -> None:
        """A claim whose answer was lost may have been recorded: nobody runs what it got, so let it go."""
        doubtful = holder.take_doubtful()
        if not doubtful:
            return
        try:
            leases = await self.store.leases_of_worker(self.tenant, holder.worker_id)
            failure = commands.make_failure("ClaimLost", "the answer to the claim of this attempt was lost")
            batch: list[commands.Command] = [
                commands.Expire(lease.job_id, lease.task_id, lease.token, failure)
                for lease in leases
                if lease.token in doubtful
            ]
            found = {lease.token for lease in leases} & doubtful.keys()
            batch.append(commands.DropLeases(holder.worker_id, sorted(found)))
            await self.execute_together(batch)
        except BaseException:
            for token, since in doubtful.items():
                holder.doubt(token, since)
            raise
        for token, since in doubtful.items():
            if token not in found and time.monotonic() - since < DOUBT_SECONDS:
                holder.doubt(token, since)  # the database may be at it still, though it can no longer tell us


def _let_batches_live() -> None:
    """The values of a batch live until it is committed. Python's collector would look at each of them several times
    meanwhile, which is a tenth of the time of a busy engine. A program that has turned it off has its reasons."""
    first, *rest = gc.get_threshold()
    if 0 < first < COLLECT_EVERY:
        gc.set_threshold(COLLECT_EVERY, *rest)


def _take_turns() -> None:
    """A function that computes in a thread keeps Python to itself for as long as this whenever the engine has let go of
    it, which a transaction does with each statement: by default it would take two hundred times as long meanwhile."""
    if sys.getswitchinterval() > TURN_SECONDS:
        sys.setswitchinterval(TURN_SECONDS)


class Watcher(service.Service):
    """Hears of changes that other processes made, and polls in case nobody told."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    async def run_once(self) -> float:
        bell = self._engine.bell
        if await self._engine.db.changed(self._engine.options.poll_seconds, eager=bell.heard):
            bell.ring()
        await self._engine.look_around()
        for engine in (self._engine, *self._engine.guests):
            engine.committer.want_claim()
        return 0.0
