"""What a job says of itself while it runs."""

from __future__ import annotations

import msgspec

from ostinato.core import events, ledger, needs, rows
from ostinato.core.commands import consequences


class PublishStatus(msgspec.Struct, gc=False):
    """Say in the stream of a job how it stands. It changes nothing else, and a job that has ended may still say it."""

    job_id: str
    status: str
    message: str | None = None
    timestamp: str | None = None
    """When it was so, if that is not now."""
    lease: rows.Lease | None = None
    """From inside a function: an attempt that has lost its task has nothing more to say."""
    actor: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        if self.lease is None:
            wanted.job(self.job_id)
        else:
            wanted.held_task(self.lease.key)

    def apply(self, book: ledger.Ledger) -> int:
        """Answers when it was said."""
        task = None
        if self.lease is not None:
            task = book.leased_task(self.lease.key, self.lease.attempt, self.lease.token)
        data = consequences.event_data(
            status=self.status, message=self.message, timestamp=self.timestamp, actor=self.actor
        )
        book.emit(book.job(self.job_id), events.STATUS_PUBLISHED, task, data)
        return book.now
