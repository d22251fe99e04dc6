"""Bodies and answers of the HTTP API that are not already views or documents of the engine. OpenAPI shows them all."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

import msgspec

from ostinato import results, views
from ostinato.core import executions, graph, moments, statuses, usage
from ostinato.core.retry import LONGEST, Retry, said
from ostinato.store import lists

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:~-]{0,127}$"
TASK_ID_PATTERN = r"^\$?[A-Za-z0-9][A-Za-z0-9_.:~-]{0,127}$"
"""Tasks of the engine's own, such as the stages of a playbook, begin with a dollar sign."""
Text = Annotated[str, msgspec.Meta(max_length=1024, pattern=r"^[^\x00]*$")]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
Id = Annotated[str, msgspec.Meta(pattern=ID_PATTERN + r"(?!\n)")]  # in Python, `$` also stands before a last newline
TaskId = Annotated[str, msgspec.Meta(pattern=TASK_ID_PATTERN + r"(?!\n)")]
Seconds = Annotated[float, msgspec.Meta(gt=0, lt=LONGEST)]


Period = Annotated[float, msgspec.Meta(ge=0, lt=LONGEST)]
"""In seconds."""
Money = Annotated[float, msgspec.Meta(ge=0, le=usage.MOST_MONEY)]


class Body(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What a request brings. A field that is not known is refused: it would be a misunderstanding."""


class Answer(msgspec.Struct, rename="camel"):
    """What a request gets. Fields may be added in time; none goes away."""


Batch = Annotated[list[graph.JobSpec], msgspec.Meta(min_length=1)]


# --- jobs --------------------------------------------------------------------------------------------------------


class Submitted(Answer):
    """A job that was entered; `created` is false if its idempotency key found the job of before."""

    job_id: str
    created: bool


class SubmittedJobs(Answer):
    """The jobs of a batch, in its order."""

    jobs: list[Submitted]


class JobPage(Answer):
    """Jobs, newest first. Without `nextCursor` this was the last page."""

    jobs: list[views.JobView]
    next_cursor: str | None


class JobDetail(views.JobView, frozen=True, rename="camel"):
    """A job with its tasks, in the producer's order. `nextTask`, if not null, is `tasksAfter` for the next page."""

    tasks: list[views.TaskView]
    next_task: int | None
    usage: views.UsageView


class EventPage(Answer):
    """The stream of a job. `nextAfter` is `after` for the next page, which may be empty until more happens."""

    events: list[views.EventView]
    next_after: int


class NewTasks(Body):
    """Tasks for a running job: all of them are added, or none."""

    tasks: Annotated[list[graph.TaskSpec], said(minItems=1)]


class TasksAdded(Answer):
    task_ids: list[str]


class Resume(Body):
    """How to resume: with other inputs by task id, with a new deadline in seconds, or only to see what would run."""

    inputs: dict[str, dict[str, Any]] = {}
    deadline: Seconds | None = None
    dry_run: bool = False


class Reason(Body):
    """Why, for the history."""

    reason: Text | None = None


class Standing(Answer):
    """The state that a job or a task is in now: for a cancelled job, this says who won."""

    state: str


class Signal(Body):
    """What a waiting task gets. With an id of your own it can be sent again without arriving twice."""

    payload: Any = None
    signal_id: Id | None = None


class JobBudget(Body):
    """What a job may cost, in the currency of the prices; null is anything."""

    budget: Money | None


class SignalSent(Answer):
    """`heard` is false if nobody waits for it yet: then it is kept for the next task that asks."""

    heard: bool


class NewStatus(Body):
    """How a job stands; `timestamp` says when, if that is not now."""

    status: Annotated[str, msgspec.Meta(min_length=1, max_length=statuses.LONGEST_STATUS)]
    message: Annotated[str, msgspec.Meta(max_length=statuses.LONGEST_MESSAGE)] | None = None
    timestamp: Annotated[datetime.datetime, msgspec.Meta(tz=True)] | None = None


class PublishedStatus(Answer):
    """The status, as those who follow the job get it."""

    job_id: str
    status: str
    message: str | None
    timestamp: datetime.datetime


# --- tasks -------------------------------------------------------------------------------------------------------


class Retried(Body):
    """Another input for the task, if it should not get the one it had."""

    input: dict[str, Any] | None = None


# --- dead letters ------------------------------------------------------------------------------------------------


class DeadLetter(Answer):
    """A task that failed for good."""

    job_id: str
    task_id: str
    name: str
    failed_at: datetime.datetime
    attempts: int
    error: Any
    input: Any


class DeadLetterPage(Answer):
    """Dead letters, newest first. Without `nextCursor` this was the last page."""

    dead_letters: list[DeadLetter]
    next_cursor: str | None


class DeadLetterDetail(Answer):
    """A dead letter with its attempts and steps."""

    dead_letter: DeadLetter
    detail: views.TaskDetail


class LetterId(Body):
    job_id: Id
    task_id: TaskId


class Redrive(Body):
    """Which dead letters to run again: those named, or those that match; `all` if no filter is given."""

    letters: Annotated[list[LetterId], msgspec.Meta(max_length=1000)] | None = None
    name: Name | None = None
    job_id: Id | None = None
    error_type: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    failed_from: Annotated[datetime.datetime, msgspec.Meta(tz=True)] | None = None
    failed_until: Annotated[datetime.datetime, msgspec.Meta(tz=True)] | None = None
    all: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        filters = (self.name, self.job_id, self.error_type, self.failed_from, self.failed_until)
        by_filter = self.all or any(given is not None for given in filters)
        if (self.letters is not None) == by_filter:
            raise ValueError("say which: either `letters`, or `all`, or some of the filters")


_FILTERS = ("name", "jobId", "errorType", "failedFrom", "failedUntil")
_NULL = {"type": "null"}
WhichLetters = Annotated[
    Redrive,
    said(
        oneOf=[
            {
                "required": ["letters"],
                "properties": {"letters": {"type": "array"}, "all": {"const": False}} | dict.fromkeys(_FILTERS, _NULL),
            },
            {
                "properties": {"letters": _NULL},
                "anyOf": [
                    {"required": ["all"], "properties": {"all": {"const": True}}},
                    *[{"required": [name], "properties": {name: {"type": "string"}}} for name in _FILTERS],
                ],
            },
        ]
    ),
]
"""It is said which: either by name, or by filters or all of them."""


# --- executions --------------------------------------------------------------------------------------------------


class ExecutionPage(Answer):
    """Executions by start. Without `nextCursor` this was the last page; with it a page may be short, or even empty."""

    executions: list[views.ExecutionView]
    next_cursor: str | None


class ExecutionCounts(Answer):
    """How many executions there are by status, or by day of UTC; what there is none of is left out."""

    by: str
    counts: list[views.CountView]


class Definition(Body):
    """A definition elsewhere, and all its tags."""

    state_machine_arn: Annotated[str, said(minLength=1, maxLength=executions.LONGEST, pattern=r"^[ -~]*$")]
    tags: graph.Tags


class TaggedDefinition(Answer):
    """The tags by which the executions of a definition elsewhere are indexed from now on, or not."""

    state_machine_arn: str
    tags: dict[str, str]


# --- the fleet ---------------------------------------------------------------------------------------------------


class Function(Answer):
    """What some worker can run, or could."""

    name: str
    registered_at: datetime.datetime
    retry: Retry
    timeout: float | None


class Functions(Answer):
    functions: list[Function]


class Worker(Answer):
    """A process that runs tasks, heard of lately if it is alive."""

    worker_id: str
    alive: bool
    started_at: datetime.datetime
    expires_at: datetime.datetime
    host: str | None
    pid: int | None
    queues: list[str]


class Workers(Answer):
    workers: list[Worker]


# --- budgets -----------------------------------------------------------------------------------------------------


class TenantBudget(Body):
    """What the tenant may spend in a day and in a month of UTC; null is as much as it likes."""

    day: Money | None = None
    month: Money | None = None


class Retention(Body):
    """For how many seconds the tenant keeps finished jobs, and after that their idempotency keys; null is for ever."""

    jobs: Period | None = None
    keys: Period | None = None


# --- the audit log -----------------------------------------------------------------------------------------------


class AuditLogPage(Answer):
    """Entries, newest first. Without `nextBefore` this was the last page."""

    entries: list[views.AuditEntryView]
    next_before: int | None


# --- saved results ---------------------------------------------------------------------------------------------


class ResultPage(Answer):
    """Saved results, newest first. Without `nextCursor` this was the last page."""

    results: list[results.ResultView]
    next_cursor: str | None


class ResultHits(Answer):
    """What a search has found, best first."""

    hits: list[results.Hit]


# --- the server itself -------------------------------------------------------------------------------------------


class Health(Answer):
    status: str


def dead_letter(letter: lists.DeadLetter) -> DeadLetter:
    return DeadLetter(
        job_id=letter.job_id,
        task_id=letter.task_id,
        name=letter.name,
        failed_at=moments.moment(letter.failed_at),
        attempts=letter.attempts,
        error=letter.error,
        input=letter.input,
    )
