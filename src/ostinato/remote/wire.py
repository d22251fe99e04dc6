"""The worker protocol as values: what the server reads and writes, and the worker in Python writes and reads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ostinato.core import approvals, graph, usage
from ostinato.core.retry import LONGEST, Retry, said

Id = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:~-]{0,127}$(?!\n)")]
Token = Annotated[str, msgspec.Meta(min_length=1, max_length=512, pattern=r"^[A-Za-z0-9_.:/-]+$(?!\n)")]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=300, pattern=r"^[^\x00]*$")]
Text = Annotated[str, msgspec.Meta(max_length=100_000)]
Attempt = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Seconds = Annotated[float, msgspec.Meta(ge=0, lt=LONGEST)]
Timeout = Annotated[float, msgspec.Meta(gt=0, lt=LONGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
Tokens = Annotated[list[Token], msgspec.Meta(max_length=10_000)]

LONGEST_POLL = 30.0
MOST_REPORTS = 1000
LONGEST_TYPE = 200
LONGEST_REASON = 4096


class Body(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """What a worker says."""


class Answer(msgspec.Struct, rename="camel"):
    """What it hears. Fields may be added in time; none goes away."""


# --- who works ---------------------------------------------------------------------------------------------------


class Function(Body):
    """A function that the worker can run, and what holds for tasks that do not say themselves."""

    name: Name
    retry: Retry = Retry()
    timeout: Timeout | None = None


class Register(Body):
    """A worker starts, or says again what it can do. Without `workerId` it is given one."""

    functions: Annotated[list[Function], msgspec.Meta(min_length=1, max_length=1000)]
    worker_id: Id | None = None
    queues: Annotated[list[Id], msgspec.Meta(min_length=1, max_length=100)] | None = None
    """`default` if left out."""
    slots: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    host: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    pid: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] | None = None
    lease_seconds: Annotated[float, msgspec.Meta(ge=0.5, le=3600)] | None = None


class Registered(Answer):
    """Who the worker is, how often it has to be heard of, and how much it may send."""

    worker_id: str
    tenant: str
    lease_seconds: float
    """Without a heartbeat for so long it counts as dead, and others run what it had."""
    max_payload_bytes: int
    max_tasks: int
    max_body_bytes: int


class Leave(Body):
    """A worker ends. `claims` are those whose answer it never got."""

    worker_id: Id
    done: Tokens = []
    claims: Annotated[list[Id], msgspec.Meta(max_length=1000)] = []


class Left(Answer):
    """`forgotten` is false if the worker still holds something: then that runs out with its lease."""

    forgotten: bool


# --- claiming ----------------------------------------------------------------------------------------------------


class Claim(Body):
    """Ask for up to `limit` tasks, and wait for the first up to `waitSeconds`."""

    worker_id: Id
    claim_id: Id | None = None
    """A name of one's own for this claim, never used again: if its answer is lost, `heartbeat` can say so."""
    limit: Count = 1
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_POLL)] = 0.0
    functions: Annotated[list[Name], msgspec.Meta(max_length=1000)] | None = None
    """Some of those that were registered; all if left out."""
    queues: Annotated[list[Id], msgspec.Meta(max_length=100)] | None = None
    ahead: dict[Name, Count] = {}
    """How many more of each function may be claimed, to be run soon."""
    idle: bool = True
    """Whether the worker runs nothing else: a task that may have killed its workers is only given to such."""
    done: Tokens = []
    """Tokens of earlier claims that were reported whole and can be forgotten."""


class Lease(Answer):
    """The right to one attempt. Whoever reports on it names job, task, attempt and token."""

    job_id: str
    task_id: str
    attempt: int
    token: str
    name: str
    input: msgspec.Raw
    """Null if `inputDigest` is there: then `payload` gives it."""
    input_digest: str | None
    dependencies: int
    """How many tasks this one depends on; `outputs` gives what they made."""
    fresh: bool
    """No step can have been recorded yet."""
    reentered: bool
    """It goes on with an attempt that was waiting. Say so when handing it back."""
    max_attempts: int
    attempt_base: int
    timeout: float | None
    options: msgspec.Raw
    """What the task itself says of its retry and its timeout, or null."""
    idempotency_key: str
    """The same for every attempt: give it to outside systems, so that they do things once."""
    job_name: str
    request_id: str | None
    correlation_id: str
    trace_parent: str | None
    """The trace that the job belongs to, as a W3C `traceparent`."""


class Claimed(Answer):
    """What the worker holds now. `passedOver` says that a task is left which must run alone: claim again when idle."""

    leases: list[Lease]
    passed_over: bool


# --- what a worker says of a task that it holds ------------------------------------------------------------------


class Held(Body):
    """A task that the worker holds."""

    worker_id: Id
    job_id: Id
    task_id: Id
    attempt: Attempt
    token: Token


class Complete(Held):
    """The attempt succeeded."""

    output: Any = None


