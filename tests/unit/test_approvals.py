"""The rules of approvals as lists: what can be asked, who may answer, what the answers come to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ostinato import errors
from ostinato.core import approvals, codec, events, fold

ASKED = {"title": "Publish it?"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": "x" * 501}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"title": 7}, "title"),
        ({"decisions": []}, "decisions"),
        ({"decisions": ["approve", "approve"]}, "decisions"),
        ({"decisions": ["approve", "waiting"]}, "decisions"),
        ({"decisions": ["no way"]}, "decisions"),
        ({"decisions": ["publish"], "quorum": 2}, "quorum"),
        ({"quorum": 0}, "quorum"),
        ({"quorum": 101}, "quorum"),
        ({"quorum": 2, "approvers": ["ann"]}, "quorum"),
        ({"quorum": 2, "approvers": ["ann", "ann"]}, "quorum"),
        ({"approvers": []}, "approvers"),
        ({"approvers": ["ann\nbob"]}, "approvers"),
        ({"escalate": {"after": 10, "to": []}}, "escalate.to"),
        ({"escalate": {"after": 0, "to": ["boss"]}}, "escalate.after"),
        ({"escalate": {"after": 60, "to": ["boss"]}, "deadline": 60}, "escalate.after"),
        ({"deadline": -1}, "deadline"),
        ({"deadline": float("nan")}, "deadline"),
        ({"onDeadline": "wait"}, "onDeadline"),
        ({"colour": "red"}, ""),
    ],
)
def test_what_cannot_be_asked(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        approvals.read_document(ASKED | fields)
    assert caught.value.details["field"] == (f"approval.{field}" if field else "approval")


@pytest.mark.parametrize(
    "fields",
    [{"quorum": "\ud800"}, {"escalate": range(3)}, {"onDeadline": "x" * 1_000_000}, {"quorum": 10**5000}],
    ids=lambda given: next(iter(given)),
)
def test_what_is_no_approval_at_all(fields: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        approvals.read_document(ASKED | fields)
    assert len(caught.value.message) < 500


def test_what_can_be_asked() -> None:
    read = approvals.read_document(
        ASKED | {"quorum": 2, "approvers": ["ann"], "escalate": {"after": 60, "to": ["boss"]}, "deadline": 100}
    )
    assert read.asked(escalated=False) == ["ann"]
    assert read.asked(escalated=True) == ["ann", "boss"]
    assert [read.next_due(1_000_000, escalated=done) for done in (False, True)] == [61_000_000, 101_000_000]
    assert approvals.read_document(ASKED).next_due(0, escalated=False) is None


def made(*said: str) -> approvals.Document:
    """Decisions as `who:what`, with a star for those that edited the payload."""
    parts = [one.rstrip("*").split(":") for one in said]
    document = approvals.Document(approvals.read_document(ASKED | {"quorum": 2}))
    document.made += [
        approvals.Made(by, at, decision, edited=said[at].endswith("*")) for at, (by, decision) in enumerate(parts)
    ]
    return document


@pytest.mark.parametrize(
    ("said", "outcome", "count"),
    [
        ((), None, 0),
        (("ann:approve",), None, 1),
        (("ann:approve", "ann:approve"), None, 1),
        (("ann:approve", "bob:approve"), "approve", 2),
        (("ann:approve", "bob:reject"), "reject", 1),
        (("ann:again",), "again", 0),
        (("ann:approve", "bob:approve*"), None, 1),
        (("ann:approve*", "bob:approve"), "approve", 2),
        (("ann:approve", "bob:approve*", "ann:approve"), "approve", 2),
    ],
)
def test_what_decisions_come_to(said: tuple[str, ...], outcome: str | None, count: int) -> None:
    assert (made(*said).outcome(), made(*said).approvals()) == (outcome, count)


@pytest.mark.parametrize(
    ("fields", "who", "allowed"),
    [
        ({}, "ann", True),
        ({"approvers": ["ann"]}, "ann", True),
        ({"approvers": ["ann"]}, "bob", False),
        ({"approvers": ["lead"]}, "key:7", True),
        ({"approvers": ["ann"], "escalate": {"after": 1, "to": ["boss"]}}, "boss", False),
        ({"notSubmitter": True}, "sub", False),
        ({"notSubmitter": True, "approvers": ["sub"]}, "sub", False),
        ({"notSubmitter": True}, "ann", True),
    ],
)
def test_who_may_decide(fields: dict[str, Any], who: str, allowed: bool) -> None:
    document = approvals.Document(approvals.read_document(ASKED | fields))
    try:
        approvals.check_may_decide(document, escalated=False, submitted_by="sub", actor=who, called="lead")
        decided = True
    except errors.NotAnApprover:
        decided = False
    assert decided == allowed


def test_a_document_round_trips() -> None:
    document = made("ann:approve*")
    assert approvals.read(codec.encode_own(document)) == document
    assert codec.decode(codec.encode_own(document.approval)) == {"title": "Publish it?", "quorum": 2}


# --- what the events say ---------------------------------------------------------------------------------------------


def told(*stream: tuple[str, dict[str, Any]], at: dict[int, int] | None = None) -> fold.FoldedJob:
    first: dict[str, Any] = {
        "name": "j",
        "correlationId": "c",
        "tags": {},
        "tasks": [{"taskId": "ok", "name": "review"}],
    }
    asked = {"key": "", "approval": {"title": "?", "quorum": 2}, "submittedBy": None, "dueAt": 50}
    entries: list[tuple[str, str | None, dict[str, Any]]] = [
        ("Job Created", None, first),
        ("Task Waiting", "ok", {"kind": "approval"}),
        ("Approval Requested", "ok", asked),
        *[(kind, "ok", {"key": ""} | data) for kind, data in stream],
    ]
    return fold.fold(
        events.Event("job", seq, kind, task_id, 0, (at or {}).get(seq, seq), msgspec.json.encode(data))
        for seq, (kind, task_id, data) in enumerate(entries, 1)
    )


ANN: tuple[str, dict[str, Any]] = ("Approval Decided", {"by": "ann", "decision": "approve"})
BOB: tuple[str, dict[str, Any]] = ("Approval Decided", {"by": "bob", "decision": "approve"})
ASKED_AGAIN: tuple[str, dict[str, Any]] = ("Approval Requested", {"approval": {}, "submittedBy": None, "dueAt": None})
FAILED: tuple[str, dict[str, Any]] = ("Task Failed", {})
CANCELLED: tuple[str, dict[str, Any]] = ("Task Cancelled", {})
DONE: tuple[str, dict[str, Any]] = ("Task Completed", {"output": {}})


@pytest.mark.parametrize(
    ("stream", "state"),
    [
        ((), "waiting"),
        ((ANN,), "waiting"),
        ((ANN, BOB, DONE), "approve"),
        ((ANN, ("Approval Decided", {"by": "bob", "decision": "approve", "edited": True})), "waiting"),
        ((ANN, ("Approval Decided", {"by": "bob", "decision": "reject"}), FAILED), "reject"),
        ((ANN, CANCELLED), "withdrawn"),
    ],
)
def test_the_state_is_the_fold_of_the_events(stream: tuple[Any, ...], state: str) -> None:
    job = told(*stream)
    assert job.broken == []
    assert job.approvals["ok", ""].state == state


@pytest.mark.parametrize(
    ("stream", "invariant"),
    [
        ((ANN, ANN), "I3"),
        ((ANN, BOB, BOB), "I3"),
        ((("Approval Expired", {"onDeadline": "reject"}),), "I11"),
        ((("Approval Escalated", {"dueAt": None}),), "I11"),
        ((ASKED_AGAIN,), "I3"),
    ],
)
def test_what_the_events_must_never_say(stream: tuple[Any, ...], invariant: str) -> None:
    assert invariant in {broken.invariant for broken in told(*stream).broken}


def test_a_deadline_that_has_come() -> None:
    job = told(("Approval Expired", {"onDeadline": "fail"}), at={4: 50})
    assert (job.broken, job.approvals["ok", ""].state) == ([], "expired")
