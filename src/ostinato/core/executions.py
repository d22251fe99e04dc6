"""Executions, wherever they ran: what status-change events say of them, and how reports of the same one come together.

Reports may arrive in any order and any number of times. `merge` is a join (commutative, associative, idempotent), so
that they all end in the same row, and the row never goes back.
"""

from __future__ import annotations

import datetime
import functools
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from ostinato import errors
from ostinato.core import codec, graph, states

RUNNING: Final = "RUNNING"
SUCCEEDED: Final = "SUCCEEDED"
FAILED: Final = "FAILED"
TIMED_OUT: Final = "TIMED_OUT"
ABORTED: Final = "ABORTED"
STATUSES: Final = (RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED)
"""The first gives way to all others. Of two that ended at the same moment the later one in this list stays."""

STATUS_OF: Final = {
    states.RUNNING: RUNNING,
    states.COMPLETED: SUCCEEDED,
    states.FAILED: FAILED,
    states.TIMED_OUT: TIMED_OUT,
    states.CANCELLED: ABORTED,
}
STATE_OF: Final = {status: state for state, status in STATUS_OF.items()}

SOURCE: Final = "aws.states"
DETAIL_TYPE: Final = "Step Functions Execution Status Change"
REQUIRED_TAGS: Final[Mapping[str, str]] = {"Type": "Agent", "Application": "StepFunctionsAgent"}
STAGES: Final = ("dev", "develop", "test", "qa", "uat", "int", "stage", "staging", "preprod", "prod", "production")
LONGEST: Final = 512
"""Bytes of an ARN, a name or a correlation id: they are parts of index entries, which have their limits."""
LATEST: Final = 253_402_300_799_999_999
"""The last microsecond that can be written as a date."""

DAY: Final = 86_400_000_000
HOUR: Final = 3_600_000_000

_RANK = {status: rank for rank, status in enumerate(STATUSES)}


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """One execution. Times are microseconds since the epoch; the store sets `indexed_at`."""

    execution_arn: str
    state_machine_arn: str
    agent_name: str
    execution_name: str
    status: str
    start_at: int
    stop_at: int | None = None
    correlation_id: str | None = None
    tags: dict[str, str] = {}
    indexed_at: int = 0

    @property
    def duration_seconds(self) -> float | None:
        """From start to stop; clocks that disagree do not make it negative."""
        return None if self.stop_at is None else max(self.stop_at - self.start_at, 0) / 1e6


# --- how reports come together ---------------------------------------------------------------------------------


def merge(old: Execution, new: Execution) -> Execution:
    """What two reports of the same execution say together: an end beats RUNNING, and a later end an earlier one."""
    ended = max(old, new, key=_end)
    defined = max(old, new, key=_definition)
    return Execution(
        execution_arn=old.execution_arn,
        state_machine_arn=defined.state_machine_arn,
        agent_name=defined.agent_name,
        execution_name=max(old.execution_name, new.execution_name),
        status=ended.status,
        start_at=min(old.start_at, new.start_at),
        stop_at=ended.stop_at,
        correlation_id=max(old.correlation_id, new.correlation_id, key=lambda one: one or ""),
        tags=_merge_tags(old.tags, new.tags),
        indexed_at=max(old.indexed_at, new.indexed_at),
    )


def _end(one: Execution) -> tuple[bool, int, int]:
    return one.status != RUNNING, -1 if one.stop_at is None else one.stop_at, _RANK[one.status]


def _definition(one: Execution) -> tuple[str, str]:
    return one.state_machine_arn, one.agent_name


