"""What a worker does: claim, report, checkpoint, let go; and what happens to a lease whose worker is gone."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import msgspec

from ostinato import errors
from ostinato.core import approvals, codec, events, ledger, needs, rows, states
from ostinato.core.commands import consequences


class Claim(msgspec.Struct, gc=False):
    """Lease up to `limit` ready tasks to a worker. The store finds the candidates; the ledger decides."""

    worker: str
    token: str
    functions: Mapping[str, rows.FunctionPolicy]
    queues: frozenset[str]
    slots: int
    """How many can start at once."""
    ahead: Mapping[str, int] = {}
    """How many of each function may be claimed on top of that."""
    look: bool = True
    """Whether to look into the queue; otherwise only what this transaction makes ready is claimed."""
    idle: bool = True
    done: Sequence[str] = ()
    """Tokens of earlier claims whose tasks have all been reported."""
    passed_over: bool = False
    """Set when a task is left that must run alone: the worker should become idle and claim again."""

    @property
    def most(self) -> int:
        """How many candidates are worth looking at."""
        return 0 if not self.look else self.slots + max(self.ahead.values(), default=0)

    def apply(self, book: ledger.Ledger, candidates: Sequence[rows.TaskKey]) -> list[rows.Lease]:
        leases = self._choose(book, candidates) if candidates or book.became_pending else []
        if self.done:
            book.dropped_leases += [(self.worker, token) for token in self.done]
        if leases:
            tasks = codec.encode_own([lease.key for lease in leases])
            book.new_leases.append((self.worker, self.token, tasks))
        return leases

    def _choose(self, book: ledger.Ledger, candidates: Sequence[rows.TaskKey]) -> list[rows.Lease]:
        """Older ready tasks first, then those that this very transaction made ready; higher priority before both."""
        tasks = [book.tasks[key] for key in candidates if key in book.tasks]
        tasks += [t for t in book.became_pending if t.name in self.functions and t.queue in self.queues]
        if len(tasks) > 1 and len({task.priority for task in tasks}) > 1:
            tasks.sort(key=lambda task: -task.priority)
        data = codec.encode_own({"worker": self.worker})
        leases: list[rows.Lease] = []
        taken: dict[str, int] = {}
        slots, ahead = self.slots, self.ahead
        for task in tasks:
            name = task.name
            must_wait = len(leases) >= slots
            if must_wait and taken.get(name, 0) >= ahead.get(name, 0):
                continue
            policy = self.functions[name]
            if task.options is not None:
                try:
                    policy = _with_options(policy, task.options)
                except msgspec.DecodeError:
                    continue  # a damaged row, as the audit says: the others are not to wait for it
            if must_wait:
                # If its worker dies, it loses an attempt without having run: it needs another one.
                if task.crashes or policy.max_attempts - (task.attempt - task.attempt_base) <= 1:
                    continue
                taken[name] = taken.get(name, 0) + 1
            job = book.jobs[task.job_id]
            if task.state != states.PENDING or job.state != states.RUNNING:
                continue
            if task.crashes >= 2:
                # It was there when two workers died. It may be what killed them, so it runs alone: nobody else's
                # attempt is lost with it, and it ends in the dead letters by itself.
                if self.idle and not leases:
                    return [self._lease(book, job, task, policy, data)]
                self.passed_over = True
                continue
            leases.append(self._lease(book, job, task, policy, data))
        return leases

    def _lease(
        self, book: ledger.Ledger, job: rows.Job, task: rows.Task, policy: rows.FunctionPolicy, data: bytes
    ) -> rows.Lease:
        timeout = policy.timeout
        fresh = task.started_at is None
        reentered = task.resuming
        if reentered:
            task.resuming = False
        else:
            task.attempt += 1
        changed = book.retry_of(task) if book.retries else None
        most = policy.max_attempts if changed is None else changed.max_attempts
        # The function may allow fewer attempts by now than were made: then this one is the last.
        task.max_attempts = most if fresh else max(most, task.attempt - task.attempt_base)
        token, now = self.token, book.now
        task.worker = self.worker
        task.token = token
        task.started_at = now
        task.timeout_at = None if timeout is None else now + int(timeout * 1e6)
        book.begin(job, task, data)
        return rows.Lease(
            task.job_id,
            task.task_id,
            task.attempt,
            token,
            task.name,
            task.input,
            task.options,
            task.dependencies,
            fresh,
            reentered,
            task.max_attempts,
            task.attempt_base,
            timeout,
            job.name,
            job.request_id,
            job.correlation_id,
            task.ready_at,
            now,
            job.trace_parent,
        )


class Complete(msgspec.Struct, gc=False):
    """A worker reports the result of its attempt."""

    lease: rows.Lease
    output: bytes

    def needs(self, wanted: needs.Needs) -> None:
        lease = self.lease
        wanted.jobs.add(lease.job_id)
        wanted.dependants_of.add((lease.job_id, lease.task_id))

    def apply(self, book: ledger.Ledger) -> None:
        consequences.complete(book, book.reported_task(self.lease), self.output)


class Fail(msgspec.Struct, gc=False):
    """A worker reports that its attempt failed. `delay` is how long the policy waits before the next one."""

    lease: rows.Lease
    failure: rows.Failure
    retryable: bool = True
    delay: float = 0.0

    @property
    def final(self) -> bool:
        """No attempt is left, or none would help."""
        return not self.retryable or self.lease.attempt - self.lease.attempt_base >= self.lease.max_attempts

    def needs(self, wanted: needs.Needs) -> None:
        wanted.failure_of(self.lease.key)

    def apply(self, book: ledger.Ledger) -> None:
        task = book.reported_task(self.lease)
        used = task.attempt - task.attempt_base
        delay = self.delay
        policy = book.retry_of(task)
        if policy is not None:
            task.max_attempts, delay = policy.max_attempts, policy.delay(used)
        if not self.retryable or used >= task.max_attempts:
            consequences.fail_for_good(book, task, self.failure, helpless=not self.retryable)
            return
        task.error = consequences.encode_failure(self.failure)
        due_at = book.now + int(delay * 1e6)
        data = consequences.event_data(error=self.failure, dueAt=due_at, delay=delay, maxAttempts=task.max_attempts)
        book.move(task, states.WAITING, events.TASK_RETRY_SCHEDULED, data)
        if task.job_id in book.items:
            book.items[task.job_id].fail_attempt(task.task_id, self.failure.type, due_at if delay > 0 else None)
        if delay <= 0:
            book.make_pending(task)
        else:
            book.set_timer(rows.Timer(task.job_id, task.task_id, "retry", "", "", due_at))


class RecordStep(msgspec.Struct, gc=False):
    """A checkpoint inside a running task."""

    lease: rows.Lease
    key: str
    output: bytes

    def needs(self, wanted: needs.Needs) -> None:
        wanted.held_task(self.lease.key)

    def apply(self, book: ledger.Ledger) -> None:
        task = book.leased_task(self.lease.key, self.lease.attempt, self.lease.token)
        book.record_step(task, self.key, self.output)


class Suspend(msgspec.Struct, gc=False):
    """A running task lets go of its slot until a due time (`kind` sleep), a signal (`kind` wait, named `name`), or
    until people have decided (`kind` approval)."""

    lease: rows.Lease
    kind: str
    key: str
    name: str = ""
    seconds: float | None = None
    approval: approvals.Approval | None = None
    payload: bytes = b"null"
    """What people decide about."""

    def needs(self, wanted: needs.Needs) -> None:
        wanted.task(self.lease.key)
        if self.kind == "wait":
            wanted.signals.add((self.lease.job_id, self.name))

    def apply(self, book: ledger.Ledger) -> None:
        task = book.reported_task(self.lease)
        due_at = None if self.seconds is None else book.now + int(self.seconds * 1e6)
        task.resuming = True
        if self.approval is not None:
            book.ask(task, self.approval, self.key, self.payload)
            return
        data = consequences.event_data(kind=self.kind, key=self.key, name=self.name or None, dueAt=due_at)
        book.move(task, states.WAITING, events.TASK_WAITING, data)
        if self.kind == "wait":
            signal = book.take_signal(task.job_id, self.name)
            if signal is not None:
                consequences.wake(book, task, self.key, consequences.received(signal.payload), self.name)
                return
        book.set_timer(rows.Timer(task.job_id, task.task_id, self.kind, self.name, self.key, due_at))


class Release(msgspec.Struct, gc=False):
    """A worker hands back a task that it has claimed and will not run; the attempt does not count."""

    lease: rows.Lease
    reason: str

    def needs(self, wanted: needs.Needs) -> None:
        wanted.task(self.lease.key)

    def apply(self, book: ledger.Ledger) -> None:
        task = book.reported_task(self.lease)
        if self.lease.reentered:
            task.resuming = True
        else:
            task.attempt -= 1
        book.make_pending(task, events.TASK_RELEASED, consequences.event_data(reason=self.reason))


class HandBack(msgspec.Struct, gc=False):
    """A whole claim goes back, because whoever made it cannot be told: the tasks that it still holds, and itself."""

    worker: str
    leases: Sequence[rows.Lease]
    reason: str

    @property
    def lease(self) -> rows.Lease:
        return self.leases[0]

    def needs(self, wanted: needs.Needs) -> None:
        for lease in self.leases:
            wanted.task(lease.key)

    def apply(self, book: ledger.Ledger) -> None:
        for lease in self.leases:
            with contextlib.suppress(errors.LeaseLost):  # it was cancelled meanwhile
                Release(lease, self.reason).apply(book)
        book.dropped_leases.append((self.worker, self.lease.token))


class Expire(msgspec.Struct, gc=False):
    """A lease whose worker is gone (or whose attempt ran past its timeout unnoticed): the attempt counts as used."""

    job_id: str
    task_id: str
    token: str
    failure: rows.Failure

    def needs(self, wanted: needs.Needs) -> None:
        wanted.failure_of((self.job_id, self.task_id))

    def apply(self, book: ledger.Ledger) -> bool:
        task = book.tasks.get((self.job_id, self.task_id))
        if task is None or task.state != states.PROCESSING or task.token != self.token:
            return False
        task.crashes += 1
        if task.attempt - task.attempt_base >= task.max_attempts:
            consequences.fail_for_good(book, task, self.failure)
        else:
            task.error = consequences.encode_failure(self.failure)
            book.make_pending(task, events.TASK_LOST, consequences.event_data(error=self.failure))
        return True


class DropLeases(msgspec.Struct, gc=False):
    """Forget claims of a worker whose tasks have all been reported or taken away."""

    worker: str
    tokens: Sequence[str]

    def needs(self, wanted: needs.Needs) -> None:
        pass

    def apply(self, book: ledger.Ledger) -> None:
        book.dropped_leases += [(self.worker, token) for token in self.tokens]


def _with_options(policy: rows.FunctionPolicy, options: bytes) -> rows.FunctionPolicy:
    """What its function says, unless the task says otherwise."""
    own = _options_decoder.decode(options)
    return rows.FunctionPolicy(own.max_attempts or policy.max_attempts, own.timeout or policy.timeout)


class _ClaimOptions(msgspec.Struct, rename="camel"):
    max_attempts: int | None = None
    timeout: float | None = None


_options_decoder = msgspec.json.Decoder(_ClaimOptions)
