"""Single tasks: look at them, run them again, go on without them."""

from __future__ import annotations

from ostinato import views
from ostinato.api import calls, models, reacting, routing
from ostinato.api.calls import Job, Principal, TaskId
from ostinato.core import scopes, why

routes = routing.Routes()


@routes("GET", "/v1/jobs/{jobId}/tasks/{taskId}", scope=scopes.JOBS_READ, problems=(404,), tag="tasks")
async def show_task(job: Job, task_id: TaskId) -> views.TaskDetail:
    """Show a task with its input, output, attempts and steps."""
    return await job.task(task_id)


@routes("GET", "/v1/jobs/{jobId}/tasks/{taskId}/why", scope=scopes.JOBS_READ, problems=(404,), tag="tasks")
async def explain_task(job: Job, task_id: TaskId) -> why.Why:
    """Say why a task is not running: what it waits for, since when, and what to do about it."""
    return await job.why(task_id)


@routes("POST", "/v1/jobs/{jobId}/tasks/{taskId}/retry", scope=scopes.JOBS_WRITE, problems=(404, 409), tag="tasks")
async def retry_task(job: Job, principal: Principal, task_id: TaskId, body: models.Retried) -> models.Standing:
    """Run a task again, with all its attempts."""
    await job.retry_task(task_id, input=body.input, actor=principal.actor)
    return models.Standing((await job.task(task_id)).task.state)


@routes("POST", "/v1/jobs/{jobId}/tasks/{taskId}/skip", scope=scopes.JOBS_WRITE, problems=(404, 409), tag="tasks")
async def skip_task(job: Job, principal: Principal, task_id: TaskId, body: models.Reason) -> models.Standing:
    """Go on without a task."""
    return models.Standing(await job.skip_task(task_id, body.reason, **calls.person(principal)))


@routes("POST", "/v1/jobs/{jobId}/tasks/{taskId}/complete", scope=scopes.JOBS_WRITE, problems=(404, 409), tag="tasks")
async def complete_task(
    job: Job, principal: Principal, task_id: TaskId, body: reacting.CompleteTask
) -> models.Standing:
    """Give an external task its result. A second time changes nothing."""
    return models.Standing(await job.complete_task(task_id, body.output, actor=principal.actor))


@routes("POST", "/v1/jobs/{jobId}/tasks/{taskId}/fail", scope=scopes.JOBS_WRITE, problems=(404, 409), tag="tasks")
async def fail_task(job: Job, principal: Principal, task_id: TaskId, body: reacting.FailTask) -> models.Standing:
    """Say that an external task has failed, for good."""
    made = await job.fail_task(task_id, body.message, error_type=body.error_type, actor=principal.actor)
    return models.Standing(made)
