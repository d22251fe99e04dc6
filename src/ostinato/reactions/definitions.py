"""Definitions of one kind as a tenant keeps them: saved in versions, read through a short memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ostinato import errors, expressions
from ostinato.core import codec
from ostinato.engine import engine
from ostinato.rules import targets
from ostinato.store import definitions


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)
REMEMBERED_SECONDS = 1.0
"""How long a definition is believed to be as it was. Whoever changes one here is heard at once."""


class Application(Protocol):
    """What is needed of the application."""

    @property
    def engine(self) -> engine.Engine: ...
    async def note(self, actor: str | None, action: str, target: str = "", /, **details: Any) -> None: ...


class Defined(NamedTuple, Generic[T]):
    """A definition that was read and checked, and which version of it this is."""

    value: T
    version: int


class Shelf(Generic[T]):
    """All definitions of one kind: rules, or gates."""

    def __init__(
        self,
        app: Application,
        kind: str,
        read: Callable[[Any], T],
        expressions_of: Callable[[T], Iterable[tuple[str, str]]],
    ) -> None:
        self._app = app
        self._kind = kind
        self._read = read
        self._expressions_of = expressions_of
        self._known: dict[tuple[str, int | None], tuple[float, Defined[T]]] = {}

    async def save(
        self, document: Any, *, actor: str | None = None, expected: int | None = None
    ) -> definitions.Definition:
        """A new version, if anything has changed. Everything in it is checked before."""
        made = self.check(document)
        name = made.name
        saved = await self._store.save_definition(
            self._tenant, self._kind, name, codec.encode(made), created_by=actor, expected=expected
        )
        self._known.pop((name, None), None)
        await self._app.note(actor, f"{self._kind}s.save", name, version=saved.version)
        return saved

    def check(self, document: Any) -> T:
        """The definition, or an error that names the field and the fix."""
        if isinstance(document, (str, bytes)):
            document = codec.parse(document, self._kind)
        made = self._read(document)
        for field, source in self._expressions_of(made):
            expressions.compile(source, field)
        return made

    async def remove(self, name: str, *, actor: str | None = None) -> None:
        targets.check_name(name, "name")
        await self._app.note(actor, f"{self._kind}s.remove", name)
        await self._store.save_definition(self._tenant, self._kind, name, None, created_by=actor)
        self._known.pop((name, None), None)

    async def roll_back(self, name: str, version: int, *, actor: str | None = None) -> definitions.Definition:
        """Make an earlier version the newest one."""
        targets.check_name(name, "name")
        await self._app.note(actor, f"{self._kind}s.rollBack", name, version=version)
        earlier = await self._store.definition(self._tenant, self._kind, name, version)
        saved = await self._store.save_definition(self._tenant, self._kind, name, earlier.document, created_by=actor)
        self._known.pop((name, None), None)
        return saved

    async def get(self, name: str, version: int | None = None) -> Defined[T]:
        """As it is now, or as it was in one version."""
        known = self._known.get((name, version))
        if known is not None and (version is not None or time.monotonic() - known[0] < REMEMBERED_SECONDS):
            return known[1]
        targets.check_name(name, "name")
        if known is not None:  # one looks again; whoever asks meanwhile gets what was known
            self._known[(name, version)] = (time.monotonic(), known[1])
        try:
            found = await self._store.definition(self._tenant, self._kind, name, version)
        except BaseException:
            self._known.pop((name, version), None)
            raise
        if known is not None and known[1].version == found.version:
            return known[1]
        if found.document is None:
            raise errors.DefinitionNotFound(f"there is no {self._kind} {name!r}", name=name)
        made = Defined(self._read(codec.decode(found.document)), found.version)
        if len(self._known) > 1000:
            self._known.clear()
        self._known[(name, version)] = (time.monotonic(), made)
        return made

    async def all(self) -> list[definitions.Definition]:
        return await self._store.definitions(self._tenant, self._kind)

    async def stored(self, name: str, version: int | None = None) -> definitions.Definition:
        """The document as it is kept, of now or of one version."""
        targets.check_name(name, "name")
        return await self._store.definition(self._tenant, self._kind, name, version)

    async def versions(self, name: str) -> list[definitions.Definition]:
        """Newest first. One without a document says that it was taken away then."""
        targets.check_name(name, "name")
        found = await self._store.definition_versions(self._tenant, self._kind, name)
        if not found:
            raise errors.DefinitionNotFound(f"there is no {self._kind} {name!r}", name=name)
        return found

    @property
    def _store(self) -> definitions.Definitions:
        return self._app.engine.store

    @property
    def _tenant(self) -> str:
        return self._app.engine.tenant
