"""What `apply` would do: definitions from files beside those that are stored, and where they differ."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from ostinato import errors
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
    for source, document in _documents(sources):
        step = await _step(shelf, source, document)
        if step.name in steps:
            raise errors.InvalidInput(
                f"{step.name!r} is in {steps[step.name].source} and in {source}: define each name once", field="name"
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


async def _step(shelf: AnyShelf, source: str, document: Any) -> Step:
    try:
        made = shelf.check(document)
    except errors.InvalidInput as error:
        raise type(error)(f"{source}: {error.message}", **(error.details | {"file": source})) from None
    last = await _last(shelf, made.name)
    encoded = codec.encode(made)
    before = None if last is None or last.document is None else last.document
    action = "new" if before is None else "unchanged" if before == encoded else "changed"
    return Step(
        name=made.name,
        source=source,
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


def _documents(sources: Iterable[str]) -> Iterable[tuple[str, Any]]:
    for source in sources:
        for file in _files(source):
            found = codec.parse(loading.content(file), "stdin" if file == "-" else f"the file {file!r}")
            if not isinstance(found, list):
                yield file, found
                continue
            for index, document in enumerate(cast("list[Any]", found)):
                yield f"{file}[{index}]", document


def _files(source: str) -> list[str]:
    if not os.path.isdir(source):
        return [source]
    found = sorted(name for name in os.listdir(source) if name.endswith(".json"))
    if not found:
        raise errors.InvalidInput(f"the folder {source!r} has no .json files: name one that has, or the files")
    return [os.path.join(source, name) for name in found]
