"""What is done with items of pipelines. With `dry_run` it is only found out whether it could be done."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from ostinato import errors
from ostinato import secrets as secrets_
from ostinato.core import allowed, approvals, codec, commands, courses, documents, graph, items, states
from ostinato.pipelines import run
from ostinato.playbooks import job
from ostinato.reactions import definitions, playbooks, shelved
from ostinato.reactions.shelved import check_item_id


class Restart(msgspec.Struct, frozen=True):
    """Where and how an item begins again: at a step or a status of its course, or at the step that it has got to."""

    at: str | None = None
    only: bool = False
    """Run that step, and nothing after it."""
    payload: Any = msgspec.UNSET
    version: int | None = None
    reason: str | None = None
    reviewed: bool = False
    """Whoever began it did so by deciding in its review."""


class Decision(msgspec.Struct, frozen=True):
    """What somebody says in the review of an item. `called` is another name that they may be asked by."""

    decision: str
    notes: str | None = None
    payload: Any = msgspec.UNSET
    called: str | None = None


class Move(msgspec.Struct, frozen=True):
    """Where to an item is moved by hand."""

    status: str
    payload: Any = msgspec.UNSET
    reason: str | None = None
    called: str | None = None
    scopes: frozenset[str] | None = None


class Actions(shelved.Shelved):
    def __init__(self, app: definitions.Application) -> None:
        super().__init__(app)
        self._playbooks = playbooks.Playbooks(app)

    async def _begin_again(
        self, item_id: str, how: Restart, actor: str | None, *, dry_run: bool = False
    ) -> commands.Entered:
        approvals.check_notes(how.reason, "reason")
        item, payload = await self._item(item_id)
        course = await self.course(item.pipeline, item.version if how.version is None else how.version)
        index = _place(course, item, how.at)
        stop = course.stops[index]
        if how.only and stop.kind != "step":
            raise errors.InvalidInput(f"{stop.name!r} is not a step: only a step can be run alone", field="at")
        await self._check_functions(course)
        changed = self._encoded(how.payload)
        kept = await self._kept(course, item, index)
        allowed.begin(course, item, stop.codes[0])
        given = payload if changed is None else changed
        _check_approved(course, item, kept, given)
        if dry_run:
            allowed.rest(item, allowed.at_work(item))
            return _as_it_is(item)
        only = stop.name if how.only else None
        command = commands.StartRun(
            item.item_id,
            item.pipeline,
            item.run,
            await self._submission(course, item.item_id, item.run + 1, given, actor, kept, only),
            kept,
            course.names[stop.codes[0]],
            course.version,
            changed,
            actor,
            secrets_.hide_in_document(how.reason),
            how.reviewed,
        )
        return await self._engine.execute(command)

    async def _decide(
        self, item_id: str, how: Decision, actor: str, *, dry_run: bool = False
    ) -> commands.Decided | commands.Entered:
        item, _ = await self._item(item_id)
        course = await self.course(item.pipeline, item.version)
        review = course.reviews.get(item.step or "")
        if review is None or item.job_id is None:
            raise errors.NotPossible(
                f"item {item_id!r} is {allowed.named(course, item.status)}: nobody is asked about it now",
                itemId=item_id,
            )
        approvals.check_notes(how.notes)
        decisions = run.asked(review, item_id).decisions
        if how.decision not in decisions:
            raise errors.InvalidInput(
                f"{documents.short(how.decision)} is no decision in {review.review!r}: use {', '.join(decisions)}",
                field="decision",
            )
        edited = self._encoded(how.payload)
        if edited is not None and not review.allow_edit:
            raise errors.InvalidInput(
                f"payload must be left out: {review.review!r} does not allow to edit it", field="payload"
            )
        if dry_run or how.decision in review.again:
            await self._check_may_decide(item.job_id, review, actor, how.called)
            allowed.ask(course, item)
        again = review.again.get(how.decision)
        if again is not None:
            restart = Restart(again, payload=how.payload, reason=how.notes, reviewed=True)
            entered = await self._begin_again(item_id, restart, actor, dry_run=dry_run)
            return entered if dry_run else commands.Decided(how.decision, False, 0, review.quorum, states.CANCELLED)
        if dry_run:
            return _as_it_is(item)
        notes = secrets_.hide_in_document(how.notes)
        command = commands.Decide(item.job_id, review.review, how.decision, actor, notes, edited, called=how.called)
        return await self._engine.execute(command)

    async def _check_may_decide(self, job_id: str, review: courses.Review, actor: str, called: str | None) -> None:
        row, _ = await self._engine.store.approval(self._tenant, job_id, review.review, None)
        if row.state != approvals.WAITING:
            raise errors.ApprovalDecided(
                f"{review.title or review.review!r} is no longer waiting: it is {approvals.shown(row.state)}",
                state=row.state,
            )
        approvals.check_may_decide(
            approvals.read(row.document),
            escalated=row.escalated_at is not None,
            submitted_by=row.submitted_by,
            actor=approvals.check_actor(actor),
            called=called,
        )

    async def _move(self, item_id: str, how: Move, actor: str | None, *, dry_run: bool = False) -> commands.Entered:
        approvals.check_notes(how.reason, "reason")
        item, _ = await self._item(item_id)
        allowed.move(await self.course(item.pipeline, item.version), item, how.status)
        given = self._encoded(how.payload)
        if dry_run:
            return _as_it_is(item)
        reason = secrets_.hide_in_document(how.reason)
        return await self._engine.execute(
            commands.MoveItem(item_id, how.status, actor, reason, given, how.called, how.scopes)
        )

    async def _roll_back(
        self, item_id: str, reason: str | None, actor: str | None, *, dry_run: bool = False
    ) -> commands.Entered:
        approvals.check_notes(reason, "reason")
        item, _ = await self._item(item_id)
        allowed.give_up(await self.course(item.pipeline, item.version), item)
        if dry_run:
            allowed.rest(item, allowed.at_work(item))
            return _as_it_is(item)
        return await self._engine.execute(commands.RollBack(item_id, actor, secrets_.hide_in_document(reason)))

    async def _migrate(
        self, item_id: str, version: int, actor: str | None, *, dry_run: bool = False
    ) -> commands.Entered:
        item, _ = await self._item(item_id)
        course = await self.course(item.pipeline, version)
        allowed.migrate(await self.course(item.pipeline, item.version), course, item)
        if item.open and item.step in item.standing():
            how = Restart(item.step, version=version, reason=f"version {version}")
            return await self._begin_again(item_id, how, actor, dry_run=dry_run)
        if dry_run:
            return _as_it_is(item)
        return await self._engine.execute(commands.MigrateItem(item.item_id, item.pipeline, item.run, version, actor))

    # --- inside ----------------------------------------------------------------------------------------------

    async def _item(self, item_id: str) -> tuple[items.Item, bytes]:
        return await self._engine.store.item(self._tenant, check_item_id(item_id))

    def _encoded(self, payload: Any) -> bytes | None:
        if payload is msgspec.UNSET:
            return None
        return secrets_.hide_in_payload(codec.encode(payload, "payload", self._engine.max_payload_bytes))

    async def _submission(
        self,
        course: courses.Course,
        item_id: str,
        number: int,
        payload: bytes,
        actor: str | None,
        kept: Mapping[str, bytes | None] = {},
        only: str | None = None,
    ) -> commands.Submit:
        agents = await self._agents(course, payload)
        spec = run.spec(course, item_id, agents=agents, kept=kept, only=only)
        about = run.given(course, item_id, number, payload)
        self._engine.choose_queues(spec.tasks)
        inputs = run.inputs(spec, about, payload, agents)
        return self._engine.belonging(lambda: commands.Submit(run.job_id(item_id, number), spec, inputs, actor))()

    async def _kept(self, course: courses.Course, item: items.Item, index: int) -> dict[str, bytes | None]:
        """What of the last run is not done again by who begins at this place, with its result: what comes before it,
        where None is for a step that is optional and had none, and what is done of that which runs beside it."""
        before, beside = course.before(index), course.beside(index)
        outputs = {} if item.job_id is None else await self._engine.store.outputs(self._tenant, item.job_id)
        found = {n: codec.encode(output) for n, output in outputs.items() if not item.is_(courses.UNDONE, n)}
        kept = {name: found.get(name) for name in before}
        for name in beside:
            if name in found or (item.has_ended(name) and item.may_lack(course, name)):
                kept[name] = found.get(name)
        missing = allowed.lacking(course, item, index, found)
        if missing:
            raise errors.NotPossible(
                f"item {item.item_id!r} cannot begin at {course.stops[index].name!r}: "
                f"{', '.join(missing)} of it is not done, or was taken back",
                itemId=item.item_id,
            )
        return kept

    async def _check_functions(self, course: courses.Course) -> None:
        """Refuse a pipeline whose functions nobody has, or that names agents that are not defined."""
        spec = run.spec(course, "item", agents=await self._agents(course, b"null"))
        await self._engine.check_functions([task for task in spec.tasks if not task.name.startswith(graph.RESERVED)])

    async def _agents(self, course: courses.Course, payload: bytes) -> dict[str, run.Work]:
        """How the agents of a pipeline do its steps, as they are defined now."""
        found: dict[str, run.Work] = {}
        for name, step in course.steps.items():
            if step.agent is not None:
                agent, version = await self._playbooks.agents.get(step.agent)
                about = (course.pipeline.name, course.version, name, agent, version)
                given = functools.partial(job.of_step, *about, payload=payload.decode(), reviews=list(course.reviews))
                found[name] = run.Work(job.function_of(agent), job.queue_of(agent), agent.timeout, given)
        return found


def _check_approved(course: courses.Course, item: items.Item, kept: Mapping[str, bytes | None], payload: bytes) -> None:
    """What was approved is approved; what has become of it since then is not."""
    for review in course.reviews:
        decided = kept.get(review)
        if decided is not None and codec.decode(decided).get("payload") != codec.decode(payload):
            raise errors.NotPossible(
                f"item {item.item_id!r} is not what was approved in {review!r} any more: begin there, or before it",
                itemId=item.item_id,
            )


def _on_the_way(course: courses.Course, item: items.Item, index: int) -> int:
    """What an item has got to, or a status before it that has to be passed first."""
    first = index
    while first > 0 and not allowed.follows(course, item, course.stops[first]):
        if course.stops[first - 1].kind != "status":
            return index
        first -= 1
    return first


def _as_it_is(item: items.Item) -> commands.Entered:
    return commands.Entered(item.item_id, item.job_id, item.status, False)


def _place(course: courses.Course, item: items.Item, at: str | None) -> int:
    wanted = at or item.step or course.names[course.initial]
    for index, stop in enumerate(course.stops):
        if stop.name == wanted:
            return index if at else _on_the_way(course, item, index)
    places = [stop.name for stop in course.stops]
    raise errors.InvalidInput(
        f"pipeline {item.pipeline!r} has no step or status {documents.short(wanted)} to begin at: "
        f"{documents.nearest(wanted, places)}its places are {', '.join(places)}",
        field="at",
    )
