"""Ostinato: durable jobs of tasks, on one SQLite file or on PostgreSQL.

Each name is loaded when it is asked for: who only wants the version, or the command line's help, does not wait for the
engine.
"""

import importlib
from typing import TYPE_CHECKING

from ostinato import errors
from ostinato.errors import RetryAfter, TerminalError

if TYPE_CHECKING:
    from ostinato.app import Job, Ostinato
    from ostinato.context import Context, SyncContext
    from ostinato.core.approvals import Decision
    from ostinato.core.graph import Plan
    from ostinato.core.retry import Retry
    from ostinato.encryption import Keyring
    from ostinato.options import EngineOptions

__all__ = [
    "Context",
    "Decision",
    "EngineOptions",
    "Job",
    "Keyring",
    "Ostinato",
    "Plan",
    "Retry",
    "RetryAfter",
    "SyncContext",
    "TerminalError",
    "errors",
]
__version__ = "0.1.0"

_MODULES = {
    "Context": "context",
    "Decision": "core.approvals",
    "EngineOptions": "options",
    "Job": "app",
    "Keyring": "encryption",
    "Ostinato": "app",
    "Plan": "core.graph",
    "Retry": "core.retry",
    "SyncContext": "context",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
