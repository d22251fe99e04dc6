"""What Prometheus is told. Counted here in plain numbers, by tenant; put into its words only when somebody asks.

A tenant's key sees its own tenant's series. Requests of nobody (those without a key that works) are seen by the tenant
whom the server itself belongs to.
"""

from __future__ import annotations

import bisect
import collections
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from prometheus_client import exposition
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import CollectorRegistry

from ostinato import errors
from ostinato.core import commands, rulebook, usage
from ostinato.core.commands import reacting
from ostinato.engine import observing
from ostinato.store import gauges, store

CONTENT_TYPE = exposition.CONTENT_TYPE_LATEST
MOST_FUNCTIONS = 200
"""Functions of one tenant that have series of their own. Names are the users': the others are counted together."""
OTHERS = "(others)"
MOST_TENANTS = 2_000
"""Tenants that are counted; the one that was quiet for longest is forgotten."""
NOBODY = ""
"""The tenant of requests without a key that works."""
LATENCIES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)
COMMIT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5)
BATCHES = (0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0)

_REPORTS = (commands.Complete, commands.Fail)
_REACTIONS = (commands.Arrive, commands.Freeze, commands.OpenGate, commands.Observe)

NAMES = {
    "ostinato_queue_tasks": "Tasks that are ready and not yet claimed.",
    "ostinato_queue_unserved_tasks": "Those of them that no live worker takes: none has the function and the queue.",
    "ostinato_queue_oldest_seconds": "How long the oldest of them has been ready.",
    "ostinato_dead_letters": "Tasks that failed for good and have not been taken up again.",
    "ostinato_approvals_waiting": "What waits for people to decide.",
    "ostinato_approvals_oldest_seconds": "How long the oldest of it has been waiting.",
    "ostinato_functions_awaiting": "Functions that wait for the results of other jobs, and hold no slot.",
    "ostinato_task_wait_seconds": "From ready to claimed.",
    "ostinato_task_run_seconds": "From claimed to recorded, for attempts that completed or failed.",
    "ostinato_tasks_completed": "Tasks that completed.",
    "ostinato_tasks_failed": "Tasks that failed for good in the hands of a worker.",
    "ostinato_task_retries": "Attempts that failed and are tried again.",
    "ostinato_leases_lost": "Attempts taken from workers that were gone.",
    "ostinato_late_reports": "Reports of workers that came after their lease was lost, and changed nothing.",
    "ostinato_jobs_ended": "Jobs that ended in this process, by state.",
    "ostinato_gate_arrivals": "Reports to gates that were taken, by outcome.",
    "ostinato_gates_opened": "Gates that opened for a key, by the last member or by hand.",
    "ostinato_outside_events": "Events of others, by outcome.",
    "ostinato_rule_firings": "Jobs of rules that ended: all targets of a rule for one event, by state.",
    "ostinato_usage_cost": "What attempts have cost, in whatever currency prices are in.",
    "ostinato_usage_calls": "Calls that attempts have paid for.",
    "ostinato_usage_tokens": "Tokens that went into models, and came out of them.",
    "ostinato_commit_batch_size": "Commands that shared a transaction; 0 is a claim alone.",
    "ostinato_commit_seconds": "How long a transaction took.",
    "ostinato_http_requests": "Requests, by route and status.",
    "ostinato_http_request_seconds": "How long requests took, without those that stream.",
    "ostinato_open_streams": "Sockets and event streams that are open.",
}
"""Every metric, without the `_total` that counters end in."""


class Histogram:
    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float, times: int = 1) -> None:
        self.counts[bisect.bisect_left(self._bounds, value)] += times
        self.total += value * times

    def buckets(self) -> list[tuple[str, float]]:
        found: list[tuple[str, float]] = []
        below = 0
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self.counts, strict=True):
            below += count
            found.append((bound, below))
        return found


class FunctionSeries:
    __slots__ = ("completed", "failed", "retries", "run", "wait")

    def __init__(self) -> None:
        self.completed = self.failed = self.retries = 0
        self.wait = Histogram(LATENCIES)
        self.run = Histogram(LATENCIES)

    def ended(self, final: bool | None, times: int) -> None:
        """So many attempts completed (None), or failed, for good or not."""
        if final is None:
            self.completed += times
        elif final:
            self.failed += times
        else:
            self.retries += times


