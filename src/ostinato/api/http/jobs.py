"""Jobs: submit them, find them, let them grow, stop them and take them up again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import Depends, Header, Path, Query
from pydantic import AwareDatetime, BeforeValidator

from ostinato import errors
from ostinato.api import calls, models, routing
from ostinato.api.calls import Account, Client, Cursor, Job, JobId, Limit, Principal
from ostinato.core import commands, filters, graph, scopes

routes = routing.Routes()


def _written_out(given: Any) -> Any:
    """A number would be taken for the seconds since 1970, and 2026 is meant as a year."""
    if isinstance(given, str) and not {"-", ":"} & set(given[1:]):
        raise ValueError("write it like 2026-01-31T12:00:00Z")
    return given


State = Literal["running", "completed", "failed", "cancelled", "timed_out"]
TaskState = Literal["blocked", "pending", "processing", "waiting", "completed", "failed", "cancelled", "skipped"]
Name = Annotated[str | None, Query(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]
Moment = Annotated[
    AwareDatetime | None,
    BeforeValidator(_written_out),
    Query(description="With a time zone, as in 2026-01-31T12:00:00Z."),
]
Reference = Annotated[str | None, Query(pattern=models.ID_PATTERN)]
TaskReference = Annotated[str | None, Query(alias="taskId", pattern=models.TASK_ID_PATTERN)]
Tag = Annotated[str | None, Query(max_length=400, pattern=r"^[^\x00=]", description="`key` or `key=value`.")]


@routes("POST", "/v1/jobs", scope=scopes.JOBS_WRITE, status=(201, 200), problems=(409,), tag="jobs")
async def submit_jobs(
    client: Client,
    principal: Principal,
    account: Account,
    body: graph.JobSpec | models.Batch,
    idempotency_key: Annotated[
        str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255, description="As in the body.")
    ] = None,
) -> routing.Reply[models.Submitted | models.SubmittedJobs]:
    """Submit a job, or a batch of which each is checked before any is entered. 200 if nothing is new."""
    if isinstance(body, list):
        if idempotency_key is not None:
            raise errors.InvalidInput(
                "the Idempotency-Key header is for one job: give each job of a batch its own idempotencyKey",
                field="Idempotency-Key",
            )
        account.charge_for(*[job.tasks for job in body])
        entered = await client.submit_many(body, actor=principal.actor)
        jobs = [models.Submitted(job.job_id, job.created) for job in entered]
        return routing.Reply(models.SubmittedJobs(jobs), 201 if any(job.created for job in jobs) else 200)
    account.charge_for(body.tasks)
    job = await client.submit(_with_key(body, idempotency_key), actor=principal.actor)
    return routing.Reply(models.Submitted(job.job_id, job.created), 201 if job.created else 200)


def _with_key(spec: graph.JobSpec, header: str | None) -> graph.JobSpec:
    if header is not None:
        if spec.idempotency_key not in (None, header):
            raise errors.InvalidInput(
                "the Idempotency-Key header and idempotencyKey in the body differ: send one", field="idempotencyKey"
            )
        spec.idempotency_key = header
    return spec


async def wanted_jobs(
    state: Annotated[list[State] | None, Query(description="One or several.", max_length=5)] = None,
    name: Name = None,
    tag: Tag = None,
    correlation_id: Annotated[Reference, Query(alias="correlationId")] = None,
    request_id: Annotated[Reference, Query(alias="requestId")] = None,
    created_from: Annotated[Moment, Query(alias="createdFrom")] = None,
    created_until: Annotated[Moment, Query(alias="createdUntil")] = None,
    include_engine: Annotated[
        bool | None,
        Query(
            alias="includeEngine",
            description="Also the engine's own: of rules and gates, about budgets. Left out, they are.",
        ),
    ] = None,
) -> filters.JobsWanted:
    """From the query to the arguments of `Ostinato.jobs`: whatever jobs can be found by is listed here."""
    return {
        "state": state,
        "name": name,
        "tag": tag,
        "correlation_id": correlation_id,
        "request_id": request_id,
        "created_from": created_from,
        "created_until": created_until,
        "include_engine": include_engine,
    }


@routes("GET", "/v1/jobs", scope=scopes.JOBS_READ, tag="jobs")
async def list_jobs(
    client: Client,
    wanted: Annotated[filters.JobsWanted, Depends(wanted_jobs)],
    limit: Limit = 50,
    cursor: Cursor = None,
) -> models.JobPage:
    """List jobs, newest first."""
    found = await client.jobs(most=limit, cursor=cursor, **wanted)
    return models.JobPage(found, found.cursor)


@routes("GET", "/v1/jobs/{jobId}", scope=scopes.JOBS_READ, problems=(404,), tag="jobs")
async def show_job(
    job: Job,
    tasks_after: Annotated[int, Query(alias="tasksAfter", ge=-1, lt=2**31)] = -1,
    tasks_limit: Annotated[int, Query(alias="tasksLimit", ge=0, le=calls.MOST)] = calls.MOST,
    tasks_state: Annotated[TaskState | None, Query(alias="tasksState")] = None,
) -> models.JobDetail:
    """Show a job with its tasks, or with those in one state."""
    view = await job.info()
    tasks = await job.tasks(state=tasks_state, after=tasks_after, most=tasks_limit) if tasks_limit else []
    more = tasks[-1].position if tasks and len(tasks) == tasks_limit else None
    used = await job.usage()
    return models.JobDetail(**msgspec.structs.asdict(view), tasks=tasks, next_task=more, usage=used)


@routes("GET", "/v1/jobs/{jobId}/events", scope=scopes.JOBS_READ, problems=(404,), tag="jobs")
async def list_events(
    job: Job,
    task_id: TaskReference = None,
    after: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    limit: Limit = calls.MOST,
) -> models.EventPage:
    """List what happened to a job, from a sequence number on."""
    found = await job.events(task_id=task_id, after=after, most=limit)
    return models.EventPage(found, found[-1].seq if found else after)


@routes("POST", "/v1/jobs/{jobId}/tasks", scope=scopes.JOBS_WRITE, status=201, problems=(404, 409), tag="jobs")
async def add_tasks(job: Job, principal: Principal, account: Account, body: models.NewTasks) -> models.TasksAdded:
    """Let a running job grow."""
    account.charge_for(body.tasks)
    return models.TasksAdded(await job.add_tasks(body.tasks, actor=principal.actor))


@routes("POST", "/v1/jobs/{jobId}/resume", scope=scopes.JOBS_WRITE, problems=(404, 409), tag="jobs")
async def resume_job(job: Job, principal: Principal, body: models.Resume) -> commands.ResumePlan:
    """Re-run what failed, and nothing that completed; or only say what that would be."""
    return await job.resume(inputs=body.inputs, deadline=body.deadline, dry_run=body.dry_run, actor=principal.actor)


@routes("POST", "/v1/jobs/{jobId}/cancel", scope=scopes.JOBS_WRITE, problems=(404, 409), tag="jobs")
async def cancel_job(job: Job, principal: Principal, body: models.Reason) -> models.Standing:
    """Stop a job. The answer is `cancelled`, or the state in which it had already ended."""
    return models.Standing(await job.cancel(body.reason, actor=principal.actor))


@routes("POST", "/v1/jobs/{jobId}/signals/{name}", scope=scopes.JOBS_WRITE, problems=(404, 409), tag="jobs")
async def send_signal(
    client: Client,
    principal: Principal,
    job_id: JobId,
    name: Annotated[str, Path(pattern=models.ID_PATTERN, description="The name of the signal.")],
    body: models.Signal,
) -> models.SignalSent:
    """Send a signal to whoever waits for it in a job."""
    heard = await client.signal(job_id, name, body.payload, signal_id=body.signal_id, actor=principal.actor)
    return models.SignalSent(heard)


@routes("POST", "/v1/jobs/{jobId}/status", scope=scopes.JOBS_WRITE, problems=(404,), tag="jobs")
async def publish_status(
    client: Client, principal: Principal, job_id: JobId, body: models.NewStatus
) -> models.PublishedStatus:
    """Say how a job stands, to all who follow it. It changes nothing about the job."""
    told = await client.publish_status(
        job_id, body.status, body.message, timestamp=body.timestamp, actor=principal.actor
    )
    return models.PublishedStatus(job_id, body.status, body.message, told)


@routes("POST", "/v1/plans", scope=scopes.JOBS_READ, tag="jobs")
async def plan_job(client: Client, account: Account, body: graph.JobSpec) -> graph.Plan:
    """Check a graph and show its levels, its critical path and what to be warned of, without running it."""
    account.charge_for(body.tasks)
    return await client.plan(body)
