"""Graphs in code: the same documents as in JSON, made by calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostinato import errors, functions
from ostinato.core import arguments, documents, graph


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
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        """How often an id was made from a name."""

    def task(
        self,
        function: str | functions.Function,
        /,
        *,
        after: TaskRef | str | Sequence[TaskRef | str] = (),
        task_id: str | None = None,
        options: dict[str, Any] | None = None,
        **given: Any,
    ) -> TaskRef:
        """Add a task that runs `function` with the given input. `options` are retry, timeout, optional and so on."""
        name = function.name if isinstance(function, functions.Function) else function
        graph.check_name(name, "the name of a function")
        chosen = self._free_id(name) if task_id is None else graph.check_id(task_id, "task_id")
        task: dict[str, Any] = {
            "taskId": chosen,
            "name": name,
            "dependsOn": _task_ids(after),
            "input": given,
        }
        if isinstance(function, functions.Function) and function.queue != "default":
            task["queue"] = function.queue
        given_options = {} if options is None else arguments.mapping(options, "options")
        task |= _camel(given_options, _OPTIONS, "an option of a task")
        self._tasks.append(task)
        self._taken.add(chosen)
        return TaskRef(chosen)

    def document(self) -> dict[str, Any]:
        """The job as a document, ready to be submitted or written as JSON."""
        return {"name": self._name, "tasks": self._tasks} | _camel(self._settings, _SETTINGS, "a setting of a job")

    def _free_id(self, name: str) -> str:
        base = "".join(c if c.isalnum() or c in "._:-" else "-" for c in name)
        free = base
        while free in self._taken:
            self._counts[base] = self._counts.get(base, 1) + 1
            free = f"{base}-{self._counts[base]}"
        return graph.check_id(free, "task_id")


def _names(kind: type[msgspec.Struct], given: set[str]) -> dict[str, str]:
    """The fields of a document by their names in Python, without those that the builder gives itself."""
    return {field.name: field.encode_name for field in msgspec.structs.fields(kind) if field.name not in given}


_SETTINGS = _names(graph.JobSpec, {"name", "tasks"})
_OPTIONS = _names(graph.TaskSpec, {"task_id", "name", "depends_on", "input"})


def _camel(given: Mapping[str, Any], known: Mapping[str, str], what: str) -> dict[str, Any]:
    for name in given:
        if name not in known:
            raise errors.InvalidInput(f"{name!r} is not {what}: use one of {', '.join(sorted(known))}")
    return {known[name]: value for name, value in given.items()}


def _task_ids(after: Any) -> list[str]:
    several: list[Any] = [after] if isinstance(after, (TaskRef, str)) or not hasattr(after, "__iter__") else list(after)
    ids = [ref.task_id if isinstance(ref, TaskRef) else ref for ref in several]
    if not all(isinstance(task_id, str) for task_id in ids):
        raise errors.InvalidInput(
            f"after must be tasks of this graph or their ids, not {documents.short(after)}", field="after"
        )
    return ids
