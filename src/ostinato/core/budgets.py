"""Whether there is money left: what a job may cost, and what a tenant may spend in a day and in a month of UTC.

Nothing is stopped that runs. What would begin waits, until the budget is raised or, for that of a tenant, a new day or
month has come. All amounts are in millionths of the currency.
"""

from __future__ import annotations

import datetime
from typing import Final

import msgspec

from ostinato.core import graph, moments, rows, tallies, usage

JOB: Final = "job"
DAY: Final = "day"
MONTH: Final = "month"


class TenantBudget(msgspec.Struct, gc=False):
    """What a tenant may spend, and what it has spent today and this month."""

    day: int | None
    month: int | None
    spent_today: int = 0
    spent_this_month: int = 0

    def spend(self, cost: int) -> None:
        self.spent_today += cost
        self.spent_this_month += cost


class Exhausted(msgspec.Struct, frozen=True, gc=False):
    """A budget that is used up: that of the job, or of the tenant for a `day` or a `month`."""

    scope: str
    budget: int
    spent: int
    due_at: int | None
    """When there is a new one; None if somebody has to raise it."""


def budget_exhausted(job: rows.Job, tenant: TenantBudget | None, now: int) -> Exhausted | None:
    """The budget that keeps tasks of a job from beginning, if any does.

    The engine's own jobs, which are short and cost nothing, are not kept from it by the budget of their tenant."""
    if job.budget is not None and job.spent >= job.budget:
        return Exhausted(JOB, job.budget, job.spent, None)
    if tenant is None or job.name.startswith(graph.OWN_JOBS):
        return None
    return tenant_exhausted(tenant, now)


def tenant_exhausted(tenant: TenantBudget, now: int) -> Exhausted | None:
    if tenant.month is not None and tenant.spent_this_month >= tenant.month:
        return Exhausted(MONTH, tenant.month, tenant.spent_this_month, next_month(now))
    if tenant.day is not None and tenant.spent_today >= tenant.day:
        return Exhausted(DAY, tenant.day, tenant.spent_today, next_day(now))
    return None


def period(scope: str, now: int) -> str:
    """The day or the month of UTC, as it is written."""
    return moments.moment(now).strftime("%Y-%m-%d" if scope == DAY else "%Y-%m")


def begin(scope: str, now: int) -> int:
    """Of the day or the month."""
    return tallies.USAGE.begins(tallies.USAGE.bucket(now)) if scope == DAY else _begin(_first_day(now))


def next_day(now: int) -> int:
    return tallies.USAGE.begins(tallies.USAGE.bucket(now) + 1)


def next_month(now: int) -> int:
    """The first of the next month is 28 to 31 days after the first of this one."""
    return _begin(_first_day(now) + datetime.timedelta(days=31))


def first_bucket_of_month(now: int) -> int:
    return tallies.USAGE.bucket(_begin(_first_day(now)))


def _first_day(now: int) -> datetime.datetime:
    return moments.moment(now).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _begin(month: datetime.datetime) -> int:
    return int(month.replace(day=1).timestamp()) * 1_000_000


def sentence(used_up: Exhausted, job_id: str) -> str:
    """Why a task waits, and what to do about it."""
    budget, spent = usage.shown(used_up.budget), usage.shown(used_up.spent)
    if used_up.scope == JOB:
        raising = f"raise it with `ostinato budgets job {job_id} AMOUNT`"
        return f"The budget of {budget} of its job is used up: {spent} spent; {raising}."
    span = "today" if used_up.scope == DAY else "this month"
    raising = f"raise it with `ostinato budgets set --{used_up.scope} AMOUNT`, or wait for the next {used_up.scope}"
    return f"The tenant's budget of {budget} for a {used_up.scope} is used up: {spent} spent {span}; {raising}."
