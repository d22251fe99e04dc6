"""A graph as its producer writes it: reading it, refusing what cannot run, and the plan view of levels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

import msgspec

from ostinato import errors
from ostinato.core import absent, approvals, codec, documents, retry, statuses, usage
from ostinato.core.documents import short as _short

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:~-]{0,127}")
_CHOSEN_ID = re.compile(r"(?!.*\.(undo|budget)-\d+$)[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
"""A job id that somebody may choose: those of the engine have a ~, or such an end."""
_OWN_KEY = re.compile(r"late:[0-9a-f-]{36}:")
"""How the idempotency keys begin of jobs that late reports to gates trigger."""
_NAME = re.compile(r"[^\W_][\w.:/ -]{0,199}")

CORRELATION = ("correlation_id", "correlationId")
"""How others call it in their data."""
RESERVED = "ostinato."
"""How the engine's own functions, and the queue that they run on, are named."""
SYSTEM_QUEUE = "ostinato.system"
OWN_JOBS = ("gate:", "rule:", "budget:")
"""How jobs are named that the engine enters by itself, and that are its own."""
RESERVED_JOBS = (*OWN_JOBS, "playbook:", "pipeline:", "undo:")
"""How nobody may name a job."""
MOST_CONCURRENCY = 1_000_000
MOST_NAMED = 10
MOST_DETAILED = 100
"""Tasks of a circle that an error names in its sentence, and in its details."""
LARGE = 500
"""Tasks that take about two milliseconds to read."""
MOST_TAGS = 64
LONGEST_TAG_KEY = 128
LONGEST_TAG_VALUE = 256
"""A tag is a key in an index, and those are short."""


LARGEST_PRIORITY = 1_000_000

Id = Annotated[str, retry.said(pattern=rf"^{_ID.pattern}$(?!\n)")]
ChosenId = Annotated[str, retry.said(pattern=rf"^{_CHOSEN_ID.pattern}$(?!\n)")]
Name = Annotated[str, retry.said(pattern=rf"^{_NAME.pattern}$(?!\n)")]
Key = Annotated[str, retry.said(minLength=1, maxLength=255, pattern=r"^[^\x00]*$")]
TagKey = Annotated[str, retry.said(minLength=1, maxLength=LONGEST_TAG_KEY, pattern=r"^[^\x00=]*$")]
TagValue = Annotated[str, retry.said(maxLength=LONGEST_TAG_VALUE, pattern=r"^[^\x00]*$")]
Status = Annotated[str, retry.said(minLength=1, maxLength=statuses.LONGEST_STATUS)]
Tags = Annotated[dict[TagKey, TagValue], retry.said(maxProperties=MOST_TAGS)]
Seconds = Annotated[float, retry.said(exclusiveMinimum=0, exclusiveMaximum=retry.LONGEST)]
Delay = Annotated[float, retry.said(minimum=0, exclusiveMaximum=retry.LONGEST)]
Priority = Annotated[int, retry.said(minimum=-LARGEST_PRIORITY, maximum=LARGEST_PRIORITY)]


