"""Graphs in code: the same documents as in JSON, made by calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato import errors, functions
from ostinato.core import graph


class TaskRef:
    """A task in a graph that is being built; give it to `after`."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id


class Graph:
    """Collects tasks. `settings` are those of a job: request_id, idempotency_key, tags, priority, deadline, …"""

    def __init__(self, name: str, **settings: Any) -> None:
        self._name = name
        self._settings = settings
        self._tasks: list[dict[str, Any]] = []

    def task(
        self,
        function: str | functions.Function,
        /,
        *,
        after: Sequence[TaskRef | str] = (),
        task_id: str | None = None,
        options: dict[str, Any] | None = None,
        **given: Any,
    ) -> TaskRef:
        """Add a task that runs `function` with the given input. `options` are retry, timeout, optional and so on."""
        name = function.name if isinstance(function, functions.Function) else function
        chosen = task_id or self._free_id(name)
        task: dict[str, Any] = {
            "taskId": chosen,
            "name": name,
            "dependsOn": [ref.task_id if isinstance(ref, TaskRef) else ref for ref in after],
            "input": given,
        }
        if isinstance(function, functions.Function) and function.queue != "default":
            task["queue"] = function.queue
        for key, value in (options or {}).items():
            field = _OPTIONS.get(key)
            if field is None:
                raise errors.InvalidInput(
                    f"{key!r} is not an option of a task: use one of {', '.join(sorted(_OPTIONS))}"
                )
            task[field] = value
        self._tasks.append(task)
        return TaskRef(chosen)

    def document(self) -> dict[str, Any]:
        """The job as a document, ready to be submitted or written as JSON."""
        fields = {"request_id", "correlation_id", "idempotency_key", "job_id", "tags", "priority", "deadline", "budget"}
        unknown = set(self._settings) - fields
        if unknown:
            raise errors.InvalidInput(f"{sorted(unknown)} are not settings of a job: use {', '.join(sorted(fields))}")
        camel = {
            "request_id": "requestId",
            "correlation_id": "correlationId",
            "idempotency_key": "idempotencyKey",
            "job_id": "jobId",
        }
        settings = {camel.get(name, name): value for name, value in self._settings.items()}
        return {"name": self._name, "tasks": self._tasks} | settings

    def _free_id(self, name: str) -> str:
        base = "".join(c if c.isalnum() or c in "._:-" else "-" for c in name)
        taken = {task["taskId"] for task in self._tasks}
        if base not in taken:
            return graph.check_id(base, "task_id")
        return next(f"{base}-{n}" for n in range(2, len(taken) + 3) if f"{base}-{n}" not in taken)


_OPTIONS = {
    "retry": "retry",
    "timeout": "timeout",
    "queue": "queue",
    "priority": "priority",
    "optional": "optional",
    "approval": "approval",
    "on_dependency_failure": "onDependencyFailure",
}
