"""What the audit log knows of: for each way to change something, the action that is recorded, or why none is.

A route that may change something and is in neither list fails a test, and so does one that does not record its action.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ROUTES: Final[Mapping[str, str]] = {
    "POST /v1/jobs": "jobs.submit",
    "POST /v1/jobs/{jobId}/tasks": "jobs.addTasks",
    "POST /v1/jobs/{jobId}/resume": "jobs.resume",
    "POST /v1/jobs/{jobId}/cancel": "jobs.cancel",
    "POST /v1/jobs/{jobId}/signals/{name}": "jobs.signal",
    "POST /v1/jobs/{jobId}/status": "jobs.publishStatus",
    "POST /v1/jobs/{jobId}/tasks/{taskId}/retry": "tasks.retry",
    "POST /v1/jobs/{jobId}/tasks/{taskId}/skip": "tasks.skip",
    "POST /v1/jobs/{jobId}/tasks/{taskId}/complete": "tasks.complete",
    "POST /v1/jobs/{jobId}/tasks/{taskId}/fail": "tasks.fail",
    "POST /v1/dead-letters/redrive": "deadLetters.redrive",
    "PUT /v1/gates/{name}": "gates.save",
    "DELETE /v1/gates/{name}": "gates.remove",
    "POST /v1/gates/{name}/rollback": "gates.rollBack",
    "POST /v1/gates/{name}/{key}/arrivals": "gates.arrive",
    "POST /v1/gates/{name}/{key}/open": "gates.open",
    "POST /v1/gates/{name}/{key}/reset": "gates.reset",
    "POST /v1/gates/{name}/{key}/freeze": "gates.freeze",
    "PUT /v1/rules/{name}": "rules.save",
    "DELETE /v1/rules/{name}": "rules.remove",
    "POST /v1/rules/{name}/rollback": "rules.rollBack",
    "PUT /v1/agents/{name}": "agents.save",
    "DELETE /v1/agents/{name}": "agents.remove",
    "POST /v1/agents/{name}/rollback": "agents.rollBack",
    "PUT /v1/graphs/{name}": "graphs.save",
    "DELETE /v1/graphs/{name}": "graphs.remove",
    "POST /v1/graphs/{name}/rollback": "graphs.rollBack",
    "PUT /v1/playbooks/{name}": "playbooks.save",
    "DELETE /v1/playbooks/{name}": "playbooks.remove",
    "POST /v1/playbooks/{name}/rollback": "playbooks.rollBack",
    "POST /ingest": "playbooks.start",
    "POST /query": "playbooks.start",
    "POST /v1/events": "events.post",
    "PUT /v1/index/definitions": "index.tag",
    "POST /v1/work/register": "workers.register",
    "POST /v1/work/leave": "workers.leave",
}

MUTATIONS: Final[Mapping[str, str]] = {
    "submit": "jobs.submit",
    "submitMany": "jobs.submit",
    "addTasks": "jobs.addTasks",
    "resume": "jobs.resume",
    "cancel": "jobs.cancel",
    "signal": "jobs.signal",
    "publishStatus": "jobs.publishStatus",
    "retry": "tasks.retry",
    "skip": "tasks.skip",
    "redrive": "deadLetters.redrive",
    "completeTask": "tasks.complete",
    "failTask": "tasks.fail",
    "defineGate": "gates.save",
    "removeGate": "gates.remove",
    "arrive": "gates.arrive",
    "openGate": "gates.open",
    "resetGate": "gates.reset",
    "freezeGate": "gates.freeze",
    "defineRule": "rules.save",
    "removeRule": "rules.remove",
    "postEvents": "events.post",
}

_READS = "it only reads, by POST because of its body"
_EVENT = "it is in the events of the job under the worker's name, and the log says which key registered that worker"

NOT_RECORDED: Final[Mapping[str, str]] = {
    "POST /graphql": "its mutations are, one by one",
    "POST /v1/plans": _READS,
    "POST /v1/rules/match": _READS,
    "POST /v1/rules/check": _READS,
    "POST /v1/work/steps": _READS,
    "POST /v1/work/outputs": _READS,
    "POST /v1/work/payload": _READS,
    "POST /v1/work/heartbeat": "a worker stays as it is",
    "POST /v1/work/claim": _EVENT,
    "POST /v1/work/complete": _EVENT,
    "POST /v1/work/fail": _EVENT,
    "POST /v1/work/release": _EVENT,
    "POST /v1/work/suspend": _EVENT,
    "POST /v1/work/step": _EVENT,
    "POST /v1/work/add-tasks": _EVENT,
}
