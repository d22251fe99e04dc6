"""From an error to one sentence and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import Any

from typer import exceptions

from ostinato import errors

OK = 0
FAILED = 1
"""The job did not complete, problems were found, or it cannot be done in the present state."""
BAD_INPUT = 2
NOT_FOUND = 3
NO_DATABASE = 4
MISCONFIGURED = 78
"""EX_CONFIG of sysexits.h: what was asked for is not safe as it is set up."""
INTERRUPTED = 130
TERMINATED = 143
BROKEN_PIPE = 141
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def exit_code(error: errors.OstinatoError) -> int:
    if isinstance(error, errors.NotFound):
        return NOT_FOUND
    if isinstance(error, errors.UnsafeBind):
        return MISCONFIGURED
    if isinstance(error, errors.DatabaseError):
        return NO_DATABASE
    if isinstance(error, (errors.InvalidInput, errors.IdempotencyConflict)):
        return BAD_INPUT
    return FAILED


def report(error: errors.OstinatoError, *, as_json: bool) -> int:
    """Say what went wrong on stderr; the exit code."""
    if as_json:
        write_json(error.code, error.message, error.details)
    else:
        write_line(error.message)
    return exit_code(error)


def report_usage(error: exceptions.TyperException, *, as_json: bool) -> int:
    message = error.format_message()
    context: Any = getattr(error, "ctx", None)
    if as_json:
        write_json("usage", message.partition("\n")[0], {})
    elif message.startswith("Usage:"):  # a group without a command: the message is its help
        print(message, file=sys.stderr)
    else:
        write_line(message)
        if context is not None:
            print(f"{context.get_usage()} (--help says more)", file=sys.stderr)
    return BAD_INPUT


def report_bug(error: Exception, *, as_json: bool) -> int:
    """Not one of ours: the traceback is what a bug report needs."""
    message = f"unexpected {type(error).__name__}: {error}"
    if as_json:
        write_json("internal", message, {"traceback": "".join(traceback.format_exception(error))})
    else:
        traceback.print_exception(error)
        write_line(f"{message}. This is a bug in Ostinato: please report it with the lines above")
    return FAILED


def report_io(error: OSError, *, as_json: bool) -> int:
    """A bug as well, unless there was no room for what was to be written."""
    if error.errno not in NO_ROOM:
        return report_bug(error, as_json=as_json)
    message = f"not all could be written: {os.strerror(error.errno)}. Free some room, or write it elsewhere"
    if as_json:
        write_json("not_written", message, {})
    else:
        write_line(message)
    _write_no_more()
    return FAILED


def hang_up() -> int:
    """Whoever read us has seen enough."""
    _write_no_more()
    return BROKEN_PIPE


def _write_no_more() -> None:
    """Not even by the interpreter on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_line(message: str) -> None:
    from ostinato.cli import output

    print(f"error: {output.one_line(message)}", file=sys.stderr)


def write_json(code: str, message: str, details: dict[str, Any]) -> None:
    from ostinato.cli import output

    print(output.encode({"error": {"code": code, "message": message} | details}), file=sys.stderr)
