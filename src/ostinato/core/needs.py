"""What commands need to see before they can decide, gathered over a batch so that the store loads it set by set."""

from __future__ import annotations

import msgspec

from ostinato.core import rows


class Needs(msgspec.Struct):
    new_tasks: int = 0
    """How many tasks will be entered."""
    jobs: set[str] = set()
    fresh: set[str] = set()
    """Jobs that must be read anew: a decision on what the process remembers might be no decision at all."""
    tasks: set[rows.TaskKey] = set()
    dependants_of: set[rows.TaskKey] = set()
    """Tasks that may succeed: these and the tasks that wait for them."""
    failing: set[rows.TaskKey] = set()
    """Tasks that may fail for good: like `dependants_of`, and the whole job where a failure can cascade."""
    whole_jobs: set[str] = set()
    idempotency_keys: set[str] = set()
    signals: set[tuple[str, str]] = set()
    """Names of signals, by job, of which tasks may take one each."""
    sent_signals: set[tuple[str, str, str]] = set()
    """Signals, by job and name, that may have been sent before."""
    waiters: set[tuple[str, str]] = set()
    timers: set[rows.TaskKey] = set()
    approvals: set[rows.TaskKey] = set()
    """Tasks whose approvals may be decided: these, with what they are about."""
    all_approvals: set[str] = set()
    """Jobs of which all approvals are read, without what they are about."""
    guarded: set[str] = set()
    """Jobs of which it must be known what several people are being asked about."""
    gate_keys: dict[tuple[str, str], set[str]] = {}
    """The jobs that stand for these gates and keys, with these tasks and those that wait for them."""
    whole_gates: set[tuple[str, str]] = set()
    """Of these, all tasks."""
    late_reports: set[tuple[str, str, str]] = set()
    """Gate, key and member of reports that may come too late, and trigger something then."""
    items: set[str] = set()
    """Items of pipelines, each with the whole job of its run."""
    item_approvals: set[str] = set()
    """Of these items, what their runs ask people."""
    courses: set[tuple[str, int]] = set()
    """Pipelines, by name and version."""
    outside_events: set[tuple[str, str]] = set()
    """(source, id) of events that may have been received before."""
    usages: set[tuple[str, str, int]] = set()
    """Attempts of which the last usage may be told a second time."""
    budget_waiters: set[str] = set()
    """Jobs whose tasks that wait for a budget may go on."""
    fresh_budget: bool = False
    """The budget of the tenant must be read anew."""
    all_turns: bool = False
    """All that wait for their turn, because there may be room for any number of them."""

    def job(self, job_id: str) -> None:
        self.jobs.add(job_id)
        self.fresh.add(job_id)

    def task(self, key: rows.TaskKey) -> None:
        self.job(key[0])
        self.tasks.add(key)

    def held_task(self, key: rows.TaskKey) -> None:
        """A task that the caller holds a lease of: it will change, or the command is refused."""
        self.jobs.add(key[0])
        self.tasks.add(key)

    def failure_of(self, key: rows.TaskKey) -> None:
        self.task(key)
        self.failing.add(key)

    def whole_job(self, job_id: str) -> None:
        self.job(job_id)
        self.whole_jobs.add(job_id)
