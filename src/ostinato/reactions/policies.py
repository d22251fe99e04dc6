"""How often and how soon the steps of pipelines are tried again, as it can be changed while items are under way."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec

from ostinato import errors
from ostinato.core import codec, courses, documents, retry
from ostinato.reactions import definitions, shelved
from ostinato.store import courses as course_cache


class PolicyView(msgspec.Struct, frozen=True, rename="camel"):
    """The policy of a step as it is now; `changed` says that it is not the one in the pipeline."""

    step: str
    retry: retry.Retry
    changed: bool


class Policies(shelved.Shelved):
    async def policies(self, pipeline: str) -> list[PolicyView]:
        """The policy of each step, in the order of the course."""
        course = await self.course(pipeline)
        found = await self._engine.store.definitions(self._tenant, course_cache.RETRY_KIND)
        known = {one.name: msgspec.json.decode(one.document, type=retry.Retry) for one in found if one.document}
        return [_view(step, known.get(f"{pipeline}/{step.step}")) for step in course.steps.values()]

    async def retry_policies(self, pipeline: str) -> dict[str, retry.Retry]:
        """The policy of each step, as it is now."""
        return {view.step: view.retry for view in await self.policies(pipeline)}

    async def policy(self, pipeline: str, step: str) -> PolicyView:
        documents.check_text(step, "step", definitions.LONGEST_NAME)
        found = {view.step: view for view in await self.policies(pipeline)}
        _check_step(pipeline, step, found)
        return found[step]

    async def set_retry(
        self, pipeline: str, step: str, policy: retry.Retry | Mapping[str, Any] | None, *, actor: str | None = None
    ) -> PolicyView:
        """Change how often and how soon a step is tried again: from now on, also for items that are under way. None
        goes back to what the pipeline says."""
        if policy is not None and not isinstance(policy, retry.Retry):
            policy = documents.read(policy, retry.Retry, "retry")
        documents.check_text(step, "step", definitions.LONGEST_NAME)
        await self._app.note(actor, "pipelines.setRetry", pipeline, step=documents.short_text(step))
        course = await self.course(pipeline)
        _check_step(pipeline, step, course.steps)
        store = self._engine.store
        document = None if policy is None else codec.encode(policy)
        with contextlib.suppress(errors.DefinitionNotFound):  # there was no other policy
            await store.save_definition(
                self._tenant, course_cache.RETRY_KIND, f"{pipeline}/{step}", document, created_by=actor
            )
        store.courses.forget(self._tenant)
        return _view(course.steps[step], policy)


def _view(step: courses.Step, changed: retry.Retry | None) -> PolicyView:
    return PolicyView(step.step, changed or step.retry, changed is not None)


def _check_step(pipeline: str, step: str, known: dict[str, courses.Step] | dict[str, PolicyView]) -> None:
    if step not in known:
        raise errors.NotFound(
            f"pipeline {pipeline!r} has no step {documents.short(step)}: "
            f"{documents.nearest(step, known)}its steps are {', '.join(known)}",
            field="step",
        )
