"""Graphs as producers write them: what is refused and how it is named, and the plan view."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import errors
from ostinato.core import graph
from ostinato.core.retry import Retry


def task(task_id: str, *after: str, **fields: Any) -> dict[str, Any]:
    return {"taskId": task_id, "name": "work", "dependsOn": list(after)} | fields


def read(*tasks: dict[str, Any], **fields: Any) -> graph.JobSpec:
    return graph.read_job({"tasks": list(tasks)} | fields)


def plan(*tasks: dict[str, Any], **fields: Any) -> graph.Plan:
    return graph.plan(read(*tasks, **fields))


# --- X3: what Kahn's algorithm would silently drop is refused by name ------------------------------------------------


def test_x3_a_cycle_is_named() -> None:
    with pytest.raises(errors.CycleFound, match="circle") as caught:
        read(task("a", "c"), task("b", "a"), task("c", "b"), task("alone"))
    cycle = caught.value.details["cycle"]
    assert cycle[0] == cycle[-1]
    assert set(cycle) == {"a", "b", "c"}


def test_of_a_cycle_through_thousands_the_beginning_is_named() -> None:
    count = 5_000
    with pytest.raises(errors.CycleFound, match=r"t\d+ → t\d+ → .* and 4,991 more$") as caught:
        read(*[task(f"t{n}", f"t{(n + 1) % count}") for n in range(count)])
    assert len(str(caught.value)) < 300
    cycle = caught.value.details["cycle"]
    assert len(cycle) == len(set(cycle)) == 100


def test_x3_a_cycle_is_named_along_its_edges() -> None:
    tasks = {"a": "c", "b": "a", "c": "b"}
    with pytest.raises(errors.CycleFound) as caught:
        read(*[task(down, up) for down, up in tasks.items()])
    cycle = caught.value.details["cycle"]
    assert all(tasks[cycle[i]] == cycle[i + 1] for i in range(3)), "each depends on the next one named"


def test_x3_a_task_may_not_depend_on_itself() -> None:
    with pytest.raises(errors.CycleFound, match="'a' depends on itself"):
        read(task("a", "a"))


def test_x3_an_unknown_dependency_is_named() -> None:
    with pytest.raises(errors.UnknownDependency, match="'b' depends on 'ghost'"):
        read(task("a"), task("b", "ghost"))


def test_x3_duplicate_edges_count_once() -> None:
    spec = read(task("a"), task("b", "a", "a", "a"))
    assert spec.tasks[1].depends_on == ["a"]


def test_two_tasks_with_one_id_are_refused() -> None:
    with pytest.raises(errors.DuplicateTask, match="'a'"):
        read(task("a"), task("a"))


def test_tasks_may_be_written_in_any_order() -> None:
    assert plan(task("last", "middle"), task("middle", "first"), task("first")).levels == [
        ["first"],
        ["middle"],
        ["last"],
    ]


def test_a_long_chain_written_backwards_is_no_problem() -> None:
    count = 20_000
    tasks = [task(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in reversed(range(count))]
    assert len(read(*tasks).tasks) == count


# --- ids and names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["", " ", "a b", "-a", ".a", "a/b", "a\nb", "a\0b", "ä", "a" * 129, "a\n", "\ud800"])
def test_odd_task_ids_are_refused(odd: str) -> None:
    with pytest.raises(errors.InvalidId, match="taskId"):
        read(task(odd))


@pytest.mark.parametrize("fine", ["a", "A", "0", "a" * 128, "a.b_c:d-e", "task-A", "store:123"])
def test_good_task_ids_are_taken(fine: str) -> None:
    assert read(task(fine)).tasks[0].task_id == fine


@pytest.mark.parametrize("field", ["jobId", "requestId", "correlationId"])
@pytest.mark.parametrize("odd", ["", "a b", "x" * 129])
def test_odd_ids_of_jobs_are_refused(field: str, odd: str) -> None:
    with pytest.raises(errors.InvalidId, match=field):
        read(task("a"), **{field: odd})


@pytest.mark.parametrize("name", ["ürün-raporu", "店舗レポート", "a b/c:d.e_f-1"])
def test_names_may_be_in_any_script(name: str) -> None:
    assert read(task("a", name=name), name=name).name == name


@pytest.mark.parametrize("odd", ["", "/x", "a\nb", "x" * 201, "a;b", "_x", "\ud800"])
def test_odd_names_are_refused(odd: str) -> None:
    with pytest.raises(errors.InvalidId, match="name"):
        read(task("a", name=odd))
    with pytest.raises(errors.InvalidId, match="name"):
        read(task("a"), name=odd)


@pytest.mark.parametrize("odd", ["", "x" * 256, "a\0b", "\ud800"])
def test_odd_idempotency_keys_are_refused(odd: str) -> None:
    with pytest.raises(errors.InvalidInput, match="idempotencyKey"):
        read(task("a"), idempotencyKey=odd)


@pytest.mark.parametrize(
    "tags",
    [
        {"a\0": "b"},
        {"a": "b\0"},
        {"a": "\ud800"},
        {"a": "x" * 257},
        {"x" * 129: "a"},
        {"": "a"},
        {"a=b": "c"},
        {f"key-{n}": "" for n in range(65)},
    ],
)
def test_odd_tags_are_refused(tags: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidInput, match="tags"):
        read(task("a"), tags=tags)


def test_a_queue_is_an_id() -> None:
    with pytest.raises(errors.InvalidId, match="queue of task 'a'"):
        read(task("a", queue="a b"))


# --- numbers and types -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, -math.inf, 1e10])
@pytest.mark.parametrize("field", ["timeout", "deadline"])
def test_impossible_times_are_refused(field: str, bad: float) -> None:
    with pytest.raises(errors.InvalidInput, match=field):
        read(
            task("a", **({"timeout": bad} if field == "timeout" else {})),
            **({field: bad} if field == "deadline" else {}),
        )


@pytest.mark.parametrize("field", ["baseDelay", "maxDelay", "multiplier", "jitter"])
@pytest.mark.parametrize("bad", [-1, math.nan, -math.inf])
def test_negative_and_nan_retry_settings_are_refused(field: str, bad: float) -> None:
    with pytest.raises(errors.InvalidInput, match=field):
        read(task("a", retry={field: bad}))


@pytest.mark.parametrize("bad", [0, -1, 2**63, 10**30])
def test_impossible_numbers_of_attempts_are_refused(bad: int) -> None:
    with pytest.raises(errors.InvalidInput, match="maxAttempts"):
        read(task("a", retry={"maxAttempts": bad}))


@pytest.mark.parametrize("bad", [-1_000_001, 1_000_001, 10**30])
def test_impossible_priorities_are_refused(bad: int) -> None:
    with pytest.raises(errors.InvalidInput, match="priority"):
        read(task("a"), priority=bad)
    with pytest.raises(errors.InvalidInput, match="priority"):
        read(task("a", priority=bad))


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"taskId": 1}, "taskId"),
        ({"name": None}, "name"),
        ({"dependsOn": "a"}, "dependsOn"),
        ({"dependsOn": [1]}, "dependsOn"),
        ({"input": [1]}, "input"),
        ({"input": "text"}, "input"),
        ({"retry": 3}, "retry"),
        ({"retry": {"maxAttempts": "3"}}, "maxAttempts"),
        ({"retry": {"attempts": 3}}, "attempts"),
        ({"timeout": "5"}, "timeout"),
        ({"queue": 1}, "queue"),
        ({"priority": 1.5}, "priority"),
        ({"optional": "yes"}, "optional"),
        ({"onDependencyFailure": "explode"}, "onDependencyFailure"),
        ({"depends_on": []}, "depends_on"),
    ],
)
def test_a_wrong_type_in_a_task_is_refused_with_its_field(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(errors.InvalidInput, match=where):
        read(task("a") | fields)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"tasks": {}}, "tasks"),
        ({"tasks": [1]}, "tasks"),
        ({"name": 1}, "name"),
        ({"tags": {"a": 1}}, "tags"),
        ({"tags": ["a"]}, "tags"),
        ({"priority": True}, "priority"),
        ({"deadline": "soon"}, "deadline"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_wrong_type_in_a_job_is_refused_with_its_field(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(errors.InvalidInput, match=where):
        graph.read_job({"tasks": [task("a")]} | fields)


@pytest.mark.parametrize("document", [None, 1, "text", [], b"\xff", "{", '{"tasks": [{"taskId": "a", "name": "b"}]'])
def test_what_is_no_job_at_all_is_refused(document: Any) -> None:
    with pytest.raises(errors.InvalidInput):
        graph.read_job(document)


def test_a_job_without_tasks_is_refused() -> None:
    with pytest.raises(errors.InvalidGraph, match="at least one task"):
        read()


def test_tasks_must_be_given() -> None:
    with pytest.raises(errors.InvalidInput, match="tasks"):
        graph.read_job({"name": "x"})


def test_json_text_is_read_too() -> None:
    assert graph.read_job('{"tasks": [{"taskId": "a", "name": "b"}]}').tasks[0].name == "b"


def test_reading_leaves_the_document_alone() -> None:
    document = {"tasks": [task("a"), task("b", "a", "a")]}
    graph.read_job(document)
    assert document == {"tasks": [task("a"), task("b", "a", "a")]}


# --- the plan ------------------------------------------------------------------------------------------------------


def test_a7_the_levels_of_the_seed() -> None:
    levels = plan(task("A"), task("B"), task("C", "A"), task("D", "B"), task("E", "C")).levels
    assert levels == [["A", "B"], ["C", "D"], ["E"]]


def test_d1_the_levels_of_the_example_job() -> None:
    levels = plan(task("A"), task("B"), task("C", "A"), task("D", "A"), task("E", "C", "D")).levels
    assert levels == [["A", "B"], ["C", "D"], ["E"]]


def test_a_level_is_the_longest_way_from_a_root() -> None:
    assert plan(task("a"), task("b", "a"), task("c", "a", "b")).levels == [["a"], ["b"], ["c"]]


def test_the_critical_path_goes_by_timeouts() -> None:
    found = plan(task("slow", timeout=100), task("quick", timeout=1), task("end", "slow", "quick"))
    assert found.critical_path == ["slow", "end"]


def test_x5_attempts_that_cannot_fit_the_deadline_are_warned_of() -> None:
    policy = {"maxAttempts": 4, "baseDelay": 2, "multiplier": 2}
    warnings = plan(task("agent", timeout=300, retry=policy), task("small", timeout=1), deadline=900).warnings
    assert len(warnings) == 1
    assert "'agent'" in warnings[0]
    assert "1,214 s" in warnings[0]


def test_x5_the_policy_of_the_function_counts_where_the_task_has_none() -> None:
    spec = graph.read_job({"tasks": [task("a")], "deadline": 10})
    warnings = graph.plan(spec, {"work": (Retry(max_attempts=2, base_delay=1), 5.0)}).warnings
    assert "11 s" in warnings[0]


def test_what_fits_the_deadline_is_not_warned_of() -> None:
    assert plan(task("a", timeout=300, retry={"maxAttempts": 1}), deadline=900).warnings == []


@st.composite
def _graphs(draw: st.DrawFn) -> list[dict[str, Any]]:
    count = draw(st.integers(1, 12))
    tasks = [
        task(f"t{n}", *draw(st.lists(st.sampled_from([f"t{m}" for m in range(n)]), max_size=4) if n else st.just([])))
        for n in range(count)
    ]
    return draw(st.permutations(tasks))


@given(_graphs())
def test_in_every_plan_each_task_comes_after_what_it_needs(tasks: list[dict[str, Any]]) -> None:
    levels = plan(*tasks).levels
    level = {task_id: n for n, ids in enumerate(levels) for task_id in ids}
    assert sorted(level) == sorted(t["taskId"] for t in tasks)
    for t in tasks:
        assert level[t["taskId"]] == 1 + max((level[up] for up in t["dependsOn"]), default=-1)


@given(_graphs(), st.data())
def test_an_edge_backwards_always_gives_a_named_cycle(tasks: list[dict[str, Any]], data: st.DataObject) -> None:
    down = data.draw(st.sampled_from(tasks))
    if not down["dependsOn"]:
        return
    up = next(t for t in tasks if t["taskId"] == down["dependsOn"][0])
    up["dependsOn"].append(down["taskId"])
    with pytest.raises(errors.CycleFound):
        read(*tasks)
