"""Bodies and answers about approvals. OpenAPI shows them all."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ostinato import approving
from ostinato.api import models
from ostinato.core import approvals

ANY = "any"
"""Instead of a state."""
STATE_PATTERN = rf"^{approvals.DECISION_PATTERN}$"

Key = Annotated[str, msgspec.Meta(max_length=300, pattern=r"^[^\x00]*$")]


class ApprovalPage(models.Answer):
    """Approvals, oldest first. Without `nextCursor` this was the last page."""

    approvals: list[approving.ApprovalView]
    next_cursor: str | None


class Decision(models.Body):
    """What somebody decides. They are who the key says they are.

    A `payload`, where it may be edited, replaces what is decided about. With the `version` that was looked at, the
    decision is refused if something else is asked by now; `key` names one of several approvals of a function."""

    decision: Annotated[str, msgspec.Meta(pattern=STATE_PATTERN + r"(?!\n)")]
    notes: Annotated[str, msgspec.Meta(max_length=approvals.LONGEST_NOTES, pattern=r"^[^\x00]*$")] | None = None
    payload: Any = msgspec.UNSET
    key: Key | None = None
    version: Annotated[int, msgspec.Meta(ge=1, lt=2**53)] | None = None

    @property
    def edited(self) -> Any:
        """As `Approvals.decide` takes it."""
        return ... if self.payload is msgspec.UNSET else self.payload
