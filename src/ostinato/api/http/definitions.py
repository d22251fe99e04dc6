"""The routes that all definitions have in common, of gates and rules as of playbooks: one set for each kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Path, Query

from ostinato import app, errors
from ostinato.api import reacting, routing
from ostinato.api.calls import Client, Principal
from ostinato.core import scopes
from ostinato.reactions import definitions
from ostinato.store import definitions as stored

Name = Annotated[str, Path(pattern=reacting.NAME_PATTERN, description="The name of the definition.")]
Expected = Annotated[
    int | None,
    Query(
        alias="expectedVersion", ge=0, lt=2**31, description="Refuse if another is the newest; 0 if there must be none."
    ),
]
AtVersion = Annotated[int | None, Query(ge=1, lt=2**31, description="An earlier version; the newest if left out.")]


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of definition, and what is said of it."""

    name: str
    """In the singular; an s makes it the plural, in paths as in sentences."""
    shelf: Callable[[app.Ostinato], definitions.Shelf[Any]]
    document: Any
    """The definition as its author writes it, for OpenAPI."""
    listed: Callable[[list[Any]], Any]
    """The type of a list of them."""
    summary: Callable[[stored.Definition], Any]
    """One of them in a list."""
    saved: str
    """What saving one means for what is under way."""
    removed: str = "Its versions stay."


def named(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A definition with the name of its path, which it may repeat."""
    own = document.get("name")
    if own not in (None, name):
        raise errors.InvalidInput("the name in the definition is not that in the path: leave it out", field="name")
    return {**document, "name": name}


def register(routes: routing.Routes, kind: Kind) -> None:
    """Declare the routes of a kind: to save, list, show and remove, the versions, and the way back to one of them."""
    one, many, tag = f"/v1/{kind.name}s/{{name}}", f"/v1/{kind.name}s", f"{kind.name}s"
    article = "an" if kind.name[0] in "aeiou" else "a"

    def declare(
        method: str, path: str, called: str, says: str, handler: routing.Handler, scope: str, **more: Any
    ) -> None:
        """A route is known to OpenAPI by the name and the first line of its handler."""
        handler.__name__, handler.__doc__ = called, says
        routes(method, path, scope=scope, tag=tag, **more)(handler)

    async def define(
        client: Client, principal: Principal, name: Name, body: dict[str, Any], expected: Expected = None
    ) -> reacting.Defined:
        saved = await kind.shelf(client).save(named(body, name), actor=principal.actor, expected=expected)
        return reacting.Defined(name, saved.version)

    async def list_all(client: Client) -> Any:
        return kind.listed([kind.summary(found) for found in await kind.shelf(client).all()])

    async def show(client: Client, name: Name, version: AtVersion = None) -> reacting.StoredDefinition:
        return reacting.definition(await kind.shelf(client).stored(name, version))

    async def remove(client: Client, principal: Principal, name: Name) -> reacting.Removed:
        await kind.shelf(client).remove(name, actor=principal.actor)
        return reacting.Removed(name)

    async def list_versions(client: Client, name: Name) -> reacting.Versions:
        return reacting.versions(await kind.shelf(client).versions(name))

    async def roll_back(client: Client, principal: Principal, name: Name, body: reacting.RollBack) -> reacting.Defined:
        saved = await kind.shelf(client).roll_back(name, body.version, actor=principal.actor)
        return reacting.Defined(name, saved.version)

    list_all.__annotations__["return"] = kind.listed
    read, write, what = scopes.JOBS_READ, scopes.CONFIG_WRITE, f"{article} {kind.name}"
    takes = {routing.JSON: kind.document}
    declare(
        "PUT", one, f"define_{kind.name}", f"Save {what}. {kind.saved}", define, write, problems=(409,), takes=takes
    )
    declare("GET", many, f"list_{kind.name}s", f"List the {kind.name}s, by name.", list_all, read)
    declare("GET", one, f"show_{kind.name}", f"Show the definition of {what}.", show, read, problems=(404,))
    declare("DELETE", one, f"remove_{kind.name}", f"Take {what} away. {kind.removed}", remove, write, problems=(404,))
    declare(
        "GET",
        f"{one}/versions",
        f"list_{kind.name}_versions",
        f"List the versions of {what}, newest first.",
        list_versions,
        read,
        problems=(404,),
    )
    declare(
        "POST",
        f"{one}/rollback",
        f"roll_back_{kind.name}",
        f"Make an earlier version of {what} the newest one.",
        roll_back,
        write,
        problems=(404, 409),
    )
