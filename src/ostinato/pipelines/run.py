"""The job of one run of an item: a task for each step and review, under its name, each after all those before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from ostinato.core import approvals, codec, courses, graph

WHEN = "ostinato.pipeline.when"
"""The function that evaluates the condition of a step."""
ITEM = "item"
"""The tag by which all runs of an item are found."""


def job_id(item_id: str, run: int) -> str:
    return f"{item_id}:{run}"


class Work(NamedTuple):
    """How an agent does a step."""

    function: str
    queue: str | None
    timeout: float | None
    input: Callable[[list[str]], bytes]
    """Of the task, by the steps before it."""


def spec(
    course: courses.Course,
    item_id: str,
    *,
    agents: Mapping[str, Work],
    kept: Collection[str] = (),
    only: str | None = None,
) -> graph.JobSpec:
    """The steps of a run. Those whose results are kept are nobody's work; `only` leaves out what comes after a step."""
    tasks: list[graph.TaskSpec] = []
    for entry in course.entries:
        before = [task.task_id for task in tasks if not is_condition(task.task_id)]
        if isinstance(entry, courses.Review):
            if entry.review in kept:
                tasks.append(graph.TaskSpec(entry.review, "review", external=True))
            else:
                tasks.append(graph.TaskSpec(entry.review, "review", depends_on=before, approval=asked(entry, item_id)))
            continue
        for step in courses.steps_of(entry):
            work = agents.get(step.step)
            function = step.function if work is None else work.function
            if step.step in kept:
                tasks.append(graph.TaskSpec(step.step, function or "", external=True, optional=step.optional))
            elif only is None or step.step == only:
                if step.when is not None:
                    tasks.append(_condition(step, before))
                tasks.append(_step(step, function or "", work, before))
        if only in [step.step for step in courses.steps_of(entry)]:
            break
    name = f"{courses.JOB}{course.pipeline.name}"
    tags = {ITEM: item_id}
    return graph.JobSpec(tasks, name=name, correlation_id=item_id, tags=tags, budget=course.pipeline.budget)


def inputs(spec: graph.JobSpec, about: dict[str, Any], payload: bytes, agents: Mapping[str, Work]) -> list[bytes]:
    """The inputs of the tasks of a run: what `given` says, what an agent needs, and for those who decide the payload
    itself."""
    encoded = codec.encode_own(about)
    made: list[bytes] = []
    for task in spec.tasks:
        if task.approval is not None:
            made.append(payload)
        elif task.task_id in agents:
            made.append(agents[task.task_id].input([up for up in task.depends_on if not is_condition(up)]))
        else:
            made.append(encoded)
    return made


def given(course: courses.Course, item_id: str, run: int, payload: bytes) -> dict[str, Any]:
    """The input of every task of a run. The payload is in it as a text: nothing in it is taken for a reference."""
    about = {"item_id": item_id, "pipeline": course.pipeline.name, "version": course.version, "run": run}
    return {"$item": about | {"payload": payload.decode(), "reviews": list(course.reviews)}}


def read_given(document: dict[str, Any], results: Mapping[str, Any]) -> dict[str, Any]:
    """What `given` wrote, with the payload as it was, or as the last review has left it."""
    about: dict[str, Any] = dict(document["$item"])
    about["item"] = as_reviewed(codec.decode(about.pop("payload")), about.pop("reviews"), results)
    if "output" in about:
        about["output"] = codec.decode(about["output"])
    return about | {"results": {name: result for name, result in results.items() if not is_condition(name)}}


def as_reviewed(payload: Any, reviews: Sequence[str], results: Mapping[str, Any]) -> Any:
    """Who approves an item may change it first: the steps after that work on what was approved."""
    for review in reviews:
        decided: Any = results.get(review)
        if isinstance(decided, dict) and "payload" in decided:
            payload = cast("dict[str, Any]", decided)["payload"]
    return payload


def undo(
    course: courses.Course, steps: Sequence[str], about: dict[str, Any], outputs: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Tasks that take back what steps did, one after the other, each with what its step came to."""
    tasks: list[dict[str, Any]] = []
    for name in steps:
        output = {"output": codec.encode(outputs.get(name)).decode()}
        tasks.append(
            {
                "taskId": f"undo-{name}",
                "name": course.steps[name].undo,
                "dependsOn": [task["taskId"] for task in tasks[-1:]],
                "input": {"$item": about["$item"] | output},
                "retry": course.steps[name].retry,
            }
        )
    return tasks


def is_condition(task_id: str) -> bool:
    """It is no step, but the task that evaluates the condition of one."""
    return task_id.startswith(courses.CONDITION)


def _condition(step: courses.Step, before: list[str]) -> graph.TaskSpec:
    return graph.TaskSpec(f"{courses.CONDITION}{step.step}", WHEN, depends_on=before, queue=graph.SYSTEM_QUEUE)


def _step(step: courses.Step, function: str, work: Work | None, before: list[str]) -> graph.TaskSpec:
    return graph.TaskSpec(
        step.step,
        function,
        depends_on=before if step.when is None else [*before, f"{courses.CONDITION}{step.step}"],
        retry=step.retry,
        timeout=step.timeout or (None if work is None else work.timeout),
        queue=step.queue or (None if work is None else work.queue),
        optional=step.optional,
    )


def asked(review: courses.Review, item_id: str) -> approvals.Approval:
    """What people are asked in the review of an item."""
    return approvals.Approval(
        f"{item_id}: {review.title or review.review}",
        (approvals.APPROVE, approvals.REJECT, *review.again),
        review.quorum,
        review.approvers,
        review.not_submitter,
        review.allow_edit,
        review.escalate,
        review.deadline,
        review.on_deadline,
    )
