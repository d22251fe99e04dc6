"""Which items are wanted, and where a list of them goes on."""

from __future__ import annotations

import msgspec

from ostinato import errors
from ostinato.core import cursors, documents, filters, graph

Place = filters.Place
"""(when, item id)"""


class ItemFilter(msgspec.Struct, frozen=True):
    """Items of one pipeline. Newest first; those in one status, or that are stuck, retried or held, longest first."""

    pipeline: str
    status: int | None = None
    stuck_since: int | None = None
    """Run, not over, and in their status since before this time."""
    retrying: bool = False
    """An attempt has failed, and the next one is due at a time."""
    held: bool = False
    """Entered, never run, and not over."""
    reviews: tuple[int, ...] = ()
    """Statuses in which items wait for people: in these, none is stuck."""

    def __post_init__(self) -> None:
        documents.check_text(self.pipeline, "pipeline", 128)
        if sum((self.status is not None, self.stuck_since is not None, self.retrying, self.held)) > 1:
            raise errors.InvalidInput("choose one of status, stuck, retrying and held", field="status")

    @property
    def downwards(self) -> bool:
        return self.status is None and self.stuck_since is None and not (self.retrying or self.held)

    def place(self, cursor: str | None) -> Place:
        if cursor is None:
            return (2**62, "") if self.downwards else (-1, "")
        at, item_id = cursors.read(cursor, Place)
        return at, graph.check_id(item_id, "cursor")
