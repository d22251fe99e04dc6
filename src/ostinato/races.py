"""Finds out whether a durable wait stands under a limit that would be forgotten while the function is out of memory."""

from __future__ import annotations

import asyncio
import functools
import gc
import types
from collections.abc import Iterator
from typing import Any

_RACES = ("wait", "_wait", "wait_for")
_WATCHERS = ("_release_waiter", "_wait.", "as_completed.")
"""What asyncio calls when a task ends that it races with a limit, or with others."""


def limit_of(coroutine: Any, task: asyncio.Task[Any] | None = None) -> str | None:
    """What limits or races a coroutine that waits at this moment, or the task that runs it; None if nothing does."""
    return _over(coroutine) or (None if task is None else _about(task))


def _over(coroutine: Any) -> str | None:
    for waiting in _chain(coroutine):
        frame = waiting.cr_frame
        if frame is not None and frame.f_globals.get("__name__") == "asyncio.tasks" and frame.f_code.co_name in _RACES:
            return f"asyncio.{frame.f_code.co_name.lstrip('_')}"
        # A coroutine that waits refers to what its `async with` blocks will call when they are left.
        for held in gc.get_referents(waiting):
            owner = held.__self__ if isinstance(held, types.MethodType) else None
            if isinstance(owner, asyncio.Timeout) and owner.when() is not None:
                return "asyncio.timeout"
    return None


def _chain(coroutine: Any) -> Iterator[types.CoroutineType[Any, Any, Any]]:
    """The coroutine, what it awaits, what that awaits, and so on."""
    while isinstance(coroutine, types.CoroutineType):
        yield coroutine
        coroutine = coroutine.cr_await  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _about(task: asyncio.Task[Any]) -> str | None:
    for callback, _ in getattr(task, "_callbacks", None) or ():
        while isinstance(callback, functools.partial):
            callback = callback.func
        name = getattr(callback, "__qualname__", "")
        if getattr(callback, "__module__", "") == "asyncio.tasks" and name.startswith(_WATCHERS):
            return {"_": "asyncio.wait", "a": "asyncio.as_completed"}[name[0]] if name[1] != "r" else "asyncio.wait_for"
    return None
