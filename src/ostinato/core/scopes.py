"""What a key may do. Each route, subscription and socket names the one scope that it needs."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato import errors

JOBS_READ = "jobs:read"
JOBS_WRITE = "jobs:write"
TASKS_WORK = "tasks:work"
APPROVALS_DECIDE = "approvals:decide"
CONFIG_WRITE = "config:write"
ADMIN = "admin"

SCOPES = (JOBS_READ, JOBS_WRITE, TASKS_WORK, APPROVALS_DECIDE, CONFIG_WRITE, ADMIN)


def check(names: Iterable[str]) -> frozenset[str]:
    """The scopes as a set, or InvalidInput naming the one that does not exist."""
    found = frozenset(names)
    for name in sorted(found):
        if name not in SCOPES:
            raise errors.InvalidInput(f"{name!r} is not a scope: use some of {', '.join(SCOPES)}", field="scopes")
    if not found:
        raise errors.InvalidInput(f"a key needs at least one scope: {', '.join(SCOPES)}", field="scopes")
    return found


def allows(granted: frozenset[str], wanted: str) -> bool:
    """Admin may do everything, in its own tenant."""
    return wanted in granted or ADMIN in granted