class TenantSeries:
    """All that is counted for one tenant."""

    def __init__(self) -> None:
        self.functions: dict[str, FunctionSeries] = {}
        self.batches = Histogram(BATCHES)
        self.commits = Histogram(COMMIT_SECONDS)
        self.jobs: collections.Counter[str] = collections.Counter()
        self.leases_lost = 0
        self.late_reports = 0
        self.arrivals: collections.Counter[str] = collections.Counter()
        self.gates_opened = 0
        self.usage: dict[str, usage.Usage] = {}
        """By function or agent."""
        self.outside_events: collections.Counter[str] = collections.Counter()
        self.firings: collections.Counter[str] = collections.Counter()
        self.requests: collections.Counter[tuple[str, str, int]] = collections.Counter()
        self.request_seconds: dict[str, Histogram] = {}

    def reacted(self, command: commands.Command, answer: Any) -> None:
        """Somebody reported to a gate, opened it, or told of an event."""
        if isinstance(command, commands.Observe):
            self.outside_events[answer] += command.source != rulebook.SOURCE
        elif isinstance(command, commands.Arrive):
            self.arrivals[answer.outcome] += 1
            self.gates_opened += answer.opened
        elif isinstance(command, commands.Freeze):  # with nobody to wait for it opens at once
            self.gates_opened += answer.created and not command.members
        else:
            self.gates_opened += 1

    def spent(self, command: commands.RecordUsage) -> None:
        name = command.function or command.lease.name
        name = name if name in self.usage or len(self.usage) < MOST_FUNCTIONS else OTHERS
        self.usage[name] = self.usage.get(name, usage.Usage()) + command.used

    def function(self, name: str) -> FunctionSeries:
        found = self.functions.get(name)
        if found is None:
            name = name if len(self.functions) < MOST_FUNCTIONS else OTHERS
            found = self.functions.setdefault(name, FunctionSeries())
        return found


class _Depth(NamedTuple):
    read_at: float
    now: int
    found: gauges.Depth


