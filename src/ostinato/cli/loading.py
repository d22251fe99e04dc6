"""Finding what the command line names: job documents in files, applications and graphs in Python modules."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from types import ModuleType
from typing import Any, cast

from ostinato import app, builder, errors
from ostinato.core import codec


def documents(source: str) -> list[Any]:
    """The job, or the list of jobs, in a file."""
    found = document(source)
    return cast("list[Any]", found) if isinstance(found, list) else [found]


def document(source: str) -> Any:
    """The job in a file, or on stdin for `-`."""
    what = "the job on stdin" if source == "-" else f"the file {source!r}"
    found: Any = codec.parse(content(source), what)
    if not isinstance(found, (dict, list)):
        raise errors.InvalidInput(f"{what} is not a job document: it must be a JSON object")
    return cast("Any", found)


def content(source: str) -> bytes:
    """What is in a file, or on stdin for `-`."""
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        with open(source, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise errors.InvalidInput(f"there is no file {source!r}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise errors.InvalidInput(f"the file {source!r} cannot be read: {reason}") from None


def value(text: str, what: str) -> Any:
    """A JSON value given on the command line."""
    return codec.parse(text.encode("utf-8", "surrogateescape"), what)


def program(target: str, reference: str | None) -> tuple[app.Ostinato, Any]:
    """The application and the job that `ostinato run` was asked for."""
    if target == "-" or target.endswith(".json") or os.path.isfile(target):
        if reference is None:
            raise errors.InvalidInput(
                "a job document has no functions: say where they are with --app module:app (or path/to/app.py:app)"
            )
        return application(reference), document(target)
    if ":" not in target:
        raise errors.InvalidInput(f"{target!r} is neither a file nor of the form module:graph")
    job = attribute(target, "graph")
    if not isinstance(job, (builder.Graph, dict)):
        raise errors.InvalidInput(f"{target!r} is {_kind(job)}: `run` needs a graph (app.graph(…)) or a dict")
    return application(reference or target.rpartition(":")[0]), cast("Any", job)


def application(reference: str) -> app.Ostinato:
    """`module:attribute` or `path/to/file.py:attribute`; the attribute is `app` if none is given."""
    found = attribute(reference, "app")
    if not isinstance(found, app.Ostinato):
        raise errors.InvalidInput(f"{reference!r} is {_kind(found)}, not an Ostinato application")
    return found


def attribute(reference: str, default: str) -> Any:
    where, separator, name = reference.rpartition(":")
    if not separator:
        where, name = reference, default
    found: Any = _module(where)
    for part in name.split("."):
        if not hasattr(found, part):
            raise errors.InvalidInput(f"{where!r} has no {name!r}: use the form module:attribute")
        found = getattr(found, part)
    return found


def _module(where: str) -> ModuleType:
    is_path = where.endswith(".py") or os.sep in where
    if is_path and not os.path.isfile(where):
        raise errors.InvalidInput(f"there is no file {where!r}")
    folder = os.path.dirname(os.path.abspath(where)) if is_path else os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return _from_file(where) if is_path else importlib.import_module(where)
    except errors.OstinatoError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (where == error.name or where.startswith(f"{error.name}.")):
            raise errors.InvalidInput(f"there is no module {where!r} (looked in {folder!r} too)") from None
        raise _import_error(where, error) from None
    except (Exception, SystemExit) as error:
        raise _import_error(where, error) from None


def _from_file(path: str) -> ModuleType:
    name = os.path.splitext(os.path.basename(path))[0]
    if name in sys.modules:
        name = f"ostinato_program_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise errors.InvalidInput(f"{path!r} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _import_error(where: str, error: BaseException) -> errors.InvalidInput:
    frames = traceback.extract_tb(error.__traceback__)
    named = isinstance(error, SyntaxError)  # says itself where it is
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames and not named else ""
    return errors.InvalidInput(f"importing {where!r} failed: {type(error).__name__}: {error}{place}")


def _kind(found: object) -> str:
    return f"of type {type(found).__name__}"