class Statuses(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """What a job says of itself when one of its tasks starts, and when and how it ends."""

    started: Status | None = None
    completed: Status | None = None
    failed: Status | None = None
    """For good."""
    cancelled: Status | None = None


class TaskSpec(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One task as the producer describes it."""

    task_id: Id
    name: Name
    depends_on: list[Id] = []
    input: dict[str, Any] = {}
    retry: retry.Retry | None = None
    timeout: Seconds | None = None
    queue: Id | None = None
    priority: Priority | None = None
    optional: bool = False
    on_dependency_failure: Literal["block", "skip", "run"] = "block"
    delay: Delay | None = None
    """How many seconds to wait before the first attempt, once everything that it depends on is there."""
    external: bool = False
    """Nobody runs it: somebody outside completes it, or says that it failed."""
    statuses: Statuses | None = None
    approval: approvals.Approval | None = None
    """Nobody runs it: people decide on it, and its input is what they decide about."""
    compensates: bool = False
    """It takes back what the tasks before it did: once it has begun, none of them runs again."""


class JobSpec(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A job as the producer describes it. `deadline` is in seconds from submission."""

    tasks: Annotated[list[TaskSpec], retry.said(minItems=1)]
    name: Name = "job"
    job_id: ChosenId | None = None
    request_id: Id | None = None
    correlation_id: Id | None = None
    idempotency_key: Key | None = None
    tags: Tags = {}
    priority: Priority = 0
    deadline: Seconds | None = None
    max_concurrency: Annotated[int, retry.said(minimum=1, maximum=MOST_CONCURRENCY)] | None = None
    """How many of its tasks may run at the same time; None is as many as there are workers for."""
    budget: Annotated[float, retry.said(minimum=0, maximum=usage.MOST_MONEY)] | None = None
    """What it may cost, in the currency of the prices: when that is spent, nothing more of it begins."""


class Plan(msgspec.Struct, rename="camel"):
    """What a graph looks like before it runs. Levels are only a view: tasks start as they become ready."""

    levels: list[list[str]]
    critical_path: list[str]
    warnings: list[str]


def read_job(document: Any) -> JobSpec:
    """Turn a producer's document (a dict, or a JobSpec) into a checked JobSpec."""
    spec = document if isinstance(document, JobSpec) else _convert(document, JobSpec, "job")
    check_name(spec.name, "name")
    if spec.name.startswith(RESERVED_JOBS):
        raise errors.InvalidId(
            f"name {_short(spec.name)} starts with {spec.name.partition(':')[0] + ':'!r}, as the engine's own jobs do: "
            "use another name",
            field="name",
        )
    for field, value in (
        ("jobId", spec.job_id),
        ("requestId", spec.request_id),
        ("correlationId", spec.correlation_id),
    ):
        if value is not None:
            check_id(value, field)
    if spec.idempotency_key is not None:
        check_key(spec.idempotency_key)
    _check_chosen(spec)
    if spec.tags:
        check_tags(spec.tags)
    if spec.deadline is not None:
        check_deadline(spec.deadline)
    if spec.max_concurrency is not None and not 1 <= spec.max_concurrency <= MOST_CONCURRENCY:
        raise errors.InvalidInput(
            f"maxConcurrency must be 1 to {MOST_CONCURRENCY:,}, not {_short(spec.max_concurrency)}",
            field="maxConcurrency",
        )
    if spec.budget is not None:
        usage.micros(spec.budget, "budget")
    _check_priority(spec.priority, "priority")
    if not spec.tasks:
        raise errors.InvalidGraph("tasks is empty: a job needs at least one task", field="tasks")
    check_tasks(spec.tasks)
    return spec


def _check_chosen(spec: JobSpec) -> None:
    """Refuse what the engine may come to make up itself: its jobs would find their places taken."""
    if spec.job_id is not None and not _CHOSEN_ID.fullmatch(spec.job_id):
        raise errors.InvalidId(
            f"jobId {_short(spec.job_id)} is of a kind that the engine makes up itself: leave out ~, and do not end it "
            "in .undo- or .budget- and a number",
            field="jobId",
        )
    if spec.idempotency_key is not None and _OWN_KEY.match(spec.idempotency_key):
        raise errors.InvalidId(
            "idempotencyKey begins like those that the engine makes up for late reports to gates: use another",
            field="idempotencyKey",
        )


def read_tasks(documents: Sequence[Any]) -> list[TaskSpec]:
    """Turn task documents to be added to a job into checked specs. They may depend on tasks of the job, seen later."""
    if not documents:
        raise errors.InvalidGraph("tasks is empty: there is nothing to add", field="tasks")
    specs = _convert(list(documents), list[TaskSpec], "tasks")
    check_tasks(specs, None)
    return specs


def check_tasks(tasks: Sequence[TaskSpec], known: frozenset[str] | None = frozenset()) -> None:
    """Refuse duplicate ids, unknown dependencies, circles and bad settings. `known=None` allows unknown ones."""
    ids: set[str] = set()
    names: set[str] = set()
    for task in tasks:
        _check_task(task)
        if task.name not in names:
            check_name(task.name, f"name of task {task.task_id!r}")
            check_not_reserved(task.name)
            names.add(task.name)
        if task.task_id in ids:
            raise errors.DuplicateTask(
                f"two tasks have the id {task.task_id!r}: give each task its own taskId", taskId=task.task_id
            )
        ids.add(task.task_id)
    before: set[str] = set()
    in_order = True
    for task in tasks:
        for dependency in task.depends_on:
            if dependency not in before:
                _check_dependency(task.task_id, dependency, ids, known)
                in_order = in_order and dependency not in ids
        before.add(task.task_id)
    if not in_order:  # a list in order, as most are, has no circle
        refuse_cycle(tasks)


def _check_dependency(task_id: str, dependency: str, ids: set[str], known: frozenset[str] | None) -> None:
    if dependency == task_id:
        raise errors.CycleFound(f"task {task_id!r} depends on itself", cycle=[dependency, dependency])
    if known is not None and dependency not in ids and dependency not in known:
        raise errors.UnknownDependency(
            f"task {task_id!r} depends on {absent.named(dependency)}, which is not a task of this job",
            taskId=task_id,
            dependency=absent.cut(dependency),
        )


def size(tasks: Sequence[TaskSpec]) -> float:
    """How much there is to look at: tasks, of which ten dependencies count as one more."""
    return len(tasks) + sum(len(task.depends_on) for task in tasks) / 10


def is_large(document: Any) -> bool:
    """Whether reading it takes so long that an event loop should not do it. Who gives dicts has read them already."""
    tasks = document.tasks if isinstance(document, JobSpec) else document
    if not isinstance(tasks, list) or not tasks or not isinstance(tasks[0], TaskSpec):
        return False
    return size(cast("list[TaskSpec]", tasks)) > LARGE


def refuse_cycle(tasks: Sequence[TaskSpec]) -> None:
    cycle = find_cycle({task.task_id: task.depends_on for task in tasks})
    if cycle:
        raise cycle_found("the tasks depend on each other in a circle", cycle)


def find_cycle(dependencies: Mapping[str, Sequence[str]]) -> list[str]:
    """A circle, if there is one: each depends on the next, and the last is the first again."""
    left = dependencies.keys() - set(sort(dependencies))
    if not left:
        return []
    at = next(name for name in dependencies if name in left)
    path: dict[str, int] = {}
    while at not in path:  # whatever could not be sorted depends on something that could not be sorted either
        path[at] = len(path)
        at = next(name for name in dependencies[at] if name in left)
    return [*list(path)[path[at] :], at]


def sort(dependencies: Mapping[str, Sequence[str]]) -> list[str]:
    """Each after all that it depends on. Those of a circle, and those that depend on one, are left out."""
    done: dict[str, None] = {}
    waiting: dict[str, int] = {}
    dependants: dict[str, list[str]] = {}
    for name, needed in dependencies.items():
        if done.keys() >= set(needed):  # in a list that is in order, as most are, all of them
            done[name] = None
            continue
        missing = [other for other in needed if other not in done and other in dependencies]
        waiting[name] = len(missing)
        for other in missing:
            dependants.setdefault(other, []).append(name)
    ready = [name for name, count in waiting.items() if not count] + [name for name in done if name in dependants]
    while ready:
        name = ready.pop()
        done[name] = None
        for other in dependants.get(name, ()):
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    return list(done)


def cycle_found(sentence: str, cycle: list[str], **details: Any) -> errors.CycleFound:
    """Where the circle begins says enough of one through thousands."""
    more = len(cycle) - MOST_NAMED
    shown = " → ".join(cycle[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    return errors.CycleFound(f"{sentence}: {shown}", cycle=cycle[:MOST_DETAILED], **details)


def plan(spec: JobSpec, defaults: dict[str, tuple[retry.Retry, float | None]] | None = None) -> Plan:
    """Levels by longest distance from a root, the critical path by timeouts, and warnings about what cannot fit."""
    depth: dict[str, int] = {}
    cost: dict[str, float] = {}
    before: dict[str, str | None] = {}
    by_id = {task.task_id: task for task in spec.tasks}
    warnings: list[str] = []
    unknown = (retry.Retry(), None)
    for task_id in sort({task.task_id: task.depends_on for task in spec.tasks}):
        task = by_id[task_id]
        policy, timeout = (defaults or {}).get(task.name, unknown)
        longest = max(task.depends_on, key=cost.__getitem__, default=None)
        before[task_id] = longest
        depth[task_id] = 1 + max(map(depth.__getitem__, task.depends_on), default=-1)
        seconds = task.timeout if task.timeout is not None else timeout
        delay = task.delay or 0.0
        cost[task_id] = (cost[longest] if longest else 0.0) + delay + (seconds or 1.0)
        if spec.deadline is None:
            continue
        worst = delay if seconds is None else delay + worst_case(task.retry or policy, seconds)
        if worst > spec.deadline:
            warnings.append(
                f"task {task_id!r} may need {worst:,.0f} s with all its attempts, "
                f"more than the deadline of {spec.deadline:,.0f} s"
            )
    levels: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for task in spec.tasks:
        levels[depth[task.task_id]].append(task.task_id)
    path: list[str] = []
    at: str | None = max(cost, key=lambda task_id: cost[task_id])
    while at is not None:
        path.append(at)
        at = before[at]
    return Plan(levels=levels, critical_path=path[::-1], warnings=warnings)


def worst_case(policy: retry.Retry, timeout: float) -> float:
    """How many seconds all attempts may take, with the waiting between them."""
    return policy.max_attempts * timeout + sum(policy.delay(n) for n in range(1, policy.max_attempts))


def check_key(key: str) -> str:
    if not isinstance(key, str) or not 1 <= len(key) <= 255:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise errors.InvalidId("idempotencyKey must be 1 to 255 characters", field="idempotencyKey")
    _check_text(key, "idempotencyKey")
    return key


def check_id(value: object, field: str) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise errors.InvalidId(
            f"{field} {_short(value)} is not a valid id: use 1 to 128 letters, digits, . _ : or -, "
            "starting with a letter or digit",
            field=field,
        )
    return value


def is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def correlation_id_in(data: Mapping[str, Any], field: str) -> str | None:
    """The correlation id that data brings along, in either spelling; one that no job could have is refused."""
    for name in CORRELATION:
        if data.get(name) is not None:
            return check_id(data[name], f"{field}.{name}")
    return None


def is_seconds(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < retry.LONGEST


def check_seconds(value: Any, field: str) -> float:
    if not is_seconds(value):
        raise errors.InvalidInput(f"{field} must be a number of seconds, 0 or more, not {_short(value)}", field=field)
    return float(value)


def check_deadline(value: Any) -> None:
    if not is_seconds(value) or value <= 0:
        raise errors.InvalidInput(
            f"deadline must be more than 0 seconds from now, not {_short(value)}", field="deadline"
        )


def unknown_function_message(name: str, known: Sequence[str]) -> str:
    nearest = documents.nearest(name, known)
    return f"no worker has registered a function {name!r}: {nearest}start a worker that has it first"


def request_hash_source(spec: JobSpec) -> bytes:
    """The bytes whose equality means 'the same request' for an idempotency key."""
    return codec.encode_canonical(spec)


def _check_task(task: TaskSpec) -> None:
    if not _ID.fullmatch(task.task_id):
        check_id(task.task_id, "taskId")
    if task.queue is not None:
        check_id(task.queue, f"queue of task {task.task_id!r}")
        check_not_reserved(task.queue)
    if task.timeout is not None and not 0 < task.timeout < retry.LONGEST:
        raise errors.InvalidInput(f"timeout of task {task.task_id!r} must be more than 0 seconds, not {task.timeout!r}")
    if task.delay is not None and not 0 <= task.delay < retry.LONGEST:
        raise errors.InvalidInput(f"delay of task {task.task_id!r} must be 0 seconds or more, not {task.delay!r}")
    if task.statuses is not None:
        for status in msgspec.structs.astuple(task.statuses):
            if status is not None:
                statuses.check(status, None)
    if task.external or task.approval is not None:
        _check_run_by_nobody(task)
    if task.priority is not None:
        _check_priority(task.priority, f"priority of task {task.task_id!r}")
    if task.compensates and not task.depends_on:
        raise errors.InvalidInput(
            f"task {task.task_id!r} compensates nothing: name in its dependsOn the tasks whose work it takes back",
            field="compensates",
            taskId=task.task_id,
        )
    if len(task.depends_on) > 1:
        task.depends_on = list(dict.fromkeys(task.depends_on))  # a dependency named twice counts once


def _check_run_by_nobody(task: TaskSpec) -> None:
    if task.approval is not None:
        approvals.check(task.approval, f"approval of task {task.task_id!r}")
    if task.delay is not None or task.retry is not None or task.timeout is not None:
        kind = "external" if task.external else "an approval"
        raise errors.InvalidInput(
            f"task {task.task_id!r} is {kind}: nobody runs it, so it has no delay, retry or timeout"
        )
    if task.external and task.approval is not None:
        raise errors.InvalidInput(f"task {task.task_id!r} is external and an approval: it can be one of them")


def run_by_nobody(task: TaskSpec) -> bool:
    """Somebody outside, or somebody who is asked, completes it."""
    return task.external or task.approval is not None


def check_not_reserved(*names: str | None) -> None:
    """Refuse names of functions and queues that would be taken for the engine's own."""
    for name in names:
        if name is not None and name.startswith(RESERVED):
            raise errors.InvalidInput(
                f"{_short(name)}: names that start with {RESERVED!r} are those of the engine's own functions and "
                "queues: use another name",
                field="name",
            )


def check_name(value: object, field: str) -> None:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise errors.InvalidId(
            f"{field} {_short(value)} is not a valid name: use 1 to 200 letters, digits, spaces, . _ : / or -, "
            "starting with a letter or digit",
            field=field,
        )


def check_tags(tags: dict[str, str], field: str = "tags") -> None:
    if len(tags) > MOST_TAGS:
        raise errors.InvalidInput(f"{field} has {len(tags):,} tags and the limit is {MOST_TAGS}", field=field)
    for key, value in tags.items():
        _check_text(key, field)
        _check_text(value, field)
        if not 1 <= len(key) <= LONGEST_TAG_KEY or "=" in key or len(value) > LONGEST_TAG_VALUE:
            raise errors.InvalidInput(
                f"{field}: the key {_short(key)} must be 1 to {LONGEST_TAG_KEY} characters, without =, "
                f"and its value at most {LONGEST_TAG_VALUE}",
                field=field,
            )


def _check_text(value: str, field: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise errors.InvalidInput(f"{field} has a lone surrogate, which is not valid text", field=field) from None
    if "\0" in value or len(value) > 1024:
        raise errors.InvalidInput(f"{field} must be at most 1024 characters and without NUL", field=field)


def _check_priority(value: int, field: str) -> None:
    if not -LARGEST_PRIORITY <= value <= LARGEST_PRIORITY:
        raise errors.InvalidInput(
            f"{field} must be between {-LARGEST_PRIORITY} and {LARGEST_PRIORITY}, not {_short(value)}", field=field
        )


def _convert(document: Any, kind: Any, what: str) -> Any:
    if isinstance(document, (str, bytes)):
        document = codec.parse(document, what)
    return documents.convert(document, kind, what)
