"""The loops that keep things going whoever dies: due timers, leases of the dead, old jobs. Any process may run them."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ostinato import process
from ostinato.core import commands, rows
from ostinato.engine import committer, observing, retention, service
from ostinato.store import fleet, store

SILENT = 5 / 8
"""A worker that has less of its lease left than this has missed a heartbeat."""
T = TypeVar("T", fleet.LostLease, fleet.DueTimer)
Committed = Callable[[str, store.Outcome], None]
log = logging.getLogger("ostinato")


class Timers(service.Service):
    """Fires timers that are due, of all tenants."""

    def __init__(self, target: store.Store, committed: Committed, poll_seconds: float) -> None:
        super().__init__()
        self._store = target
        self._committed = committed
        self._poll_seconds = poll_seconds

    async def run_once(self) -> float:
        due, following = await self._store.due_timers()
        fired = False
        for tenant, timers in _by_tenant(due):
            batch = [commands.FireTimer(item.timer) for item in timers]
            fired = True in await _carry_out(self._store, self._committed, tenant, batch) or fired
        if due:  # perhaps there are more; if none of these could be fired, somebody else is at it
            return 0.0 if fired else self._poll_seconds
        if following is None:
            return self._poll_seconds
        return min(self._poll_seconds, max((following - self._store.db.now()) / 1e6, 0.001))


class Reaper(service.Service):
    """Takes tasks from workers that are gone. A lost attempt counts, so a task that kills workers ends somewhere."""

    def __init__(
        self,
        target: store.Store,
        committed: Committed,
        lease_seconds: float,
        observers: observing.Observers,
        *,
        real_time: bool = True,
    ) -> None:
        super().__init__()
        self._store = target
        self._real_time = real_time
        """The clock of the database goes with time, and is not moved by a test."""
        self._clocks_differ: float | None = None
        self._committed = committed
        self._observers = observers
        self._interval = min(max(lease_seconds / 8, 0.1), 1.0)
        self._sweep_seconds = min(lease_seconds, 15.0)
        self._grace_seconds = lease_seconds
        self._swept_at = time.monotonic()
        self._looked_at: float | None = None
        """When heartbeats were last known to get through."""
        self._silent: dict[str, int] = {}
        """Of which workers it was told that they are waited for."""
        self._patient = False
        self._patient_until = 0.0

    async def run_once(self) -> float:
        await self._find_ended()
        dead = await self._store.dead_workers()
        if dead:
            await self._store.beat("", "", 0)  # nobody's, but where it fails, those of the living do so too
        if self._is_patient(time.monotonic()):
            return self._interval
        for tenant, worker_id in dead:
            leases = await self._store.leases_of_dead_worker(tenant, worker_id)
            over = {lease.token for lease in leases} - await self._expire(tenant, leases)
            await self._store.execute(tenant, [commands.DropLeases(worker_id, sorted(over))])
            await self._store.forget_dead_worker(tenant, worker_id)
        await self._tell_of_silent()
        if time.monotonic() - self._swept_at >= self._sweep_seconds:
            await self.sweep()
        return self._interval

    async def _find_ended(self) -> None:
        """Workers of this machine whose process has ended need not be waited for."""
        machine = process.machine()
        if machine is None:
            return
        for worker in await self._store.workers_of_machine(machine):
            pid, since = worker.about.get("pid"), worker.about.get("began")
            if (
                pid is None
                or since is None
                or not process.has_ended(pid, since)
                or not await self._store.declare_dead(worker)
            ):
                continue
            log.warning("%s has ended without a word: what it was running is taken over at once", _called(worker))

    async def _tell_of_silent(self) -> None:
        """Say once of each worker that is waited for what is waited for, and how long."""
        silent: dict[str, int] = {}
        for worker in await self._store.silent_workers(self._grace_seconds * SILENT):
            lease = worker.about.get("leaseSeconds", 0.0)
            left = (worker.expires_at - self._store.db.now()) / 1e6
            if left > lease * SILENT:
                continue
            silent[worker.worker_id] = worker.expires_at
            if self._silent.get(worker.worker_id) == worker.expires_at:
                continue
            if await self._store.leases_of_worker(worker.tenant, worker.worker_id):
                log.warning(
                    "%s has not been heard of for %.0f s: what it is running is taken over in %.0f s, unless it is "
                    "heard of again",
                    _called(worker),
                    lease - left,
                    left,
                )
        self._silent = silent

    def _is_patient(self, now: float) -> bool:
        """When the database was away, or this process was, or the clock of the database was set, workers may seem dead
        that could not be heard of: they are given the time of two heartbeats, once. (Who is held up all the time would
        never take anything back.)"""
        held_up = self._looked_at is not None and now - self._looked_at > self._grace_seconds / 2
        if self._real_time:
            before, self._clocks_differ = self._clocks_differ, self._store.db.now() / 1e6 - now
            held_up = held_up or (before is not None and abs(self._clocks_differ - before) > self._grace_seconds / 2)
        if held_up and not self._patient:
            self._patient_until = now + self._grace_seconds / 2
        self._looked_at = now
        self._patient = now < self._patient_until
        return self._patient

    async def sweep(self) -> None:
        """Look at every lease: for those of workers that nobody knows, and for attempts long past their timeout."""
        self._swept_at = time.monotonic()
        orphans = await self._store.orphaned_leases(self._grace_seconds)
        for tenant, leases in _by_tenant(orphans):
            await self._expire(tenant, leases)

    async def _expire(self, tenant: str, leases: Sequence[fleet.LostLease]) -> set[str]:
        """The answer is which claims still hold a task that cannot be taken back: they are not to be forgotten."""
        batch = [commands.Expire(x.job_id, x.task_id, x.token, _why(x)) for x in leases]
        answers = await _carry_out(self._store, self._committed, tenant, batch)
        self._observers.lost(tenant, answers.count(True))
        return {x.token for x, answer in zip(leases, answers, strict=True) if isinstance(answer, store.Refused)}


class Pruner(service.Service):
    """Removes what tenants have kept long enough; adds up what processes that are gone have counted."""

    def __init__(self, target: store.Store, every_seconds: float) -> None:
        super().__init__()
        self._store = target
        self._every_seconds = every_seconds

    async def run_once(self) -> float:
        for tenant in await self._store.tenants():
            try:
                await retention.prune(self._store, tenant)
            except committer.TROUBLE:
                raise
            except Exception as error:
                log.warning(
                    "what tenant %r has kept long enough cannot be removed, and is tried again: %r", tenant, error
                )
        return self._every_seconds


async def _carry_out(
    target: store.Store, committed: Committed, tenant: str, batch: Sequence[commands.Command]
) -> list[Any]:
    """All of it in one transaction; or, if one of the commands cannot be carried out, one for each: what is wrong with
    a job is not the trouble of all others."""
    try:
        outcome = await target.execute(tenant, batch)
    except committer.TROUBLE:
        raise
    except Exception as error:
        log.warning("a batch of %d was not taken, trying one by one: %s", len(batch), error)
        outcome = await committer.one_by_one(target, tenant, batch)
        for command, answer in zip(batch, outcome.answers, strict=True):
            if isinstance(answer, store.Refused):
                log.warning("of tenant %r, this is tried again: %r: %r", tenant, command, answer.error)
    committed(tenant, outcome)
    return outcome.answers


def _why(lease: fleet.LostLease) -> rows.Failure:
    if lease.timed_out:
        return commands.make_failure("TaskTimeout", "the attempt ran past its timeout and its worker did not stop it")
    return commands.make_failure("WorkerLost", f"worker {lease.worker} stopped without finishing this attempt")


def _called(worker: fleet.HeardOf) -> str:
    about = worker.about
    return f"worker {worker.worker_id} (process {about.get('pid')} on {about.get('host')})"


def _by_tenant(items: Iterable[T]) -> list[tuple[str, list[T]]]:
    ordered = sorted(items, key=lambda item: item.tenant)
    return [(tenant, list(group)) for tenant, group in itertools.groupby(ordered, key=lambda item: item.tenant)]
