"""The desk where workers without a database are served: who they are, what they hold, and how long they may wait.

They are workers like all others: in the same tables, with leases that run out in the same way. The desk only remembers,
for a moment, what the tables say.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import random
import secrets
import time
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import msgspec
import uuid_utils

from ostinato import app, errors
from ostinato.api import access, settings
from ostinato.core import approvals, codec, commands, graph, retry, rows
from ostinato.engine import engine
from ostinato.remote import wire

REMEMBERED_SECONDS = 2.0
"""How long a worker is believed to be as it was; then it is read again."""
MOST_REMEMBERED = 10_000
ENVELOPE_BYTES = 4096
"""What a report needs around its payload."""
ANSWER_BYTES = 1024 * 1024
"""A claim answers large inputs too, as long as they fit into this together; the first one always."""
NAMED_BYTES = 2048
"""As many of the names that a worker brings go into the audit log as fit into this."""
BUSY_SECONDS = 5.0
"""When to come back after too many claims were waiting."""
NULL = msgspec.Raw(b"null")


class Policy(msgspec.Struct, rename="camel", frozen=True):
    """What a worker says of a function, for tasks that do not say themselves."""

    max_attempts: int
    timeout: float | None


class About(msgspec.Struct, rename="camel", omit_defaults=True):
    """What a worker says of itself, as it is stored. Those with a database say the first five."""

    host: str | None = None
    pid: int | None = None
    queues: list[str] = []
    functions: list[str] = []
    slots: int = 1
    key_id: str | None = None
    remote: bool = False
    lease_seconds: float = 30.0
    policies: dict[str, Policy] = {}


class Known(NamedTuple):
    """A worker as it was read a moment ago, and when its lease was renewed."""

    about: About
    read_at: float
    renewed_at: float


class Desk:
    def __init__(self, options: settings.ServerOptions) -> None:
        self._options = options
        self._known: collections.OrderedDict[tuple[str, str], Known] = collections.OrderedDict()
        self._waiting: collections.Counter[str] = collections.Counter()
        self.closing = asyncio.Event()

    def close(self) -> None:
        """Let nobody wait any longer."""
        self.closing.set()

    @contextlib.contextmanager
    def waiting(self, who: access.Principal) -> Generator[None]:
        """A claim that waits. Each holds a connection and a place in the line, so a key may have only so many."""
        most = self._options.max_waiting_claims
        if self._waiting[who.actor] >= most:
            raise errors.TooManyRequests(BUSY_SECONDS, f"{most:,} claims of this key are waiting already: end some")
        self._waiting[who.actor] += 1
        try:
            yield
        finally:
            self._waiting[who.actor] -= 1
            if not self._waiting[who.actor]:
                del self._waiting[who.actor]

    # --- who works ------------------------------------------------------------------------------------------------

    async def register(self, client: app.Ostinato, who: access.Principal, body: wire.Register) -> wire.Registered:
        graph.check_not_reserved(*[function.name for function in body.functions], *(body.queues or ()))
        worker_id = body.worker_id or str(uuid_utils.uuid4())
        found = await client.engine.store.worker(client.tenant, worker_id)
        if found is not None:
            _check_owner(msgspec.convert(found, About), who, worker_id)
        about = About(
            host=body.host,
            pid=body.pid,
            queues=body.queues or ["default"],
            functions=sorted(function.name for function in body.functions),
            slots=body.slots,
            key_id=who.key_id,
            remote=True,
            lease_seconds=body.lease_seconds or client.options.lease_seconds,
            policies={f.name: Policy(f.retry.max_attempts, f.timeout) for f in body.functions},
        )
        await client.note(
            who.actor,
            "workers.register",
            worker_id,
            host=body.host,
            queues=_some(about.queues),
            functions=_some(about.functions),
            functionCount=len(about.functions),
        )
        known = {function.name: {"retry": function.retry, "timeout": function.timeout} for function in body.functions}
        await client.engine.store.register_worker(
            client.tenant, worker_id, about.lease_seconds, msgspec.to_builtins(about), known
        )
        self._remember(client.tenant, worker_id, about, renewed_at=time.monotonic())
        return wire.Registered(
            worker_id=worker_id,
            tenant=client.tenant,
            lease_seconds=about.lease_seconds,
            max_payload_bytes=max(
                1, min(client.options.max_payload_bytes, self._options.max_body_bytes - ENVELOPE_BYTES)
            ),
            max_tasks=client.options.max_tasks,
            max_body_bytes=self._options.max_body_bytes,
        )

    async def worker(self, client: app.Ostinato, who: access.Principal, worker_id: str) -> About:
        """What a worker has said of itself: WorkerNotFound if it is gone, Forbidden if another key registered it."""
        known = self._known.get((client.tenant, worker_id))
        if known is None or time.monotonic() - known.read_at > REMEMBERED_SECONDS:
            found = await client.engine.store.worker(client.tenant, worker_id)
            if found is None:
                self._known.pop((client.tenant, worker_id), None)
                raise errors.WorkerNotFound(workerId=worker_id)
            about = msgspec.convert(found, About)
            known = self._remember(client.tenant, worker_id, about, 0.0 if known is None else known.renewed_at)
        _check_owner(known.about, who, worker_id)
        return known.about

    async def leave(self, client: app.Ostinato, who: access.Principal, body: wire.Leave) -> bool:
        await self.worker(client, who, body.worker_id)
        await client.note(who.actor, "workers.leave", body.worker_id)
        self._known.pop((client.tenant, body.worker_id), None)
        await self._let_go(client, body.worker_id, body.done, body.claims)
        return await client.engine.store.forget_worker(client.tenant, body.worker_id)

    def _remember(self, tenant: str, worker_id: str, about: About, renewed_at: float) -> Known:
        known = self._known[(tenant, worker_id)] = Known(about, time.monotonic(), renewed_at)
        self._known.move_to_end((tenant, worker_id))
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return known

    # --- staying alive --------------------------------------------------------------------------------------------

    async def beat(self, client: app.Ostinato, about: About, body: wire.Heartbeat) -> list[wire.HeldTask]:
        """Renew the lease of a worker; the answer is which of its tasks it no longer holds."""
        await self._renew(client, about, body.worker_id)
        await self._let_go(client, body.worker_id, body.done, body.claims)
        if not body.tasks:
            return []
        keys = [(task.job_id, task.task_id) for task in body.tasks]
        live = await client.engine.store.live_leases(client.tenant, keys)
        return [task for task in body.tasks if (task.job_id, task.task_id, task.token) not in live]

    async def _renew(self, client: app.Ostinato, about: About, worker_id: str) -> None:
        """Workers also beat to hear what was cancelled; not each of these needs to be written."""
        place = (client.tenant, worker_id)
        known = self._known.get(place)
        now = time.monotonic()
        if known is not None and now - known.renewed_at < about.lease_seconds / 8:
            return
        if not await client.engine.store.beat(client.tenant, worker_id, about.lease_seconds):
            self._known.pop(place, None)
            raise errors.WorkerNotFound(workerId=worker_id)
        self._remember(client.tenant, worker_id, about, now)

    async def _let_go(self, client: app.Ostinato, worker_id: str, done: Sequence[str], claims: Sequence[str]) -> None:
        """Forget claims that were reported whole, and take back what those got whose answer was lost."""
        tokens = [token for token in done if token.startswith(f"{worker_id}/")]
        batch: list[commands.Command] = []
        if claims:
            lost = tuple(f"{worker_id}/{claim_id}/" for claim_id in claims)
            failure = commands.make_failure("ClaimLost", "the answer to the claim of this attempt was lost")
            for lease in await client.engine.store.leases_of_worker(client.tenant, worker_id):
                if lease.token.startswith(lost):
                    batch.append(commands.Expire(lease.job_id, lease.task_id, lease.token, failure))
                    tokens.append(lease.token)
        if tokens:
            batch.append(commands.DropLeases(worker_id, tokens))
        if batch:  # in one transaction: a claim is forgotten only together with what it held
            await client.engine.execute_together(batch)


def _some(names: Sequence[str]) -> list[str]:
    sizes = itertools.accumulate(len(codec.encode_own(name)) for name in names)
    return [name for name, size in zip(names, sizes, strict=True) if size <= NAMED_BYTES]


def _check_owner(about: About, who: access.Principal, worker_id: str) -> None:
    if not about.remote or about.key_id != who.key_id:
        raise errors.Forbidden("another key has registered this worker", workerId=worker_id)


# --- claims -------------------------------------------------------------------------------------------------------


def claim_of(about: About, body: wire.Claim) -> commands.Claim:
    """The claim as the engine knows it. The token says whose it is, so that nobody else can use it."""
    wanted = about.policies if body.functions is None else about.policies.keys() & set(body.functions)
    known = about.policies
    policies = {name: rows.FunctionPolicy(known[name].max_attempts, known[name].timeout) for name in wanted}
    queues = about.queues if body.queues is None else [queue for queue in body.queues if queue in about.queues]
    claim_id = body.claim_id or uuid_utils.uuid4().hex
    return commands.Claim(
        body.worker_id,
        f"{body.worker_id}/{claim_id}/{secrets.token_hex(16)}",
        policies,
        frozenset(queues),
        body.limit,
        {name: count for name, count in body.ahead.items() if name in policies},
        idle=body.idle,
        done=[token for token in body.done if token.startswith(f"{body.worker_id}/")],
    )


async def leases_of(running: engine.Engine, leases: Sequence[rows.Lease]) -> list[wire.Lease]:
    """Leases as they are told. Inputs that would make the answer too large are left to be asked for."""
    told: list[wire.Lease] = []
    room = ANSWER_BYTES
    for lease in leases:
        data, digest = lease.input, None
        try:
            codec.check_open(data)
            whole = await running.read_payload(lease, data)
        except errors.DecryptionFailed as error:  # the trouble of this task, not of those that were claimed with it
            failure = commands.make_failure(type(error).__name__, str(error))
            running.committer.post(commands.Fail(lease, failure, retryable=False))
            continue
        if whole is not data:
            if told and len(whole) > room:
                data, digest = b"null", data[1:].hex()
            else:
                data = whole
        room -= len(data)
        told.append(_lease(lease, data, digest))
    return told


def _lease(lease: rows.Lease, data: bytes, digest: str | None) -> wire.Lease:
    return wire.Lease(
        job_id=lease.job_id,
        task_id=lease.task_id,
        attempt=lease.attempt,
        token=lease.token,
        name=lease.name,
        input=msgspec.Raw(data),
        input_digest=digest,
        dependencies=lease.dependencies,
        fresh=bool(lease.fresh),
        reentered=bool(lease.reentered),
        max_attempts=lease.max_attempts,
        attempt_base=lease.attempt_base,
        timeout=lease.timeout,
        options=NULL if lease.options is None else msgspec.Raw(lease.options),
        idempotency_key=lease.idempotency_key,
        job_name=lease.job_name,
        request_id=lease.request_id,
        correlation_id=lease.correlation_id,
        trace_parent=lease.trace_parent,
    )


# --- reports ------------------------------------------------------------------------------------------------------


def lease_of(held: wire.Held, *, reentered: bool = False) -> rows.Lease:
    """As much of a lease as it takes to prove that a worker may report on it."""
    if not held.token.startswith(f"{held.worker_id}/"):  # no id has a slash, so that none is the start of another
        raise errors.LeaseLost("this token was given to another worker", jobId=held.job_id, taskId=held.task_id)
    return rows.Lease(
        held.job_id,
        held.task_id,
        held.attempt,
        held.token,
        name="",
        input=codec.EMPTY_OBJECT,
        options=None,
        dependencies=0,
        fresh=False,
        reentered=reentered,
        max_attempts=0,
        attempt_base=0,
        timeout=None,
        job_name="",
        request_id=None,
        correlation_id="",
    )


async def held_lease(client: app.Ostinato, held: wire.Held) -> rows.Lease:
    """LeaseLost unless the worker holds this task now: only then may it read what belongs to it."""
    lease = lease_of(held)
    live = await client.engine.store.live_leases(client.tenant, [lease.key])
    if (held.job_id, held.task_id, held.token) not in live:
        raise errors.LeaseLost(jobId=held.job_id, taskId=held.task_id)
    return lease


def payload(client: app.Ostinato, value: Any, what: str) -> bytes:
    """A value that a worker has sent, as it is stored."""
    return codec.encode(value, what, client.options.max_payload_bytes)


async def command_of(client: app.Ostinato, report: wire.Held) -> commands.Command:
    """A report as the command that records it."""
    match report:
        case wire.Complete():
            return commands.Complete(lease_of(report), payload(client, report.output, "the output of the task"))
        case wire.Fail():
            failure = commands.make_failure(report.error_type, report.message, report.traceback)
            delay = report.retry_after
            if delay is None:
                delay = await _delay(client, report) if report.retryable else 0.0
            return commands.Fail(lease_of(report), failure, report.retryable, delay)
        case wire.Release():
            return commands.Release(lease_of(report, reentered=report.reentered), report.reason)
        case wire.Suspend():
            data = payload(client, report.payload, "the payload of the approval")
            asked = _approval(report)
            lease, name = lease_of(report), _signal(report)
            return commands.Suspend(lease, report.kind, report.key, name, report.seconds, asked, data)
        case wire.Finish():
            data = payload(client, report.output, "the output of the task")
            return commands.FinishItem(lease_of(report), report.status, data, report.reason)
        case _:
            raise TypeError(f"{type(report).__name__} is no report")


def _signal(report: wire.Suspend) -> str:
    if (report.kind == "wait") != (report.name is not None):
        raise errors.InvalidInput("a wait names the signal that it waits for, a sleep does not", field="name")
    if report.kind == "sleep" and report.seconds is None:
        raise errors.InvalidInput("a sleep says how many seconds it takes", field="seconds")
    return report.name or ""


def _approval(report: wire.Suspend) -> approvals.Approval | None:
    if (report.kind == "approval") != (report.approval is not None):
        raise errors.InvalidInput("an approval says what it asks, and nothing else does", field="approval")
    return None if report.approval is None else approvals.check(report.approval)


async def _delay(client: app.Ostinato, report: wire.Fail) -> float:
    """How long the policy of the task, or else that of its function, waits before the next attempt."""
    try:
        task = await client.engine.store.task(client.tenant, report.job_id, report.task_id)
    except errors.NotFound:
        return 0.0  # the command finds out too
    own: dict[str, Any] = {} if task.options is None else codec.decode(task.options)
    if "retry" in own:
        policy = retry.read(own["retry"])
    else:
        policy, _ = (await client.engine.known_policies()).get(task.name, (retry.Retry(), None))
    return policy.delay(task.attempt - task.attempt_base, random.random())
