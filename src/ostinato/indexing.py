"""What gets into the execution index, by the tags of its definition."""

from __future__ import annotations

import asyncio
import collections
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato import errors, options
from ostinato.core import arguments, executions, rulebook
from ostinato.store import store as store_

if TYPE_CHECKING:
    from ostinato import index_tags

log = logging.getLogger("ostinato")
KNOWN = 10_000
"""How many definitions are remembered."""
KNOWN_SECONDS = 60.0
"""How long: another process may say otherwise."""
FAILED_SECONDS = 5.0
"""How long it is not asked again for tags that could not be had."""
WRITTEN = "Execution Written"
"""The type of what is recorded of an execution that a rule writes to the index. Its source is the engine."""
TAGS_UNKNOWN = "tags_unknown"
NOT_TAGGED = "not_tagged"
_REASONS = {
    TAGS_UNKNOWN: "the tags of its definition are not known: give them with PUT /v1/index/definitions or "
    "`ostinato index tag`, then rebuild the index",
    NOT_TAGGED: "its definition does not have the tags of what is indexed",
}


Record = Callable[[Mapping[str, Mapping[str, Any]]], Awaitable[dict[str, dict[str, Any] | errors.InvalidInput]]]
"""Records status changes, by what errors call them, each once; the answer is each as it was recorded, now or before, or
what is wrong with it."""


class Skipped(msgspec.Struct, frozen=True, rename="camel"):
    """An execution that is not indexed, and why."""

    execution_arn: str
    code: str
    reason: str


class Refused(msgspec.Struct, frozen=True, rename="camel"):
    """A report that is wrong: which of them, in which field, and why."""

    position: int
    code: str
    field: str | None
    reason: str


class Indexed(msgspec.Struct, frozen=True, rename="camel"):
    """How many reports were taken, and which were not. A report that says nothing new is taken too."""

    indexed: int
    skipped: list[Skipped]
    refused: list[Refused] = []


class Indexer:
    """The index of one tenant. Cheap, but keep it: it remembers the tags of definitions, and asks for each once."""

    def __init__(self, target: store_.Store, tenant: str, settings: options.EngineOptions, record: Record) -> None:
        self.store = target
        self.tenant = tenant
        self._settings = settings
        self._record = record
        self._known: collections.OrderedDict[str, tuple[float, dict[str, str] | None]] = collections.OrderedDict()
        self._endpoint = _endpoint(settings, tenant)
        self._asking: dict[str, asyncio.Task[dict[str, str] | None]] = {}

    async def report(self, events: Sequence[Any]) -> Indexed:
        """Take status-change events, in any order and any number of times. A wrong one is refused, and the others are
        taken; only if all are wrong is that an error.

        Each is recorded like one that was posted: rules act on it, and a rebuild knows of it."""
        given = arguments.items(events, "events", "events")
        names = ["event"] if len(given) == 1 else [f"events[{n}]" for n in range(len(given))]
        told: dict[str, Any] = {}
        for name, event in zip(names, given, strict=True):
            try:
                self._read(event, "" if len(given) == 1 else name)
                told[name] = event
            except errors.InvalidInput as error:
                told[name] = error
        told |= await self._record({name: one for name, one in told.items() if not isinstance(one, Exception)})
        wrong = {n: one for n, one in enumerate(told.values()) if isinstance(one, errors.InvalidInput)}
        if wrong and len(wrong) == len(given):
            raise wrong[0]
        taken = await self.take([one for one in told.values() if not isinstance(one, Exception)])
        refused = [Refused(n, one.code, one.details.get("field"), one.message) for n, one in wrong.items()]
        return msgspec.structs.replace(taken, refused=refused)

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

    async def select(
        self, reported: Sequence[executions.Reported], chosen: Mapping[str, executions.Execution] = {}
    ) -> tuple[list[executions.Execution], list[Skipped]]:
        """Those to be indexed, with their tags, and those that are not. Some were `chosen` before, by ARN."""
        await self._learn(reported)
        silent = {one.execution.state_machine_arn for one in reported if one.tags is None}
        tags_of = await self._tags(sorted(silent))
        taken: list[executions.Execution] = []
        left: list[tuple[executions.Execution, str]] = []
        for one in reported:
            tags = one.tags if one.tags is not None else tags_of[one.execution.state_machine_arn]
            if tags is not None and executions.has_all(tags, self._settings.index_tags):
                taken.append(msgspec.structs.replace(one.execution, tags=tags))
            else:
                left.append((one.execution, TAGS_UNKNOWN if tags is None else NOT_TAGGED))
        known = await self._known_tags(
            [*chosen.values(), *taken] if left else (), [one.execution_arn for one, _ in left]
        )
        skipped: list[Skipped] = []
        for execution, code in left:
            arn = execution.execution_arn
            if arn in known:
                taken.append(msgspec.structs.replace(execution, tags=known[arn]))
            else:
                skipped.append(Skipped(arn, code, _REASONS[code]))
        return taken, skipped

    async def _known_tags(
        self, taken: Sequence[executions.Execution], arns: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """Of those that are in the index, or are about to be: with the tags that they got in by. What becomes of them
        belongs there, whatever the tags of their definition are now."""
        found = await self.store.indexed_tags(self.tenant, sorted(set(arns))) if arns else {}
        return found | {one.execution_arn: one.tags for one in taken}

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
        """What it tells is kept. What is assumed of a definition that it does not know is not."""
        source = self._settings.index_tag_source
        told = None if source is None else await source(arn)
        tags = None if told is None else executions.read_tags(told)
        if source is None and self._endpoint is not None:
            try:
                tags = await self._endpoint.tags_of(arn)
            except errors.OstinatoError as error:  # those who report need not wait for it: it is asked again soon
                log.warning("the tags of %s cannot be asked for: %s", arn, error)
                self._remember(arn, None, FAILED_SECONDS)
                return None
        if tags is not None:
            tags = await self.store.learn_definition(self.tenant, arn, tags)
        elif (assumed := self._settings.index_default_tags) is not None:
            tags = executions.read_tags(assumed)
        self._remember(arn, tags)
        return tags

    def _recall(self, arn: str) -> tuple[dict[str, str] | None] | None:
        known = self._known.get(arn)
        if known is None or time.monotonic() > known[0]:
            return None
        return (known[1],)

    def _remember(self, arn: str, tags: dict[str, str] | None, seconds: float = KNOWN_SECONDS) -> None:
        self._known[arn] = (time.monotonic() + seconds, tags)
        self._known.move_to_end(arn)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)


def _endpoint(settings: options.EngineOptions, tenant: str) -> index_tags.Endpoint | None:
    """Loaded where there is one: whoever only lists executions need not wait for it."""
    if settings.index_tags_url is None:
        return None
    from ostinato import index_tags

    return index_tags.Endpoint(settings.index_tags_url, tenant, settings.webhook_networks)


def written(detail: Any) -> dict[str, Any]:
    """What is recorded of an execution that a rule writes."""
    return {"source": rulebook.SOURCE, "detail-type": WRITTEN, "detail": detail}


def is_written(event: Mapping[str, Any]) -> bool:
    """Whether it is that. Nobody else can say so: the source is not for others."""
    return event.get("source") == rulebook.SOURCE and event.get("detail-type") == WRITTEN
