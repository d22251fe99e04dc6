"""Opening an application for one command, and running the command in an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from ostinato import app, errors
from ostinato.cli import output
from ostinato.cli.settings import Settings
from ostinato.core import graph
from ostinato.engine import scribe
from ostinato.store import connect

T = TypeVar("T")
AWAY_SECONDS = 0.5
"""How often a database that is away is asked again by who follows something."""
ENDS = (signal.SIGTERM, signal.SIGINT)


def run(command: Coroutine[Any, Any, T], *, fast_loop: bool) -> T:
    """Ctrl-C and SIGTERM cancel the command, which then leaves its `async with` blocks properly."""
    with asyncio.Runner(loop_factory=_loop_factory() if fast_loop else None) as runner:
        return runner.run(_cancelled_by_sigterm(command))


async def _cancelled_by_sigterm(command: Coroutine[Any, Any, T]) -> T:
    current = asyncio.current_task()
    if current is not None:
        with contextlib.suppress(NotImplementedError):  # Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, current.cancel)
    return await command


async def told_to_stop() -> signal.Signals:
    """Wait for a signal. The one after it does what it always did, for people in a hurry."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[signal.Signals] = loop.create_future()

    def tell(number: signal.Signals) -> None:
        for end in ENDS:
            loop.remove_signal_handler(end)
        if not told.done():
            told.set_result(number)

    for end in ENDS:
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(end, tell, end)
    return await told


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


@contextlib.asynccontextmanager
async def opened(
    settings: Settings, given: app.Ostinato | None = None, *, migrate: bool = False, wait: float = 0.0
) -> AsyncGenerator[app.Ostinato]:
    """An application that looks and gives orders, but runs nothing and never creates a database by accident."""
    target = given or app.Ostinato(settings.url)
    configure(target, settings, work=False, maintain=False, wait_seconds=wait)
    if not migrate:
        check_exists(target.url)
    await target.start(migrate=migrate)
    try:
        async with scribe.refusals():
            yield target
    finally:
        await target.stop()


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """What the database answers, for who has been following something: while it is away it is waited for."""
    told = False
    while True:
        try:
            return await ask()
        except errors.DatabaseUnavailable as error:
            if not told:
                output.note(f"{error}; waiting for it")
            told = True
            await asyncio.sleep(AWAY_SECONDS)


def configure(target: app.Ostinato, settings: Settings, **changes: Any) -> None:
    """What the command line says wins over what the application says."""
    if settings.url is not None:
        connect.connect(settings.url)
        target.url = settings.url
    if settings.tenant is not None:
        target.tenant = graph.check_id(settings.tenant, "tenant")
    target.options = dataclasses.replace(target.options, **changes)


def check_exists(url: str) -> None:
    """SQLite makes a file that is not there; a command that only looks must not."""
    path = getattr(connect.connect(url), "path", None)
    if path is not None and not os.path.exists(path):
        raise errors.DatabaseUnavailable(
            f"there is no database file {path!r}: check --url, or create it with `ostinato doctor --migrate`", path=path
        )


def now(target: app.Ostinato) -> datetime.datetime:
    """The clock that all processes share."""
    return datetime.datetime.fromtimestamp(target.engine.db.now() / 1e6, datetime.UTC)


def actor() -> str:
    """Who gave an order, for the history."""
    name = user()
    return "cli" if name is None else f"cli:{name}"


def user() -> str | None:
    """The user whose process this is, as the system knows them: not what a variable of the environment says."""
    try:
        import pwd
    except ImportError:  # Windows
        import getpass

        return getpass.getuser()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # as in a container, where nobody has given it a name
        return f"uid:{os.getuid()}"


async def record(target: app.Ostinato, action: str, about: str = "", **details: Any) -> None:
    """Tell the audit log what is about to be done here, and by whom."""
    await target.note(actor(), action, about, **details)


def shown_url(url: str) -> str:
    """The URL without its password."""
    try:
        parts = urlsplit(url)
        if parts.password is None:
            return url
        place = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:***@{place}"))
    except ValueError:
        return "…"
