"""The vocabulary of events. A task event puts its task into one state, so the rows are the fold of the events."""

from __future__ import annotations

from typing import Final

import msgspec

from ostinato.core import states

JOB_CREATED: Final = "Job Created"
JOB_TASKS_ADDED: Final = "Job Tasks Added"
JOB_FAILURE_DETECTED: Final = "Job Failure Detected"
JOB_COMPLETED: Final = "Job Completed"
JOB_FAILED: Final = "Job Failed"
JOB_CANCELLED: Final = "Job Cancelled"
JOB_TIMED_OUT: Final = "Job Timed Out"
JOB_RESUMED: Final = "Job Resumed"
SIGNAL_RECEIVED: Final = "Signal Received"
STEP_COMPLETED: Final = "Step Completed"
STATUS_PUBLISHED: Final = "Status Published"
USAGE_RECORDED: Final = "Usage Recorded"
BUDGET_CHANGED: Final = "Budget Changed"
APPROVAL_REQUESTED: Final = "Approval Requested"
APPROVAL_DECIDED: Final = "Approval Decided"
APPROVAL_ESCALATED: Final = "Approval Escalated"
APPROVAL_EXPIRED: Final = "Approval Expired"
GATE_OPENED: Final = "Gate Opened"
GATE_ARRIVAL_FAILED: Final = "Gate Arrival Failed"
GATE_ARRIVAL_LATE: Final = "Gate Arrival Late"
GATE_RESET: Final = "Gate Reset"
ITEM_MOVED: Final = "Item Moved"

TASK_BLOCKED: Final = "Task Blocked"
TASK_PENDING: Final = "Task Pending"
TASK_PROCESSING: Final = "Task Processing"
TASK_COMPLETED: Final = "Task Completed"
TASK_FAILED: Final = "Task Failed"
TASK_RETRY_SCHEDULED: Final = "Task Retry Scheduled"
TASK_WAITING: Final = "Task Waiting"
TASK_LOST: Final = "Task Lost"
TASK_RELEASED: Final = "Task Released"
TASK_SKIPPED: Final = "Task Skipped"
TASK_CANCELLED: Final = "Task Cancelled"

TASK_STATE_AFTER: Final[dict[str, str]] = {
    TASK_BLOCKED: states.BLOCKED,
    TASK_PENDING: states.PENDING,
    TASK_PROCESSING: states.PROCESSING,
    TASK_COMPLETED: states.COMPLETED,
    TASK_FAILED: states.FAILED,
    TASK_RETRY_SCHEDULED: states.WAITING,
    TASK_WAITING: states.WAITING,
    TASK_LOST: states.PENDING,
    TASK_RELEASED: states.PENDING,
    TASK_SKIPPED: states.SKIPPED,
    TASK_CANCELLED: states.CANCELLED,
}

JOB_STATE_AFTER: Final[dict[str, str]] = {
    JOB_CREATED: states.RUNNING,
    JOB_COMPLETED: states.COMPLETED,
    JOB_FAILED: states.FAILED,
    JOB_CANCELLED: states.CANCELLED,
    JOB_TIMED_OUT: states.TIMED_OUT,
    JOB_RESUMED: states.RUNNING,
}

JOB_END: Final[dict[str, str]] = {state: name for name, state in JOB_STATE_AFTER.items() if state in states.JOB_ENDED}

ATTEMPT_ENDS: Final[dict[str, str]] = {
    TASK_COMPLETED: "completed",
    TASK_FAILED: "failed",
    TASK_RETRY_SCHEDULED: "failed",
    TASK_LOST: "lost",
    TASK_CANCELLED: "cancelled",
    TASK_SKIPPED: "skipped",
}


TYPES: Final = (
    *JOB_STATE_AFTER,
    JOB_TASKS_ADDED,
    JOB_FAILURE_DETECTED,
    SIGNAL_RECEIVED,
    STATUS_PUBLISHED,
    APPROVAL_REQUESTED,
    APPROVAL_DECIDED,
    APPROVAL_ESCALATED,
    APPROVAL_EXPIRED,
    GATE_OPENED,
    GATE_ARRIVAL_FAILED,
    GATE_ARRIVAL_LATE,
    GATE_RESET,
    ITEM_MOVED,
    STEP_COMPLETED,
    USAGE_RECORDED,
    BUDGET_CHANGED,
    *TASK_STATE_AFTER,
)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One fact in the stream of one job. `at` is microseconds since the epoch; `data` is JSON."""

    job_id: str
    seq: int
    type: str
    task_id: str | None
    attempt: int | None
    at: int
    data: bytes
