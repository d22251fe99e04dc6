"""The command line without its start-up: a process that has loaded everything forks for each command.

What runs is a process of its own all the same, with its own arguments, folder, environment, streams and exit code. Only
the imports are shared, which are most of what a short command takes. What is to get signals, or is about the start
itself, is started as people start it.
"""

from __future__ import annotations

import functools
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import TextIO

LOADED = [
    "devtools.programs",
    "ostinato.cli.main",
    "ostinato.cli.loading",
    "ostinato.cli.session",
    "ostinato.api.server",
    "ostinato.reactions.own",
    "ostinato.reactions.playbooks",
    "ostinato.store.postgres",
    "ostinato.store.sqlite",
    "pydantic",
    "rich.console",
    "rich.table",
    "uvloop",
]


UNTOLD = 255


def run_command(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: str = "", timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """What `ostinato` with these arguments does, prints and complains."""
    with tempfile.TemporaryDirectory(prefix="ostinato-command-") as name:
        streams = Path(name)
        for stream, content in (("stdin", stdin), ("stdout", ""), ("stderr", "")):
            (streams / stream).write_text(content)
        process = _server().Process(target=_become, args=(streams, list(arguments), cwd, dict(env)))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(arguments), timeout)
        printed, complained = (streams / "stdout").read_text(), (streams / "stderr").read_text()
        return subprocess.CompletedProcess(list(arguments), _exit_code(process.exitcode, streams), printed, complained)


def _exit_code(told: int, streams: Path) -> int:
    """`told` is 255 also if the server was not there any more to tell how a process ended: then its own word counts."""
    own = streams / "exit"
    return int(own.read_text()) if told == UNTOLD and own.exists() else told


@functools.cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    return context


def _become(streams: Path, arguments: list[str], cwd: Path, env: dict[str, str]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.stdin = _open(streams / "stdin", 0, os.O_RDONLY)
    sys.stdout = _open(streams / "stdout", 1, os.O_WRONLY)
    sys.stderr = _open(streams / "stderr", 2, os.O_WRONLY)
    sys.argv = ["ostinato", *arguments]
    from ostinato.cli import main

    try:
        main.main()
    except SystemExit as ended:
        (streams / "exit").write_text(str(ended.code or 0))
        raise


def _open(path: Path, number: int, flags: int) -> TextIO:
    """Let a stream be this file, also for those who only know its number."""
    opened = os.open(path, flags)
    os.dup2(opened, number)
    os.close(opened)
    mode = "r" if flags == os.O_RDONLY else "w"
    return io.TextIOWrapper(open(number, f"{mode}b", closefd=False), encoding="utf-8", line_buffering=number == 2)
