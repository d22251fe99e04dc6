"""Pipelines in use: items are entered, processed, begun again, looked at and moved; the engine does the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec
import uuid_utils

from ostinato import errors
from ostinato.core import allowed, codec, commands, courses, documents, filters
from ostinato.engine import scribe
from ostinato.pipelines import diagram
from ostinato.reactions import bulk, health, item_views, policies
from ostinato.reactions.item_actions import Decision, Move, Restart
from ostinato.reactions.shelved import check_item_id

AT_ONCE = 500
"""Items that are handed to the engine at the same time."""
MOST_AT_ONCE = 10_000
LONGEST = 128
"""Characters of what is taken for a place, a status or a decision."""
HELD = item_views.Wanted(held=True)


class NewItem(NamedTuple):
    """An item that is to be entered. Without an id it gets one."""

    payload: Any
    item_id: str | None = None
    hold: bool = False


class Pipelines(bulk.Many, policies.Policies):
    """The pipelines of a tenant: `app.pipelines`."""

    async def legal_moves(self, pipeline: str, version: int | None = None) -> diagram.Moves:
        return diagram.moves(await self.course(pipeline, version))

    async def health(self, pipeline: str, *, stuck_seconds: float = health.STUCK_SECONDS) -> health.Health:
        """How a pipeline does: what is where, what fails, what takes long, what is stuck and why."""
        documents.check_seconds(stuck_seconds, "stuckSeconds", item_views.LONGEST_STUCK)
        course = await self.course(pipeline)
        wanted = await self.filter(pipeline, item_views.Wanted(stuck=stuck_seconds))
        stuck = await self._shown(await self.list(wanted, most=health.MOST_STUCK))
        count = len(stuck)
        if count == health.MOST_STUCK:
            count = await self._engine.store.count_stuck_items(self._tenant, wanted)
        return await health.of_pipeline(self._engine, course, await self.counts(course), stuck, count)

    # --- items -----------------------------------------------------------------------------------------------

    async def enter(
        self,
        pipeline: str,
        payload: Any = None,
        *,
        item_id: str | None = None,
        hold: bool = False,
        actor: str | None = None,
    ) -> commands.Entered:
        """Enter an item and begin its first run, or with `hold` leave it to be processed later."""
        return (await self.enter_many(pipeline, [NewItem(payload, item_id, hold)], actor=actor))[0]

    async def enter_many(
        self, pipeline: str, new: Sequence[NewItem], *, hold: bool = False, actor: str | None = None
    ) -> list[commands.Entered]:
        """Enter many items. Each is checked before any is entered, so that a bad one changes nothing.

        Up to 500 are entered in one transaction. Of more, one that somebody else has entered meanwhile, as another, may
        be found when those before it are there: then the error says which were `entered`."""
        _check_new_items(new)
        await self._app.note(actor, "items.enter", pipeline, items=len(new))
        course = await self.course(pipeline)
        await self._check_functions(course)
        entering = [await self._entering(course, one, hold or one.hold, actor) for one in new]
        await self._check_new(entering)
        return await self._enter_all(entering)

    async def process(
        self,
        pipeline: str,
        most: int = 100,
        wanted: item_views.Wanted = HELD,
        *,
        actor: str | None = None,
    ) -> list[commands.Entered]:
        """Begin items that were held back, those that wait longest first; or go on with others that match, where they
        have got to. What is over, at work, or waits for people is left alone."""
        most = min(most, filters.MOST) if isinstance(most, int) else filters.check_most(most)  # pyright: ignore[reportUnnecessaryIsInstance]
        await self._app.note(actor, "items.process", pipeline, most=most)
        page = await self.list(await self.filter(pipeline, wanted), most=most)
        going = [item for item in page if allowed.may_go_on(await self.course(item.pipeline, item.version), item)]
        begun = [self._begin_again(item.item_id, Restart(), actor) for item in going]
        answers = await asyncio.gather(*begun, return_exceptions=True)
        return [_begun(answer) for answer in answers if not isinstance(answer, errors.NotPossible)]

    # --- what is done with one of them -------------------------------------------------------------------------

    @scribe.telling_refusals
    async def restart(
        self,
        item_id: str,
        at: str | None = None,
        *,
        only: bool = False,
        payload: Any = msgspec.UNSET,
        version: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> commands.Entered:
        """Begin an item again at a step or a status of its course; what was done before that place is kept.

        Without a place it begins at the step that it has got to. With `only`, that step is run and nothing after it.
        """
        how = Restart(at, only, payload, version, reason)
        await self._app.note(actor, "items.restart", check_item_id(item_id), at=_place(at))
        return await self._begin_again(item_id, how, actor)

    @scribe.telling_refusals
    async def enrich(self, item_id: str, at: str | None = None, *, actor: str | None = None) -> commands.Entered:
        """Go on with an item, or if there is nothing left to do, begin it again where its review would."""
        await self._app.note(actor, "items.restart", check_item_id(item_id), at=_place(at))
        item, _ = await self._item(item_id)
        course = await self.course(item.pipeline, item.version)
        if at is None and (item.step is None or allowed.is_reviewed(course, item)):
            at = next((place for review in course.reviews.values() for place in review.again.values()), None)
        return await self._begin_again(item_id, Restart(at), actor)

    @scribe.telling_refusals
    async def decide(
        self,
        item_id: str,
        decision: str,
        *,
        actor: str,
        notes: str | None = None,
        payload: Any = msgspec.UNSET,
        called: str | None = None,
    ) -> commands.Decided:
        """Decide on an item that waits for its review. What begins it again ends the run that it has."""
        how = Decision(documents.check_text(decision, "decision", LONGEST), notes, payload, called)
        await self._app.note(actor, "items.decide", check_item_id(item_id), decision=documents.short_text(decision))
        return cast("commands.Decided", await self._decide(item_id, how, actor))

    async def reviewed_by_task(self, job_id: str, task_id: str) -> str | None:
        """The item whose review this task is."""
        item_id = await self._engine.store.item_of_job(self._tenant, job_id)
        if item_id is None:
            return None
        item, _ = await self._engine.store.item(self._tenant, item_id)
        course = await self.course(item.pipeline, item.version)
        return item_id if task_id in course.reviews else None

    @scribe.telling_refusals
    async def move(
        self,
        item_id: str,
        status: str,
        *,
        payload: Any = msgspec.UNSET,
        actor: str | None = None,
        reason: str | None = None,
        called: str | None = None,
        scopes: frozenset[str] | None = None,
    ) -> commands.Entered:
        """Move an item by hand: take it for review, begin to edit it, or as its pipeline allows beside the course.

        Out of a review only those move it who may decide there: `called` is another name of `actor`, and `scopes` what
        their key may do."""
        documents.check_text(status, "status", LONGEST)
        await self._app.note(actor, "items.move", check_item_id(item_id), status=documents.short_text(status))
        return await self._move(item_id, Move(status, payload, reason, called, scopes), actor)

    @scribe.telling_refusals
    async def roll_back(self, item_id: str, *, actor: str | None = None, reason: str | None = None) -> commands.Entered:
        """Give an item up: its run ends, and what its steps did is taken back where they say how."""
        await self._app.note(actor, "items.rollBack", check_item_id(item_id))
        return await self._roll_back(item_id, reason, actor)

    async def migrate(
        self, item_id: str, version: int, *, actor: str | None = None, dry_run: bool = False
    ) -> commands.Entered:
        """Let an item go on in another version of its pipeline: in its status, or at the step that it has got to."""
        check_item_id(item_id)
        documents.check_version(version)
        if not dry_run:
            await self._app.note(actor, "items.migrate", item_id, version=version)
        return await self._migrate(item_id, version, actor, dry_run=dry_run)

    # --- inside ----------------------------------------------------------------------------------------------

    async def _entering(
        self, course: courses.Course, new: NewItem, hold: bool, actor: str | None
    ) -> commands.EnterItem:
        item_id = str(uuid_utils.uuid7()) if new.item_id is None else check_item_id(new.item_id)
        payload = self._encoded(new.payload) or codec.encode(None)
        submit = None if hold else await self._submission(course, item_id, 1, payload, actor)
        return commands.EnterItem(item_id, course.pipeline.name, course.version, payload, submit, actor)

    async def _check_new(self, entering: Sequence[commands.EnterItem]) -> None:
        commands.check_different(entering)
        for part in _parts(entering):
            known = await self._engine.store.items_by_id(self._tenant, [one.item_id for one in part])
            for one in part:
                one.check(known.get(one.item_id))

    async def _enter_all(self, entering: Sequence[commands.EnterItem]) -> list[commands.Entered]:
        answers: list[commands.Entered] = []
        for part in _parts(entering):
            try:
                answers += await self._engine.execute(commands.EnterItems(part))
            except errors.IdempotencyConflict as error:
                error.details["entered"] = [one.item_id for one in answers if one.created]
                raise
        return answers


def _place(at: str | None) -> str | None:
    return None if at is None else documents.short_text(documents.check_text(at, "at", LONGEST))


def _check_new_items(new: Any) -> None:
    for place, one in enumerate(documents.as_list(new, "items", 1, MOST_AT_ONCE)):
        if not isinstance(one, NewItem):
            raise errors.InvalidInput(
                f"items[{place}] must be a NewItem, not {documents.short(one)}", field=f"items[{place}]"
            )


def _parts(entering: Sequence[commands.EnterItem]) -> Iterator[list[commands.EnterItem]]:
    return (list(entering[start : start + AT_ONCE]) for start in range(0, len(entering), AT_ONCE))


def _begun(answer: commands.Entered | BaseException) -> commands.Entered:
    if isinstance(answer, BaseException):
        raise answer
    return answer
