"""C2, C4, C5: what a status-change event says, in plain values. X9: its times, and how deliveries come together."""

import datetime
import itertools
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from ostinato import errors
from ostinato.core import executions
from ostinato.core.executions import Execution, merge, read_event
from tests.index.support import AGENT, MACHINE, arn, change


def test_c2_every_status_is_read() -> None:
    for status in ("RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"):
        assert read_event(change(status, stop=1234567900000)).execution.status == status
    assert len(executions.STATUSES) == 5


def test_c4_the_record_of_the_example() -> None:
    """The two events of the example, field by field."""
    started, ended = read_event(change()).execution, read_event(change("SUCCEEDED", stop=1234567900000)).execution
    assert started == Execution(
        execution_arn="arn:aws:states:us-west-2:123:execution:my-agent-prod:abc123",
        state_machine_arn="arn:aws:states:us-west-2:123:stateMachine:my-agent-prod",
        agent_name="my-agent",
        execution_name="abc123",
        status="RUNNING",
        start_at=1234567890_000_000,
        tags=AGENT,
    )
    assert started.duration_seconds is None
    assert (ended.status, ended.stop_at, ended.duration_seconds) == ("SUCCEEDED", 1234567900_000_000, 10)


def test_c5_a_running_execution_has_no_stop() -> None:
    assert read_event(change("RUNNING", stop=1234567900000)).execution.stop_at is None


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("my-agent-prod", "my-agent"),
        ("my-agent-dev", "my-agent"),
        ("my-agent-staging", "my-agent"),
        ("my-agent", "my-agent"),
        ("my-agent-prod-prod", "my-agent-prod"),
        ("my-agent-production-line", "my-agent-production-line"),
        ("prod", "prod"),
        ("-prod", "-prod"),
    ],
)
def test_c5_the_stage_is_dropped_from_the_name(name: str, agent: str) -> None:
    head = "arn:aws:states:us-west-2:123:stateMachine:"
    assert executions.agent_name(head + name) == agent
    assert executions.agent_name(head + name + ":7") == agent, "a version may follow"
    assert executions.agent_name(name) == agent


def test_c5_the_stages_can_be_chosen() -> None:
    assert executions.agent_name("my-agent-blue", ["blue"]) == "my-agent"
    assert executions.agent_name("my-agent-prod", ["blue"]) == "my-agent-prod"
    assert executions.agent_name("my-agent-prod", []) == "my-agent-prod"


@pytest.mark.parametrize(
    "written", [1234567890000, 1234567890000.0, "2009-02-13T23:31:30Z", "2009-02-14T00:31:30.000+01:00"]
)
def test_x9_a_moment_is_the_same_however_it_is_written(written: Any) -> None:
    """The epoch of the example and its ISO text are two different moments: here one is made from the other."""
    micros = read_event(change(start=written)).execution.start_at
    moment = datetime.datetime.fromtimestamp(micros / 1e6, datetime.UTC)
    assert moment.isoformat() == "2009-02-13T23:31:30+00:00"


def test_fractions_of_a_millisecond_are_kept() -> None:
    assert executions.micros("2026-01-31T12:00:00.123456Z") == 1769860800_123456
    assert executions.micros(0) == 0


def test_tags_are_read_in_every_form() -> None:
    pairs = [{"key": "Type", "value": "Agent"}, {"Key": "Application", "Value": "StepFunctionsAgent"}]
    assert read_event(change(tags=pairs)).tags == AGENT
    assert read_event(change(tags=None, stateMachineTags=AGENT)).tags == AGENT
    assert read_event(change(tags=None)).tags is None
    assert read_event(change(tags={})).tags == {}


# --- bad events point at the field --------------------------------------------------------------------------------

BAD: list[tuple[str, dict[str, Any]]] = [
    ("source", change() | {"source": "aws.ec2"}),
    ("detail-type", change() | {"detail-type": "EC2 Instance State-change Notification"}),
    ("detail", change() | {"detail": "text"}),
    ("detail.status", change("PENDING")),
    ("detail.status", change(["RUNNING"])),  # pyright: ignore[reportArgumentType]
    ("detail.startDate", change(start=None)),
    ("detail.startDate", change(start="yesterday")),
    ("detail.startDate", change(start="2026-01-31T12:00:00")),
    ("detail.startDate", change(start=-1)),
    ("detail.startDate", change(start=True)),
    ("detail.startDate", change(start=10**18)),
    ("detail.startDate", change(start=float("inf"))),
    ("detail.startDate", change(start=float("nan"))),
    ("detail.stopDate", change("FAILED", stop="later")),
    ("detail.executionArn", change(executionArn="")),
    ("detail.executionArn", change(executionArn="x" * 513)),
    ("detail.executionArn", change(executionArn="a\0b")),
    ("detail.executionArn", change(executionArn="a\ud800")),
    ("detail.stateMachineArn", change(stateMachineArn=None)),
    ("detail.name", change() | {"detail": change()["detail"] | {"name": 7}}),
    ("detail.correlationId", change(correlationId=7)),
    ("detail.tags", change(tags="Type=Agent")),
    ("detail.tags", change(tags={"Type": 1})),
    ("detail.tags[0]", change(tags=["Type"])),
    ("detail.tags", change(tags=[{"key": "Type"}])),
    ("detail.tags", change(tags={"a=b": "c"})),
    ("detail.tags", change(tags=[{"key": ["a"], "value": "b"}])),
    ("detail.stateMachineTags", change(tags=None, stateMachineTags=7)),
]


