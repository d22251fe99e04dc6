"""What a running function sees, and how it reaches the engine."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol, TypedDict, Unpack

import msgspec

from ostinato import errors, secrets, suspension, threads
from ostinato.core import approvals, arguments, codec, commands, documents, graph, rows, statuses, usage

READ_AHEAD = 64
"""Outputs of up to this many dependencies are read before a function that uses them starts; the rest on demand."""

logger = logging.getLogger("ostinato.task")


def about(tenant: str, lease: rows.Lease) -> dict[str, Any]:
    """What a log line of an attempt is about."""
    return {
        "tenant": tenant,
        "job_id": lease.job_id,
        "task_id": lease.task_id,
        "attempt": lease.attempt,
        "correlation_id": lease.correlation_id,
    }


class Asked(TypedDict, total=False):
    """How people are asked, as in the `approval` of a task."""

    decisions: Sequence[str]
    quorum: int
    approvers: Sequence[str] | None
    not_submitter: bool
    allow_edit: bool
    escalate: Mapping[str, Any] | None
    """`{"after": seconds, "to": [names]}`"""
    deadline: float | None
    on_deadline: approvals.OnDeadline


def _camel(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {_FIELDS.get(name, name): value for name, value in asked.items()}


_FIELDS = {"not_submitter": "notSubmitter", "allow_edit": "allowEdit", "on_deadline": "onDeadline"}


class Services(Protocol):
    """What the context needs of the engine."""

    tenant: str
    max_payload_bytes: int
    max_tasks: int
    secrets: secrets.SecretSource | None
    """None leaves references to secrets in an input as they are."""

    def now(self) -> int: ...
    async def execute(self, command: commands.Command, /) -> Any: ...
    async def read_steps(self, lease: rows.Lease, /) -> dict[str, bytes]: ...
    async def read_outputs(self, lease: rows.Lease, wanted: Sequence[str] | None, /) -> dict[str, Any]: ...
    def read_outputs_now(self, lease: rows.Lease, wanted: Sequence[str] | None, /) -> dict[str, Any]: ...
    async def read_payload(self, lease: rows.Lease, stored: bytes, /) -> bytes: ...
    async def prepare_tasks(self, documents: Sequence[Any], /) -> tuple[list[graph.TaskSpec], list[bytes]]: ...
    async def search(self, q: str, /, **wanted: Any) -> list[Any]: ...


class DependencyOutputs(Mapping[str, Any]):
    """The outputs of the tasks that this one depends on, by task id. Each is read when it is first asked for.

    A failed optional dependency gives `{"error": {...}}`, a skipped one None. `await ctx.dependency_outputs.load(...)`
    reads many at once without blocking; iterating reads them all.
    """

    def __init__(self, services: Services, lease: rows.Lease) -> None:
        self._services = services
        self._lease = lease
        self._known: dict[str, Any] = {}
        self._complete = lease.dependencies == 0

    async def load(self, *task_ids: str) -> dict[str, Any]:
        """Read the named outputs, or all of them."""
        for task_id in task_ids:
            _check_dependency(task_id)
        if not self._complete:
            found = await self._services.read_outputs(self._lease, list(task_ids) or None)
            self._known |= found
            self._complete = not task_ids
        return {task_id: self._known[task_id] for task_id in task_ids} if task_ids else dict(self._known)

    def __getitem__(self, task_id: str) -> Any:
        _check_dependency(task_id)
        if task_id not in self._known and not self._complete:
            self._known |= self._services.read_outputs_now(self._lease, [task_id])
        return self._known[task_id]

    def __iter__(self) -> Iterator[str]:
        if not self._complete:
            self._known = self._services.read_outputs_now(self._lease, None)
            self._complete = True
        return iter(self._known)

    def __len__(self) -> int:
        return self._lease.dependencies


def _check_dependency(task_id: object) -> None:
    """What no task can be called there is no output of; a database need not be asked, and may not be able to answer."""
    if not isinstance(task_id, str) or "\0" in task_id or not arguments.is_unicode(task_id):
        raise KeyError(task_id)


class Context:
    """Given to a function as its parameter `ctx`."""

    # As defaults of the class, they cost a quick function nothing.
    _outputs: DependencyOutputs | None = None
    _reading: asyncio.Future[dict[str, bytes]] | None = None
    home: asyncio.Task[Any] | None = None
    """The task of the event loop in which the function runs; None for one that runs in a thread."""
    coroutine: Any = None
    leaving: suspension.Suspension | None = None
    """What the function is left for, if it waits durably."""
    execution_arn: str | None = None
    """Of an agent of a playbook or pipeline: by this its execution is found in the index."""
    redactor: secrets.Redactor | None = None
    """Hides the secrets of this attempt in what goes out of it; None if it has none."""
    cancelled = False
    """True once the task was cancelled, its time up or its lease lost; an async function is also interrupted."""

    def __init__(self, services: Services, lease: rows.Lease) -> None:
        self._services = services
        self._lease = lease
        self._steps: dict[str, bytes] | None = {} if lease.fresh else None
        self._uses: dict[str, int] = {}
        self._input: dict[str, Any] = {}
        self._under_way: set[object] = set()
        """Steps that have begun and are not recorded yet, and the like."""

    @property
    def lease(self) -> rows.Lease:
        """What proves that this attempt may speak of its task."""
        return self._lease

    @property
    def job_id(self) -> str:
        return self._lease.job_id

    @property
    def task_id(self) -> str:
        return self._lease.task_id

    @property
    def attempt(self) -> int:
        return self._lease.attempt

    @property
    def redriven(self) -> bool:
        """Whether it had ended once, and somebody had it run again."""
        return self._lease.attempt_base > 0

    @property
    def input(self) -> dict[str, Any]:
        return self._input

    @property
    def dependency_outputs(self) -> DependencyOutputs:
        if self._outputs is None:
            self._outputs = DependencyOutputs(self._services, self._lease)
        return self._outputs

    @property
    def correlation_id(self) -> str:
        return self._lease.correlation_id

    @property
    def request_id(self) -> str | None:
        return self._lease.request_id

    @property
    def tenant(self) -> str:
        return self._services.tenant

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this task: give it to outside systems, so that they do things once."""
        return self._lease.idempotency_key

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger of the standard library whose lines say which attempt they come from."""
        extra = about(self.tenant, self._lease)
        if self.redactor is not None:
            return secrets.RedactingLog(logger, extra, self.redactor)
        return logging.LoggerAdapter(logger, extra)

    async def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call `function` and record its result; a later attempt gets the recorded result without calling it again.

        Steps with the same name are told apart by their order: keep that order the same on every run.
        """
        key = self._next_key(name)
        recorded = await self._recorded(key)
        if recorded is not None:
            return codec.decode(recorded)
        with self._busy():
            if inspect.iscoroutinefunction(function):
                result = await function(*args, **kwargs)
            else:
                result = await threads.run(lambda: function(*args, **kwargs))
                if inspect.isawaitable(result):
                    result = await result
            what = f"the result of step {name!r}"
            output = self.redacted(codec.encode(result, what, self._services.max_payload_bytes))
            await self._services.execute(commands.RecordStep(self._lease, key, output))
        self._remember(key, output)
        return codec.decode(output)

    async def sleep(self, seconds: float) -> None:
        """Wait durably, without holding a slot or memory. The function is entered again afterwards."""
        graph.check_seconds(seconds, "seconds")
        key = self._next_key("sleep")
        if await self._recorded(key) is None:
            await self._wait(commands.Suspend(self._lease, "sleep", key, seconds=seconds))

    async def wait_for(self, name: str, timeout: float | None = None) -> Any:
        """Wait durably for a signal sent to this job, and return its payload. Raises SignalTimeout."""
        graph.check_id(name, "the name of a signal")
        if timeout is not None:
            graph.check_seconds(timeout, "timeout")
        key = self._next_key(f"wait:{name}")
        recorded = await self._recorded(key) or await self._recorded(f"{key}!{self.attempt}")
        if recorded is None:
            await self._wait(commands.Suspend(self._lease, "wait", key, name=name, seconds=timeout))
        outcome = codec.decode(recorded)
        if "timedOut" in outcome:
            raise errors.SignalTimeout(f"the signal {name!r} did not arrive in time")
        if "blob" in outcome:
            return codec.decode(
                await self._services.read_payload(self._lease, b"\x00" + bytes.fromhex(outcome["blob"]))
            )
        return outcome["value"]

    async def approve(
        self, title: str, payload: Any = None, *, name: str | None = None, **asked: Unpack[Asked]
    ) -> approvals.Decision:
        """Wait durably until people have decided, and return what. Raises Rejected, or ApprovalExpired if nobody did.

        Approvals are told apart by their order, or by a `name` of their own.
        """
        arguments.text_or_none(name, "name")
        approval = approvals.read_document({"title": title} | _camel(asked))
        data = codec.encode(payload, "the payload of the approval", self._services.max_payload_bytes)
        key = self._next_key("approve" if name is None else f"approve:{name}")
        recorded = await self._recorded(key) or await self._recorded(f"{key}!{self._lease.attempt_base}")
        if recorded is None:
            if self.redactor is not None:
                approval = approvals.read_document(self.redactor.document(msgspec.to_builtins(approval)))
            data = self.redacted(data)
            await self._wait(commands.Suspend(self._lease, "approval", key, approval=approval, payload=data))
        result: dict[str, Any] = codec.decode(recorded)
        if result["decision"] == approvals.REJECT:
            raise errors.Rejected(approvals.rejection(title, result), **result)
        if result["decision"] == approvals.EXPIRED:
            raise errors.ApprovalExpired(approvals.expiry(title))
        return approvals.Decision(
            result["decision"], result["reviewedBy"], result["reviewedAt"], result["reviewNotes"], result["payload"]
        )

    async def add_tasks(self, tasks: Sequence[Any]) -> list[str]:
        """Let this job grow. The same call on a later attempt adds nothing twice."""
        tasks = arguments.items(tasks, "tasks", "tasks")
        key = self._next_key("add_tasks")
        recorded = await self._recorded(key)
        if recorded is not None:
            return codec.decode(recorded)
        if self.redactor is not None:
            tasks = self.redactor.document(tasks)
        with self._busy():
            specs, inputs = await self._services.prepare_tasks(tasks)
            added = await self._services.execute(
                commands.AddTasks(self.job_id, specs, inputs, self._lease, key, most=self._services.max_tasks)
            )
        self._remember(key, codec.encode(added))
        return added

    async def finish(self, status: str, reason: str | None = None, output: Any = None) -> NoReturn:
        """As a step of a pipeline: end the item here, in one of the statuses that the step says it `ends` in."""
        data = self.redacted(codec.encode(output, "the output of the task", self._services.max_payload_bytes))
        if self.redactor is not None:
            status, reason = self.redactor.document([status, reason])
        arguments.text(status, "status", statuses.LONGEST_STATUS)
        approvals.check_notes(reason, "reason")
        await self._wait(commands.FinishItem(self._lease, status, data, reason))

    async def publish(self, status: str, message: str | None = None) -> None:
        """Say how this job stands, for all who follow it. Whether that can be recorded is not the job's concern."""
        await self._check_here()
        try:
            if self.redactor is not None:
                status, message = self.redactor.document([status, message])
            statuses.check(status, message)
            await self._services.execute(commands.PublishStatus(self.job_id, status, message, lease=self._lease))
        except errors.OstinatoError as error:
            self.log.warning("the status %s was not published: %s", documents.short(status), error)

    async def search(self, q: str, /, **wanted: Any) -> list[Any]:
        """Search what jobs have saved, as `app.results.search` does: by words and likeness, best first."""
        return await self._services.search(q, **wanted)

    async def spend(
        self,
        cost: float = 0.0,
        input_tokens: int = 0,
        output_tokens: int = 0,
        calls: int = 1,
        model: str | None = None,
    ) -> None:
        """Record what this attempt has used up. Say it where it is paid, so inside the step if there is one: a step
        that is not run again is not paid again either."""
        if self.redactor is not None:
            model = self.redactor.document(model)
        used = usage.read(cost, input_tokens, output_tokens, calls, model)
        await self.record_usage(used, model)

    async def record_usage(self, used: usage.Usage, model: str | None = None, function: str | None = None) -> None:
        """The same, for what may be counted under another name."""
        await self._services.execute(commands.RecordUsage(self._lease, used, model, function, late=True))

    async def heartbeat(self) -> None:
        """Give others a turn, and leave here if the task was cancelled meanwhile, or its time is up."""
        await asyncio.sleep(0)
        await self._check_here()
        if self.cancelled:
            raise errors.LeaseLost()

    def ready(self, reads_outputs: bool) -> dict[str, Any] | None:
        """The input; None if there is more to read before the function can start."""
        lease = self._lease
        data = lease.input
        if (reads_outputs and lease.dependencies) or data.startswith(b"\x00") or secrets.mentioned(data):
            return None
        if data != codec.EMPTY_OBJECT:
            self._input = codec.decode(data)
        return self._input

    async def prepare(self, reads_outputs: bool) -> dict[str, Any]:
        """The input, and what else the function will want at once; the worker calls this before the function."""
        lease = self._lease
        data = await self._services.read_payload(lease, lease.input)
        self._input = codec.decode(data)
        if self._services.secrets is not None and secrets.mentioned(data):
            self.redactor = secrets.Redactor()
            secrets.enter(self.redactor)
            self._input = await secrets.resolve(self._input, self._services.secrets, self.redactor)
        if reads_outputs and lease.dependencies <= READ_AHEAD:
            await self.dependency_outputs.load()
        return self._input

    def redacted(self, data: bytes) -> bytes:
        """A payload without the secrets of this attempt."""
        return data if self.redactor is None else self.redactor.payload(data)

    def _next_key(self, name: str) -> str:
        if self.redactor is not None and self.redactor.finds(name):
            raise errors.TerminalError("a secret is part of the name of a step or a signal: names are stored")
        graph.check_name(name, "the name of a step")
        count = self._uses[name] = self._uses.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    async def _recorded(self, key: str) -> bytes | None:
        if self.leaving is not None:
            await self._check_here()
        if self._steps is None:
            with self._busy():
                if self._reading is None:
                    self._reading = asyncio.ensure_future(self._services.read_steps(self._lease))
                try:
                    found = await asyncio.shield(self._reading)
                except BaseException:
                    self._reading = None
                    raise
            if self._steps is None:  # several tasks of the function may have asked
                self._steps = dict(found)
        return self._steps.get(key)

    def _busy(self) -> suspension.UnderWay:
        return suspension.UnderWay(self._under_way)

    async def _check_here(self) -> None:
        """A function that was left, and swallowed that, gets nothing more done."""
        if self.leaving is not None and self.leaving.decided:
            await self.leaving.refuse()

    async def _wait(self, command: suspension.Command) -> NoReturn:
        """Leave the function until what the command waits for has come."""
        if self.leaving is None:
            self.leaving = suspension.Suspension(self.home, self.coroutine, self._under_way, self._keep_due)
        due = None
        if isinstance(command, commands.Suspend) and command.seconds is not None:
            due = await self._recorded(_due_key(command))
            if due is not None:
                command.seconds = max(0.0, (codec.decode(due) - self._services.now()) / 1e6)
        await self.leaving.wait(command, due_known=due is not None)

    async def _keep_due(self, command: commands.Suspend) -> None:
        """The function is left for something else first: record when this is over, for when it is entered again."""
        if command.seconds is not None:
            due = self._services.now() + int(command.seconds * 1e6)
            await self._services.execute(commands.RecordStep(self._lease, _due_key(command), codec.encode(due)))

    def _remember(self, key: str, output: bytes) -> None:
        if self._steps is not None:
            self._steps[key] = output