def _merge_tags(old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    if old == new:
        return old
    return {key: max(old.get(key, ""), new.get(key, "")) for key in sorted(old.keys() | new.keys())}


# --- own jobs --------------------------------------------------------------------------------------------------


class OwnRow(NamedTuple):
    """What the index shows of a job, in the order in which it is read."""

    job_id: str
    name: str
    state: str
    correlation_id: str
    tags: bytes
    created_at: int
    finished_at: int | None
    changed_at: int | None = None
    """When something last happened to it, while it runs: a resume is later than the end before it."""


class OutsideRow(NamedTuple):
    """What was reported of an execution, but for its tags, in the order in which it is read."""

    execution_arn: str
    state_machine_arn: str
    agent_name: str
    execution_name: str
    status: str
    start_at: int
    stop_at: int | None
    correlation_id: str | None
    indexed_at: int


def of_job(tenant: str, job: OwnRow) -> Execution:
    """A job as an execution."""
    return Execution(
        execution_arn=own_arn(tenant, job.name, job.job_id),
        state_machine_arn=f"{_own_head(tenant)}stateMachine:{_quoted(job.name)}",
        agent_name=job.name,
        execution_name=job.job_id,
        status=STATUS_OF[job.state],
        start_at=job.created_at,
        stop_at=job.finished_at,
        correlation_id=job.correlation_id,
        tags=codec.decode(job.tags),
        indexed_at=max(job.created_at, job.finished_at or 0, job.changed_at or 0),
    )


def own_arn(tenant: str, name: str, job_id: str) -> str:
    return f"{_own_head(tenant)}execution:{_quoted(name)}:{job_id}"


def own_job(tenant: str, execution_arn: str) -> tuple[str, str] | None:
    """(name, job id) of an own execution of this tenant; None if the ARN is not one."""
    head = f"{_own_head(tenant)}execution:"
    name, separator, job_id = execution_arn.removeprefix(head).partition(":")
    if not execution_arn.startswith(head) or not separator:
        return None
    return urllib.parse.unquote(name), job_id


_OWN = "arn:ostinato:states:local:"


def _own_head(tenant: str) -> str:
    return f"{_OWN}{tenant}:"


@functools.lru_cache(maxsize=4096)
def _quoted(name: str) -> str:
    """A name may hold colons, which part an ARN."""
    return urllib.parse.quote(name, safe="")


# --- outside events --------------------------------------------------------------------------------------------


class Reported(msgspec.Struct, frozen=True):
    """What one event says. Its tags are None if it says nothing about them: then those of its definition count."""

    execution: Execution
    tags: dict[str, str] | None


def is_status_change(event: Mapping[str, Any]) -> bool:
    """Whether an event is one that the index is about."""
    return event.get("source") == SOURCE and event.get("detail-type") == DETAIL_TYPE


def status_change(detail: Any) -> dict[str, Any]:
    """The event that says this."""
    return {"source": SOURCE, "detail-type": DETAIL_TYPE, "detail": detail}


def read_event(event: Any, *, stages: Iterable[str] = STAGES, at: str = "") -> Reported:
    """A status-change event in the envelope of EventBridge; InvalidInput that points at the field, after `at`."""
    envelope = _object(event, at or "event")
    prefix = f"{at}." if at else ""
    _exactly(envelope, "source", SOURCE, prefix)
    _exactly(envelope, "detail-type", DETAIL_TYPE, prefix)
    field = f"{prefix}detail"
    detail = _object(envelope.get("detail"), field)
    status = detail.get("status")
    if status not in STATUSES:
        raise _invalid(f"{field}.status", f"must be one of {', '.join(STATUSES)}, not {_shown(status)}")
    definition = _text(detail, "stateMachineArn", field)
    arn = _text(detail, "executionArn", field)
    if arn.startswith(_OWN):
        raise _invalid(f"{field}.executionArn", "is that of an own execution: what becomes of it, its job says")
    start = _moment(detail.get("startDate"), f"{field}.startDate")
    stop = None
    if status != RUNNING and detail.get("stopDate") is not None:
        stop = _moment(detail["stopDate"], f"{field}.stopDate")
    correlation = _text(detail, "correlationId", field) if detail.get("correlationId") is not None else None
    given = "stateMachineTags" if detail.get("stateMachineTags") is not None else "tags"
    tags = None if detail.get(given) is None else read_tags(detail[given], f"{field}.{given}")
    execution = Execution(
        execution_arn=arn,
        state_machine_arn=definition,
        agent_name=agent_name(definition, stages),
        execution_name=_text(detail, "name", field) if "name" in detail else arn.rpartition(":")[2] or arn,
        status=status,
        start_at=start,
        stop_at=stop,
        correlation_id=correlation,
        tags=tags or {},
    )
    return Reported(execution, tags)


def agent_name(state_machine_arn: str, stages: Iterable[str] = STAGES) -> str:
    """The name of the definition without the stage that it was deployed to: `my-agent-prod` is `my-agent`."""
    parts = state_machine_arn.split(":")
    # Of arn:aws:states:region:account:stateMachine:name, which a version or an alias may follow.
    name = parts[6] if parts[0] == "arn" and len(parts) > 6 and parts[6] else parts[-1] or state_machine_arn
    stem, separator, stage = name.rpartition("-")
    return stem if separator and stem and stage in set(stages) else name


def read_tags(given: Any, field: str = "tags") -> dict[str, str]:
    """Tags as an object, or as the list of keys and values that AWS writes."""
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        entries = [_object(entry, f"{field}[{n}]") for n, entry in enumerate(cast("Sequence[Any]", given))]
        pairs = [(entry.get("key", entry.get("Key")), entry.get("value", entry.get("Value"))) for entry in entries]
    else:
        pairs = list(_object(given, field).items())
    for key, value in pairs:
        if not isinstance(key, str) or not isinstance(value, str):
            raise _invalid(field, f"must have texts as keys and values, not {_shown(key)}: {_shown(value)}")
    tags = dict(cast("list[tuple[str, str]]", pairs))
    graph.check_tags(tags, field)
    return dict(sorted(tags.items()))


def has_all(tags: Mapping[str, str], required: Mapping[str, str]) -> bool:
    return all(tags.get(key) == value for key, value in required.items())


def check_arn(value: Any, field: str) -> str:
    return _text({field: value}, field, "")


def micros(value: Any) -> int | None:
    """Microseconds of a moment as events write it: milliseconds since the epoch, or ISO 8601 with a zone."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        found = round(value * 1000) if abs(value) < LATEST else -1
    elif isinstance(value, str):
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            return None
        found = round((moment - _EPOCH) / _MICROSECOND)
    else:
        return None
    return found if 0 <= found <= LATEST else None


def day(number: int) -> str:
    """A day of UTC, by how many have passed since the epoch."""
    return (_EPOCH + datetime.timedelta(days=number)).date().isoformat()


def hour(number: int) -> str:
    """An hour of UTC, by how many have passed since the epoch, as the moment at which it began."""
    return (_EPOCH + datetime.timedelta(hours=number)).isoformat().replace("+00:00", "Z")


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


def _moment(value: Any, field: str) -> int:
    found = micros(value)
    if found is None:
        raise _invalid(
            field, f"must be milliseconds since 1970, or a time like 2026-01-31T12:00:00Z, not {_shown(value)}"
        )
    return found


def _object(value: Any, field: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _invalid(field, f"must be an object, not {_shown(value)}")
    return dict(cast("Mapping[str, Any]", value))


def _exactly(envelope: Mapping[str, Any], name: str, wanted: str, prefix: str) -> None:
    if envelope.get(name) != wanted:
        raise _invalid(f"{prefix}{name}", f"must be {wanted!r}, not {_shown(envelope.get(name))}")


def _text(values: Mapping[str, Any], name: str, parent: str) -> str:
    value = values.get(name)
    field = f"{parent}.{name}" if parent else name
    if not isinstance(value, str) or not value or "\0" in value:
        raise _invalid(field, f"must be a text that is not empty, without NUL, not {_shown(value)}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise _invalid(field, "has a lone surrogate, which is not valid text") from None
    if size > LONGEST:
        raise _invalid(field, f"has {size:,} bytes and the limit is {LONGEST}")
    return value


def _invalid(field: str, sentence: str) -> errors.InvalidInput:
    return errors.InvalidInput(f"{field} {sentence}", field=field)


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
