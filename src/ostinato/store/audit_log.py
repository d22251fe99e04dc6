"""The audit log: who did what. Entries are only ever added, each in one transaction that no other can overlap."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ostinato.core import arguments, audit_chain
from ostinato.store import database
from ostinato.store.database import fetch

NEWEST = 2**62
PAGE = 1_000


class AuditLog:
    db: database.Database

    async def append_audit(self, tenant: str, new: Sequence[audit_chain.Entry]) -> list[audit_chain.Entry]:
        """Add entries to the end of the tenant's chain; the answer is how they stand there."""

        def script() -> database.Script[list[audit_chain.Entry]]:
            yield fetch("lock_audit_log", tenant=tenant)
            found = yield fetch("last_audit_entry", tenant=tenant)
            last = (found[0][0], found[0][1]) if found else None
            written: list[audit_chain.Entry] = []
            for entry in new:
                placed = audit_chain.next_entry(tenant, last, self.db.now(), entry)
                yield fetch("append_audit_entry", tenant=tenant, **msgspec.structs.asdict(placed))
                written.append(placed)
                last = (placed.seq, placed.hash)
            return written

        return await self.db.write(script)

    async def audit_entries(
        self,
        tenant: str,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        before: int = NEWEST,
        most: int = 50,
    ) -> list[tuple[audit_chain.Entry, bool]]:
        """Entries, newest first, each with whether it was refused; `before` is the number of the last one of a page."""
        for field, given in (("actor", actor), ("action", action), ("target", target)):
            arguments.text_or_none(given, field)
        arguments.number(before, "before", 0)
        arguments.number(most, "most", 1)

        def script() -> database.Script[list[tuple[audit_chain.Entry, bool]]]:
            found = yield fetch(
                "list_audit_entries",
                tenant=tenant,
                before=before,
                actor=actor,
                action=action,
                target=target,
                most=most,
            )
            return [(audit_chain.Entry(*row[:-1]), bool(row[-1])) for row in found]

        return await self.db.read(script, snapshot=False)

    async def verify_audit(self, tenant: str, *, head: str | None = None) -> audit_chain.Verdict:
        """Follow the chain from its start, a page at a time.

        Entries cut off at the end leave a chain that holds. `head`, an end that was noted elsewhere as `SEQ:HASH`, must
        be found on the way.
        """
        noted = None if head is None else audit_chain.read_head(head)
        verdict = audit_chain.Verdict()
        while verdict.problem is None:
            page = await self._audit_chain(tenant, verdict.seq)
            audit_chain.follow(tenant, verdict, page, noted)
            if len(page) < PAGE:
                break
        return audit_chain.conclude(verdict, noted)

    async def _audit_chain(self, tenant: str, after: int) -> list[audit_chain.Entry]:
        def script() -> database.Script[list[audit_chain.Entry]]:
            found = yield fetch("read_audit_chain", tenant=tenant, after=after, most=PAGE)
            return [audit_chain.Entry(*row) for row in found]

        return await self.db.read(script, snapshot=False)
