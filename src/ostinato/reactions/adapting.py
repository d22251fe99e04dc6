"""Functions of the user's that are called with what was found for them, instead of with the input of their task."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from ostinato import context, functions, threads
from ostinato.core.retry import NO_RETRY

Find = Callable[[context.Context, dict[str, Any]], Awaitable[dict[str, Any]]]
"""From the input of a task to what its function may be called with, by name."""


def adapted(name: str, code: Callable[..., Any], find: Find) -> Callable[..., Any]:
    """The function as the engine calls it. It gets those arguments that it has names for."""
    inner = functions.Function(name, code, retry=NO_RETRY, timeout=None)

    @functools.wraps(code)
    async def run(ctx: context.Context, **given: Any) -> Any:
        found = await find(ctx, given)
        chosen = inner.bind(ctx, inner.known(found))
        if inner.is_async:
            return await code(**chosen)
        if inner.takes_context:
            chosen["ctx"] = context.SyncContext(ctx, asyncio.get_running_loop())
        return await threads.run(lambda: code(**chosen))

    del run.__wrapped__  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    return run
