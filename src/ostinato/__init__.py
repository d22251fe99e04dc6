"""Ostinato: durable jobs of tasks, on one SQLite file or on PostgreSQL."""

from ostinato import errors
from ostinato.app import Job, Ostinato
from ostinato.context import Context, SyncContext
from ostinato.core.approvals import Decision
from ostinato.core.graph import Plan
from ostinato.core.retry import Retry
from ostinato.encryption import Keyring
from ostinato.errors import RetryAfter, TerminalError
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
