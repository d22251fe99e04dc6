"""The library: one object to register functions on, submit jobs with and look at them."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

import msgspec
import uuid_utils

from ostinato import (
    approving,
    builder,
    embedding,
    errors,
    functions,
    indexing,
    keeping,
    options,
    redriving,
    reindexing,
    rotation,
    spending,
    threads,
    tracing,
    views,
)
from ostinato import results as results_
from ostinato import secrets as secrets_
from ostinato.core import arguments, audit_chain, codec, commands, filters, graph, moments, statuses
from ostinato.core.retry import Retry
from ostinato.encryption import VARIABLE, Keyring
from ostinato.engine import bell, engine, retention, scribe
from ostinato.jobs import Job
from ostinato.store import connect, lists, stream

if TYPE_CHECKING:  # loaded when they are used, so that who only asks for help need not wait
    from ostinato.reactions import events as outside
    from ostinato.reactions import gates as gates_
    from ostinato.reactions import pipelines as pipelines_
    from ostinato.reactions import playbooks as playbooks_
    from ostinato.reactions import rules as rules_

T = TypeVar("T")
AT_A_TIME = 100
"""Jobs of a batch that are read before others have their turn."""


class Ostinato:
    """An application: functions, and the database in which their jobs run.

    Use it as `async with app:`; it then runs tasks in this process unless `EngineOptions(work=False)`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        tenant: str = "default",
        options: options.EngineOptions | None = None,
        encryption: Keyring | None = None,
        secrets: secrets_.SecretSource | None = None,
        embedder: embedding.Embedder | None = None,
    ) -> None:
        self.url = connect.default_url() if url is None else url
        self.tenant = graph.check_id(tenant, "tenant")
        self.options = _options(options)
        self.keyring = _of_kind(encryption, Keyring, "encryption") or Keyring.from_environment()
        self.secret_source = secrets
        self.embedder = embedder or embedding.HashingEmbedder()
        self.functions: dict[str, functions.Function] = {}
        self._engine: engine.Engine | None = None
        self._index: indexing.Indexer | None = None
        connect.connect(self.url)  # refuse a bad URL here, where it was written

    # --- functions -------------------------------------------------------------------------------------------

    @overload
    def function(self, name: Callable[..., Any], /) -> functions.Function: ...
    @overload
    def function(
        self,
        name: str | None = None,
        /,
        *,
        retry: Retry | None = None,
        timeout: float | None = None,
        queue: str = "default",
    ) -> Callable[[Callable[..., Any]], functions.Function]: ...
    def function(
        self, name: Any = None, /, *, retry: Retry | None = None, timeout: float | None = None, queue: str = "default"
    ) -> Any:
        """Register a function under a name (its own, if none is given)."""
        if callable(name):
            return self.function()(name)

        def register(code: Callable[..., Any]) -> functions.Function:
            chosen = getattr(code, "__name__", "") if name is None else name
            graph.check_name(chosen, "the name of a function")
            graph.check_id(queue, "queue")
            graph.check_not_reserved(chosen, queue)
            if chosen in self.functions:
                raise errors.InvalidInput(f"there is already a function {chosen!r}: give this one another name")
            made = functions.Function(
                chosen, code, retry=self.options.default_retry if retry is None else retry, timeout=timeout, queue=queue
            )
            self.functions[chosen] = made
            return made

        return register

    def agent(self, name: str, /, *, queue: str = "default") -> Callable[[Callable[..., Any]], functions.Function]:
        """Register a function that agents of playbooks can name. It is called with what it has names for of
        `agent_id`, `raw_data`, `parent_output`, `parent_error`, or of what the agent's own input says."""

        def register(code: Callable[..., Any]) -> functions.Function:
            from ostinato.reactions import agents

            return self.function(name, queue=queue)(agents.as_function(name, code))

        return register

    def step(
        self, name: str, /, *, queue: str = "default", timeout: float | None = None
    ) -> Callable[[Callable[..., Any]], functions.Function]:
        """Register a function that steps of pipelines can name. It is called with what it has names for of `item`,
        `item_id`, `results` (of the steps before), `pipeline`, `version` and `run`."""

        def register(code: Callable[..., Any]) -> functions.Function:
            from ostinato.reactions import steps

            return self.function(name, queue=queue, timeout=timeout)(steps.as_function(name, code))

        return register

    def graph(self, name: str, **settings: Any) -> builder.Graph:
        """A builder for people who prefer code to JSON."""
        return builder.Graph(name, **settings)

    # --- life ------------------------------------------------------------------------------------------------

    async def start(self, *, migrate: bool = True) -> None:
        if self._engine is not None:
            raise errors.NotPossible(
                "this application is already open: use it as it is. An `async def` function awaits `job.result()`; a "
                "plain `def` calls asyncio.run_coroutine_threadsafe(job.result(), loop).result() with the loop of the "
                "application"
            )
        made = self.make_engine(self.options)
        await made.start(migrate=migrate)
        self._engine = made

    def make_engine(self, settings: options.EngineOptions, *, manual: bool = False) -> engine.Engine:
        """An engine for this application, not yet started."""
        return engine.Engine(
            self.url,
            self.tenant,
            self.functions,
            settings,
            keyring=self.keyring,
            secret_source=self.secret_source,
            manual=manual,
            own_functions=self._own_functions,
            search=self._search,
        )

    def _own_functions(self, running: engine.Engine) -> dict[str, functions.Function]:
        from ostinato.reactions import own

        return own.make(running, embedder=self.embedder)

    async def _search(self, home: engine.Engine, q: str, /, **wanted: Any) -> results_.Hits:
        """For an engine of this application, which need not be the one that it has open."""
        return await results_.Results(lambda: home, self.embedder).search(q, **wanted)

    def attach(self, running: engine.Engine) -> None:
        """Use an engine that somebody else has started (the test kit does)."""
        self._engine = running

    def detach(self) -> None:
        """Let go of the engine without stopping it."""
        self._engine = None

    async def stop(self) -> None:
        if self._engine is not None:
            running, self._engine = self._engine, None
            await running.stop()

    async def __aenter__(self) -> Ostinato:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def run(self, main: Callable[[], Coroutine[Any, Any, T]] | Coroutine[Any, Any, T]) -> T:
        """The door for code that is not async: open the application, run `main`, close it again."""

        async def inside() -> T:
            async with self:
                return await (main() if callable(main) else main)

        return asyncio.run(inside())

    @property
    def engine(self) -> engine.Engine:
        if self._engine is None:
            raise errors.NotRunning()
        return self._engine

    # --- producing -------------------------------------------------------------------------------------------

    async def submit(self, job: Any, /, *, actor: str | None = None, **overrides: Any) -> Job:
        """Submit one job: a document (a dict or JSON text), or a graph from `app.graph`. Durable when this returns."""
        return await self._enter(await self._prepare(job, overrides, actor))

    async def submit_many(self, jobs: Sequence[Any], /, *, actor: str | None = None, **overrides: Any) -> list[Job]:
        """Submit many jobs in one transaction: all of them, or none if one is bad or its key belongs to another."""
        batch: list[commands.Submit] = []
        for index, job in enumerate(arguments.items(jobs, "jobs", "jobs")):
            if index % AT_A_TIME == AT_A_TIME - 1:
                await asyncio.sleep(0)  # others have their turn
            try:
                batch.append(await self._prepare(job, overrides, actor))
            except errors.InvalidInput as error:
                raise _of_job(index, error) from None
        together = sum(len(command.spec.tasks) for command in batch)
        if together > self.engine.max_tasks:
            raise errors.InvalidGraph(
                f"the jobs have {together:,} tasks together and the limit is {self.engine.max_tasks:,}: "
                "submit them in parts",
                field="jobs",
            )
        if not batch:
            return []
        running, looks = self.engine, self.engine.ends.looks
        for command in batch:
            running.ends.forget(command.job_id)
            with tracing.submission(running.tracer, self.tenant, command):
                pass  # it is entered with all others
        answers = await running.execute(commands.SubmitMany(batch))
        return await asyncio.gather(*[self._entered(answer, actor, looks) for answer in answers])

    async def _enter(self, command: commands.Submit) -> Job:
        running = self.engine
        looks = running.ends.looks
        running.ends.forget(command.job_id)
        with tracing.submission(running.tracer, self.tenant, command):
            answer = await running.execute(command)
        return await self._entered(answer, command.actor, looks)

    async def _entered(self, answer: commands.Submitted, actor: str | None, looks: int) -> Job:
        if answer.created:  # only now is it known which job it is; who submitted it is in its first event in any case
            await self.note(actor, "jobs.submit", answer.job_id)
        return Job(self, answer.job_id, created=answer.created, submitted_at_look=looks if answer.created else None)

    async def _prepare(self, job: Any, overrides: Mapping[str, Any], actor: str | None) -> commands.Submit:
        arguments.text_or_none(actor, "actor")
        return await self.engine.prepare_job(secrets_.hide_in_document(_document(job, overrides)), actor)

    async def submit_task(
        self, name: str | functions.Function, /, *, submit: Mapping[str, Any] | None = None, **given: Any
    ) -> Job:
        """Submit a standalone task: no graph to write. `submit` holds settings of the task, such as its retry."""
        called = name.name if isinstance(name, functions.Function) else name
        settings = {} if submit is None else arguments.mapping(submit, "submit")
        task = {"taskId": "task", "name": called, "input": given} | settings
        return await self.submit({"name": called, "tasks": [task]})

    async def plan(self, job: Any, /) -> graph.Plan:
        """Levels, critical path and warnings of a graph, without running it."""
        defaults = {} if self._engine is None else await self._engine.known_policies()
        defaults |= {name: (f.retry, f.timeout) for name, f in self.functions.items()}
        document = _document(job, {})
        return await threads.run_if(graph.is_large(document), lambda: graph.plan(graph.read_job(document), defaults))

    async def signal(
        self,
        job_id: str,
        name: str,
        payload: Any = None,
        *,
        signal_id: str | None = None,
        actor: str | None = None,
    ) -> bool:
        """Send a signal to a job; True if a task was waiting for it, False if it is kept for the next one that asks.

        With a `signal_id` of your own it can be sent again after a failure without arriving twice.
        """
        arguments.text(job_id, "job_id")
        if signal_id is not None:
            graph.check_id(signal_id, "signal_id")
        graph.check_id(name, "the name of a signal")
        data = codec.encode(payload, "the payload of the signal", self.options.max_payload_bytes)
        data = secrets_.hide_in_payload(data)
        command = commands.SendSignal(job_id, name, signal_id or str(uuid_utils.uuid7()), data, actor)
        await self.note(actor, "jobs.signal", job_id, name=name)
        return await self.engine.execute(command)

    async def publish_status(
        self,
        job_id: str,
        status: str,
        message: str | None = None,
        *,
        timestamp: datetime.datetime | None = None,
        actor: str | None = None,
    ) -> datetime.datetime:
        """Say in the stream of a job how it stands, for all who follow it. It changes nothing about the job.

        The answer is the time that those who follow it get."""
        arguments.text(job_id, "job_id")
        told = statuses.check(*secrets_.hide_in_document([status, message]))
        await self.note(actor, "jobs.publishStatus", job_id)
        at = None if timestamp is None else statuses.written(timestamp)
        now = await self.engine.execute(commands.PublishStatus(job_id, *told, timestamp=at, actor=actor))
        return moments.moment(now) if timestamp is None else timestamp

    # --- reacting ----------------------------------------------------------------------------------------------

    @functools.cached_property
    def gates(self) -> gates_.Gates:
        """The gates of this tenant: define them, and look at which there are."""
        from ostinato.reactions import gates as gates_

        return gates_.Gates(self)

    def gate(self, name: str) -> gates_.Gate:
        """One gate, to report to, to look at, to open: `await app.gate("phase2-to-phase3").arrive(key, member)`."""
        return self.gates.gate(name)

    @functools.cached_property
    def rules(self) -> rules_.Rules:
        """The rules of this tenant: what is to happen about which events."""
        from ostinato.reactions import rules as rules_

        return rules_.Rules(self)

    @functools.cached_property
    def playbooks(self) -> playbooks_.Playbooks:
        """The playbooks of this tenant, with their agents and graphs: define them, plan them, start them."""
        from ostinato.reactions import playbooks as playbooks_

        return playbooks_.Playbooks(self)

    @functools.cached_property
    def pipelines(self) -> pipelines_.Pipelines:
        """The pipelines of this tenant: define them, enter items, look at them and act on them."""
        from ostinato.reactions import pipelines as pipelines_

        return pipelines_.Pipelines(self)

    async def ingest(self, domain_id: str, data: Any, **settings: Any) -> Job:
        """Give data to the ingestion playbook of a domain."""
        started = await self.playbooks.start("ingestion", domain_id, data, **settings)
        return Job(self, started.job_id, created=started.created)

    async def query(self, domain_id: str, data: Any, **settings: Any) -> Job:
        """Ask the query playbook of a domain."""
        started = await self.playbooks.start("query", domain_id, data, **settings)
        return Job(self, started.job_id, created=started.created)

    async def post_events(self, events: Any, *, actor: str | None = None) -> list[outside.Received]:
        """Record events of others, each once, and let the rules act on them."""
        from ostinato.reactions import events as outside

        return await outside.post(self, self.index, events, actor=actor)

    @functools.cached_property
    def results(self) -> results_.Results:
        """What jobs have saved: `await app.results.search("burst water pipe", domain="incidents")`."""
        return results_.Results(lambda: self.engine, self.embedder)

    @functools.cached_property
    def approvals(self) -> approving.Approvals:
        """What people are asked, and deciding on it: `await app.approvals.list()`."""
        return approving.Approvals(self)

    # --- finding ---------------------------------------------------------------------------------------------

    async def job(self, job_id: str) -> Job:
        """Find a job again, from any process."""
        await self.engine.store.job(self.tenant, arguments.text(job_id, "job_id"))
        return Job(self, job_id)

    async def usage(
        self, by: str = "day", since: datetime.date | None = None, until: datetime.date | None = None
    ) -> views.UsageReport:
        """What this tenant has used up, by `day`, by `name` of jobs or by `function`."""
        return await spending.report(self.engine, by, since, until)

    async def jobs(
        self, *, cursor: str | None = None, most: int = 50, **wanted: Unpack[filters.JobsWanted]
    ) -> filters.Page[views.JobView]:
        """Jobs, newest first, by any of the filters; `cursor` is that of the page before."""
        found = await self.engine.store.jobs(self.tenant, filters.job_filter(**wanted), cursor=cursor, most=most)
        return filters.Page([views.job_view(row) for row in found], found.cursor)

    async def executions(
        self,
        *,
        order: str = filters.NEWEST,
        cursor: str | None = None,
        most: int = 50,
        **wanted: Unpack[filters.ExecutionsWanted],
    ) -> filters.Page[views.ExecutionView]:
        """Executions, own and reported ones, newest or oldest first; `cursor` is that of the page before.

        A page may be shorter than `most`, or empty, while it has a cursor: see the reference on executions."""
        chosen = filters.execution_filter(order=order, **wanted)
        found = await self.engine.store.executions(self.tenant, chosen, cursor=cursor, most=most)
        return filters.Page([views.execution_view(one) for one in found], found.cursor)

    async def execution(self, execution_arn: str) -> views.ExecutionView:
        """One execution."""
        arn = arguments.text(execution_arn, "execution_arn")
        return views.execution_view(await self.engine.store.execution(self.tenant, arn))

    async def execution_counts(self, by: str, **wanted: Unpack[filters.ExecutionsWanted]) -> list[views.CountView]:
        """How many executions there are, by `status`, or by `day` or `hour` of UTC, in order."""
        chosen = filters.execution_filter(**wanted)
        counted = await self.engine.store.count_executions(self.tenant, chosen, by)
        return [views.CountView(key, count) for key, count in counted.items()]

    @property
    def index(self) -> indexing.Indexer:
        """What gets into the index: report status changes of executions elsewhere, and tag their definitions."""
        running = self.engine
        if self._index is None or self._index.store is not running.store:
            from ostinato.reactions import events as outside

            record = functools.partial(outside.report, running)
            self._index = indexing.Indexer(running.store, self.tenant, self.options, record)
        return self._index

    async def rebuild_index(self, progress: reindexing.Progress | None = None) -> reindexing.Rebuilt:
        """Rebuild the index from events, while everything goes on."""
        return await reindexing.rebuild(self.index, progress)

    async def dead_letters(
        self, *, cursor: str | None = None, most: int = 50, **wanted: Unpack[filters.DeadLettersWanted]
    ) -> filters.Page[lists.DeadLetter]:
        """Tasks that failed for good, newest first, by any of the filters; `cursor` is that of the page before."""
        chosen = filters.dead_letter_filter(**wanted)
        return await self.engine.store.dead_letters(self.tenant, chosen, cursor=cursor, most=most)

    async def dead_letter(self, job_id: str, task_id: str) -> lists.DeadLetter | None:
        """One dead letter, if the task is one."""
        key = arguments.text(job_id, "job_id"), arguments.text(task_id, "task_id")
        return await self.engine.store.dead_letter(self.tenant, *key)

    async def dead_letter_depth(self) -> views.DeadLetterDepth:
        """How many dead letters there are, and whether that is more than `EngineOptions.dead_letter_alarm`."""
        depth = await self.engine.store.count_dead_letters(self.tenant)
        threshold = self.options.dead_letter_alarm
        return views.DeadLetterDepth(depth, threshold, depth > threshold)

    async def redrive(
        self, letters: Sequence[tuple[str, str]], *, dry_run: bool = False, actor: str | None = None
    ) -> views.Redriven:
        """Run dead letters, given as (job id, task id), again: same policy, same history, all their attempts.

        One that is no dead letter is refused; a dry run only says which of them are."""
        chosen = redriving.check(letters)
        if dry_run:
            return redriving.told(await self.engine.store.are_dead_letters(self.tenant, chosen), dry_run=True)
        target = "/".join(chosen[0]) if len(chosen) == 1 else ""
        await self.note(actor, "deadLetters.redrive", target, letters=len(chosen))
        return redriving.told(await redriving.redrive(self.engine, chosen, actor))

    async def redrive_matching(
        self, *, dry_run: bool = False, actor: str | None = None, **wanted: Unpack[filters.DeadLettersWanted]
    ) -> views.Redriven:
        """Run all dead letters that match the filters again (without any filter: all), or say which these are."""
        chosen = filters.dead_letter_filter(**wanted)
        if dry_run:
            return await redriving.preview(self.engine, chosen)
        await self.note(actor, "deadLetters.redrive", filters=msgspec.to_builtins(chosen))
        return await redriving.redrive_matching(self.engine, chosen, actor)

    async def events(self, *, cursor: str | None = None, most: int = 1000) -> list[stream.FeedEvent]:
        """Events of all jobs in the order of their commits, after a cursor. None is ever skipped."""
        return await self.engine.store.feed(self.tenant, cursor, arguments.number(most, "most", 1))

    async def newest_cursor(self) -> str:
        """The cursor of the newest event: after it comes what happens from now on."""
        known = await self.engine.store.feed_cursors.ready()
        return known.write(self.tenant, await self.engine.store.feed_end(self.tenant))

    async def tail(self, *, cursor: str | None = None) -> AsyncIterator[stream.FeedEvent]:
        """Events of all jobs as they happen, from a cursor on (or from now on)."""
        place = None if cursor is None else await self.engine.store.place_of(self.tenant, cursor)
        async with contextlib.aclosing(bell.follow(self.engine, self.tenant, place)) as pages:
            async for page in pages:
                for item in page.events:
                    yield item

    # --- who did what ------------------------------------------------------------------------------------------

    async def record(
        self,
        *,
        actor: str,
        action: str,
        target: str = "",
        details: Mapping[str, Any] | None = None,
        request_id: str | None = None,
    ) -> views.AuditEntryView:
        """Add to the audit log that `actor` does `action` (such as `jobs.cancel`) to `target`.

        Record first, then act: nothing is then done that the log does not know of. How it went is in the job's events.
        """
        request = request_id or scribe.request_id.get()
        said = {} if details is None else arguments.mapping(details, "details")
        entry = audit_chain.new_entry(actor, action, target, request, said)
        return views.audit_entry_view(await self.engine.scribe.record(entry))

    async def note(self, actor: str | None, action: str, target: str = "", **details: Any) -> None:
        """The same for what is done under a name; code that acts for itself is not recorded."""
        if actor is not None:
            known = {name: value for name, value in details.items() if value is not None}
            await self.record(actor=actor, action=action, target=target, details=known)

    async def audit_log(self, **filters: Any) -> list[views.AuditEntryView]:
        """Entries of the audit log, newest first, by actor, action or target; `before` a number, at `most` so many."""
        found = await self.engine.store.audit_entries(self.tenant, **filters)
        return [views.audit_entry_view(entry, refused=refused) for entry, refused in found]

    async def verify_audit_log(self, *, head: str | None = None) -> audit_chain.Verdict:
        """Whether the log is as it was written; `head` is an end of it that was noted elsewhere, as `SEQ:HASH`."""
        return await self.engine.store.verify_audit(self.tenant, head=arguments.text_or_none(head, "head"))

    # --- encryption --------------------------------------------------------------------------------------------

    async def encryption_status(self) -> list[rotation.SealedCount]:
        """How many stored payloads of this tenant each key has encrypted."""
        return await rotation.status(self.engine.store, self.tenant)

    async def rotate_encryption(self) -> int:
        """Encrypt everything of this tenant with the first key; how many rows that were.

        Give the new key to every process first, then call this.
        """
        return await rotation.rotate(self.engine.store, self.keys_at_hand(), self.tenant)

    def keys_at_hand(self) -> Keyring:
        if self.keyring is None:
            raise errors.NotPossible(f"there are no encryption keys: set {VARIABLE}, or pass a Keyring")
        return self.keyring

    # --- keeping house -----------------------------------------------------------------------------------------

    async def retention(self) -> views.RetentionView:
        """For how many seconds this tenant keeps finished jobs, and after that their idempotency keys."""
        return await keeping.retention(self.engine)

    async def set_retention(
        self, *, jobs: float | None = None, keys: float | None = None, actor: str | None = None
    ) -> views.RetentionView:
        """The same, both at once, in seconds; None is for ever. It holds for every process that uses the database."""
        keeping.check_retention(jobs, keys)
        await self.note(actor, "retention.set", "", jobs=jobs, keys=keys)
        return await keeping.set_retention(self.engine, jobs, keys)

    async def budget(self) -> views.BudgetView:
        """What this tenant may spend in a day and in a month, and what it has spent."""
        return await spending.budget(self.engine)

    async def set_budget(
        self, *, day: float | None = None, month: float | None = None, actor: str | None = None
    ) -> views.BudgetView:
        """What this tenant may spend in a day and in a month of UTC; None is as much as it likes."""
        spending.check_budget(day, month)
        await self.note(actor, "budgets.set", "", day=day, month=month)
        return await spending.set_budget(self.engine, day, month, actor)

    async def prune(self, *, older_than: float | None = None) -> int:
        """Remove what was kept for as long as `retention` says, or jobs that ended more than so many seconds ago; how
        much there was. What has a period of its own, such as keys of a gate with a `retention`, goes by that."""
        if older_than is not None:
            graph.check_seconds(older_than, "older_than")
        return await retention.prune(self.engine.store, self.tenant, older_than)


def _options(given: options.EngineOptions | None) -> options.EngineOptions:
    return _of_kind(given, options.EngineOptions, "options") or options.EngineOptions()


def _of_kind(given: T | None, kind: type[T], field: str) -> T | None:
    if given is not None and not isinstance(given, kind):
        raise arguments.invalid(field, f"{kind.__name__}(…)", type(given))  # not what it is: that may be a secret
    return given


def _of_job(index: int, error: errors.InvalidInput) -> errors.InvalidInput:
    """What is wrong with one of many jobs, and with which."""
    where = f"jobs[{index}]"
    details = error.details
    if "field" in details:
        details = {**details, "field": f"{where}.{details['field']}"}
    return type(error)(f"{where}: {error.message}", **details)


def _document(job: Any, overrides: Mapping[str, Any]) -> Any:
    if isinstance(job, builder.Graph):
        job = job.document()
    elif isinstance(job, (str, bytes)):
        job = codec.parse(job, "the job")
    if overrides:
        if not isinstance(job, Mapping):
            raise errors.InvalidInput("the job must be an object with `tasks`, JSON text, or a graph from app.graph")
        document = cast("Mapping[str, Any]", job)
        job = {**document, **{_camel(name): value for name, value in overrides.items()}}
    return job


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
