"""Why a task is not running: facts in, one code and one sentence out."""

from typing import Any

import pytest

from ostinato.core import codec, rows, why

NOW = 1_000_000_000_000_000
SECOND = 1_000_000


def a_task(state: str, **fields: Any) -> rows.Task:
    blank: dict[str, Any] = {
        "job_id": "j", "task_id": "t", "position": 0, "name": "work", "queue": "default", "priority": 0,
        "policy": "block", "optional": False, "dependencies": 0, "options": None, "input": b"{}", "state": state,
        "attempt": 0, "attempt_base": 0, "crashes": 0, "open_dependencies": 0, "resuming": False,
        "skipped_by_dependency": False, "output": None, "error": None, "started_at": None, "finished_at": None,
    }  # fmt: skip
    return rows.Task(**(blank | fields))


def error(kind: str = "ValueError", message: str = "no") -> bytes:
    return codec.encode({"type": kind, "message": message, "traceback": "long"})


def a_worker(name: str = "w1", **fields: Any) -> why.Worker:
    says: dict[str, Any] = {"alive": True, "queues": ["default"], "functions": ["work"], "slots": 2, "held": 0}
    return why.Worker(name, **(says | fields))


def explain(task: rows.Task, job_state: str = "running", **facts: Any) -> why.Why:
    return why.explain(why.Facts(NOW, job_state, task, **facts))


def timer(kind: str, due_at: int | None, name: str = "") -> rows.Timer:
    return rows.Timer("j", "t", kind, name, "key", due_at)


READY = {"ready_at": NOW - 3 * SECOND}
FAILED = {"attempt": 5, "attempt_base": 3, "max_attempts": 4, "error": error()}
RUNNING = {"attempt": 1, "max_attempts": 3, "worker": "w1", "started_at": NOW - 5 * SECOND}


