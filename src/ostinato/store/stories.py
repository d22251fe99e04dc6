"""All that there is to tell of one task, read on one snapshot."""

from __future__ import annotations

from typing import NamedTuple

from ostinato.core import absent, events, ledger, rows, usage
from ostinato.store import database, reads, stream, usages
from ostinato.store.database import fetch

MOST_STEPS = 1_000
_LEFT_OUT = (events.STEP_COMPLETED, events.USAGE_RECORDED)


class StoredStep(NamedTuple):
    """A finished step. Of a large output only the size is read."""

    key: str
    recorded_at: int
    size: int
    output: bytes | None


class Story(NamedTuple):
    task: rows.Task
    input: bytes
    output: bytes | None
    dependencies: list[str]
    timer: rows.Timer | None
    events: list[events.Event]
    """Without those of its steps and its usage, of which there may be very many."""
    steps: list[StoredStep]
    more_steps: bool
    usage: dict[int, usage.Usage]
    """By attempt."""


class Stories:
    db: database.Database

    async def story(self, tenant: str, job_id: str, task_id: str) -> Story:
        return await self.db.read(lambda: _story(tenant, job_id, task_id))


def _story(tenant: str, job_id: str, task_id: str) -> database.Script[Story]:
    found = yield fetch("read_task", tenant=tenant, job_id=job_id, task_id=task_id)
    if not found:
        raise absent.task(job_id, task_id)
    task = rows.Task(*found[0])
    dependencies = yield fetch("read_dependencies", tenant=tenant, job_id=job_id, task_id=task_id)
    timer = yield fetch("read_timer", tenant=tenant, job_id=job_id, task_id=task_id)
    steps = yield from _steps(tenant, job_id, task_id)
    return Story(
        task,
        (yield from reads.resolve(tenant, job_id, task.input)),
        None if task.output is None else (yield from reads.resolve(tenant, job_id, task.output)),
        [row[0] for row in dependencies],
        rows.Timer(*timer[0]) if timer else None,
        (yield from _events(tenant, job_id, task_id)),
        steps[:MOST_STEPS],
        len(steps) > MOST_STEPS,
        {attempt: used for (_, attempt), used in (yield from usages.of_attempts(tenant, job_id, task_id)).items()},
    )


def _events(tenant: str, job_id: str, task_id: str) -> database.Script[list[events.Event]]:
    kept: list[events.Event] = []
    after = 0
    while True:
        page = yield from stream.stream(tenant, job_id, task_id, after, reads.PAGE)
        kept += [event for event in page if event.type not in _LEFT_OUT]
        if len(page) < reads.PAGE:
            return kept
        after = page[-1].seq


def _steps(tenant: str, job_id: str, task_id: str) -> database.Script[list[StoredStep]]:
    steps: list[StoredStep] = []
    found = yield fetch("list_steps", tenant=tenant, job_id=job_id, task_id=task_id, most=MOST_STEPS + 1)
    for key, output, recorded_at in found:
        if output[:1] != ledger.BLOB_MARK:
            steps.append(StoredStep(key, recorded_at, len(output), output))
            continue
        sizes = yield fetch("read_blob_size", tenant=tenant, job_id=job_id, digest=output[1:])
        steps.append(StoredStep(key, recorded_at, sizes[0][0] if sizes else 0, None))
    return steps
