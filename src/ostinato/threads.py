"""Getting answers out of threads, and threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_alone: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()


async def run(function: Callable[[], T]) -> T:
    """Call `function` in a daemon thread of its own.

    A pool would be joined when the interpreter exits, and a function that was given up on would hold one of its
    threads: a worker could neither stop in time nor use all its slots.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    variables = contextvars.copy_context()

    def body() -> None:
        answer(loop, future, lambda: variables.run(function))

    threading.Thread(target=body, name="ostinato-function", daemon=True).start()
    return await future


async def run_if(long: bool, function: Callable[[], T]) -> T:
    """Call what computes for long in a thread, and all else here. Such threads run one after the other: several would
    keep the event loop from the interpreter for longer."""
    if not long:
        return function()
    loop = asyncio.get_running_loop()
    async with _alone.setdefault(loop, asyncio.Lock()):
        return await run(function)


def answer(loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], function: Callable[[], T]) -> None:
    """Call `function` in this thread, and bring its result or its exception to who waits in the event loop."""
    try:
        result = function()
    except BaseException as error:
        _tell(loop, _fail, future, error)
    else:
        _tell(loop, _succeed, future, result)


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(function, *args)


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if future.done():
        return
    # These mean something to the event loop; coming from a function they are errors like any other.
    if isinstance(error, (StopIteration, GeneratorExit, asyncio.CancelledError, KeyboardInterrupt, SystemExit)):
        error = RuntimeError(f"the function raised {type(error).__name__}")
    future.set_exception(error)