class Fail(Held):
    """The attempt failed. It is tried again after `retryAfter` seconds, or as its policy says."""

    error_type: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TYPE)] = "Error"
    message: Text = ""
    traceback: Text | None = None
    retryable: bool = True
    retry_after: Seconds | None = None


class Release(Held):
    """The task was not run, or not to its end, and the attempt does not count."""

    reason: Annotated[str, msgspec.Meta(max_length=1024)] = "handed back"
    reentered: bool = False


class Suspend(Held):
    """The function was left: it is entered again after `seconds`, when the signal `name` has come, or when people have
    decided on what `approval` asks about `payload`.

    `key` is the step under which the next entry finds that this is over. A rejection, or that nobody decided in time,
    is found under the key, an exclamation mark and the `attemptBase` of the lease."""

    kind: Literal["sleep", "wait", "approval"]
    key: Key
    name: Id | None = None
    seconds: Seconds | None = None
    approval: approvals.Approval | None = None
    payload: Any = None


Suspension = Annotated[
    Suspend,
    said(
        oneOf=[
            {
                "required": ["seconds"],
                "properties": {
                    "kind": {"const": "sleep"},
                    "seconds": {"type": "number"},
                    "name": {"type": "null"},
                    "approval": {"type": "null"},
                },
            },
            {
                "required": ["name"],
                "properties": {
                    "kind": {"const": "wait"},
                    "name": {"type": "string"},
                    "approval": {"type": "null"},
                },
            },
            {
                "required": ["approval"],
                "properties": {
                    "kind": {"const": "approval"},
                    "approval": {"type": "object"},
                    "name": {"type": "null"},
                },
            },
        ]
    ),
]
"""A sleep says how long, a wait says for what, and an approval what it asks."""


class Finish(Held):
    """As a step of a pipeline: the item is over, in one of the statuses that the step says it `ends` in."""

    status: Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]
    reason: Annotated[str, msgspec.Meta(max_length=LONGEST_REASON, pattern=r"^[^\x00]*$")] | None = None
    output: Any = None


class Outcome(Answer):
    """What became of a report: `recorded`, or the code and the sentence of why not."""

    job_id: str
    task_id: str
    recorded: bool
    code: str | None = None
    detail: str | None = None


class Outcomes(Answer):
    """One outcome for each report, in their order."""

    outcomes: list[Outcome]


class RecordStep(Held):
    """A checkpoint. Steps are found again under their key by every later attempt."""

    key: Key
    output: Any = None


class RecordUsage(Held):
    """What the attempt has used up since it last said so. Said again with the same id, it is counted once."""

    usage_id: Id | None = None
    """A name of one's own for this report. Wait for its answer before sending the next one."""
    cost: Annotated[float, msgspec.Meta(ge=0, le=usage.MOST_MONEY)] = 0.0
    input_tokens: Annotated[int, msgspec.Meta(ge=0, le=usage.MOST)] = 0
    output_tokens: Annotated[int, msgspec.Meta(ge=0, le=usage.MOST)] = 0
    calls: Annotated[int, msgspec.Meta(ge=0, le=usage.MOST)] = 1
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=usage.LONGEST_MODEL, pattern=r"^[^\x00]*$")] | None = (
        None
    )


class AddTasks(Held):
    """Let the job grow. `key` is the step under which a later attempt finds that it has."""

    key: Key
    tasks: Annotated[list[graph.TaskSpec], said(minItems=1)]


class TasksAdded(Answer):
    task_ids: list[str]


class ReadOutputs(Held):
    """Which dependencies; all if left out."""

    task_ids: Annotated[list[Id], msgspec.Meta(max_length=10_000)] | None = None


class Outputs(Answer):
    """By task id: the output, null for a skipped task, `{"error": …}` for one that failed and may."""

    outputs: dict[str, Any]


class Steps(Answer):
    """By key: what was recorded."""

    steps: dict[str, msgspec.Raw]


class ReadPayload(Held):
    """A large payload of the job."""

    digest: Annotated[str, msgspec.Meta(pattern=r"^(?:[0-9a-f]{2})+$", max_length=256)]


class Payload(Answer):
    payload: msgspec.Raw


# --- staying alive -----------------------------------------------------------------------------------------------


class HeldTask(Body):
    job_id: Id
    task_id: Id
    token: Token


class Heartbeat(Body):
    """The worker is alive. Of the tasks that it names it hears which it no longer holds."""

    worker_id: Id
    tasks: Annotated[list[HeldTask], msgspec.Meta(max_length=20_000)] = []
    done: Tokens = []
    claims: Annotated[list[Id], msgspec.Meta(max_length=1000)] = []
    """Claims whose answer was lost: what they got is taken back."""


class Heard(Answer):
    """`lost` was cancelled, timed out or given to another worker: stop it, and do not report on it."""

    lost: list[HeldTask]
