"""Workers elsewhere that wait for tasks. The committer serves them like the worker of its own process.

A poll sleeps here until it is answered. As long as nobody has said that there may be work, those of one kind (same
functions, same queues) cost the database one look in all, however many they are.
"""

from __future__ import annotations

import asyncio
import collections

from ostinato import errors
from ostinato.core import commands, rows
from ostinato.engine import committer

Kind = tuple[frozenset[str], frozenset[str]]
MOST_KINDS = 1000
"""Kinds of which it is remembered that there is nothing for them."""
GONE = "the worker went away before it was told"


class _Poll:
    __slots__ = ("answer", "claim", "kind", "last_look", "looked")

    def __init__(self, claim: commands.Claim) -> None:
        self.claim = claim
        self.kind: Kind = (frozenset(claim.functions), claim.queues)
        self.answer: asyncio.Future[list[rows.Lease]] = asyncio.get_running_loop().create_future()
        self.looked = -1
        """What the committer had heard of when this one looked: it need not look again before there is news."""
        self.last_look = False
        """Its time is up: what is being looked for now is all that it gets."""


class Polls:
    """The claims of other processes, first come, first served."""

    def __init__(self, target: committer.Committer) -> None:
        self._committer = target
        self._waiting: collections.OrderedDict[str, _Poll] = collections.OrderedDict()
        self._current: _Poll | None = None
        self._found_empty: dict[Kind, int] = {}
        """What the committer had heard of when a look for this kind found nothing."""

    async def claim(self, claim: commands.Claim, seconds: float) -> list[rows.Lease]:
        """Wait up to so long for tasks. If the caller is cancelled meanwhile, what it would have got is handed back."""
        poll = _Poll(claim)
        self._committer.polls = self
        self._waiting[claim.token] = poll
        self._committer.claim_again()
        try:
            if seconds > 0:
                await asyncio.wait([poll.answer], timeout=seconds)
                if self._waiting.pop(claim.token, None) is not None:
                    return []
            poll.last_look = True
            return await poll.answer
        except asyncio.CancelledError:
            self._waiting.pop(claim.token, None)
            if not poll.answer.cancel() and not poll.answer.cancelled() and poll.answer.exception() is None:
                self.hand_back(claim, poll.answer.result())
            raise

    def hand_back(self, claim: commands.Claim, leases: list[rows.Lease]) -> None:
        """What was claimed for somebody who cannot be told."""
        if leases:
            self._committer.post(commands.HandBack(claim.worker, leases, GONE))

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    # --- what the committer asks --------------------------------------------------------------------------------

    def next_claim(self) -> commands.Claim | None:
        news = self._committer.news
        for token, poll in list(self._waiting.items()):
            if news not in (self._found_empty.get(poll.kind), poll.looked):
                poll.looked = news
                del self._waiting[token]
                if len(self._found_empty) >= MOST_KINDS:
                    self._found_empty.clear()
                self._found_empty[poll.kind] = news
                self._current = poll
                return poll.claim
            if poll.last_look:
                del self._waiting[token]
                poll.answer.set_result([])
        if not self._waiting:
            self._found_empty.clear()
        return None

    def claim_failed(self, claim: commands.Claim) -> None:
        poll, self._current = self._current, None
        self._found_empty.clear()
        if poll is not None and not poll.answer.done():
            poll.answer.set_exception(errors.DatabaseUnavailable("the claim may not have been recorded"))

    def reported(self, reports: list[committer.Report]) -> None:
        """Whoever reports has waited for the answer."""

    def deliver(self, leases: list[rows.Lease], more: bool = False, /) -> None:
        poll, self._current = self._current, None
        if poll is None:
            return  # it was told that its claim failed
        if more or (leases and len(leases) >= poll.claim.slots):
            self._found_empty.pop(poll.kind, None)  # there is more, or may be: for others, who can take what it cannot
        if poll.answer.done():
            self.hand_back(poll.claim, leases)
        elif leases or poll.claim.passed_over or poll.last_look:
            poll.answer.set_result(leases)
        else:
            self._waiting[poll.claim.token] = poll
            self._waiting.move_to_end(poll.claim.token, last=False)  # it keeps its place
