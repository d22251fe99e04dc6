"""Bodies and answers about gates, rules, events and external tasks. OpenAPI shows them all."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

import msgspec

from ostinato.api.models import ID_PATTERN, Answer, Body
from ostinato.core import codec, commands, moments
from ostinato.core.retry import said
from ostinato.gates import definition as gate_definition
from ostinato.gates import status as gate_status
from ostinato.reactions import events, gates
from ostinato.rules import definition as rule_definition
from ostinato.store import definitions
from ostinato.store import gates as gate_keys

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
KEY_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]{1,256}$"
MOST_ARRIVALS = 1000

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=1024, pattern=r"^[^\x00]*$")]
Number = Annotated[int, msgspec.Meta(ge=1, lt=2**31)]


# --- definitions -------------------------------------------------------------------------------------------------


class GateDefinition(gate_definition.Gate, frozen=True, kw_only=True):
    """A gate as its author writes it. The name is that of the path; a member may be just a name."""

    name: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    members: list[gate_definition.Member | str] | Literal["dynamic"]  # pyright: ignore[reportIncompatibleVariableOverride]


class RuleDefinition(rule_definition.Rule, frozen=True, kw_only=True):
    """A rule as its author writes it. The name is that of the path."""

    name: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class Defined(Answer):
    """What was saved, and as which version of it. The same definition again is the same version."""

    name: str
    version: int


class Removed(Answer):
    name: str


class StoredDefinition(Answer):
    """A definition as it is kept, in one version."""

    name: str
    version: int
    created_at: datetime.datetime
    created_by: str | None
    definition: dict[str, Any]


class GateSummary(Answer):
    """A gate without the rest of its definition."""

    name: str
    version: int
    description: str | None
    created_at: datetime.datetime
    created_by: str | None


class RuleSummary(GateSummary):
    """A rule without the rest of its definition."""

    enabled: bool


class Gates(Answer):
    gates: list[GateSummary]


class Rules(Answer):
    rules: list[RuleSummary]


class Version(Answer):
    """One version of a definition; `removed` says that with it the definition was taken away."""

    version: int
    removed: bool
    created_at: datetime.datetime
    created_by: str | None


class Versions(Answer):
    """The last hundred, newest first."""

    versions: list[Version]


class RollBack(Body):
    """Which version is to be the newest again."""

    version: Number


class Checked(Answer):
    """The definition as it was understood."""

    definition: dict[str, Any]


class Matched(Answer):
    """The rules that an event would concern."""

    rules: list[str]


# --- gates -------------------------------------------------------------------------------------------------------


class Arrival(Body):
    """A member reports. Status and correlation id may be in its data as well."""

    member: Annotated[str, said(pattern=ID_PATTERN)]
    data: dict[str, Any] | None = None
    status: Annotated[str, said(minLength=1, maxLength=64)] | None = None
    correlation_id: Annotated[str, said(pattern=ID_PATTERN)] | None = None


Arrivals = Annotated[list[Arrival], msgspec.Meta(min_length=1, max_length=MOST_ARRIVALS)]


class Arrived(Answer):
    """What became of an arrival, and how many have come. `opened` says that this very one has opened the gate."""

    member: str
    outcome: Literal["arrived", "failed", "duplicate", "late"]
    opened: bool
    job_id: str
    completed_count: int
    expected_count: int


class ArrivalOutcome(Answer):
    """What became of one arrival of a list: an outcome, or the code and the sentence of why there is none."""

    member: str
    outcome: Literal["arrived", "failed", "duplicate", "late"] | None
    opened: bool
    code: str | None = None
    detail: str | None = None
    field: str | None = None


class ArrivalOutcomes(Answer):
    """One outcome for each arrival, in their order, and how many have come. Without any outcome there is no job."""

    outcomes: list[ArrivalOutcome]
    job_id: str | None
    completed_count: int | None
    expected_count: int | None


class GateKey(Answer):
    """A key of a gate, and how the gate stands for it."""

    key: str
    job_id: str
    status: gate_status.State
    completed_count: int
    expected_count: int
    since: datetime.datetime
    ended_at: datetime.datetime | None
    """When it failed or expired, or all that it triggered was done."""


class GateKeyPage(Answer):
    """Keys, the last ones first. Without `nextCursor` this was the last page."""

    keys: list[GateKey]
    next_cursor: str | None


class OpenGate(Body):
    """Why the gate is opened without those who are missing, for the history."""

    reason: Reason


class GateOpened(Answer):
    """Those who were missing."""

    missing: list[str]


class GateReset(Answer):
    """The job that stays behind, as history."""

    job_id: str


class FreezeGate(Body):
    """Who is expected for a key of a gate whose members are `dynamic`. With nobody, it opens at once."""

    members: Annotated[list[gate_definition.Member | str], said(maxItems=gate_definition.MOST_MEMBERS)]
    correlation_id: Annotated[str, msgspec.Meta(pattern=ID_PATTERN + r"(?!\n)")] | None = None


# --- events ------------------------------------------------------------------------------------------------------

_Text = Annotated[str, said(minLength=1, maxLength=events.LONGEST_ID)]


class Event(msgspec.Struct):
    """As Amazon EventBridge delivers it. Other fields are kept, and can be matched."""

    source: _Text
    detail_type: _Text = msgspec.field(name="detail-type")
    detail: dict[str, Any] = {}
    id: _Text | None = None
    """With the source it says which event this is: the same again is a duplicate. Without it, the event is new."""


class Entry(msgspec.Struct):
    """As `PutEvents` of Amazon EventBridge takes it. The detail is JSON in a text."""

    source: _Text = msgspec.field(name="Source")
    detail_type: _Text = msgspec.field(name="DetailType")
    detail: str = msgspec.field(name="Detail", default="{}")


class PutEvents(msgspec.Struct):
    """The body of `PutEvents`."""

    entries: Annotated[list[Entry], said(minItems=1, maxItems=events.MOST_EVENTS)] = msgspec.field(name="Entries")


class CloudEvent(msgspec.Struct):
    """CloudEvents 1.0. The type becomes the `detail-type`, the data the `detail`; all but the data is `cloudevent`."""

    specversion: Literal["1.0"]
    id: _Text
    source: _Text
    type: _Text
    time: _Text | None = None
    data: Any = None


_several = said(minItems=1, maxItems=events.MOST_EVENTS)
Events = Annotated[list[Event], _several]
CloudEvents = Annotated[list[CloudEvent], _several]


class ReceivedEvents(Answer):
    """What became of each event, in their order."""

    events: list[events.Received]


# --- external tasks ----------------------------------------------------------------------------------------------


class CompleteTask(Body):
    """What an external task has come to."""

    output: Any = None


class FailTask(Body):
    """Why an external task has failed."""

    message: Annotated[str, msgspec.Meta(min_length=1, max_length=100_000)]
    error_type: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] = "ExternalFailure"


# --- from what is stored -----------------------------------------------------------------------------------------


def document(found: definitions.Definition) -> dict[str, Any]:
    return codec.decode(found.document or codec.EMPTY_OBJECT)


def definition(found: definitions.Definition) -> StoredDefinition:
    at = moments.moment(found.created_at)
    return StoredDefinition(found.name, found.version, at, found.created_by, document(found))


def gate_summary(found: definitions.Definition) -> GateSummary:
    at = moments.moment(found.created_at)
    return GateSummary(found.name, found.version, document(found).get("description"), at, found.created_by)


def rule_summary(found: definitions.Definition) -> RuleSummary:
    enabled = document(found).get("enabled", True)
    return RuleSummary(**msgspec.structs.asdict(gate_summary(found)), enabled=enabled)


def versions(found: list[definitions.Definition]) -> Versions:
    return Versions([Version(v.version, v.document is None, moments.moment(v.created_at), v.created_by) for v in found])


def arrived(member: str, answer: commands.Arrived, counts: gate_keys.Counts) -> Arrived:
    return Arrived(member, answer.outcome, answer.opened, answer.job_id, counts.arrived, counts.expected)


def gate_key(found: gate_keys.GateKey) -> GateKey:
    return GateKey(
        key=found.key,
        job_id=found.job_id,
        status=gates.state_of(found),
        completed_count=found.arrived,
        expected_count=found.expected,
        since=moments.moment(found.created_at),
        ended_at=None if found.finished_at is None else moments.moment(found.finished_at),
    )
