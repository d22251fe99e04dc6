"""From fields to the same calls that the HTTP handlers make, with the same checks and the same answers."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncGenerator, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from ariadne import ObjectType, ScalarType, SubscriptionType

from ostinato import app, errors, results, views
from ostinato.api import access, calls, limits, models
from ostinato.api.http import dead_letters, fleet, jobs, tasks
from ostinato.api.live import changes, hub, messages
from ostinato.core import commands, documents, executions, filters, graph, shapes, why
from ostinato.store import keys

T = TypeVar("T")

query = ObjectType("Query")
mutation = ObjectType("Mutation")
subscription = SubscriptionType()
job = ObjectType("Job")
task = ObjectType("Task")
why_ = ObjectType("Why")
execution = ObjectType("Execution")
moment = ScalarType("DateTime")


class Call(NamedTuple):
    """Who asks, and what they may ask: the `context` of every resolver."""

    principal: access.Principal
    client: app.Ostinato
    hub: hub.Hub
    changes: changes.Changes
    keys: keys.Keys
    """Of all tenants: what is read for one of them is read behind a wall, where there are no keys."""

    account: limits.Account

    def job(self, job_id: str) -> app.Job:
        return app.Job(self.client, graph.check_id(job_id, "jobId"))


class PageInfo(NamedTuple):
    has_next_page: bool
    end_cursor: str | None


class Connection(NamedTuple):
    nodes: Sequence[Any]
    page_info: PageInfo


def page(found: Sequence[Any], cursor: str | None) -> Connection:
    return Connection(found, PageInfo(cursor is not None, cursor))


def most(first: int) -> int:
    if not 1 <= first <= calls.MOST:
        raise errors.InvalidInput(f"first must be 1 to {calls.MOST}, not {first}", field="first")
    return first


def number(cursor: str | None, least: int) -> int:
    """A place in the list of one job, which is only a number."""
    if cursor is None:
        return least
    if not cursor.isdecimal() or len(cursor) > 18:
        raise errors.InvalidInput("this is not a cursor of this list: start without one", field="after")
    return int(cursor)


def convert(given: Any, kind: type[T]) -> T:
    """Input as the type that the HTTP API reads. A field that is null is one that is not given."""
    try:
        return msgspec.convert(_without_nulls(given), kind)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at `")
        sentence = documents.cut(shapes.explain(said))
        field = where.rstrip("`").removeprefix("$").removeprefix(".")
        raise errors.InvalidInput(f"{field}: {sentence}" if field else sentence, field=field or "input") from None


def _without_nulls(given: Any) -> Any:
    """Only in our own input types: what is inside a JSON value stays as it is."""
    if isinstance(given, list):
        return [_without_nulls(item) for item in given]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(given, dict):
        return given
    return {
        name: _without_nulls(value) if name in _OURS else value
        for name, value in given.items()  # pyright: ignore[reportUnknownVariableType]
        if value is not None
    }


_OURS = ("tasks", "letters", "retry", "approval", "escalate", "filter")


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def named(given: dict[str, Any] | None) -> dict[str, Any]:
    """A filter as the arguments of the call that filters by it."""
    return {snake(name): value for name, value in (given or {}).items() if value is not None}


# --- scalars -------------------------------------------------------------------------------------------------------


@moment.serializer
def write_moment(value: datetime.datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


@moment.value_parser
def read_moment(value: Any) -> datetime.datetime:
    try:
        return msgspec.convert(value, datetime.datetime)
    except msgspec.ValidationError:
        raise errors.InvalidInput("a time looks like 2026-01-31T12:00:00Z") from None


# --- queries -------------------------------------------------------------------------------------------------------


@query.field("job")
async def find_job(_: Any, info: Any, jobId: str) -> views.JobView | None:
    try:
        return await info.context.job(jobId).info()
    except errors.JobNotFound:
        return None


@query.field("jobs")
async def list_jobs(
    _: Any, info: Any, first: int, after: str | None = None, filter: dict[str, Any] | None = None
) -> Connection:
    wanted: Any = named(filter)
    found = await info.context.client.jobs(cursor=after, most=most(first), **wanted)
    return page(found, found.cursor)


@query.field("task")
async def find_task(_: Any, info: Any, jobId: str, taskId: str) -> Task | None:
    try:
        detail = await info.context.job(jobId).task(taskId)
    except errors.NotFound:
        return None
    return Task(jobId, detail.task, detail)


@query.field("events")
async def list_events(_: Any, info: Any, first: int, after: str | None = None) -> Connection:
    found = await info.context.client.events(cursor=after, most=most(first))
    return page([messages.Message(item).event for item in found], found[-1].cursor if found else after)


@query.field("functions")
async def list_functions(_: Any, info: Any) -> list[models.Function]:
    return (await fleet.list_functions(info.context.client)).functions


@query.field("workers")
async def list_workers(_: Any, info: Any) -> list[models.Worker]:
    return (await fleet.list_workers(info.context.client)).workers


@query.field("deadLetters")
async def list_dead_letters(
    _: Any, info: Any, first: int, after: str | None = None, filter: dict[str, Any] | None = None
) -> Connection:
    wanted: filters.DeadLettersWanted = named(filter)  # pyright: ignore[reportAssignmentType]
    found = await dead_letters.list_dead_letters(info.context.client, wanted, most(first), after)
    return page(found.dead_letters, found.next_cursor)


@query.field("deadLetterDepth")
async def count_dead_letters(_: Any, info: Any) -> views.DeadLetterDepth:
    return await info.context.client.dead_letter_depth()


@query.field("executions")
async def list_executions(
    _: Any, info: Any, first: int, order: str, after: str | None = None, filter: dict[str, Any] | None = None
) -> Connection:
    wanted: Any = named(filter)
    found = await info.context.client.executions(order=order, cursor=after, most=most(first), **wanted)
    return page(found, found.cursor)


@query.field("execution")
async def find_execution(_: Any, info: Any, arn: str) -> views.ExecutionView | None:
    try:
        return await info.context.client.execution(arn)
    except errors.ExecutionNotFound:
        return None


@query.field("executionCounts")
async def count_executions(_: Any, info: Any, by: str, filter: dict[str, Any] | None = None) -> list[views.CountView]:
    wanted: Any = named(filter)
    with info.context.account.long():
        return await info.context.client.execution_counts(by, **wanted)


@query.field("results")
async def list_results(
    _: Any, info: Any, first: int, after: str | None = None, filter: dict[str, Any] | None = None
) -> Connection:
    found = await info.context.client.results.list(cursor=after, most=most(first), **named(filter))
    return page(found, found.cursor)


@query.field("result")
async def find_result(_: Any, info: Any, resultId: str) -> results.ResultView | None:
    try:
        return await info.context.client.results.get(resultId)
    except errors.ResultNotFound:
        return None


@query.field("search")
async def search_results(
    _: Any, info: Any, q: str, first: int, filter: dict[str, Any] | None = None
) -> list[results.Hit]:
    with info.context.account.long():
        return await info.context.client.results.search(q, most=most(first), **named(filter))


@query.field("plan")
async def plan(_: Any, info: Any, job: Any) -> graph.Plan:
    call: Call = info.context
    return await jobs.plan_job(call.client, call.account, convert(job, graph.JobSpec))


# --- jobs and tasks ------------------------------------------------------------------------------------------------


class Task:
    """A task that knows its job, so that more can be asked about it."""

    def __init__(
        self,
        job_id: str,
        view: views.TaskView,
        detail: views.TaskDetail | None = None,
        siblings: Siblings | None = None,
    ) -> None:
        self.job_id = job_id
        self.known_detail = detail
        self.siblings = siblings or Siblings(job_id, [view.task_id])
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


class Siblings:
    """The tasks of a page: what they depend on is read once for all of them, when the first one is asked for it."""

    def __init__(self, job_id: str, task_ids: Sequence[str]) -> None:
        self._job_id = job_id
        self._task_ids = task_ids
        self._reading: asyncio.Task[dict[str, list[str]]] | None = None

    async def depends_on(self, call: Call, task_id: str) -> list[str]:
        if self._reading is None:
            self._reading = asyncio.create_task(call.job(self._job_id).dependencies(self._task_ids))
        return (await self._reading).get(task_id, [])


@job.field("tasks")
async def tasks_of_job(
    found: views.JobView, info: Any, first: int, after: str | None = None, state: str | None = None
) -> Connection:
    listed = await info.context.job(found.job_id).tasks(state=state, after=number(after, -1), most=most(first))
    more = str(listed[-1].position) if len(listed) == first else None
    siblings = Siblings(found.job_id, [view.task_id for view in listed])
    return page([Task(found.job_id, view, siblings=siblings) for view in listed], more)


@job.field("events")
async def events_of_job(
    found: views.JobView, info: Any, first: int, after: str | None = None, taskId: str | None = None
) -> Connection:
    place = number(after, 0)
    listed = await info.context.job(found.job_id).events(task_id=taskId, after=place, most=most(first))
    end = str(listed[-1].seq if listed else place)
    return Connection(listed, PageInfo(len(listed) == first, end))


@task.field("dependsOn")
async def dependencies_of_task(found: Task, info: Any) -> list[str]:
    return await found.siblings.depends_on(info.context, found.task_id)


@task.field("detail")
async def detail_of_task(found: Task, info: Any) -> views.TaskDetail:
    return found.known_detail or await info.context.job(found.job_id).task(found.task_id)


@task.field("why")
async def why_of_task(found: Task, info: Any) -> why.Why:
    return await info.context.job(found.job_id).why(found.task_id)


@why_.field("details")
def details_of_why(found: why.Why, _: Any) -> Any:
    """There are times among them."""
    return msgspec.to_builtins(found.details)


@execution.field("jobId")
def job_id_of_execution(found: views.ExecutionView, info: Any) -> str | None:
    own = executions.own_job(info.context.principal.tenant, found.execution_arn)
    return None if own is None else own[1]


@execution.field("job")
async def job_of_execution(found: views.ExecutionView, info: Any) -> views.JobView | None:
    job_id = job_id_of_execution(found, info)
    return None if job_id is None else await find_job(None, info, job_id)


# --- mutations -----------------------------------------------------------------------------------------------------


@mutation.field("submit")
async def submit(_: Any, info: Any, job: Any) -> Any:
    call: Call = info.context
    return (await jobs.submit_jobs(call.client, call.principal, call.account, convert(job, graph.JobSpec))).value


@mutation.field("submitMany")
async def submit_many(_: Any, info: Any, jobs: list[Any]) -> list[app.Job]:
    call: Call = info.context
    specs: list[graph.JobSpec] = [convert(job, graph.JobSpec) for job in jobs]
    call.account.charge_for(*[spec.tasks for spec in specs])
    return await call.client.submit_many(specs, actor=call.principal.actor)


@mutation.field("addTasks")
async def add_tasks(_: Any, info: Any, jobId: str, tasks: list[Any]) -> list[str]:
    call: Call = info.context
    specs = [convert(task, graph.TaskSpec) for task in tasks]
    call.account.charge_for(specs)
    return await call.job(jobId).add_tasks(specs, actor=call.principal.actor)


@mutation.field("resume")
async def resume(_: Any, info: Any, jobId: str, **given: Any) -> commands.ResumePlan:
    call: Call = info.context
    body = convert(given, models.Resume)
    return await jobs.resume_job(call.job(jobId), call.principal, body)


@mutation.field("cancel")
async def cancel(_: Any, info: Any, jobId: str, **given: Any) -> str:
    call: Call = info.context
    return (await jobs.cancel_job(call.job(jobId), call.principal, convert(given, models.Reason))).state


@mutation.field("signal")
async def signal(_: Any, info: Any, jobId: str, name: str, **given: Any) -> bool:
    call: Call = info.context
    job_id = graph.check_id(jobId, "jobId")
    body = models.Signal(given.get("payload"), given.get("signalId"))
    return (await jobs.send_signal(call.client, call.principal, job_id, name, body)).heard


@mutation.field("retry")
async def retry(_: Any, info: Any, jobId: str, taskId: str, **given: Any) -> str:
    call: Call = info.context
    return (await tasks.retry_task(call.job(jobId), call.principal, taskId, convert(given, models.Retried))).state


@mutation.field("skip")
async def skip(_: Any, info: Any, jobId: str, taskId: str, **given: Any) -> str:
    call: Call = info.context
    return (await tasks.skip_task(call.job(jobId), call.principal, taskId, convert(given, models.Reason))).state


@mutation.field("cancelTask")
async def cancel_task(_: Any, info: Any, jobId: str, taskId: str, **given: Any) -> str:
    call: Call = info.context
    reason = convert(given, models.Reason).reason
    return await call.job(jobId).cancel_task(taskId, reason, **calls.person(call.principal))


@mutation.field("redrive")
async def redrive(_: Any, info: Any, input: Any) -> views.Redriven:
    call: Call = info.context
    return await dead_letters.redrive_dead_letters(call.client, call.principal, convert(input, models.Redrive))


@mutation.field("publishStatus")
async def publish_status(_: Any, info: Any, input: dict[str, Any]) -> models.PublishedStatus:
    call: Call = info.context
    job_id = graph.check_id(input.pop("jobId"), "jobId")
    return await jobs.publish_status(call.client, call.principal, job_id, convert(input, models.NewStatus))


# --- subscriptions -------------------------------------------------------------------------------------------------


async def follow(call: Call, wanted: messages.Wanted, cursor: str | None) -> Followed:
    """Subscribed when this comes back, so that what is wrong with it is said before anything is sent."""
    subscribed = await call.hub.subscribe(call.principal.tenant, wanted, cursor)

    async def events() -> AsyncGenerator[messages.StreamEvent]:
        async with subscribed:
            async for message in subscribed:
                yield message.event

    return Followed(events(), subscribed)


class Followed:
    """Leaves the hub when it is closed, even before its first event was asked for."""

    def __init__(self, inner: AsyncGenerator[Any], subscribed: hub.Subscription) -> None:
        self._inner = inner
        self._subscribed = subscribed

    def __aiter__(self) -> Followed:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._inner)

    async def aclose(self) -> None:
        await self._inner.aclose()
        self._subscribed.leave()


async def follow_status(_: Any, info: Any, jobId: str, cursor: str | None = None) -> Followed:
    wanted = messages.Wanted(job_id=graph.check_id(jobId, "jobId"), types=messages.STATUSES)
    return await follow(info.context, wanted, cursor)


@subscription.field("jobStatus")
def show_status(event: messages.StreamEvent, info: Any, **_: Any) -> messages.JobStatus:
    return messages.job_status(event)


async def follow_events(_: Any, info: Any, filter: dict[str, Any] | None = None, cursor: str | None = None) -> Followed:
    wanted = named(filter)
    if "types" in wanted:
        wanted["types"] = frozenset(wanted["types"])
    return await follow(info.context, messages.Wanted(**wanted), cursor)


@subscription.field("events")
def show_event(event: messages.StreamEvent, info: Any, **_: Any) -> messages.StreamEvent:
    return event


async def follow_changes(_: Any, info: Any) -> AsyncGenerator[int]:
    call: Call = info.context
    return call.changes.follow(call.principal.tenant)


@subscription.field("changes")
def show_change(count: int, info: Any) -> int:
    return count


# Coroutines that come back with a stream: the language allows them, the types of the library do not yet.
for _name, _source in (("jobStatus", follow_status), ("events", follow_events), ("changes", follow_changes)):
    subscription.set_source(_name, cast("Any", _source))  # pyright: ignore[reportUnknownMemberType]

ALL = (query, mutation, subscription, job, task, why_, execution, moment)
