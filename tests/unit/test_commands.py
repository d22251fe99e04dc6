"""The engine's decisions as values: commands in, rows and events out, and no database anywhere."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato import errors
from ostinato.core import codec, commands, events, graph, ledger, pages, rows

NOW = 1_000_000_000
WORKER = "w1"


def task(task_id: str, *after: str, **fields: Any) -> dict[str, Any]:
    return {"taskId": task_id, "name": "work", "dependsOn": list(after)} | fields


def submit(book: ledger.Ledger, *tasks: dict[str, Any], job_id: str = "j", **fields: Any) -> commands.Submitted:
    spec = graph.read_job({"tasks": list(tasks)} | fields)
    return commands.Submit(job_id, spec, [codec.encode(t.input) for t in spec.tasks]).apply(book)


def a_book(*tasks: dict[str, Any], **fields: Any) -> ledger.Ledger:
    book = ledger.Ledger("default", NOW)
    submit(book, *tasks, **fields)
    return book


def claim(book: ledger.Ledger, limit: int = 100, attempts: int = 1, token: str = "t1") -> list[rows.Lease]:
    functions = {"work": rows.FunctionPolicy(attempts, None)}
    return commands.Claim(WORKER, token, functions, frozenset({"default"}), limit).apply(book, [])


def complete(book: ledger.Ledger, *leases: rows.Lease, output: Any = None) -> None:
    for lease in leases:
        commands.Complete(lease, codec.encode(output)).apply(book)


def fail(book: ledger.Ledger, lease: rows.Lease, **fields: Any) -> None:
    commands.Fail(lease, commands.make_failure("ValueError", "no"), **fields).apply(book)


def run_all(book: ledger.Ledger) -> list[str]:
    order: list[str] = []
    while leases := claim(book):
        order += [lease.task_id for lease in leases]
        complete(book, *leases)
    return order


def stream(book: ledger.Ledger, job_id: str = "j") -> list[events.Event]:
    """What the ledger tells of a job, written to pages and read back."""
    found: list[events.Event] = []
    for first, last, body in pages.split(book.events[job_id], 1):
        found += pages.read(job_id, first, NOW, body)
        assert found[-1].seq == last
    return found


def told(book: ledger.Ledger) -> list[tuple[str, str | None]]:
    return [(event.type, event.task_id) for event in stream(book)]


def standing(book: ledger.Ledger) -> dict[str, str]:
    return {t.task_id: t.state for t in book.tasks_of("j")}


def test_submit_claim_complete() -> None:
    book = a_book(task("a"))
    [lease] = claim(book)
    assert (lease.job_id, lease.task_id, lease.attempt, lease.token) == ("j", "a", 1, "t1")
    complete(book, lease, output={"n": 1})
    assert book.tasks["j", "a"].state == "completed"
    assert book.tasks["j", "a"].output == b'{"n":1}'
    assert book.jobs["j"].state == "completed"
    assert [(job.job_id, job.state) for job in book.ended_jobs] == [("j", "completed")]
    assert told(book) == [
        ("Job Created", None),
        ("Task Pending", "a"),
        ("Task Processing", "a"),
        ("Task Completed", "a"),
        ("Job Completed", None),
    ]


def test_events_are_numbered_without_gaps() -> None:
    book = a_book(task("a"), task("b", "a"), task("c", "a"))
    run_all(book)
    assert [event.seq for event in stream(book)] == list(range(1, book.told + 1))
    assert book.jobs["j"].last_seq == book.told


def test_d10_a_task_is_ready_when_it_never_started_and_all_it_needs_is_completed() -> None:
    book = a_book(task("a"), task("b"), task("c", "a", "b"))
    first, second = claim(book)
    complete(book, first)
    assert standing(book)["c"] == "blocked"
    complete(book, second)
    assert standing(book)["c"] == "pending"


def test_d1_the_example_job_runs_by_readiness() -> None:
    book = a_book(task("A"), task("B"), task("C", "A"), task("D", "A"), task("E", "C", "D"))
    order = run_all(book)
    assert order.index("E") == 4
    assert order.index("A") < min(order.index("C"), order.index("D"))
    assert book.jobs["j"].state == "completed"


def test_a_claim_takes_no_more_than_its_limit() -> None:
    book = a_book(*[task(f"t{n}") for n in range(5)])
    assert [lease.task_id for lease in claim(book, limit=2)] == ["t0", "t1"]
    assert [lease.task_id for lease in claim(book, limit=9)] == ["t2", "t3", "t4"]


def test_a_claim_prefers_priority() -> None:
    book = a_book(task("low"), task("high", priority=5), task("middle", priority=1))
    assert [lease.task_id for lease in claim(book)] == ["high", "middle", "low"]


def test_a_claim_takes_only_known_functions_and_queues() -> None:
    book = a_book(task("a", name="other"), task("b", queue="gpu"), task("c"))
    assert [lease.task_id for lease in claim(book)] == ["c"]


def test_x10_a_task_is_leased_to_one_claim_only() -> None:
    book = a_book(task("a"))
    assert len(claim(book, token="one")) == 1
    assert claim(book, token="two") == []


@pytest.mark.parametrize(
    "report",
    [
        lambda lease: commands.Complete(lease, b"1"),
        lambda lease: commands.Fail(lease, commands.make_failure("E", "e")),
        lambda lease: commands.RecordStep(lease, "s", b"1"),
        lambda lease: commands.Suspend(lease, "sleep", "sleep", seconds=1),
        lambda lease: commands.Release(lease, "stopped"),
    ],
)
def test_the_fence_refuses_whoever_lost_the_lease(report: Any) -> None:
    book = a_book(task("a"))
    [lease] = claim(book, attempts=3)
    commands.Expire("j", "a", lease.token, commands.make_failure("WorkerLost", "gone")).apply(book)
    claim(book, attempts=3, token="t2")
    before = book.told
    with pytest.raises(errors.LeaseLost):
        report(lease).apply(book)
    assert book.told == before, "and nothing was changed"


def test_a_result_counts_once() -> None:
    book = a_book(task("a"), task("b", "a"))
    [lease] = claim(book)
    complete(book, lease)
    with pytest.raises(errors.LeaseLost):
        complete(book, lease)
    assert told(book).count(("Task Pending", "b")) == 1


def test_a_failure_waits_for_its_retry_and_then_counts_for_good() -> None:
    book = a_book(task("a"))
    [lease] = claim(book, attempts=2)
    fail(book, lease, delay=5.0)
    timer = book.new_timers["j", "a"]
    assert (timer.kind, timer.due_at) == ("retry", NOW + 5_000_000)
    book.timers["j", "a"] = timer
    book.now = NOW + 5_000_000
    assert commands.FireTimer(timer).apply(book)
    [second] = claim(book, attempts=2)
    assert second.attempt == 2
    fail(book, second, delay=5.0)
    assert standing(book) == {"a": "failed"}
    assert book.jobs["j"].state == "failed"


def test_a_timer_does_not_fire_early_nor_twice() -> None:
    book = a_book(task("a"))
    [lease] = claim(book, attempts=2)
    fail(book, lease, delay=5.0)
    timer = book.timers["j", "a"] = book.new_timers["j", "a"]
    assert not commands.FireTimer(timer).apply(book)
    book.now = NOW + 5_000_000
    assert commands.FireTimer(timer).apply(book)
    assert not commands.FireTimer(timer).apply(book)


def test_d12_failure_is_detected_once() -> None:
    book = a_book(task("a"), task("b"), task("c", "a"), task("d"))
    first, second, third = claim(book)
    fail(book, first)
    fail(book, second)
    assert book.jobs["j"].state == "running", "d still runs"
    complete(book, third)
    assert told(book).count(("Job Failure Detected", None)) == 1
    assert standing(book) == {"a": "failed", "b": "failed", "c": "blocked", "d": "completed"}
    assert book.jobs["j"].state == "failed"


def test_d13_job_completed_tells_the_counts() -> None:
    book = a_book(task("a"), task("b", "a"))
    run_all(book)
    data = codec.decode(stream(book)[-1].data)
    assert data == {"totalTasks": 2, "taskStatuses": {"completed": 2}}


def test_x11_a_resume_is_told_of_and_a_new_failure_is_detected_anew() -> None:
    book = a_book(task("a"), task("b", "a"))
    fail(book, claim(book)[0])
    plan = commands.Resume("j").apply(book)
    assert (plan.rerun, plan.reused, plan.waiting) == (["a"], [], ["b"])
    assert ("Job Resumed", None) in told(book)
    fail(book, claim(book)[0])
    assert told(book).count(("Job Failure Detected", None)) == 2


def test_a_dry_run_changes_nothing() -> None:
    book = a_book(task("a"))
    fail(book, claim(book)[0])
    before = told(book)
    assert commands.Resume("j", dry_run=True).apply(book).rerun == ["a"]
    assert told(book) == before
    assert standing(book) == {"a": "failed"}


@given(st.integers(0, 2**32))
@settings(max_examples=200, deadline=None, database=None)
def test_a_dry_run_says_what_a_resume_then_does(seed: int) -> None:
    """Random graphs, policies, failures, skips and cancels: the same plan, and exactly that runs afterwards."""
    chance = random.Random(seed)
    book = a_random_book(chance)
    if book.jobs["j"].state == "completed":
        return
    deadline = chance.choice([None, 60.0])
    before = everything(book)
    foreseen = commands.Resume("j", deadline=deadline, dry_run=True).apply(book)
    assert everything(book) == before
    assert commands.Resume("j", deadline=deadline).apply(book) == foreseen
    ran = run_all(book)
    assert sorted(ran) == sorted(foreseen.rerun + foreseen.waiting)
    assert not set(ran) & set(foreseen.reused)
    assert book.jobs["j"].state == "completed"


def a_random_book(chance: random.Random) -> ledger.Ledger:
    """A job that has run as far as it could, with what may go wrong on the way."""
    names = [f"t{n}" for n in range(chance.randint(1, 9))]
    tasks = [
        task(
            name,
            *chance.sample(names[:index], chance.randint(0, min(index, 3))),
            optional=chance.random() < 0.2,
            onDependencyFailure=chance.choice(["block", "block", "skip", "run"]),
        )
        for index, name in enumerate(names)
    ]
    book = a_book(*tasks, **chance.choice([{}, {"deadline": 5.0}]))
    while leases := claim(book, limit=chance.randint(1, 3)):
        for lease in leases:
            chance.choice([complete, complete, fail, cancel, skip])(book, lease)
    return book


def cancel(book: ledger.Ledger, lease: rows.Lease) -> None:
    commands.CancelTask("j", lease.task_id).apply(book)


def skip(book: ledger.Ledger, lease: rows.Lease) -> None:
    commands.SkipTask("j", lease.task_id).apply(book)


def everything(book: ledger.Ledger) -> str:
    return repr(book)


def test_a_lost_attempt_counts_and_a_poison_task_ends() -> None:
    book = a_book(task("a"))
    for n in (1, 2, 3):
        [lease] = claim(book, attempts=3, token=f"t{n}")
        assert lease.attempt == n
        commands.Expire("j", "a", lease.token, commands.make_failure("WorkerLost", "gone")).apply(book)
    assert standing(book) == {"a": "failed"}


def test_a_task_that_saw_two_workers_die_runs_alone() -> None:
    book = a_book(task("poison"), *[task(f"t{n}") for n in range(3)])
    for n in (1, 2):
        [lease] = claim(book, limit=1, attempts=9, token=f"t{n}")
        commands.Expire("j", "poison", lease.token, commands.make_failure("WorkerLost", "gone")).apply(book)
    book.became_pending.sort(key=lambda t: t.task_id)
    assert [lease.task_id for lease in claim(book, attempts=9, token="t3")] == ["poison"]
    assert [lease.task_id for lease in claim(book, attempts=9, token="t4")] == ["t0", "t1", "t2"]


def test_an_attempt_that_is_handed_back_does_not_count() -> None:
    book = a_book(task("a"))
    [lease] = claim(book)
    commands.Release(lease, "worker stopped").apply(book)
    [again] = claim(book, token="t2")
    assert again.attempt == 1
    complete(book, again)
    assert book.jobs["j"].state == "completed"


def test_a_signal_wakes_the_first_waiter_only() -> None:
    book = a_book(task("a"), task("b"))
    for lease in claim(book):
        commands.Suspend(lease, "wait", "wait:go", "go").apply(book)
    assert commands.SendSignal("j", "go", "s1", b"1").apply(book) is True
    assert standing(book) == {"a": "pending", "b": "waiting"}


def test_a_signal_before_the_wait_is_kept() -> None:
    book = a_book(task("a"))
    assert commands.SendSignal("j", "go", "s1", b"1").apply(book) is False
    [lease] = claim(book)
    commands.Suspend(lease, "wait", "wait:go", "go").apply(book)
    assert standing(book) == {"a": "pending"}
    assert [(s.key, s.output) for s in book.new_steps] == [("wait:go", b'{"value":1}')]
    assert book.take_signal("j", "go") is None, "it is taken once"


def test_waiting_keeps_the_attempt() -> None:
    book = a_book(task("a"))
    [lease] = claim(book)
    commands.Suspend(lease, "sleep", "sleep", seconds=1).apply(book)
    timer = book.timers["j", "a"] = book.new_timers["j", "a"]
    book.now = NOW + 1_000_000
    commands.FireTimer(timer).apply(book)
    [again] = claim(book, token="t2")
    assert (again.attempt, again.reentered, again.fresh) == (1, True, False)


def test_the_same_key_and_body_are_the_same_job() -> None:
    book = a_book(task("a"), idempotencyKey="k")
    again = submit(book, task("a"), job_id="other", idempotencyKey="k")
    assert (again.job_id, again.created) == ("j", False)
    assert len(book.jobs) == 1


def test_the_same_key_with_another_body_is_refused() -> None:
    book = a_book(task("a"), idempotencyKey="k")
    with pytest.raises(errors.IdempotencyConflict, match="'k' belongs to job 'j'"):
        submit(book, task("b"), job_id="other", idempotencyKey="k")


def test_tasks_that_are_added_stand_on_what_is_there() -> None:
    book = a_book(task("a"), task("b"))
    first, _ = claim(book)
    complete(book, first)
    specs = graph.read_tasks([task("c", "a"), task("d", "b"), task("e", "c")])
    commands.AddTasks("j", specs, [b"{}"] * 3).apply(book)
    assert {t: s for t, s in standing(book).items() if t in "cde"} == {"c": "pending", "d": "blocked", "e": "blocked"}


def test_a_large_payload_is_kept_apart() -> None:
    book = ledger.Ledger("default", NOW, spill_bytes=10)
    stored = book.payload("j", b'"0123456789"')
    assert stored.startswith(ledger.BLOB_MARK)
    assert list(book.blobs.values()) == [b'"0123456789"']
    assert book.payload("j", b'"01"') == b'"01"'


def test_cancel_answers_who_won() -> None:
    book = a_book(task("a"), task("b", "a"))
    [lease] = claim(book)
    assert commands.CancelJob("j").apply(book) == "cancelled"
    assert standing(book) == {"a": "cancelled", "b": "cancelled"}
    assert (("j", "a"), lease.token) in book.revoked
    done = a_book(task("a"))
    run_all(done)
    assert commands.CancelJob("j").apply(done) == "completed"


def test_what_exceptions_say_is_made_storable() -> None:
    failure = commands.make_failure("E", "\ud800" + "x" * 100_000, "trace")
    assert len(codec.encode(failure)) < 40_000


@pytest.mark.parametrize(
    ("states_after", "expected"),
    [
        ("block", {"a": "failed", "b": "blocked", "c": "blocked"}),
        ("skip", {"a": "failed", "b": "skipped", "c": "blocked"}),
        ("run", {"a": "failed", "b": "pending", "c": "blocked"}),
    ],
)
def test_x10_what_becomes_of_tasks_whose_dependency_failed(states_after: str, expected: dict[str, str]) -> None:
    book = a_book(task("a"), task("b", "a", onDependencyFailure=states_after), task("c", "b"))
    fail(book, claim(book)[0])
    assert standing(book) == expected


def test_counters_always_add_up() -> None:
    book = a_book(task("a"), task("b", "a", onDependencyFailure="skip"), task("c", optional=True), task("d", "c"))
    first, second = claim(book)
    for step in (lambda: fail(book, first), lambda: fail(book, second), lambda: run_all(book)):
        step()
        job = book.jobs["j"]
        parts = (job.blocked, job.active, job.completed, job.failed, job.tolerated, job.skipped, job.cancelled)
        assert sum(parts) == job.total == 4
    assert standing(book) == {"a": "failed", "b": "skipped", "c": "failed", "d": "completed"}
