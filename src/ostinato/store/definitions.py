"""What tenants have described (gates, rules), each version of it, and the rules as a transaction needs them."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import NamedTuple

from ostinato import errors
from ostinato.core import rulebook
from ostinato.store import database
from ostinato.store.database import fetch

RULES_SECONDS = 1.0
"""How long a process may go on with the rules as they were. Whoever changes one here is heard at once."""
RULE = "rule"
MOST_VERSIONS = 100


class Definition(NamedTuple):
    """One version. Without a document, what was described was taken away."""

    name: str
    version: int
    document: bytes | None
    created_at: int
    created_by: str | None


class RuleCache:
    """The rules of the tenants that were busy lately."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, rulebook.RuleBook]] = {}

    def of(self, tenant: str, now: int) -> database.Script[rulebook.RuleBook]:
        known = self._known.get(tenant)
        if known is not None and now - known[0] <= RULES_SECONDS * 1e6:
            return known[1]
        found = yield fetch("list_definitions", tenant=tenant, kind=RULE)
        rules = rulebook.compiled((row[0], row[1], row[2]) for row in found) if found else rulebook.NO_RULES
        self._known[tenant] = (now, rules)
        return rules

    def forget(self, tenant: str) -> None:
        self._known.pop(tenant, None)


class Definitions:
    db: database.Database
    rules: RuleCache
    saves: collections.Counter[str]
    """How many definitions of each tenant were saved in this process: whoever remembers any looks again."""

    async def save_definition(
        self,
        tenant: str,
        kind: str,
        name: str,
        document: bytes | None,
        *,
        created_by: str | None = None,
        expected: int | None = None,
        also: Callable[[Definition], database.Script[None]] | None = None,
    ) -> Definition:
        """A new version, unless nothing has changed. `expected` is the version that the caller has seen, if any.
        What is to be written together with a new version is in `also`."""

        def script() -> database.Script[Definition]:
            found = yield fetch("read_definition", tenant=tenant, kind=kind, name=name)
            last = Definition(*found[0]) if found else Definition(name, 0, None, 0, None)
            if expected is not None and expected != last.version:
                raise errors.NotPossible(
                    f"{kind} {name!r} is at version {last.version} now, not {expected}: look at it again", name=name
                )
            if last.document == document:
                if document is None:
                    raise errors.DefinitionNotFound(f"there is no {kind} {name!r}", name=name)
                return last
            made = Definition(name, last.version + 1, document, self.db.now(), created_by)
            yield fetch(
                "insert_definition",
                tenant=tenant,
                kind=kind,
                name=name,
                version=made.version,
                document=document,
                now=made.created_at,
                created_by=created_by,
            )
            if also is not None:
                yield from also(made)
            return made

        saved = await self.db.write(script)
        self.rules.forget(tenant)
        self.saves[tenant] += 1
        return saved

    async def definition(self, tenant: str, kind: str, name: str, version: int | None = None) -> Definition:
        """As it is now, or as it was in one version."""

        def script() -> database.Script[Definition]:
            if version is None:
                found = yield fetch("read_definition", tenant=tenant, kind=kind, name=name)
            else:
                found = yield fetch("read_definition_version", tenant=tenant, kind=kind, name=name, version=version)
            if not found or found[0][2] is None:
                raise errors.DefinitionNotFound(f"there is no {kind} {name!r}", name=name)
            return Definition(*found[0])

        return await self.db.read(script, snapshot=False)

    async def definitions_stamp(self, tenant: str) -> int:
        """Another number whenever a definition of the tenant was changed, by whomever."""

        def script() -> database.Script[int]:
            return (yield fetch("definitions_stamp", tenant=tenant))[0][0]

        return await self.db.read(script, snapshot=False)

    async def definitions(self, tenant: str, kind: str) -> list[Definition]:
        def script() -> database.Script[list[Definition]]:
            return [Definition(*row) for row in (yield fetch("list_definitions", tenant=tenant, kind=kind))]

        return await self.db.read(script, snapshot=False)

    async def definition_versions(self, tenant: str, kind: str, name: str) -> list[Definition]:
        """Newest first."""

        def script() -> database.Script[list[Definition]]:
            found = yield fetch("list_versions", tenant=tenant, kind=kind, name=name, most=MOST_VERSIONS)
            return [Definition(*row) for row in found]

        return await self.db.read(script, snapshot=False)
