"""Definitions in files: JSON or YAML, one of them, a list, or several documents."""

from __future__ import annotations

import os
import pathlib
from typing import Any, NamedTuple, cast

from ostinato import errors
from ostinato.core import codec

YAML = (".yaml", ".yml")
SUFFIXES = (".json", *YAML)


class Found(NamedTuple):
    document: Any
    file: str
    source: str
    """The file, and which one of several in it."""
    lines: dict[str, int] | None
    """Of its fields, by path. None for JSON, of which only the fields are known."""
    path: str = ""
    """Where it is inside of what the lines are of."""

    def refused(self, error: errors.InvalidInput) -> errors.InvalidInput:
        """An error of the definition that says where it is."""
        from ostinato.core import yaml_text

        about, where = error.details | {"file": self.file}, self.source
        if self.lines is not None:
            field = str(about.get("field") or "")
            joined = field if field.startswith("[") or not (field and self.path) else f".{field}"
            about["line"] = yaml_text.line_of(self.lines, f"{self.path}{joined}")
            where = f"{self.file}:{about['line']}"
        return type(error)(f"{where}: {error.message}", **about)


def names(folder: str) -> list[str]:
    """The files of a folder that hold definitions, in the order of their names."""
    found = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIXES))
    if not found:
        raise errors.InvalidInput(
            f"the folder {folder!r} has no .json, .yaml or .yml files: name one that has, or the files"
        )
    return [os.path.join(folder, name) for name in found]


def in_folder(folder: str) -> list[Found]:
    """All definitions in the files of a folder."""
    return [found for name in names(folder) for found in read(pathlib.Path(name).read_bytes(), name)]


def read(content: bytes, file: str) -> list[Found]:
    """What is in a file. Without a name that says what it is, as on stdin, JSON begins with a bracket."""
    if file.endswith(YAML) or (not file.endswith(SUFFIXES) and content.lstrip()[:1] not in (b"{", b"[", b"")):
        return _yaml(content, file)
    found = codec.parse(content, f"the file {file!r}" if file.endswith(SUFFIXES) else file)
    if not isinstance(found, list):
        return [Found(found, file, file, None)]
    several = cast("list[Any]", found)
    return [Found(document, file, f"{file}[{index}]", None) for index, document in enumerate(several)]


def _yaml(content: bytes, file: str) -> list[Found]:
    from ostinato.core import yaml_text

    made: list[Found] = []
    for value, lines in yaml_text.read(content, file):
        parts: dict[str, Any] = {"": value}
        if isinstance(value, list):
            parts = {f"[{index}]": part for index, part in enumerate(cast("list[Any]", value))}
        made += [Found(part, file, f"{file}:{lines[path]}", lines, path) for path, part in parts.items()]
    if not made:
        raise errors.InvalidInput(f"{file} has no definitions: give one", file=file)
    return made if len(made) > 1 else [made[0]._replace(source=file)]
