"""Definitions of one kind as a tenant keeps them: saved in versions, read through a short memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ostinato import errors, expressions, threads
from ostinato.core import audit_chain, codec, documents
from ostinato.engine import engine
from ostinato.store import database, definitions


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)
Also = Callable[[definitions.Definition], database.Script[None]]
"""What is written together with a new version."""
REMEMBERED_SECONDS = 300.0
"""How long a definition is kept at hand, if nobody changes anything."""
MOST_REMEMBERED = 1000
LONGEST_NAME = 512
CHECKED_SECONDS = 1.0
"""How often it is asked whether somebody did. Whoever does so in this process is heard at once."""


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
        also: Callable[[T], Also] | None = None,
    ) -> None:
        self._app = app
        self._kind = kind
        self._read = read
        self._expressions_of = expressions_of
        self._also = also
        self._known: dict[tuple[str, int | None], Defined[T]] = {}
        self._all: list[Defined[T]] | None = None
        self._reading = asyncio.Lock()
        self._forgotten = 0
        """How often. What was begun to be read before is not remembered: it may be what has just been changed."""
        self._saves = 0
        self._stamp: int = -1
        self._stamped_at = self._read_at = -REMEMBERED_SECONDS

    async def save(
        self, document: Any, *, actor: str | None = None, expected: int | None = None
    ) -> definitions.Definition:
        """A new version, if anything has changed. Everything in it is checked before."""
        if actor is not None:
            audit_chain.check_text(actor, "actor")  # before anything is saved
        if expected is not None and expected != 0:  # that there is none yet
            documents.check_version(expected, "expected")
        made = await threads.run(lambda: self.check(document))
        name = made.name
        saved = await self._store.save_definition(
            self._tenant,
            self._kind,
            name,
            codec.encode(made),
            created_by=actor,
            expected=expected,
            also=None if self._also is None else self._also(made),
        )
        self._forget()
        await self._app.note(actor, f"{self._kind}s.save", name, version=saved.version)
        return saved

    def check(self, document: Any) -> T:
        """The definition, or an error that names the field and the fix."""
        if isinstance(document, (str, bytes)):
            document = codec.parse(document, self._kind)
        made = self._read(document)
        codec.encode(made, self._kind)  # what cannot be kept can have no expressions either
        for field, source in self._expressions_of(made):
            expressions.compile(source, field, self._tenant)
        return made

    async def remove(self, name: str, *, actor: str | None = None) -> None:
        documents.check_text(name, "name", LONGEST_NAME)
        await self._app.note(actor, f"{self._kind}s.remove", name)
        await self._store.save_definition(self._tenant, self._kind, name, None, created_by=actor)
        self._forget()

    async def roll_back(self, name: str, version: int, *, actor: str | None = None) -> definitions.Definition:
        """Make an earlier version the newest one."""
        documents.check_text(name, "name", LONGEST_NAME)
        documents.check_version(version)
        await self._app.note(actor, f"{self._kind}s.rollBack", name, version=version)
        earlier = await self._store.definition(self._tenant, self._kind, name, version)
        also = None if self._also is None else self._also(self._defined(earlier).value)
        saved = await self._store.save_definition(
            self._tenant, self._kind, name, earlier.document, created_by=actor, also=also
        )
        self._forget()
        return saved

    async def get(self, name: str, version: int | None = None) -> Defined[T]:
        """As it is now, or as it was in one version."""
        documents.check_text(name, "name", LONGEST_NAME)
        if version is not None:
            documents.check_version(version)
        await self._keep_up()
        known = self._known.get((name, version))
        if known is None:
            async with self._reading:  # one reads it, and whoever waits for that has it too
                known = self._known.get((name, version)) or await self._remember(name, version)
        return known

    async def _remember(self, name: str, version: int | None) -> Defined[T]:
        before = self._changes
        made = self._defined(await self._store.definition(self._tenant, self._kind, name, version))
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        if self._changes == before:
            self._known[(name, version)] = self._known[(name, made.version)] = made
        return made

    async def everything(self) -> list[Defined[T]]:
        """All definitions as they are now."""
        await self._keep_up()
        if self._all is not None:
            return self._all
        before = self._changes
        found = [self._defined(one) for one in await self.all()]
        if self._changes == before:
            self._all = found
        return found

    async def refresh(self) -> None:
        """Ask now whether somebody has changed something, and not only when it is time to."""
        self._stamped_at = -REMEMBERED_SECONDS
        await self._keep_up()

    def _defined(self, found: definitions.Definition) -> Defined[T]:
        if found.document is None:
            raise errors.DefinitionNotFound(f"there is no {self._kind} {found.name!r}", name=found.name)
        return Defined(self._read(codec.decode(found.document)), found.version)

    async def _keep_up(self) -> None:
        """Forget what is remembered if it is old, or somebody has changed something."""
        now = time.monotonic()
        saves = self._store.saves[self._tenant]
        if now - self._read_at >= REMEMBERED_SECONDS or saves != self._saves:
            self._forget()
            self._saves = saves
        if now - self._stamped_at >= CHECKED_SECONDS:
            self._stamped_at = now  # one looks; whoever asks meanwhile goes by what was known
            try:
                stamp = await self._store.definitions_stamp(self._tenant)
            except BaseException:
                self._stamped_at = -REMEMBERED_SECONDS
                raise
            if stamp != self._stamp:
                self._forget()
            self._stamp, self._stamped_at = stamp, now

    @property
    def _changes(self) -> int:
        return self._forgotten + self._store.saves[self._tenant]

    def _forget(self) -> None:
        self._forgotten += 1
        self._known.clear()
        self._all = None
        self._read_at = time.monotonic()
        self._stamped_at = -REMEMBERED_SECONDS

    async def all(self) -> list[definitions.Definition]:
        return await self._store.definitions(self._tenant, self._kind)

    async def stored(self, name: str, version: int | None = None) -> definitions.Definition:
        """The document as it is kept, of now or of one version."""
        documents.check_text(name, "name", LONGEST_NAME)
        if version is not None:
            documents.check_version(version)
        return await self._store.definition(self._tenant, self._kind, name, version)

    async def versions(self, name: str) -> list[definitions.Definition]:
        """Newest first. One without a document says that it was taken away then."""
        documents.check_text(name, "name", LONGEST_NAME)
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


class Kept(Generic[T]):
    """Definitions of one kind as an application offers them."""

    shelf: Shelf[T]

    async def define(self, document: Any, *, actor: str | None = None, expected: int | None = None) -> int:
        """Save a definition; the answer is its version. What has begun keeps the version of then."""
        return (await self.shelf.save(document, actor=actor, expected=expected)).version

    async def remove(self, name: str, *, actor: str | None = None) -> None:
        await self.shelf.remove(name, actor=actor)

    async def names(self) -> list[str]:
        return [found.name for found in await self.shelf.all()]
