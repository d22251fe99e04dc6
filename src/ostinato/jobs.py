"""A job, to wait for, to look at and to act upon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ostinato import errors, views
from ostinato import secrets as secrets_
from ostinato.core import arguments, codec, commands, filters, graph, states, usage, why
from ostinato.engine import scribe

if TYPE_CHECKING:
    from ostinato.app import Ostinato

T = TypeVar("T")


class Job:
    """A handle on a job: cheap, and good from any process that uses the same database."""

    def __init__(
        self, app: Ostinato, job_id: str, *, created: bool = False, submitted_at_look: int | None = None
    ) -> None:
        self._app = app
        self._submitted_at_look = submitted_at_look
        self.job_id = arguments.text(job_id, "job_id")
        self.created = created
        """False if the idempotency key found a job that was there before."""

    def __repr__(self) -> str:
        return f"<Job {self.job_id}>"

    async def result(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the end; the outputs by task id, or JobFailed with what failed and why."""
        return await self._app.engine.ends.outputs(self.job_id, timeout, submitted_at_look=self._submitted_at_look)

    async def outputs(self) -> dict[str, Any]:
        """The outputs of the tasks that have completed so far."""
        return await self._app.engine.store.outputs(self._app.tenant, self.job_id) or await self._nothing({})

    async def info(self) -> views.JobView:
        return views.job_view(await self._app.engine.store.job(self._app.tenant, self.job_id))

    async def usage(self) -> views.UsageView:
        """What its attempts have used up so far."""
        return views.usage_view(await self._app.engine.store.usage_of_job(self._app.tenant, self.job_id))

    async def tasks(self, *, state: str | None = None, after: int = -1, most: int = 1000) -> list[views.TaskView]:
        """Tasks in the producer's order; `after` is the position of the last one of the page before."""
        if state is not None:
            filters.one_of(state, states.TASK_STATES, "state")
        arguments.number(after, "after")
        arguments.number(most, "most", 1)
        found = await self._app.engine.store.tasks(self._app.tenant, self.job_id, state=state, after=after, most=most)
        return [views.task_view(row) for row in found] or await self._nothing([])

    async def dependencies(self, task_ids: Sequence[str]) -> dict[str, list[str]]:
        """What each of these tasks depends on. Those that depend on nothing are left out."""
        wanted = arguments.texts(task_ids, "task_ids", "task ids")
        found = await self._app.engine.store.dependencies(self._app.tenant, self.job_id, wanted)
        return found or await self._nothing({})

    async def _nothing(self, nothing: T) -> T:
        """Of a job that is there; only who finds nothing needs to look whether it is."""
        await self._app.engine.store.job(self._app.tenant, self.job_id)
        return nothing

    async def task(self, task_id: str) -> views.TaskDetail:
        """One task with its attempts and steps."""
        arguments.text(task_id, "task_id")
        return await views.task_detail(self._app.engine.store, self._app.tenant, self.job_id, task_id)

    async def why(self, task_id: str) -> why.Why:
        """Why a task is not running (or that it is, or how it ended): a code, a sentence and the details."""
        arguments.text(task_id, "task_id")
        return why.explain(await self._app.engine.store.facts(self._app.tenant, self.job_id, task_id))

    async def events(self, *, task_id: str | None = None, after: int = 0, most: int = 1000) -> list[views.EventView]:
        """The stream of this job, from a sequence number on."""
        arguments.text_or_none(task_id, "task_id")
        arguments.number(after, "after")
        arguments.number(most, "most", 1)
        target = self._app.engine.store
        row = await target.job(self._app.tenant, self.job_id)
        found = await target.events(self._app.tenant, self.job_id, task_id=task_id, after=after, most=most)
        return [views.event_view(event, row.correlation_id) for event in found]

    @scribe.telling_refusals
    async def add_tasks(self, tasks: Sequence[Any], *, actor: str | None = None) -> list[str]:
        """Let the running job grow: all of the tasks or none of them."""
        running = self._app.engine
        documents = arguments.items(tasks, "tasks", "tasks")
        specs, inputs = await running.prepare_tasks(secrets_.hide_in_document(documents))
        await self._app.note(actor, "jobs.addTasks", self.job_id, tasks=len(specs))
        return await running.execute(
            commands.AddTasks(self.job_id, specs, inputs, actor=actor, most=self._app.options.max_tasks)
        )

    async def signal(self, name: str, payload: Any = None) -> bool:
        return await self._app.signal(self.job_id, name, payload)

    @scribe.telling_refusals
    async def cancel(self, reason: str | None = None, *, actor: str | None = None) -> str:
        """Stop the job. The answer says who won: `cancelled`, or the state in which it had already ended."""
        arguments.text_or_none(reason, "reason")
        await self._app.note(actor, "jobs.cancel", self.job_id, reason=reason)
        return await self._app.engine.execute(commands.CancelJob(self.job_id, reason, actor))

    @scribe.telling_refusals
    async def set_budget(self, budget: float | None, *, actor: str | None = None) -> views.JobView:
        """What the job may cost from now on; None is anything. What waits for that goes on."""
        amount = None if budget is None else usage.micros(budget, "budget")
        await self._app.note(actor, "jobs.setBudget", self.job_id, budget=budget)
        return views.job_view(await self._app.engine.execute(commands.SetBudget(self.job_id, amount, actor)))

    @scribe.telling_refusals
    async def cancel_task(
        self,
        task_id: str,
        reason: str | None = None,
        *,
        actor: str | None = None,
        called: str | None = None,
        scopes: frozenset[str] | None = None,
    ) -> str:
        """Stop a task. To end what people are asked takes somebody who may decide it: see `skip_task`."""
        arguments.text(task_id, "task_id")
        arguments.text_or_none(reason, "reason")
        await self._app.note(actor, "tasks.cancel", f"{self.job_id}/{task_id}", reason=reason)
        return await self._app.engine.execute(
            commands.CancelTask(self.job_id, task_id, reason, _person(actor, called, scopes))
        )

    @scribe.telling_refusals
    async def skip_task(
        self,
        task_id: str,
        reason: str | None = None,
        *,
        actor: str | None = None,
        called: str | None = None,
        scopes: frozenset[str] | None = None,
    ) -> str:
        """Go on without this task. If people have to decide about it, or before it, `actor` must be one who may;
        `called` is another name of theirs, and `scopes` what their key may do."""
        arguments.text(task_id, "task_id")
        arguments.text_or_none(reason, "reason")
        await self._app.note(actor, "tasks.skip", f"{self.job_id}/{task_id}", reason=reason)
        return await self._app.engine.execute(
            commands.SkipTask(self.job_id, task_id, reason, _person(actor, called, scopes))
        )

    @scribe.telling_refusals
    async def complete_task(self, task_id: str, output: Any = None, *, actor: str | None = None) -> str:
        """Give an external task its result. The answer is its state; a second time changes nothing."""
        arguments.text(task_id, "task_id")
        limit = self._app.options.max_payload_bytes
        data = secrets_.hide_in_payload(codec.encode(output, f"the output of task {task_id!r}", limit))
        await self._app.note(actor, "tasks.complete", f"{self.job_id}/{task_id}")
        return await self._app.engine.execute(commands.CompleteTask(self.job_id, task_id, data, actor))

    @scribe.telling_refusals
    async def fail_task(
        self, task_id: str, message: str, *, error_type: str = "ExternalFailure", actor: str | None = None
    ) -> str:
        """Say that an external task failed, for good. The answer is its state."""
        arguments.text(task_id, "task_id")
        for field, given in (("message", message), ("error_type", error_type)):
            if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance] - of a text, what can be kept is
                raise arguments.invalid(field, "a text", given)
        failure = commands.make_failure(error_type, *secrets_.hide_in_document([message]))
        await self._app.note(actor, "tasks.fail", f"{self.job_id}/{task_id}")
        return await self._app.engine.execute(commands.FailTask(self.job_id, task_id, failure))

    @scribe.telling_refusals
    async def retry_task(
        self, task_id: str, *, input: Mapping[str, Any] | None = None, actor: str | None = None
    ) -> None:
        """Run one task again, with all its attempts, and with another input if given."""
        arguments.text(task_id, "task_id")
        inputs = {} if input is None else self._inputs({task_id: input})
        await self._app.note(actor, "tasks.retry", f"{self.job_id}/{task_id}", newInput=input is not None)
        await self._app.engine.execute(commands.RetryTasks(self.job_id, [task_id], inputs, actor))

    @scribe.telling_refusals
    async def resume(
        self,
        *,
        inputs: Mapping[str, Mapping[str, Any]] | None = None,
        deadline: float | None = None,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> commands.ResumePlan:
        """Re-run what failed, and nothing that completed. With `dry_run`, only say what that would be."""
        encoded = self._inputs(inputs or {})
        if deadline is not None:
            graph.check_deadline(deadline)
        if not dry_run:
            changed = sorted(encoded) or None
            await self._app.note(actor, "jobs.resume", self.job_id, newInputs=changed, deadline=deadline)
        return await self._app.engine.execute(commands.Resume(self.job_id, encoded, deadline, dry_run, actor))

    def _inputs(self, inputs: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
        limit = self._app.options.max_payload_bytes
        if not hasattr(inputs, "items"):
            raise errors.InvalidInput("inputs must be an object: new inputs by task id", field="inputs")
        hidden = secrets_.hide_in_document(inputs)
        encoded = {t: codec.encode(value, f"the input of task {t!r}", limit) for t, value in hidden.items()}
        for task_id, data in encoded.items():
            if not data.startswith(b"{"):
                raise errors.InvalidInput(f"the input of task {task_id!r} must be an object", field="inputs")
        return encoded


def _person(actor: str | None, called: str | None, scopes: frozenset[str] | None) -> commands.Person:
    return commands.Person(arguments.text_or_none(actor, "actor"), arguments.text_or_none(called, "called"), scopes)
