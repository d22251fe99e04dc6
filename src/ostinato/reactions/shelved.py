"""The pipelines of a tenant as they are kept, and their courses."""

from __future__ import annotations

from ostinato import errors
from ostinato.core import courses, documents, graph
from ostinato.engine import engine
from ostinato.pipelines import definition
from ostinato.reactions import definitions
from ostinato.store import courses as course_cache
from ostinato.store import items as stored

LONGEST_ID = definition.LONGEST_ID


class Shelved(definitions.Kept[courses.Pipeline]):
    """What all that is done with pipelines needs."""

    def __init__(self, app: definitions.Application) -> None:
        self._app = app
        self.shelf = definitions.Shelf(
            app,
            course_cache.KIND,
            definition.read,
            definition.expressions,
            lambda made: stored.moves_of(self._tenant, made),
        )

    async def course(self, name: str, version: int | None = None) -> courses.Course:
        """A pipeline in one version, ready to be followed; the newest if none is said."""
        documents.check_text(name, "name", definitions.LONGEST_NAME)
        if version is None:
            version = (await self.shelf.get(name)).version
        documents.check_version(version)
        try:
            return await self._engine.store.course(self._tenant, name, version)
        except errors.DefinitionNotFound as error:
            raise errors.DefinitionNotFound(error.message, **error.details, field="version") from None

    @property
    def _engine(self) -> engine.Engine:
        return self._app.engine

    @property
    def _tenant(self) -> str:
        return self._engine.tenant


def check_item_id(item_id: str) -> str:
    graph.check_id(item_id, "itemId")
    if ":" in item_id or len(item_id) > LONGEST_ID:
        raise errors.InvalidId(
            f"itemId {documents.short(item_id)} must be at most {LONGEST_ID} characters, without a colon",
            field="itemId",
        )
    return item_id
