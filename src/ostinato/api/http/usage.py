"""What was used up, and what may be."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

from fastapi import Query

from ostinato import views
from ostinato.api import models, routing
from ostinato.api.calls import Client, Job, Principal
from ostinato.core import scopes

routes = routing.Routes()

Day = Annotated[datetime.date | None, Query(description="A day of UTC, as in 2026-01-31.")]


@routes("GET", "/v1/usage", scope=scopes.JOBS_READ, tag="usage")
async def show_usage(
    client: Client,
    by: Annotated[Literal["day", "name", "function", "step"], Query(description="What to sum up by.")] = "day",
    since: Annotated[Day, Query(alias="from")] = None,
    until: Annotated[Day, Query(alias="to")] = None,
) -> views.UsageReport:
    """Sum up what was used up from one day to another, both included; the last thirty if left out."""
    return await client.usage(by, since, until)


@routes("PUT", "/v1/jobs/{jobId}/budget", scope=scopes.JOBS_WRITE, problems=(404,), tag="usage")
async def set_job_budget(job: Job, principal: Principal, body: models.JobBudget) -> views.JobView:
    """Say what a job may cost. What waits because it was used up goes on, if there is enough now."""
    return await job.set_budget(body.budget, actor=principal.actor)


@routes("GET", "/v1/retention", scope=scopes.JOBS_READ, tag="retention")
async def show_retention(client: Client) -> views.RetentionView:
    """Show for how many seconds the tenant keeps finished jobs, and after that their idempotency keys."""
    return await client.retention()


@routes("PUT", "/v1/retention", scope=scopes.ADMIN, tag="retention")
async def set_retention(client: Client, principal: Principal, body: models.Retention) -> views.RetentionView:
    """Say for how many seconds: both at once. What was kept for longer is removed soon afterwards."""
    return await client.set_retention(jobs=body.jobs, keys=body.keys, actor=principal.actor)


@routes("GET", "/v1/budgets", scope=scopes.JOBS_READ, tag="usage")
async def show_budget(client: Client) -> views.BudgetView:
    """Show what the tenant may spend in a day and in a month, and has spent of it."""
    return await client.budget()


@routes("PUT", "/v1/budgets", scope=scopes.ADMIN, tag="usage")
async def set_budget(client: Client, principal: Principal, body: models.TenantBudget) -> views.BudgetView:
    """Say what the tenant may spend in a day and in a month: both at once."""
    return await client.set_budget(day=body.day, month=body.month, actor=principal.actor)
