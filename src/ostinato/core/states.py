"""The legal moves of tasks and jobs, as data. The migrations carry the same table as triggers; a test compares them."""

from __future__ import annotations

from typing import Final

from ostinato import errors

BLOCKED: Final = "blocked"
PENDING: Final = "pending"
PROCESSING: Final = "processing"
WAITING: Final = "waiting"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
CANCELLED: Final = "cancelled"

RUNNING: Final = "running"
TIMED_OUT: Final = "timed_out"

# blocked → processing and waiting → processing are the two steps over `pending` taken in one transaction, when the
# worker that made a task ready also claims it; the events record both steps. From blocked, or from an end without
# success, to waiting goes a task that is ready and yet waits for its time or for somebody outside. From pending or
# waiting back to blocked goes a task that has not begun when something that it depends on is to run again.
TASK_MOVES: Final[dict[str, frozenset[str]]] = {
    BLOCKED: frozenset({PENDING, PROCESSING, WAITING, SKIPPED, CANCELLED}),
    PENDING: frozenset({BLOCKED, PROCESSING, SKIPPED, CANCELLED}),
    PROCESSING: frozenset({PENDING, WAITING, COMPLETED, FAILED, SKIPPED, CANCELLED}),
    WAITING: frozenset({BLOCKED, PENDING, PROCESSING, COMPLETED, FAILED, SKIPPED, CANCELLED}),
    COMPLETED: frozenset(),
    FAILED: frozenset({BLOCKED, PENDING, PROCESSING, WAITING, SKIPPED}),
    SKIPPED: frozenset({BLOCKED, PENDING, PROCESSING, WAITING}),
    CANCELLED: frozenset({BLOCKED, PENDING, PROCESSING, WAITING, SKIPPED}),
}

JOB_MOVES: Final[dict[str, frozenset[str]]] = {
    RUNNING: frozenset({COMPLETED, FAILED, CANCELLED, TIMED_OUT}),
    # (A job that is taken up again may end again in the same transaction, in any way.)
    FAILED: frozenset({RUNNING, COMPLETED, CANCELLED, TIMED_OUT}),
    CANCELLED: frozenset({RUNNING, COMPLETED, FAILED, TIMED_OUT}),
    TIMED_OUT: frozenset({RUNNING, COMPLETED, FAILED, CANCELLED}),
    COMPLETED: frozenset(),
}

TASK_STATES: Final = tuple(TASK_MOVES)
JOB_STATES: Final = tuple(JOB_MOVES)
TASK_ENDED: Final = frozenset({COMPLETED, FAILED, SKIPPED, CANCELLED})
TASK_ACTIVE: Final = frozenset({PENDING, PROCESSING, WAITING})
JOB_ENDED: Final = frozenset({COMPLETED, FAILED, CANCELLED, TIMED_OUT})


def check_task_move(task_id: str, old: str, new: str) -> None:
    if old != new and new not in TASK_MOVES[old]:
        raise errors.IllegalMove(f"task {task_id!r} is {old} and cannot become {new}", taskId=task_id, state=old)


def check_job_move(job_id: str, old: str, new: str) -> None:
    if old != new and new not in JOB_MOVES[old]:
        raise errors.IllegalMove(f"job {job_id!r} is {old} and cannot become {new}", jobId=job_id, state=old)
