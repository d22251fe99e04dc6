"""What tenants may spend: a setting of theirs, and as a transaction needs it, with what they have spent."""

from __future__ import annotations

import copy
from typing import NamedTuple

from ostinato.core import budgets, commands, ledger, rows, states, tallies
from ostinato.core.commands import asking, spending
from ostinato.store import database
from ostinato.store.database import fetch

BUDGETS_SECONDS = 1.0
"""How long a process may go on with a budget as it was, and with what others have spent of it."""


class _Known(NamedTuple):
    read_at: int
    bucket: int
    budget: budgets.TenantBudget | None


class BudgetCache:
    """The budgets of the tenants that were busy lately; of most, that they have none."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def of(self, tenant: str, now: int, *, fresh: bool) -> database.Script[budgets.TenantBudget | None]:
        known = self._known.get(tenant)
        if known is None or fresh or now - known.read_at > BUDGETS_SECONDS * 1e6 or _is_over(known, now):
            known = _Known(now, tallies.USAGE.bucket(now), (yield from read(tenant, now)))
            self._known[tenant] = known
        return known.budget

    def forget(self, tenant: str) -> None:
        self._known.pop(tenant, None)

    def spent(self, tenant: str) -> None:
        """Something was spent here: who has a budget is looked at again."""
        known = self._known.get(tenant)
        if known is not None and known.budget is not None:
            del self._known[tenant]


def _is_over(known: _Known, now: int) -> bool:
    return known.budget is not None and known.bucket != tallies.USAGE.bucket(now)


def read(tenant: str, now: int) -> database.Script[budgets.TenantBudget | None]:
    """None if the tenant has none."""
    found = yield fetch("read_budget", tenant=tenant)
    if not found or (found[0][0] is None and found[0][1] is None):
        return None
    return (yield from _with_sums(tenant, budgets.TenantBudget(found[0][0], found[0][1]), now))


def _with_sums(tenant: str, budget: budgets.TenantBudget, now: int) -> database.Script[budgets.TenantBudget]:
    today = tallies.USAGE.bucket(now)
    days = yield fetch(
        "read_tallies_of_keys",
        tenant=tenant,
        topic=tallies.USAGE.name,
        keys=[spending.TENANT],
        since=budgets.first_bucket_of_month(now),
        until=today + 1,
    )
    for _, bucket, _, cost in days:
        budget.spent_this_month += int(cost)
        budget.spent_today += int(cost) if bucket == today else 0
    return budget


def lend(book: ledger.Ledger, budget: budgets.TenantBudget | None) -> None:
    """Each transaction counts on for itself."""
    book.tenant_budget = None if budget is None else copy.copy(budget)


def held(book: ledger.Ledger) -> list[tuple[str, int | None, int | None]]:
    """What must still be so when it is written that something waits for it."""
    budget = book.tenant_budget
    return [(book.tenant, budget.day, budget.month)] if book.waits_for_tenant and budget is not None else []


def ask(tenant: str, book: ledger.Ledger) -> database.Script[None]:
    """Something waits for the tenant's budget: people are asked whether more may be spent, unless they are already."""
    used_up = None if book.tenant_budget is None else budgets.tenant_exhausted(book.tenant_budget, book.now)
    if used_up is None:
        return
    asked = yield from _questions(tenant, used_up.scope, book.now)
    if not asking.need_ask(used_up, asked):
        return
    number = len(asked)
    while (yield fetch("load_jobs", tenant=tenant, job_ids=[asking.tenant_question(used_up, book.now, number)])):
        number += 1  # somebody has given this id to a job of theirs
    asking.ask_for_tenant(book, used_up, asking.tenant_question(used_up, book.now, number))


def _questions(tenant: str, scope: str, now: int) -> database.Script[list[asking.Question]]:
    name, since = f"{asking.TENANT}{scope}", budgets.begin(scope, now)
    found = yield fetch("find_budget_questions", tenant=tenant, name=name, since=since)
    return [asking.Question(*row) for row in found]


def withdraw(tenant: str, book: ledger.Ledger, job_ids: list[str]) -> database.Script[None]:
    """Take questions out of the inbox that no item waits for an answer to any more."""
    for row in (yield fetch("load_jobs", tenant=tenant, job_ids=job_ids)):
        job = rows.Job(*row)
        job.note()
        book.jobs.setdefault(job.job_id, job)
    for row in (yield fetch("load_whole_jobs", tenant=tenant, job_ids=job_ids)):
        task = rows.Task(*row)
        book.tasks.setdefault(task.key, task)
    for job_id in job_ids:
        commands.withdraw(book, job_id, "nobody needs an answer any more")


class Budgets:
    db: database.Database
    budgets: BudgetCache

    async def budget(self, tenant: str) -> budgets.TenantBudget:
        """What a tenant may spend and has spent."""

        def script() -> database.Script[budgets.TenantBudget]:
            now = self.db.now()
            found = yield from read(tenant, now)
            return found or (yield from _with_sums(tenant, budgets.TenantBudget(None, None), now))

        return await self.db.read(script)

    async def set_budget(self, tenant: str, day: int | None, month: int | None) -> list[str]:
        """From now on. What waits for the budget of before is due at once, and then waits again or does not. The answer
        is the jobs in which people are still asked about another budget than this."""

        def script() -> database.Script[list[str]]:
            now = self.db.now()
            yield fetch("set_budget", tenant=tenant, day=day, month=month)
            yield fetch("wake_for_budget", tenant=tenant, now=now)
            moot: list[str] = []
            for scope, amount in ((budgets.DAY, day), (budgets.MONTH, month)):
                asked = yield from _questions(tenant, scope, now)
                moot += [one.job_id for one in asked if one.state == states.RUNNING and one.amount != amount]
            return moot

        moot = await self.db.write(script)
        self.budgets.forget(tenant)
        return moot

    async def raise_budget(self, tenant: str, scope: str, was: int, amount: int) -> bool:
        """Somebody was asked, and raises a budget of so much. False if it is another by now, or this would not raise
        it: what waits for it looks again all the same."""

        def script() -> database.Script[bool]:
            raised = yield fetch(f"raise_budget_{scope}", tenant=tenant, was=was, amount=amount)
            yield fetch("wake_for_budget", tenant=tenant, now=self.db.now())
            return bool(raised)

        raised = await self.db.write(script)
        self.budgets.forget(tenant)
        return raised
