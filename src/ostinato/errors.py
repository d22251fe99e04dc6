"""Every error that Ostinato raises on purpose. The docstring is the default message; `code` is stable."""

from __future__ import annotations

from typing import Any


class OstinatoError(Exception):
    """Something went wrong in Ostinato."""

    code = "error"

    def __init__(self, message: str | None = None, **details: Any) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.details = details

    @property
    def message(self) -> str:
        return str(self.args[0])


# --- what a caller sent is not right; nothing was changed ---------------------------------------------------


class InvalidInput(OstinatoError, ValueError):
    """The input is not valid."""

    code = "invalid_input"


class InvalidGraph(InvalidInput):
    """The graph is not valid."""

    code = "invalid_graph"


class CycleFound(InvalidGraph):
    """The tasks depend on each other in a circle."""

    code = "cycle"


class UnknownDependency(InvalidGraph):
    """A task depends on a task that does not exist."""

    code = "unknown_dependency"


class UnknownAgent(InvalidGraph):
    """A playbook needs an agent that is not there."""

    code = "unknown_agent"


class DuplicateTask(InvalidGraph):
    """Two tasks have the same id."""

    code = "duplicate_task"


class InvalidId(InvalidInput):
    """An id must be 1 to 128 characters: letters, digits and . _ : - (starting with a letter or digit)."""

    code = "invalid_id"


class InvalidPayload(InvalidInput):
    """The value cannot be written as JSON."""

    code = "invalid_payload"


class PayloadTooLarge(InvalidPayload):
    """The payload is larger than the limit."""

    code = "payload_too_large"


class UnknownFunction(InvalidInput):
    """No worker has registered this function."""

    code = "unknown_function"


class UnknownMember(InvalidInput):
    """The gate does not expect this member."""

    code = "unknown_member"


class MissingField(InvalidInput):
    """The data lacks a field that the gate requires."""

    code = "missing_field"


class InvalidStatus(InvalidInput):
    """The status of an arrival must be a short text, and the same wherever it is given."""

    code = "invalid_status"


class UnfitValue(InvalidInput):
    """A value is not of the type that the gate aggregates."""

    code = "unfit_value"


class IdempotencyConflict(OstinatoError):
    """This idempotency key was used before with another body."""

    code = "idempotency_conflict"


# --- what a caller asked for is not there, or cannot be done in this state -----------------------------------


class NotFound(OstinatoError, LookupError):
    """There is no such thing."""

    code = "not_found"


class JobNotFound(NotFound):
    """There is no job with this id."""

    code = "job_not_found"


class ItemNotFound(NotFound):
    """There is no item with this id."""

    code = "item_not_found"


class TaskNotFound(NotFound):
    """There is no task with this id in this job."""

    code = "task_not_found"


class WorkerNotFound(NotFound):
    """There is no worker with this id: it was not heard of for too long, or has left. Register it."""

    code = "worker_not_found"


class KeyNotFound(NotFound):
    """There is no key with this id."""

    code = "key_not_found"


class ExecutionNotFound(NotFound):
    """There is no execution with this ARN in the index."""

    code = "execution_not_found"


class DefinitionNotFound(NotFound):
    """Nothing of that name is defined, for this tenant."""

    code = "definition_not_found"


class ApprovalNotFound(NotFound):
    """Nobody is asked for approval there."""

    code = "approval_not_found"


class GateKeyNotFound(NotFound):
    """Nobody has reported to this gate for this key."""

    code = "gate_key_not_found"


class ResultNotFound(NotFound):
    """There is no saved result with this id."""

    code = "result_not_found"


class NotPossible(OstinatoError):
    """This cannot be done in the present state."""

    code = "not_possible"


class JobEnded(NotPossible):
    """The job has already ended."""

    code = "job_ended"


class IllegalMove(NotPossible):
    """The state machine does not allow this move."""

    code = "illegal_move"


class GateNotFrozen(NotPossible):
    """The members of this gate are set at run time, and have not been set yet."""

    code = "gate_not_frozen"


class GateFrozen(NotPossible):
    """The members of this gate are set already, and are others."""

    code = "gate_frozen"


class GateClosed(NotPossible):
    """The report came too late, and the gate refuses late reports."""

    code = "gate_closed"


class NotSearchable(NotPossible):
    """Saved results are encrypted here, and nothing of them is indexed: set `search_index_in_clear` to search them."""

    code = "not_searchable"


