"""Everything that can happen to jobs and tasks, each as one value: what it needs to see, and what it does.

A command either changes the ledger and answers, or raises before it has changed anything, so that one bad command never
spoils the others in its batch.
"""

from __future__ import annotations

from typing import Any, Protocol

from ostinato.core import ledger, needs
from ostinato.core.commands.approving import Decide, Decided
from ostinato.core.commands.asking import APPROVE, RAISE, RAISE_TENANT, Withdraw, withdraw
from ostinato.core.commands.consequences import make_failure, outcome_of
from ostinato.core.commands.external import CompleteTask, FailTask
from ostinato.core.commands.following import UNDO, follow
from ostinato.core.commands.gating import (
    Arrive,
    Arrived,
    ExpireGate,
    Freeze,
    Frozen,
    OpenGate,
    ResetGate,
    late_key,
    place_of,
)
from ostinato.core.commands.operating import CancelJob, CancelTask, Resume, ResumePlan, RetryTasks, SkipTask
from ostinato.core.commands.passing import Person
from ostinato.core.commands.piping import (
    Entered,
    EnterItem,
    EnterItems,
    FinishItem,
    MigrateItem,
    MoveItem,
    OmitStep,
    RollBack,
    StartRun,
    check_different,
)
from ostinato.core.commands.producing import AddTasks, Submit, SubmitMany, Submitted
from ostinato.core.commands.reacting import Observe, react
from ostinato.core.commands.spending import RecordUsage, SetBudget
from ostinato.core.commands.telling import PublishStatus
from ostinato.core.commands.waiting import FireTimer, SendSignal
from ostinato.core.commands.working import (
    Claim,
    Complete,
    DropLeases,
    Expire,
    Fail,
    HandBack,
    RecordStep,
    Release,
    Suspend,
)


class Command(Protocol):
    def needs(self, wanted: needs.Needs, /) -> None: ...
    def apply(self, book: ledger.Ledger, /) -> Any: ...


__all__ = [
    "APPROVE",
    "RAISE",
    "RAISE_TENANT",
    "UNDO",
    "AddTasks",
    "Arrive",
    "Arrived",
    "CancelJob",
    "CancelTask",
    "Claim",
    "Command",
    "Complete",
    "CompleteTask",
    "Decide",
    "Decided",
    "DropLeases",
    "EnterItem",
    "EnterItems",
    "Entered",
    "Expire",
    "ExpireGate",
    "Fail",
    "FailTask",
    "FinishItem",
    "FireTimer",
    "Freeze",
    "Frozen",
    "HandBack",
    "MigrateItem",
    "MoveItem",
    "Observe",
    "OmitStep",
    "OpenGate",
    "Person",
    "PublishStatus",
    "RecordStep",
    "RecordUsage",
    "Release",
    "ResetGate",
    "Resume",
    "ResumePlan",
    "RetryTasks",
    "RollBack",
    "SendSignal",
    "SetBudget",
    "SkipTask",
    "StartRun",
    "Submit",
    "SubmitMany",
    "Submitted",
    "Suspend",
    "Withdraw",
    "check_different",
    "follow",
    "late_key",
    "make_failure",
    "outcome_of",
    "place_of",
    "react",
    "withdraw",
]
