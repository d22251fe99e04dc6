"""The fields that all definitions have in common, of gates and rules as of playbooks: one set for each kind."""

from __future__ import annotations

from typing import Any

from ariadne import ObjectType

from ostinato import errors
from ostinato.api import reacting
from ostinato.api.graphql.resolvers import convert
from ostinato.api.http import definitions, gates, pipelines, playbooks, rules

query = ObjectType("Query")
mutation = ObjectType("Mutation")


def register(kind: definitions.Kind) -> None:
    """Resolve the fields of a kind: to list, show, save and remove, the versions, and the way back to one of them."""
    one, named = kind.name, kind.name.capitalize()

    @query.field(f"{one}s")
    async def list_all(_: Any, info: Any) -> list[Any]:
        return [kind.summary(found) for found in await kind.shelf(info.context.client).all()]

    @query.field(one)
    async def find(_: Any, info: Any, name: str, version: int | None = None) -> reacting.StoredDefinition | None:
        try:
            return reacting.definition(await kind.shelf(info.context.client).stored(name, version))
        except errors.DefinitionNotFound:
            return None

    @query.field(f"{one}Versions")
    async def list_versions(_: Any, info: Any, name: str) -> list[reacting.Version] | None:
        try:
            return reacting.versions(await kind.shelf(info.context.client).versions(name)).versions
        except errors.DefinitionNotFound:
            return None

    @mutation.field(f"define{named}")
    async def define(_: Any, info: Any, definition: Any, expectedVersion: int | None = None) -> reacting.Defined:
        shelf, actor = kind.shelf(info.context.client), info.context.principal.actor
        saved = await shelf.save(definition, actor=actor, expected=expectedVersion)
        return reacting.Defined(saved.name, saved.version)

    @mutation.field(f"remove{named}")
    async def remove(_: Any, info: Any, name: str) -> str:
        await kind.shelf(info.context.client).remove(name, actor=info.context.principal.actor)
        return name

    @mutation.field(f"rollBack{named}")
    async def roll_back(_: Any, info: Any, name: str, version: int) -> reacting.Defined:
        wanted = convert({"version": version}, reacting.RollBack).version
        shelf, actor = kind.shelf(info.context.client), info.context.principal.actor
        return reacting.Defined(name, (await shelf.roll_back(name, wanted, actor=actor)).version)


for _kind in (gates.KIND, rules.KIND, *playbooks.KINDS, pipelines.KIND):
    register(_kind)

ALL = (query, mutation)
