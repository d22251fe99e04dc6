"""What all definitions have in common, gates and rules alike: to list, apply, remove them and go back in time."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.asking import DryRun, Yes
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import app as app_
    from ostinato import errors
    from ostinato.cli import applying
    from ostinato.store import definitions

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name it is defined by.", show_default=False)]
Version = Annotated[int, typer.Argument(metavar="VERSION", help="The version to go back to.", min=1)]
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE|DIR…",
        help="JSON or YAML: definitions or lists of them. Of a folder, all .json, .yaml and .yml files; - is stdin.",
        show_default=False,
    ),
]


@dataclasses.dataclass(frozen=True, eq=False)
class Kind:
    """One kind of definition, and what of it is worth a column in a list."""

    name: str
    shelf: Callable[[app_.Ostinato], applying.AnyShelf]
    columns: Sequence[str]
    cells: Callable[[dict[str, Any]], Sequence[str]]
    parts: Sequence[Kind] = ()
    """Kinds that these are made of: a folder may hold both, each in a folder of its own."""


def register(group: typer.Typer, kind: Kind) -> None:
    """Add the commands that are the same for each kind."""

    @command(group, "ls")
    async def ls(settings: Settings) -> None:
        """List what is defined."""
        from ostinato.cli import session

        async with session.opened(settings) as app:
            found = await kind.shelf(app).all()
            now = session.now(app)
        if settings.json:
            output.document({f"{kind.name}s": [document(item) for item in found]})
            return
        lines = [[item.name, *kind.cells(content(item)), *_written(item, now)] for item in found]
        columns = ["name", *kind.columns, "version", "changed", "by"]
        output.table(columns, lines, none=f"no {kind.name}s: define some with `ostinato {kind.name}s apply FILE`")

    @command(group, "apply")
    async def apply(settings: Settings, sources: Sources, yes: Yes = False, dry_run: DryRun = False) -> int:
        """Define what is in files, after showing what is new and what changes.

        Everything is checked before anything is saved. What is unchanged gets no new version."""
        from ostinato.cli import applying, failures, session

        async with session.opened(settings) as app:
            plans = [
                (part, await applying.plan(part.shelf(app), found)) for part, found in _by_kind(kind, sources).items()
            ]
            if not settings.json:
                for part, steps in plans:
                    _preview(part, steps)
            saved = dict[tuple[str, str], int]()
            changes = [(part, step) for part, steps in plans for step in steps if step.action != "unchanged"]
            if not dry_run:
                if changes and not yes and not _confirmed(settings, kind, changes):
                    return failures.FAILED
                for part, step in changes:
                    made = await part.shelf(app).save(step.document, actor=session.actor(), expected=step.version)
                    saved[part.name, step.name] = made.version
        if settings.json:
            answers = {
                f"{part.name}s": [
                    step.answer() | {"version": saved.get((part.name, step.name), step.version)} for step in steps
                ]
                for part, steps in plans
            }
            output.document({"dryRun": dry_run} | answers)
        for (what, name), version in saved.items() if not settings.json else ():
            output.say(f"saved: {what} {name}, version {version}")
        return failures.OK

    @command(group, "rm")
    async def rm(settings: Settings, name: Name) -> None:
        """Take a definition away. Its versions stay, and `rollback` brings it back."""
        from ostinato.cli import session

        async with session.opened(settings) as app, suggesting(kind, app):
            shelf = kind.shelf(app)
            version = (await shelf.stored(name)).version
            await shelf.remove(name, actor=session.actor())
        if settings.json:
            output.document({"name": name, "removed": True, "lastVersion": version})
            return
        output.say(f"removed: {kind.name} {name} (back again with: ostinato {kind.name}s rollback {name} {version})")

    @command(group, "versions")
    async def versions(settings: Settings, name: Name) -> None:
        """List the versions of a definition, newest first."""
        from ostinato.cli import session

        async with session.opened(settings) as app, suggesting(kind, app):
            found = await kind.shelf(app).versions(name)
            now = session.now(app)
        if settings.json:
            output.document({"name": name, "versions": [document(item) for item in found]})
            return
        empty = ["" for _ in kind.columns]
        lines: list[list[Any]] = []
        for item in found:
            version, changed, by = _written(item, now)
            cells = ["removed", *empty[1:]] if item.document is None else kind.cells(content(item))
            lines.append([version, *cells, changed, by])
        output.table(["version", *kind.columns, "changed", "by"], lines, none="no versions")

    @command(group, "rollback")
    async def rollback(settings: Settings, name: Name, version: Version) -> None:
        """Make an earlier version the newest one, as a version of its own."""
        from ostinato import errors
        from ostinato.cli import session

        async with session.opened(settings) as app, suggesting(kind, app):
            shelf = kind.shelf(app)
            before = await shelf.versions(name)
            try:
                saved = await shelf.roll_back(name, version, actor=session.actor())
            except errors.DefinitionNotFound:
                raise _no_version(kind, name, version, before) from None
        if settings.json:
            output.document({"name": name, "rolledBackTo": version, "version": saved.version})
        elif saved.version == before[0].version:
            output.say(f"{kind.name} {name} is the same as in version {version} already")
        else:
            output.say(f"{kind.name} {name} is as in version {version} again, as version {saved.version}")


def register_show(group: typer.Typer, kind: Kind) -> None:
    """Add `show` for a kind of which there is nothing to see but the definition."""

    @command(group, "show")
    async def show(settings: Settings, name: Name) -> None:
        """Show a definition."""
        from ostinato.cli import session

        async with session.opened(settings) as app, suggesting(kind, app):
            stored = await kind.shelf(app).stored(name)
        if settings.json:
            output.document(document(stored))
            return
        output.say(output.pretty(content(stored)))


@contextlib.asynccontextmanager
async def suggesting(kind: Kind, app: app_.Ostinato) -> AsyncGenerator[None]:
    """A name that nobody knows is most often one that somebody knows, with a letter wrong."""
    from ostinato import errors
    from ostinato.core import documents

    try:
        yield
    except errors.DefinitionNotFound as error:
        names = [found.name for found in await kind.shelf(app).all()]
        hint = documents.nearest(str(error.details.get("name", "")), names).strip()
        known = f"`ostinato {kind.name}s ls` lists them" if names else f"define it with `ostinato {kind.name}s apply`"
        raise errors.DefinitionNotFound(f"{error.message}: {hint or known}", **error.details) from None


def document(item: definitions.Definition) -> dict[str, Any]:
    """One version, as JSON."""
    from ostinato import views

    return {
        "name": item.name,
        "version": item.version,
        "definition": None if item.document is None else content(item),
        "createdAt": views.moment(item.created_at),
        "createdBy": item.created_by,
    }


def content(item: definitions.Definition) -> dict[str, Any]:
    from ostinato.core import codec

    return codec.decode(item.document or codec.EMPTY_OBJECT)


def _written(item: definitions.Definition, now: Any) -> list[str]:
    from ostinato import views

    return [str(item.version), output.ago(views.moment(item.created_at), now), item.created_by or ""]


def _by_kind(kind: Kind, sources: Sequence[str]) -> dict[Kind, list[str]]:
    """Which sources hold definitions of which kind: parts first, so that what needs them finds them."""
    found = dict[Kind, list[str]]()
    for part in (*kind.parts, kind):
        for source in sources:
            folders = {known: os.path.join(source, f"{known.name}s") for known in (*kind.parts, kind)}
            if kind.parts and any(os.path.isdir(folder) for folder in folders.values()):
                if os.path.isdir(folders[part]):
                    found.setdefault(part, []).append(folders[part])
            elif part is kind:
                found.setdefault(kind, []).append(source)
    return found


def _preview(kind: Kind, steps: Sequence[applying.Step]) -> None:
    from ostinato.cli import applying

    screen = output.console()
    for step in steps:
        output.say(f"{step.action}: {kind.name} {step.name} ({step.source})")
        if step.action == "changed":
            screen.print(applying.coloured(applying.diff(step)))


def _confirmed(settings: Settings, kind: Kind, changes: Sequence[tuple[Kind, applying.Step]]) -> bool:
    from ostinato.cli import asking

    count = len(changes)
    name = kind.name if all(part is kind for part, _ in changes) else "definition"
    what = f"{count:,} {name}{'' if count == 1 else 's'}"
    asking.check_can_ask(settings, f"{what} would be saved: confirm with --yes, or look with --dry-run")
    return typer.confirm(f"save {what}?")


def _no_version(kind: Kind, name: str, version: int, known: Sequence[definitions.Definition]) -> errors.NotFound:
    from ostinato import errors

    there = [str(item.version) for item in known if item.document is not None]
    return errors.NotFound(
        f"{kind.name} {name!r} has no version {version} to go back to: there is {', '.join(there[:10])}"
        + (" and older ones" if len(there) > 10 else ""),
        name=name,
    )
