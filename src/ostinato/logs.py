"""Log lines that say what they are about: the attempt or the request in which they were written.

Code logs with the standard library. `configure`, which only programs call, makes every record a line of JSON (or of
text for people) with the tenant, job, task and so on of where it came from. Payloads and headers are never among them.
"""

from __future__ import annotations

import contextvars
import logging
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, TextIO

About = Callable[[], Mapping[str, Any]]

LEVELS = ("debug", "info", "warning", "error")
_KEY = re.compile(r"\bost_([A-Za-z0-9]+)_[A-Za-z0-9_-]+")
_about: contextvars.ContextVar[About | None] = contextvars.ContextVar("ostinato_about", default=None)


def bind(about: About) -> contextvars.Token[About | None]:
    """What is logged from here on, in this task and its threads, is about this; asked only when there is a line."""
    return _about.set(about)


def bound() -> About | None:
    return _about.get()


def unbind(token: contextvars.Token[About | None]) -> None:
    _about.reset(token)


def correlation_id() -> str | None:
    """That of the attempt in which this code runs, if it runs in one."""
    about = _about.get()
    return None if about is None else about().get("correlation_id")


def configure(form: str | None = None, level: str = "info", stream: TextIO | None = None) -> None:
    """Send all records of this process to stderr, as `json` or for people (`console`, the default on a terminal)."""
    import structlog

    target = stream or sys.stderr
    form = form or ("console" if target.isatty() else "json")
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        _add_about,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if form == "json":
        last += [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            _without_keys,
            structlog.processors.JSONRenderer(),
        ]
    else:
        last += [_without_keys, structlog.dev.ConsoleRenderer(colors=target.isatty())]
    handler = logging.StreamHandler(target)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=last))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # (httpx2 tells the whole address of every call, and users may have written a token into it.)
    for chatty in ("uvicorn", "uvicorn.error", "asyncio", "websockets", "httpx2"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


def _add_about(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    about = _about.get()
    if about is not None:
        for name, value in about().items():
            if value is not None:
                line.setdefault(name, value)
    return line


def _without_keys(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A key that got into a message by mistake is cut short: its id is enough to find it by."""
    for name, value in line.items():
        if isinstance(value, str) and "ost_" in value:
            line[name] = _KEY.sub(r"ost_\1_…", value)
    return line
