"""One arrival against its gate: what is refused and why, what counts as success, what is kept."""

import datetime
from typing import Any

import msgspec
import pytest

from ostinato import errors
from ostinato.gates import arrivals, definition, records

KEY = "2025-11-29"
NOON = datetime.datetime(2025, 11, 29, 12, tzinfo=datetime.UTC)


def gate(**fields: Any) -> definition.Gate:
    return definition.read({"name": "phase", "key": "game_date", "members": ["BdlGames", "BdlTeams"]} | fields)


def refused(found: definition.Gate, *args: Any, **fields: Any) -> errors.InvalidInput:
    with pytest.raises(errors.InvalidInput) as caught:
        arrivals.check(found, *args, **fields)
    return caught.value


def test_e11_the_record_keeps_all_of_the_data_and_lifts_what_is_asked_for() -> None:
    data = {
        "correlation_id": "abc-123",
        "status": "success",
        "record_count": 450,
        "execution_id": "exec-003",
        "is_incremental": True,
        "entities_changed": ["lebron-james"],
    }
    record = arrivals.check(gate(), KEY, "BdlGames", data, arrived_at=NOON)
    assert msgspec.to_builtins(record) == {
        "member": "BdlGames",
        "status": "success",
        "success": True,
        "data": data,
        "correlationId": "abc-123",
        "executionId": "exec-003",
        "recordCount": 450,
        "arrivedAt": "2025-11-29T12:00:00Z",
    }
    assert records.read(msgspec.json.decode(msgspec.json.encode(record))) == record


def test_a_bare_arrival_is_a_success() -> None:
    assert msgspec.to_builtins(arrivals.check(gate(), KEY, "BdlGames")) == {
        "member": "BdlGames",
        "status": "success",
        "success": True,
        "data": {},
    }


@pytest.mark.parametrize("data", [{"record_count": "many", "execution_id": 7}, {"record_count": True}])
def test_what_is_not_what_its_name_promises_stays_in_the_data(data: dict[str, Any]) -> None:
    record = arrivals.check(gate(), KEY, "BdlGames", data)
    assert (record.record_count, record.execution_id, record.data) == (None, None, data)


# --- X12: only a success counts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "data", "success"),
    [
        (None, {}, True),
        ("success", {}, True),
        (None, {"status": "success"}, True),
        ("success", {"status": "success"}, True),
        ("failed", {}, False),
        (None, {"status": "failed"}, False),
        (None, {"status": "SUCCESS"}, False),
        (None, {"status": None}, True),
    ],
)
def test_x12_a_status_other_than_success_does_not_count(status: Any, data: Any, success: bool) -> None:
    record = arrivals.check(gate(), KEY, "BdlGames", data, status)
    assert record.success is success
    assert record.status == (status or data.get("status") or "success")


@pytest.mark.parametrize(
    ("data", "success"),
    [
        ({"status": "success"}, True),
        ({"status": "partial", "record_count": 1}, True),
        ({"status": "error"}, False),
        ({}, False),
    ],
)
def test_x12_the_gate_says_what_counts_as_success(data: dict[str, Any], success: bool) -> None:
    record = arrivals.check(gate(success={"status": ["success", "partial"]}), KEY, "BdlGames", data)
    assert record.success is success


def test_success_may_be_told_by_any_field() -> None:
    found = gate(success={"record_count": [{"numeric": [">", 0]}]})
    full = arrivals.check(found, KEY, "BdlGames", {"record_count": 3})
    empty = arrivals.check(found, KEY, "BdlGames", {"record_count": 0})
    assert (full.success, full.status) == (True, "success")
    assert (empty.success, empty.status) == (False, "failed")


def test_the_pattern_sees_a_status_that_was_given_beside_the_data() -> None:
    assert arrivals.check(gate(success={"status": ["done"]}), KEY, "BdlGames", {}, "done").success


@pytest.mark.parametrize("status", ["", 7, True, "x" * 65, "two\nlines", ["success"]])
def test_a_bad_status_is_refused(status: Any) -> None:
    error = refused(gate(), KEY, "BdlGames", {}, status)
    assert isinstance(error, errors.InvalidStatus)
    assert error.details["field"] == "status"
    inside = refused(gate(), KEY, "BdlGames", {"status": status})
    assert (inside.code, inside.details["field"]) == ("invalid_status", "data.status")


def test_two_statuses_that_contradict_each_other_are_refused() -> None:
    error = refused(gate(), KEY, "BdlGames", {"status": "failed"}, "success")
    assert error.code == "invalid_status"
    assert "'failed'" in error.message


# --- E5: what is validated --------------------------------------------------------------------------------------


