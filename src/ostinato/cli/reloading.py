"""Running a program again whenever its files change.

The parent never imports the program: whatever is wrong with it, the parent lives to see the next change.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence

from ostinato.cli import failures, output, session

LOOK_SECONDS = 0.4
GRACE_SECONDS = 15.0
"""How long a program may take to leave before it is ended."""
MOST_FILES = 10_000
PARENT = "OSTINATO_RELOADER"
"""In the environment of the program: the process that starts it again."""
_NOT_SOURCE = frozenset({"__pycache__", "node_modules", "site-packages"})

Stamps = dict[str, tuple[int, int]]


def stamps(folder: str) -> Stamps:
    """When each Python file below a folder was changed last, and how large it is."""
    found: Stamps = {}
    for path in _sources(folder):
        with contextlib.suppress(OSError):  # it may go while we look
            about = os.stat(path)
            found[path] = (about.st_mtime_ns, about.st_size)
        if len(found) >= MOST_FILES:
            break
    return found


def _sources(folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _NOT_SOURCE]
        yield from (os.path.join(place, name) for name in files if name.endswith(".py"))


async def run(command: Sequence[str], folder: str, hopeless: Callable[[int], bool]) -> int:
    """Run a command until we are told to stop, again after each change below the folder. The answer is the exit code.

    A program that ends by itself is started again after the next change, so one with a typing error waits for its
    cure. If it is `hopeless` to wait for a change after this exit code, that is the end.
    """
    stopping = asyncio.create_task(session.told_to_stop())
    environment = os.environ | {PARENT: str(os.getpid())}
    while True:
        seen = await asyncio.to_thread(stamps, folder)
        # In a session of its own: Ctrl-C reaches this process alone, which then asks the program to stop, once.
        process = await asyncio.create_subprocess_exec(*command, start_new_session=True, env=environment)
        try:
            changed = await _change(folder, seen, process, stopping, hopeless)
            waited = process.returncode is not None and stopping.done()
        finally:
            code = await _end(process)
        if changed is None:
            stopping.cancel()
            return failures.OK if waited else code
        output.note(f"{changed} has changed: starting again")


async def _change(
    folder: str,
    seen: Stamps,
    process: asyncio.subprocess.Process,
    stopping: asyncio.Task[signal.Signals],
    hopeless: Callable[[int], bool],
) -> str | None:
    """The file that has changed; None when it is time to stop."""
    told = False
    while not stopping.done():
        await asyncio.wait([stopping], timeout=LOOK_SECONDS)
        if process.returncode is not None and not told:
            told = True
            if await asyncio.to_thread(hopeless, process.returncode):
                return None
            output.note(f"the program has ended with code {process.returncode}: it starts again when a file changes")
        now = await asyncio.to_thread(stamps, folder)
        if now != seen and not stopping.done():
            return min(path for path in now.keys() | seen.keys() if now.get(path) != seen.get(path))
    return None


async def _end(process: asyncio.subprocess.Process) -> int:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
    return await process.wait()
