"""Which process this is, so that others on the same machine can tell when it has ended."""

from __future__ import annotations

import functools
import os
import socket


@functools.cache
def machine() -> str | None:
    """Names the place in which a process id stands for one process: the start of the machine, its name, and the
    namespace of process ids. None where that cannot be told: then nothing is concluded about other processes."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')} {socket.gethostname()}"
    except OSError:
        return None


def began(pid: int) -> int | None:
    """When a process began, in ticks since the machine did; None if it has ended. Raises OSError if nobody may look."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        os.kill(pid, 0)  # some systems hide the processes of others, and refuse this
        raise PermissionError(f"process {pid} cannot be looked at") from None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def has_ended(pid: int, since: int) -> bool:
    """Whether the process of this machine that had this id, and began then, has ended for sure."""
    try:
        return began(pid) != since
    except ProcessLookupError:
        return True
    except OSError:
        return False


def here() -> dict[str, int]:
    """This process, for others to look at."""
    pid = os.getpid()
    try:
        since = began(pid)
    except OSError:
        since = None
    return {"pid": pid} if since is None else {"pid": pid, "began": since}
