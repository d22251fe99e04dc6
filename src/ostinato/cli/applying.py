"""What `apply` would do: definitions from files beside those that are stored, and where they differ."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ostinato import definition_files, errors
from ostinato.cli import loading, output
from ostinato.core import codec
from ostinato.reactions import definitions

if TYPE_CHECKING:
    from rich.text import Text

    from ostinato.store import definitions as stored_definitions

AnyShelf = definitions.Shelf[Any]
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class Step(NamedTuple):
    """One definition: what becomes of it, and from which version on."""

    name: str
    source: str
    action: Literal["new", "changed", "unchanged"]
    version: int
    """The last one there is; 0 if there is none."""
    document: Any
    before: Any

    def answer(self) -> dict[str, Any]:
        return {"name": self.name, "file": self.source, "action": self.action, "diff": diff(self)}


async def plan(shelf: AnyShelf, sources: Iterable[str]) -> list[Step]:
    """Read and check everything, so that one bad definition keeps all the others from being saved."""
    steps: dict[str, Step] = {}
    for found in _found(sources):
        step = await _step(shelf, found)
        if step.name in steps:
            raise errors.InvalidInput(
                f"{step.name!r} is in {steps[step.name].source} and in {step.source}: define each name once",
                field="name",
            )
        steps[step.name] = step
    return list(steps.values())


def diff(step: Step) -> list[str]:
    """The lines of a unified diff, without a heading."""
    if step.action == "unchanged":
        return []
    before = [] if step.before is None else output.pretty(step.before).splitlines()
    return list(difflib.unified_diff(before, output.pretty(step.document).splitlines(), lineterm=""))[2:]


def coloured(lines: Sequence[str]) -> Text:
    from rich.text import Text

    parts = [Text(output.plain(line), style=_COLOURS.get(line[:1], "")) for line in lines]
    return Text("\n").join(parts)


async def _step(shelf: AnyShelf, found: definition_files.Found) -> Step:
    try:
        made = shelf.check(found.document)
    except errors.InvalidInput as error:
        raise found.refused(error) from None
    last = await _last(shelf, made.name)
    encoded = codec.encode(made)
    before = None if last is None or last.document is None else last.document
    action = "new" if before is None else "unchanged" if before == encoded else "changed"
    return Step(
        name=made.name,
        source=found.source,
        action=action,
        version=0 if last is None else last.version,
        document=codec.decode(encoded),
        before=None if before is None else codec.decode(before),
    )


async def _last(shelf: AnyShelf, name: str) -> stored_definitions.Definition | None:
    """The last version, also if that one says that there is nothing any more."""
    try:
        return (await shelf.versions(name))[0]
    except errors.DefinitionNotFound:
        return None


def _found(sources: Iterable[str]) -> Iterable[definition_files.Found]:
    for source in sources:
        for file in definition_files.names(source) if os.path.isdir(source) else [source]:
            yield from definition_files.read(loading.content(file), "stdin" if file == "-" else file)