class Metrics:
    """Counts what an engine commits and a server answers."""

    DEPTH_SECONDS = 5.0
    """How long the depth of the queues is believed before the database is asked again."""

    def __init__(self, target: store.Store, home: str) -> None:
        self._store = target
        self._home = home
        self._tenants: collections.OrderedDict[str, TenantSeries] = collections.OrderedDict()
        self._depths: dict[str, _Depth] = {}
        self.streams: dict[int, tuple[str, dict[str, Any]]] = {}
        """What is open: its kind, and the state of its connection, which knows whose it is."""

    def of(self, tenant: str) -> TenantSeries:
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = TenantSeries()
            if len(self._tenants) > MOST_TENANTS:
                self._tenants.popitem(last=False)
        else:
            self._tenants.move_to_end(tenant)
        return found

    # --- counting ----------------------------------------------------------------------------------------------

    def committed(self, commit: observing.Commit) -> None:
        series = self.of(commit.tenant)
        outcome = commit.outcome
        series.batches.add(len(commit.batch))
        series.commits.add(commit.seconds)
        for job in outcome.ended_jobs:
            series.jobs[job.state] += 1
            if job.name.startswith(reacting.RULE):
                series.firings[job.state] += 1
        for command, answer in zip(commit.batch, outcome.answers, strict=False):
            if isinstance(command, _REACTIONS) and not isinstance(answer, store.Refused):
                series.reacted(command, answer)
            elif answer is True and isinstance(command, commands.RecordUsage):
                series.spent(command)
        # Tasks that are claimed together were often ready together, and are often reported together: count, then add.
        claimed = collections.Counter([(x.name, x.started_at, x.ready_at) for x in outcome.leases])
        for (name, started_at, ready_at), times in claimed.items():
            if started_at is not None and ready_at is not None:
                series.function(name).wait.add(max(started_at - ready_at, 0) / 1e6, times)
        reports = [
            (report.lease, report.final if isinstance(report, commands.Fail) else None, answer)
            for report, answer in zip(commit.batch, outcome.answers, strict=False)
            if isinstance(report, _REPORTS)
        ]
        series.late_reports += sum(_is_late(answer) for _, _, answer in reports)
        done = collections.Counter(
            [(x.name, x.started_at, final) for x, final, answer in reports if not isinstance(answer, store.Refused)]
        )
        for (name, started_at, final), times in done.items():
            found = series.function(name)
            found.ended(final, times)
            if started_at is not None:
                found.run.add(max(commit.now - started_at, 0) / 1e6, times)

    def lost(self, tenant: str, leases: int) -> None:
        self.of(tenant).leases_lost += leases

    def answered(self, tenant: str, method: str, route: str, status: int, seconds: float | None) -> None:
        """A request was answered; without `seconds` it was a stream, which lasts as long as its reader likes."""
        series = self.of(tenant)
        series.requests[(method, route, status)] += 1
        if seconds is not None:
            if route not in series.request_seconds:
                series.request_seconds[route] = Histogram(LATENCIES)
            series.request_seconds[route].add(seconds)

    # --- telling -----------------------------------------------------------------------------------------------

    async def render(self, tenant: str) -> bytes:
        """What a tenant may know, as Prometheus reads it."""
        depth = await self._depth(tenant)
        shown = [tenant, NOBODY] if tenant == self._home else [tenant]
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected(list(self._families(shown, tenant, depth))))
        return exposition.generate_latest(registry)

    async def _depth(self, tenant: str) -> _Depth:
        known = self._depths.get(tenant)
        if known is None or time.monotonic() - known.read_at > self.DEPTH_SECONDS:
            known = _Depth(time.monotonic(), self._store.db.now(), await self._store.waiting(tenant))
            if len(self._depths) >= MOST_TENANTS:
                self._depths.clear()
            self._depths[tenant] = known
        return known

    def _families(self, shown: Sequence[str], tenant: str, depth: _Depth) -> Iterator[Metric]:
        yield from _waiting(tenant, depth)
        found = [(name, self._tenants[name]) for name in shown if name in self._tenants]
        yield from _functions(found)
        yield from _commits(found)
        yield from _reactions(found)
        yield from _usage(found)
        yield from _requests(found)
        open_now = collections.Counter((kind, _owner(state)) for kind, state in self.streams.values())
        yield _gauge(
            "ostinato_open_streams",
            ("tenant", "kind"),
            [((owner, kind), count) for (kind, owner), count in open_now.items() if owner in shown],
        )


def _is_late(answer: object) -> bool:
    return isinstance(answer, store.Refused) and isinstance(answer.error, errors.LeaseLost)


