"""What attempts use up, counted where it is asked for (by attempt, job, day, tenant, name and function), and how much a
job may."""

from __future__ import annotations

import msgspec

from ostinato.core import budgets, codec, events, items, ledger, needs, rows, states, tallies, usage
from ostinato.core.commands import consequences

NAME = "name:"
FUNCTION = "function:"
"""How the keys of the tallies begin that count by the name of the job, and by function or agent."""
TENANT = ""
STEP = "step:"
"""And how those begin that count by step of a pipeline, as `pipeline/step`."""


class RecordUsage(msgspec.Struct, gc=False):
    """An attempt says what it has used up. One with an id that is the last one recorded was told before."""

    lease: rows.Lease
    used: usage.Usage
    model: str | None = None
    function: str | None = None
    """Under which name it is counted, if not under that of the task's function."""
    usage_id: str | None = None
    late: bool = False
    """Also when the attempt was stopped meanwhile, as long as no other has begun: what is paid is paid."""

    def needs(self, wanted: needs.Needs) -> None:
        wanted.held_task(self.lease.key)
        if self.usage_id is not None:
            wanted.usages.add((*self.lease.key, self.lease.attempt))

    def apply(self, book: ledger.Ledger) -> bool:
        """False if it was told before."""
        task = self._task(book)
        place = (task.job_id, task.task_id, task.attempt)
        if self.usage_id is not None:
            if book.last_usages.get(place) == self.usage_id:
                return False
            book.last_usages[place] = self.usage_id
        used, job = self.used, book.jobs[task.job_id]
        job.spent += used.cost
        if book.tenant_budget is not None:
            book.tenant_budget.spend(used.cost)
        book.usages[place] = book.usages.get(place, usage.Usage()) + used
        function = self.function or task.name
        item = book.items.get(job.job_id)
        steps = () if item is None else (f"{STEP}{item.pipeline}/{task.task_id}",)
        for key in (TENANT, NAME + job.name, FUNCTION + function, *steps):
            book.tally(tallies.USAGE, key, used.calls, used.cost)
            if used.input_tokens or used.output_tokens:
                book.tally(tallies.TOKENS, key, used.input_tokens, used.output_tokens)
        data = consequences.event_data(
            cost=usage.money(used.cost),
            inputTokens=used.input_tokens,
            outputTokens=used.output_tokens,
            calls=used.calls,
            model=self.model,
            function=self.function,
        )
        book.emit(job, events.USAGE_RECORDED, task, data)
        if not self.lease.name:  # told from elsewhere
            self.lease.name = task.name
        return True

    def _task(self, book: ledger.Ledger) -> rows.Task:
        lease = self.lease
        task = book.tasks.get(lease.key)
        if self.late and task is not None and task.state != states.PROCESSING and task.attempt == lease.attempt:
            return task
        return book.leased_task(lease.key, lease.attempt, lease.token)


class SetBudget(msgspec.Struct, gc=False):
    """Say what a job may cost; with None, anything. What waits for it goes on, if there is enough now."""

    job_id: str
    budget: int | None
    actor: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        wanted.job(self.job_id)
        wanted.budget_waiters.add(self.job_id)
        wanted.all_turns = True

    def apply(self, book: ledger.Ledger) -> rows.Job:
        job = book.job(self.job_id)
        job.budget = self.budget
        budget = None if self.budget is None else usage.money(self.budget)
        data = {"budget": budget, "spent": usage.money(job.spent), "actor": self.actor}
        book.emit(job, events.BUDGET_CHANGED, data=codec.encode_own(data))
        if job.job_id in book.items:
            book.items[job.job_id].stand(items.BUDGET, states.BLOCKED, 0)  # who is asked about it need not be any more
        used_up = budgets.budget_exhausted(job, None, book.now)
        if used_up is not None:  # they go on waiting for it
            if job.job_id in book.items and book.awaiting_budget.get(job.job_id):
                book.items[job.job_id].over_budget = used_up
        else:
            for task in sorted(book.awaiting_budget.pop(job.job_id, ()), key=lambda task: task.position):
                book.make_pending(task, data=consequences.event_data(name=task.name, by="operator"))
        return job
