"""The two gates of the pipeline of basketball statistics, as the example ships them."""

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from ostinato import errors
from ostinato.gates import aggregate, arrivals, definition, status

FOLDER = Path(__file__).parents[2] / "examples" / "nba_phases"
KEY = "2025-11-29"
NOON = datetime.datetime(2025, 11, 29, 12, tzinfo=datetime.UTC)

RAW = (
    [f"Bdl{name}Processor" for name in ("Games", "Teams", "Players", "Boxscores")]
    + [f"Nbac{name}Processor" for name in ("Boxscore", "Games", "Players", "Teams", "TeamBoxscore")]
    + [f"Pd{name}Processor" for name in ("Games", "PlayerStats", "Teams", "Schedule")]
    + [f"Odds{name}Processor" for name in ("Games", "PlayerProps", "TeamLines")]
    + [f"{name}Processor" for name in ("Injuries", "News", "Transactions", "Referees", "Standings")]
)
ANALYTICS = {
    "PlayerGameSummaryProcessor": ["lebron-james", "stephen-curry"],
    "TeamDefenseGameSummaryProcessor": ["LAL", "GSW"],
    "TeamOffenseGameSummaryProcessor": ["GSW", "BOS"],
    "UpcomingPlayerGameContextProcessor": ["stephen-curry", "jayson-tatum"],
    "UpcomingTeamGameContextProcessor": [],
}


def gate(name: str) -> definition.Gate:
    return definition.read(json.loads((FOLDER / f"{name}.json").read_text()))


def message(count: int, **fields: Any) -> dict[str, Any]:
    """A message as the processors send it."""
    return {
        "game_date": KEY,
        "status": "success",
        "record_count": count,
        "correlation_id": "abc-123",
        "execution_id": f"exec-{count:03}",
    } | fields


def never(expression: str, data: Any) -> Any:
    raise AssertionError(expression)


def test_e1_each_gate_has_its_business_key_and_starts_one_job() -> None:
    for name, job in (("phase2-to-phase3", "phase3-analytics"), ("phase3-to-phase4", "phase4-precompute")):
        found = gate(name)
        assert (found.name, found.key, found.late, found.on_failure) == (name, "game_date", "ignore", "wait")
        [target] = found.trigger
        assert target.job is not None
        assert target.job["name"] == job
        assert target.job["correlationId"] == "{% correlationId %}"
        assert target.job["tasks"][0]["input"]["game_date"] == "{% key %}"


def test_e2_the_first_gate_expects_21_processors_by_name() -> None:
    assert list(gate("phase2-to-phase3").expected) == RAW
    assert len(RAW) == 21


def test_e3_the_second_gate_expects_5_and_knows_what_they_count() -> None:
    found = gate("phase3-to-phase4")
    assert list(found.expected) == list(ANALYTICS)
    assert found.kinds == ["players", "teams"]


def test_e6_what_changed_is_handed_on_by_kind() -> None:
    found = gate("phase3-to-phase4")
    records = {
        name: arrivals.check(found, KEY, name, message(n, entities_changed=changed, is_incremental=True))
        for n, (name, changed) in reversed(list(enumerate(ANALYTICS.items())))
    }
    assert aggregate.aggregate(found, records, never) == {
        "entities_changed": {
            "players": ["lebron-james", "stephen-curry", "jayson-tatum"],
            "teams": ["LAL", "GSW", "BOS"],
        },
        "is_incremental": dict.fromkeys(ANALYTICS, True),
        "record_count": 10,
    }


def test_e12_e13_at_twenty_of_21_the_one_that_is_missing_is_named() -> None:
    found = gate("phase2-to-phase3")
    records = {
        name: arrivals.check(found, KEY, name, message(n), arrived_at=NOON + datetime.timedelta(seconds=n))
        for n, name in enumerate(RAW)
        if name != "NewsProcessor"
    }
    seen = status.view(found, status.Instance(key=KEY, state="waiting", records=records, since=NOON))
    assert (seen.completed_count, seen.expected_count, seen.status) == (20, 21, "waiting")
    assert seen.sentence == "Completed: 20/21; missing: NewsProcessor since 2025-11-29T12:00:00Z"
    assert seen.correlation_ids == ["abc-123"]


def test_x12_a_processor_that_failed_does_not_count_and_is_told() -> None:
    found = gate("phase2-to-phase3")
    record = arrivals.check(found, KEY, "NewsProcessor", message(0, status="error"))
    seen = status.view(found, status.Instance(key=KEY, state="waiting", records={record.member: record}))
    assert (seen.completed_count, len(seen.missing)) == (0, 21)
    assert seen.sentence.endswith("failed: NewsProcessor (error)")


@pytest.mark.parametrize(
    ("member", "data", "code"),
    [
        ("NewsProcesor", message(1), "unknown_member"),
        ("NewsProcessor", {"game_date": KEY}, "missing_field"),
        ("NewsProcessor", message(1, status=200), "invalid_status"),
        ("NewsProcessor", message(1, game_date="2025-11-30"), "invalid_input"),
        ("NewsProcessor", message(1, record_count="150"), "unfit_value"),
    ],
)
def test_e5_a_bad_message_is_refused(member: str, data: dict[str, Any], code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        arrivals.check(gate("phase2-to-phase3"), KEY, member, data)
    assert caught.value.code == code


def test_every_expression_of_the_triggers_speaks_of_what_a_gate_hands_on() -> None:
    handed_on = {"gate", "key", "members", "aggregate", "correlationId", "correlationIds", "openedAt", "openedBy"}
    for name in ("phase2-to-phase3", "phase3-to-phase4"):
        found = gate(name)
        sources = [source for _, source in definition.expressions(found)]
        assert {source.partition(".")[0] for source in sources} <= handed_on
        parts = {source.partition(".")[2] for source in sources if source.startswith("aggregate.")}
        assert parts
        assert parts <= found.aggregate.keys()
