"""What is not there, named: ids that are only looked for are not checked, and may be as long as a book."""

from __future__ import annotations

from ostinato import errors
from ostinato.core import documents

LONGEST = 512
"""Characters of an id that are sent back; the longest ids that there can be are ARNs."""


def job(job_id: str) -> errors.JobNotFound:
    return errors.JobNotFound(f"there is no job {named(job_id)}", jobId=cut(job_id))


def task(job_id: str, task_id: str) -> errors.TaskNotFound:
    return errors.TaskNotFound(
        f"there is no task {named(task_id)} in job {named(job_id)}", jobId=cut(job_id), taskId=cut(task_id)
    )


def named(name: str) -> str:
    """For a message."""
    return repr(cut(name))


def cut(name: str) -> str:
    """Whole if it may be the name of something, and else its beginning."""
    return name if len(name) <= LONGEST else documents.short_text(name)