class ApprovalDecided(NotPossible):
    """This approval is decided, withdrawn or has changed since: look at it again."""

    code = "approval_decided"


class LeaseLost(NotPossible):
    """This attempt no longer owns the task: it was cancelled, timed out or given to another worker."""

    code = "lease_lost"


# --- the server does not let a request in ------------------------------------------------------------------------


class Unauthenticated(OstinatoError):
    """A key is needed: send it as `Authorization: Bearer ost_…`. It is missing, wrong, expired or revoked."""

    code = "unauthenticated"


class Forbidden(OstinatoError):
    """This key may not do that."""

    code = "forbidden"


class NotAnApprover(Forbidden):
    """This person may not decide on this approval."""

    code = "not_an_approver"


class RequestRefused(OstinatoError):
    """The request is not one that this server takes."""

    code = "bad_request"


class MalformedBody(RequestRefused):
    """The body is not valid JSON."""

    code = "malformed_body"


class HostNotAllowed(RequestRefused):
    """This server does not answer under the name in the Host header. Start it with --allowed-host to let it."""

    code = "host_not_allowed"


class OriginNotAllowed(RequestRefused):
    """A page of another origin may not do that. Start the server with --allowed-origin to let it."""

    code = "origin_not_allowed"


class BodyTooLarge(RequestRefused):
    """The body is larger than the limit."""

    code = "body_too_large"


class HeadersTooLarge(RequestRefused):
    """The headers are larger than the limit."""

    code = "headers_too_large"


class UnsupportedMediaType(RequestRefused):
    """The body must be JSON: send `Content-Type: application/json`."""

    code = "unsupported_media_type"


class TooManyRequests(OstinatoError):
    """Too many requests: wait as long as Retry-After says."""

    code = "too_many_requests"

    def __init__(self, seconds: float, message: str | None = None) -> None:
        super().__init__(message, retryAfter=seconds)
        self.seconds = seconds


class ServerFull(OstinatoError):
    """The server has as many connections as it takes, or your address has: close some, or try again in a moment."""

    code = "server_full"


class StreamClosed(NotPossible):
    """The stream has ended. Go on from its cursor."""

    code = "stream_closed"


class SlowReader(StreamClosed):
    """The reader took so long that the buffer of its stream is full. Go on from the cursor, and read faster."""

    code = "slow_reader"


class ServerStopping(StreamClosed):
    """The server is being stopped. Go on from the cursor, here or at another server."""

    code = "server_stopping"


class InvalidSignature(OstinatoError):
    """The signature does not fit the message and the secret."""

    code = "invalid_signature"


class UnsafeBind(OstinatoError):
    """Anybody who reaches this address could do anything. Make a key first: `ostinato keys create`."""

    code = "unsafe_bind"


# --- how a job ended -------------------------------------------------------------------------------------------


class JobFailed(OstinatoError):
    """The job failed."""

    code = "job_failed"

    def __init__(
        self,
        message: str | None = None,
        *,
        job_id: str = "",
        state: str = "failed",
        failed: dict[str, Any] | None = None,
        blocked: list[str] | None = None,
    ) -> None:
        super().__init__(message, jobId=job_id, state=state, failed=failed or {}, blocked=blocked or [])
        self.job_id = job_id
        self.state = state
        self.failed = failed or {}
        self.blocked = blocked or []


class JobCancelled(JobFailed):
    """The job was cancelled."""

    code = "job_cancelled"


class JobTimedOut(JobFailed):
    """The job passed its deadline."""

    code = "job_timed_out"


class ResultTimeout(OstinatoError, TimeoutError):
    """The job did not end in time; it goes on running."""

    code = "result_timeout"


# --- raised inside a task, by the author or by the context ------------------------------------------------------


class TerminalError(OstinatoError):
    """Raise this in a function to fail the task for good, whatever its retry policy says."""

    code = "terminal"


class Rejected(TerminalError):
    """Somebody has rejected it."""

    code = "rejected"


class ApprovalExpired(TerminalError, TimeoutError):
    """Nobody decided before the deadline."""

    code = "approval_expired"


class UnknownSecret(TerminalError):
    """The input refers to a secret that this worker does not have."""

    code = "unknown_secret"


class ExpressionFailed(TerminalError):
    """The expression could not be evaluated."""

    code = "expression_failed"


class ConditionFailed(TerminalError):
    """The condition of a step is neither true nor false."""

    code = "condition_failed"