@pytest.mark.parametrize(
    ("answer", "code", "sentence"),
    [
        (
            explain(a_task("completed", finished_at=NOW - 60 * SECOND)),
            "ended",
            "It completed 1 min ago.",
        ),
        (
            explain(a_task("failed", finished_at=NOW - 2 * SECOND, **FAILED)),
            "ended",
            "It failed 2.0 s ago, after 5 attempts: ValueError: no. Retry it, skip it, or resume the job.",
        ),
        (
            explain(a_task("cancelled", finished_at=NOW)),
            "ended",
            "It was cancelled 0 ms ago. Retry it, skip it, or resume the job.",
        ),
        (explain(a_task("skipped", finished_at=NOW)), "ended", "It was skipped 0 ms ago."),
        (
            explain(a_task("skipped", finished_at=NOW, skipped_by_dependency=True)),
            "ended",
            "It was skipped 0 ms ago, because a task that it depends on did not complete.",
        ),
        (
            explain(
                a_task("blocked", open_dependencies=2),
                dependencies=[why.Dependency("a", "processing"), why.Dependency("b", "blocked")],
            ),
            "dependency",
            "It waits for 'a' (processing), 'b' (blocked) to complete.",
        ),
        (
            explain(a_task("blocked", open_dependencies=30), dependencies=[why.Dependency("a", "pending")]),
            "dependency",
            "It waits for 'a' (pending) and 29 more to complete.",
        ),
        (explain(a_task("blocked", open_dependencies=30)), "dependency", "It waits for 30 tasks to complete."),
        (
            explain(
                a_task("blocked", open_dependencies=2),
                dependencies=[why.Dependency("a", "failed"), why.Dependency("b", "processing")],
            ),
            "dependency",
            "It stays blocked, because it depends on 'a' (failed), which will not complete by itself; 1 other has not "
            "completed either. Resume the job to run again what failed, or skip it to go on.",
        ),
        (
            explain(a_task("blocked", open_dependencies=1), "failed", dependencies=[why.Dependency("a", "cancelled")]),
            "dependency",
            "It stays blocked, because it depends on 'a' (cancelled), which will not complete by itself. Resume the "
            "job to run again what failed, or skip it to go on.",
        ),
        (
            explain(a_task("blocked", open_dependencies=1), "failed", dependencies=[why.Dependency("a", "blocked")]),
            "job_ended",
            "The job is failed, so nothing in it runs any more. Resume the job to go on.",
        ),
        (
            explain(a_task("waiting", **FAILED), timer=timer("retry", NOW + 90 * SECOND)),
            "retry",
            "Attempt 2 of 4 failed (ValueError: no); the next one is due in 1 min 30 s.",
        ),
        (
            explain(a_task("waiting", **FAILED), timer=timer("retry", NOW - SECOND)),
            "retry",
            "Attempt 2 of 4 failed (ValueError: no); the next one is due now.",
        ),
        (
            explain(a_task("waiting"), timer=timer("sleep", NOW + 3 * 3600 * SECOND)),
            "sleep",
            "It sleeps; it goes on in 3 h.",
        ),
        (
            explain(a_task("waiting"), timer=timer("wait", None, "ok")),
            "signal",
            "It awaits the signal 'ok', however long that takes.",
        ),
        (
            explain(a_task("waiting"), timer=timer("wait", NOW + 20 * SECOND, "ok")),
            "signal",
            "It awaits the signal 'ok'; it gives up in 20 s.",
        ),
        (
            explain(a_task("processing", **RUNNING), workers=[a_worker()]),
            "running",
            "Attempt 1 of 3 has been running for 5.0 s on worker w1.",
        ),
        (
            explain(a_task("processing", **RUNNING)),
            "running",
            "Attempt 1 of 3 has been running for 5.0 s on worker w1, which has not been heard of lately: if it is "
            "gone, the attempt is taken from it.",
        ),
        (explain(a_task("pending", **READY)), "no_worker", "It is ready, but no worker is alive: start one."),
        (
            explain(a_task("pending", **READY), workers=[a_worker(alive=False)]),
            "no_worker",
            "It is ready, but no worker is alive: start one.",
        ),
        (
            explain(a_task("pending", **READY), workers=[a_worker(functions=["other"])]),
            "no_worker",
            "It is ready, but no live worker has registered function 'work': start one that has it.",
        ),
        (
            explain(a_task("pending", queue="gpu", **READY), workers=[a_worker(), a_worker("w2", queues=["fast"])]),
            "no_worker",
            "It is ready, but no live worker with function 'work' listens to queue 'gpu' (only to 'default', 'fast').",
        ),
        (
            explain(a_task("pending", **READY), workers=[a_worker()], ahead=1),
            "next",
            "It has been ready for 3.0 s, and a worker will claim it next.",
        ),
        (
            explain(a_task("pending", **READY), workers=[a_worker(functions=None, slots=None, held=None)], ahead=9),
            "next",
            "It has been ready for 3.0 s, and a worker will claim it next.",
        ),
        (
            explain(a_task("pending", **READY), workers=[a_worker(held=2)]),
            "queue_full",
            "0 ready tasks are ahead of it and 1 worker for function 'work' in queue 'default' has 0 of 2 slots free.",
        ),
        (
            explain(a_task("pending", **READY), workers=[a_worker(held=1), a_worker("w2", held=2)], ahead=1),
            "queue_full",
            "1 ready task is ahead of it and 2 workers for function 'work' in queue 'default' have 1 of 4 slots free.",
        ),
        (
            explain(a_task("pending", **READY), workers=[a_worker(held=5)], ahead=1000, more_ahead=True),
            "queue_full",
            "more than 1,000 ready tasks are ahead of it and 1 worker for function 'work' in queue 'default' has 0 of "
            "2 slots free.",
        ),
        (
            explain(a_task("pending", crashes=2, **READY), workers=[a_worker(held=1)]),
            "queue_full",
            "2 workers died while they had it, so it waits for one that runs nothing else.",
        ),
        (
            explain(a_task("pending", crashes=2, **READY), workers=[a_worker(held=0)]),
            "next",
            "It has been ready for 3.0 s, and a worker will claim it next.",
        ),
    ],
)
def test_one_code_and_one_sentence(answer: why.Why, code: str, sentence: str) -> None:
    assert (answer.code, answer.sentence) == (code, sentence)


def test_details_are_ready_for_the_wire() -> None:
    answer = explain(a_task("waiting", **FAILED), timer=timer("retry", NOW))
    assert codec.decode(codec.encode_own(answer)) == {
        "code": "retry",
        "sentence": answer.sentence,
        "details": {
            "dueAt": "2001-09-09T01:46:40Z",
            "attempt": 2,
            "maxAttempts": 4,
            "error": {"type": "ValueError", "message": "no"},
        },
    }


def test_a_long_error_is_cut_to_its_first_line() -> None:
    task = a_task("failed", finished_at=NOW, attempt=1, error=error(message="first\nsecond" + "x" * 5000))
    assert "ValueError: first." in explain(task).sentence
    wide = a_task("failed", finished_at=NOW, attempt=1, error=error(message="x" * 5000))
    assert len(explain(wide).sentence) < 400
