"""One action on many items, chosen by a filter: first to see what it would come to, then in earnest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, get_args

import msgspec

from ostinato import errors
from ostinato.core import commands, documents, filters
from ostinato.reactions import item_actions, item_views

Action = Literal["restart", "decide", "migrate", "roll-back", "move"]
ACTIONS: Final[tuple[str, ...]] = get_args(Action)
NEEDS: Final = {"decide": "decision", "migrate": "version", "move": "status"}
"""What an action cannot do without."""
TAKES: Final = {
    "restart": ("at", "only", "reason"),
    "decide": ("decision", "notes"),
    "migrate": ("version",),
    "roll-back": ("reason",),
    "move": ("status", "reason"),
}
REFUSED: Final = (errors.NotPossible, errors.InvalidInput, errors.NotFound, errors.Forbidden)
"""What may be said of one item without ending what is done with the others."""


class Bulk(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What is to be done with each item."""

    action: Action
    at: str | None = None
    only: bool | None = None
    decision: str | None = None
    notes: str | None = None
    status: str | None = None
    version: int | None = None
    reason: str | None = None

    def check(self) -> None:
        """Refuse what the action cannot do without, and what means nothing to it."""
        needed = NEEDS.get(self.action)
        if needed is not None and getattr(self, needed) is None:
            raise errors.InvalidInput(f"{self.action} needs {needed}: say which", field=needed)
        for name in ("at", "only", "decision", "notes", "status", "version", "reason"):
            if getattr(self, name) is not None and name not in TAKES[self.action]:
                takes = ", ".join(TAKES[self.action])
                raise errors.InvalidInput(f"{self.action} does not take {name}: it takes {takes}", field=name)


class Outcome(msgspec.Struct, frozen=True, rename="camel"):
    """What becomes, or would become, of one item. `status` and `code` are those that it had before."""

    item_id: str
    status: str
    code: int
    outcome: Literal["done", "possible", "refused"]
    error_code: str | None = None
    detail: str | None = None


class Done(msgspec.Struct, frozen=True, rename="camel"):
    """What was done, or with `dryRun` would be: how many items, and each of them with its outcome."""

    dry_run: bool
    action: Action
    matched: int
    possible: int
    """Of those that matched; the others are refused, and say why."""
    more: bool
    """More items match than were looked at: do it again when these are done."""
    items: list[Outcome]


Act = Callable[[str], Awaitable[Any]]


class Many(item_actions.Actions, item_views.Looking):
    async def bulk(
        self,
        pipeline: str,
        wanted: item_views.Wanted,
        what: Bulk,
        *,
        dry_run: bool = True,
        most: int = 100,
        actor: str,
        called: str | None = None,
        scopes: frozenset[str] | None = None,
    ) -> Done:
        """Do something with all items that match, or find out what would become of each."""
        if not isinstance(what, Bulk):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.InvalidInput(f"what must be a Bulk, not {documents.short(what)}", field="what")
        if not dry_run:
            await self._app.note(actor, "items.bulk", pipeline, does=what.action, most=most)
        await self.course(pipeline)
        what.check()
        found = await self.views(pipeline, wanted, most=filters.check_most(most))
        act = self._act(what, commands.Person(actor, called, scopes), dry_run=dry_run)
        answers = await asyncio.gather(*[act(item.item_id) for item in found], return_exceptions=True)
        outcomes = [_outcome(item, answer, dry_run) for item, answer in zip(found, answers, strict=True)]
        possible = sum(one.outcome != "refused" for one in outcomes)
        return Done(dry_run, what.action, len(outcomes), possible, found.cursor is not None, outcomes)

    def _act(self, what: Bulk, person: commands.Person, *, dry_run: bool) -> Act:
        actor, called = person.actor or "", person.called
        if what.action == "restart":
            restart = item_actions.Restart(what.at, what.only or False, reason=what.reason)
            return lambda item_id: self._begin_again(item_id, restart, actor, dry_run=dry_run)
        if what.action == "decide":
            decision = item_actions.Decision(what.decision or "", what.notes, called=called)
            return lambda item_id: self._decide(item_id, decision, actor, dry_run=dry_run)
        if what.action == "move":
            move = item_actions.Move(what.status or "", reason=what.reason, called=called, scopes=person.scopes)
            return lambda item_id: self._move(item_id, move, actor, dry_run=dry_run)
        if what.action == "migrate":
            return lambda item_id: self._migrate(item_id, what.version or 0, actor, dry_run=dry_run)
        return lambda item_id: self._roll_back(item_id, what.reason, actor, dry_run=dry_run)


def _outcome(item: item_views.ItemView, answer: Any, dry_run: bool) -> Outcome:
    about = (item.item_id, item.status, item.code)
    if isinstance(answer, REFUSED):
        return Outcome(*about, "refused", answer.code, answer.message)
    if isinstance(answer, BaseException):
        raise answer
    return Outcome(*about, "possible" if dry_run else "done")