class ConflictingOutputs(TerminalError):
    """Two agents gave different values for one field."""

    code = "conflicting_outputs"


class NoAnswer(TerminalError):
    """None of the agents gave an answer that can be used."""

    code = "no_answer"


class TargetRefused(TerminalError):
    """This address must not be called."""

    code = "target_refused"


class TargetUnreachable(OstinatoError):
    """The address could not be reached, or did not answer in time."""

    code = "target_unreachable"


class CallFailed(OstinatoError):
    """The called server could not do it now: it answered 408, 425, 429 or 500 and above."""

    code = "call_failed"


class CallRejected(TerminalError):
    """The called server does not want this request: sending it again does not help."""

    code = "call_rejected"


class EmbeddingFailed(OstinatoError):
    """The embedder could not turn the texts into vectors."""

    code = "embedding_failed"


class ModelRefused(TerminalError):
    """The model does not want to answer this, or its answer was held back by a filter."""

    code = "model_refused"


class AnswerTruncated(TerminalError):
    """The answer of the model was cut off at its limit of tokens."""

    code = "answer_truncated"


class AnswerInvalid(OstinatoError):
    """The answer of the model does not fit the output schema, and neither does its correction."""

    code = "answer_invalid"


class RetryAfter(OstinatoError):
    """Raise this in a function to retry after the given number of seconds instead of the policy's delay: at once, if
    that moment has passed already. It counts as an attempt, like any failure."""

    code = "retry_after"

    def __init__(self, seconds: float, message: str | None = None) -> None:
        from ostinato.core import documents, graph, retry  # which cannot be read before this module is

        given: Any = seconds
        if type(given) is not bool and isinstance(given, (int, float)) and -retry.LONGEST < given < 0:
            seconds = 0  # that moment is over
        elif not graph.is_seconds(given):
            raise InvalidInput(
                f"seconds of RetryAfter must be a number up to 10,000,000,000, not {documents.short(seconds)}",
                field="seconds",
            )
        super().__init__(message or f"retry after {seconds} s", seconds=seconds)
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies are made without `__init__`, to which exceptions give their message as the first argument."""
        return _without_init, (type(self), *self.args), self.__dict__


def _without_init(kind: type[RetryAfter], *args: Any) -> RetryAfter:
    return kind.__new__(kind, *args)


class TaskTimeout(OstinatoError, TimeoutError):
    """The attempt ran longer than its timeout."""

    code = "task_timeout"


class SignalTimeout(OstinatoError, TimeoutError):
    """The signal did not arrive in time."""

    code = "signal_timeout"


# --- what is stored, and what it refers to -----------------------------------------------------------------------


class DecryptionFailed(OstinatoError):
    """A stored payload cannot be decrypted."""

    code = "decryption_failed"


# --- the database -----------------------------------------------------------------------------------------------


class DatabaseError(OstinatoError):
    """The database refused."""

    code = "database"


class DatabaseUnavailable(DatabaseError):
    """The database cannot be reached. Check the URL, and that the server is up."""

    code = "database_unavailable"


class DatabaseAway(DatabaseUnavailable):
    """The database gives no answer at the moment. Check the URL, and that the server is up."""

    code = "database_away"


class DatabaseReadOnly(DatabaseError):
    """The database is read-only. Check the permissions of the file, or connect to the primary server."""

    code = "database_read_only"


class DatabaseForbidden(DatabaseError):
    """The role of the URL may not do that in this database. Let an administrator grant it what the message names."""

    code = "database_forbidden"


class DatabaseFull(DatabaseError):
    """The disk or the database is full. Free some room; what was acknowledged is safe, and work goes on afterwards."""

    code = "database_full"


class SchemaMissing(DatabaseError):
    """The database has no Ostinato schema. Run `ostinato doctor --migrate`, or open it with migrate=True."""

    code = "schema_missing"


class SchemaTooNew(DatabaseError):
    """The database was written by a newer Ostinato. Upgrade this installation."""

    code = "schema_too_new"


class InvalidUrl(InvalidInput):
    """The URL must start with sqlite:/// or postgresql://."""

    code = "invalid_url"


# --- a worker without a database ---------------------------------------------------------------------------------


class ServerUnavailable(OstinatoError):
    """The server cannot be reached, or cannot work now. Check the address, and that it is up."""

    code = "server_unavailable"


class NotRunning(OstinatoError):
    """The application is not open: use it inside `async with app:`."""

    code = "not_running"
