"""The tables of legal moves."""

import pytest

from ostinato import errors
from ostinato.core import events, states


def test_every_state_that_can_be_reached_is_named() -> None:
    for moves in (states.TASK_MOVES, states.JOB_MOVES):
        assert {state for targets in moves.values() for state in targets} <= moves.keys()


def test_d9_the_states_of_tasks_are_those_of_the_seed_and_ours() -> None:
    assert {"pending", "processing", "completed", "failed"} <= set(states.TASK_STATES)
    assert set(states.TASK_STATES) == states.TASK_ENDED | states.TASK_ACTIVE | {states.BLOCKED}
    assert set(states.JOB_STATES) == states.JOB_ENDED | {states.RUNNING}


def test_nothing_moves_to_where_it_is() -> None:
    for moves in (states.TASK_MOVES, states.JOB_MOVES):
        assert all(state not in targets for state, targets in moves.items())


def test_what_is_completed_stays_completed() -> None:
    assert states.TASK_MOVES[states.COMPLETED] == frozenset()
    assert states.JOB_MOVES[states.COMPLETED] == frozenset()


def test_every_task_state_but_the_last_leads_to_completion() -> None:
    reached = {states.COMPLETED}
    while more := {s for s, targets in states.TASK_MOVES.items() if targets & reached} - reached:
        reached |= more
    assert reached == set(states.TASK_STATES)


@pytest.mark.parametrize("old", states.TASK_STATES)
@pytest.mark.parametrize("new", states.TASK_STATES)
def test_the_check_of_tasks_follows_the_table(old: str, new: str) -> None:
    if old == new or new in states.TASK_MOVES[old]:
        states.check_task_move("t", old, new)
    else:
        with pytest.raises(errors.IllegalMove, match=f"'t' is {old} and cannot become {new}"):
            states.check_task_move("t", old, new)


@pytest.mark.parametrize("old", states.JOB_STATES)
@pytest.mark.parametrize("new", states.JOB_STATES)
def test_the_check_of_jobs_follows_the_table(old: str, new: str) -> None:
    if old == new or new in states.JOB_MOVES[old]:
        states.check_job_move("j", old, new)
    else:
        with pytest.raises(errors.IllegalMove, match=f"'j' is {old} and cannot become {new}"):
            states.check_job_move("j", old, new)


def test_every_event_leads_to_a_state_that_there_is() -> None:
    assert set(events.TASK_STATE_AFTER.values()) == set(states.TASK_STATES)
    assert set(events.JOB_STATE_AFTER.values()) == set(states.JOB_STATES)
    assert events.JOB_END.keys() == states.JOB_ENDED
    assert events.ATTEMPT_ENDS.keys() <= events.TASK_STATE_AFTER.keys()


def test_d3_the_seeds_names_of_events() -> None:
    names = {value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)}
    assert names >= {
        "Job Created",
        "Job Tasks Added",
        "Task Pending",
        "Task Processing",
        "Task Completed",
        "Task Failed",
        "Job Completed",
        "Job Failure Detected",
    }