@pytest.mark.parametrize(("field", "event"), BAD)
def test_a_bad_event_points_at_the_field(field: str, event: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        read_event(event)
    assert caught.value.details["field"] == field
    with pytest.raises(errors.InvalidInput) as caught:
        read_event(event, at="events[3]")
    assert caught.value.details["field"] == f"events[3].{field}"


def test_what_is_no_event_is_refused() -> None:
    for bad in (None, 7, "text", [change()]):
        with pytest.raises(errors.InvalidInput, match="must be an object"):
            read_event(bad)


# --- X9: the row never goes back -----------------------------------------------------------------------------------

LIFE = [
    change("RUNNING"),
    change("FAILED", stop=1234567900000),
    change("SUCCEEDED", stop=1234567990000),
]


def together(deliveries: Any) -> Execution:
    reported = [read_event(event).execution for event in deliveries]
    row = reported[0]
    for one in reported[1:]:
        row = merge(row, one)
    return row


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"])
def test_x9_running_never_beats_an_end(status: str) -> None:
    started, ended = change("RUNNING"), change(status, stop=1234567900000)
    for order in ([started, ended], [ended, started], [ended, started, started], [started, ended, started]):
        row = together(order)
        assert (row.status, row.stop_at) == (status, 1234567900_000_000)


def test_x9_all_permutations_with_duplicates_give_the_same_row() -> None:
    orders = [order for length in range(3, 6) for order in itertools.product(LIFE, repeat=length)]
    rows = [together(order) for order in orders if all(event in order for event in LIFE)]
    assert len(rows) == 6 + 36 + 150
    assert rows[0].status == "SUCCEEDED", "the later end"
    assert all(row == rows[0] for row in rows)


@pytest.mark.parametrize("apart", [0, 1000])
def test_x9_all_permutations_of_all_statuses_with_a_duplicate_give_the_same_row(apart: int) -> None:
    """Ends at the same moment, and one after the other."""
    events = [change(status, stop=1234567900000 + n * apart) for n, status in enumerate(executions.STATUSES)]
    orders = {order for twice in events for order in itertools.permutations([id(event) for event in [*events, twice]])}
    by_id = {id(event): event for event in events}
    rows = [together([by_id[one] for one in order]) for order in orders]
    assert len(rows) == 5 * 360
    assert (rows[0].status, rows[0].stop_at) == ("ABORTED", (1234567900000 + 4 * apart) * 1000)
    assert all(row == rows[0] for row in rows)


def test_x9_all_pairs_of_statuses_are_decided_whatever_the_order() -> None:
    events = [change(status, stop=stop) for status in executions.STATUSES for stop in (None, 1, 2)]
    for one, other in itertools.product(events, repeat=2):
        assert together([one, other]) == together([other, one])


reports = strategies.builds(
    Execution,
    execution_arn=strategies.just(arn()),
    state_machine_arn=strategies.sampled_from([MACHINE, "other"]),
    agent_name=strategies.sampled_from(["my-agent", "other"]),
    execution_name=strategies.sampled_from(["a", "b"]),
    status=strategies.sampled_from(executions.STATUSES),
    start_at=strategies.integers(0, 3),
    stop_at=strategies.none() | strategies.integers(0, 3),
    correlation_id=strategies.none() | strategies.sampled_from(["x", "y"]),
    tags=strategies.dictionaries(strategies.sampled_from("abc"), strategies.sampled_from(["", "1", "2"])),
    indexed_at=strategies.integers(0, 3),
)


@hypothesis.given(reports, reports, reports)
def test_x9_merging_is_a_join(one: Execution, two: Execution, three: Execution) -> None:
    assert merge(one, one) == one
    assert merge(one, two) == merge(two, one)
    assert merge(merge(one, two), three) == merge(one, merge(two, three))


@hypothesis.given(strategies.lists(reports, min_size=1, max_size=6), strategies.randoms())
def test_x9_a_naive_model_says_the_same(given: list[Execution], chance: Any) -> None:
    """The model sees all reports at once and takes the best of each."""
    row = given[0]
    shuffled = [*given, *chance.sample(given, len(given) // 2)]
    chance.shuffle(shuffled)
    for one in shuffled:
        row = merge(row, one)
    ends = [one for one in given if one.status != "RUNNING"]
    stops = [one.stop_at for one in ends if one.stop_at is not None]
    assert (row.status == "RUNNING") == (not ends)
    assert row.start_at == min(one.start_at for one in given)
    if ends:
        assert row.stop_at == max(stops, default=None)
        last = {one.status for one in ends if one.stop_at == row.stop_at}
        assert row.status == next(status for status in reversed(executions.STATUSES) if status in last)
    assert row.tags.keys() == {key for one in given for key in one.tags}


# --- own executions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["report", "gate:nba/x", "a b", "ü:%3A"])
@pytest.mark.parametrize("job_id", ["j", "a:b", "gate.1"])
def test_an_own_arn_names_one_job(name: str, job_id: str) -> None:
    made = executions.own_arn("shop:eu", name, job_id)
    assert made.startswith("arn:ostinato:states:local:shop:eu:execution:")
    assert executions.own_job("shop:eu", made) == (name, job_id)
    assert executions.own_job("shop", made) is None
    assert executions.own_job("shop:eu", arn()) is None