def test_e5_an_unknown_member_is_refused_with_the_nearest_one() -> None:
    error = refused(gate(), KEY, "BdlGame")
    assert isinstance(error, errors.UnknownMember)
    assert error.message == "gate 'phase' does not expect 'BdlGame': did you mean 'BdlGames'? it expects 2 members"
    assert error.details == {"gate": "phase", "member": "BdlGame", "expectedCount": 2, "field": "member"}


@pytest.mark.parametrize("member", ["", "$open", "x" * 100_000, 7, None])
def test_whatever_is_sent_as_a_member_gets_a_short_answer(member: Any) -> None:
    error = refused(gate(), KEY, member)
    assert error.details["field"] == "member"
    assert len(error.message) < 300


@pytest.mark.parametrize("key", ["", "x" * 257, "a\nb", "a\0", "\ud800", 20251129, None])
def test_e5_a_bad_key_is_refused(key: Any) -> None:
    assert refused(gate(), key, "BdlGames").details["field"] == "key"


@pytest.mark.parametrize("key", ["x", "x" * 256, "2025-11-29", "Zürich 7/8: a+b"])
def test_a_key_is_any_short_text(key: str) -> None:
    assert arrivals.check(gate(), key, "BdlGames").success


@pytest.mark.parametrize("data", [[], "text", 7, {1: 2}])
def test_data_is_an_object(data: Any) -> None:
    assert refused(gate(), KEY, "BdlGames", data).details["field"] == "data"


@pytest.mark.parametrize(
    ("data", "status", "missing"),
    [
        ({}, None, ["status", "metadata.count"]),
        ({"status": "success"}, None, ["metadata.count"]),
        ({"metadata": {"count": 0}}, None, ["status"]),
        ({"status": "success", "metadata": {"count": None}}, None, ["metadata.count"]),
        ({"status": "success", "metadata": 7}, None, ["metadata.count"]),
        ({}, "success", ["metadata.count"]),
    ],
)
def test_e5_a_missing_field_is_named(data: Any, status: Any, missing: list[str]) -> None:
    error = refused(gate(required=["status", "metadata.count"]), KEY, "BdlGames", data, status)
    assert isinstance(error, errors.MissingField)
    assert error.details["missing"] == missing
    assert error.details["field"] == f"data.{missing[0]}"
    assert missing[0] in error.message


def test_e5_a_field_that_is_zero_or_empty_is_there() -> None:
    data = {"metadata": {"count": 0}, "text": "", "flag": False}
    assert arrivals.check(gate(required=["metadata.count", "text", "flag"]), KEY, "BdlGames", data).success


def test_data_of_another_key_is_refused() -> None:
    error = refused(gate(), KEY, "BdlGames", {"game_date": "2025-11-30"})
    assert error.details["field"] == "data.game_date"
    assert arrivals.check(gate(), KEY, "BdlGames", {"game_date": KEY}).success
    assert arrivals.check(gate(), "7", "BdlGames", {"game_date": 7}).success


# --- E10: the correlation id ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "data", "found"),
    [
        ("abc-123", {}, "abc-123"),
        (None, {"correlation_id": "abc-123"}, "abc-123"),
        (None, {"correlationId": "abc-123"}, "abc-123"),
        ("outer", {"correlation_id": "inner"}, "outer"),
        (None, {}, None),
    ],
)
def test_e10_the_correlation_id_is_given_beside_the_data_or_in_it(given: Any, data: Any, found: Any) -> None:
    assert arrivals.check(gate(), KEY, "BdlGames", data, correlation_id=given).correlation_id == found


@pytest.mark.parametrize(
    ("given", "data", "field"),
    [("a b", {}, "correlationId"), (None, {"correlation_id": 7}, "data.correlation_id")],
)
def test_e10_a_correlation_id_that_no_job_could_have_is_refused(given: Any, data: Any, field: str) -> None:
    assert refused(gate(), KEY, "BdlGames", data, correlation_id=given).details["field"] == field


def test_e10_differing_correlation_ids_are_all_kept() -> None:
    ids = ["b", "a", None, "b"]
    found = [arrivals.check(gate(), KEY, "BdlGames", correlation_id=given) for given in ids]
    assert records.correlation_ids(found) == ["b", "a"]


# --- what could not be aggregated does not come in ----------------------------------------------------------------


def test_a_success_that_could_not_be_aggregated_is_refused_at_once() -> None:
    found = gate(aggregate={"entities": {"how": "union", "from": "metadata.entities"}})
    error = refused(found, KEY, "BdlGames", {"metadata": {"entities": "lebron-james"}})
    assert isinstance(error, errors.UnfitValue)
    assert error.details == {"gate": "phase", "member": "BdlGames", "field": "data.metadata.entities"}


def test_a_failure_may_bring_anything() -> None:
    found = gate(aggregate={"entities": {"how": "union"}})
    assert not arrivals.check(found, KEY, "BdlGames", {"entities": "unknown"}, "failed").success
