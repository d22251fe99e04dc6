"""What commands need to see before they can decide, gathered over a batch so that the store loads it set by set."""

from __future__ import annotations

from ostinato.core import rows


class Needs:
    def __init__(self) -> None:
        self.new_tasks = 0
        """How many tasks will be entered."""
        self.jobs: set[str] = set()
        self.fresh: set[str] = set()
        """Jobs that must be read anew: a decision on what the process remembers might be no decision at all."""
        self.tasks: set[rows.TaskKey] = set()
        self.dependants_of: set[rows.TaskKey] = set()
        """Tasks that may succeed: they and the tasks that wait for them."""
        self.failing: set[rows.TaskKey] = set()
        """Tasks that may fail for good: like `dependants_of`, and the whole job where a failure can cascade."""
        self.whole_jobs: set[str] = set()
        self.idempotency_keys: set[str] = set()
        self.signals: set[tuple[str, str]] = set()
        self.waiters: set[tuple[str, str]] = set()
        self.timers: set[rows.TaskKey] = set()
        self.approvals: set[rows.TaskKey] = set()
        """Tasks whose approvals may be decided: these, with what they are about."""
        self.gate_keys: dict[tuple[str, str], set[str]] = {}
        """The jobs that stand for these gates and keys, with these tasks and those that wait for them."""
        self.whole_gates: set[tuple[str, str]] = set()
        """Of these, all tasks."""
        self.late_reports: set[tuple[str, str, str]] = set()
        """Gate, key and member of reports that may come too late, and trigger something then."""
        self.items: set[str] = set()
        """Items of pipelines, each with the whole job of its run."""
        self.courses: set[tuple[str, int]] = set()
        """Pipelines, by name and version."""
        self.outside_events: set[tuple[str, str]] = set()
        """(source, id) of events that may have been received before."""
        self.usages: set[tuple[str, str, int]] = set()
        """Attempts of which the last usage may be told a second time."""
        self.budget_waiters: set[str] = set()
        """Jobs whose tasks that wait for a budget may go on."""
        self.fresh_budget = False
        """The budget of the tenant must be read anew."""
        self.all_turns = False
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
