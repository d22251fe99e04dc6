"""Dead letters: what failed for good, and running it again."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from ostinato import errors, views
from ostinato.api import models, routing
from ostinato.api.calls import Client, Cursor, Job, Limit, Principal, TaskId
from ostinato.api.http.jobs import Moment, Name, Reference
from ostinato.core import filters, scopes

routes = routing.Routes()


async def wanted_letters(
    name: Name = None,
    job_id: Annotated[Reference, Query(alias="jobId")] = None,
    error_type: Annotated[str | None, Query(alias="errorType", min_length=1, max_length=200)] = None,
    failed_from: Annotated[Moment, Query(alias="failedFrom")] = None,
    failed_until: Annotated[Moment, Query(alias="failedUntil")] = None,
) -> filters.DeadLettersWanted:
    """From the query to the arguments of `Ostinato.dead_letters`."""
    return {
        "name": name,
        "job_id": job_id,
        "error_type": error_type,
        "failed_from": failed_from,
        "failed_until": failed_until,
    }


@routes("GET", "/v1/dead-letters", scope=scopes.JOBS_READ, tag="dead letters")
async def list_dead_letters(
    client: Client,
    wanted: Annotated[filters.DeadLettersWanted, Depends(wanted_letters)],
    limit: Limit = 50,
    cursor: Cursor = None,
) -> models.DeadLetterPage:
    """List tasks that failed for good, newest first."""
    found = await client.dead_letters(cursor=cursor, most=limit, **wanted)
    return models.DeadLetterPage([models.dead_letter(letter) for letter in found], found.cursor)


@routes("GET", "/v1/dead-letters/depth", scope=scopes.JOBS_READ, tag="dead letters")
async def count_dead_letters(client: Client) -> views.DeadLetterDepth:
    """Count the dead letters, and say whether there are so many that somebody should look."""
    return await client.dead_letter_depth()


@routes("GET", "/v1/dead-letters/{jobId}/{taskId}", scope=scopes.JOBS_READ, problems=(404,), tag="dead letters")
async def show_dead_letter(client: Client, job: Job, task_id: TaskId) -> models.DeadLetterDetail:
    """Show a dead letter with its attempts and steps."""
    letter = await client.dead_letter(job.job_id, task_id)
    if letter is None:
        raise errors.NotFound(f"task {task_id!r} of job {job.job_id!r} is not a dead letter", taskId=task_id)
    return models.DeadLetterDetail(models.dead_letter(letter), await job.task(task_id))


@routes("POST", "/v1/dead-letters/redrive", scope=scopes.JOBS_WRITE, problems=(404, 409), tag="dead letters")
async def redrive_dead_letters(client: Client, principal: Principal, body: models.WhichLetters) -> views.Redriven:
    """Run dead letters again, those named or all that match; or only say which. The first hundred are listed."""
    wanted: filters.DeadLettersWanted = {
        "name": body.name,
        "job_id": body.job_id,
        "error_type": body.error_type,
        "failed_from": body.failed_from,
        "failed_until": body.failed_until,
    }
    if body.letters is not None:
        keys = [(letter.job_id, letter.task_id) for letter in body.letters]
        return await client.redrive(keys, dry_run=body.dry_run, actor=principal.actor)
    return await client.redrive_matching(dry_run=body.dry_run, actor=principal.actor, **wanted)
