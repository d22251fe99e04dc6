"""How an instance of a gate stands: counts, who is missing and since when, and the sentence for people."""

import datetime
from typing import Any

import msgspec
import pytest

from ostinato.gates import definition, status
from ostinato.gates.records import Record

NOON = datetime.datetime(2025, 11, 29, 12, tzinfo=datetime.UTC)


def minute(n: int) -> datetime.datetime:
    return NOON + datetime.timedelta(minutes=n)


def gate(**fields: Any) -> definition.Gate:
    return definition.read({"name": "phase", "members": ["A", "B", "C"]} | fields)


def record(member: str, at: int, outcome: str = "success", correlation_id: str | None = None) -> Record:
    success = outcome == "success"
    return Record(member, outcome, success, {"large": "data"}, correlation_id, "exec", 7, minute(at))


def view(found: definition.Gate, *records: Record, state: Any = "waiting", **fields: Any) -> status.Status:
    known = {record.member: record for record in records}
    return status.view(found, status.Instance(key="2025-11-29", state=state, records=known, **fields))


def test_e12_the_counts_and_the_status_have_the_names_of_old() -> None:
    found = view(gate(), record("B", 1), since=minute(1))
    assert (found.completed_count, found.expected_count, found.status) == (1, 3, "waiting")
    wire = msgspec.to_builtins(found)
    assert (wire["completedCount"], wire["expectedCount"]) == (1, 3)
    assert wire["arrived"] == [
        {
            "member": "B",
            "status": "success",
            "success": True,
            "arrivedAt": "2025-11-29T12:01:00Z",
            "correlationId": None,
            "executionId": "exec",
            "recordCount": 7,
        }
    ]


def test_e13_who_is_missing_is_named_and_since_when() -> None:
    found = view(gate(), record("B", 1), since=minute(1))
    assert found.missing == ["A", "C"]
    assert found.since == minute(1)
    assert found.sentence == "Completed: 1/3; missing: A, C since 2025-11-29T12:01:00Z"


def test_e13_many_that_are_missing_are_counted_in_the_sentence_and_listed_beside_it() -> None:
    names = [f"m{n}" for n in range(21)]
    found = view(gate(members=names), since=NOON)
    assert found.missing == names
    assert found.sentence == "Completed: 0/21; missing: m0, m1, m2, m3, m4 and 16 more since 2025-11-29T12:00:00Z"


def test_arrivals_are_listed_as_they_came() -> None:
    found = view(gate(), record("A", 3), record("B", 1), record("C", 1))
    assert [arrival.member for arrival in found.arrived] == ["B", "C", "A"]


def test_x12_a_failed_arrival_is_told_and_its_member_stays_missing() -> None:
    found = view(gate(), record("A", 1), record("B", 2, "error"), since=minute(1))
    assert (found.completed_count, found.missing) == (1, ["B", "C"])
    assert [arrival.member for arrival in found.failed] == ["B"]
    assert found.sentence == "Completed: 1/3; missing: B, C since 2025-11-29T12:01:00Z; failed: B (error)"


def test_a_failed_arrival_counts_where_the_gate_is_content_with_a_part() -> None:
    found = view(gate(onFailure="partial"), record("A", 1), record("B", 2, "error"))
    assert (found.completed_count, found.missing) == (2, ["C"])
    assert [arrival.success for arrival in found.arrived] == [True, False]
    assert [arrival.member for arrival in found.failed] == ["B"]


def test_an_open_gate_says_when_by_whom_and_what_it_triggered() -> None:
    found = view(
        gate(),
        *(record(name, n) for n, name in enumerate("ABC")),
        state="open",
        opened_at=minute(2),
        opened_by="C",
        triggered=[{"target": "job", "jobId": "job-1"}],
    )
    assert found.missing == []
    assert found.triggered == [{"target": "job", "jobId": "job-1"}]
    assert found.sentence == "Completed: 3/3; opened at 2025-11-29T12:02:00Z by C"


def test_a_gate_opened_by_hand_says_why_and_without_whom() -> None:
    found = view(
        gate(), record("A", 0), state="open", opened_at=minute(9), opened_by="key:ops", reason="B and C are down"
    )
    assert found.sentence == (
        "Completed: 1/3; opened at 2025-11-29T12:09:00Z by key:ops (B and C are down); missing: B, C"
    )


@pytest.mark.parametrize("state", ["failed", "expired", "reset"])
def test_a_gate_that_ended_otherwise_says_how_and_when(state: str) -> None:
    found = view(gate(), record("A", 0), state=state, ended_at=minute(60))
    assert found.sentence == f"Completed: 1/3; {state} at 2025-11-29T13:00:00Z; missing: B, C"


def test_late_arrivals_are_recorded_beside_those_that_counted() -> None:
    late = [record("C", 5, correlation_id="late"), record("C", 6)]
    found = view(gate(), record("A", 0, correlation_id="x"), state="open", late=late)
    assert [(arrival.member, arrival.arrived_at) for arrival in found.late] == [("C", minute(5)), ("C", minute(6))]
    assert found.completed_count == 1
    assert found.sentence.endswith("; late: C")
    assert found.correlation_ids == ["x", "late"]


def test_e10_correlation_ids_are_listed_once_in_the_order_in_which_they_came() -> None:
    found = view(
        gate(),
        record("A", 3, correlation_id="y"),
        record("B", 1, correlation_id="x"),
        record("C", 2, correlation_id="y"),
    )
    assert found.correlation_ids == ["x", "y"]


def test_a_gate_over_no_members_is_complete() -> None:
    found = view(definition.freeze(gate(members="dynamic"), []), state="open", opened_at=NOON)
    assert (found.completed_count, found.expected_count, found.missing) == (0, 0, [])
    assert found.sentence == "Completed: 0/0; opened at 2025-11-29T12:00:00Z"


def test_a_time_elsewhere_is_told_in_utc() -> None:
    there = NOON.astimezone(datetime.timezone(datetime.timedelta(hours=-8)))
    assert view(gate(), since=there).sentence.endswith("since 2025-11-29T12:00:00Z")
