"""Bodies and answers about pipelines and their items. OpenAPI shows them all."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ostinato.api import reacting
from ostinato.api.models import Answer, Body, Id, Text
from ostinato.core import approvals, commands, courses, filters, retry
from ostinato.reactions import bulk, item_views, policies, shelved
from ostinato.store import definitions

ITEM_PATTERN = rf"^[A-Za-z0-9][A-Za-z0-9_.-]{{0,{shelved.LONGEST_ID - 1}}}$"
STEP_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"
MOST_ITEMS = 1000

ItemId = Annotated[str, msgspec.Meta(pattern=ITEM_PATTERN + r"(?!\n)")]
Place = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[^\x00]*$")]
Count = Annotated[int, msgspec.Meta(ge=1, le=filters.MOST)]
Notes = Annotated[str, msgspec.Meta(max_length=approvals.LONGEST_NOTES, pattern=r"^[^\x00]*$")]

# --- definitions -------------------------------------------------------------------------------------------------


class PipelineDefinition(courses.Pipeline, frozen=True, kw_only=True):
    """A pipeline as its author writes it. The name is that of the path."""

    name: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class PipelineSummary(reacting.GateSummary):
    """A pipeline without the rest of its definition."""

    statuses: int
    steps: list[str]
    reviews: list[str]


class Pipelines(Answer):
    pipelines: list[PipelineSummary]


def pipeline_summary(found: definitions.Definition) -> PipelineSummary:
    course = courses.decode(found.document or b"", found.version)
    common = msgspec.structs.asdict(reacting.gate_summary(found))
    return PipelineSummary(**common, statuses=len(course.names), steps=list(course.steps), reviews=list(course.reviews))


class RetryPolicy(Body):
    """How often and how soon a step is tried again. What is left out is as in pipelines that do not say."""

    max_attempts: Annotated[int, retry.said(minimum=1, maximum=retry.MOST_ATTEMPTS)] = courses.RETRY.max_attempts
    base_delay: Annotated[float, retry.said(minimum=0, exclusiveMaximum=retry.LONGEST)] = courses.RETRY.base_delay
    multiplier: Annotated[float, retry.said(minimum=1)] = courses.RETRY.multiplier
    max_delay: Annotated[float, retry.said(minimum=0, exclusiveMaximum=retry.LONGEST)] | None = None
    """86,400 or `baseDelay`, whichever is longer, if left out."""
    jitter: Annotated[float, retry.said(minimum=0, maximum=1)] = courses.RETRY.jitter

    def policy(self) -> retry.Retry:
        longest = max(courses.RETRY.max_delay, self.base_delay) if self.max_delay is None else self.max_delay
        return retry.Retry(self.max_attempts, self.base_delay, self.multiplier, longest, self.jitter)


class Policies(Answer):
    """In the order of the course."""

    policies: list[policies.PolicyView]


# --- items -------------------------------------------------------------------------------------------------------


class EnterItem(Body):
    """An item that is to be entered; without an id it gets one. With `hold` nothing is done with it until it is
    processed."""

    payload: Any = None
    item_id: ItemId | None = None
    hold: bool = False


EnterItems = Annotated[list[EnterItem], msgspec.Meta(min_length=1, max_length=MOST_ITEMS)]


class Entered(Answer):
    """An item that was entered, or begun; `created` is false if it was there before."""

    item_id: str
    job_id: str | None
    status: str
    code: int
    created: bool


class EnteredItems(Answer):
    """In their order."""

    items: list[Entered]


class ItemPage(Answer):
    """Items. Without `nextCursor` this was the last page."""

    items: list[item_views.ItemView]
    next_cursor: str | None


class HistoryPage(Answer):
    """The moves of an item, in order. `nextAfter`, if not null, is `after` for the next page."""

    moves: list[item_views.ItemMove]
    next_after: int | None


class Restart(Body):
    """Where an item begins again: at a step or a status; at what it has got to if left out. What was done before that
    place is kept. With `only`, nothing is done after that step; a `payload` replaces the one it had."""

    at: Place | None = None
    only: bool = False
    payload: Any = msgspec.UNSET
    version: reacting.Number | None = None
    reason: Text | None = None


class Decision(Body):
    """What somebody decides in the review of an item. They are who the key says they are."""

    decision: Id
    notes: Notes | None = None
    payload: Any = msgspec.UNSET


class MoveItem(Body):
    """Where to an item is moved by hand, as its review or its pipeline allows."""

    status: Place
    payload: Any = msgspec.UNSET
    reason: Text | None = None


class Migrate(Body):
    """The version in which an item is to go on. With `dryRun` it is only said whether it can."""

    version: reacting.Number
    dry_run: bool = False


class EnrichItem(Body):
    """Which item, and where to begin; where it has got to, or where its review would begin again, if left out."""

    item_id: ItemId
    at: Place | None = None


class EnrichStep(Body):
    """Which step of which item."""

    item_id: ItemId
    step: Place


class ItemFilter(Body):
    """One of `status`, `stuck`, `retrying` and `held`. Without any of them, all items."""

    status: Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[^\x00]*$")] | None = None
    """By name, or by code."""
    stuck: Annotated[float, msgspec.Meta(gt=0, le=1e9)] | None = None
    """Not over, and in their status for more than this many seconds."""
    retrying: bool = False
    held: bool = False

    def wanted(self) -> item_views.Wanted:
        return item_views.Wanted(self.status, self.stuck, self.retrying, self.held)


class Process(Body):
    """How many items to go on with, those that wait longest first, and which: those that are held back if left out."""

    most: Count = 100
    filter: ItemFilter = msgspec.field(default_factory=lambda: ItemFilter(held=True))


class ProcessQueue(Process, kw_only=True):
    """Of which pipeline, how many, and which."""

    pipeline: Annotated[str, msgspec.Meta(pattern=reacting.NAME_PATTERN + r"(?!\n)")]


class Bulk(Body):
    """One action on all items that match; `dryRun`, which is the default, says what would become of each."""

    action: bulk.Action
    filter: ItemFilter = msgspec.field(default_factory=ItemFilter)
    dry_run: bool = True
    most: Count = 100
    at: Place | None = None
    only: bool | None = None
    decision: Id | None = None
    notes: Notes | None = None
    status: Place | None = None
    version: reacting.Number | None = None
    reason: Text | None = None

    def what(self) -> bulk.Bulk:
        return bulk.Bulk(
            action=self.action,
            at=self.at,
            only=self.only,
            decision=self.decision,
            notes=self.notes,
            status=self.status,
            version=self.version,
            reason=self.reason,
        )


def entered(course: courses.Course, found: commands.Entered) -> Entered:
    name = course.names.get(found.status, str(found.status))
    return Entered(found.item_id, found.job_id, name, found.status, found.created)
