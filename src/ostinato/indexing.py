"""What gets into the execution index, by the tags of its definition."""

from __future__ import annotations

import asyncio
import collections
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from ostinato import errors, options
from ostinato.core import arguments, executions, rulebook
from ostinato.store import store as store_

KNOWN = 10_000
"""How many definitions are remembered."""
KNOWN_SECONDS = 60.0
"""How long: another process may say otherwise."""
WRITTEN = "Execution Written"
"""The type of what is recorded of an execution that a rule writes to the index. Its source is the engine."""
TAGS_UNKNOWN = "tags_unknown"
NOT_TAGGED = "not_tagged"
_REASONS = {
    TAGS_UNKNOWN: "the tags of its definition are not known: give them with PUT /v1/index/definitions or "
    "`ostinato index tag`",
    NOT_TAGGED: "its definition does not have the tags of what is indexed",
}


Record = Callable[[Sequence[Mapping[str, Any]]], Awaitable[list[dict[str, Any]]]]
"""Records status changes, each once; the answer is each as it was recorded, now or before."""


class Skipped(msgspec.Struct, frozen=True, rename="camel"):
    """An execution that is not indexed, and why."""

    execution_arn: str
    code: str
    reason: str


class Indexed(msgspec.Struct, frozen=True, rename="camel"):
    """How many reports were taken, and which were not. A report that says nothing new is taken too."""

    indexed: int
    skipped: list[Skipped]


class Indexer:
    """The index of one tenant. Cheap, but keep it: it remembers the tags of definitions, and asks for each once."""

    def __init__(self, target: store_.Store, tenant: str, settings: options.EngineOptions, record: Record) -> None:
        self.store = target
        self.tenant = tenant
        self._settings = settings
        self._record = record
        self._known: collections.OrderedDict[str, tuple[float, dict[str, str] | None]] = collections.OrderedDict()
        self._asking: dict[str, asyncio.Task[dict[str, str] | None]] = {}

    async def report(self, events: Sequence[Any]) -> Indexed:
        """Take status-change events, in any order and any number of times. A bad one is refused with all others.

        Each is recorded like one that was posted: rules act on it, and a rebuild knows of it."""
        given = arguments.items(events, "events", "events")
        for n, event in enumerate(given):
            self._read(event, "" if len(given) == 1 else f"events[{n}]")
        return await self.take(await self._record(given))

    async def take(self, recorded: Sequence[Mapping[str, Any]]) -> Indexed:
        """Take status changes that were checked and recorded before."""
        taken, skipped = await self.select([self._read(event) for event in recorded])
        await self.store.index_executions(self.tenant, taken)
        return Indexed(len(taken), skipped)

    def _read(self, event: Any, at: str = "") -> executions.Reported:
        return executions.read_event(event, stages=self._settings.index_stages, at=at)

    def read_recorded(self, event: Any) -> executions.Reported | None:
        """What a recorded status change says; None if it cannot be read."""
        try:
            return self._read(event)
        except errors.InvalidInput:
            return None

    async def select(self, reported: Sequence[executions.Reported]) -> tuple[list[executions.Execution], list[Skipped]]:
        """Those to be indexed, with their tags, and those that are not."""
        await self._learn(reported)
        silent = {one.execution.state_machine_arn for one in reported if one.tags is None}
        tags_of = await self._tags(sorted(silent))
        taken: list[executions.Execution] = []
        skipped: list[Skipped] = []
        for one in reported:
            tags = one.tags if one.tags is not None else tags_of[one.execution.state_machine_arn]
            if tags is not None and executions.has_all(tags, self._settings.index_tags):
                taken.append(msgspec.structs.replace(one.execution, tags=tags))
                continue
            code = TAGS_UNKNOWN if tags is None else NOT_TAGGED
            skipped.append(Skipped(one.execution.execution_arn, code, _REASONS[code]))
        return taken, skipped

    async def tag(self, state_machine_arn: str, tags: Mapping[str, str]) -> None:
        """Say what the tags of a definition are. What was reported before is taken in by a rebuild."""
        arn = executions.check_arn(state_machine_arn, "stateMachineArn")
        checked = executions.read_tags(tags)
        await self.store.tag_definition(self.tenant, arn, checked)
        self._remember(arn, checked)

    # --- tags of definitions -----------------------------------------------------------------------------------

    async def _learn(self, reported: Sequence[executions.Reported]) -> None:
        """An event that says the tags of its definition says them for those that do not."""
        for one in reported:
            arn = one.execution.state_machine_arn
            if one.tags is not None and self._recall(arn) in (None, (None,)):
                self._remember(arn, await self.store.learn_definition(self.tenant, arn, one.tags))

    async def _tags(self, arns: Sequence[str]) -> dict[str, dict[str, str] | None]:
        """From memory, else from the database, else from the source; None if nobody knows.

        What would be skipped by what is remembered is looked up again: another process may have been told otherwise.
        """
        found: dict[str, dict[str, str] | None] = {}
        for arn in arns:
            tags = (self._recall(arn) or (None,))[0]
            if tags is not None and executions.has_all(tags, self._settings.index_tags):
                found[arn] = tags
        missing = [arn for arn in arns if arn not in found]
        if missing:
            stored = await self.store.definition_tags(self.tenant, missing)
            for arn, tags in stored.items():
                self._remember(arn, tags)
            found |= stored
            unknown = [arn for arn in missing if arn not in stored]
            found |= dict(zip(unknown, await asyncio.gather(*map(self._ask, unknown)), strict=True))
        return found

    async def _ask(self, arn: str) -> dict[str, str] | None:
        """Those who want to know at the same time share one question, and its answer may be there by now."""
        if (known := self._recall(arn)) is not None:
            return known[0]
        asking = self._asking.get(arn)
        if asking is None:
            asking = self._asking[arn] = asyncio.create_task(self._ask_source(arn))
            asking.add_done_callback(lambda _: self._asking.pop(arn, None))
        return await asyncio.shield(asking)

    async def _ask_source(self, arn: str) -> dict[str, str] | None:
        source = self._settings.index_tag_source
        told = None if source is None else await source(arn)
        tags = None if told is None else executions.read_tags(told)
        if tags is not None:
            tags = await self.store.learn_definition(self.tenant, arn, tags)
        self._remember(arn, tags)
        return tags

    def _recall(self, arn: str) -> tuple[dict[str, str] | None] | None:
        known = self._known.get(arn)
        if known is None or time.monotonic() > known[0]:
            return None
        return (known[1],)

    def _remember(self, arn: str, tags: dict[str, str] | None) -> None:
        self._known[arn] = (time.monotonic() + KNOWN_SECONDS, tags)
        self._known.move_to_end(arn)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)


def written(detail: Any) -> dict[str, Any]:
    """What is recorded of an execution that a rule writes."""
    return {"source": rulebook.SOURCE, "detail-type": WRITTEN, "detail": detail}


def is_written(event: Mapping[str, Any]) -> bool:
    """Whether it is that. Nobody else can say so: the source is not for others."""
    return event.get("source") == rulebook.SOURCE and event.get("detail-type") == WRITTEN
