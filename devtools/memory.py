"""Where files of tests go that need not outlive them: into memory, where nobody waits for a disk.

What a test kills is a process, and what a process has written is there afterwards, in memory as on a disk.
"""

from __future__ import annotations

import os
import shutil

SHARED_MEMORY = "/dev/shm"
ROOM = 2 * 1024**3
"""Bytes that must be free: a container may have a few megabytes only, and somebody else may use them."""


def folder() -> str | None:
    """A folder in memory, if there is one with room enough."""
    if not os.access(SHARED_MEMORY, os.W_OK) or shutil.disk_usage(SHARED_MEMORY).free < ROOM:
        return None
    return SHARED_MEMORY