class _Collected:
    """Families that were made before, as a registry wants them."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def _owner(state: dict[str, Any]) -> str:
    principal = state.get("principal")
    return NOBODY if principal is None else principal.tenant


def _waiting(tenant: str, depth: _Depth) -> Iterator[Metric]:
    # The deepest have series of their own, whatever else there is.
    deepest = sorted(depth.found.queues, key=lambda item: -item.ready)
    tasks: dict[tuple[str, str, str], float] = {}
    unserved: dict[tuple[str, str, str], float] = {}
    oldest: dict[tuple[str, str, str], float] = {}
    for number, item in enumerate(deepest):
        key = (tenant, item.queue, item.name) if number < MOST_FUNCTIONS else (tenant, OTHERS, OTHERS)
        tasks[key] = tasks.get(key, 0) + item.ready
        if not item.served:
            unserved[key] = unserved.get(key, 0) + item.ready
        oldest[key] = max(oldest.get(key, 0.0), (depth.now - item.oldest_ready_at) / 1e6, 0.0)
    labels = ("tenant", "queue", "function")
    yield _gauge("ostinato_queue_tasks", labels, tasks.items())
    yield _gauge("ostinato_queue_unserved_tasks", labels, unserved.items())
    yield _gauge("ostinato_queue_oldest_seconds", labels, oldest.items())
    yield _gauge("ostinato_dead_letters", ("tenant",), [((tenant,), depth.found.dead_letters)])
    yield _gauge("ostinato_approvals_waiting", ("tenant",), [((tenant,), depth.found.approvals)])
    yield _gauge("ostinato_functions_awaiting", ("tenant",), [((tenant,), depth.found.awaiting)])
    since = depth.found.oldest_approval_at
    waited = 0.0 if since is None else max((depth.now - since) / 1e6, 0.0)
    yield _gauge("ostinato_approvals_oldest_seconds", ("tenant",), [((tenant,), waited)])


Found = Sequence[tuple[str, TenantSeries]]


def _functions(found: Found) -> Iterator[Metric]:
    each = [((tenant, name), series) for tenant, of in found for name, series in of.functions.items()]
    labels = ("tenant", "function")
    yield _histogram("ostinato_task_wait_seconds", labels, [(key, series.wait) for key, series in each])
    yield _histogram("ostinato_task_run_seconds", labels, [(key, series.run) for key, series in each])
    yield _counter("ostinato_tasks_completed", labels, [(key, series.completed) for key, series in each])
    yield _counter("ostinato_tasks_failed", labels, [(key, series.failed) for key, series in each])
    yield _counter("ostinato_task_retries", labels, [(key, series.retries) for key, series in each])


def _commits(found: Found) -> Iterator[Metric]:
    labels = ("tenant",)
    named = [((tenant,), series) for tenant, series in found if tenant != NOBODY]
    yield _counter("ostinato_leases_lost", labels, [(key, series.leases_lost) for key, series in named])
    yield _counter("ostinato_late_reports", labels, [(key, series.late_reports) for key, series in named])
    ended = [((*key, state), count) for key, series in named for state, count in series.jobs.items()]
    yield _counter("ostinato_jobs_ended", ("tenant", "state"), ended)
    yield _histogram("ostinato_commit_batch_size", labels, [(key, series.batches) for key, series in named])
    yield _histogram("ostinato_commit_seconds", labels, [(key, series.commits) for key, series in named])


def _reactions(found: Found) -> Iterator[Metric]:
    named = [(tenant, series) for tenant, series in found if tenant != NOBODY]
    arrivals = [((tenant, outcome), n) for tenant, series in named for outcome, n in series.arrivals.items()]
    yield _counter("ostinato_gate_arrivals", ("tenant", "outcome"), arrivals)
    opened = [((tenant,), series.gates_opened) for tenant, series in named]
    yield _counter("ostinato_gates_opened", ("tenant",), opened)
    told = [((tenant, outcome), n) for tenant, series in named for outcome, n in series.outside_events.items()]
    yield _counter("ostinato_outside_events", ("tenant", "outcome"), told)
    firings = [((tenant, state), n) for tenant, series in named for state, n in series.firings.items()]
    yield _counter("ostinato_rule_firings", ("tenant", "state"), firings)


def _usage(found: Found) -> Iterator[Metric]:
    each = [((tenant, name), used) for tenant, of in found for name, used in of.usage.items()]
    labels = ("tenant", "function")
    yield _counter("ostinato_usage_cost", labels, [(key, usage.money(used.cost)) for key, used in each])
    yield _counter("ostinato_usage_calls", labels, [(key, used.calls) for key, used in each])
    tokens = [((*key, "in"), used.input_tokens) for key, used in each]
    tokens += [((*key, "out"), used.output_tokens) for key, used in each]
    yield _counter("ostinato_usage_tokens", (*labels, "direction"), tokens)


def _requests(found: Found) -> Iterator[Metric]:
    counts = [
        ((tenant, method, route, str(status)), count)
        for tenant, series in found
        for (method, route, status), count in series.requests.items()
    ]
    yield _counter("ostinato_http_requests", ("tenant", "method", "route", "status"), counts)
    times = [((tenant, route), seen) for tenant, series in found for route, seen in series.request_seconds.items()]
    yield _histogram("ostinato_http_request_seconds", ("tenant", "route"), times)


Labelled = Iterable[tuple[tuple[str, ...], float]]


def _gauge(name: str, labels: tuple[str, ...], values: Labelled) -> Metric:
    family = GaugeMetricFamily(name, NAMES[name], labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def _counter(name: str, labels: tuple[str, ...], values: Labelled) -> Metric:
    family = CounterMetricFamily(name, NAMES[name], labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def _histogram(name: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], Histogram]]) -> Metric:
    family = HistogramMetricFamily(name, NAMES[name], labels=labels)
    for key, seen in values:
        family.add_metric(key, seen.buckets(), seen.total)
    return family