def _due_key(command: commands.Suspend) -> str:
    return f"{command.key}!due"


class SyncContext:
    """The context for a plain `def` function, which runs in a thread: the same names, with calls that block."""

    def __init__(self, ctx: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._ctx = ctx
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return self._wait(self._ctx.step(name, function, *args, **kwargs))

    def sleep(self, seconds: float) -> None:
        self._wait(self._ctx.sleep(seconds))

    def wait_for(self, name: str, timeout: float | None = None) -> Any:
        return self._wait(self._ctx.wait_for(name, timeout))

    def approve(
        self, title: str, payload: Any = None, *, name: str | None = None, **asked: Unpack[Asked]
    ) -> approvals.Decision:
        return self._wait(self._ctx.approve(title, payload, name=name, **asked))

    def add_tasks(self, tasks: Sequence[Any]) -> list[str]:
        return self._wait(self._ctx.add_tasks(tasks))

    def finish(self, status: str, reason: str | None = None, output: Any = None) -> NoReturn:
        self._wait(self._ctx.finish(status, reason, output))
        raise AssertionError  # it has been left above

    def publish(self, status: str, message: str | None = None) -> None:
        self._wait(self._ctx.publish(status, message))

    def search(self, q: str, /, **wanted: Any) -> list[Any]:
        return self._wait(self._ctx.search(q, **wanted))

    def spend(
        self,
        cost: float = 0.0,
        input_tokens: int = 0,
        output_tokens: int = 0,
        calls: int = 1,
        model: str | None = None,
    ) -> None:
        self._wait(self._ctx.spend(cost, input_tokens, output_tokens, calls, model))

    def heartbeat(self) -> None:
        if self._ctx.cancelled:
            raise errors.LeaseLost()

    def _wait(self, call: Coroutine[Any, Any, Any]) -> Any:
        # Suspended is a BaseException, which would stop the event loop if it left a task: carry it as a value.
        async def carry() -> tuple[Any, suspension.Suspended | None]:
            try:
                return await call, None
            except suspension.Suspended as suspended:
                return None, suspended

        result, suspended = asyncio.run_coroutine_threadsafe(carry(), self._loop).result()
        if suspended is not None:
            raise suspended
        return result
