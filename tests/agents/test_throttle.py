"""The arithmetic of the limiter, on a clock that is only a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.agents import throttle


def started(limit: throttle.Throttle, now: float) -> int:
    """How many calls start at this moment."""
    count = 0
    while limit.may_start_at(now) == now:
        limit.start(now)
        count += 1
    return count


def end_all(limit: throttle.Throttle, now: float) -> None:
    for _ in range(limit.under_way):
        limit.answered(now)
        limit.end()


def test_it_starts_small_and_doubles_with_every_round() -> None:
    limit = throttle.Throttle()
    rounds: list[int] = []
    for now in range(8):
        rounds.append(started(limit, now))
        assert limit.may_start_at(now) is None
        end_all(limit, now)
    assert rounds == [4, 8, 16, 32, 64, 128, 256, 256]


def test_a_refusal_stops_all_until_the_time_that_was_said() -> None:
    limit = throttle.Throttle()
    assert started(limit, 10) == 4
    assert limit.refused(11, 10, 5.0) == 5.0
    limit.end()
    for now in (11, 12, 15.9):
        assert limit.may_start_at(now) == 16
    end_all(limit, 15.9)
    assert started(limit, 16) == 1


def test_it_resumes_gradually_and_more_slowly_from_half_on() -> None:
    limit = throttle.Throttle()
    for now in range(2):
        started(limit, now)
        end_all(limit, now)
    assert started(limit, 2) == 16
    limit.refused(2.5, 2, 1.0)
    limit.end()
    end_all(limit, 2.6)
    rounds: list[int] = []
    for now in range(4, 11):
        rounds.append(started(limit, now))
        end_all(limit, now)
    assert rounds == [1, 2, 4, 8, 8, 9, 10]


def test_the_refusals_of_one_burst_count_once() -> None:
    limit = throttle.Throttle()
    started(limit, 0)
    end_all(limit, 0)
    assert started(limit, 1) == 8
    assert [limit.refused(2, 1) for _ in range(8)] == [1.0] * 8
    for _ in range(8):
        limit.end()
    rounds: list[int] = []
    for now in range(3, 6):
        rounds.append(started(limit, now))
        end_all(limit, now)
    assert rounds == [1, 2, 4]


def test_without_a_time_the_pauses_grow_until_there_is_an_answer() -> None:
    limit = throttle.Throttle()
    pauses: list[float] = []
    now = 0.0
    for _ in range(9):
        limit.start(now)
        pauses.append(limit.refused(now, now))
        limit.end()
        now = limit.paused_until
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    limit.start(now)
    limit.answered(now)
    limit.end()
    assert limit.refused(now + 1, now + 1) == 1


def test_a_shorter_time_does_not_shorten_a_longer_one() -> None:
    limit = throttle.Throttle()
    started(limit, 0)
    assert limit.refused(1, 0, 30.0) == 30
    assert limit.refused(2, 0, 1.0) == 29


def test_no_more_calls_are_made_than_the_endpoint_has_left() -> None:
    limit = throttle.Throttle()
    limit.start(0)
    limit.answered(0, left=2, renewed_in=7.0)
    limit.end()
    assert started(limit, 0) == 2
    assert limit.may_start_at(0) == 7
    end_all(limit, 1)
    assert limit.may_start_at(1) == 7
    assert started(limit, 7) == 1
    limit.answered(8, left=2, renewed_in=7.0)
    limit.end()
    assert started(limit, 8) == 2


def test_what_is_under_way_counts_against_what_is_left() -> None:
    limit = throttle.Throttle()
    assert started(limit, 0) == 4
    limit.answered(0, left=3, renewed_in=7.0)
    limit.end()
    assert limit.may_start_at(0) == 7


def test_a_limit_that_is_renewed_late_is_tried_before() -> None:
    """It is often renewed bit by bit, and the time is when it is whole again."""
    limit = throttle.Throttle()
    limit.start(0)
    limit.answered(0, left=0, renewed_in=3600.0)
    assert limit.opens_at(0) == throttle.LONGEST_PAUSE


@given(st.lists(st.tuples(st.sampled_from(["start", "answer", "refuse", "fail"]), st.floats(0, 10)), max_size=80))
def test_whatever_happens_it_goes_on(steps: list[tuple[str, float]]) -> None:
    limit, now, under_way = throttle.Throttle(), 0.0, []
    for what, seconds in steps:
        now += seconds
        if what == "start" and limit.may_start_at(now) == now:
            limit.start(now)
            under_way.append(now)
        elif under_way:
            since = under_way.pop(0)
            if what == "answer":
                limit.answered(now, int(seconds), seconds)
            if what == "refuse":
                assert limit.refused(now, since, seconds) >= 0
            limit.end()
        assert limit.under_way == len(under_way)
        assert 1 <= limit.window <= throttle.LARGEST_WINDOW
    for _ in under_way:
        limit.end()
    assert limit.may_start_at(now + 61) == pytest.approx(now + 61)
    assert limit.is_idle(now + 61)
