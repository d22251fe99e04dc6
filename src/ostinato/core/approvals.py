"""Approvals: what is asked, who may answer, and what the answers come to.

An approval is a task that a person completes, or a place inside a function that waits for a person. `approve` counts up
to a quorum of distinct people; every other decision counts at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from ostinato import errors
from ostinato.core import codec, documents, moments
from ostinato.core.documents import short as _short
from ostinato.core.retry import LONGEST, said

APPROVE: Final = "approve"
REJECT: Final = "reject"

WAITING: Final = "waiting"
WITHDRAWN: Final = "withdrawn"
"""Its task was cancelled or skipped before enough people had decided."""
EXPIRED: Final = "expired"
"""Its deadline came, and it says that its task fails then."""
SKIPPED: Final = "skipped"
CANCELLED: Final = "cancelled"
"""Somebody who may decide has skipped or cancelled its task."""
NO_DECISIONS: Final = (WAITING, WITHDRAWN, EXPIRED, SKIPPED, CANCELLED, "any")
"""Names that no decision may have: they are states, or stand for all of them."""

LONGEST_TITLE: Final = 500
LONGEST_NOTES: Final = 4096
LONGEST_ACTOR: Final = 255
MOST_NAMES: Final = 100
MOST_DECISIONS: Final = 20
DECISION_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}"
_DECISION = re.compile(DECISION_PATTERN)

Actor = Annotated[str, said(minLength=1, maxLength=LONGEST_ACTOR, pattern=r"^[^\x00-\x1f]*$")]
Actors = Annotated[list[Actor], said(minItems=1, maxItems=MOST_NAMES)]
DecisionName = Annotated[str, said(pattern=rf"^{DECISION_PATTERN}$(?!\n)")]
Seconds = Annotated[float, said(exclusiveMinimum=0, exclusiveMaximum=LONGEST)]
OnDeadline = Literal["reject", "approve", "fail"]


class _Said(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    pass


class Escalation(_Said, frozen=True):
    """Whom else to ask if nothing is decided `after` so many seconds."""

    after: Seconds
    to: Actors


class Approval(_Said, frozen=True):
    """What people are asked, and how their answers count."""

    title: Annotated[str, said(minLength=1, maxLength=LONGEST_TITLE, pattern=r"^[^\x00]*$")]
    decisions: Annotated[tuple[DecisionName, ...], said(minItems=1, maxItems=MOST_DECISIONS)] = (APPROVE, REJECT)
    """`approve` and `reject` mean what they say; any other ends the approval at once, and says so in its output."""
    quorum: Annotated[int, said(minimum=1, maximum=MOST_NAMES)] = 1
    """How many different people must approve."""
    approvers: Actors | None = None
    """Who may decide, by the name or the id of their key (`key:…`); without it, whoever has the scope."""
    not_submitter: bool = False
    """Whoever submitted the job, or added the approval or a task that it guards, may not decide."""
    allow_edit: bool = False
    """Whoever decides may change the payload."""
    escalate: Escalation | None = None
    deadline: Seconds | None = None
    """After so many seconds it is not waited for any longer."""
    on_deadline: OnDeadline = "reject"

    def next_due(self, requested_at: int, *, escalated: bool) -> int | None:
        """When something is to happen though nobody has decided."""
        if self.escalate is not None and not escalated:
            return requested_at + int(self.escalate.after * 1e6)
        return None if self.deadline is None else requested_at + int(self.deadline * 1e6)

    def asked(self, *, escalated: bool) -> list[str] | None:
        """Who may decide now; None is everybody."""
        if self.approvers is None:
            return None
        more = self.escalate.to if escalated and self.escalate is not None else []
        return list(dict.fromkeys([*self.approvers, *more]))


class Made(_Said, frozen=True):
    """One decision."""

    by: str
    at: int
    decision: str
    notes: str | None = None
    edited: bool = False


class Document(msgspec.Struct, rename="camel"):
    """What is kept of an approval besides its payload."""

    approval: Approval
    made: list[Made] = msgspec.field(default_factory=lambda: list[Made]())

    def standing(self) -> list[Made]:
        """The decisions that count: those before an edit were about something else."""
        edits = [index for index, made in enumerate(self.made) if made.edited]
        return self.made[edits[-1] :] if edits else self.made

    def approvals(self) -> int:
        """How many people have approved, so far."""
        return len({made.by for made in self.standing() if made.decision == APPROVE})

    def outcome(self) -> str | None:
        """The decision that it has come to, if it has."""
        for made in self.standing():
            if made.decision != APPROVE:
                return made.decision
        return APPROVE if self.approvals() >= self.approval.quorum else None


class Decision(msgspec.Struct, frozen=True):
    """What `ctx.approve` returns: what was decided, by whom, when, with which notes, and the payload as it is now."""

    decision: str
    by: list[str]
    at: str
    notes: list[str]
    payload: Any


_documents = msgspec.json.Decoder(Document)


def read(stored: bytes) -> Document:
    codec.check_open(stored)
    return _documents.decode(stored)


def shown(state: str) -> str:
    """How an approval stands, in a sentence: `approved`, or what was decided."""
    return {APPROVE: "approved", REJECT: "rejected"}.get(state, state)


def named(names: Sequence[str] | None) -> str | None:
    """Names as the inbox is searched for one: each between line breaks, which no name has."""
    return None if names is None else "\n" + "\n".join(names) + "\n"


def result(decision: str, made: Sequence[Made], at: int, payload: bytes, *, by_deadline: bool = False) -> bytes:
    """What an approval comes to, as JSON."""
    told: dict[str, object] = {
        "decision": decision,
        "reviewedBy": list(dict.fromkeys(one.by for one in made)),
        "reviewedAt": moments.text(at),
        "reviewNotes": [one.notes for one in made if one.notes],
    }
    if by_deadline:
        told["byDeadline"] = True
    return codec.encode_own(told)[:-1] + b',"payload":' + payload + b"}"


def rejection(title: str, result: dict[str, Any]) -> str:
    """Why a rejected approval has failed."""
    if result.get("byDeadline"):
        return f"{title!r} was rejected: its deadline came before enough people had approved"
    sentence = f"{title!r} was rejected by {', '.join(result['reviewedBy'])}"
    return f"{sentence}: {' / '.join(result['reviewNotes'])}" if result["reviewNotes"] else sentence


def expiry(title: str) -> str:
    return f"nobody decided on {title!r} before its deadline"


# --- checks ------------------------------------------------------------------------------------------------------


def read_document(document: Any) -> Approval:
    """An approval as somebody wrote it."""
    return check(documents.convert(document, Approval, "approval", "approval"))


def check(approval: Approval, where: str = "approval", *, within: str = "approval") -> Approval:
    """The same, if it can be asked. `within` is the field that it was given in."""
    for field, wrong in (*_wrong_words(approval), *_wrong_people(approval), *_wrong_times(approval)):
        raise errors.InvalidInput(f"{where}: {field} {wrong}", field=f"{within}.{field}")
    return approval


def _wrong_words(approval: Approval) -> Iterator[tuple[str, str]]:
    if wrong := _wrong_text(approval.title, LONGEST_TITLE, 1):
        yield "title", wrong
    if not 1 <= len(approval.decisions) <= MOST_DECISIONS or len(set(approval.decisions)) != len(approval.decisions):
        yield "decisions", f"must be 1 to {MOST_DECISIONS} different names"
    for name in approval.decisions:
        if not _DECISION.fullmatch(name) or name in NO_DECISIONS:
            allowed = f"use 1 to 64 letters, digits, . _ : or -, and none of {', '.join(NO_DECISIONS)}"
            yield "decisions", f"has {_short(name)}: {allowed}"


def _wrong_people(approval: Approval) -> Iterator[tuple[str, str]]:
    lists = {"approvers": approval.approvers, "escalate.to": approval.escalate and approval.escalate.to}
    for field, names in lists.items():
        if names is not None and not 1 <= len(names) <= MOST_NAMES:
            yield field, f"must have 1 to {MOST_NAMES} names"
        for name in names or ():
            if wrong := _wrong_name(name):
                yield field, f"has {_short(name)}: a name {wrong}"
    if not 1 <= approval.quorum <= MOST_NAMES:
        yield "quorum", f"must be 1 to {MOST_NAMES}, not {_short(approval.quorum)}"
    if approval.quorum > 1 and APPROVE not in approval.decisions:
        yield "quorum", f"counts who says {APPROVE!r}, which is not among the decisions"
    people = approval.asked(escalated=True)
    if people is not None and len(people) < approval.quorum:
        yield "quorum", f"is {approval.quorum} and only {len(people)} may decide: name more approvers"


def _wrong_times(approval: Approval) -> Iterator[tuple[str, str]]:
    after = None if approval.escalate is None else approval.escalate.after
    for field, value in (("deadline", approval.deadline), ("escalate.after", after)):
        if value is not None and not 0 < value < LONGEST:
            yield field, f"must be more than 0 seconds, not {_short(value)}"
    if after is not None and approval.deadline is not None and after >= approval.deadline:
        yield "escalate.after", "must be before the deadline, or nobody is asked in time"


def check_actor(name: Any) -> str:
    if wrong := _wrong_name(name):
        raise errors.InvalidInput(f"actor {wrong}", field="actor")
    return name


def check_notes(notes: Any, field: str = "notes") -> None:
    """What people say of what they do must be fit to be kept."""
    if notes is not None and (wrong := _wrong_text(notes, LONGEST_NOTES)):
        raise errors.InvalidInput(f"{field} {wrong}", field=field)


def _wrong_name(name: Any) -> str | None:
    wrong = _wrong_text(name, LONGEST_ACTOR, 1)
    return wrong or ("must be one line of text" if any(ord(character) < 32 for character in name) else None)


def _wrong_text(value: Any, longest: int, shortest: int = 0) -> str | None:
    if not isinstance(value, str) or not shortest <= len(value) <= longest or "\0" in value:
        return f"must be a text of {shortest} to {longest:,} characters, without NUL"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "has a lone surrogate, which is not valid text"
    return None


def check_may_decide(
    document: Document,
    *,
    escalated: bool,
    submitted_by: str | None,
    actor: str,
    called: str | None,
    added_by: Collection[str] = (),
) -> None:
    """Raise unless this person is among those who are asked."""
    approval = document.approval
    asked = approval.asked(escalated=escalated)
    if asked is not None and actor not in asked and called not in asked:
        raise errors.NotAnApprover(
            f"{actor!r} is not asked for {approval.title!r}: {', '.join(asked)} may decide", actor=actor
        )
    if approval.not_submitter and actor == submitted_by:
        raise errors.NotAnApprover(
            f"{actor!r} submitted the job: somebody else has to decide on {approval.title!r}", actor=actor
        )
    if approval.not_submitter and actor in added_by:
        raise errors.NotAnApprover(
            f"{actor!r} added the approval or a task that it guards, or gave its input: somebody else has to "
            f"decide on {approval.title!r}",
            actor=actor,
        )
