"""Dead letters: what failed for good, and running it again."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ostinato import app, errors
from ostinato.api import calls, models, routing
from ostinato.api.calls import Client, Cursor, Job, Limit, Principal, TaskId
from ostinato.api.http.jobs import Name, Reference
from ostinato.core import scopes, states

routes = routing.Routes()


@routes("GET", "/v1/dead-letters", scope=scopes.JOBS_READ, tag="dead letters")
async def list_dead_letters(
    client: Client,
    name: Name = None,
    job_id: Annotated[Reference, Query(alias="jobId")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> models.DeadLetterPage:
    """List tasks that failed for good, newest first."""
    before = calls.read_place_of_task(cursor)
    found = await client.dead_letters(name=name, job_id=job_id, before=before, most=limit)
    following = None
    if len(found) == limit:
        following = calls.write_cursor(found[-1].failed_at, found[-1].job_id, found[-1].task_id)
    return models.DeadLetterPage([models.dead_letter(letter) for letter in found], following)


@routes("GET", "/v1/dead-letters/{jobId}/{taskId}", scope=scopes.JOBS_READ, problems=(404,), tag="dead letters")
async def show_dead_letter(job: Job, task_id: TaskId) -> models.DeadLetterDetail:
    """Show a dead letter with its attempts and steps."""
    detail = await job.task(task_id)
    task = detail.task
    if task.state != states.FAILED or task.finished_at is None:
        raise errors.NotFound(f"task {task_id!r} is {task.state}, not a dead letter", taskId=task_id, state=task.state)
    letter = models.DeadLetter(job.job_id, task_id, task.name, task.finished_at, task.attempt, task.error, detail.input)
    return models.DeadLetterDetail(letter, detail)


@routes("POST", "/v1/dead-letters/redrive", scope=scopes.JOBS_WRITE, problems=(404, 409), tag="dead letters")
async def redrive_dead_letters(client: Client, principal: Principal, body: models.Redrive) -> models.Redriven:
    """Run dead letters again, those named or up to 1000 that match; or only say which."""
    keys, more = await _chosen(client, body)
    count = 0 if body.dry_run else await client.redrive(keys, actor=principal.actor)
    return models.Redriven(body.dry_run, [models.LetterName(*key) for key in keys], count, more)


async def _chosen(client: app.Ostinato, body: models.Redrive) -> tuple[list[tuple[str, str]], bool]:
    by_filter = body.all or body.name is not None or body.job_id is not None
    if (body.letters is not None) == by_filter:
        raise errors.InvalidInput("say which: either `letters`, or some of `all`, `name` and `jobId`", field="letters")
    if body.letters is not None:
        return [(letter.job_id, letter.task_id) for letter in body.letters], False
    found = await client.dead_letters(name=body.name, job_id=body.job_id, most=calls.MOST)
    return [(letter.job_id, letter.task_id) for letter in found], len(found) == calls.MOST
