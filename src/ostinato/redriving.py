"""Running dead letters again: some, or all that match a filter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ostinato import errors, views
from ostinato.core import commands, documents, filters, rows
from ostinato.engine import engine

LISTED = 100
"""How many an answer names."""
AT_ONCE = 500
MOST_AT_ONCE = 1_000_000


def check(letters: Any) -> None:
    """Refuse what does not name dead letters."""
    for place, letter in enumerate(documents.as_list(letters, "letters", 0, MOST_AT_ONCE)):
        documents.check_type(letter, tuple[str, str], f"letters[{place}]")


def told(letters: Sequence[rows.TaskKey], *, dry_run: bool = False, count: int | None = None) -> views.Redriven:
    named = [views.LetterKey(job_id, task_id) for job_id, task_id in letters[:LISTED]]
    return views.Redriven(dry_run, len(letters) if count is None else count, named)


async def redrive(running: engine.Engine, letters: Sequence[rows.TaskKey], actor: str | None) -> list[rows.TaskKey]:
    """Each job's letters together. Raises what the first refused one was refused for."""
    answers = await asyncio.gather(
        *[_of_job(running, job_id, tasks, actor) for job_id, tasks in _by_job(letters).items()]
    )
    return [key for answer in answers for key in answer]


async def preview(running: engine.Engine, wanted: filters.DeadLetterFilter) -> views.Redriven:
    first: list[rows.TaskKey] = []
    count = 0
    cursor: str | None = None
    while True:
        page = await running.store.dead_letter_keys(running.tenant, wanted, cursor=cursor)
        first += page[: LISTED - len(first)]
        count += len(page)
        cursor = page.cursor
        if cursor is None:
            return told(first, dry_run=True, count=count)


async def redrive_matching(
    running: engine.Engine, wanted: filters.DeadLetterFilter, actor: str | None
) -> views.Redriven:
    """From the newest to the oldest: what fails again meanwhile is newer, and not met twice.

    What somebody else ran again, skipped or removed in between is left alone."""
    first: list[rows.TaskKey] = []
    count = 0
    cursor: str | None = None
    while True:
        page = await running.store.dead_letter_keys(running.tenant, wanted, cursor=cursor, most=AT_ONCE)
        done = await asyncio.gather(
            *[_of_job_leniently(running, job_id, tasks, actor) for job_id, tasks in _by_job(page).items()]
        )
        again = [key for answer in done for key in answer]
        first += again[: LISTED - len(first)]
        count += len(again)
        cursor = page.cursor
        if cursor is None:
            return told(first, count=count)


async def _of_job(
    running: engine.Engine, job_id: str, task_ids: Sequence[str], actor: str | None
) -> list[rows.TaskKey]:
    command = commands.RetryTasks(job_id, task_ids, actor=actor, only_failed=True)
    return [(job_id, task_id) for task_id in await running.execute(command)]


async def _of_job_leniently(
    running: engine.Engine, job_id: str, task_ids: Sequence[str], actor: str | None
) -> list[rows.TaskKey]:
    try:
        return await _of_job(running, job_id, task_ids, actor)
    except (errors.NotPossible, errors.NotFound):
        if len(task_ids) == 1:
            return []
    one_by_one = [await _of_job_leniently(running, job_id, [task_id], actor) for task_id in task_ids]
    return [key for answer in one_by_one for key in answer]


def _by_job(letters: Sequence[rows.TaskKey]) -> dict[str, list[str]]:
    by_job: dict[str, list[str]] = {}
    for job_id, task_id in letters:
        by_job.setdefault(job_id, []).append(task_id)
    return by_job
