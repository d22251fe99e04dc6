"""What was used up, and what may be."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
from ariadne import ObjectType

from ostinato import errors, views

query = ObjectType("Query")
mutation = ObjectType("Mutation")
job = ObjectType("Job")
report = ObjectType("UsageReport")


@query.field("usage")
async def show_usage(_: Any, info: Any, by: str, **span: str | None) -> views.UsageReport:
    return await info.context.client.usage(by, _day(span.get("from"), "from"), _day(span.get("to"), "to"))


def _day(text: str | None, field: str) -> datetime.date | None:
    try:
        return None if text is None else msgspec.convert(text, datetime.date)
    except msgspec.ValidationError:
        raise errors.InvalidInput(f"{field} must be a day, as in 2026-01-31", field=field) from None


@job.field("usage")
async def usage_of_job(found: views.JobView, info: Any) -> views.UsageView:
    return await info.context.job(found.job_id).usage()


@query.field("budget")
async def show_budget(_: Any, info: Any) -> views.BudgetView:
    return await info.context.client.budget()


@mutation.field("setJobBudget")
async def set_job_budget(_: Any, info: Any, jobId: str, budget: float | None = None) -> views.JobView:
    return await info.context.job(jobId).set_budget(budget, actor=info.context.principal.actor)


@query.field("retention")
async def show_retention(_: Any, info: Any) -> views.RetentionView:
    return await info.context.client.retention()


@mutation.field("setRetention")
async def set_retention(_: Any, info: Any, jobs: float | None = None, keys: float | None = None) -> views.RetentionView:
    return await info.context.client.set_retention(jobs=jobs, keys=keys, actor=info.context.principal.actor)


@mutation.field("setBudget")
async def set_budget(_: Any, info: Any, day: float | None = None, month: float | None = None) -> views.BudgetView:
    return await info.context.client.set_budget(day=day, month=month, actor=info.context.principal.actor)


@report.field("from")
def first_day(found: views.UsageReport, _: Any) -> str:
    return str(found.from_)


@report.field("to")
def last_day(found: views.UsageReport, _: Any) -> str:
    return str(found.to)


ALL = (query, mutation, job, report)
